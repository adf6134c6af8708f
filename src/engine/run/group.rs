//! The ports of a rank, taken together.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::Rank;

use crate::endpoint::{Beat, Status};
use crate::error::Error;
use crate::sync::lock;
use crate::timeline::TraceConfig;

use super::backoff::Waits;
use super::failure::Failure;
use super::port::Port;
use super::work_memory::Spares;

/// What goes on only when somebody sees to it: a call of several operations, one after the other, each of which starts
/// when the one before is done; or calls that have no operations at all.
pub trait Advance: Send + Sync {
    /// Does what is due, without waiting.
    fn advance(&self) -> Advanced;
}

/// What [`Advance::advance`] has found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Advanced {
    /// There is nothing under way: it is added again when something is.
    Idle,
    /// What it does, ports show.
    ByPorts,
    /// Something is under way, and waits for others.
    Waits,
    /// Something has moved that no port shows.
    Moved,
}

/// What a rank does when nothing has moved for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTimeout {
    /// It says so, and waits on, unless somebody is gone or makes another call.
    Warn,
    /// It fails.
    Fail,
}

/// How the ports of a rank are driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Worker threads, at most one for each port: worker w drives ports w, w + workers, and so on. With
    /// none, whoever waits or tests drives all ports.
    pub workers: usize,
    /// The cores for the workers, one by one; workers beyond the list are not pinned.
    pub cores: Vec<usize>,
    /// Waiting threads may keep a core busy: there is one for each.
    pub own_cores: bool,
    /// How long nothing may move of what a wait is for before it is too long.
    pub timeout: Duration,
    /// What becomes of it then.
    pub on_timeout: OnTimeout,
    /// The timeline that is wanted, if one is.
    pub trace: Option<TraceConfig>,
}

/// See the module documentation.
pub(crate) struct Group {
    pub(crate) rank: Rank,
    /// All ranks that there are.
    pub(crate) n_ranks: u32,
    pub(crate) ports: Arc<[Arc<Port>]>,
    pub(crate) spares: Arc<Spares>,
    pub(crate) failure: Arc<Failure>,
    pub(crate) config: EngineConfig,
    /// Operations of several communicators have been started.
    pub(crate) several: AtomicBool,
    /// Counts what this rank has shown of its waits.
    pub(crate) beat: AtomicU32,
    /// Waits that were found too long.
    pub(crate) n_long_waits: AtomicU64,
    pub(crate) waits: Waits,
    /// What goes on when somebody sees to it, how much that is, and how often something of it has moved.
    pub(crate) advancing: Mutex<Vec<Weak<dyn Advance>>>,
    pub(crate) n_advancing: AtomicU32,
    pub(crate) n_advanced: AtomicU64,
}

impl Group {
    /// Whether operations of several communicators have been started, perhaps by several
    /// threads.
    pub(crate) fn has_several(&self) -> bool {
        // Relaxed: never goes back.
        self.several.load(Ordering::Relaxed)
    }

    /// An operation of the communicator with this context is started.
    pub(crate) fn note_context(&self, context: u64) {
        if context != 0 && !self.has_several() {
            self.several.store(true, Ordering::Relaxed);
        }
    }

    /// What the next status of a rank that waits carries.
    pub(crate) fn next_beat(&self) -> Beat {
        // Relaxed: only has to change.
        self.beat.fetch_add(1, Ordering::Relaxed)
    }

    /// Shows what this rank is doing to whoever asks.
    pub(crate) fn show(&self, status: Status) {
        self.ports.iter().for_each(|port| port.show(status));
    }

    /// A number that changes whenever something moves.
    pub(crate) fn n_moves(&self) -> u64 {
        // Relaxed: as the ports' numbers.
        let advanced = self.n_advanced.load(Ordering::Relaxed);
        self.ports.iter().fold(advanced, |sum, port| sum.wrapping_add(port.n_moves()))
    }

    /// True if something has moved since the last time, when `moves` was the number.
    pub(crate) fn has_moved(&self, moves: &mut u64) -> bool {
        let sum = self.n_moves();
        std::mem::replace(moves, sum) != sum
    }

    /// There is more that goes on when somebody sees to it.
    pub(crate) fn advances(&self, call: Weak<dyn Advance>) {
        let calls = &mut *lock(&self.advancing);
        calls.push(call);
        // Relaxed: whoever does not see it yet looks again.
        self.n_advancing.store(calls.len() as u32, Ordering::Relaxed);
    }

    /// Does what is due of all that goes on only when somebody sees to it.
    #[inline]
    pub(crate) fn advance(&self) -> Advanced {
        // Relaxed: see `advances`.
        if self.n_advancing.load(Ordering::Relaxed) == 0 {
            return Advanced::Idle;
        }
        self.advance_calls()
    }

    #[cold]
    fn advance_calls(&self) -> Advanced {
        // Another thread does it, or this one, which has come here from there.
        let Ok(mut calls) = self.advancing.try_lock() else { return Advanced::Waits };
        let mut all = Advanced::Idle;
        calls.retain(|call| {
            let advanced = call.upgrade().map_or(Advanced::Idle, |call| call.advance());
            all = all.max(advanced);
            advanced != Advanced::Idle
        });
        self.n_advancing.store(calls.len() as u32, Ordering::Relaxed);
        if all == Advanced::Moved {
            // Relaxed: only has to change.
            self.n_advanced.fetch_add(1, Ordering::Relaxed);
        }
        all
    }

    /// Moves on whatever is under way. Returns whether anything happened.
    pub(crate) fn progress(&self) -> bool {
        let moved = self.advance() == Advanced::Moved;
        let active = self.ports.iter().filter(|port| port.hints.is_active());
        active.fold(moved, |moved, port| moved | port.try_drive())
    }

    /// After a failure, of which `error` is the reason unless there is one already: ends
    /// everything under way and tells others. When this returns the ports touch no memory of
    /// users any more, nor will.
    pub(crate) fn fail(&self, error: &Error) {
        if !matches!(error, Error::Poisoned(_) | Error::Closed) {
            self.failure.set(error);
        }
        if self.failure.is_set() {
            self.ports.iter().for_each(|port| _ = port.drive());
        }
    }
}
