//! The effect of each operation of a script.

use std::cmp::Reverse;

use super::pieces::Next;
use super::state::{Blocked, EPSILON, Forwarding, Player, Thread, Time};
use crate::sim::outcome::{Span, SpanKind, TimeCategory};
use crate::sim::script::{Op, Threads};

impl Player<'_> {
    /// Performs the next operation of a thread.
    pub fn step(&mut self, id: u32) {
        if self.threads[id as usize].at > self.since + EPSILON {
            // This event is outdated: the thread does not wait for it any more.
            return;
        }
        let now = self.due_time(id);
        let n_lanes = self.routed.lanes.len() as u32;
        let (agent, lane) = (id / n_lanes, id % n_lanes);
        let Some(&op) = self.script.lanes[lane as usize].get(self.threads[id as usize].next) else {
            self.threads[id as usize].blocked = Blocked::Done;
            if self.script.threads == Threads::One && lane + 1 < n_lanes {
                let Thread { at, breakdown, .. } = self.threads[id as usize];
                let next = &mut self.threads[id as usize + 1];
                (next.at, next.breakdown) = (at, breakdown);
                self.due.push(Reverse((Time(at), id + 1)));
            }
            return;
        };
        let index = agent as usize;
        let routed = self.routed;
        let steps = |step: usize| &routed.lanes[lane as usize].steps[step];
        let op = match op {
            Op::Pieces { number } => match self.next_of(id, number, now) {
                Next::Op(op) => op,
                Next::Waits => return,
                Next::Nothing => return self.spend(id, &[], None),
            },
            op => op,
        };
        match op {
            Op::Pieces { .. } => unreachable!("pieces have no pieces"),
            Op::Handle { step, is_sent, each_ns, category } => {
                let ns = steps(step).most_of_port(agent, is_sent, |_| each_ns);
                self.spend(id, &[(category, ns)], Some(step));
            }
            Op::Spend { ns, category } => self.spend(id, &[(category, ns)], None),
            Op::Serial { lock, ns, wake_ns, category } => {
                let free = &mut self.locks[index * self.n_locks + lock];
                let wait = (*free - now).max(0.0);
                *free = now + wait + ns;
                let wake = if wait > EPSILON { wake_ns } else { 0.0 };
                self.spend(id, &[(TimeCategory::Lock, wait + wake), (category, ns)], None);
            }
            Op::Put { step, from, to, puts, post_ns, gap_ns, n_sharing } => {
                let sent = steps(step).sent(agent);
                let n_posts = steps(step).most_of_port(agent, true, |_| f64::from(puts));
                if !sent.is_empty()
                    && !std::mem::replace(&mut self.threads[id as usize].has_posted, true)
                {
                    return self.spend_time(
                        id,
                        now,
                        &[(TimeCategory::Software, post_ns)],
                        Some(step),
                    );
                }
                self.threads[id as usize].has_posted = false;
                for message in sent {
                    let cut = (f64::from(puts), gap_ns, f64::from(n_sharing));
                    self.post(agent, lane, step as u32, message, [from, to], cut);
                }
                self.spend(
                    id,
                    &[(TimeCategory::Software, (n_posts - 1.0).max(0.0) * post_ns)],
                    Some(step),
                );
            }
            Op::Receive { step, to, poll_ns } => {
                if steps(step).received(agent).is_empty() {
                    return self.spend(id, &[], None);
                }
                let mark = self.steps[lane as usize][step].mark(to);
                let until = self.arrival(id, step as u32, mark);
                if until > now {
                    return self.block(id, Blocked::Arrivals { step: step as u32, mark }, until);
                }
                let waited = self.threads[id as usize].at;
                let [skew, congestion, wire, latency] = self.waited(id, step, mark, waited, now);
                let polls = steps(step).most_of_port(agent, false, |_| poll_ns);
                let poll = (TimeCategory::Software, polls);
                self.spend_since(id, waited, &[skew, congestion, wire, latency, poll], Some(step));
            }
            Op::Sent { step, to, ack_ns } => {
                if steps(step).sent(agent).is_empty() {
                    return self.spend(id, &[], None);
                }
                let mark = self.steps[lane as usize][step].mark(to);
                let left = self.all_left(id, step as u32, mark);
                if left > now {
                    return self.block(id, Blocked::Sent { step: step as u32, mark }, left);
                }
                let waited = self.threads[id as usize].at;
                let (wire, ack) =
                    ((left - waited).max(0.0), (left + ack_ns - left.max(waited)).max(0.0));
                self.spend_since(
                    id,
                    waited,
                    &[(TimeCategory::Wire, wire), (TimeCategory::Software, ack)],
                    Some(step),
                );
            }
            Op::Fold { step, share, ns_per_byte, start_ns } => {
                let received = steps(step).received(agent);
                if received.is_empty() {
                    return self.spend(id, &[], None);
                }
                let all = steps(step).most_of_port(agent, false, |message| message.share);
                let bytes = all * self.n * f64::from(share);
                self.spend(id, &[(TimeCategory::Fold, bytes * ns_per_byte + start_ns)], Some(step));
            }
            Op::Ready { step, post_ns, poll_ns } => {
                let state = &mut self.steps[lane as usize][step];
                if state.ready[index] == f64::INFINITY {
                    state.ready[index] = now + post_ns;
                    if self.takes_turns() {
                        (0..n_lanes)
                            .filter(|&of| of != id)
                            .for_each(|of| self.wake_if_ready(of, step as u32, now));
                    }
                    for &message in steps(step).received(agent) {
                        let from = steps(step).messages[message as usize].from;
                        if from != agent {
                            self.wake_if_ready(from * n_lanes + lane, step as u32, now);
                        }
                    }
                }
                if steps(step).sent(agent).is_empty() {
                    return self.spend(id, &[], None);
                }
                let until = self.peers_ready(id, step as u32);
                if until > now {
                    return self.block(id, Blocked::Ready { step: step as u32 }, until);
                }
                let waited = self.threads[id as usize].at;
                self.spend_since(
                    id,
                    waited,
                    &[(TimeCategory::Latency, now - waited), (TimeCategory::Software, poll_ns)],
                    Some(step),
                );
            }
            Op::Join => self.join(id, agent),
        }
    }

    pub fn spend(&mut self, id: u32, times: &[(TimeCategory, f64)], step: Option<usize>) {
        let at = self.threads[id as usize].at;
        self.spend_since(id, at, times, step);
    }

    /// Ends the operation of a thread, which has spent time since `at`.
    pub fn spend_since(
        &mut self,
        id: u32,
        at: f64,
        times: &[(TimeCategory, f64)],
        step: Option<usize>,
    ) {
        let thread = &mut self.threads[id as usize];
        match &mut thread.forwarding {
            Some(Forwarding { next, at }) => next[at.take().expect("it has begun")] += 1,
            None => thread.next += 1,
        }
        self.spend_time(id, at, times, step);
    }

    /// Lets a thread spend time from `at` on.
    pub fn spend_time(
        &mut self,
        id: u32,
        at: f64,
        times: &[(TimeCategory, f64)],
        step: Option<usize>,
    ) {
        let n_lanes = self.routed.lanes.len() as u32;
        let thread = &mut self.threads[id as usize];
        let mut end = at;
        for &(category, ns) in times.iter().filter(|(_, ns)| *ns > 0.0) {
            thread.breakdown.add(category, ns);
            if let Some(spans) = &mut self.spans {
                let kind = SpanKind::of(category);
                let (rank, lane, step) = (id / n_lanes, id % n_lanes, step.map(|step| step as u32));
                spans.push(Span { rank, lane, step, kind, start_ns: end, end_ns: end + ns });
            }
            end += ns;
        }
        thread.at = end;
        self.due.push(Reverse((Time(end), id)));
    }

    /// Lets a thread wait for the other threads of its rank.
    pub fn join(&mut self, id: u32, agent: u32) {
        let n_lanes = self.routed.lanes.len();
        let own = agent as usize * n_lanes..(agent as usize + 1) * n_lanes;
        self.threads[id as usize].blocked = Blocked::Join;
        if !self.threads[own.clone()].iter().all(|thread| thread.blocked == Blocked::Join) {
            return;
        }
        let last = self.threads[own.clone()].iter().map(|thread| thread.at).fold(0.0, f64::max);
        for id in own {
            self.threads[id].blocked = Blocked::No;
            let wait = last - self.threads[id].at;
            self.spend(id as u32, &[(TimeCategory::Threads, wait)], None);
        }
    }
}
