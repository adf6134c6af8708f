//! The MPI library of this process: which threads may call it, and how its return codes are read.
//!
//! All calls use the `PMPI_` names, since profiling tools, hopbine's own among them, replace the plain ones.

use std::sync::{Mutex, MutexGuard, TryLockError};

use super::ffi;

use crate::error::WireError;
use crate::sync::lock;

/// An MPI communicator.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Comm(pub ffi::MPI_Comm);

// SAFETY: a handle; `Library` decides which threads may use it.
unsafe impl Send for Comm {}
// SAFETY: as above.
unsafe impl Sync for Comm {}

/// The initialised MPI library.
#[derive(Debug)]
pub struct Library(Rule);

/// The threads that may call MPI.
#[derive(Debug)]
enum Rule {
    /// `MPI_THREAD_FUNNELED`, or less: only the thread with this number.
    Only(usize),
    /// `MPI_THREAD_SERIALIZED`: one thread at a time.
    OneAtATime,
    /// `MPI_THREAD_MULTIPLE`: any thread.
    Any,
}

/// Held by the thread that calls MPI under [`Rule::OneAtATime`], whichever world it calls for.
static ONE: Mutex<()> = Mutex::new(());

/// Permission to call MPI while this value lives.
pub struct Inside(#[expect(dead_code, reason = "held")] Option<MutexGuard<'static, ()>>);

impl Library {
    /// The library as the program has initialised it.
    ///
    /// # Errors
    /// [`WireError`] if MPI has not been initialised, or has been finalised; and on a thread that may not call it.
    pub fn get() -> Result<Self, WireError> {
        if !is_running() {
            return Err(refused(
                "MPI is not initialised, or has been finalised already".to_owned(),
            ));
        }
        let (mut level, mut is_main) = (0, 0);
        // SAFETY: MPI is running; both values are written to.
        unsafe {
            check("MPI_Query_thread", ffi::PMPI_Query_thread(&mut level))?;
            check("MPI_Is_thread_main", ffi::PMPI_Is_thread_main(&mut is_main))?;
        }
        let (serialized, multiple) = (ffi::thread_serialized(), ffi::thread_multiple());
        let rule = if level >= multiple {
            Rule::Any
        } else if level >= serialized {
            Rule::OneAtATime
        } else if is_main != 0 {
            Rule::Only(this_thread())
        } else {
            return Err(other_thread());
        };
        Ok(Library(rule))
    }

    /// Permission for this thread to call MPI, as long as the guard is held.
    ///
    /// # Errors
    /// [`WireError`] on a thread that may not call MPI.
    #[inline]
    pub fn enter(&self) -> Result<Inside, WireError> {
        match &self.0 {
            Rule::Any => Ok(Inside(None)),
            Rule::OneAtATime => Ok(Inside(Some(lock(&ONE)))),
            Rule::Only(thread) if *thread == this_thread() => Ok(Inside(None)),
            Rule::Only(_) => Err(other_thread()),
        }
    }

    /// As [`enter`](Library::enter), but `None` on a thread that may not call MPI, or not now.
    pub fn try_enter(&self) -> Option<Inside> {
        match &self.0 {
            Rule::OneAtATime => match ONE.try_lock() {
                Err(TryLockError::WouldBlock) => None,
                Err(TryLockError::Poisoned(guard)) => Some(Inside(Some(guard.into_inner()))),
                Ok(guard) => Some(Inside(Some(guard))),
            },
            _ => self.enter().ok(),
        }
    }

    /// Whether any thread may call MPI at any time.
    pub fn is_free(&self) -> bool {
        matches!(self.0, Rule::Any)
    }
}

/// A number that differs from that of any other living thread. Faster than the identifier of the standard library,
/// which counts references.
#[inline]
fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

/// Whether an MPI is provided, and has been initialised and not finalised.
pub fn is_running() -> bool {
    asks(ffi::PMPI_Initialized) && !is_finalised()
}

/// Whether an MPI is provided, and has been finalised: it cannot be initialised again.
pub fn is_finalised() -> bool {
    asks(ffi::PMPI_Finalized)
}

/// The answer of one of the functions that may be called at any time; false if no MPI is provided.
fn asks(function: unsafe extern "C" fn(*mut std::ffi::c_int) -> std::ffi::c_int) -> bool {
    let mut answer = 0;
    // SAFETY: the functions above may be called at any time.
    ffi::is_provided() && unsafe { function(&mut answer) } == SUCCESS && answer != 0
}

/// The return code of success.
const SUCCESS: std::ffi::c_int = 0;

/// Turns a return code of `call` into a result.
///
/// # Errors
/// [`WireError`] with MPI's error text, unless the code is that of success.
#[inline]
pub fn check(call: &'static str, code: std::ffi::c_int) -> Result<(), WireError> {
    if code == SUCCESS { Ok(()) } else { Err(failed(call, code)) }
}

/// Whether a request is complete; the caller still has to free it, for instance by `MPI_Wait`. `MPI_Test` would do
/// both in one call, but MPICH first makes progress in it even if the request is complete: 0.7 us by TCP. Besides,
/// requests that are freed later, many at a time, do not delay the current message.
///
/// # Safety
/// The request must be active. `status` must be `MPI_STATUS_IGNORE` or valid for writes; it is written if the request
/// is complete.
///
/// # Errors
/// [`WireError`] if MPI fails, or the request has failed.
#[inline]
pub unsafe fn is_complete(
    request: ffi::MPI_Request,
    status: *mut ffi::MPI_Status,
) -> Result<bool, WireError> {
    let mut is_complete = 0;
    // SAFETY: the caller's promise.
    let code = unsafe { ffi::PMPI_Request_get_status(request, &mut is_complete, status) };
    check("MPI_Request_get_status", code)?;
    Ok(is_complete != 0)
}

#[cold]
fn failed(call: &'static str, code: std::ffi::c_int) -> WireError {
    // Longer than any library's MPI_MAX_ERROR_STRING.
    let mut text = [0u8; 4096];
    let mut len = 0;
    // SAFETY: the text is longer than any that MPI writes.
    let told = unsafe { ffi::PMPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    let reason = match usize::try_from(len) {
        Ok(len @ 1..4096) if told == SUCCESS => {
            String::from_utf8_lossy(&text[..len]).trim().to_owned()
        }
        _ => format!("error {code}"),
    };
    WireError::new(call, reason)
}

fn other_thread() -> WireError {
    refused(
        "only the thread that initialised MPI may call; calls of other threads need MPI_THREAD_SERIALIZED"
            .to_owned(),
    )
}

fn refused(reason: String) -> WireError {
    WireError::new("MPI", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two worlds have a library value each.
    #[test]
    fn one_thread_at_a_time_calls_mpi_for_all_worlds() {
        let [one, other] = [Library(Rule::OneAtATime), Library(Rule::OneAtATime)];
        let inside = one.enter().unwrap();
        assert!(other.try_enter().is_none());
        std::thread::scope(|threads| {
            let later = threads.spawn(|| other.enter().map(drop));
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!later.is_finished());
            drop(inside);
            later.join().unwrap().unwrap();
        });
        assert!(other.try_enter().is_some());
    }

    #[test]
    fn a_thread_that_may_not_call_mpi_does_not_enter() {
        let library = Library(Rule::Only(this_thread()));
        assert!(library.try_enter().is_some());
        std::thread::scope(|threads| {
            assert!(threads.spawn(|| library.try_enter().is_none()).join().unwrap());
        });
    }
}
