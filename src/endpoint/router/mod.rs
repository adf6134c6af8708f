//! One port made of two wires: one reaches near ranks, as shared memory those of a node, the other
//! all other ranks.
//!
//! Ranks keep their numbers in the world, and messages are passed on as they are, so the engine need
//! not know. Each wire judges its own messages: a rank that makes another call is found out by the
//! wire that its message comes through.

#[cfg(test)]
mod tests;

use super::{
    Endpoint, Event, Matching, Observer, Posted, RecvPost, Registry, SendPost, Status,
    UnexpectedStats, WireError,
};
use crate::Rank;
use crate::error::Blame;

/// See the module documentation.
#[derive(Debug)]
pub struct Router<N, F> {
    near: N,
    far: F,
    /// In ascending order.
    near_ranks: Box<[Rank]>,
    /// The question that is open was put to the near wire.
    asked_near: bool,
}

impl<N: Endpoint, F: Endpoint> Router<N, F> {
    /// A port that reaches `near_ranks` through `near` and everybody else through `far`.
    pub fn new(near: N, near_ranks: impl IntoIterator<Item = Rank>, far: F) -> Self {
        let mut near_ranks: Box<[Rank]> = near_ranks.into_iter().collect();
        near_ranks.sort_unstable();
        Router { near, far, near_ranks, asked_near: false }
    }

    #[inline]
    fn is_near(&self, rank: Rank) -> bool {
        // Ranks of a node mostly follow one another.
        let Some(&first) = self.near_ranks.first() else { return false };
        let guess = rank.wrapping_sub(first) as usize;
        self.near_ranks.get(guess) == Some(&rank) || self.near_ranks.binary_search(&rank).is_ok()
    }
}

impl<N: Endpoint, F: Endpoint> Endpoint for Router<N, F> {
    #[inline]
    unsafe fn post_send(&mut self, to: Rank, send: SendPost) -> Result<Posted, WireError> {
        match self.is_near(to) {
            // SAFETY: the caller's promise.
            true => unsafe { self.near.post_send(to, send) },
            // SAFETY: the caller's promise.
            false => unsafe { self.far.post_send(to, send) },
        }
    }

    #[inline]
    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Posted, WireError> {
        match self.is_near(from) {
            // SAFETY: the caller's promise.
            true => unsafe { self.near.post_recv(from, recv) },
            // SAFETY: the caller's promise.
            false => unsafe { self.far.post_recv(from, recv) },
        }
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        self.near.poll(events)?;
        self.far.poll(events)
    }

    fn flush(&mut self) -> Result<(), WireError> {
        self.near.flush()?;
        self.far.flush()
    }

    fn is_flushed(&self) -> bool {
        self.near.is_flushed() && self.far.is_flushed()
    }

    fn abandon(&mut self) {
        self.near.abandon();
        self.far.abandon();
    }

    fn end(&mut self) {
        self.near.end();
        self.far.end();
    }

    fn matching(&mut self) -> Option<&mut dyn Matching> {
        Some(self)
    }

    fn n_parts(&self) -> u64 {
        self.near.n_parts().wrapping_add(self.far.n_parts())
    }

    /// At most one of the wires has one: keys are its.
    fn registry(&mut self) -> Option<&mut dyn Registry> {
        debug_assert!(self.near.registry().is_none() || self.far.registry().is_none());
        match self.far.registry() {
            Some(registry) => Some(registry),
            None => self.near.registry(),
        }
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        let has_one = self.near.observer().is_some() || self.far.observer().is_some();
        has_one.then_some(self)
    }
}

impl<N: Endpoint, F: Endpoint> Router<N, F> {
    fn observers(&mut self) -> impl Iterator<Item = &mut dyn Observer> {
        self.near.observer().into_iter().chain(self.far.observer())
    }

    fn matchings(&mut self) -> impl Iterator<Item = &mut dyn Matching> {
        self.near.matching().into_iter().chain(self.far.matching())
    }
}

impl<N: Endpoint, F: Endpoint> Matching for Router<N, F> {
    fn forget_calls(&mut self, context: u64, newest: Option<u32>) {
        self.matchings().for_each(|matching| matching.forget_calls(context, newest));
    }

    /// Half of it for either wire.
    fn limit_unexpected(&mut self, bytes: usize) {
        self.matchings().for_each(|matching| matching.limit_unexpected(bytes / 2));
    }

    fn unexpected(&mut self) -> UnexpectedStats {
        let both = self.matchings().map(|matching| matching.unexpected());
        both.reduce(UnexpectedStats::and).unwrap_or_default()
    }
}

impl<N: Endpoint, F: Endpoint> Observer for Router<N, F> {
    fn publish(&mut self, status: Status) {
        self.observers().for_each(|observer| observer.publish(status));
    }

    fn request_status(&mut self, rank: Rank) -> Result<bool, WireError> {
        self.asked_near = self.is_near(rank);
        let observer = if self.asked_near { self.near.observer() } else { self.far.observer() };
        observer.map_or(Ok(false), |observer| observer.request_status(rank))
    }

    fn answer(&mut self) -> Option<Status> {
        let observer = if self.asked_near { self.near.observer() } else { self.far.observer() };
        observer?.answer()
    }

    fn send_news(&mut self, blame: Blame) {
        self.observers().for_each(|observer| observer.send_news(blame));
    }

    fn received_news(&mut self) -> Option<Blame> {
        self.observers().find_map(|observer| observer.received_news())
    }
}
