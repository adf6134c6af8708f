//! A watch over ranks that wait at the barrier gates, or at what stands in for them.

use crate::Rank;
use crate::error::Error;

use super::diagnosis::watchdog::{WaitedFor, Watchdog};
use super::pace::Pace;
use super::run::group::Group;

/// A wait at the barrier gates; see [`Engine::at_gates`](super::Engine::at_gates).
pub struct GatesWatch<'a> {
    group: &'a Group,
    /// Whom alone it waits for.
    awaited: Option<Rank>,
    pace: Pace,
    watchdog: Watchdog,
}

impl<'a> GatesWatch<'a> {
    pub(super) fn new(group: &'a Group) -> Self {
        let (pace, watchdog) = (Pace::new(group), Watchdog::default());
        GatesWatch { group, awaited: None, pace, watchdog }
    }

    /// There is nothing to do at the gates: moves on whatever is under way, or waits a little, for
    /// this rank or else for all.
    ///
    /// # Errors
    /// What has failed meanwhile; [`Error::Lost`] or [`Error::Timeout`] if there is no point in
    /// waiting any longer.
    pub fn idle(&mut self, awaited: Option<Rank>) -> Result<(), Error> {
        let group = self.group;
        if awaited != self.awaited {
            // What was awaited before has come.
            self.watchdog.end(group);
            self.awaited = awaited;
        }
        if let Some(reason) = group.failure.reason() {
            return Err(reason);
        }
        let moved = group.progress();
        if !self.pace.round(group, moved) {
            return Ok(());
        }
        self.watchdog.look(group, awaited.map_or(WaitedFor::Everybody, WaitedFor::Rank))
    }
}

impl Drop for GatesWatch<'_> {
    fn drop(&mut self) {
        self.watchdog.end(self.group);
    }
}
