//! Checks that the generated files in the repository match the table of the collectives' signatures: the headers,
//! the descriptions of MPI's calls for the C files of `capi/mpi`, and the Fortran procedures.

mod fortran;
mod header;
mod mpi;
mod mpi_fortran;
mod rows;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Compares a file with the text that it should have; with `HOPBINE_TEST_BLESS=1`, writes the file first.
fn assert_is_current(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os("HOPBINE_TEST_BLESS").is_some() {
        std::fs::write(&file, text).expect("can be written");
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    let diff = similar::TextDiff::from_lines(there.as_str(), text);
    assert!(
        there == text,
        "{path} is not what its source makes; HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test \
         generated writes it:\n{}",
        diff.unified_diff()
    );
}

#[test]
fn the_c_header_is_current() {
    assert_is_current("include/hopbine.h", &header::text());
}

/// Debian's list of symbols keeps the symbols of earlier versions: Debian does not build the package if one is
/// missing.
#[test]
fn the_packages_symbols_are_the_headers_functions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let symbols = std::fs::read_to_string(root.join("packages/debian/libhopbine0.1.symbols"));
    let symbols = symbols.expect("is readable");
    let listed: BTreeSet<&str> =
        symbols.lines().filter_map(|line| Some(line.trim().split_once('@')?.0)).collect();
    let header = header::text();
    let code: String = header.lines().filter(|line| !line.starts_with("//")).collect();
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let functions: BTreeSet<&str> = code
        .match_indices('(')
        .filter_map(|(at, _)| code[..at].rsplit(|c| !is_of_a_name(c)).next())
        .filter(|name| name.starts_with("hopbine_"))
        .collect();
    assert!(functions.len() > 50, "{functions:?}");
    assert_eq!(listed, functions);
}

#[test]
fn the_headers_version_is_the_packages() {
    let version = ["MAJOR", "MINOR", "PATCH"]
        .map(|part| format!("HOPBINE_VERSION_{part}"))
        .map(|name| constants(&header::text(), "#define ", " ")[&name].to_string());
    assert_eq!(version.join("."), env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_fortran_procedures_are_current() {
    assert_is_current("fortran/hopbine_c_calls.f90", &fortran::interfaces());
    assert_is_current("fortran/hopbine_calls.f90", &fortran::procedures(false));
    assert_is_current("fortran/hopbine_vector.f90", &fortran::procedures(true));
}

#[test]
fn the_header_with_mpis_names_is_current() {
    assert_is_current("include/hopbine_mpi.h", &mpi::header());
    assert_is_current("capi/mpi/signatures.h", &mpi::signatures());
}

#[test]
fn the_fortran_procedures_with_mpis_names_are_current() {
    assert_is_current("fortran/mpi/procedures.inc", &mpi_fortran::procedures());
    for (number, form) in ["blocking", "nonblocking", "persistent"].iter().enumerate() {
        assert_is_current(&format!("fortran/mpi/{form}.inc"), &mpi_fortran::module(number));
    }
}

/// The constants in a text that has them in the form `begin NAME middle NUMBER`.
fn constants(text: &str, begin: &str, middle: &str) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for (start, _) in text.match_indices("HOPBINE_") {
        let name: String =
            text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let number = text[start + name.len()..].strip_prefix(middle).unwrap_or_default();
        let number = number.trim_start_matches('(');
        let number: String =
            number.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
        if let Ok(number) = number.parse()
            && text[..start].ends_with(begin)
        {
            found.insert(name, number);
        }
    }
    found
}

#[test]
fn the_constants_of_fortran_are_those_of_the_header() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path| std::fs::read_to_string(root.join(path)).expect("is readable");
    let c = constants(&read("include/hopbine.h"), "#define ", " ");
    let fortran = constants(&read("fortran/hopbine_c.f90"), "", " = ");
    assert!(c.len() > 40, "{c:?}");
    assert_eq!(fortran, c);
}
