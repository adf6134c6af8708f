//! Tests of the texts that the command generates about itself.

use std::path::Path;

use crate::{hopbine, text, well};

/// Asserts that a page of docs equals the command's output; with `HOPBINE_TEST_BLESS`, writes the page.
pub fn page_is_what_is_said_by(command: &str, page: &str) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).join(page);
    let said = well(command);
    if std::env::var_os("HOPBINE_TEST_BLESS").is_some() {
        std::fs::write(&path, &said).unwrap();
    }
    let is_same = std::fs::read_to_string(path).is_ok_and(|text| text == said);
    assert!(is_same, "docs/{page} is old: HOPBINE_TEST_BLESS=1 writes it anew");
}

#[test]
fn the_page_of_options_is_the_help() {
    page_is_what_is_said_by("generate markdown", "options.md");
}

#[test]
fn each_command_has_a_man_page() {
    let directory = tempfile::tempdir().unwrap();
    well(&format!("generate man -o {}", directory.path().display()));
    let page = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    assert!(page("hopbine.1").contains("hopbine\\-simulate(1)"));
    assert!(page("hopbine-simulate.1").contains("\\-\\-torus"));
    // Only `bench` calls this subcommand.
    assert!(!directory.path().join("hopbine-bench-rank.1").exists());
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let output = hopbine("generate man -o /nowhere/at/all");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere/at/all"), "{}", text(&output.stderr));
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(well(&format!("generate {shell}")).contains("simulate"), "{shell}");
    }
}
