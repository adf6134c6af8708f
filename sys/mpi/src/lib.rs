//! Provides hopbine with the MPI that a program in Rust is linked to, that of the compiler wrapper `MPICC`:
//!
//! ```toml
//! hopbine = { version = "0.1", features = ["mpi"] }
//! hopbine-mpi = { version = "0.1", features = ["linked"] }
//! ```
//!
//! `provide()` comes before `hopbine::init()` or `hopbine::init_mpi()`. hopbine itself needs no MPI to be built, and
//! programs in C give theirs (`hopbine_init_mpi`). With the feature `rsmpi` programs that call MPI by the crate `mpi`
//! pass its communicators.

/// Has hopbine use this MPI, for messages and for ranks to meet.
#[cfg(any(feature = "linked", docsrs))]
pub fn provide() {
    unsafe extern "C" {
        /// `functions.c`.
        safe fn hopbine_mpi_functions() -> *const std::ffi::c_void;
    }
    // SAFETY: it is this function's.
    unsafe { hopbine::mpi::provide(hopbine_mpi_functions()) }
}

/// Programs that call MPI by the crate `mpi` (rsmpi): hopbine for the ranks of its communicators.
#[cfg(feature = "rsmpi")]
pub mod rsmpi;
