//! The launcher's threads.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Stack size in bytes of a thread that forwards a rank's output or waits for its end. Small, since there are many.
const STACK: usize = 256 << 10;

/// Starts a thread.
///
/// # Errors
/// The system's error.
pub(super) fn thread(f: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().stack_size(STACK).spawn(f)
}

/// Time between two looks at threads that are to end.
pub(super) const POLL: Duration = Duration::from_millis(1);

/// Waits until threads have ended, at most for `wait`; returns whether they have.
pub(super) fn in_time(are_finished: impl Fn() -> bool, wait: Duration) -> bool {
    let last = Instant::now() + wait;
    loop {
        if are_finished() {
            return true;
        }
        if Instant::now() >= last {
            return false;
        }
        std::thread::sleep(POLL);
    }
}
