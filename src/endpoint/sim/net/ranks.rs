//! Which rank runs, and what becomes of ranks.

use std::cmp::Reverse;

use rand::Rng;

use super::super::trace::TraceStep;
use super::NetState;
use super::device::Device;
use super::packet::{Fate, SimAction};
use super::rank::{Life, OneRank, RankPhase};
use crate::Rank;

impl NetState {
    /// Something has happened to a rank.
    pub(in crate::endpoint::sim) fn wake(&mut self, rank: Rank) {
        let one = &mut self.ranks[rank as usize];
        if one.phase == RankPhase::Paused && one.life == Life::Alive {
            one.phase = RankPhase::Ready;
            self.ready.push(rank);
        } else {
            one.is_signalled = true;
        }
    }

    /// A rank pauses, or is held. It gives up the thread after this.
    pub(in crate::endpoint::sim) fn pause(&mut self, rank: Rank, longest: u64) {
        let is_over = self.is_over;
        let one = &mut self.ranks[rank as usize];
        if one.life != Life::Alive && !is_over {
            one.phase = RankPhase::Held;
            return;
        }
        one.pauses = one.pauses.wrapping_add(1);
        if std::mem::take(&mut one.is_signalled) || is_over {
            one.phase = RankPhase::Ready;
            self.ready.push(rank);
            if is_over {
                self.now += longest;
            }
            return;
        }
        one.phase = RankPhase::Paused;
        let wake = SimAction::Wake(rank, one.pauses);
        self.after(longest, wake);
    }

    /// A rank has ended.
    pub(in crate::endpoint::sim) fn end(&mut self, rank: Rank) {
        let one = &mut self.ranks[rank as usize];
        one.phase = RankPhase::Ended;
        self.n_open -= 1;
        if one.life != Life::Dead {
            self.n_living -= 1;
        }
    }

    /// The rank that runs next; `None` if all have ended.
    pub(in crate::endpoint::sim) fn next(&mut self) -> Option<Rank> {
        loop {
            if self.n_open == 0 {
                return None;
            }
            if self.n_living == 0 && !self.is_over {
                self.finish();
            }
            self.run_due();
            if !self.ready.is_empty() {
                let at = self.rng.random_range(0..self.ready.len());
                let rank = self.ready.swap_remove(at);
                let is_over = self.is_over;
                let one = &mut self.ranks[rank as usize];
                if one.life != Life::Alive && !is_over {
                    one.phase = RankPhase::Held;
                    continue;
                }
                one.phase = RankPhase::Running;
                self.pass_time();
                self.note(rank, TraceStep::Resumes);
                return Some(rank);
            }
            let next = self.queue.peek().map(|Reverse(due)| due.at);
            let of_device = self.device.as_ref().and_then(Device::due);
            match next.into_iter().chain(of_device).min().filter(|&at| at <= self.limit) {
                Some(at) => self.now = self.now.max(at),
                None if self.is_over => unreachable!("whoever has not ended goes on"),
                None => self.hang(),
            }
        }
    }

    /// Nobody will ever end.
    pub(super) fn hang(&mut self) {
        let left =
            |one: &(usize, &OneRank)| one.1.phase != RankPhase::Ended && one.1.life != Life::Dead;
        let ranks: Vec<String> =
            self.ranks.iter().enumerate().filter(left).map(|(rank, _)| rank.to_string()).collect();
        self.violations.push(format!("these ranks never return: {}", ranks.join(", ")));
        self.finish();
    }

    /// Whoever has not ended goes on to its end, in a world that has failed.
    pub(super) fn finish(&mut self) {
        self.is_over = true;
        for (rank, one) in (0..).zip(&mut self.ranks) {
            if matches!(one.phase, RankPhase::Held | RankPhase::Paused) {
                one.phase = RankPhase::Ready;
                self.ready.push(rank);
            }
        }
    }

    pub(super) fn apply_fate(&mut self, rank: Rank, fate: Fate) {
        let one = &mut self.ranks[rank as usize];
        if one.phase == RankPhase::Ended || one.life != Life::Alive || self.is_over {
            return;
        }
        match fate {
            Fate::Dies => {
                one.life = Life::Dead;
                self.n_living -= 1;
                // Its memory is gone with it.
                self.rendezvous_sends.retain(|_, send| send.of.0 != rank);
                self.note(rank, TraceStep::Fate("dies"));
                self.lose_on_device(rank);
            }
            Fate::Stops(duration) => {
                one.life = Life::Stopped;
                self.note(rank, TraceStep::Fate("is stopped"));
                self.after(duration.as_nanos() as u64, SimAction::Continues(rank));
            }
        }
    }

    pub(super) fn go_on(&mut self, rank: Rank) {
        let one = &mut self.ranks[rank as usize];
        if one.life != Life::Stopped {
            return;
        }
        one.life = Life::Alive;
        if matches!(one.phase, RankPhase::Held | RankPhase::Paused) {
            one.phase = RankPhase::Ready;
            self.ready.push(rank);
        }
        self.note(rank, TraceStep::Fate("goes on after a stop"));
    }

    /// The next `n` registrations of a rank are refused.
    pub(in crate::endpoint::sim) fn refuse(&mut self, rank: Rank, n: u32) {
        self.ranks[rank as usize].refusals = n;
        self.refuse_on_device(rank, n);
    }

    /// Whether the registration at hand is refused.
    pub(in crate::endpoint::sim) fn refuses(&mut self, rank: Rank) -> bool {
        let one = &mut self.ranks[rank as usize];
        let refuses = one.refusals > 0;
        one.refusals -= u32::from(refuses);
        one.has_refused |= refuses;
        refuses
    }

    /// Whether one has been refused since this was asked last.
    pub(in crate::endpoint::sim) fn has_refused(&mut self, rank: Rank) -> bool {
        let on_device = self.has_refused_on_device(rank);
        std::mem::take(&mut self.ranks[rank as usize].has_refused) || on_device
    }
}
