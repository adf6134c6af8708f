//! The polling rounds of a wait: when a caller backs off, and when it looks at the clock.

use super::run::backoff::Backoff;
use super::run::group::PortGroup;

/// A wait looks at the clock after this many rounds even if something has moved: it may all belong to other
/// operations.
const ROUNDS_PER_LOOK: u32 = 32;

/// The pace of one wait.
#[derive(Debug)]
pub(super) struct Pace {
    backoff: Backoff,
    /// Rounds since the last look at the clock.
    rounds: u32,
}

impl Pace {
    pub(super) fn new(group: &PortGroup) -> Self {
        Pace { backoff: Backoff::new(group.config.own_cores), rounds: 0 }
    }

    /// Ends a round, in which something of this rank has moved or not; backs off if not. Returns whether to look at
    /// the clock.
    pub(super) fn round(&mut self, group: &PortGroup, has_moved: bool) -> bool {
        let is_time = if has_moved {
            self.backoff.reset();
            false
        } else {
            self.backoff.idle(&group.waits)
        };
        self.rounds += 1;
        if !is_time && self.rounds < ROUNDS_PER_LOOK {
            return false;
        }
        self.rounds = 0;
        true
    }
}
