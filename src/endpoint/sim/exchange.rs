//! Start-up of simulated ranks that have something to tell each other.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hopbine_meet::{BootstrapError, Exchange, Phase, Records};

use super::Simulated;
use crate::endpoint::Clock;
use crate::sync::lock;

/// How long a rank pauses at most before it looks again.
const PAUSE: Duration = Duration::from_secs(1);

/// One exchange in progress, and the result of the last one.
#[derive(Debug, Default)]
struct State {
    /// Completed exchanges.
    generation: u64,
    arrived: Vec<Option<Vec<u8>>>,
    result: Records,
}

/// What all ranks exchange by.
#[derive(Clone, Debug)]
pub(crate) struct Meeting(Arc<Mutex<State>>);

impl Meeting {
    pub(crate) fn new(n_ranks: u32) -> Self {
        let arrived = vec![None; n_ranks as usize];
        Meeting(Arc::new(Mutex::new(State { arrived, ..State::default() })))
    }

    /// One rank's part.
    pub(crate) fn of(&self, rank: &Simulated) -> SimulatedExchange {
        SimulatedExchange { meeting: self.clone(), rank: rank.clone() }
    }
}

/// An exchange among simulated ranks: whoever waits in it lets others run.
#[derive(Debug)]
pub(crate) struct SimulatedExchange {
    meeting: Meeting,
    rank: Simulated,
}

impl Exchange for SimulatedExchange {
    fn rank(&self) -> usize {
        self.rank.rank as usize
    }

    fn size(&self) -> usize {
        lock(&self.meeting.0).arrived.len()
    }

    /// It waits as long as the simulation lasts.
    fn set_timeout(&mut self, _: Duration) {}

    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError> {
        let Simulated { net, clock, rank } = &self.rank;
        let generation = {
            let mut state = lock(&self.meeting.0);
            let generation = state.generation;
            state.arrived[*rank as usize] = Some(mine.to_vec());
            if state.arrived.iter().all(Option::is_some) {
                state.result = state.arrived.iter_mut().filter_map(Option::take).collect();
                state.generation += 1;
                let mut core = net.lock();
                (0..core.n_ranks()).for_each(|rank| core.wake(rank));
            }
            generation
        };
        let start = clock.now();
        loop {
            let state = lock(&self.meeting.0);
            // The next exchange is not complete before this rank has taken part in it.
            if state.generation != generation {
                return Ok(state.result.clone());
            }
            if net.lock().is_over() {
                let missing = state.arrived.iter().enumerate();
                return Err(BootstrapError::Missing {
                    rank: *rank as usize,
                    size: state.arrived.len(),
                    missing: missing.filter(|(_, told)| told.is_none()).map(|(at, _)| at).collect(),
                    phase: Phase::Exchange(generation + 1),
                    waited: clock.now() - start,
                    other_size: None,
                    other_protocol: None,
                });
            }
            drop(state);
            clock.pause(PAUSE);
        }
    }
}
