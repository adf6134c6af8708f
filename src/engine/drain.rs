//! Tear-down of ports and of an engine: waits until none of their messages are in flight.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::endpoint::{Ended, Event, Status};
use crate::error::{Awaited, Error};
use crate::planted::{self, Planted};

use super::diagnosis::watchdog::{WaitedFor, Watchdog};
use super::engine::Engine;
use super::pace::Pace;
use super::run::group::{PortGroup, ProgressState};
use super::run::port::{Port, State};
use super::run::worker::Worker;

/// A call under way that starts operations later: while this value lives, a [drain](Engine::drain) waits.
pub struct Admitted(#[expect(dead_code, reason = "held")] Arc<()>);

impl Engine {
    /// Admits a call that starts operations later, even after [`close`](Engine::close).
    ///
    /// # Errors
    /// As [`check`](Engine::check).
    pub fn admit(&self) -> Result<Admitted, Error> {
        let admitted = Admitted(self.group.admitted.clone());
        // Pairs with the fence in `close`: this thread sees that the engine is closed, or `drain` sees this call.
        fence(Ordering::SeqCst);
        self.check().map(|()| admitted)
    }

    /// Refuses every call from now on; what is [`Admitted`] still starts operations.
    pub fn close(&self) {
        // Relaxed: see `check`.
        self.is_closed.store(true, Ordering::Relaxed);
        // See `admit`.
        fence(Ordering::SeqCst);
    }

    /// Whether [`close`](Engine::close) was called.
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: see `check`.
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Waits at tear-down, after [`close`](Engine::close), until nothing is under way and all data that this engine
    /// has written have arrived in its peers' memory.
    ///
    /// # Errors
    /// [`Error::Timeout`] if nothing moved for the time-out (at least 1 s if only the device has work left),
    /// [`Error::Wire`], and [`Error::Poisoned`] after an earlier failure. After an error, data may still arrive in
    /// peers' memory at any time.
    pub fn drain(&self) -> Result<(), Error> {
        self.group.drain().inspect_err(|error| self.group.fail(error))?;
        self.group.publish(Status::Left);
        Ok(())
    }

    /// Ends the endpoints, which release resources of other ranks. Call it after [`drain`](Engine::drain) has
    /// returned on all ranks, or has failed.
    pub fn end(&self) {
        self.group.ports.iter().for_each(|port| port.lock_state().endpoint.end());
    }

    /// Stops the workers and drops the endpoints with their queues, which others may need while handles of this
    /// world's communicators stay. Call it after [`end`](Engine::end), if [`drain`](Engine::drain) has returned on all
    /// ranks.
    pub fn drop_endpoints(&self) {
        self.workers.iter().for_each(Worker::stop);
        self.group.ports.iter().for_each(|port| port.lock_state().endpoint = Box::new(Ended));
    }
}

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

    /// Waits until no call starts operations any more, the runs of all ports have finished, and all data that the ports
    /// have written have arrived.
    ///
    /// # Errors
    /// As [`Engine::drain`].
    pub(super) fn drain(&self) -> Result<(), Error> {
        self.drain_hooks()?;
        for port in &*self.ports {
            let mut pace = Pace::new(self);
            let mut watchdog = Watchdog::default();
            let mut moves = self.n_moves();
            let is_drained = || {
                let is_open = Arc::strong_count(&self.admitted) > 1 && !self.failure.is_set();
                if is_open { Ok(false) } else { port.is_drained() }
            };
            while !is_drained()? {
                self.progress();
                let has_moved = self.has_moved(&mut moves);
                if !pace.round(self, has_moved) {
                    continue;
                }
                let awaited = port.awaited_first();
                if let Err(error) = watchdog.check(self, WaitedFor::TearDown(port.id)) {
                    // Progress during the search for the cause means that nothing has failed.
                    if is_drained()? {
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
