//! The run-time loader of utofu with a complete uTofu library: this one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use utofu::handles::{PostFlags, Vcq, VcqFlags};
use utofu::{Api, Cookie, Functions, LoadError};

/// What was opened stays open for ever: here, so that a search for leaks finds it in use.
fn opened(path: &Path) -> Result<Api, LoadError> {
    static OPENED: Mutex<Vec<Api>> = Mutex::new(Vec::new());
    let api = Api::open(path)?;
    OPENED.lock().expect("no panic").push(api);
    Ok(api)
}

/// Whether a file is mapped into this process, as a library is while it is open.
fn is_mapped(path: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("this is Linux");
    let path = path.canonicalize().expect("exists");
    maps.contains(path.to_str().expect("is text"))
}

#[test]
fn a_complete_library_is_loaded_and_works() {
    let path = crate::common::library_dir().join("libtofucom_emu.so");
    let api = opened(&path).expect("has all functions");
    assert_eq!(api.origin(), path.to_string_lossy());
    assert!(api.utofu_get_last_error.is_some() && api.jtofu_query_phys_coords.is_some());
    assert_eq!(api.onesided_tnis().expect("listed").len(), 6);
    let mut vcq = Vcq::create(api, 0, VcqFlags::NONE).expect("a job of one rank");
    vcq.nop(PostFlags::TCQ, Cookie(3)).expect("there is room");
    assert_eq!(vcq.poll_tcq(), Ok(Some(Cookie(3))));
}

/// A library in C with these functions and this version of the interface.
fn made_up_library(dir: &Path, names: &[&str], major: i32, minor: i32) -> PathBuf {
    let mut text = String::new();
    for name in names {
        if *name == "utofu_query_utofu_version" {
            text += &format!("void {name}(int *a, int *b) {{ *a = {major}; *b = {minor}; }}\n");
        } else {
            text += &format!("int {name}(void) {{ return 0; }}\n");
        }
    }
    let source = dir.join("library.c");
    std::fs::write(&source, text).expect("can be written");
    let library = dir.join("library.so");
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let built =
        Command::new(cc).args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.expect("there is a compiler").success());
    library
}

#[test]
fn missing_functions_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let (last, most) = Functions::REQUIRED.split_last().expect("there are some");
    match opened(&made_up_library(dir.path(), most, 1, 0)) {
        Err(LoadError::MissingSymbols { missing, .. }) => assert_eq!(missing, [*last]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_major_version_is_refused_and_a_later_minor_one_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let refused = made_up_library(dir.path(), Functions::REQUIRED, 2, 0);
    match opened(&refused) {
        Err(e @ LoadError::WrongVersion { .. }) => {
            assert!(e.to_string().contains("implements uTofu 2.0"), "{e}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!is_mapped(&refused), "what is refused is closed again");
    let dir = tempfile::tempdir().expect("a directory");
    let taken = made_up_library(dir.path(), Functions::REQUIRED, 1, 7);
    let api = opened(&taken).expect("1.7 has 1.0");
    assert!(is_mapped(&taken), "what is taken stays open");
    assert_eq!(api.utofu_version().to_string(), "1.7");
    assert!(api.jtofu_query_phys_coords.is_none());
}
