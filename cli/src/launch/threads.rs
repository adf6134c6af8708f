//! The launcher's threads.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Stack of a thread that passes on a rank's output or waits for its end: there are many.
const STACK: usize = 256 << 10;

/// Starts one.
///
/// # Errors
/// What the system says.
pub(super) fn thread(f: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().stack_size(STACK).spawn(f)
}

/// Whether threads end before a time is over.
pub(super) fn all_finish(threads: &[JoinHandle<()>], wait: Duration) -> bool {
    let last = Instant::now() + wait;
    loop {
        if threads.iter().all(JoinHandle::is_finished) {
            return true;
        }
        if Instant::now() >= last {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
