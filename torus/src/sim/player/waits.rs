//! The events that threads wait for, and the calls that wake threads.

use std::cmp::Reverse;

use super::state::{Blocked, InFlight, Player, StepState, Time, message};
use crate::sim::outcome::TimeCategory;
use crate::sim::routed::Transit;
use crate::sim::script::Threads;

impl Player<'_> {
    /// Wakes the threads that wait for a mark of a message, if nothing else is missing.
    pub fn wake(&mut self, flow: &InFlight, now: f64) {
        let Transit { from, to, .. } = *message(self.routed, flow);
        let n_lanes = self.routed.lanes.len() as u32;
        for id in [from * n_lanes + flow.lane, to * n_lanes + flow.lane] {
            self.wake_if_ready(id, flow.step, now);
            if from == to {
                break;
            }
        }
    }

    /// Wakes a thread that waits for an event of a step, if it need not wait any more.
    pub fn wake_if_ready(&mut self, id: u32, step: u32, now: f64) {
        let blocked = self.threads[id as usize].blocked;
        let until = match blocked {
            Blocked::Arrivals { step: of, mark } if of == step => self.arrival(id, step, mark),
            Blocked::Sent { step: of, mark } if of == step => self.all_left(id, step, mark),
            Blocked::Ready { step: of } if of == step => self.peers_ready(id, step),
            // The thread itself finds the messages that have arrived.
            Blocked::Pieces => now,
            _ => return,
        };
        if until < f64::INFINITY {
            self.threads[id as usize].blocked = Blocked::No;
            self.due.push(Reverse((Time(until.max(now)), id)));
        }
    }

    /// The time at which all messages to a thread's rank have arrived up to a mark.
    pub fn arrival(&self, id: u32, step: u32, mark: u32) -> f64 {
        let (agent, routed, state) = self.of_lane(id, step);
        let late = match self.turn(id, step) {
            // The two lanes cannot be compared before this lane's messages have begun.
            Some((own, _)) if own.min_began() == f64::INFINITY => return f64::INFINITY,
            Some((own, other)) => other.min_began() - own.min_began(),
            None => 0.0,
        };
        let arrives = |&message: &u32| {
            state.left[state.index(message, mark)]
                + late
                + self.speeds.latency(routed.messages[message as usize].hops)
        };
        routed.received(agent).iter().map(arrives).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Whether one rank stands for all and its ports take turns: see [`Threads`].
    pub fn takes_turns(&self) -> bool {
        self.script.threads == Threads::TakingTurns && self.routed.n_agents == 1
    }

    /// If ports take turns, the step of a thread's lane, and that of the lane whose turn it is on the rank that sends
    /// to this thread.
    pub fn turn(&self, id: u32, step: u32) -> Option<(&StepState, &StepState)> {
        let n_lanes = self.routed.lanes.len() as u32;
        let facts = &self.routed.facts[(id % n_lanes) as usize][step as usize];
        if !self.takes_turns() || !facts.is_everywhere {
            return None;
        }
        let other = (id + step + 1) % n_lanes;
        let other = self.steps[other as usize].get(step as usize)?;
        let own = &self.steps[id as usize][step as usize];
        (!other.began.is_empty() && !own.began.is_empty()).then_some((own, other))
    }

    /// The time at which all messages of a thread's rank have left up to a mark.
    pub fn all_left(&self, id: u32, step: u32, mark: u32) -> f64 {
        let (agent, routed, state) = self.of_lane(id, step);
        let left = |message: u32| state.left[state.index(message, mark)];
        routed.sent(agent).map(left).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The time at which a thread's rank has a ready message from each of its receivers.
    pub fn peers_ready(&self, id: u32, step: u32) -> f64 {
        let (agent, routed, state) = self.of_lane(id, step);
        let state = self.turn(id, step).map_or(state, |(_, other)| other);
        let ready_at = |message: u32| {
            let message = &routed.messages[message as usize];
            state.ready[message.to as usize] + self.speeds.latency(message.hops)
        };
        routed.sent(agent).map(ready_at).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Lets a thread wait, until a time if it is known.
    pub fn block(&mut self, id: u32, blocked: Blocked, until: f64) {
        if until < f64::INFINITY {
            self.due.push(Reverse((Time(until), id)));
        } else {
            self.threads[id as usize].blocked = blocked;
        }
    }

    /// The parts of a wait for messages, from the message that arrived last.
    pub fn waited(
        &self,
        id: u32,
        step: usize,
        mark: u32,
        since: f64,
        now: f64,
    ) -> [(TimeCategory, f64); 4] {
        let (agent, routed, state) = self.of_lane(id, step as u32);
        let left = |message: u32| state.left[state.index(message, mark)];
        let arrives = |message: u32| {
            left(message) + self.speeds.latency(routed.messages[message as usize].hops)
        };
        let last = routed
            .received(agent)
            .iter()
            .copied()
            .max_by(|&a, &b| arrives(a).total_cmp(&arrives(b)));
        let last = last.expect("who waits has messages");
        let transit = &routed.messages[last as usize];
        let waited = now - since;
        let latency = waited.min(self.speeds.latency(transit.hops));
        let sending =
            (left(last) - state.began[last as usize].max(since)).clamp(0.0, waited - latency);
        let uncontended = transit.share * self.n * f64::from(state.marks[mark as usize])
            / self.speeds.uncontended(transit.is_intra_node());
        let wire = sending.min(uncontended);
        [
            (TimeCategory::Skew, waited - latency - sending),
            (TimeCategory::Congestion, sending - wire),
            (TimeCategory::Wire, wire),
            (TimeCategory::Latency, latency),
        ]
    }
}
