//! The ports of a rank, with the state that they share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::time::Duration;

use crate::Rank;

use crate::endpoint::{Beat, Status};
use crate::error::Error;
use crate::sync::lock;
use crate::timeline::TraceConfig;

use super::backoff::Waits;
use super::failure::Failure;
use super::port::Port;
use super::work_memory::MemoryPool;

/// The progress hook of a call that makes progress only when a thread advances it: several operations in sequence,
/// each of which starts when the one before is done; or a call without operations.
pub trait ProgressHook: Send + Sync {
    /// Does what is due, without waiting.
    fn advance(&self) -> ProgressState;
}

/// The result of [`ProgressHook::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgressState {
    /// Nothing is under way; the call must be added again when something is.
    Idle,
    /// All that is under way are runs on ports.
    ByPorts,
    /// Something is under way that waits for other ranks.
    Waits,
    /// Something has moved that ports do not count.
    Moved,
}

/// The action of a rank when nothing has moved for the time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnTimeout {
    /// It prints a warning and waits on, unless a rank is gone or makes another call.
    Warn,
    /// It fails.
    Fail,
}

/// How the ports of a rank are driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Worker threads, at most one per port: worker w drives ports w, w + `workers`, and so on. Without workers, each
    /// thread that waits or tests drives all ports.
    pub workers: usize,
    /// Cores of the workers, in order; workers beyond the end of the list are not pinned.
    pub cores: Vec<usize>,
    /// Waiting threads may keep a core busy: each has one of its own.
    pub own_cores: bool,
    /// Time-out: the longest time without progress of the operation that is waited for.
    pub timeout: Duration,
    /// Action after the time-out.
    pub on_timeout: OnTimeout,
    /// Configuration of the timeline, if one is recorded.
    pub trace: Option<TraceConfig>,
}

/// See the module documentation.
pub(crate) struct PortGroup {
    pub(crate) rank: Rank,
    /// Ranks of the world communicator.
    pub(crate) n_ranks: u32,
    pub(crate) ports: Arc<[Arc<Port>]>,
    pub(crate) pool: Arc<MemoryPool>,
    pub(crate) failure: Arc<Failure>,
    pub(crate) config: EngineConfig,
    /// Whether this rank, or one of which it has learnt that, has several communicators.
    pub(crate) several_comms: AtomicBool,
    /// Counts the statuses that waits of this rank have published.
    pub(crate) beat: AtomicU32,
    /// Number of times that a wait was found too long.
    pub(crate) n_long_waits: AtomicU64,
    pub(crate) waits: Waits,
    /// Hooks of the calls to advance; the next two fields are their number and the count of their moves.
    pub(crate) hooks: Mutex<Vec<Weak<dyn ProgressHook>>>,
    pub(crate) n_hooks: AtomicU32,
    pub(crate) n_hook_moves: AtomicU64,
    /// Every [`Admitted`](crate::engine::Admitted) holds a copy.
    pub(crate) admitted: Arc<()>,
}

impl PortGroup {
    /// Whether this rank, or one of which it has learnt that, has several communicators: perhaps its threads wait for
    /// different things.
    pub(crate) fn has_several_comms(&self) -> bool {
        // Relaxed: never goes back.
        self.several_comms.load(Ordering::Relaxed)
    }

    /// Notes that a rank has several communicators.
    pub(crate) fn note_several_comms(&self) {
        self.several_comms.store(true, Ordering::Relaxed);
    }

    /// The number for the next status of a waiting rank.
    pub(crate) fn next_beat(&self) -> Beat {
        // Relaxed: only has to change.
        self.beat.fetch_add(2, Ordering::Relaxed) | Beat::from(self.has_several_comms())
    }

    /// Publishes this rank's status for other ranks.
    pub(crate) fn publish(&self, status: Status) {
        self.ports.iter().for_each(|port| port.publish(status));
    }

    /// A number that changes whenever something moves.
    pub(crate) fn n_moves(&self) -> u64 {
        // Relaxed: only has to change.
        let of_hooks = self.n_hook_moves.load(Ordering::Relaxed);
        self.ports.iter().fold(of_hooks, |sum, port| sum.wrapping_add(port.n_moves()))
    }

    /// A number that changes when a part of a long message has moved.
    pub(crate) fn n_parts(&self) -> u64 {
        let of_ports = self.ports.iter().map(|port| port.lock_state().endpoint.n_parts());
        of_ports.fold(0, u64::wrapping_add)
    }

    /// True if something has moved since the last call, which stored the number of moves in `moves`.
    pub(crate) fn has_moved(&self, moves: &mut u64) -> bool {
        let sum = self.n_moves();
        std::mem::replace(moves, sum) != sum
    }

    /// Adds the hook of a call to advance.
    pub(crate) fn add_hook(&self, call: Weak<dyn ProgressHook>) {
        let calls = &mut *lock(&self.hooks);
        calls.push(call);
        // Relaxed: a thread that does not see the new number yet looks again.
        self.n_hooks.store(calls.len() as u32, Ordering::Relaxed);
    }

    /// Advances all calls that need it.
    #[inline]
    pub(crate) fn call_hooks(&self) -> ProgressState {
        // Relaxed: see `add_hook`.
        if self.n_hooks.load(Ordering::Relaxed) == 0 {
            return ProgressState::Idle;
        }
        self.call_all_hooks()
    }

    #[cold]
    fn call_all_hooks(&self) -> ProgressState {
        // Another thread advances the calls, or a caller of this function on the same thread does.
        let mut calls = match self.hooks.try_lock() {
            Ok(calls) => calls,
            Err(TryLockError::Poisoned(calls)) => calls.into_inner(),
            Err(TryLockError::WouldBlock) => return ProgressState::Waits,
        };
        let mut all = ProgressState::Idle;
        calls.retain(|call| {
            let advanced = call.upgrade().map_or(ProgressState::Idle, |call| call.advance());
            all = all.max(advanced);
            advanced != ProgressState::Idle
        });
        self.n_hooks.store(calls.len() as u32, Ordering::Relaxed);
        if all == ProgressState::Moved {
            // Relaxed: only has to change.
            self.n_hook_moves.fetch_add(1, Ordering::Relaxed);
        }
        all
    }

    /// Drives all active ports and advances calls. Returns whether anything moved.
    pub(crate) fn progress(&self) -> bool {
        let moved = self.call_hooks() == ProgressState::Moved;
        let active = self.ports.iter().filter(|port| port.hints.is_active());
        active.fold(moved, |moved, port| moved | port.try_drive())
    }

    /// Fails everything under way and tells other ranks; `error` is the reason, unless one is set already. When this
    /// returns the ports do not touch users' memory any more, and never will.
    pub(crate) fn fail(&self, error: &Error) {
        if !matches!(error, Error::Poisoned(_) | Error::Closed) {
            self.failure.set(error);
        }
        if self.failure.is_set() {
            self.ports.iter().for_each(|port| _ = port.drive());
        }
    }
}
