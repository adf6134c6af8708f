//! The exchange among ranks that are threads of one process.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{BootstrapError, Phase};
use crate::exchange::Exchange;
use crate::records::Records;

/// One exchange in progress, and the result of the last one.
#[derive(Debug, Default)]
struct State {
    /// Completed exchanges.
    generation: u64,
    /// Messages of the exchange in progress.
    arrived: Vec<Option<Vec<u8>>>,
    /// Messages of the last completed exchange.
    result: Arc<Records>,
    /// A rank that left.
    gone: Option<usize>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    /// The state stays consistent if a rank panics: every change to it is a single step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One rank of a group of threads. Dropping it tells the others, so that none waits for a thread that
/// has panicked.
#[derive(Debug)]
pub struct LocalExchange {
    shared: Arc<Shared>,
    rank: usize,
    size: usize,
    timeout: Duration,
}

impl LocalExchange {
    /// The members of a group of `size` ranks, in order, one for each thread.
    #[must_use]
    pub fn group(size: usize, timeout: Duration) -> Vec<LocalExchange> {
        let state = Mutex::new(State { arrived: vec![None; size], ..State::default() });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        (0..size)
            .map(|rank| LocalExchange { shared: Arc::clone(&shared), rank, size, timeout })
            .collect()
    }
}

impl Exchange for LocalExchange {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError> {
        let start = Instant::now();
        let mut state = self.shared.lock();
        let generation = state.generation;
        state.arrived[self.rank] = Some(mine.to_vec());
        if state.arrived.iter().all(Option::is_some) {
            let all = state.arrived.iter_mut().filter_map(Option::take).collect();
            state.result = Arc::new(all);
            state.generation += 1;
            self.shared.changed.notify_all();
        }
        loop {
            // The next exchange is not complete before this rank has taken part in it, so the
            // result is still that of this one.
            if state.generation != generation {
                let result = Arc::clone(&state.result);
                drop(state);
                return Ok((*result).clone());
            }
            if let Some(gone) = state.gone {
                return Err(BootstrapError::Gone { rank: self.rank, gone });
            }
            let Some(left) = self.timeout.checked_sub(start.elapsed()) else {
                return Err(BootstrapError::Missing {
                    rank: self.rank,
                    size: self.size,
                    missing: (0..self.size).filter(|&r| state.arrived[r].is_none()).collect(),
                    phase: Phase::Exchange(generation + 1),
                    waited: start.elapsed(),
                    other_size: None,
                    other_protocol: None,
                });
            };
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Drop for LocalExchange {
    fn drop(&mut self) {
        self.shared.lock().gone.get_or_insert(self.rank);
        self.shared.changed.notify_all();
    }
}
