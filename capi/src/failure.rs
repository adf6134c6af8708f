//! How C learns of a failure: error codes, messages and the error handler.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hopbine::{Blame, BlockProblem, Error, Fault};

/// The call has succeeded.
pub const HOPBINE_SUCCESS: c_int = 0;
/// The handle is not a communicator (null, freed, never returned), or no communicator can be made of the given ranks.
pub const HOPBINE_ERR_COMM: c_int = 1;
/// The handle is not a request, or the request is active.
pub const HOPBINE_ERR_REQUEST: c_int = 2;
/// A count is negative, or its bytes exceed any memory.
pub const HOPBINE_ERR_COUNT: c_int = 3;
/// The number is not an element type.
pub const HOPBINE_ERR_TYPE: c_int = 4;
/// The number is not an operator, or the operator is not defined for the element type.
pub const HOPBINE_ERR_OP: c_int = 5;
/// The root is no rank of the communicator.
pub const HOPBINE_ERR_ROOT: c_int = 6;
/// A buffer is null, or buffers overlap.
pub const HOPBINE_ERR_BUFFER: c_int = 7;
/// Another argument is wrong.
pub const HOPBINE_ERR_ARG: c_int = 8;
/// hopbine_init() has not been called or has been called twice, or hopbine_finalize() has been called.
pub const HOPBINE_ERR_STATE: c_int = 9;
/// An environment variable or an option has a wrong value.
pub const HOPBINE_ERR_SETTING: c_int = 10;
/// hopbine could not be started, or the ranks did not meet.
pub const HOPBINE_ERR_STARTUP: c_int = 11;
/// A wait took longer than HOPBINE_TIMEOUT. Over MPI a call whose memory MPI is receiving into returns only when the
/// sender has called MPI again; it may read memory that was sent from even later.
pub const HOPBINE_ERR_TIMEOUT: c_int = 12;
/// A rank has died, has failed, or has left.
pub const HOPBINE_ERR_LOST: c_int = 13;
/// The network, shared memory or MPI failed, in this call or in an earlier one.
pub const HOPBINE_ERR_WIRE: c_int = 14;
/// The algorithm does not exist, or it does not support the call.
pub const HOPBINE_ERR_ALGORITHM: c_int = 15;
/// An error within hopbine; please report it.
pub const HOPBINE_ERR_INTERNAL: c_int = 16;
/// Ranks made different calls: another collective, count, type, operator or root.
pub const HOPBINE_ERR_MISMATCH: c_int = 17;

/// An error handler. It gets the error code, the message (a string that is valid during the call), and the argument
/// that was set with the handler. It runs on the thread whose call failed; when it returns, that call returns the
/// code. It must return or end the process: no C++ exception and no longjmp() may leave it.
#[expect(non_camel_case_types, reason = "named as C names types")]
pub type hopbine_error_handler_t =
    Option<unsafe extern "C" fn(code: c_int, message: *const c_char, argument: *mut c_void)>;

/// A failure that an entry point reports to C.
pub(crate) struct Failure {
    code: c_int,
    message: String,
    /// Another rank reports the same failure.
    is_said_elsewhere: bool,
}

impl Failure {
    pub(crate) fn new(code: c_int, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), is_said_elsewhere: false }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let is_said_elsewhere = error.is_said_elsewhere();
        Failure { is_said_elsewhere, ..Failure::new(code_of(&error), error.to_string()) }
    }
}

fn code_of(error: &Error) -> c_int {
    match error {
        Error::Address { .. }
        | Error::Overlap { .. }
        | Error::Blocks { problem: BlockProblem::Overlap { .. }, .. } => HOPBINE_ERR_BUFFER,
        Error::BufferLength { .. } | Error::UnevenBlocks { .. } | Error::Blocks { .. } => {
            HOPBINE_ERR_COUNT
        }
        Error::Root { .. } => HOPBINE_ERR_ROOT,
        Error::NoOperator { .. } | Error::Reduce(_) => HOPBINE_ERR_OP,
        Error::UnknownAlgorithm { .. }
        | Error::NotServed { .. }
        | Error::Schedule { .. }
        | Error::Plan { .. } => HOPBINE_ERR_ALGORITHM,
        Error::Timeout { .. } => HOPBINE_ERR_TIMEOUT,
        Error::GatesMismatch { .. }
        | Error::Disagree { .. }
        | Error::Lost {
            blame: Blame { fault: Fault::Elsewhere | Fault::Circle | Fault::Disagrees, .. },
            ..
        } => HOPBINE_ERR_MISMATCH,
        Error::Lost { .. } | Error::Ending { .. } => HOPBINE_ERR_LOST,
        Error::Wire { .. } | Error::Poisoned(_) => HOPBINE_ERR_WIRE,
        Error::Setting { .. } | Error::Tuning { .. } => HOPBINE_ERR_SETTING,
        Error::Active => HOPBINE_ERR_REQUEST,
        Error::Closed => HOPBINE_ERR_STATE,
        Error::Backend { .. }
        | Error::Layout { .. }
        | Error::Meeting { .. }
        | Error::Startup { .. } => HOPBINE_ERR_STARTUP,
        Error::Group { .. } => HOPBINE_ERR_COMM,
        _ => HOPBINE_ERR_INTERNAL,
    }
}

struct Handler {
    function: hopbine_error_handler_t,
    argument: *mut c_void,
}

// SAFETY: the argument is only passed on; the caller that set it promises that any thread may use it.
unsafe impl Send for Handler {}
// SAFETY: as above.
unsafe impl Sync for Handler {}

/// The error handler; calls of it under way hold it as well.
static HANDLER: Mutex<Option<Arc<Handler>>> = Mutex::new(None);

/// How long a thread that replaces the handler sleeps between two looks at calls of the old one.
const LOOK: Duration = Duration::from_millis(1);

thread_local! {
    /// Whether this thread is in an error handler.
    static IN_HANDLER: Cell<bool> = const { Cell::new(false) };
    static LAST_ERROR: RefCell<(CString, bool)> = RefCell::default();
}

/// Runs the body of a call and converts its outcome to a code.
pub(crate) fn entry(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    // Unwind safety: shared state is behind locks and consistent whenever they are free.
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        // The payload of a panic may be of any type, also of one that panics when it is dropped.
        let failure = Failure::new(HOPBINE_ERR_INTERNAL, format!("within hopbine: {text}"));
        std::mem::forget(panic);
        Err(failure)
    });
    let Err(Failure { code, message, is_said_elsewhere }) = outcome else {
        return HOPBINE_SUCCESS;
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // A thread that is ending has no thread-local storage for the message any more.
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = (message.clone(), is_said_elsewhere));
    if let Some(Handler { function: Some(function), argument }) = handler.as_deref() {
        let outer = IN_HANDLER.replace(true);
        // SAFETY: the caller that set the handler promised that it can be called like this.
        unsafe { function(code, message.as_ptr(), *argument) };
        IN_HANDLER.set(outer);
    }
    code
}

/// Checks an address to write a result to.
///
/// # Safety
/// `address` is null, or valid for reads and writes for as long as the result is used.
pub(crate) unsafe fn out<'a, T>(address: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise. C need not initialise memory that this library only writes: the types are
    // integers and pointers, for which every value is valid.
    unsafe { address.as_mut() }
        .ok_or_else(|| Failure::new(HOPBINE_ERR_ARG, format!("the pointer to the {what} is null")))
}

/// Returns the message of this thread's last failed call; an empty string if no call has failed. The string is valid
/// until the thread's next failed call.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_last_error() -> *const c_char {
    // The string's bytes stay in place until the string is replaced.
    LAST_ERROR.try_with(|last| last.borrow().0.as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns 1 if another rank reports the cause of this thread's last failed call, else 0. If a failure reaches all
/// ranks of a large job, such as the loss of a rank, one message suffices: print it on the rank for which this
/// function returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_last_error_is_said_elsewhere() -> c_int {
    LAST_ERROR.try_with(|last| last.borrow().1).unwrap_or(false).into()
}

/// Returns the name of a code, such as "HOPBINE_ERR_ROOT": a static string, never null.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_error_name(code: c_int) -> *const c_char {
    let name: &CStr = match code {
        HOPBINE_SUCCESS => c"HOPBINE_SUCCESS",
        HOPBINE_ERR_COMM => c"HOPBINE_ERR_COMM",
        HOPBINE_ERR_REQUEST => c"HOPBINE_ERR_REQUEST",
        HOPBINE_ERR_COUNT => c"HOPBINE_ERR_COUNT",
        HOPBINE_ERR_TYPE => c"HOPBINE_ERR_TYPE",
        HOPBINE_ERR_OP => c"HOPBINE_ERR_OP",
        HOPBINE_ERR_ROOT => c"HOPBINE_ERR_ROOT",
        HOPBINE_ERR_BUFFER => c"HOPBINE_ERR_BUFFER",
        HOPBINE_ERR_ARG => c"HOPBINE_ERR_ARG",
        HOPBINE_ERR_STATE => c"HOPBINE_ERR_STATE",
        HOPBINE_ERR_SETTING => c"HOPBINE_ERR_SETTING",
        HOPBINE_ERR_STARTUP => c"HOPBINE_ERR_STARTUP",
        HOPBINE_ERR_TIMEOUT => c"HOPBINE_ERR_TIMEOUT",
        HOPBINE_ERR_LOST => c"HOPBINE_ERR_LOST",
        HOPBINE_ERR_WIRE => c"HOPBINE_ERR_WIRE",
        HOPBINE_ERR_ALGORITHM => c"HOPBINE_ERR_ALGORITHM",
        HOPBINE_ERR_INTERNAL => c"HOPBINE_ERR_INTERNAL",
        HOPBINE_ERR_MISMATCH => c"HOPBINE_ERR_MISMATCH",
        _ => c"not a hopbine code",
    };
    name.as_ptr()
}

/// Sets the error handler, which is called with `argument` whenever a call fails on any thread; null, the initial
/// value, for none. The handler must be callable from any thread until another one is set. It may end the process.
/// Returns when no other thread is in the handler that was set before, so that its argument can be freed: the caller
/// must hold no lock that the handler takes. A handler that sets another one does not wait for other threads.
///
/// # Safety
/// `handler` must be callable from any thread with `argument`, until this function has set another handler and
/// returned; if a handler calls it, also by other threads whose calls have failed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_set_error_handler(
    handler: hopbine_error_handler_t,
    argument: *mut c_void,
) {
    let new = Some(Arc::new(Handler { function: handler, argument }));
    let mut old =
        std::mem::replace(&mut *HANDLER.lock().unwrap_or_else(PoisonError::into_inner), new);
    while !IN_HANDLER.get() && old.as_mut().is_some_and(|old| Arc::get_mut(old).is_none()) {
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn fails() -> c_int {
        entry(|| Err(Failure::new(HOPBINE_ERR_ARG, "wrong")))
    }

    unsafe extern "C" fn slow(_: c_int, _: *const c_char, argument: *mut c_void) {
        // SAFETY: the test's.
        let calls = unsafe { &*argument.cast::<AtomicU32>() };
        calls.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(20 * LOOK);
        calls.fetch_add(1, Ordering::SeqCst);
    }

    unsafe extern "C" fn replaces_itself(_: c_int, _: *const c_char, argument: *mut c_void) {
        // SAFETY: as in the test.
        unsafe { hopbine_set_error_handler(Some(slow), argument) };
    }

    #[test]
    fn no_thread_is_in_a_handler_that_has_been_replaced() {
        let calls = AtomicU32::new(0);
        let argument = (&raw const calls).cast_mut().cast();
        // SAFETY: any thread may use the argument, which lives longer than the handlers.
        unsafe { hopbine_set_error_handler(Some(replaces_itself), argument) };
        assert_eq!(fails(), HOPBINE_ERR_ARG);
        std::thread::scope(|threads| {
            threads.spawn(fails);
            while calls.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            // SAFETY: as above.
            unsafe { hopbine_set_error_handler(None, null_mut()) };
            assert!(calls.load(Ordering::SeqCst).is_multiple_of(2), "a call is under way");
        });
    }
}
