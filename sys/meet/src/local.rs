//! The exchange among ranks that are threads of one process.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{BootstrapError, Phase};
use crate::exchange::Exchange;
use crate::records::Records;

/// The exchange in progress among ranks of a process, and the result of the last one.
#[derive(Debug)]
pub struct AllgatherState {
    /// Completed exchanges.
    generation: u64,
    /// Messages of the exchange in progress.
    arrived: Vec<Option<Vec<u8>>>,
    /// Messages of the last completed exchange.
    result: Arc<Records>,
}

impl AllgatherState {
    /// Creates the state of exchanges among `size` ranks.
    pub fn new(size: usize) -> Self {
        AllgatherState { generation: 0, arrived: vec![None; size], result: Arc::default() }
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.arrived.len()
    }

    /// Enters a rank's message in the exchange in progress. Returns the exchange's number, and whether it is now
    /// complete.
    pub fn arrive(&mut self, rank: usize, mine: &[u8]) -> (u64, bool) {
        let number = self.generation;
        self.arrived[rank] = Some(mine.to_vec());
        let is_complete = self.arrived.iter().all(Option::is_some);
        if is_complete {
            self.result = Arc::new(self.arrived.iter_mut().filter_map(Option::take).collect());
            self.generation += 1;
        }
        (number, is_complete)
    }

    /// Returns the messages of all ranks, if exchange `number` is complete. The next exchange cannot complete before
    /// this rank has taken part in it, so the result is still that of exchange `number`.
    pub fn result(&self, number: u64) -> Option<Arc<Records>> {
        (self.generation != number).then(|| Arc::clone(&self.result))
    }

    /// Returns the error of a rank that has waited this long without success.
    pub fn missing(&self, rank: usize, waited: Duration) -> BootstrapError {
        let missing = self.arrived.iter().enumerate().filter(|(_, message)| message.is_none());
        BootstrapError::Missing {
            rank,
            size: self.size(),
            missing: missing.map(|(rank, _)| rank).collect(),
            phase: Phase::Exchange(self.generation + 1),
            waited,
            other_size: None,
            other_protocol: None,
        }
    }
}

#[derive(Debug)]
struct State {
    gathering: AllgatherState,
    /// A rank that has dropped its exchange.
    gone: Option<usize>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    /// Locks the state, which stays consistent if a rank panics: every change to it is a single step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One rank of a group of threads. Dropping it tells the other ranks, so that no rank waits for a thread that has
/// panicked.
#[derive(Debug)]
pub struct LocalExchange {
    shared: Arc<Shared>,
    rank: usize,
    size: usize,
    timeout: Duration,
}

impl LocalExchange {
    /// Creates the members of a group of `size` ranks, in order, one for each thread.
    #[must_use]
    pub fn group(size: usize, timeout: Duration) -> Vec<LocalExchange> {
        let state = Mutex::new(State { gathering: AllgatherState::new(size), gone: None });
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
        let (number, is_complete) = state.gathering.arrive(self.rank, mine);
        if is_complete {
            self.shared.changed.notify_all();
        }
        loop {
            if let Some(result) = state.gathering.result(number) {
                drop(state);
                return Ok((*result).clone());
            }
            if let Some(gone) = state.gone {
                return Err(BootstrapError::Gone { rank: self.rank, gone });
            }
            let Some(left) = self.timeout.checked_sub(start.elapsed()) else {
                return Err(state.gathering.missing(self.rank, start.elapsed()));
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
