//! The end of a rendezvous whose files nobody wants to keep.

use std::time::{Duration, Instant};

use super::file::{Bootstrap, Slot};

/// Stands in a rank's record, in place of a round, when it reads nothing any more.
const GONE: u64 = u64::MAX;
/// How long rank 0 waits for that.
const PATIENCE: Duration = Duration::from_secs(1);

impl Bootstrap {
    /// Removes the files when the ranks drop their exchanges; all ranks must say so.
    pub fn temporary(mut self) -> Self {
        self.is_temporary = true;
        self
    }

    /// Whether all others read nothing any more.
    fn all_gone(&self) -> bool {
        let Ok(file) = self.open(&self.path) else { return true };
        (1..self.size).all(|rank| {
            let record = self.read_head(&file, Slot::Data, rank);
            record.is_ok_and(|r| r.is_some_and(|r| (r.session, r.round) == (self.session, GONE)))
        })
    }
}

impl Drop for Bootstrap {
    fn drop(&mut self) {
        // Nobody is left to tell of what fails here; the files do no harm.
        if !self.is_temporary {
            return;
        }
        if self.rank != 0 {
            let _ = self.write(Slot::Data, self.session, GONE, &[], 0);
            return;
        }
        let end = Instant::now() + PATIENCE;
        while !self.all_gone() && Instant::now() < end {
            std::thread::sleep(PATIENCE / 1000);
        }
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.collected);
    }
}
