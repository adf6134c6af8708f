//! The C examples on the emulated device, under both of its names.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{compile, launch, library_dir, sys};

fn example(name: &str) -> PathBuf {
    sys().join("../examples/utofu-c").join(name)
}

/// Runs `program` and returns what rank 0 says.
fn run(program: &Path, size: usize, arguments: &[&str]) -> String {
    run_with(program, size, arguments, &[])
}

/// The same with variables in the environment.
fn run_with(program: &Path, size: usize, arguments: &[&str], vars: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let outcomes = launch(size, dir.path(), || {
        let mut c = Command::new(program);
        c.args(arguments).envs(vars.iter().copied());
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

/// A program in the way of RIKEN's libutf, with several ranks on a node, and packets whose headers
/// lie before or behind their payload.
#[test]
fn packets_are_found_by_watching_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = [Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library/packets.c")];
    let include = example("");
    let include = ["-I", include.to_str().expect("is text")];
    for (flag, watched) in [("-DHEADER_FIRST", "first"), ("-DHEADER_LAST", "last")] {
        let program = dir.path().join(watched);
        compile(&source, &program, &[&include[..], &[flag]].concat());
        for (size, per_node) in [(2, "1"), (4, "2"), (3, "3"), (8, "4")] {
            let text = run_with(
                &program,
                size,
                &[],
                &[("HOPBINE_EMU_WATCHED", watched), ("HOPBINE_RANKS_PER_NODE", per_node)],
            );
            assert!(text.contains("all correct"), "{watched} {size} {per_node}: {text}");
        }
    }
}

/// The same with ids by another table of CQs, which the device is told.
#[test]
fn first_cqs_can_be_those_of_the_program() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = [Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library/packets.c")];
    let include = example("");
    let program = dir.path().join("packets");
    compile(&source, &program, &["-I", include.to_str().expect("is text"), "-DCQS_BY_THREE"]);
    for (size, per_node, cqs) in [(4, "2", "0,6"), (3, "3", "0,3,6"), (8, "4", "0,3,6,9")] {
        let watched = ("HOPBINE_EMU_WATCHED", "first");
        let vars = [watched, ("HOPBINE_EMU_CQS", cqs), ("HOPBINE_RANKS_PER_NODE", per_node)];
        let text = run_with(&program, size, &[], &vars);
        assert!(text.contains("all correct"), "{cqs}: {text}");
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
