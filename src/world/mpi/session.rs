//! The MPI session of a world: communicators of its own, from the start of the world to its end.

use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use crate::endpoint::mpi::ffi;

use crate::Rank;
use crate::endpoint::mpi::{Comm, Library, MpiEndpoint, check};
use crate::error::WireError;
use crate::sync::lock;

/// See the module documentation.
#[derive(Debug)]
pub(in crate::world) struct Session {
    pub(in crate::world) library: Arc<Library>,
    /// Of the ranks of the program's communicator.
    pub(super) comm: Comm,
    /// Of the same ranks, for exchanges and roll calls.
    pub(super) exchange_comm: Comm,
    pub(super) rank: Rank,
    pub(super) n_ranks: u32,
    /// All communicators that are to be freed at the end.
    comms: Mutex<Vec<Comm>>,
    state: Mutex<StartUpState>,
    /// Whether hopbine has initialised MPI.
    owns_mpi: bool,
}

/// The state of the start-up, between all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartUpState {
    /// All ranks make the same exchanges.
    Running,
    /// All ranks know that one of them cannot start, and make no further exchanges.
    GivenUp,
    /// Some ranks did not take part in time.
    TimedOut,
}

impl Session {
    /// Opens a session over the ranks of a communicator; collective over it.
    ///
    /// # Safety
    /// `comm` must be a communicator, or `MPI_COMM_NULL`.
    ///
    /// # Errors
    /// [`WireError`]; also if it is no intracommunicator.
    pub(crate) unsafe fn over(comm: Comm, owns_mpi: bool) -> Result<Arc<Self>, WireError> {
        let library = Library::get()?;
        let inside = library.enter()?;
        // SAFETY: the caller's promise.
        unsafe { is_intracommunicator(comm) }?;
        // SAFETY: as above.
        let comm = unsafe { communicator_like(comm) }?;
        // SAFETY: as above.
        let exchange_comm = unsafe { communicator_like(comm) }?;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: a communicator of ours.
        unsafe {
            check("MPI_Comm_rank", ffi::PMPI_Comm_rank(comm.0, &mut rank))?;
            check("MPI_Comm_size", ffi::PMPI_Comm_size(comm.0, &mut size))?;
        }
        drop(inside);
        let (comms, state) =
            (Mutex::new(vec![comm, exchange_comm]), Mutex::new(StartUpState::Running));
        let (rank, n_ranks, library) = (rank as Rank, size as u32, Arc::new(library));
        Ok(Arc::new(Session {
            library,
            comm,
            exchange_comm,
            rank,
            n_ranks,
            comms,
            state,
            owns_mpi,
        }))
    }

    /// Initialises MPI, with as many threads as it allows, and joins all ranks of the program.
    ///
    /// # Errors
    /// [`WireError`].
    pub(super) fn start() -> Result<Arc<Self>, WireError> {
        let mut level = 0;
        // SAFETY: MPI has not been initialised. It accepts null for the arguments.
        let code = unsafe {
            let (none, nothing) = (std::ptr::null_mut(), std::ptr::null_mut());
            ffi::PMPI_Init_thread(none, nothing, ffi::thread_multiple(), &mut level)
        };
        check("MPI_Init_thread", code)?;
        // SAFETY: MPI runs now.
        unsafe { Session::over(world(), true) }
    }

    /// Opens the ports over communicators of their own; collective.
    pub(super) fn endpoints(&self, n_ports: usize) -> Result<Vec<MpiEndpoint>, WireError> {
        let comms = &mut *lock(&self.comms);
        let ports = (0..n_ports).map(|port| {
            let comm = if port == 0 {
                self.comm
            } else {
                let _inside = self.library.enter()?;
                // SAFETY: a communicator of ours.
                let comm = unsafe { communicator_like(self.comm) }?;
                comms.push(comm);
                comm
            };
            // SAFETY: besides the port only collectives use it, and it is freed after the end of the port.
            unsafe { MpiEndpoint::new(self.library.clone(), comm) }
        });
        ports.collect()
    }

    /// The members of an intracommunicator as ranks of this session, in their order; `None` if some
    /// are not of this session.
    ///
    /// # Safety
    /// `comm` must be a communicator, or `MPI_COMM_NULL`.
    ///
    /// # Errors
    /// [`WireError`]; also if it is no intracommunicator.
    pub(crate) unsafe fn members(&self, comm: Comm) -> Result<Option<Vec<Rank>>, WireError> {
        let _inside = self.library.enter()?;
        // SAFETY: the caller's promise.
        unsafe { is_intracommunicator(comm) }?;
        let mut size = 0;
        // SAFETY: the caller's promise; groups are freed below.
        unsafe {
            check("MPI_Comm_size", ffi::PMPI_Comm_size(comm.0, &mut size))?;
            let (mut theirs, mut ours) = (ffi::group_null(), ffi::group_null());
            check("MPI_Comm_group", ffi::PMPI_Comm_group(comm.0, &mut theirs))?;
            let code = ffi::PMPI_Comm_group(self.comm.0, &mut ours);
            let ranks: Vec<c_int> = (0..size).collect();
            let mut translated = vec![ffi::undefined(); size as usize];
            let code = match code {
                0 => ffi::PMPI_Group_translate_ranks(
                    theirs,
                    size,
                    ranks.as_ptr(),
                    ours,
                    translated.as_mut_ptr(),
                ),
                code => code,
            };
            ffi::PMPI_Group_free(&mut theirs);
            ffi::PMPI_Group_free(&mut ours);
            check("MPI_Group_translate_ranks", code)?;
            let known = |rank: c_int| (rank != ffi::undefined()).then_some(rank as Rank);
            Ok(translated.into_iter().map(known).collect())
        }
    }

    /// Waits for the request that `start` makes. Between tests, while other threads may call MPI, calls `goes_on`;
    /// returns false if that does: MPI may then still use the memory that it was given.
    pub(super) fn wait(
        &self,
        call: &'static str,
        start: impl FnOnce(&mut ffi::MPI_Request) -> c_int,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<bool, WireError> {
        let mut request = ffi::request_null();
        {
            let _inside = self.library.enter()?;
            check(call, start(&mut request))?;
        }
        loop {
            let mut is_done = 0;
            {
                let _inside = self.library.enter()?;
                // SAFETY: the request that was started.
                let code =
                    unsafe { ffi::PMPI_Test(&mut request, &mut is_done, std::ptr::null_mut()) };
                check(call, code)?;
            }
            if is_done != 0 {
                return Ok(true);
            }
            if !goes_on() {
                return Ok(false);
            }
        }
    }

    /// Broadcasts a word of the first member; collective over `comm`. Calls `idle` while other ranks are awaited.
    ///
    /// # Safety
    /// As [`members`](Session::members).
    pub(crate) unsafe fn bcast_word(
        &self,
        comm: Comm,
        mut word: u64,
        mut idle: impl FnMut(),
    ) -> Result<u64, WireError> {
        let at = (&raw mut word).cast();
        let start = |request: &mut _| {
            // SAFETY: the caller's promise; one word, which stays until the request is done.
            unsafe { ffi::PMPI_Ibcast(at, 1, ffi::uint64_t(), 0, comm.0, request) }
        };
        self.wait("MPI_Ibcast", start, || {
            idle();
            true
        })?;
        Ok(word)
    }

    pub(super) fn state(&self) -> StartUpState {
        *lock(&self.state)
    }

    /// Whether all ranks know that one of them cannot start.
    pub(in crate::world) fn has_given_up(&self) -> bool {
        self.state() == StartUpState::GivenUp
    }

    pub(super) fn set_state(&self, state: StartUpState) {
        *lock(&self.state) = state;
    }

    pub(super) fn free(&self) -> Result<(), WireError> {
        let _inside = self.library.enter()?;
        for mut comm in std::mem::take(&mut *lock(&self.comms)) {
            // SAFETY: nothing uses it any more.
            check("MPI_Comm_free", unsafe { ffi::PMPI_Comm_free(&mut comm.0) })?;
        }
        Ok(())
    }

    /// Frees all communicators, and finalises MPI if hopbine has initialised it. All ranks must be done, and their
    /// endpoints have ended.
    ///
    /// # Errors
    /// [`WireError`].
    pub(in crate::world) fn end(&self) -> Result<(), WireError> {
        self.free()?;
        if self.owns_mpi {
            // SAFETY: as above.
            check("MPI_Finalize", unsafe { ffi::PMPI_Finalize() })?;
        }
        Ok(())
    }
}

/// # Safety
/// `comm` must be a communicator, or `MPI_COMM_NULL`.
unsafe fn is_intracommunicator(comm: Comm) -> Result<(), WireError> {
    let mut is_inter = 0;
    // SAFETY: a constant of MPI's, and the caller's promise.
    unsafe {
        if comm.0 == ffi::comm_null() {
            return Err(no_world("MPI_COMM_NULL"));
        }
        check("MPI_Comm_test_inter", ffi::PMPI_Comm_test_inter(comm.0, &mut is_inter))?;
    }
    if is_inter != 0 { Err(no_world("an intercommunicator")) } else { Ok(()) }
}

/// `MPI_COMM_WORLD`.
pub(super) fn world() -> Comm {
    Comm(ffi::comm_world())
}

fn no_world(what: &str) -> WireError {
    let reason = format!("{what} was given; it must be an intracommunicator");
    WireError::new("joining a world", reason)
}

/// Makes a communicator of the same ranks that returns errors; collective. `MPI_Comm_dup` would copy the program's
/// attributes.
///
/// # Safety
/// `comm` must be a communicator, and MPI must be running.
unsafe fn communicator_like(comm: Comm) -> Result<Comm, WireError> {
    let mut own = comm;
    // SAFETY: the caller's promise.
    unsafe {
        check("MPI_Comm_split", ffi::PMPI_Comm_split(comm.0, 0, 0, &mut own.0))?;
        let returns = ffi::PMPI_Comm_set_errhandler(own.0, ffi::errors_return());
        check("MPI_Comm_set_errhandler", returns)?;
    }
    Ok(own)
}
