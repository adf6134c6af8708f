//! What simulated ranks learn of each other besides messages.

use crate::Rank;
use crate::endpoint::{Observer, Status, WireError, gossip_peers};
use crate::error::Blame;

use super::SimEndpoint;
use super::net::{SimAction, SimPacket};

impl Observer for SimEndpoint {
    fn publish(&mut self, status: Status) {
        let mut core = self.net.lock();
        core.port(self.rank, self.port).status = Some(status);
        // Whoever may free memory that it writes to is told by this.
        let is_left = status == Status::Left && core.params.keyless_bytes.is_some();
        if is_left && let Some(to) = core.unfenced(self.rank, self.port) {
            let (rank, port) = (self.rank, self.port);
            core.violated(format!(
                "rank {rank} leaves while port {port} still writes to rank {to}"
            ));
        }
    }

    fn request_status(&mut self, rank: Rank) -> Result<bool, WireError> {
        self.answer = None;
        if self.is_abandoned {
            return Ok(false);
        }
        self.asked = Some(rank);
        self.net.lock().later(SimAction::Ask { asker: self.rank, port: self.port, about: rank });
        Ok(true)
    }

    fn answer(&mut self) -> Option<Status> {
        self.answer.take()
    }

    fn send_news(&mut self, blame: Blame) {
        let mut core = self.net.lock();
        let n_ranks = core.n_ranks();
        for rank in gossip_peers(self.rank, n_ranks) {
            core.send(self.rank, self.port, rank, SimPacket::News(blame));
        }
    }

    fn received_news(&mut self) -> Option<Blame> {
        self.news
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hopbine_torus::PortId;

    use super::super::Config;
    use super::super::clock::RankClock;
    use super::super::net::Net;
    use super::*;

    /// The answer of a rank that this rank no longer waits for comes before that of the rank asked last.
    #[test]
    fn an_answer_is_that_of_the_rank_asked_last() {
        let limit = Duration::from_secs(1);
        let setup = Config { size: (3, 1), seed: 1, is_calm: true, keeps_entries: false, limit };
        let net = Arc::new(Net::new(&setup));
        let clock = Arc::new(RankClock::new(net.clone(), 0));
        let mut port = SimEndpoint::new(net.clone(), clock, 0, PortId(0));
        for rank in [1, 2] {
            assert_eq!(port.request_status(rank), Ok(true));
        }
        for (from, status, answer) in
            [(1, Status::Left, None), (2, Status::Busy, Some(Status::Busy))]
        {
            let mut core = net.lock();
            core.port(0, PortId(0)).inbox.push((from, SimPacket::Answer(status)));
            assert_eq!(port.poll_on(&mut core, &mut Vec::new()), Ok(()));
            assert_eq!(port.answer(), answer);
        }
    }
}
