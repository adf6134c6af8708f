//! Provides hopbine with the MPI that a Rust program is linked to, the MPI of the compiler wrapper `MPICC`:
//!
//! ```toml
//! hopbine = { path = "../hopbine-source" }
//! hopbine-mpi = { path = "../hopbine-source/sys/mpi", features = ["linked"] }
//! ```
//!
//! Call `provide()` before `hopbine::init()` or `hopbine::init_mpi()`. hopbine itself can be built without an MPI; C
//! programs provide theirs by `hopbine_init_mpi`. With the feature `rsmpi`, programs that call MPI through the crate
//! `mpi` can pass its communicators.

/// Makes hopbine use this MPI, for messages and for the exchange of addresses at start-up.
#[cfg(any(feature = "linked", docsrs))]
pub fn provide() {
    unsafe extern "C" {
        /// Defined in `functions.c`.
        safe fn hopbine_mpi_functions() -> *const std::ffi::c_void;
    }
    // SAFETY: the table is what `hopbine_mpi_functions` returns.
    unsafe { hopbine::mpi::provide(hopbine_mpi_functions()) }
}

/// For programs that call MPI through the crate `mpi` (rsmpi): worlds and communicators of the ranks of its
/// communicators.
#[cfg(feature = "rsmpi")]
pub mod rsmpi;
