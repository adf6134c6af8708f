//! What is checked plan by plan: local rules, agreement, and fingerprints of all messages by
//! which the two ends of every message, and the flow that is executed, are compared.

use std::collections::{BTreeMap, BTreeSet};

use super::Expect;
use super::fault::{Fault, Violation};
use super::scramble::scramble;
use crate::collectives::Collective;
use crate::names::Rank;
use crate::plan::flow::Flow;
use crate::plan::runs::{Blocks, Run, n_positions};
use crate::plan::types::{Lane, Plan};
use crate::plan::validate::{received_positions, sent_positions};

/// Sums over messages, by lane and step.
///
/// A sum has 64 bits and stands for a multiset of messages: two different ones agree with a
/// probability of about 2^-64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprints {
    /// By lane and step.
    sums: Vec<Vec<Sums>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    /// All that plans send, run by run.
    sent: u64,
    /// All that plans receive, run by run.
    received: u64,
    /// All positions that plans send.
    planned: u64,
    /// All positions that were executed.
    executed: u64,
}

/// A pair of ranks as a factor.
fn pair(from: Rank, to: Rank) -> u64 {
    scramble(u64::from(from.0) << 32 | u64::from(to.0)) | 1
}

/// The sum of the pseudo-random numbers of the positions below `end`. The sums are given and the
/// numbers are their differences, so that a run costs two evaluations.
fn below(end: u32) -> u64 {
    scramble(u64::from(end))
}

/// The positions of a message, as a sum that is the same however its runs are cut.
fn positions(from: Rank, to: Rank, runs: &[Run]) -> u64 {
    let sum = runs.iter().fold(0u64, |sum, run| {
        sum.wrapping_add(below(run.start.wrapping_add(run.len)).wrapping_sub(below(run.start)))
    });
    pair(from, to).wrapping_mul(sum)
}

/// The message with its runs in their order.
fn message(from: Rank, to: Rank, runs: &[Run]) -> u64 {
    runs.iter().fold(pair(from, to), |hash, run| {
        scramble(hash ^ (u64::from(run.start) << 32 | u64::from(run.len)))
    })
}

impl Fingerprints {
    pub(super) fn new(flow: &dyn Flow) -> Self {
        let lane = |lane: &crate::plan::LaneHeader| vec![Sums::default(); lane.n_steps];
        Fingerprints { sums: flow.lanes().iter().map(lane).collect() }
    }

    pub(super) fn add_executed(
        &mut self,
        lane: usize,
        step: usize,
        from: Rank,
        to: Rank,
        runs: &[Run],
    ) {
        let executed = &mut self.sums[lane][step].executed;
        *executed = executed.wrapping_add(positions(from, to, runs));
    }

    fn add_plan(&mut self, plan: &Plan) {
        for (lane, sums) in plan.lanes.iter().zip(&mut self.sums) {
            for (step, sums) in lane.steps.iter().zip(sums) {
                for send in &step.sends {
                    let hash = message(plan.rank, send.peer, &send.blocks);
                    sums.sent = sums.sent.wrapping_add(hash);
                    let positions = positions(plan.rank, send.peer, &send.blocks);
                    sums.planned = sums.planned.wrapping_add(positions);
                }
                for recv in &step.recvs {
                    let hash = message(recv.peer, plan.rank, &recv.blocks);
                    sums.received = sums.received.wrapping_add(hash);
                }
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Fingerprints) {
        let steps = self.sums.iter_mut().flatten().zip(other.sums.iter().flatten());
        for (own, other) in steps {
            own.sent = own.sent.wrapping_add(other.sent);
            own.received = own.received.wrapping_add(other.received);
            own.planned = own.planned.wrapping_add(other.planned);
            own.executed = own.executed.wrapping_add(other.executed);
        }
    }

    fn steps(&self, is_wrong: impl Fn(&Sums) -> bool) -> BTreeSet<(usize, usize)> {
        let lanes = self.sums.iter().enumerate();
        let all = lanes.flat_map(|(lane, steps)| {
            steps.iter().enumerate().map(move |(step, sums)| ((lane, step), sums))
        });
        all.filter(|(_, sums)| is_wrong(sums)).map(|(at, _)| at).collect()
    }

    /// Steps in which not every send meets a receive.
    pub(super) fn unmatched(&self) -> BTreeSet<(usize, usize)> {
        self.steps(|sums| sums.sent != sums.received)
    }

    /// Steps in which something else was executed than planned. With sums of barriers, each
    /// message is executed `times` over.
    pub(super) fn unplanned(&self, times: u64) -> BTreeSet<(usize, usize)> {
        self.steps(|sums| sums.planned.wrapping_mul(times) != sums.executed)
    }
}

/// Checks the plan of one rank by itself. Returns what the rank sends, as a multiple of n.
pub(super) fn check_plan(
    flow: &dyn Flow,
    rank: Rank,
    expect: &Expect,
    fingerprints: &mut Fingerprints,
    found: &mut Vec<Violation>,
) -> f64 {
    let plan = flow.plan(rank);
    if let Err(invalid) = plan.validate() {
        found.extend(invalid.into_iter().map(|invalid| Violation {
            rank,
            lane: invalid.lane,
            step: invalid.step,
            position: None,
            fault: Fault::Local(invalid.defect),
        }));
    }
    fingerprints.add_plan(&plan);
    let mut total = 0.0;
    for (index, (lane, header)) in plan.lanes.iter().zip(flow.lanes()).enumerate() {
        let sent = sent_positions(lane);
        total += sent as f64 * header.position_share();
        if let Some(expected) = expect.sent_per_rank.filter(|&expected| expected != sent) {
            let fault = Fault::Volume { sent, expected };
            found.push(Violation { rank, lane: Some(index), step: None, position: None, fault });
        }
    }
    if let Some(expected) = expect.at_root.filter(|_| rank == flow.root()) {
        let moved = |lane: &Lane| match flow.collective() {
            Collective::Gather => received_positions(lane),
            _ => sent_positions(lane),
        };
        let parts = plan.lanes.first().map_or(1, |lane| u64::from(lane.parts));
        let (moved, expected) = (plan.lanes.iter().map(moved).sum(), expected * parts);
        if moved != expected {
            let fault = Fault::AtRoot { moved, expected };
            found.push(Violation { rank, lane: None, step: None, position: None, fault });
        }
    }
    total
}

/// Names the messages that do not meet in some steps.
pub(super) fn find_unmatched(flow: &dyn Flow, steps: &BTreeSet<(usize, usize)>) -> Vec<Violation> {
    type Ends = (Option<Blocks>, Option<Blocks>);
    let mut messages: BTreeMap<(usize, usize, Rank, Rank), Ends> = BTreeMap::new();
    for rank in Rank::first(flow.n_ranks()) {
        let plan = flow.plan(rank);
        for &(lane, number) in steps {
            let Some(step) = plan.lanes.get(lane).and_then(|lane| lane.steps.get(number)) else {
                continue;
            };
            for send in &step.sends {
                let ends = messages.entry((lane, number, rank, send.peer)).or_default();
                ends.0 = Some(send.blocks.clone());
            }
            for recv in &step.recvs {
                let ends = messages.entry((lane, number, recv.peer, rank)).or_default();
                ends.1 = Some(recv.blocks.clone());
            }
        }
    }
    let mut found = Vec::new();
    for ((lane, step, from, to), ends) in messages {
        let (rank, fault) = match ends {
            (Some(sent), Some(awaited)) if sent == awaited => continue,
            (Some(sent), Some(awaited)) => {
                let (sent, awaited) = (n_positions(&sent), n_positions(&awaited));
                (to, Fault::DifferentRuns { from, sent, awaited })
            }
            (Some(_), None) => (from, Fault::UnmatchedSend { to }),
            (None, _) => (to, Fault::UnmatchedRecv { from }),
        };
        found.push(Violation { rank, lane: Some(lane), step: Some(step), position: None, fault });
    }
    found
}
