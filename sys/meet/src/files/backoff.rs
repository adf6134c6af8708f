//! Waiting of a rank for other ranks' writes to files.

use std::time::{Duration, Instant};

/// Polls at increasing intervals, to spare the file server.
pub(super) struct FileBackoff {
    start: Instant,
    timeout: Duration,
    pause: Duration,
}

impl FileBackoff {
    pub(super) fn new(timeout: Duration) -> FileBackoff {
        FileBackoff { start: Instant::now(), timeout, pause: Duration::from_micros(50) }
    }

    /// Sleeps for the current interval. After the time-out returns the time waited so far as the error.
    pub(super) fn pause(&mut self) -> Result<(), Duration> {
        const LONGEST: Duration = Duration::from_millis(5);
        let waited = self.start.elapsed();
        if waited >= self.timeout {
            return Err(waited);
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST);
        Ok(())
    }
}
