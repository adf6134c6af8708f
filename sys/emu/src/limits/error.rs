//! uTofu's return codes, and the text of the last error.

use hopbine_meet::{BootstrapError, Refusal, VariableError};
use std::cell::RefCell;
use std::ffi::c_int;
use std::io::Write;

/// A uTofu return code other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

/// Result of a uTofu call.
pub(crate) type Result<T> = std::result::Result<T, Code>;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns an error and keeps its text for `utofu_get_last_error`. Polling results such as NOT_FOUND are not errors
/// and do not use this function, because they must be cheap.
#[cold]
pub(crate) fn fail<T>(code: c_int, message: impl Into<String>) -> Result<T> {
    record(message.into());
    Err(Code(code))
}

/// Keeps a text for `utofu_get_last_error`.
pub(crate) fn record(message: String) {
    // A thread that is ending has no thread-local storage for the text any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = message);
}

/// Returns the text of this thread's last error; empty if there was none.
pub(crate) fn last() -> String {
    LAST.try_with(|last| last.borrow().clone()).unwrap_or_default()
}

/// Reason why a job cannot be created or joined.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job has no ranks.
    #[error("a job needs at least one rank")]
    NoRanks,
    /// The coordinates of a rank are not those of a Tofu node.
    #[error("rank {rank}: coordinates {coords:?} are out of range (a < 2, b < 3, c < 2)")]
    Coords {
        /// The rank.
        rank: usize,
        /// The given coordinates, x y z a b c.
        coords: [u8; 6],
    },
    /// The shape does not fit into Tofu coordinates or does not match the number of ranks.
    #[error("{0}")]
    Shape(String),
    /// The memory for queues and tables could not be mapped.
    #[error("cannot map {bytes} bytes for queues and tables: {source}")]
    Map {
        /// Address space requested.
        bytes: u64,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The late device's thread could not be started.
    #[error("cannot start the thread of the late device: {0}")]
    Thread(std::io::Error),
    /// An environment variable has a value that cannot be used.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// The ranks have not completed the rendezvous.
    #[error("{0} (HOPBINE_TIMEOUT sets the limit of every wait)")]
    Bootstrap(#[from] BootstrapError),
    /// A rank cannot take part.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Ranks are on several hosts, or have settings of different jobs.
    #[error("rank {rank} {what}")]
    Mismatch {
        /// A rank that differs from rank 0.
        rank: usize,
        /// The difference.
        what: &'static str,
    },
    /// Ranks are on several hosts.
    #[error(
        "{variable}={value} says that not all {size} ranks are on this host; the emulated device needs all ranks on one host"
    )]
    SeveralHosts {
        /// The launcher's variable that shows this.
        variable: &'static str,
        /// The variable's value.
        value: String,
        /// Number of ranks.
        size: usize,
    },
}

/// Ends the process with a message, in cases in which the real machine kills it.
pub(crate) fn fatal(message: &str) -> ! {
    // `eprintln` would go to the test harness, which captures it. A failed write cannot be reported.
    let _ = writeln!(std::io::stderr(), "utofu-emu: {message}");
    std::process::abort();
}
