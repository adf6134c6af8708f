//! Start-up of simulated ranks that have something to tell each other.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hopbine_meet::{AllgatherState, BootstrapError, Exchange, Records};

use super::Simulated;
use crate::endpoint::Clock;
use crate::sync::lock;

/// How long a rank pauses at most before it looks again.
const PAUSE: Duration = Duration::from_secs(1);

/// What all ranks exchange by.
#[derive(Clone, Debug)]
pub(crate) struct Meeting(Arc<Mutex<AllgatherState>>);

impl Meeting {
    pub(crate) fn new(n_ranks: u32) -> Self {
        Meeting(Arc::new(Mutex::new(AllgatherState::new(n_ranks as usize))))
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
        lock(&self.meeting.0).size()
    }

    /// It waits as long as the simulation lasts.
    fn set_timeout(&mut self, _: Duration) {}

    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError> {
        let Simulated { net, clock, rank } = &self.rank;
        let (number, is_complete) = lock(&self.meeting.0).arrive(*rank as usize, mine);
        if is_complete {
            let mut core = net.lock();
            (0..core.n_ranks()).for_each(|rank| core.wake(rank));
        }
        let start = clock.now();
        loop {
            let state = lock(&self.meeting.0);
            if let Some(result) = state.result(number) {
                return Ok((*result).clone());
            }
            if net.lock().is_over() {
                return Err(state.missing(*rank as usize, clock.now() - start));
            }
            drop(state);
            clock.pause(PAUSE);
        }
    }
}
