//! The C examples on the emulated device, under both of its names.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{compile, launch, library_dir, sys};

fn example(name: &str) -> PathBuf {
    sys().join("../examples/utofu-c").join(name)
}

/// Runs `program` and returns what rank 0 says.
fn run(program: &Path, size: usize, arguments: &[&str]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let outcomes = launch(size, dir.path(), || {
        let mut c = Command::new(program);
        c.args(arguments);
        c
    });
    for (_, trouble) in &outcomes {
        assert!(trouble.is_none(), "{}", trouble.as_deref().unwrap_or_default());
    }
    outcomes.into_iter().next().expect("at least one rank").0
}

#[test]
fn pingpong_by_put_and_get() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = dir.path().join("pingpong");
    compile(&[example("pingpong.c")], &program, &[]);
    let text = run(&program, 2, &[]);
    assert!(text.contains("all correct"), "{text}");
}

#[test]
fn halo_on_tori_of_several_shapes() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = dir.path().join("halo");
    compile(&[example("halo.c")], &program, &[]);
    for (size, shape) in
        [(1, ["1", "1", "1"]), (2, ["1", "2", "1"]), (3, ["3", "1", "1"]), (8, ["2", "2", "2"])]
    {
        let text = run(&program, size, &shape);
        assert!(text.contains("all cells correct"), "{shape:?}: {text}");
    }
}

/// A program that asks for the vendor's library runs with a link of that name.
#[test]
fn the_vendors_name_can_be_borrowed() {
    let dir = tempfile::tempdir().expect("a directory");
    let link = dir.path().join("libtofucom.so");
    std::os::unix::fs::symlink(library_dir().join("libtofucom_emu.so"), &link).expect("made");
    let program = dir.path().join("halo");
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let built = Command::new(cc)
        .arg("-I")
        .arg(sys().join("include"))
        .args([example("halo.c"), "-o".into(), program.clone(), "-L".into(), dir.path().into()])
        .arg("-ltofucom")
        .status()
        .expect("there is a compiler");
    assert!(built.success());
    let out = Command::new(&program)
        .args(["1", "1", "1"])
        .env("LD_LIBRARY_PATH", dir.path())
        .env("HOPBINE_RANK", "0")
        .env("HOPBINE_SIZE", "1")
        .output()
        .expect("was built");
    assert!(out.status.success(), "{out:?}");
}
