//! The rounds of a wait: how a caller spends them, and after which it looks at the clock.

use super::run::backoff::Backoff;
use super::run::group::Group;

/// After so many rounds a wait looks at the clock whatever has moved: it may all be something else.
const ROUNDS_PER_LOOK: u32 = 32;

/// Of one wait.
#[derive(Debug)]
pub(super) struct Pace {
    backoff: Backoff,
    /// Since the last look.
    rounds: u32,
}

impl Pace {
    pub(super) fn new(group: &Group) -> Self {
        Pace { backoff: Backoff::new(group.config.own_cores), rounds: 0 }
    }

    /// A round is over in which something of this rank has moved, or nothing has: waits a little in
    /// that case. Returns whether it is time to look at the clock.
    pub(super) fn round(&mut self, group: &Group, has_moved: bool) -> bool {
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
