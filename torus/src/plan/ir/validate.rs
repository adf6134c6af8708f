//! The local rules: everything that can be checked in one rank's plan alone. The checker and the engine apply the
//! same rules.

use std::sync::Arc;

use smallvec::SmallVec;

use super::defect::{Defect, LocatedDefect};
use super::runs::{Run, n_positions};
use super::split::Part;
use super::types::{Lane, Plan, Step, Transfer};
use crate::collectives::{Action, Payload};
use crate::names::{LaneId, Position, Rank, StepId};

impl Plan {
    /// Checks all rules that concern this rank's plan alone.
    ///
    /// # Errors
    /// All violations, in order of lanes and steps.
    pub fn validate(&self) -> Result<(), Vec<LocatedDefect>> {
        let mut found = PlanValidator { plan: self, found: Vec::new() };
        found.check_header();
        for (index, lane) in self.lanes.iter().enumerate() {
            found.check_space(index, lane);
            for (number, step) in lane.steps.iter().enumerate() {
                found.check_step(index, lane, number, step);
            }
        }
        // If runs are outside the space, accesses to positions cannot be checked.
        if found.found.is_empty() {
            found.check_sharing();
            found.check_room();
        }
        if found.found.is_empty() { Ok(()) } else { Err(found.found) }
    }
}

struct PlanValidator<'a> {
    plan: &'a Plan,
    found: Vec<LocatedDefect>,
}

impl PlanValidator<'_> {
    fn report(&mut self, lane: Option<usize>, step: Option<usize>, defect: Defect) {
        let (lane, step) = (lane.map(LaneId), step.map(StepId));
        self.found.push(LocatedDefect { lane, step, defect });
    }

    fn check_header(&mut self) {
        let Plan { collective, rank, n_ranks, root, ref lanes } = *self.plan;
        for (what, rank) in [("rank", rank), ("root", root)] {
            if rank.0 >= n_ranks {
                self.report(None, None, Defect::NoSuchRank { what, rank, n_ranks });
            }
        }
        if !collective.is_rooted() && root != Rank(0) {
            self.report(None, None, Defect::NoRoot { root });
        }
        let units = lanes.first().map_or(1, |lane| lane.part.units);
        let fits = |part: Part| part.units == units && part.start < part.end && part.end <= units;
        for (index, &Lane { part, .. }) in lanes.iter().enumerate() {
            if !fits(part) {
                self.report(Some(index), None, Defect::Part { part, units });
            }
        }
        let parts = parts(lanes).into_iter().filter(|&part| fits(part));
        let mut before = Part { start: 0, end: 0, units };
        for part in parts.chain([Part { start: units, end: units, units }]) {
            if part.start < before.end {
                self.report(None, None, Defect::Parts { part, other: before });
            } else if part.start > before.end {
                let part = Part { start: before.end, end: part.start, units };
                self.report(None, None, Defect::MissingPart { part });
            }
            before = part;
        }
    }

    fn check_space(&mut self, index: usize, lane: &Lane) {
        let Plan { collective, n_ranks, .. } = *self.plan;
        let space = &*lane.space;
        let payload = collective.payload();
        let fits = space.payload == payload
            && match payload {
                Payload::Blocks => space.n_positions == n_ranks,
                Payload::Pairs => space.n_blocks() == n_ranks,
                Payload::Vector => space.n_positions >= 1,
                Payload::Token => space.n_positions == 1,
            };
        if !fits {
            let expected = match payload {
                Payload::Blocks => format!("{n_ranks} blocks, one for each rank"),
                Payload::Pairs => format!("{n_ranks} blocks for this rank's pairs"),
                Payload::Vector => "pieces of a vector".to_owned(),
                Payload::Token => "one token".to_owned(),
            };
            let (found, payload) = (space.n_positions, space.payload.name());
            self.report(Some(index), None, Defect::Space { found, payload, expected });
            return;
        }
        if !self.has_rank() {
            return;
        }
        // Lanes usually share one space, or a few.
        let is_same = |other: &Lane| Arc::ptr_eq(&other.space, &lane.space);
        if self.plan.lanes[..index].iter().any(is_same) {
            return;
        }
        if let Err(what) = space.check_order(self.plan.rank, n_ranks) {
            self.report(Some(index), None, Defect::Order { what });
        }
    }

    /// True if the plan's rank is valid: only then are the places of blocks defined.
    fn has_rank(&self) -> bool {
        self.plan.rank.0 < self.plan.n_ranks
    }

    fn check_step(&mut self, index: usize, lane: &Lane, number: usize, step: &Step) {
        let at = (Some(index), Some(number));
        for transfers in [&step.sends, &step.recvs] {
            for Transfer { peer, port, runs } in transfers {
                let has_lane = |port| self.plan.lanes.iter().any(|lane| lane.port == port);
                if *port != lane.port && !has_lane(*port) {
                    self.report(at.0, at.1, Defect::Port { port: *port });
                }
                if peer.0 >= self.plan.n_ranks || *peer == self.plan.rank {
                    self.report(at.0, at.1, Defect::Peer { peer: *peer });
                }
                if runs.is_empty() {
                    self.report(at.0, at.1, Defect::NoBlocks { peer: *peer });
                }
                self.check_runs(at, lane.space.n_positions, runs);
            }
            if transfers.len() < 2 {
                continue;
            }
            let mut peers: SmallVec<[Rank; 32]> = transfers.iter().map(|each| each.peer).collect();
            peers.sort_unstable();
            for pair in peers.windows(2).filter(|pair| pair[0] == pair[1]) {
                self.report(at.0, at.1, Defect::PeerTwice { peer: pair[0] });
            }
        }
        if step.action == Action::Reduce {
            let is_combining =
                self.plan.collective.is_reduction() || lane.space.payload == Payload::Token;
            if !is_combining {
                self.report(at.0, at.1, Defect::NotAReduction);
            }
        }
        let own_at = step.own_at;
        if own_at > 0 {
            let n_recvs = fewest_operands(step);
            if own_at as usize > n_recvs {
                self.report(at.0, at.1, Defect::OwnAt { own_at, n_recvs });
            }
        }
        self.check_targets(at, step);
    }

    /// Checks that runs are non-empty, inside the working space, and disjoint.
    fn check_runs(&mut self, at: (Option<usize>, Option<usize>), n_positions: u32, runs: &[Run]) {
        for run in runs {
            let end = u64::from(run.start) + u64::from(run.len);
            if run.len == 0 || end > u64::from(n_positions) {
                self.report(at.0, at.1, Defect::Bounds { run: *run, n_positions });
            }
        }
        if let Some(run) = first_overlap(runs.iter().copied()) {
            self.report(at.0, at.1, Defect::Overlap { run });
        }
    }

    /// Checks that two messages are for the same position only as operands of one fold, that is, with equal runs.
    fn check_targets(&mut self, at: (Option<usize>, Option<usize>), step: &Step) {
        if step.recvs.len() < 2 {
            return;
        }
        let mut lists: Vec<&[Run]> = step.recvs.iter().map(|recv| &recv.runs[..]).collect();
        if step.action == Action::Reduce {
            lists.sort_unstable();
            lists.dedup();
        }
        let runs = lists.iter().flat_map(|runs| runs.iter().copied());
        if let Some(run) = first_overlap(runs) {
            self.report(at.0, at.1, Defect::Overlap { run });
        }
    }

    /// Checks that no two lanes with the same part access the same position, as their relative timing is undefined.
    fn check_sharing(&mut self) {
        let lanes = &self.plan.lanes;
        for (index, lane) in lanes.iter().enumerate() {
            let is_same = |other: &&Lane| other.part == lane.part;
            let Some(first) = lanes[..index].iter().find(is_same) else { continue };
            if !first.space.equals_on(&lane.space, self.plan.rank) {
                self.report(Some(index), None, Defect::Spaces { part: lane.part });
            }
        }
        for part in parts(lanes) {
            let sharing = (0..lanes.len()).filter(|&index| lanes[index].part == part);
            if sharing.clone().count() > 1 {
                self.check_owners(&sharing.collect::<Vec<_>>());
            }
        }
    }

    fn check_room(&mut self) {
        let Plan { rank, ref lanes, .. } = *self.plan;
        for (index, lane) in lanes.iter().enumerate() {
            for (number, step) in lane.steps.iter().enumerate() {
                for &Transfer { peer, ref runs, .. } in &step.recvs {
                    if let Some(position) = lane.space.first_without_room(rank, runs) {
                        let defect = Defect::NoRoom { peer, position };
                        self.report(Some(index), Some(number), defect);
                    }
                }
            }
        }
    }

    fn check_owners(&mut self, sharing: &[usize]) {
        let of_lane = |&lane: &usize| {
            let steps = self.plan.lanes[lane].steps.iter().enumerate();
            steps.flat_map(move |(step, Step { sends, recvs, .. })| {
                let runs = sends.iter().chain(recvs).flat_map(|transfer| &transfer.runs);
                runs.map(move |run| (*run, lane, step))
            })
        };
        let mut runs: Vec<_> = sharing.iter().flat_map(of_lane).collect();
        runs.sort_unstable();
        // Of the runs so far, the one that reaches farthest: a run that overlaps any of them overlaps this one.
        let mut farthest = (Run::new(0, 0), 0, 0);
        for now in runs {
            if now.0.start < farthest.0.end() && now.1 != farthest.1 {
                let [(_, other, _), (_, lane, step)] =
                    if now.1 < farthest.1 { [now, farthest] } else { [farthest, now] };
                let (position, other) = (Position(now.0.start), LaneId(other));
                self.report(Some(lane), Some(step), Defect::Shared { position, other });
                return;
            }
            if now.0.end() > farthest.0.end() {
                farthest = now;
            }
        }
    }
}

/// The different parts of lanes, ascending.
fn parts(lanes: &[Lane]) -> Vec<Part> {
    let mut parts: Vec<Part> = lanes.iter().map(|lane| lane.part).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// The fewest operands that any position receives which a step reduces into.
fn fewest_operands(step: &Step) -> usize {
    if step.action != Action::Reduce {
        return 0;
    }
    let mut lists: SmallVec<[&[Run]; 8]> = step.recvs.iter().map(|recv| &recv.runs[..]).collect();
    lists.sort_unstable();
    lists.chunk_by(|a, b| a == b).map(<[_]>::len).min().unwrap_or(0)
}

/// The first run that overlaps the run before it, in the order of their starts.
fn first_overlap(runs: impl Iterator<Item = Run> + Clone) -> Option<Run> {
    let are_apart = |a: &Run, b: &Run| u64::from(a.start) + u64::from(a.len) <= u64::from(b.start);
    // Usually the runs are in order.
    if runs.clone().is_sorted_by(are_apart) {
        return None;
    }
    let mut sorted: Vec<Run> = runs.collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| !are_apart(&pair[0], &pair[1])).map(|pair| pair[1])
}

/// Total number of positions that a lane sends.
pub fn sent_positions(lane: &Lane) -> u64 {
    let sends = lane.steps.iter().flat_map(|step| &step.sends);
    sends.map(|send| n_positions(&send.runs)).sum()
}

/// Total number of positions that a lane receives.
pub fn received_positions(lane: &Lane) -> u64 {
    let recvs = lane.steps.iter().flat_map(|step| &step.recvs);
    recvs.map(|recv| n_positions(&recv.runs)).sum()
}
