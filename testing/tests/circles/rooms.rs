//! Rooms: the children of each directory, and the rows of the list in ARCHITECTURE.md.

use std::path::Path;

use crate::{Edges, Module};

/// All edges of a graph.
pub fn pairs<N>(edges: &Edges<N>) -> impl Iterator<Item = (&N, &N)> {
    edges.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)))
}

/// The rooms of two files: the children, of the innermost directory that has both, in which they are. The file of that
/// directory's own module is a child, too.
fn rooms(from: &Module, to: &Module) -> [Module; 2] {
    let n_shared = from.iter().zip(to).take_while(|(of_from, of_to)| of_from == of_to).count();
    [from, to].map(|file| file[..file.len().min(n_shared + 1)].to_vec())
}

/// The dependencies between rooms.
pub fn contracted(files: &Edges<Module>) -> Edges<Module> {
    let mut edges = Edges::new();
    for (from, to) in pairs(files) {
        let [from, to] = rooms(from, to);
        edges.entry(from).or_default().insert(to);
    }
    edges
}

/// The dependencies of files that make those of the rooms in a circle.
pub fn edges_within(files: &Edges<Module>, circle: &[Module]) -> Vec<String> {
    let of_circle =
        pairs(files).filter(|(from, to)| rooms(from, to).iter().all(|room| circle.contains(room)));
    of_circle.map(|(from, to)| format!("{} -> {}", from.join("/"), to.join("/"))).collect()
}

/// The paths in each row of the table of rooms.
pub fn rows(page: &str) -> Vec<Vec<&str>> {
    let (_, table) = page.split_once("| room |").expect("a table of rooms");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2).collect()).collect()
}

/// The row of a file: the one with the longest path that leads to it.
fn row(rows: &[Vec<&str>], file: &Path) -> Option<usize> {
    let paths = rows.iter().enumerate().flat_map(|(n, row)| row.iter().map(move |path| (n, path)));
    let leads = paths.filter(|(_, path)| file.starts_with(Path::new(path).with_extension("")));
    leads.max_by_key(|(_, path)| path.len()).map(|(n, _)| n)
}

/// What is wrong if the file of module `from` imports that of `to`.
pub fn out_of_order(rows: &[Vec<&str>], from: &Path, to: &Path) -> Option<String> {
    let [Some(of_from), Some(of_to)] = [from, to].map(|file| row(rows, file)) else {
        return Some(format!("no row for {} or {}", from.display(), to.display()));
    };
    let [below, above] = [of_to, of_from].map(|n| rows[n].join(", "));
    (of_to > of_from).then(|| {
        format!(
            "{} ({above}) imports {} ({below}), which is below it",
            from.display(),
            to.display()
        )
    })
}

/// Whether the package of a manifest depends on that of another, apart from tests.
pub fn depends_on(manifest: &str, other: &str) -> bool {
    let (_, name) = other.split_once("[package]\nname = \"").expect("a package");
    let (name, _) = name.split_once('"').expect("its name");
    let (_, listed) = manifest.split_once("\n[dependencies]\n").unwrap_or_default();
    let listed = listed.lines().take_while(|line| !line.starts_with('['));
    listed.filter_map(|line| line.split(['.', ' ']).next()).any(|listed| listed == name)
}
