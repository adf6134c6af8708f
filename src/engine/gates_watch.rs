//! The watch over a wait for other ranks at the barrier gates, or at the flat buffer.

use crate::Rank;
use crate::error::Error;

use super::diagnosis::watchdog::{WaitedFor, Watchdog};
use super::pace::Pace;
use super::run::group::PortGroup;

/// A wait at the barrier gates or the flat buffer; see [`Engine::watch_gates`](super::Engine::watch_gates).
pub struct GatesWatch<'a> {
    group: &'a PortGroup,
    /// The one rank that is awaited; `None` for all ranks.
    awaited: Option<Rank>,
    pace: Pace,
    watchdog: Watchdog,
}

impl<'a> GatesWatch<'a> {
    pub(super) fn new(group: &'a PortGroup) -> Self {
        let (pace, watchdog) = (Pace::new(group), Watchdog::default());
        GatesWatch { group, awaited: None, pace, watchdog }
    }

    /// Drives the ports, or backs off, after a poll of the gates that had no result. The wait is for rank `awaited`,
    /// or for all ranks if that is `None`.
    ///
    /// # Errors
    /// The failure that has been set meanwhile; [`Error::Lost`] or [`Error::Timeout`] if waiting longer is pointless.
    pub fn idle(&mut self, awaited: Option<Rank>) -> Result<(), Error> {
        let group = self.group;
        if awaited != self.awaited {
            // The rank awaited before has arrived.
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
        self.watchdog.check(group, awaited.map_or(WaitedFor::AllRanks, WaitedFor::Rank))
    }
}

impl Drop for GatesWatch<'_> {
    fn drop(&mut self) {
        self.watchdog.end(self.group);
    }
}
