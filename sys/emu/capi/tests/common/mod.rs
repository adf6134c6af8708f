//! Building C programs against the header and the emulated device's library.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopbine_testing::processes::{Ended, Process, wait};

/// The directory `sys`.
pub fn sys() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where cargo put `libtofucom_emu.so`: beside this test program or one level up.
pub fn library_dir() -> PathBuf {
    let exe = std::env::current_exe().expect("known");
    exe.ancestors()
        .skip(1)
        .take(2)
        .find(|dir| dir.join("libtofucom_emu.so").is_file())
        .unwrap_or_else(|| panic!("there is no libtofucom_emu.so near {}", exe.display()))
        .to_path_buf()
}

/// Compiles `sources` to `output` with the system's C compiler (`CC`, or cc), linked to the emulated
/// device. Warnings are errors: the sources are meant to be read.
pub fn compile(sources: &[PathBuf], output: &Path, more: &[&str]) {
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let outcome = Command::new(&cc)
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(more)
        .arg("-I")
        .arg(sys().join("include"))
        .args(sources)
        .arg("-o")
        .arg(output)
        .arg("-L")
        .arg(library_dir())
        .args(["-ltofucom_emu", "-lpthread", "-lm"])
        .output()
        .unwrap_or_else(|e| panic!("a C compiler is needed ({}): {e}", cc.to_string_lossy()));
    assert!(
        outcome.status.success(),
        "{} does not compile:\n{}",
        output.display(),
        String::from_utf8_lossy(&outcome.stderr)
    );
}

/// Runs `command` as every rank of a job of processes; returns standard output and what went wrong,
/// of each rank. `dir` must be fresh.
pub fn launch(
    size: usize,
    dir: &Path,
    mut command: impl FnMut() -> Command,
) -> Vec<(String, Option<String>)> {
    let ranks = (0..size).map(|rank| {
        let mut command = command();
        command
            .env("LD_LIBRARY_PATH", library_dir())
            .env("HOPBINE_RANK", rank.to_string())
            .env("HOPBINE_SIZE", size.to_string())
            .env("HOPBINE_RENDEZVOUS", dir.join("rendezvous"));
        Process::start(&mut command)
    });
    let said = wait(ranks.collect()).into_iter().enumerate().map(|(rank, ended)| {
        let trouble = trouble(&ended).map(|text| format!("rank {rank}: {text}"));
        (ended.stdout, trouble)
    });
    said.collect()
}

/// What went wrong in a process that should end well and write nothing to standard error.
pub fn trouble(ended: &Ended) -> Option<String> {
    let well = ended.status.success() && ended.stderr.is_empty();
    (!well).then(|| format!("{}\n{}", ended.status, ended.stderr))
}
