//! Compiles `functions.c` with MPI's compiler wrapper, and says what it links.
//!
//! `DEP_HOPBINE_MPI_RPATH` tells packages that depend on this one where the libraries are, with a colon between
//! directories: for programs that are to find them at run time.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=functions.c");
    println!("cargo::rerun-if-changed=functions.h");
    println!("cargo::rerun-if-env-changed=MPICC");
    println!("cargo::rerun-if-env-changed=I_MPI_ROOT");
    if std::env::var_os("CARGO_FEATURE_LINKED").is_none() {
        return;
    }
    let wrapper = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    let out = std::env::var("OUT_DIR").expect("cargo says where to write");
    let object = Path::new(&out).join("functions.o");
    let archive = Path::new(&out).join("libhopbine_mpi_functions.a");
    let compile =
        ["-std=gnu11", "-O2", "-fPIC", "-Wno-stringop-overflow", "-c", "functions.c", "-o"];
    run(with_arguments(&wrapper).args(compile).arg(&object));
    // An archive that is there is added to.
    let _ = std::fs::remove_file(&archive);
    let archiver = std::env::var("AR").unwrap_or_else(|_| "ar".to_owned());
    run(with_arguments(&archiver).arg("crs").arg(&archive).arg(&object));
    println!("cargo::rustc-link-search=native={out}");
    println!("cargo::rustc-link-lib=static=hopbine_mpi_functions");
    let shown = run(with_arguments(&wrapper).arg("-show"));
    let mut directories = Vec::new();
    for word in words(&shown) {
        if let Some(directory) = word.strip_prefix("-L") {
            println!("cargo::rustc-link-search=native={directory}");
            println!("cargo::rustc-link-arg-tests=-Wl,-rpath,{directory}");
            println!("cargo::rustc-link-arg-examples=-Wl,-rpath,{directory}");
            directories.push(directory.to_owned());
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo::rustc-link-lib={library}");
        }
    }
    println!("cargo::metadata=rpath={}", directories.join(":"));
}

/// A command, which may have arguments of its own, as `mpicc -m64` has.
fn with_arguments(command: &str) -> Command {
    let mut words = command.split_whitespace();
    let mut made = Command::new(words.next().unwrap_or_default());
    made.args(words);
    made
}

/// What a command says.
fn run(command: &mut Command) -> String {
    let reason = match command.output() {
        Ok(output) if output.status.success() => {
            return String::from_utf8_lossy(&output.stdout).into_owned();
        }
        Ok(output) => format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
        Err(error) => error.to_string(),
    };
    panic!("{command:?}: {reason}. MPICC must name the compiler wrapper of an MPI")
}

/// The words of a line of the shell's, in which some may be quoted: Intel MPI quotes paths.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}
