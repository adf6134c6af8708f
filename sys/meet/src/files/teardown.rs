//! Tear-down of a rendezvous with temporary files: rank 0 removes them.

use std::time::{Duration, Instant};

use super::bootstrap::Bootstrap;
use super::record::HEADER;
use super::slots::RecordSlot;
use crate::error::BootstrapError;

/// Value of `round` in a rank's data record: the rank has stopped reading the files.
const FINISHED: u64 = u64::MAX;
/// How long rank 0 waits for these records.
const TEARDOWN_TIMEOUT: Duration = Duration::from_secs(1);

impl Bootstrap {
    /// Removes the temporary files after a failed rendezvous. Rank 0 removes them if it has arrived, because the
    /// other ranks find out from the files which ranks are missing; otherwise each rank that misses rank 0 removes
    /// them.
    pub(super) fn abort(&mut self, error: &BootstrapError) {
        let lacks_first =
            || matches!(error, BootstrapError::Missing { missing, .. } if missing.contains(&0));
        if std::mem::take(&mut self.is_temporary) && (self.files.rank == 0 || lacks_first()) {
            self.files.remove();
        }
    }

    /// Returns whether all other ranks have stopped reading the files.
    fn all_finished(&self) -> bool {
        let Ok(file) = self.files.open(&self.files.path) else { return true };
        (1..self.files.size).all(|rank| {
            let record = self.files.read(&file, (RecordSlot::Data, rank), HEADER);
            record
                .is_ok_and(|r| r.is_some_and(|r| (r.session, r.round) == (self.session, FINISHED)))
        })
    }
}

impl Drop for Bootstrap {
    fn drop(&mut self) {
        if !self.is_temporary {
            return;
        }
        if self.files.rank != 0 {
            // A failure cannot be reported from a drop. If this rank is late, the file is gone.
            let _ = self.files.write(RecordSlot::Data, self.session, FINISHED, &[], 0);
            return;
        }
        let end = Instant::now() + TEARDOWN_TIMEOUT;
        while !self.all_finished() && Instant::now() < end {
            std::thread::sleep(TEARDOWN_TIMEOUT / 1000);
        }
        self.files.remove();
    }
}
