//! C, C++ and Fortran programs linked to the library, as ranks in shared memory. They need gcc and g++. Without
//! gfortran the Fortran programs are not tested (in CI that is an error).

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use hopbine_testing::processes::write_program;

use common::{compile, root, run, run_with};

const C: &[&str] = &["-std=c99", "-pedantic"];

#[test]
fn every_collective_from_c() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = root().join("capi/tests/library/calls.c");
    let program = compile(dir.path(), "gcc", C, &[source]);
    for (size, variables) in [(1, &[][..]), (2, &[("HOPBINE_TIMEOUT", " 20.5")]), (5, &[])] {
        let (said, _) = run_with(&program, size, &[], variables);
        assert!(said.contains("all correct"), "{size} ranks: {said}");
    }
}

/// All types and operators on the emulated device, with the same bits as a plan; the report shows which calls used
/// gates.
#[test]
fn reductions_by_barrier_gates_from_c() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = root().join("capi/tests/library/gates.c");
    let program = compile(dir.path(), "gcc", C, &[source]);
    for (size, torus) in [(3, "3"), (6, "2x3")] {
        let variables =
            [("HOPBINE_BACKEND", "emu"), ("HOPBINE_TORUS", torus), ("HOPBINE_REPORT", "1")];
        let (said, report) = run_with(&program, size, &[], &variables);
        assert!(said.contains("all correct"), "{size} ranks: {said}");
        for reason in
            ["gates: the network's barrier gates perform it", "not by gates: a plan is asked for"]
        {
            let is_line = |line: &str| line.starts_with("allreduce") && line.contains(reason);
            assert!(report.lines().any(is_line), "no {reason:?} in {report}");
        }
    }
}

/// Compiles a program that is valid C and C++ against the header.
#[test]
fn cplusplus_takes_the_header() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = root().join("capi/tests/library/plus.cc");
    let program = compile(dir.path(), "g++", &["-std=c++11", "-pedantic"], &[source]);
    assert!(run(&program, 3, &[]).contains("all correct"));
}

#[test]
fn the_example_in_c() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = compile(dir.path(), "gcc", C, &[root().join("examples/c/cg.c")]);
    for size in [1, 3] {
        let said = run(&program, size, &["12"]);
        assert!(said.contains("correct"), "{size} ranks: {said}");
    }
}

/// The report of which algorithm served each call, and why.
#[test]
fn a_report() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = compile(dir.path(), "gcc", C, &[root().join("examples/c/cg.c")]);
    let (_, report) = run_with(&program, 2, &["12"], &[("HOPBINE_REPORT", "1")]);
    let line = report.lines().find(|line| line.starts_with("allreduce"));
    assert!(
        line.is_some_and(|line| line.contains("<= 8 B") && line.contains("flat buffer")),
        "{report}"
    );
    // The report is appended to an existing file.
    let file = dir.path().join("report.7");
    std::fs::write(&file, "before\n").expect("a file");
    let name = dir.path().join("report.%j");
    let variables = [("HOPBINE_REPORT", name.to_str().expect("text")), ("PJM_JOBID", "7")];
    let (_, said) = run_with(&program, 2, &["12"], &variables);
    let report = std::fs::read_to_string(&file).expect("the report");
    assert!(report.starts_with("before\nhopbine report: rank 0 of 2") && said.is_empty(), "{said}");
    // If the file cannot be created, the report goes to standard error.
    let name = dir.path().join("nowhere/report");
    let variables = [("HOPBINE_REPORT", name.to_str().expect("text"))];
    let (_, said) = run_with(&program, 2, &["12"], &variables);
    assert!(said.contains("cannot be written") && said.contains("\nallreduce "), "{said}");
    // If standard error cannot be written either, there is no report, and nothing fails.
    let quiet = dir.path().join("quiet");
    let script = format!("#!/bin/sh\nexec {} \"$@\" 2>/dev/full\n", program.display());
    write_program(&quiet, script.as_bytes());
    let (said, _) = run_with(&quiet, 2, &["12"], &variables);
    assert!(said.contains("correct"), "{said}");
    // A call that has failed is not in it.
    let refused = compile(dir.path(), "gcc", C, &[root().join("capi/tests/library/calls.c")]);
    let (_, report) = run_with(&refused, 1, &[], &[("HOPBINE_REPORT", "1")]);
    assert!(report.contains("\nallreduce ") && !report.contains("no such algorithm"), "{report}");
}

/// A runtime of OpenMP that binds threads leaves the main thread one core. The others are the rank's all the same.
#[test]
fn a_bound_main_thread_leaves_the_other_cores() {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    if n_cores < 2 {
        return hopbine_testing::skip("there is only one core");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let options = ["-std=c99", "-fopenmp", "-Wl,--no-as-needed"];
    let program = compile(dir.path(), "gcc", &options, &[root().join("examples/c/cg.c")]);
    let variables = [
        ("HOPBINE_BACKEND", "emu"),
        ("HOPBINE_REPORT", "1"),
        ("OMP_NUM_THREADS", "1"),
        ("OMP_PROC_BIND", "true"),
    ];
    let (_, report) = run_with(&program, 1, &["12"], &variables);
    let wanted = format!("1 thread on {n_cores} cores leave {}", n_cores - 1);
    assert!(report.contains(&wanted), "no {wanted:?} in {report}");
}

#[track_caller]
fn has_fortran() -> bool {
    let has = Command::new("gfortran").arg("--version").output().is_ok();
    if !has {
        hopbine_testing::skip("there is no gfortran");
    }
    has
}

fn compile_fortran(dir: &Path, source: &Path) -> PathBuf {
    let modules = [
        "hopbine_c_calls",
        "hopbine_c",
        "hopbine_base",
        "hopbine_calls",
        "hopbine_vector",
        "hopbine",
    ];
    let modules = modules.iter().map(|name| root().join(format!("fortran/{name}.f90")));
    let gaps = dir.join("hopbine_gaps.o");
    let compiled = Command::new("gcc")
        .args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-c", "-o"])
        .args([&gaps, &root().join("fortran/hopbine_gaps.c")])
        .status();
    assert!(compiled.is_ok_and(|status| status.success()), "hopbine_gaps.c");
    let sources: Vec<_> = modules.chain([source.to_owned(), gaps]).collect();
    compile(dir, "gfortran", &["-std=f2018"], &sources)
}

/// Asserts the output of a Fortran program, on one rank and on three.
fn fortran_says(source: &str, args: &[&str], wanted: &str) {
    if !has_fortran() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let program = compile_fortran(dir.path(), &root().join(source));
    for size in [1, 3] {
        let said = run(&program, size, args);
        assert!(said.contains(wanted), "{size} ranks: {said}");
    }
}

#[test]
fn every_collective_from_fortran() {
    fortran_says("capi/tests/library/calls.f90", &[], "all correct");
}

#[test]
fn the_example_in_fortran() {
    fortran_says("examples/fortran/cg.f90", &["12"], "correct");
}
