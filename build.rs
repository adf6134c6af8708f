//! Passes the commit that the crate is built from to the code, for `hopbine --version` and `hopbine info`: a report
//! from a machine to which only its reporter has access must identify the code that ran there.
//!
//! Sets `HOPBINE_VERSION` to `0.1.0 (1234567)`, with `, changed` after the commit if files differ from it. Without
//! git, outside a clone, and in a debug build (which would be rebuilt after every commit) `HOPBINE_VERSION` is the
//! version alone. Packagers set `HOPBINE_COMMIT`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HOPBINE_COMMIT");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let given = std::env::var("HOPBINE_COMMIT").ok();
    let commit = given.or_else(|| is_release.then(commit).flatten());
    let version = env!("CARGO_PKG_VERSION");
    match commit {
        Some(commit) => println!("cargo::rustc-env=HOPBINE_VERSION={version} ({commit})"),
        None => println!("cargo::rustc-env=HOPBINE_VERSION={version}"),
    }
}

/// The commit of the clone whose root is this package. A clone that encloses cargo's registry or a vendored tree does
/// not count.
fn commit() -> Option<String> {
    if !Path::new(".git").exists() {
        return None;
    }
    let id = git(&["rev-parse", "--short", "HEAD"])?;
    let index = git(&["rev-parse", "--git-path", "index"])?;
    let head = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in
        [&index, &head, "src", "torus/src", "sys", "capi/src", "cli", "Cargo.toml", "Cargo.lock"]
    {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { id } else { format!("{id}, changed") })
}

/// Output of git without the end of the line; `None` if git is missing or fails. Without `--no-optional-locks`,
/// `status` rewrites the index, a watched file, so that the next build would rerun this script.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("--no-optional-locks").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
