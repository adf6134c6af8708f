//! Status requests and news between ranks. They are sent as messages, since MPI offers no words that ranks share.

use std::time::{Duration, Instant};

use super::header::{Header, HeaderKind};
use super::{MpiEndpoint, State};
use crate::Rank;
use crate::endpoint::status::{blame_to_word, gossip_peers};
use crate::endpoint::{Observer, Status, WireError};
use crate::error::Blame;

/// Time after which a status request counts as unanswered. A rank that does not answer may be computing.
const ANSWER_TAKES: Duration = Duration::from_millis(300);

/// The status request of this rank to another one.
#[derive(Debug, Default)]
pub(super) struct StatusRequest {
    number: u32,
    open: Option<(Rank, Instant)>,
    answer: Option<Status>,
}

impl StatusRequest {
    /// Takes an answer, unless it is for an older request.
    pub(super) fn answered(&mut self, rank: Rank, number: u32, status: Status) {
        if self.number == number && self.open.is_some_and(|(asked, _)| asked == rank) {
            self.open = None;
            self.answer = Some(status);
        }
    }
}

impl State {
    /// Records a failure that this rank has found as if another rank had reported it.
    pub(super) fn note(&mut self, blame: Blame) {
        self.news.get_or_insert(blame);
    }

    /// Answers a peer's status request.
    pub(super) fn reply_status(&mut self, rank: Rank, number: u32) -> Result<(), WireError> {
        let header = Header::control(HeaderKind::StatusReply, self.status.to_word(), number);
        // SAFETY: there is no payload.
        unsafe { self.outbound.send(rank, &header, None) }
    }
}

impl Observer for MpiEndpoint {
    fn publish(&mut self, status: Status) {
        self.state.status = status;
    }

    fn request_status(&mut self, rank: Rank) -> Result<bool, WireError> {
        let _inside = self.library.enter()?;
        let state = &mut self.state;
        if state.status_request.open.is_some() || state.is_abandoned {
            return Ok(false);
        }
        if rank >= state.n_ranks {
            // Ranks only ask about ranks of their communicator.
            state.status_request.answer = Some(Status::Unknown);
            return Ok(true);
        }
        let number = state.status_request.number.wrapping_add(1);
        // SAFETY: there is no payload.
        unsafe {
            state.outbound.send(rank, &Header::control(HeaderKind::StatusRequest, 0, number), None)
        }?;
        let open = Some((rank, Instant::now()));
        state.status_request = StatusRequest { number, open, answer: None };
        Ok(true)
    }

    fn answer(&mut self) -> Option<Status> {
        let status_request = &mut self.state.status_request;
        if status_request.open.is_some_and(|(_, asked)| asked.elapsed() > ANSWER_TAKES) {
            (status_request.open, status_request.answer) = (None, Some(Status::Unknown));
        }
        status_request.answer.take()
    }

    fn send_news(&mut self, blame: Blame) {
        let Ok(_inside) = self.library.enter() else { return };
        let state = &mut self.state;
        if state.is_abandoned {
            return;
        }
        let header = Header::control(HeaderKind::News, blame_to_word(blame), 0);
        for rank in gossip_peers(state.rank, state.n_ranks) {
            // A rank that cannot be reached is gone.
            // SAFETY: there is no payload.
            let _ = unsafe { state.outbound.send(rank, &header, None) };
        }
    }

    fn received_news(&mut self) -> Option<Blame> {
        self.state.news
    }
}
