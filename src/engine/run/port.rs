//! A port: an endpoint and the runs under way on it.
//!
//! The thread that holds the port's mutex drives the port: a worker, or a thread that starts an operation or waits
//! for one. All of them run the code of [`Port::drive`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use crossbeam_utils::CachePadded;
use hopbine_torus::PortId;
use smallvec::SmallVec;

use crate::Rank;
use crate::endpoint::{Bell, Endpoint, Event, Time, WireError};
use crate::error::Error;
use crate::planted::{self, Planted};
use crate::slab::Slab;
use crate::sync::lock;
use crate::timeline::RecordRing;

use super::failure::Failure;
use super::hints::Hints;
use super::port_run::PortRun;
use super::records;
use super::window::Windows;

/// Runs under way for which memory is reserved.
const USUAL_RUNS: usize = 16;
/// Events of one poll for which memory is reserved.
const USUAL_EVENTS: usize = 256;
/// Posted and unfinished receives of all runs beyond which a run posts only the receives that its step needs, so that
/// a wire's memory for receives stays bounded.
const USUAL_RECVS: u32 = 4096;

/// The owner of a run, to which the port returns it.
pub(crate) trait Completion: Send + Sync {
    /// Takes a run back; `failure` is the reason if the run has not finished.
    fn complete(&self, port: PortId, run: Box<PortRun>, failure: Option<&Error>);
}

/// How far the thread that starts a run drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchMode {
    /// Not at all: the port's worker is about to.
    Deferred,
    /// Until its first messages are posted.
    PostOnly,
    /// As far as possible without waiting, with messages that have arrived before.
    Full,
}

/// One port of one rank.
pub struct Port {
    pub(crate) rank: Rank,
    pub(crate) id: PortId,
    /// Messages longer than this need registered memory.
    pub(crate) keyless_bytes: u64,
    /// As [`Registry::stage_bytes`](crate::endpoint::Registry::stage_bytes).
    pub(crate) stage_bytes: Option<u64>,
    pub(crate) failure: Arc<Failure>,
    has_worker: bool,
    state: CachePadded<Mutex<State>>,
    pub(crate) hints: CachePadded<Hints>,
    /// Counts drives that moved something. Written under the mutex.
    n_moves: CachePadded<AtomicU64>,
    /// Wakes threads of this rank that sleep while other threads drive this port.
    pub(crate) bell: Option<Arc<dyn Bell>>,
    /// The clock for waits on this port.
    pub(crate) time: Time,
    /// Held by a thread that asks another rank for its status.
    pub(crate) asking: Mutex<()>,
}

pub(crate) struct State {
    pub(crate) endpoint: Box<dyn Endpoint>,
    /// Whether the endpoint has been abandoned and other ranks have been told.
    pub(crate) has_given_up: bool,
    /// All writes have arrived and no more will follow: peers may free their memory.
    pub(crate) is_fenced: bool,
    /// The runs under way, by the number in their slots.
    pub(crate) runs: Slab<Active>,
    /// Numbers of runs that may have something to do before the wire reports an event.
    pub(super) due: Vec<u32>,
    pub(super) windows: Windows,
    /// Receives of all runs that are posted and unfinished.
    pub(super) n_recvs: u32,
    pub(crate) events: Vec<Event>,
    /// The port's records of the timeline, if one is recorded.
    pub(crate) ring: Option<RecordRing>,
    /// The port accepts no further runs.
    pub(crate) is_closed: bool,
    /// An error has ended a drive halfway, and its cause is not known yet: nothing is polled or posted any more.
    pub(crate) is_failing: bool,
}

pub(crate) struct Active {
    pub(crate) run: Box<PortRun>,
    owner: Arc<dyn Completion>,
    /// The run's number is in `due`.
    is_due: bool,
}

/// Owners of runs that have ended. If the last reference to an owner is dropped, its memory is released, which takes
/// the port's mutex. So the list is dropped without the mutex.
pub(super) type EndedOwners = SmallVec<[Arc<dyn Completion>; 8]>;

impl State {
    /// Adds a run, which posts as soon as its window allows: see [`Tag::WINDOW`](crate::endpoint::Tag::WINDOW).
    #[inline]
    fn put<const RECORDED: bool>(&mut self, run: Box<PortRun>, owner: Arc<dyn Completion>) {
        let State { runs, due, windows, ring, .. } = self;
        let number = runs.next();
        if RECORDED && let Some(ring) = ring {
            records::begun(ring, number, &run);
        }
        // Otherwise the run becomes due when its window allows.
        if run.ordered().is_none_or(|id| windows.enter(id, number)) {
            due.push(number);
        }
        runs.insert(Active { run, owner, is_due: true });
    }

    /// Polls the endpoint.
    #[inline]
    fn poll<const RECORDED: bool>(&mut self) -> Result<(), WireError> {
        let State { endpoint, events, ring, .. } = self;
        match ring {
            Some(ring) if RECORDED => records::polled(ring, endpoint.as_mut(), events),
            _ => endpoint.poll(events),
        }
    }
}

impl Port {
    pub(crate) fn new(
        rank: Rank,
        id: PortId,
        mut endpoint: Box<dyn Endpoint>,
        failure: Arc<Failure>,
        has_worker: bool,
        ring: Option<RecordRing>,
    ) -> Arc<Self> {
        let of_wire = endpoint.registry().map(|wire| (wire.keyless_bytes(), wire.stage_bytes()));
        let (keyless_bytes, stage_bytes) = of_wire.unwrap_or((u64::MAX, None));
        let (bell, time) = (endpoint.bell(), Time::of(endpoint.clock()));
        let state = State {
            endpoint,
            has_given_up: false,
            is_fenced: false,
            runs: Slab::with_capacity(USUAL_RUNS),
            due: Vec::with_capacity(USUAL_RUNS),
            windows: Windows::default(),
            n_recvs: 0,
            events: Vec::with_capacity(USUAL_EVENTS),
            ring,
            is_closed: false,
            is_failing: false,
        };
        Arc::new(Port {
            rank,
            id,
            keyless_bytes,
            stage_bytes,
            failure,
            has_worker,
            state: CachePadded::new(Mutex::new(state)),
            hints: CachePadded::default(),
            n_moves: CachePadded::default(),
            bell,
            time,
            asking: Mutex::default(),
        })
    }

    /// Takes the mutex for a purpose other than driving.
    pub(crate) fn lock_state(&self) -> MutexGuard<'_, State> {
        self.hints.lock_first(|| lock(&self.state))
    }

    /// Starts a run and drives it as far as `mode` says; if the port is closed, gives the run back as failed.
    #[inline]
    pub(crate) fn launch(&self, run: Box<PortRun>, owner: Arc<dyn Completion>, mode: LaunchMode) {
        let drives = mode != LaunchMode::Deferred;
        let mut guard = if drives { lock(&self.state) } else { self.lock_state() };
        let state = &mut *guard;
        if state.is_closed {
            drop(guard);
            return owner.complete(self.id, run, Some(&Error::Closed));
        }
        match state.ring {
            None => self.launch_in::<false>(guard, run, owner, mode),
            Some(_) => self.launch_recorded(guard, run, owner, mode),
        }
    }

    #[inline]
    pub(super) fn launch_in<const RECORDED: bool>(
        &self,
        mut state: MutexGuard<'_, State>,
        run: Box<PortRun>,
        owner: Arc<dyn Completion>,
        mode: LaunchMode,
    ) {
        state.put::<RECORDED>(run, owner);
        let has_others = self.hints.add_run(self.has_worker);
        if mode != LaunchMode::Deferred {
            // A run that has posted nothing has no events to poll for.
            let polls = has_others && !state.is_failing && !self.failure.is_set();
            let polled = if polls { state.poll::<RECORDED>() } else { Ok(()) };
            self.advance_runs::<RECORDED>(state, polled, mode == LaunchMode::Full);
        }
    }

    /// A number that changes whenever something moves on this port.
    pub(crate) fn n_moves(&self) -> u64 {
        // Acquire: a thread that sees the new number also sees what has moved.
        self.n_moves.load(Ordering::Acquire)
    }

    /// Drives all runs, unless another thread is doing so. Returns whether anything moved.
    pub(crate) fn try_drive(&self) -> bool {
        match self.state.try_lock() {
            Ok(state) => self.drive_locked(state),
            Err(TryLockError::Poisoned(state)) => self.drive_locked(state.into_inner()),
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Drives all runs. Returns whether anything moved.
    pub(crate) fn drive(&self) -> bool {
        self.drive_locked(lock(&self.state))
    }

    /// Drives all runs. Only this function and [`launch`](Port::launch) check whether a timeline is recorded: without
    /// one, the code that they call contains no part of it.
    pub(crate) fn drive_locked(&self, guard: MutexGuard<'_, State>) -> bool {
        match guard.ring {
            None => self.drive_in::<false>(guard),
            Some(_) => self.drive_recorded(guard),
        }
    }

    pub(super) fn drive_in<const RECORDED: bool>(&self, mut guard: MutexGuard<'_, State>) -> bool {
        let has_failed = self.failure.is_set();
        let polled = if has_failed || guard.is_failing { Ok(()) } else { guard.poll::<RECORDED>() };
        let State { events, due, .. } = &*guard;
        if due.is_empty() && !has_failed && events.is_empty() && polled.is_ok() {
            return false;
        }
        self.advance_runs::<RECORDED>(guard, polled, false)
    }

    /// Advances all runs after a poll, and once more after another poll if `again`.
    fn advance_runs<const RECORDED: bool>(
        &self,
        mut state: MutexGuard<'_, State>,
        mut polled: Result<(), WireError>,
        mut again: bool,
    ) -> bool {
        let mut ended = EndedOwners::new();
        let mut moved = false;
        let mut failure = None;
        loop {
            if self.failure.is_set() {
                moved |= self.fail_all(&mut state, &mut ended);
                break;
            }
            if state.is_failing {
                break;
            }
            let stepped = match polled {
                Ok(()) => self.step::<RECORDED>(&mut state, &mut ended),
                Err(source) => Err(self.wire_error(None, source)),
            };
            match stepped {
                Ok(more) => moved |= more,
                Err(error) => {
                    (moved, failure) = (true, Some(error));
                    state.is_failing = true;
                    break;
                }
            }
            if !std::mem::take(&mut again) {
                break;
            }
            polled = state.poll::<RECORDED>();
        }
        if moved {
            // Release: see `n_moves`. No other thread writes it under this mutex.
            self.n_moves.store(self.n_moves() + 1, Ordering::Release);
        }
        drop(state);
        if let Some(bell) = self.bell.as_ref().filter(|_| moved) {
            bell.ring();
        }
        if let Some(error) = failure {
            self.failure.set(&self.with_cause(error));
            self.fail_all(&mut self.lock_state(), &mut ended);
        }
        moved
    }

    #[inline]
    fn step<const RECORDED: bool>(
        &self,
        state: &mut State,
        ended: &mut EndedOwners,
    ) -> Result<bool, Error> {
        let mut moved = !state.events.is_empty();
        if moved {
            self.dispatch_events::<RECORDED>(state)?;
        }
        let State { endpoint, runs, due, windows, n_recvs, ring, .. } = state;
        let (mut at, mut n_kept) = (0, 0);
        // A run that ends may append others to `due`.
        while let Some(&number) = due.get(at) {
            at += 1;
            let Some(Active { run, is_due, .. }) = runs.get_mut(number) else {
                unreachable!("what is due is under way");
            };
            let own = run.recvs_open();
            let room = own + USUAL_RECVS.saturating_sub(*n_recvs);
            let advanced = match ring {
                Some(ring) if RECORDED => run.advance(endpoint.as_mut(), number, room, ring),
                _ => run.advance(endpoint.as_mut(), number, room, &mut ()),
            };
            moved |= advanced
                .map_err(|(task, source)| self.wire_error(Some(run.step_of(task)), source))?;
            *n_recvs = *n_recvs - own + run.recvs_open();
            // A finished run whose last messages are not on the wire yet still needs polling.
            let has_ended = run.is_finished() && endpoint.is_flushed();
            *is_due = !has_ended && (run.is_finished() || !run.waits_for_wire());
            if *is_due {
                due[n_kept] = number;
                n_kept += 1;
            } else if has_ended {
                if let Some(id) = run.ordered() {
                    windows.leave(id, |held| due.push(held));
                }
                let failure = run.differing().map(|peer| self.mismatch_error(peer));
                if RECORDED && let Some(ring) = ring {
                    records::ended(ring, number);
                }
                if let Some(active) = runs.remove(number) {
                    self.retire(active, failure.as_ref(), ended);
                }
                moved = true;
            }
        }
        due.truncate(n_kept);
        Ok(moved)
    }

    /// Passes the events of a poll to their runs.
    #[inline]
    fn dispatch_events<const RECORDED: bool>(&self, state: &mut State) -> Result<(), Error> {
        let State { runs, due, n_recvs, events, ring, .. } = state;
        if RECORDED && let Some(ring) = ring {
            records::done(ring, events);
        }
        for event in events.drain(..) {
            let (slot, view) = match event {
                Event::Sent(slot) | Event::Received(slot) => (slot, None),
                Event::Viewed(slot, view) => (slot, Some(view)),
                Event::Differs(slot, peer) if self.failure.allows_mismatch() => {
                    if let Some(Active { run, .. }) = runs.get_mut(slot.run) {
                        run.note_differing(peer);
                    }
                    (slot, None)
                }
                Event::Differs(_, peer) => return Err(self.mismatch_error(peer)),
                Event::News(blame) => return Err(Error::Lost { rank: self.rank, blame }),
            };
            let Some(Active { run, is_due, .. }) = runs.get_mut(slot.run) else {
                unreachable!("runs stay until all their tasks have finished");
            };
            let own = run.recvs_open();
            match view {
                Some(view) => run.viewed(slot.task, view),
                None => run.finished(slot.task),
            }
            *n_recvs = *n_recvs - own + run.recvs_open();
            let is_lost = planted::is(Planted::LostWake) && slot.task % 5 == 4;
            if !is_lost && !std::mem::replace(is_due, true) {
                due.push(slot.run);
            }
        }
        Ok(())
    }

    pub(super) fn retire(&self, active: Active, failure: Option<&Error>, ended: &mut EndedOwners) {
        let Active { run, owner, .. } = active;
        self.hints.remove_run();
        owner.complete(self.id, run, failure);
        ended.push(owner);
    }
}
