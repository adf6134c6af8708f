//! The watch over an operation that is tested now and then, or waited for, or both.

use std::time::Duration;

use super::watchdog::{WaitedFor, Watchdog};
use crate::engine::run::group::Group;
use crate::error::Error;

/// The most that counts between two tests, which is mostly the caller's own computing.
const LONGEST_TEST_GAP: Duration = Duration::from_millis(10);
/// How many tests pass between two looks at the clock.
const TESTS_PER_LOOK: u32 = 16;

/// See the module documentation.
#[derive(Debug, Default)]
pub struct OperationWatch {
    watchdog: Watchdog,
    n_tests: u32,
}

impl OperationWatch {
    /// An operation is started.
    #[inline]
    pub fn begin(&mut self) {
        if self.n_tests != 0 {
            *self = OperationWatch::default();
        }
    }

    /// As [`Watchdog::look`], by a caller who waits for the operation.
    pub(crate) fn look(&mut self, group: &Group, wanted: WaitedFor) -> Result<(), Error> {
        self.watchdog.look(group, wanted)
    }

    /// The operation is not done yet.
    ///
    /// # Errors
    /// As [`Watchdog::look`].
    pub(crate) fn tested(&mut self, group: &Group, wanted: WaitedFor) -> Result<(), Error> {
        self.n_tests = self.n_tests.wrapping_add(1);
        if !self.n_tests.is_multiple_of(TESTS_PER_LOOK) {
            return Ok(());
        }
        self.watchdog.look_after(group, wanted, TESTS_PER_LOOK * LONGEST_TEST_GAP)
    }

    /// Whether nothing has moved since the last test.
    pub(crate) fn is_still(&self, group: &Group, wanted: WaitedFor) -> bool {
        self.watchdog.is_still(group, wanted)
    }

    /// The operation is done.
    pub(crate) fn end(&mut self, group: &Group) {
        self.watchdog.end(group);
    }
}
