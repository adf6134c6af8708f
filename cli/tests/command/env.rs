//! Tests of `hopbine env`, and of the reference page that it writes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use hopbine_meet::variables::ALL;

use super::generate::page_is_what_is_said_by;
use super::json;

/// Source files below a folder of the repository, without tests.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["tests", "target", "conformance"].contains(&&*name) {
                files(&path, found);
            }
        } else if [".rs", ".c"].iter().any(|end| name.ends_with(end)) && !name.contains("tests") {
            found.push(path);
        }
    }
}

/// Files that may read a variable.
fn readers() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut found = Vec::new();
    for folder in ["src", "cli/src", "capi/src", "capi/mpi", "sys"] {
        files(&root.join(folder), &mut found);
    }
    assert!(found.len() > 300, "{} files", found.len());
    found.retain(|path| !path.ends_with("variables/table.rs"));
    found
}

#[test]
fn variables_are_read_through_the_table() {
    // Names of error codes and handles, variables for compilers, and variables of the tests.
    let is_other = |name: &str| {
        let beginnings = ["ERR_", "SUCCESS", "COMM_NULL", "VERSION", "TEST_"];
        beginnings.iter().any(|beginning| name.starts_with(beginning))
    };
    for path in readers() {
        let text = std::fs::read_to_string(&path).unwrap();
        let is_c = path.extension().is_some_and(|extension| extension == "c");
        let before = if is_c { "getenv(\"HOPBINE_" } else { "\"HOPBINE_" };
        let text = text.split("#[cfg(test)]").next().unwrap();
        let names = text.split(before).skip(1).filter_map(|rest| rest.split_once('"'));
        let names = names.map(|(name, _)| name).filter(|name| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
                && !is_other(name)
        });
        for name in names {
            let known = ALL.iter().any(|variable| variable.name == format!("HOPBINE_{name}"));
            assert!(is_c && known, "{}: HOPBINE_{name}: read it through its row", path.display());
        }
    }
}

#[test]
fn every_row_of_the_table_is_read() {
    let mut words = HashSet::new();
    for path in readers() {
        let text = std::fs::read_to_string(path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        let is_of_a_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        words.extend(text.split(|c| !is_of_a_word(c)).map(str::to_owned));
    }
    for variable in ALL {
        // The name of the row in Rust, or the variable's name in C.
        let row = variable.name.trim_start_matches("HOPBINE_");
        let is_read = words.contains(row) || words.contains(variable.name);
        assert!(is_read, "nothing reads {}", variable.name);
    }
}

/// The page of options has the help texts of all commands.
#[test]
fn help_texts_name_variables_of_the_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/options.md");
    let page = std::fs::read_to_string(page).unwrap();
    let words = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let names: HashSet<&str> =
        words.filter(|word| word.len() > 8 && word.starts_with("HOPBINE_")).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        assert!(ALL.iter().any(|variable| variable.name == name), "there is no {name}");
    }
}

#[test]
fn the_reference_page_is_the_tables() {
    page_is_what_is_said_by("env --format markdown", "environment.md");
}

#[test]
fn one_variable_is_shown() {
    let rows = json("env HOPBINE_SHM --format json")["rows"].clone();
    assert_eq!(rows[0]["name"], "HOPBINE_SHM");
    assert_eq!(rows.as_array().unwrap().len(), 1);
}
