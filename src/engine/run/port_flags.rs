//! Dependencies between tasks of different ports.
//!
//! Ports of one rank share an operation's lanes if a lane's messages go through several ports. A port that has
//! executed a task sets the task's flag, and ports with tasks that wait for it poll the flag.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::Rank;
use crate::engine::compile::program::Program;

/// See the module documentation.
#[derive(Debug)]
pub struct PortFlags {
    /// Counts executions: a flag of an earlier one does not count.
    round: AtomicU32,
    /// By flag, the last execution in which its task has ended.
    flags: Box<[AtomicU32]>,
    /// A peer that makes another call, plus 1; 0 for none.
    differing: AtomicU32,
}

impl PortFlags {
    /// The flags of a program at its first execution.
    pub fn of(program: &Program) -> Self {
        PortFlags {
            round: AtomicU32::new(1),
            flags: (0..program.n_flags).map(|_| AtomicU32::new(0)).collect(),
            differing: AtomicU32::new(0),
        }
    }

    /// Begins another execution, while no port is under way.
    pub(super) fn begin(&self) {
        if self.flags.is_empty() {
            return;
        }
        // Relaxed: the ports' mutexes order these stores.
        self.round.store(self.round().wrapping_add(1), Ordering::Relaxed);
        self.differing.store(0, Ordering::Relaxed);
    }

    pub(super) fn round(&self) -> u32 {
        // Relaxed: see `begin`.
        self.round.load(Ordering::Relaxed)
    }

    /// Sets the flag of a task that has ended; if a peer differs, the data that the task has received are invalid.
    pub(super) fn set(&self, flag: u32, round: u32, differing: Option<Rank>) {
        if let Some(peer) = differing {
            // Relaxed: ordered by the flag.
            self.differing.store(peer + 1, Ordering::Relaxed);
        }
        // Release: a thread that sees the flag also sees the task's writes.
        self.flags[flag as usize].store(round, Ordering::Release);
    }

    /// Whether the task of a flag has ended.
    pub(super) fn is_set(&self, flag: u32, round: u32) -> bool {
        // Acquire: see `set`.
        self.flags[flag as usize].load(Ordering::Acquire) == round
    }

    /// A peer that makes another call.
    pub(super) fn differing(&self) -> Option<Rank> {
        // Relaxed: see `set`.
        self.differing.load(Ordering::Relaxed).checked_sub(1)
    }
}
