//! What simulated ranks learn of each other besides messages.

use crate::Rank;
use crate::endpoint::{Observer, Status, WireError, gossip_peers};
use crate::error::Blame;

use super::SimEndpoint;
use super::net::{Action, Packet};

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
        self.is_asked = true;
        self.net.lock().later(Action::Ask { asker: self.rank, port: self.port, about: rank });
        Ok(true)
    }

    fn answer(&mut self) -> Option<Status> {
        self.answer.take()
    }

    fn send_news(&mut self, blame: Blame) {
        let mut core = self.net.lock();
        let n_ranks = core.n_ranks();
        for rank in gossip_peers(self.rank, n_ranks) {
            core.send(self.rank, self.port, rank, Packet::News(blame));
        }
    }

    fn received_news(&mut self) -> Option<Blame> {
        self.news
    }
}
