//! Codes, messages and the handler: how a failure reaches C.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use hopbine::{Blame, Error, Fault};

/// All is well.
pub const HOPBINE_SUCCESS: c_int = 0;
/// Not a communicator: null, freed, or another number.
pub const HOPBINE_ERR_COMM: c_int = 1;
/// Not a request, or one that is in use.
pub const HOPBINE_ERR_REQUEST: c_int = 2;
/// A negative count, or one whose bytes no memory could hold.
pub const HOPBINE_ERR_COUNT: c_int = 3;
/// Not an element type.
pub const HOPBINE_ERR_TYPE: c_int = 4;
/// Not an operator, or not one for this type.
pub const HOPBINE_ERR_OP: c_int = 5;
/// The root is no rank of the communicator.
pub const HOPBINE_ERR_ROOT: c_int = 6;
/// A null buffer, or buffers that overlap.
pub const HOPBINE_ERR_BUFFER: c_int = 7;
/// Any other argument.
pub const HOPBINE_ERR_ARG: c_int = 8;
/// hopbine_init() has not been called, or hopbine_finalize() has; or hopbine_init() is called twice.
pub const HOPBINE_ERR_STATE: c_int = 9;
/// An environment variable or an option has a wrong value.
pub const HOPBINE_ERR_SETTING: c_int = 10;
/// The world could not be set up, or the ranks did not meet.
pub const HOPBINE_ERR_STARTUP: c_int = 11;
/// A wait was too long (HOPBINE_TIMEOUT).
pub const HOPBINE_ERR_TIMEOUT: c_int = 12;
/// A rank is gone, has failed, or has left.
pub const HOPBINE_ERR_LOST: c_int = 13;
/// The network, shared memory or MPI failed, or an earlier call did.
pub const HOPBINE_ERR_WIRE: c_int = 14;
/// No algorithm of that name, or it does not serve the call.
pub const HOPBINE_ERR_ALGORITHM: c_int = 15;
/// An error within hopbine: please report it.
pub const HOPBINE_ERR_INTERNAL: c_int = 16;
/// Ranks made different calls: another collective, count, type, operator or root.
pub const HOPBINE_ERR_MISMATCH: c_int = 17;

/// What a handler is called with: the code, its message, which is valid during the call, and the
/// argument it was set with. It runs on the thread of the call that failed, which returns the
/// code when the handler returns.
#[expect(non_camel_case_types, reason = "named as C names types")]
pub type hopbine_error_handler_t =
    Option<unsafe extern "C" fn(code: c_int, message: *const c_char, argument: *mut c_void)>;

/// A failure on its way to C.
pub(crate) struct Failure {
    code: c_int,
    message: String,
    /// Another rank has it as well, and says so.
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
        Error::BufferLength { .. } | Error::UnevenBlocks { .. } => HOPBINE_ERR_COUNT,
        Error::Root { .. } => HOPBINE_ERR_ROOT,
        Error::Address { .. } | Error::Overlap { .. } => HOPBINE_ERR_BUFFER,
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

// SAFETY: the argument is only passed on; whoever sets it promises that any thread may use it.
unsafe impl Send for Handler {}

static HANDLER: Mutex<Handler> =
    Mutex::new(Handler { function: None, argument: std::ptr::null_mut() });

thread_local! {
    static LAST: RefCell<(CString, bool)> = RefCell::default();
}

/// Runs the body of a call and turns its outcome into a code.
pub(crate) fn entry(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    // Unwind safety: shared state is behind locks that are consistent whenever they are free.
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        // What it says may be anything, also what panics when it is dropped.
        let failure = Failure::new(HOPBINE_ERR_INTERNAL, format!("within hopbine: {text}"));
        std::mem::forget(panic);
        Err(failure)
    });
    let Err(Failure { code, message, is_said_elsewhere }) = outcome else {
        return HOPBINE_SUCCESS;
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let Handler { function, argument } = *HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
    // A thread that is ending has no place for the message any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = (message.clone(), is_said_elsewhere));
    if let Some(function) = function {
        // SAFETY: whoever set it promised that it can be called so.
        unsafe { function(code, message.as_ptr(), argument) };
    }
    code
}

/// An address to write a result to.
///
/// # Safety
/// `address` is null or valid for writes for as long as the result is used.
pub(crate) unsafe fn out<'a, T>(address: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise; C initialises or not what Rust only writes: the types are
    // integers and pointers, of which every value is valid.
    unsafe { address.as_mut() }
        .ok_or_else(|| Failure::new(HOPBINE_ERR_ARG, format!("the pointer to the {what} is null")))
}

/// The message of this thread's last call that failed; empty if none has. Valid until the thread's next call
/// that fails.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_last_error() -> *const c_char {
    // The string's bytes stay where they are until it is replaced.
    LAST.try_with(|last| last.borrow().0.as_ptr()).unwrap_or(c"".as_ptr())
}

/// 1 if another rank has what was wrong with this thread's last call that failed as well, and says so; else 0. Of a
/// failure that all ranks of a large job come to know, such as a rank that is gone, one message is enough: that of the
/// rank for which this is 0.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_last_error_is_said_elsewhere() -> c_int {
    LAST.try_with(|last| last.borrow().1).unwrap_or(false).into()
}

/// The name of a code, such as "HOPBINE_ERR_ROOT". Never null, always valid.
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

/// Sets a function that is called with `argument` whenever a call fails on any thread; null, as at first, for
/// none. It must be callable from any thread until another one is set, and may end the process.
///
/// # Safety
/// `handler` must be callable from any thread with `argument`, until another one is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_set_error_handler(
    handler: hopbine_error_handler_t,
    argument: *mut c_void,
) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) =
        Handler { function: handler, argument };
}
