use std::ptr::from_ref;

use hopbine::mpi::ffi::{self, MPI_Comm};
use hopbine::{Communicator, Error, World};
use mpi::raw::AsRaw;

/// The communicator in hopbine's form of a handle.
fn handle(comm: &impl AsRaw<Raw = mpi::ffi::MPI_Comm>) -> MPI_Comm {
    let raw = comm.as_raw();
    // SAFETY: the address of a handle; both crates are linked to the MPI that MPICC names.
    unsafe { ffi::comm_at(from_ref(&raw).cast()) }
}

/// Joins a world of the ranks of `comm`, in its order, as [`hopbine::init_mpi`] does. All ranks of `comm` must call
/// it.
/// The world must be dropped, on all ranks, before rsmpi's `Universe`, which finalises MPI.
///
/// # Errors
/// As [`hopbine::init_mpi`].
pub fn init(comm: &impl AsRaw<Raw = mpi::ffi::MPI_Comm>) -> Result<World, Error> {
    crate::provide();
    // SAFETY: communicators of rsmpi belong to this MPI, and exist as long as they are borrowed.
    unsafe { hopbine::init_mpi(handle(comm)) }
}

/// The communicator of the ranks of `comm`, in its order, as [`World::communicator_of`] returns it. All ranks of
/// `comm` must call it.
///
/// # Errors
/// As [`World::communicator_of`].
pub fn communicator_of(
    world: &World,
    comm: &impl AsRaw<Raw = mpi::ffi::MPI_Comm>,
) -> Result<Communicator, Error> {
    // SAFETY: as in `init`; a process has one MPI.
    unsafe { world.communicator_of(handle(comm)) }
}
