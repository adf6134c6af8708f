//! Checks of single plans: the local rules and the agreement with the flow that is executed. Also fingerprints of
//! all messages, by which sends are compared with receives, and plans with the messages that are executed.

use std::collections::{BTreeMap, BTreeSet};

use super::Expect;
use super::fault::{PlanFault, Violation};
use super::splitmix64::splitmix64;
use crate::collectives::{Action, Collective, Payload};
use crate::names::{LaneId, Rank, StepId};
use crate::plan::ir::flow::{Flow, Message};
use crate::plan::ir::runs::{Run, n_positions};
use crate::plan::ir::types::{Lane, Plan, Transfer};
use crate::plan::ir::validate::{received_positions, sent_positions};

/// Sums of hashes of messages, by lane and step.
///
/// A sum has 64 bits and represents a multiset of messages: two different multisets have the same sum with a
/// probability of about 2^-64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprints {
    /// By lane and step.
    sums: Vec<Vec<Fingerprint>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fingerprint {
    /// Sum over all sends in plans, with their runs in order.
    sent: u64,
    /// Sum over all receives in plans, with their runs in order.
    received: u64,
    /// Sum over all positions that plans receive.
    planned: u64,
    /// Sum over all positions that were executed.
    executed: u64,
}

/// An odd factor that represents a pair of ranks.
fn pair(from: Rank, to: Rank) -> u64 {
    splitmix64(u64::from(from.0) << 32 | u64::from(to.0)) | 1
}

/// The sum of the pseudo-random numbers of the positions below `end`. The number of a position is defined as the
/// difference of two such sums, so a run costs two evaluations.
fn below(end: u32) -> u64 {
    splitmix64(u64::from(end))
}

/// Hash of the positions of a message, independent of how they are cut into runs.
fn positions(from: Rank, to: Rank, runs: &[Run]) -> u64 {
    let sum = runs.iter().fold(0u64, |sum, run| {
        sum.wrapping_add(below(run.start.wrapping_add(run.len)).wrapping_sub(below(run.start)))
    });
    pair(from, to).wrapping_mul(sum)
}

/// Like [`positions`], for a message that is the `index`th operand of a fold.
fn operand(message: Message<'_>, index: u32) -> u64 {
    let sum = positions(message.from, message.to, message.runs);
    // Most messages are the first operand.
    if index == 0 { sum } else { sum.wrapping_mul(splitmix64(u64::from(index)) | 1) }
}

/// Hash of a message with its port, and its runs in order.
fn message(from: Rank, to: Rank, transfer: &Transfer) -> u64 {
    let ends = splitmix64(pair(from, to) ^ u64::from(transfer.port.0));
    transfer.runs.iter().fold(ends, |hash, run| {
        splitmix64(hash ^ (u64::from(run.start) << 32 | u64::from(run.len)))
    })
}

impl Fingerprints {
    pub(super) fn new(flow: &dyn Flow) -> Self {
        let lane = |lane: &crate::plan::LaneHeader| vec![Fingerprint::default(); lane.n_steps];
        Fingerprints { sums: flow.lanes().iter().map(lane).collect() }
    }

    /// Adds a message, or a part of one. `index` is its number among the operands of its fold; 0 if it is stored.
    pub(super) fn add_executed(
        &mut self,
        lane: LaneId,
        step: StepId,
        message: Message<'_>,
        index: u32,
    ) {
        let executed = &mut self.sums[lane.index()][step.index()].executed;
        *executed = executed.wrapping_add(operand(message, index));
    }

    fn add_plan(&mut self, plan: &Plan) {
        for (lane, sums) in plan.lanes.iter().zip(&mut self.sums) {
            for (step, sums) in lane.steps.iter().zip(sums) {
                for send in &step.sends {
                    let hash = message(plan.rank, send.peer, send);
                    sums.sent = sums.sent.wrapping_add(hash);
                }
                let mut n_operands: BTreeMap<&[Run], u32> = BTreeMap::new();
                for recv in &step.recvs {
                    let hash = message(recv.peer, plan.rank, recv);
                    sums.received = sums.received.wrapping_add(hash);
                    let mut index = 0;
                    if step.action == Action::Reduce && step.recvs.len() > 1 {
                        let next = n_operands.entry(&recv.runs).or_default();
                        index = *next;
                        *next += 1;
                    }
                    let (from, to, runs) = (recv.peer, plan.rank, &recv.runs[..]);
                    let planned = operand(Message { from, to, runs }, index);
                    sums.planned = sums.planned.wrapping_add(planned);
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

    fn steps(&self, is_wrong: impl Fn(&Fingerprint) -> bool) -> BTreeSet<(LaneId, StepId)> {
        let lanes = self.sums.iter().enumerate();
        let all = lanes.flat_map(|(lane, steps)| {
            steps.iter().enumerate().map(move |(step, sums)| ((LaneId(lane), StepId(step)), sums))
        });
        all.filter(|(_, sums)| is_wrong(sums)).map(|(at, _)| at).collect()
    }

    /// Steps in which the sends do not match the receives.
    pub(super) fn unmatched(&self) -> BTreeSet<(LaneId, StepId)> {
        self.steps(|sums| sums.sent != sums.received)
    }

    /// Steps in which the messages executed are not those of the plans. In a barrier each message is executed
    /// `times` times.
    pub(super) fn unplanned(&self, times: u64) -> BTreeSet<(LaneId, StepId)> {
        self.steps(|sums| sums.planned.wrapping_mul(times) != sums.executed)
    }
}

/// Checks the plan of one rank by itself. Returns the volume that the rank sends, as a multiple of n.
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
            fault: PlanFault::Local(invalid.defect),
        }));
    }
    compare(flow, &plan, rank, found);
    fingerprints.add_plan(&plan);
    let mut total = 0.0;
    for (index, (lane, header)) in plan.lanes.iter().zip(flow.lanes()).enumerate() {
        let sent = sent_positions(lane);
        total += sent as f64 * header.position_share();
        if let Some(expected) = expect.sent_per_rank.filter(|&expected| expected != sent) {
            let fault = PlanFault::Volume { sent, expected };
            found.push(Violation {
                rank,
                lane: Some(LaneId(index)),
                step: None,
                position: None,
                fault,
            });
        }
    }
    if let Some(expected) = expect.at_root.filter(|_| rank == flow.root()) {
        let moved = |lane: &Lane| match flow.collective() {
            Collective::Gather => received_positions(lane),
            _ => sent_positions(lane),
        };
        // Count in units of the data: a position is as many units as its lane's part.
        let moved = |lane: &Lane| moved(lane) * u64::from(lane.part.weight());
        let units = plan.lanes.first().map_or(1, |lane| u64::from(lane.part.units));
        let (moved, expected) = (plan.lanes.iter().map(moved).sum(), expected * units);
        if moved != expected {
            let fault = PlanFault::AtRoot { moved, expected };
            found.push(Violation { rank, lane: None, step: None, position: None, fault });
        }
    }
    total
}

/// Compares a plan, except its messages, with what the flow executes on its rank.
fn compare(flow: &dyn Flow, plan: &Plan, rank: Rank, found: &mut Vec<Violation>) {
    let mut differs = |lane: Option<usize>, step: Option<usize>, what| {
        let (lane, step) = (lane.map(LaneId), step.map(StepId));
        let fault = PlanFault::DifferentFlow { what };
        found.push(Violation { rank, lane, step, position: None, fault });
    };
    let executed = (flow.collective(), rank, flow.n_ranks(), flow.root());
    if (plan.collective, plan.rank, plan.n_ranks, plan.root) != executed {
        differs(None, None, "collective, ranks or root");
    }
    if plan.lanes.len() != flow.lanes().len() {
        differs(None, None, "the number of lanes");
    }
    for (index, (lane, header)) in plan.lanes.iter().zip(flow.lanes()).enumerate() {
        let Lane { port, part, window, ref space, ref steps } = *lane;
        let executed = (header.port, header.part, header.window);
        if (port, part, window) != executed {
            differs(Some(index), None, "port, part or window");
        }
        // Blocks of pairs have different positions on different ranks.
        let is_common = space.payload == Payload::Pairs || space.equals_on(&header.space, rank);
        if !is_common || !space.equals_on(flow.space(LaneId(index), rank), rank) {
            differs(Some(index), None, "positions or the order of their blocks");
        }
        if steps.len() != header.n_steps {
            differs(Some(index), None, "the number of steps");
        }
        for (number, step) in steps.iter().enumerate().take(header.n_steps) {
            let port = |from, to| flow.port(LaneId(index), StepId(number), from, to);
            // Receives need no check: their ports are compared with those of the sends.
            if step.sends.iter().any(|send| send.port != port(rank, send.peer)) {
                differs(Some(index), Some(number), "the port of a message");
            }
            if step.recvs.is_empty() {
                continue;
            }
            if step.action != flow.action(LaneId(index), StepId(number), rank) {
                differs(Some(index), Some(number), "the action");
            } else if step.action == Action::Reduce
                && step.own_at != flow.own_at(LaneId(index), StepId(number), rank)
            {
                differs(Some(index), Some(number), "the own operand's place");
            }
        }
    }
}

/// Reports the sends and receives that do not match in the given steps.
pub(super) fn find_unmatched(
    flow: &dyn Flow,
    steps: &BTreeSet<(LaneId, StepId)>,
) -> Vec<Violation> {
    type Ends = (Option<Transfer>, Option<Transfer>);
    let mut messages: BTreeMap<(LaneId, StepId, Rank, Rank), Ends> = BTreeMap::new();
    for rank in Rank::first(flow.n_ranks()) {
        let plan = flow.plan(rank);
        for &(lane, number) in steps {
            let Some(step) =
                plan.lanes.get(lane.index()).and_then(|lane| lane.steps.get(number.index()))
            else {
                continue;
            };
            for send in &step.sends {
                let ends = messages.entry((lane, number, rank, send.peer)).or_default();
                ends.0 = Some(send.clone());
            }
            for recv in &step.recvs {
                let ends = messages.entry((lane, number, recv.peer, rank)).or_default();
                ends.1 = Some(recv.clone());
            }
        }
    }
    let mut found = Vec::new();
    for ((lane, step, from, to), ends) in messages {
        let (rank, fault) = match ends {
            (Some(sent), Some(awaited)) if sent.port != awaited.port => {
                let (sent, awaited) = (sent.port, awaited.port);
                (to, PlanFault::DifferentPorts { from, sent, awaited })
            }
            (Some(sent), Some(awaited)) if sent.runs == awaited.runs => continue,
            (Some(sent), Some(awaited)) => {
                let (sent, awaited) = (n_positions(&sent.runs), n_positions(&awaited.runs));
                (to, PlanFault::DifferentRuns { from, sent, awaited })
            }
            (Some(_), None) => (from, PlanFault::UnmatchedSend { to }),
            (None, _) => (to, PlanFault::UnmatchedRecv { from }),
        };
        found.push(Violation { rank, lane: Some(lane), step: Some(step), position: None, fault });
    }
    found
}
