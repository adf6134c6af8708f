//! A port: an endpoint and the runs under way on it.
//!
//! Whoever holds the port's mutex drives it: a worker, or a thread that waits for one of its
//! operations. All of them do the same, [`Port::drive`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use crate::Rank;

use crate::endpoint::{Endpoint, Event, Owner, Status, WireError};
use crate::error::{Awaited, Blame, Error};

use super::poison::Poison;
use super::request::{Operation, lock};
use super::run::PortRun;
use super::vigil::news;

/// Runs under way for which room is made in advance.
const USUAL_RUNS: usize = 16;
/// Events of one poll for which room is made in advance.
const USUAL_EVENTS: usize = 256;

/// One port of one rank.
pub struct Port {
    rank: Rank,
    index: usize,
    state: Mutex<State>,
    /// Runs under way. A hint for workers, read without the mutex.
    n_active: AtomicU32,
    /// Threads that drive this port while they wait: its worker stands aside.
    pub(super) n_callers: AtomicU32,
    /// Threads that want the mutex but do not drive: a worker lets them go first, since it
    /// would otherwise take the mutex again as soon as it has given it up.
    n_knocking: AtomicU32,
    /// Counts drives that achieved something.
    n_moves: AtomicU64,
    poison: Arc<Poison>,
}

struct State {
    endpoint: Box<dyn Endpoint>,
    /// Whether everything of users has been given up and others have been told.
    has_given_up: bool,
    /// Everything written has arrived, and nothing is to be written any more: peers may free
    /// their memory.
    is_fenced: bool,
    runs: Vec<Option<Active>>,
    events: Vec<Event>,
    /// Nothing is put under way any more.
    is_closed: bool,
}

struct Active {
    run: Box<PortRun>,
    operation: Arc<Operation>,
}

impl Port {
    pub(super) fn new(
        rank: Rank,
        index: usize,
        endpoint: Box<dyn Endpoint>,
        poison: Arc<Poison>,
    ) -> Arc<Self> {
        let state = State {
            endpoint,
            has_given_up: false,
            is_fenced: false,
            runs: Vec::with_capacity(USUAL_RUNS),
            events: Vec::with_capacity(USUAL_EVENTS),
            is_closed: false,
        };
        Arc::new(Port {
            rank,
            index,
            state: Mutex::new(state),
            n_active: AtomicU32::new(0),
            n_callers: AtomicU32::new(0),
            n_knocking: AtomicU32::new(0),
            n_moves: AtomicU64::new(0),
            poison,
        })
    }

    /// Takes the mutex for something else than driving.
    fn knock(&self) -> MutexGuard<'_, State> {
        // Relaxed: a wish, not a promise.
        self.n_knocking.fetch_add(1, Ordering::Relaxed);
        let state = lock(&self.state);
        self.n_knocking.fetch_sub(1, Ordering::Relaxed);
        state
    }

    /// True if a worker should stay away from the mutex for a moment.
    pub(super) fn is_wanted(&self) -> bool {
        // Relaxed: see `knock`.
        self.n_knocking.load(Ordering::Relaxed) > 0
    }

    /// Registers memory if messages of `wire_bytes` need it.
    ///
    /// # Safety
    /// The memory must stay valid until it is released.
    pub(super) unsafe fn register_if_needed(
        &self,
        ptr: *mut u8,
        len: usize,
        wire_bytes: u64,
        owner: Owner<'_>,
    ) -> Result<Option<u64>, Error> {
        let state = &mut *self.knock();
        if wire_bytes == 0 || !state.endpoint.needs_key(wire_bytes) {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        let key = unsafe { state.endpoint.register(ptr, len, owner) };
        key.map(Some).map_err(|source| self.wire_error(None, source))
    }

    /// Releases a registration. A failure poisons the communicator, since there is nobody to
    /// tell it to.
    pub(super) fn release(&self, key: u64) {
        if let Err(source) = self.knock().endpoint.release(key) {
            self.poison.set(&self.wire_error(None, source));
        }
    }

    /// Puts a run under way; after the port's end, gives it back as failed.
    pub(super) fn launch(&self, run: Box<PortRun>, operation: Arc<Operation>) {
        let state = &mut *self.knock();
        if state.is_closed {
            return operation.give_back(self.index, run, Some(&Error::Closed));
        }
        let active = Some(Active { run, operation });
        match state.runs.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = active,
            None => state.runs.push(active),
        }
        // The mutex orders the data; this is for those who look without it. SeqCst: a worker
        // that is unparked after this looks at `n_callers`, a caller that leaves lowers that
        // and then looks here. One of the two must see what the other has written, or the
        // worker would park and the caller leave.
        self.n_active.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn is_active(&self) -> bool {
        // SeqCst: see `launch`.
        self.n_active.load(Ordering::SeqCst) > 0
    }

    /// A number that changes whenever something moves on this port.
    pub(super) fn n_moves(&self) -> u64 {
        // Relaxed: compared with itself only.
        self.n_moves.load(Ordering::Relaxed)
    }

    /// Moves every run on, unless another thread is doing so right now. Returns whether
    /// anything happened.
    pub(super) fn try_drive(&self) -> bool {
        match self.state.try_lock() {
            Ok(state) => self.drive_locked(state),
            Err(TryLockError::Poisoned(state)) => self.drive_locked(state.into_inner()),
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Moves every run on. Returns whether anything happened.
    pub(super) fn drive(&self) -> bool {
        self.drive_locked(lock(&self.state))
    }

    fn drive_locked(&self, mut state: MutexGuard<'_, State>) -> bool {
        let moved = match self.poison.reason() {
            Some(reason) => self.fail_all(&mut state, &reason),
            None => match self.step(&mut state) {
                Ok(moved) => moved,
                Err(error) => {
                    drop(state);
                    let error = self.explain(error);
                    self.poison.set(&error);
                    self.fail_all(&mut self.knock(), &error)
                }
            },
        };
        if moved {
            // Relaxed: see `n_moves`.
            self.n_moves.fetch_add(1, Ordering::Relaxed);
        }
        moved
    }

    /// What is behind a failure: a peer that cannot be reached may have given up for reasons of
    /// its own, and told others.
    fn explain(&self, error: Error) -> Error {
        match &error {
            Error::Wire { source: WireError { peer: Some(_), .. }, .. } => {
                let told = news(Duration::MAX, || self.told());
                told.map_or(error, |blame| Error::Lost { rank: self.rank, blame })
            }
            _ => error,
        }
    }

    fn step(&self, state: &mut State) -> Result<bool, Error> {
        let State { endpoint, runs, events, .. } = state;
        endpoint.poll(events).map_err(|source| self.wire_error(None, source))?;
        if let Some(blame) = endpoint.told() {
            return Err(Error::Lost { rank: self.rank, blame });
        }
        let mut moved = !events.is_empty();
        for event in events.drain(..) {
            let (Event::Sent(slot) | Event::Received(slot)) = event;
            let Some(active) = &mut runs[slot.run as usize] else {
                unreachable!("runs stay until all their tasks have finished");
            };
            active.run.finished(slot.task);
        }
        // First whatever keeps the wire busy, then one local task per run.
        for (index, active) in runs.iter_mut().enumerate() {
            let Some(Active { run, .. }) = active else { continue };
            moved |= run
                .post(endpoint.as_mut(), index as u32)
                .map_err(|(task, source)| self.wire_error(Some(run.step_of(task)), source))?;
        }
        let flushed = endpoint.is_flushed();
        for place in runs.iter_mut() {
            let Some(active) = place else { continue };
            moved |= active.run.work();
            // A finished run whose last messages are not on the wire yet still needs polling.
            if active.run.is_finished() && flushed {
                self.retire(place, None);
                moved = true;
            }
        }
        Ok(moved)
    }

    fn retire(&self, place: &mut Option<Active>, failure: Option<&Error>) {
        if let Some(Active { run, operation }) = place.take() {
            // Relaxed: seeing a run that is gone costs a worker one more round.
            self.n_active.fetch_sub(1, Ordering::Relaxed);
            operation.give_back(self.index, run, failure);
        }
    }

    fn fail_all(&self, state: &mut State, reason: &Error) -> bool {
        let mut failed = false;
        if !std::mem::replace(&mut state.has_given_up, true) {
            // Before anybody gets memory back that peers know.
            state.endpoint.forget_users();
            if !state.is_fenced {
                state.endpoint.tell(reason.blame(self.rank));
            }
        }
        for place in state.runs.iter_mut().filter(|place| place.is_some()) {
            self.retire(place, Some(reason));
            failed = true;
        }
        failed
    }

    /// True if nothing is under way and all that this port has written has arrived. Then
    /// nothing can be put under way any more. Moves things on towards that.
    pub(super) fn is_drained(&self) -> Result<bool, Error> {
        let mut guard = self.knock();
        if let Some(reason) = self.poison.reason() {
            return Err(Error::Poisoned(Arc::new(reason)));
        }
        if self.is_active() {
            self.drive_locked(guard);
            return Ok(false);
        }
        let state = &mut *guard;
        state.is_closed = true;
        let State { endpoint, events, .. } = state;
        let arrived = endpoint.poll(events).and_then(|()| endpoint.fence());
        debug_assert!(events.is_empty(), "an event of a run that has finished");
        if let Some(blame) = endpoint.told() {
            return Err(Error::Lost { rank: self.rank, blame });
        }
        match arrived {
            Ok(arrived) => {
                state.is_fenced = arrived;
                Ok(arrived)
            }
            Err(source) => {
                drop(guard);
                Err(self.explain(self.wire_error(None, source)))
            }
        }
    }

    /// What the first of the runs under way waits for; if there is none, the peer whose answer
    /// the port waits for to be fenced, or the port itself.
    pub(super) fn awaited_first(&self) -> (u32, Awaited) {
        let state = self.knock();
        let first = state.runs.iter().flatten().find_map(|active| active.run.awaited());
        first.unwrap_or_else(|| {
            let peer = state.endpoint.unfenced();
            (0, peer.map_or(Awaited::Interface, Awaited::ReadyFrom))
        })
    }

    /// What `operation` waits for on this port, if it is under way here.
    pub(super) fn awaited(&self, operation: &Arc<Operation>) -> Option<(u32, Awaited)> {
        let state = self.knock();
        let mut active = state.runs.iter().flatten();
        let run = &active.find(|active| Arc::ptr_eq(&active.operation, operation))?.run;
        // All tasks finished, but something is still to go out.
        Some(run.awaited().unwrap_or((0, Awaited::Interface)))
    }

    /// Shows what this rank is doing to whoever asks.
    pub(super) fn show(&self, status: Status) {
        self.knock().endpoint.show(status);
    }

    /// Asks what another rank is doing.
    pub(super) fn ask(&self, rank: Rank, patience: Duration) -> Result<Status, Error> {
        let asked = self.knock().endpoint.ask(rank, patience);
        asked.map_err(|source| self.wire_error(None, source))
    }

    /// Why another rank has given up, if one has said so.
    pub(super) fn told(&self) -> Option<Blame> {
        self.knock().endpoint.told()
    }

    fn wire_error(&self, step: Option<u32>, source: WireError) -> Error {
        Error::Wire { rank: self.rank, port: self.index, step, source }
    }
}
