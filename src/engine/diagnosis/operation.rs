//! The watchdog of an operation for which the caller tests from time to time, waits, or both.

use std::time::Duration;

use super::watchdog::{WaitedFor, Watchdog};
use crate::engine::run::group::PortGroup;
use crate::error::Error;

/// Longest time counted between two tests; most of it is the caller's own computation.
const LONGEST_TEST_GAP: Duration = Duration::from_millis(10);
/// Tests between two looks at the clock.
const TESTS_PER_LOOK: u32 = 16;

/// See the module documentation.
#[derive(Debug, Default)]
pub struct OperationWatch {
    watchdog: Watchdog,
    n_tests: u32,
}

impl OperationWatch {
    /// Resets the watch when an operation starts.
    #[inline]
    pub fn begin(&mut self) {
        if self.n_tests != 0 {
            *self = OperationWatch::default();
        }
    }

    /// As [`Watchdog::check`], for a caller that waits for the operation.
    pub(crate) fn check(&mut self, group: &PortGroup, wanted: WaitedFor) -> Result<(), Error> {
        self.watchdog.check(group, wanted)
    }

    /// Notes a test that found the operation not done.
    ///
    /// # Errors
    /// As [`Watchdog::check`].
    pub(crate) fn note_test(&mut self, group: &PortGroup, wanted: WaitedFor) -> Result<(), Error> {
        self.n_tests = self.n_tests.wrapping_add(1);
        if !self.n_tests.is_multiple_of(TESTS_PER_LOOK) {
            return Ok(());
        }
        self.watchdog.check_with_gap(group, wanted, TESTS_PER_LOOK * LONGEST_TEST_GAP)
    }

    /// Whether nothing has moved since the last check.
    pub(crate) fn is_still(&self, group: &PortGroup, wanted: WaitedFor) -> bool {
        self.watchdog.is_still(group, wanted)
    }

    /// Ends the watch when the operation is done.
    pub(crate) fn end(&mut self, group: &PortGroup) {
        self.watchdog.end(group);
    }
}
