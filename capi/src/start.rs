//! Joining and leaving the world.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use hopbine::{CallOptions, World};
use hopbine_meet::{BootstrapError, Exchange, Records};

use crate::failure::{Failure, HOPBINE_ERR_ARG, HOPBINE_ERR_STATE, entry, out};
use crate::handles::{COMMS, comm as find, hopbine_comm_t};
use crate::report;

/// The world of this process, and its communicator's handle.
static WORLD: RwLock<Option<(World, hopbine_comm_t)>> = RwLock::new(None);

/// How ranks that another launcher has started exchange what hopbine needs to start.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(
    non_camel_case_types,
    reason = "named as C names types; repr(C) is reason enough for rustc"
)]
pub struct hopbine_exchange_t {
    /// This rank.
    pub rank: c_int,
    /// Number of ranks.
    pub size: c_int,
    /// An allgather: gives every rank at `all` the `bytes` bytes at `mine` of all ranks, in rank order; `bytes`
    /// is the same on all ranks. Returns 0, or another number if it has failed. Called by
    /// hopbine_init_exchange() and hopbine_finalize().
    pub allgather: Option<
        unsafe extern "C" fn(
            mine: *const c_void,
            all: *mut c_void,
            bytes: i64,
            argument: *mut c_void,
        ) -> c_int,
    >,
    /// Called now and then by a thread that waits in hopbine, so that another library makes progress meanwhile;
    /// may be null.
    pub progress: Option<unsafe extern "C" fn(argument: *mut c_void)>,
    /// The last argument of both functions.
    pub argument: *mut c_void,
}

// SAFETY: the argument is only passed on, and whoever gave it has promised that any thread may
// call with it.
unsafe impl Send for hopbine_exchange_t {}
// SAFETY: as above.
unsafe impl Sync for hopbine_exchange_t {}

impl hopbine_exchange_t {
    /// Everyone's `bytes`, one after the other.
    fn all(&self, mine: &[u8]) -> Result<Vec<u8>, BootstrapError> {
        let failed = |code| BootstrapError::Failed(format!("allgather returned {code}").into());
        let Some(allgather) = self.allgather else { return Err(failed(-1)) };
        let mut all = vec![0; mine.len() * self.size as usize];
        let bytes = mine.len() as i64;
        // SAFETY: the promise of `hopbine_init_exchange`'s caller; the buffers have the lengths.
        let code = unsafe {
            allgather(mine.as_ptr().cast(), all.as_mut_ptr().cast(), bytes, self.argument)
        };
        if code == 0 { Ok(all) } else { Err(failed(code)) }
    }
}

impl Exchange for hopbine_exchange_t {
    fn rank(&self) -> usize {
        self.rank as usize
    }

    fn size(&self) -> usize {
        self.size as usize
    }

    fn set_timeout(&mut self, _timeout: Duration) {
        // Whoever exchanges decides how long that may take.
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError> {
        let lengths = self.all(&(mine.len() as u64).to_le_bytes())?;
        let (lengths, _) = lengths.as_chunks::<8>();
        let lengths: Vec<usize> = lengths.iter().map(|l| u64::from_le_bytes(*l) as usize).collect();
        // A byte at least: somebody's allgather may make something special of none.
        let longest = lengths.iter().copied().max().unwrap_or(0).max(1);
        let mut padded = mine.to_vec();
        padded.resize(longest, 0);
        let all = self.all(&padded)?;
        if lengths.iter().all(|len| *len == longest) {
            return Ok(Records::of_equal_length(all, lengths.len()));
        }
        Ok(all.chunks(longest).zip(lengths).map(|(block, len)| &block[..len]).collect())
    }
}

/// Keeps the world that `start` joins.
fn join(
    world: *mut hopbine_comm_t,
    start: impl FnOnce() -> Result<World, Failure>,
) -> Result<(), Failure> {
    // SAFETY: the promise of both callers' callers.
    let handle = unsafe { out(world, "communicator") }?;
    *handle = 0;
    let joined = &mut *WORLD.write().unwrap_or_else(PoisonError::into_inner);
    if joined.is_some() {
        return Err(Failure::new(HOPBINE_ERR_STATE, "hopbine has been started already"));
    }
    let world = start()?;
    *handle = COMMS.insert(world.communicator().with(CallOptions::default()));
    *joined = Some((world, *handle));
    Ok(())
}

/// Has the exchange's `progress` called while ranks wait.
fn share_waiting(world: &World, exchange: hopbine_exchange_t) {
    if let Some(progress) = exchange.progress {
        world.communicator().on_idle(Box::new(move || {
            // The whole structure, which any thread may use.
            let exchange = &exchange;
            // SAFETY: the promise of whoever gave the exchange.
            unsafe { progress(exchange.argument) }
        }));
    }
}

/// Joins the world that the environment describes (HOPBINE_RANK, HOPBINE_SIZE,
/// HOPBINE_RENDEZVOUS, which `hopbine launch` sets; without them this process alone), and sets
/// `*world` to the communicator of all its ranks. All ranks must call it.
///
/// # Safety
/// `world` is null or an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_init(world: *mut hopbine_comm_t) -> c_int {
    entry(|| join(world, || Ok(hopbine::init()?)))
}

/// As hopbine_init(), for ranks that another launcher has started. The structure is copied; its functions must
/// be callable from any thread until hopbine_finalize() has returned.
///
/// # Safety
/// `exchange` is null or the address of a structure whose functions can be called as it says,
/// with its argument, from any thread, until hopbine_finalize() has returned; `world` is null or
/// an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_init_exchange(
    exchange: *const hopbine_exchange_t,
    world: *mut hopbine_comm_t,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let Some(&exchange) = (unsafe { exchange.as_ref() }) else {
            return Err(Failure::new(HOPBINE_ERR_ARG, "the address of the exchange is null"));
        };
        let hopbine_exchange_t { rank, size, .. } = exchange;
        if rank < 0 || rank >= size || exchange.allgather.is_none() {
            let reason = format!(
                "the exchange needs an allgather function, and a rank below the size: rank {rank} of {size}"
            );
            return Err(Failure::new(HOPBINE_ERR_ARG, reason));
        }
        join(world, || {
            let world = hopbine::init_over(Box::new(exchange))?;
            share_waiting(&world, exchange);
            Ok(world)
        })
    })
}

/// Starts hopbine with the ranks of an intracommunicator of MPI. Messages go over MPI where nothing is faster.
/// This function is for programs that do not link libhopbine_hb, whose hopbine_comm_from_mpi() takes an
/// MPI_Comm itself. `comm` points to the MPI_Comm. `functions` is the result of hopbine_mpi_functions(), which
/// is in sys/mpi/functions.c of hopbine's source and which the program compiles with its MPI; that of the first
/// call is used by all. MPI must be initialised before and finalised after hopbine. Any thread that waits may
/// call `progress` with `argument`, until hopbine_finalize() has returned; it may be null.
///
/// # Safety
/// `functions` is null or as said; `comm` is null or the address of an MPI_Comm of the same MPI; `progress`
/// can be called from any thread with `argument` until hopbine_finalize() has returned;
/// `world` is null or an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_init_mpi(
    functions: *const c_void,
    comm: *const c_void,
    progress: Option<unsafe extern "C" fn(argument: *mut c_void)>,
    argument: *mut c_void,
    world: *mut hopbine_comm_t,
) -> c_int {
    entry(|| {
        if functions.is_null() || comm.is_null() {
            let reason = "the address of MPI's functions or of the communicator is null";
            return Err(Failure::new(HOPBINE_ERR_ARG, reason));
        }
        join(world, || {
            // SAFETY: the caller's promise.
            let world = unsafe {
                hopbine::mpi::provide(functions);
                hopbine::init_mpi(hopbine::mpi::ffi::comm_at(comm))
            }?;
            let size = world.communicator().size() as c_int;
            let shared = hopbine_exchange_t { rank: 0, size, allgather: None, progress, argument };
            share_waiting(&world, shared);
            Ok(world)
        })
    })
}

/// Makes a communicator of the ranks of an intracommunicator of MPI, in its order; `comm` points to the
/// MPI_Comm. All its ranks call it. They must be ranks of the world, which must have been started over the same
/// MPI: by hopbine_init_mpi(), or in MPI_Init by libhopbine_hb or libhopbine_preload. Afterwards the two
/// communicators are independent.
///
/// # Safety
/// `comm` is null or the address of an MPI_Comm; `made` is null or an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_of_mpi(
    comm: *const c_void,
    made: *mut hopbine_comm_t,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let made = unsafe { out(made, "communicator") }?;
        *made = 0;
        if comm.is_null() {
            return Err(Failure::new(HOPBINE_ERR_ARG, "the address of the MPI_Comm is null"));
        }
        let joined = &*WORLD.read().unwrap_or_else(PoisonError::into_inner);
        let Some((world, _)) = joined else {
            return Err(Failure::new(HOPBINE_ERR_STATE, "hopbine has not been started"));
        };
        // SAFETY: the caller's promise.
        let of_mpi = unsafe { world.communicator_of(hopbine::mpi::ffi::comm_at(comm)) }?;
        *made = COMMS.insert(of_mpi);
        Ok(())
    })
}

/// Lets calls that differ fail alone, as in MPI: if ranks give another count, type or operator, the call fails
/// on the ranks concerned (HOPBINE_ERR_MISMATCH), and later calls are served. Without it the whole world fails,
/// and every rank gets an error. The world also fails where messages do not match: another collective, root or
/// algorithm, or lengths that are cut differently. All ranks must call it before their first collective.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_spare() -> c_int {
    entry(|| {
        find(hopbine_comm_world())?.spare();
        Ok(())
    })
}

/// Leaves the world after waiting for all ranks, and frees the world's communicator. Other communicators and
/// requests then refuse every call except those that free them. hopbine_init() may follow.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_finalize() -> c_int {
    entry(|| {
        let joined = WORLD.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some((world, handle)) = joined else {
            return Err(Failure::new(HOPBINE_ERR_STATE, "hopbine has not been started"));
        };
        report::print(&world);
        drop(COMMS.remove(handle));
        Ok(world.finish()?)
    })
}

/// Sets `*started` to 1 between hopbine_init() and hopbine_finalize(), to 0 otherwise.
///
/// # Safety
/// `started` is null or an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_initialized(started: *mut c_int) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let started = unsafe { out(started, "answer") }?;
        let is_some = WORLD.read().unwrap_or_else(PoisonError::into_inner).is_some();
        *started = c_int::from(is_some);
        Ok(())
    })
}

/// The communicator of all ranks; HOPBINE_COMM_NULL if hopbine has not been started.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_comm_world() -> hopbine_comm_t {
    let joined = &*WORLD.read().unwrap_or_else(PoisonError::into_inner);
    joined.as_ref().map_or(0, |(_, handle)| *handle)
}

/// What carries the world's messages: "tofu", "shm", "emu" or "mpi"; empty if hopbine has not been
/// started. Never null, always valid.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_backend() -> *const c_char {
    let joined = &*WORLD.read().unwrap_or_else(PoisonError::into_inner);
    let name: &CStr = match joined.as_ref().map(|(world, _)| world.backend()) {
        Some("tofu") => c"tofu",
        Some("shm") => c"shm",
        Some("emu") => c"emu",
        Some("mpi") => c"mpi",
        _ => c"",
    };
    name.as_ptr()
}

/// 1 if a thread that waits in hopbine has a core of its own, and therefore spins; 0 if it yields at once,
/// because there are more ranks than cores, or if hopbine has not been started.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_own_cores() -> c_int {
    let joined = &*WORLD.read().unwrap_or_else(PoisonError::into_inner);
    c_int::from(joined.as_ref().is_some_and(|(world, _)| world.has_own_cores()))
}

/// The library's version, such as "0.1.0". Never null, always valid.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}
