//! With the feature `mpi` the command finds its MPI where that is now.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for directory in std::env::var("DEP_HOPBINE_MPI_RPATH").unwrap_or_default().split(':') {
        if !directory.is_empty() {
            println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{directory}");
        }
    }
}
