//! Start-up and finalisation.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use hopbine::{CallOptions, World};
use hopbine_meet::variables::{DEFAULT_TIMEOUT, from_environment, timeout};
use hopbine_meet::{BootstrapError, Exchange, Records};

use crate::failure::{Failure, HOPBINE_ERR_ARG, HOPBINE_ERR_STATE, entry, out};
use crate::handles::{COMMS, find_comm, hopbine_comm_t};
use crate::report;

/// The world of this process, and the handle of its communicator.
static WORLD: RwLock<Option<(World, hopbine_comm_t)>> = RwLock::new(None);

/// How ranks that another launcher has started exchange the data that hopbine needs to start. Its functions must
/// return or end the process: no C++ exception and no longjmp() may leave them.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(
    non_camel_case_types,
    reason = "named as C names types; repr(C) is reason enough for rustc"
)]
pub struct hopbine_exchange_t {
    /// The calling rank.
    pub rank: c_int,
    /// Number of ranks.
    pub size: c_int,
    /// An allgather. Writes the `bytes` bytes at `mine` of every rank to `all`, in rank order; `bytes` is the same on
    /// all ranks. Returns 0, or another number on failure. Called by hopbine_init_exchange() and hopbine_finalize().
    pub allgather: Option<
        unsafe extern "C" fn(
            mine: *const c_void,
            all: *mut c_void,
            bytes: i64,
            argument: *mut c_void,
        ) -> c_int,
    >,
    /// Called from time to time by a thread that waits in hopbine, so that another library makes progress in the
    /// meantime; may be null.
    pub progress: Option<unsafe extern "C" fn(argument: *mut c_void)>,
    /// Passed to both functions as the last argument.
    pub argument: *mut c_void,
}

// SAFETY: the argument is only passed on, and the caller that provides it promises that any thread may call the
// functions with it.
unsafe impl Send for hopbine_exchange_t {}
// SAFETY: as for `Send`.
unsafe impl Sync for hopbine_exchange_t {}

impl hopbine_exchange_t {
    /// The bytes of all ranks, in rank order.
    fn all(&self, mine: &[u8]) -> Result<Vec<u8>, BootstrapError> {
        let failed = |code| BootstrapError::Failed(format!("allgather returned {code}").into());
        let Some(allgather) = self.allgather else { return Err(failed(-1)) };
        let mut all = vec![0; mine.len() * self.size as usize];
        let bytes = mine.len() as i64;
        // SAFETY: the promise of `hopbine_init_exchange`'s caller; the buffers have the stated lengths.
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
        // The function `allgather` decides how long it waits.
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError> {
        let lengths = self.all(&(mine.len() as u64).to_le_bytes())?;
        let (lengths, _) = lengths.as_chunks::<8>();
        let lengths: Vec<usize> = lengths.iter().map(|l| u64::from_le_bytes(*l) as usize).collect();
        // At least one byte: an allgather may treat empty blocks specially.
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

/// Stores the world that `start` joins.
fn init_world(
    world: *mut hopbine_comm_t,
    start: impl FnOnce() -> Result<World, Failure>,
) -> Result<(), Failure> {
    // SAFETY: the promise of the exported functions' callers.
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

/// The exchange's `progress`, if there is one, to be called while ranks wait.
fn progress_of(exchange: hopbine_exchange_t) -> Option<Box<dyn Fn() + Send + Sync>> {
    let progress = exchange.progress?;
    Some(Box::new(move || {
        // Captures the whole structure, which is `Send` and `Sync`, not its field.
        let exchange = &exchange;
        // SAFETY: the promise of the caller that provides the exchange.
        unsafe { progress(exchange.argument) }
    }))
}

/// Starts hopbine with the ranks that the environment describes (HOPBINE_RANK, HOPBINE_SIZE, HOPBINE_RENDEZVOUS,
/// which `hopbine launch` sets, or variables of Open MPI's, MPICH's or Slurm's launcher; without any this process is
/// the only rank). Sets `*world` to the communicator of all ranks. Collective: all ranks must call it.
///
/// # Safety
/// `world` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_init(world: *mut hopbine_comm_t) -> c_int {
    entry(|| init_world(world, || Ok(hopbine::init()?)))
}

/// As hopbine_init(), for ranks that another launcher has started. `*exchange` is copied; its functions must be
/// callable from any thread until hopbine_finalize() has returned.
///
/// # Safety
/// `exchange` is null or points to a structure whose functions do what their documentation says and can be called
/// with its argument from any thread, until hopbine_finalize() has returned; `world` is null or writable.
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
        init_world(world, || {
            let world = hopbine::init_over(Box::new(exchange))?;
            if let Some(progress) = progress_of(exchange) {
                world.communicator().on_idle(progress);
            }
            Ok(world)
        })
    })
}

/// Starts hopbine with the ranks of an MPI intracommunicator. Messages go over MPI unless hopbine has a faster wire.
/// This function is for programs that do not link libhopbine_hb, whose hopbine_comm_from_mpi() takes an MPI_Comm
/// itself. `comm` points to the MPI_Comm. `functions` is the result of hopbine_mpi_functions(), which is in
/// sys/mpi/functions.c of hopbine's source; the program compiles it with its MPI. Later calls use the functions of
/// the first call. MPI must be initialised before hopbine and finalised after it. Any thread that waits and may call
/// MPI may call `progress` with `argument`, until hopbine_finalize() has returned, but below MPI_THREAD_MULTIPLE not
/// while another thread calls MPI for hopbine. `progress` may be null; it must return or end the process: no C++
/// exception and no longjmp() may leave it.
///
/// # Safety
/// `functions` is null or the result of hopbine_mpi_functions(); `comm` is null or points to an MPI_Comm of the same
/// MPI; `progress` can be called from any thread with `argument` until hopbine_finalize() has returned; `world` is
/// null or writable.
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
        init_world(world, || {
            // SAFETY: the caller's promise.
            let world = unsafe {
                hopbine::mpi::provide(functions);
                hopbine::init_mpi(hopbine::mpi::ffi::comm_at(comm))
            }?;
            let size = world.communicator().size() as c_int;
            let shared = hopbine_exchange_t { rank: 0, size, allgather: None, progress, argument };
            if let Some(progress) = progress_of(shared) {
                world.on_idle_in_mpi(progress);
            }
            Ok(world)
        })
    })
}

/// Makes a communicator of the ranks of an MPI intracommunicator, in its rank order; `comm` points to the MPI_Comm.
/// Collective: all its ranks must call it. They must be ranks of the world, which must have been started over the
/// same MPI: by hopbine_init_mpi(), or in MPI_Init by libhopbine_hb or libhopbine_preload. Afterwards the two
/// communicators are independent.
///
/// # Safety
/// `comm` is null or points to an MPI_Comm; `made` is null or writable.
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

/// Returns the seconds of HOPBINE_TIMEOUT; 60 if it is not set, or to something that hopbine_init() refuses.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_timeout() -> f64 {
    let set = timeout(&from_environment).ok().flatten();
    set.unwrap_or(DEFAULT_TIMEOUT).as_secs_f64()
}

/// Restricts a mismatch between ranks to the call concerned, as in MPI. If ranks pass different counts, types or
/// operators, the call fails with HOPBINE_ERR_MISMATCH on the ranks concerned, and later calls work. Without
/// hopbine_spare(), the whole world fails, and every rank gets an error. The world also fails if messages do not
/// match: another collective, root or algorithm, messages cut to other lengths, or on Tofu barrier gates on one rank
/// and messages on another. All ranks must call it before their first collective.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_spare() -> c_int {
    entry(|| {
        find_comm(hopbine_comm_world())?.spare();
        Ok(())
    })
}

/// Waits for all ranks, finalises hopbine, and frees the world's communicator. Calls on other communicators and on
/// requests then fail, except those that free them. hopbine_init() may be called again.
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

/// Sets `*started` to 1 between hopbine_init() and hopbine_finalize(), else to 0.
///
/// # Safety
/// `started` is null or writable.
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

/// Returns the communicator of all ranks; HOPBINE_COMM_NULL if hopbine has not been started.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_comm_world() -> hopbine_comm_t {
    let joined = &*WORLD.read().unwrap_or_else(PoisonError::into_inner);
    joined.as_ref().map_or(0, |(_, handle)| *handle)
}

/// Returns the name of the wire of the world's messages: "tofu", "shm", "emu" or "mpi"; an empty string if hopbine
/// has not been started. The string is static, never null.
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

/// Returns 1 if a thread that waits in hopbine has a core of its own, and therefore spins. Returns 0 if such a thread
/// yields at once because there are more ranks than cores, or if hopbine has not been started.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_own_cores() -> c_int {
    let joined = &*WORLD.read().unwrap_or_else(PoisonError::into_inner);
    c_int::from(joined.as_ref().is_some_and(|(world, _)| world.has_own_cores()))
}

/// Returns the version of the library, such as "0.1.0": a static string, never null.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}
