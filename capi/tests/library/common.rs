//! Compiles programs with the header and the library, and runs them as ranks.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopbine_testing::processes::wait;
use hopbine_testing::ranks;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Path of a library that cargo has built: in the directory of this test program or one level up.
fn built(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("known");
    exe.ancestors()
        .skip(1)
        .take(2)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("there is no {name} near {}", exe.display()))
}

/// Links the library into `dir` under its installed names.
fn lay_out(dir: &Path) {
    let library = built("libhopbine_capi.so");
    for name in ["libhopbine.so", env!("SONAME")] {
        let link = dir.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(&library, link).expect("can be made");
        }
    }
}

/// Compiles `sources` in `dir` with gcc, g++ or gfortran. Warnings are errors, since users read these sources.
/// Returns the program.
pub fn compile(dir: &Path, compiler: &str, options: &[&str], sources: &[PathBuf]) -> PathBuf {
    lay_out(dir);
    let program = dir.join("program");
    let outcome = Command::new(compiler)
        .current_dir(dir)
        .args(["-O1", "-Wall", "-Wextra", "-Werror"])
        .args(options)
        .arg("-I")
        .arg(root().join("include"))
        .args(sources)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(dir)
        .arg(format!("-Wl,-rpath,{}", dir.display()))
        .args(["-lhopbine", "-lm"])
        .output()
        .unwrap_or_else(|e| panic!("{compiler} is needed: {e}"));
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    program
}

/// Runs `program` as `size` ranks in shared memory; returns the standard output of rank 0.
pub fn run(program: &Path, size: usize, arguments: &[&str]) -> String {
    run_with(program, size, arguments, &[]).0
}

/// As [`run`], with additional environment variables; returns standard output and standard error of rank 0.
pub fn run_with(
    program: &Path,
    size: usize,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (String, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let ranks = ranks::start(size, &dir.path().join("rendezvous"), |_| {
        let mut command = Command::new(program);
        command.args(arguments).env("HOPBINE_BACKEND", "shm").envs(variables.iter().copied());
        command
    });
    let mut ended = wait(ranks);
    ranks::assert_all_well(&program.display().to_string(), &ended);
    let first = ended.swap_remove(0);
    (first.stdout, first.stderr)
}
