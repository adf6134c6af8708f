//! Worlds of programs that have initialised MPI themselves.

use crate::endpoint::mpi::ffi;

use super::init::World;
use super::mpi::session::Session;
use super::mpi::unusable;
use crate::comm::communicator::Communicator;
use crate::endpoint::mpi::Comm;
use crate::engine::OnIdle;
use crate::error::Error;

/// Joins a world of the ranks of `comm`, in its order: for programs that have initialised MPI themselves. All ranks
/// of `comm` must call it. It communicates only on communicators that it makes of these ranks (`MPI_Comm_split`, which
/// copies no attributes of `comm`).
///
/// The backend is that of `HOPBINE_BACKEND`. Without it: Tofu if there is one, else shared memory if all ranks are
/// on one host, else MPI, with shared memory between the ranks of each host.
///
/// The world must be dropped, on all ranks, before MPI is finalised. MPI may have been initialised for any level of
/// threads: below `MPI_THREAD_SERIALIZED` only the thread that has initialised MPI may call hopbine; below
/// `MPI_THREAD_MULTIPLE` calls of hopbine and of MPI must not coincide.
///
/// # Safety
/// `comm` must be a communicator of the MPI that was [provided](crate::mpi::provide), or `MPI_COMM_NULL`.
///
/// # Errors
/// As [`init`](crate::init); [`Error::Backend`] if MPI is not initialised, or `comm` no
/// intracommunicator.
pub unsafe fn init_mpi(comm: ffi::MPI_Comm) -> Result<World, Error> {
    // SAFETY: the caller's promise.
    let session = unsafe { Session::over(Comm(comm), false) }.map_err(unusable)?;
    World::of_session(session)
}

impl World {
    /// As [`Communicator::on_idle`], for a function that calls the MPI that this world was made over. Only threads that
    /// may call MPI call it, and below `MPI_THREAD_MULTIPLE` only while no other thread calls MPI for hopbine. A world
    /// that was not made over MPI never calls it.
    pub fn on_idle_in_mpi(&self, on_idle: OnIdle) {
        let Some(session) = self.session() else { return };
        let library = session.library.clone();
        self.communicator().on_idle(Box::new(move || {
            if let Some(_inside) = library.try_enter() {
                on_idle();
            }
        }));
    }

    /// Makes a communicator of the ranks of `comm`, in its order; apart from that it is independent of `comm`. All
    /// ranks of `comm` must call it; other ranks need not.
    ///
    /// # Safety
    /// `comm` must be a communicator of the MPI that this world was made over, or `MPI_COMM_NULL`.
    ///
    /// # Errors
    /// [`Error::Group`] if the world was not made over MPI, if a rank of `comm` is not in it, or if
    /// there are a million communicators already; [`Error::Wire`] if MPI fails, or `comm` is no
    /// intracommunicator.
    pub unsafe fn communicator_of(&self, comm: ffi::MPI_Comm) -> Result<Communicator, Error> {
        let refused = |reason: &str| Error::Group { reason: reason.to_owned() };
        let all = self.communicator();
        let session = self.session().ok_or_else(|| refused("this world is not one of MPI's"))?;
        let wire = |source| Error::Wire { rank: all.rank(), port: 0, step: None, source };
        // SAFETY: the caller's promise.
        let ranks = unsafe { session.members(Comm(comm)) }.map_err(wire)?;
        let ranks = ranks.ok_or_else(|| refused("some of its ranks are not in this world"))?;
        let mut agreed = Ok(());
        // Ranks that come later may wait for operations that are under way here.
        let idle = || {
            all.progress(1, 0);
            std::thread::yield_now();
        };
        let made = all.join(&ranks, |word| {
            // SAFETY: the caller's promise.
            let answer = unsafe { session.bcast_word(Comm(comm), word, idle) };
            answer.unwrap_or_else(|error| {
                agreed = Err(wire(error));
                0
            })
        });
        agreed.and(made)
    }
}
