//! How C learns of a failure: error codes, messages and the error handler.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

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

static HANDLER: Mutex<Handler> =
    Mutex::new(Handler { function: None, argument: std::ptr::null_mut() });

thread_local! {
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
    let Handler { function, argument } = *HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
    // A thread that is ending has no thread-local storage for the message any more.
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = (message.clone(), is_said_elsewhere));
    if let Some(function) = function {
        // SAFETY: the caller that set the handler promised that it can be called like this.
        unsafe { function(code, message.as_ptr(), argument) };
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
///
/// # Safety
/// `handler` must be callable from any thread with `argument`, until another handler is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_set_error_handler(
    handler: hopbine_error_handler_t,
    argument: *mut c_void,
) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) =
        Handler { function: handler, argument };
}
