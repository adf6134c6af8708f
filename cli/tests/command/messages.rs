//! Checks that `docs/messages.md` has every error text of the libraries and of the command, and no other.

use std::path::{Path, PathBuf};

/// Source files with error texts.
const FILES: [&str; 11] = [
    "src/error.rs",
    "src/error/blocks.rs",
    "src/error/schedule.rs",
    "src/memory/lease.rs",
    "src/reduce/error.rs",
    "sys/emu/src/limits/error.rs",
    "sys/meet/src/error.rs",
    "sys/src/load.rs",
    "torus/src/choose/error.rs",
    "torus/src/plan/derive/schedule.rs",
    "cli/src/error.rs",
];

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The string literals of a text in Rust or C.
fn literals(text: &str) -> Vec<String> {
    let mut found = vec![];
    let mut rest = text.chars();
    while rest.any(|c| c == '"') {
        let mut literal = String::new();
        while let Some(c) = rest.next() {
            match c {
                '"' => break,
                '\\' => match rest.next() {
                    Some('\n') => {
                        rest = rest.as_str().trim_start().chars();
                    }
                    Some('n') | None => {}
                    Some(escaped) => literal.push(escaped),
                },
                c => literal.push(c),
            }
        }
        found.push(literal);
    }
    found
}

/// The fixed parts of a message, between Rust's `{...}` and C's `%s`, reduced to letters.
fn parts(message: &str) -> Vec<String> {
    let mut text = message.trim_start_matches("hopbine: ").replace("{{", "").replace("}}", "");
    for conversion in ["%.*s", "%s", "%d", "%g"] {
        text = text.replace(conversion, "{}");
    }
    let pieces = text.split('{').map(|piece| piece.rsplit('}').next().unwrap_or(piece));
    let letters = pieces.map(|piece| piece.trim_matches(|c: char| !c.is_alphanumeric()).to_owned());
    letters.filter(|part| part.len() >= 4).collect()
}

fn has(text: &str, parts: &[String]) -> bool {
    let mut rest = Some(text);
    parts.iter().all(|part| {
        rest = rest.and_then(|text| text.split_once(part.as_str())).map(|(_, behind)| behind);
        rest.is_some()
    })
}

/// Messages from the sources.
fn messages() -> Vec<String> {
    let mut found: Vec<String> = vec![];
    for file in FILES {
        let text = read(file);
        for attribute in text.split("#[error(").skip(1) {
            found.extend(literals(attribute.split(")]").next().unwrap()));
        }
    }
    let shown = read("src/error/blame.rs");
    found.extend(shown.split("impl fmt::Display").skip(1).flat_map(literals));
    // Texts that are printed, and reasons why MPI serves a call.
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let files = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        files.collect::<Vec<PathBuf>>()
    };
    let folders = [
        "src/endpoint/mpi",
        "src/engine/diagnosis",
        "src/timeline",
        "capi/src",
        "capi/mpi",
        "capi/preload",
    ];
    for path in folders.into_iter().flat_map(files) {
        let text = read(&path);
        found.extend(literals(&text).into_iter().filter(|text| text.starts_with("hopbine: ")));
        let reasons = text.lines().filter(|line| {
            [
                "reason = ",
                "no_requests = ",
                "? no_requests",
                "return \"",
                "message = ",
                ": \"MPI has",
            ]
            .iter()
            .any(|begin| line.contains(begin))
        });
        if path.extension().is_some_and(|end| end == "c") {
            found.extend(reasons.flat_map(literals));
        }
    }
    found.retain(|message| !parts(message).is_empty());
    assert!(found.len() > 140, "{} messages", found.len());
    found
}

/// The first cells of the page's tables of messages.
fn rows(page: &str) -> Vec<String> {
    let mut of_messages = false;
    let mut rows = vec![];
    for line in page.lines() {
        let Some(cell) = line.strip_prefix("| ").and_then(|line| line.split(" | ").next()) else {
            of_messages = false;
            continue;
        };
        match cell {
            "message" | "reason" => of_messages = true,
            "---" => {}
            cell if of_messages => rows.push(cell.to_owned()),
            _ => {}
        }
    }
    rows
}

#[test]
fn every_message_has_its_row() {
    let page = read("docs/messages.md");
    let rows = rows(&page);
    let missing: Vec<String> = messages()
        .into_iter()
        .filter(|message| !rows.iter().any(|row| has(row, &parts(message))))
        .collect();
    assert!(missing.is_empty(), "docs/messages.md lacks:\n{}", missing.join("\n"));
    assert!(rows.len() > 100, "{} rows", rows.len());
}

#[test]
fn every_row_is_a_message() {
    let mut messages: Vec<_> = messages().iter().map(|message| parts(message)).collect();
    // A message that only names a rank would match many rows.
    messages.retain(|parts| parts.concat().len() > 4);
    let old: Vec<String> = rows(&read("docs/messages.md"))
        .into_iter()
        .filter(|row| !messages.iter().any(|parts| has(row, parts)))
        .collect();
    assert!(old.is_empty(), "no source has these rows of docs/messages.md:\n{}", old.join("\n"));
}

#[test]
fn every_code_has_its_row() {
    let (header, page) = (read("include/hopbine.h"), read("docs/messages.md"));
    let codes = header.lines().filter_map(|line| line.strip_prefix("#define HOPBINE_ERR_"));
    let codes: Vec<_> = codes.filter_map(|code| code.split(' ').next()).collect();
    assert!(codes.len() > 15, "{codes:?}");
    for code in codes {
        assert!(page.contains(&format!("\n| `HOPBINE_ERR_{code}` | ")), "HOPBINE_ERR_{code}");
    }
}
