//! Tear-down of ports and of an engine: waits until none of their messages are in flight.

use std::sync::Arc;

use crate::endpoint::Event;
use crate::error::{Awaited, Error};
use crate::planted::{self, Planted};

use super::diagnosis::watchdog::{WaitedFor, Watchdog};
use super::pace::Pace;
use super::run::group::{PortGroup, ProgressState};
use super::run::port::{Port, State};

impl Port {
    /// Drives the port while a run is under way; then closes it, so that it accepts no further run. Returns true once
    /// all data that the port has written have arrived.
    pub(super) fn is_drained(&self) -> Result<bool, Error> {
        let mut guard = self.lock_state();
        if let Some(reason) = self.failure.reason() {
            return Err(Error::Poisoned(Arc::new(reason)));
        }
        if self.hints.is_active() {
            self.drive_locked(guard);
            return Ok(false);
        }
        let state = &mut *guard;
        if state.is_failing {
            return Ok(false);
        }
        state.is_closed = true;
        let State { endpoint, events, .. } = state;
        let mut arrived = endpoint.poll(events);
        for event in events.drain(..) {
            if let Event::News(blame) = event {
                // A rank that shares `failure` with this one has sent the news: the reason has been set meanwhile.
                let lost = Error::Lost { rank: self.rank, blame };
                let reason = self.failure.reason();
                return Err(reason.map_or(lost, |reason| Error::Poisoned(Arc::new(reason))));
            }
            debug_assert!(false, "an event of a run that has finished: {event:?}");
        }
        if let (Ok(()), Some(registry)) = (&arrived, endpoint.registry()) {
            arrived = match registry.fence() {
                Ok(true) => Ok(()),
                Ok(false) if !planted::is(Planted::NoFence) => return Ok(false),
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            };
        }
        match arrived {
            Ok(()) => {
                state.is_fenced = true;
                Ok(true)
            }
            Err(source) => {
                drop(guard);
                Err(self.with_cause(self.wire_error(None, source)))
            }
        }
    }

    /// Step and item that the first of the runs under way waits for. Without such a run: the peer whose answer the
    /// port's fence waits for, or the interface.
    pub(super) fn awaited_first(&self) -> (u32, Awaited) {
        self.awaited_by_run().unwrap_or_else(|| {
            let mut state = self.lock_state();
            let peer = state.endpoint.registry().and_then(|registry| registry.unfenced());
            (0, peer.map_or(Awaited::Interface, Awaited::ReadyFrom))
        })
    }
}

impl PortGroup {
    /// Waits until the calls that this rank must advance ([`ProgressHook`](super::ProgressHook)) are idle, or progress
    /// by ports alone.
    fn drain_hooks(&self) -> Result<(), Error> {
        let mut pace = Pace::new(self);
        let mut watchdog = Watchdog::default();
        loop {
            let moved = match self.call_hooks() {
                ProgressState::Idle | ProgressState::ByPorts => break,
                ProgressState::Waits => self.progress(),
                ProgressState::Moved => true,
            };
            if let Some(reason) = self.failure.reason() {
                return Err(Error::Poisoned(Arc::new(reason)));
            }
            if moved {
                watchdog.end(self);
            }
            if pace.round(self, moved) {
                watchdog.check(self, WaitedFor::AllRanks)?;
            }
        }
        watchdog.end(self);
        Ok(())
    }

    /// Waits until the runs of all ports have finished and all data that the ports have written have arrived.
    ///
    /// # Errors
    /// As [`Engine::drain`](super::Engine::drain).
    pub(super) fn drain(&self) -> Result<(), Error> {
        self.drain_hooks()?;
        for port in &*self.ports {
            let mut pace = Pace::new(self);
            let mut watchdog = Watchdog::default();
            let mut moves = self.n_moves();
            while !port.is_drained()? {
                self.progress();
                let has_moved = self.has_moved(&mut moves);
                if !pace.round(self, has_moved) {
                    continue;
                }
                let awaited = port.awaited_first();
                if let Err(error) = watchdog.check(self, WaitedFor::TearDown(port.id)) {
                    // Progress during the search for the cause means that nothing has failed.
                    if port.is_drained()? {
                        break;
                    }
                    if port.awaited_first() == awaited {
                        return Err(error);
                    }
                }
            }
            watchdog.end(self);
        }
        Ok(())
    }
}
