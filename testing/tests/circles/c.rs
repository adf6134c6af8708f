//! Dependencies between C files: a file depends on the headers that it includes and on the files whose functions it
//! calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::{Edges, files};

/// A C file without comments and literals.
struct Source {
    text: String,
    includes: BTreeSet<String>,
    /// Functions with external linkage, and `static` functions.
    public: BTreeSet<String>,
    private: BTreeSet<String>,
}

/// Replaces each comment and literal by a space, except the names of included files.
fn stripped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_include = first == '#' && rest.starts_with("#include");
        let length = if is_include {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' || first == '\'' {
            let escaped = |at: usize| rest.as_bytes()[at - 1] == b'\\';
            let end = rest[1..].match_indices(first).map(|(at, _)| at + 1).find(|&at| !escaped(at));
            end.map_or(rest.len(), |end| end + 1)
        } else {
            first.len_utf8()
        };
        match is_include || length == first.len_utf8() {
            true => out += &rest[..length],
            false => out.push(' '),
        }
        rest = &rest[length..];
    }
    out
}

/// Every name that precedes a parenthesis, and its offset in bytes.
fn called(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('(').filter_map(|(at, _)| {
        let before = text[..at].trim_end_matches(' ');
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = before.trim_end_matches(is_part).len();
        let name = &before[start..];
        let is_member = before[..start].ends_with(['.', '>']);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        (is_name && !is_member).then_some((start, name))
    })
}

/// Names of the functions defined in `text`, and whether each is `static`. A definition begins in the first column,
/// and its head ends with a brace.
fn definitions(text: &str) -> impl Iterator<Item = (&str, bool)> {
    called(text).filter_map(|(at, name)| {
        let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = &text[start..];
        let head = &line[..line.find(['{', ';']).unwrap_or(line.len())];
        // The invocation of a macro begins in the first column too, but no type precedes its name.
        let is_head = at > start
            && line.starts_with(|c: char| c.is_ascii_alphabetic())
            && line[head.len()..].starts_with('{')
            && called(head).find(|(_, name)| *name != "__attribute__").map(|(_, name)| name)
                == Some(name);
        is_head.then(|| (name, head.contains("static ")))
    })
}

/// The bodies of a file's macros.
fn macros(text: &str) -> String {
    let mut continues = false;
    let lines = text.lines().filter(|line| {
        let is_of_macro = continues || line.starts_with("#define");
        continues = is_of_macro && line.ends_with('\\');
        is_of_macro
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Source {
    fn new(text: &str) -> Self {
        let text = stripped(text);
        let includes =
            text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
        let includes = includes.map(str::to_owned).collect();
        let of = |is_private| {
            let found = definitions(&text).filter(|(_, is)| *is == is_private);
            found.map(|(name, _)| name.to_owned()).collect()
        };
        Source { includes, public: of(false), private: of(true), text }
    }
}

/// Dependencies between the C files of a directory.
pub fn dependencies(directory: &Path) -> Edges<String> {
    let mut found = Vec::new();
    files(directory, "c", &mut found);
    files(directory, "h", &mut found);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let sources = found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap()));
    edges(&sources.collect())
}

pub fn edges(texts: &BTreeMap<String, String>) -> Edges<String> {
    let sources: BTreeMap<_, _> =
        texts.iter().map(|(name, text)| (name, Source::new(text))).collect();
    let is_header = |name: &str| name.ends_with(".h");
    let mut edges = Edges::new();
    for (file, source) in &sources {
        let of_file: &mut BTreeSet<String> = edges.entry((*file).clone()).or_default();
        of_file.extend(source.includes.iter().filter(|name| sources.contains_key(name)).cloned());
        if is_header(file) {
            continue;
        }
        // A macro of a header contributes calls to each file that includes the header.
        let of_headers = source
            .includes
            .iter()
            .filter_map(|name| sources.get(name))
            .map(|header| macros(&header.text));
        let text = of_headers.fold(source.text.clone(), |text, of_header| text + "\n" + &of_header);
        for (_, name) in called(&text).filter(|(_, name)| !source.private.contains(*name)) {
            let definers = sources.iter().filter(|(other, source)| {
                *other != file && !is_header(other) && source.public.contains(name)
            });
            of_file.extend(definers.map(|(other, _)| (*other).clone()));
        }
    }
    edges
}
