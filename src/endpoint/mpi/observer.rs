//! Status requests and news between ranks. They are sent as messages, since MPI offers no words that ranks share.

use std::time::{Duration, Instant};

use super::header::{Header, Kind};
use super::{MpiEndpoint, State};
use crate::Rank;
use crate::endpoint::status::{blame_to_word, gossip_peers};
use crate::endpoint::{Observer, Status, WireError};
use crate::error::Blame;

/// Time after which a status request counts as unanswered. A rank that does not answer may be computing.
const ANSWER_TAKES: Duration = Duration::from_millis(300);

/// The status request of this rank to another one.
#[derive(Debug, Default)]
pub(super) struct Question {
    number: u32,
    open: Option<(Rank, Instant)>,
    answer: Option<Status>,
}

impl Question {
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
    pub(super) fn reply(&mut self, rank: Rank, question: u32) -> Result<(), WireError> {
        let header = Header::plain(Kind::Answer, self.status.to_word(), question);
        // SAFETY: there is no payload.
        unsafe { self.outbound.send(rank, &header, None) }
    }
}

impl Observer for MpiEndpoint {
    fn show(&mut self, status: Status) {
        self.state.status = status;
    }

    fn ask(&mut self, rank: Rank) -> Result<bool, WireError> {
        let _inside = self.library.enter()?;
        let state = &mut self.state;
        if state.question.open.is_some() || state.is_abandoned {
            return Ok(false);
        }
        if rank >= state.n_ranks {
            // Ranks only ask about ranks of their communicator.
            state.question.answer = Some(Status::Unknown);
            return Ok(true);
        }
        let number = state.question.number.wrapping_add(1);
        // SAFETY: there is no payload.
        unsafe { state.outbound.send(rank, &Header::plain(Kind::Ask, 0, number), None) }?;
        let open = Some((rank, Instant::now()));
        state.question = Question { number, open, answer: None };
        Ok(true)
    }

    fn answer(&mut self) -> Option<Status> {
        let question = &mut self.state.question;
        if question.open.is_some_and(|(_, asked)| asked.elapsed() > ANSWER_TAKES) {
            (question.open, question.answer) = (None, Some(Status::Unknown));
        }
        question.answer.take()
    }

    fn tell(&mut self, blame: Blame) {
        let Ok(_inside) = self.library.enter() else { return };
        let state = &mut self.state;
        if state.is_abandoned {
            return;
        }
        let header = Header::plain(Kind::News, blame_to_word(blame), 0);
        for rank in gossip_peers(state.rank, state.n_ranks) {
            // A rank that cannot be reached is gone.
            // SAFETY: there is no payload.
            let _ = unsafe { state.outbound.send(rank, &header, None) };
        }
    }

    fn told(&mut self) -> Option<Blame> {
        self.state.news
    }
}
