//! No files or rooms (directories) of a crate of the workspace depend on each other in a circle, and rooms import only
//! rooms above them in ARCHITECTURE.md.
//!
//! A Rust file depends on the files of the modules that its `use` declarations and paths name; a re-export is
//! followed to the file of the item. A parent's `pub use` and `mod`, and tests, do not count. For C files see `c.rs`.

mod c;
mod rooms;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, VisRestricted, Visibility};

/// Path of a module within its crate; `[]` is the crate's root.
type Module = Vec<String>;
type Edges<N> = BTreeMap<N, BTreeSet<N>>;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Appends all files below `directory` with this extension to `found`.
fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        // Skips build output, and does not follow links, which can form cycles.
        if entry.file_type().unwrap().is_dir() {
            if !path.ends_with("target") {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|of_file| of_file == extension) {
            found.push(path);
        }
    }
}

/// Circles of a graph: its strongly connected components, except single nodes without an edge to themselves.
fn circles<N: Ord + Clone>(edges: &Edges<N>) -> Vec<Vec<N>> {
    let reached = |from: &N| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = todo.pop() {
            todo.extend(
                edges
                    .get(&next)
                    .into_iter()
                    .flatten()
                    .filter(|to| seen.insert((*to).clone()))
                    .cloned(),
            );
        }
        seen
    };
    let reached: BTreeMap<_, _> = edges.keys().map(|node| (node, reached(node))).collect();
    let circles: BTreeSet<Vec<N>> = edges
        .keys()
        .filter(|node| reached[node].contains(node))
        .map(|node| {
            let both = reached[node]
                .iter()
                .filter(|other| reached.get(other).is_some_and(|back| back.contains(node)));
            both.cloned().collect()
        })
        .collect();
    circles.into_iter().collect()
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        is_cfg && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// Names that one file uses and re-exports.
#[derive(Default)]
struct Names {
    /// Used paths, each with its depth in modules within the file.
    named: Vec<(usize, Module)>,
    /// Re-exports of the file's module (`pub use`): name and path.
    offered: Vec<(String, Module)>,
    depth: usize,
}

impl Names {
    fn add_use(&mut self, path: &Module, tree: &UseTree, is_public: bool) {
        let with = |name: &syn::Ident| [&path[..], &[name.to_string()]].concat();
        match tree {
            UseTree::Path(tree) => self.add_use(&with(&tree.ident), &tree.tree, is_public),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_use(path, tree, is_public))
            }
            UseTree::Glob(_) => self.named.push((self.depth, path.clone())),
            UseTree::Name(name) => {
                self.add_name(with(&name.ident), name.ident.to_string(), is_public)
            }
            UseTree::Rename(name) => {
                self.add_name(with(&name.ident), name.rename.to_string(), is_public)
            }
        }
    }

    fn add_name(&mut self, mut path: Module, name: String, is_public: bool) {
        if name == "self" {
            path.pop();
        }
        match (is_public, self.depth) {
            (true, 0) => self.offered.push((name, path)),
            (true, _) => {}
            (false, depth) => self.named.push((depth, path)),
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.add_use(&Module::new(), &item.tree, !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            self.depth += 1;
            visit::visit_item_mod(self, item);
            self.depth -= 1;
        }
    }

    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs[..],
            Item::Impl(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Module =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.named.push((self.depth, segments));
        visit::visit_path(self, path);
    }

    /// The path in `pub(in path)` is no dependency.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}
}

/// Path from the crate's root for `path` in `module`; `None` if `path` is not within the crate. Paths without
/// `crate`, `self` or `super` are relative to the module if `is_relative`.
fn absolute(module: &Module, path: &Module, is_relative: bool) -> Option<Module> {
    let first = path.first()?;
    let mut at = match &first[..] {
        "crate" => return Some(path[1..].to_vec()),
        "self" | "super" => module.clone(),
        _ if is_relative => return Some([&module[..], path].concat()),
        _ => return None,
    };
    let mut rest = &path[usize::from(first == "self")..];
    while rest.first().is_some_and(|segment| segment == "super") {
        at.pop()?;
        rest = &rest[1..];
    }
    Some([&at[..], rest].concat())
}

/// Dependencies between the modules' files of the crate whose root file is in `source`.
fn dependencies(source: &Path) -> Edges<Module> {
    let mut found = Vec::new();
    files(source, "rs", &mut found);
    let mut modules: BTreeMap<Module, Names> = BTreeMap::new();
    for path in found {
        let relative = path.strip_prefix(source).unwrap().with_extension("");
        let mut module: Module =
            relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        module.pop_if(|last| ["mod", "lib", "main"].contains(&&last[..]));
        if module.last().is_some_and(|last| last == "tests" || last.ends_with("_tests")) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let file =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let names = modules.entry(module).or_default();
        names.visit_file(&file);
    }
    // Returns the module in whose file an item is.
    let place = |path: &Module| {
        let mut path = path.clone();
        for _ in 0..8 {
            let n = (0..=path.len()).rev().find(|&n| modules.contains_key(&path[..n]))?;
            let (module, rest) = (path[..n].to_vec(), path[n..].to_vec());
            let offered = &modules[&module].offered;
            let Some((_, to)) = offered.iter().find(|(name, _)| rest.first() == Some(name)) else {
                return Some(module);
            };
            path = [&absolute(&module, to, true)?[..], &rest[1..]].concat();
        }
        None
    };
    let mut edges = Edges::new();
    for (module, names) in &modules {
        let of_module: &mut BTreeSet<Module> = edges.entry(module.clone()).or_default();
        for (depth, path) in &names.named {
            // Modules within a file count as the file itself.
            let inner = [&module[..], &vec![String::new(); *depth][..]].concat();
            let Some(path) = absolute(&inner, path, false) else { continue };
            let path: Module = path.into_iter().filter(|segment| !segment.is_empty()).collect();
            if let Some(to) = place(&path).filter(|to| to != module) {
                of_module.insert(to);
            }
        }
    }
    edges
}

/// The workspace's crates: the path from the repository's root to each, and its manifest.
fn crates() -> Vec<(PathBuf, String)> {
    let mut manifests = Vec::new();
    files(root(), "toml", &mut manifests);
    manifests.retain(|manifest| {
        let directory = manifest.parent().unwrap();
        let is_built = directory.components().any(|part| part.as_os_str() == "target");
        manifest.ends_with("Cargo.toml") && !is_built && directory.join("src").is_dir()
    });
    let of_manifest = |manifest: PathBuf| {
        let directory = manifest.parent().unwrap().strip_prefix(root()).unwrap().to_owned();
        (directory, fs::read_to_string(manifest).unwrap())
    };
    let crates: Vec<_> = manifests.into_iter().map(of_manifest).collect();
    assert!(crates.len() >= 7, "{crates:?}");
    crates
}

/// A circle of files is one of the children of a directory, too: the files themselves or the rooms that they are in.
#[test]
fn no_files_or_rooms_of_a_crate_are_in_a_circle() {
    for (directory, _) in crates() {
        let files = dependencies(&root().join(&directory).join("src"));
        let circles = circles(&rooms::contracted(&files));
        let found: Vec<_> =
            circles.iter().map(|circle| rooms::edges_within(&files, circle)).collect();
        assert!(found.is_empty(), "{}: {found:#?}", directory.display());
    }
}

#[test]
fn rooms_import_only_rooms_above_them_in_the_list() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = rooms::rows(&page);
    let missing: Vec<_> =
        rows.iter().flatten().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let crates = crates();
    let mut wrong = Vec::new();
    for (directory, manifest) in &crates {
        let source = directory.join("src");
        let path = |module: &Module| source.join(module.iter().collect::<PathBuf>());
        for (from, to) in rooms::pairs(&dependencies(&root().join(&source))) {
            wrong.extend(rooms::out_of_order(&rows, &path(from), &path(to)));
        }
        for (other, of_other) in &crates {
            if rooms::depends_on(manifest, of_other) {
                wrong.extend(rooms::out_of_order(&rows, &source, &other.join("src")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_circle_is_found() {
    let edges = |pairs: &[(u8, u8)]| {
        let mut edges: Edges<u8> = (0..5).map(|node| (node, BTreeSet::new())).collect();
        for &(from, to) in pairs {
            edges.get_mut(&from).unwrap().insert(to);
        }
        edges
    };
    assert!(circles(&edges(&[(0, 1), (1, 2), (0, 2), (3, 2)])).is_empty());
    assert_eq!(
        circles(&edges(&[(0, 1), (1, 2), (2, 1), (3, 4), (4, 3)])),
        [vec![1, 2], vec![3, 4]]
    );
}

#[test]
fn a_circle_of_rooms_is_found() {
    let module = |path: &str| -> Module { path.split('/').map(str::to_owned).collect() };
    let circles_of = |pairs: &[(&str, &str)]| {
        let mut edges = Edges::new();
        for (from, to) in pairs {
            edges.entry(module(from)).or_default().insert(module(to));
        }
        assert!(circles(&edges).is_empty());
        circles(&rooms::contracted(&edges))
    };
    let [a, b] = ["top/a", "top/b"].map(module);
    assert_eq!(circles_of(&[("top/a/1", "top/b/1"), ("top/b/2", "top/a/2")]), [[a, b]]);
    // A room imports what the file of its parent has, and another room imports it.
    assert!(circles_of(&[("top/a/1", "top"), ("top/b", "top/a/1"), ("x", "top/b")]).is_empty());
}

#[test]
fn an_import_of_a_room_below_is_found() {
    let rows = rooms::rows("| room | what |\n| --- | --- |\n| `a/`, `b/c.rs` | |\n| `a/d` | |\n");
    assert_eq!(rows, [vec!["a/", "b/c.rs"], vec!["a/d"]]);
    let is_wrong =
        |from: &str, to| rooms::out_of_order(&rows, Path::new(from), Path::new(to)).is_some();
    assert!(is_wrong("a/x", "a/d/y") && is_wrong("b/c", "a/d") && is_wrong("a/d", "unlisted"));
    assert!(!is_wrong("a/d/y", "a/dd") && !is_wrong("a/d", "b/c") && !is_wrong("a/x", "b/c"));
    let manifest =
        "[package]\nname = \"a\"\n\n[dependencies]\nb.workspace = true\n\n[lib]\nc.d = 1\n";
    let [b, c] = ["b", "c"].map(|name| format!("[package]\nname = \"{name}\"\n"));
    assert!(rooms::depends_on(manifest, &b) && !rooms::depends_on(manifest, &c));
}

#[test]
fn no_files_in_c_are_in_a_circle() {
    let edges = c::dependencies(&root().join("capi/mpi"));
    let has = |from: &str, to: &str| edges[from].contains(to);
    assert!(edges.len() > 25, "{} files", edges.len());
    assert!(has("requests.c", "job.h") && has("requests.c", "progress_thread.c"), "{edges:?}");
    // `complete.c` calls `mpi_functions.c` through a macro of a header.
    assert!(has("complete.c", "mpi_functions.c"), "{edges:?}");
    assert_eq!(circles(&edges), Vec::<Vec<String>>::new());
}

#[test]
fn a_circle_in_c_is_found() {
    let text = |requests: &str| {
        let texts = [
            ("a.h", "int called(void);"),
            ("a.c", "#include \"a.h\"\nint called(void) {\n    return back(1);\n}\n"),
            ("b.c", requests),
        ];
        c::edges(&texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into())
    };
    let circle = text("int back(int n) { return n ? called() : 0; }");
    assert_eq!(circles(&circle), [vec!["a.c".to_owned(), "b.c".to_owned()]]);
    for harmless in [
        "int back(int n) { return n; } /* called() */",
        "static int called(void) { return 1; }\nint back(int n) { return called(); }",
        "int back(int n) { return of.called() + (\"called()\", n); }",
        "static int back(int n) { return called(); }",
    ] {
        assert!(circles(&text(harmless)).is_empty(), "{harmless}");
    }
}
