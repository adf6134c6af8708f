//! How a rank waits for what others write into files.

use std::time::{Duration, Instant};

/// Looks more and more seldom while nothing happens, to spare the file server.
pub(super) struct Wait {
    start: Instant,
    timeout: Duration,
    pause: Duration,
}

impl Wait {
    pub(super) fn new(timeout: Duration) -> Wait {
        Wait { start: Instant::now(), timeout, pause: Duration::from_micros(50) }
    }

    /// Sleeps a little; after the time-out says how long it has been.
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
