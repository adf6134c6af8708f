//! The symbolic execution of a tile: the positions of one part of the data, on all ranks.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::contents::Content;
use super::expected::Expected;
use super::fault::{PlanFault, Violation, WrongContent};
use super::local::Fingerprints;
use super::operands::Operands;
use super::strips::Strips;
use super::values::{Value, Values};
use crate::collectives::{Action, Payload, Share, Sums};
use crate::names::{LaneId, Position, Rank, StepId};
use crate::plan::ir::flow::{Flow, Message};
use crate::plan::ir::members::Tile;

/// Most violations that a unit of work reports.
const MOST_VIOLATIONS: usize = 1000;
/// Number of values from which on values that no position holds are forgotten.
const MANY_VALUES: usize = 1 << 16;

/// A lane, and a step; `None` stands for the end.
type LaneStep = (LaneId, Option<StepId>);

/// A run of a message of the current step, with its content.
#[derive(Clone)]
struct Sent {
    lane: LaneId,
    from: Rank,
    to: Rank,
    /// Positions, relative to the tile's first position.
    range: Range<u32>,
    content: Content,
    /// What the receiver does with the content.
    action: Action,
}

/// The memory of an execution, reused for the next tile.
#[derive(Debug)]
pub(super) struct TileScratch {
    values: Values,
    strips: Strips,
    /// By position, if several ranks must end with the same bits: the expression of the first rank that was
    /// verified, and that rank.
    orders: Vec<Option<(Option<u64>, Rank)>>,
    operands: Operands,
}

impl TileScratch {
    /// Memory for the execution with `values`.
    pub(super) fn new(values: Values) -> Self {
        let (strips, operands) = (Strips::default(), Operands::default());
        TileScratch { values, strips, orders: Vec::new(), operands }
    }
}

pub(super) struct Execution<'a> {
    flow: &'a dyn Flow,
    /// The lanes that move the tile's part of the data.
    lanes: &'a [LaneId],
    tile: &'a Tile,
    scratch: &'a mut TileScratch,
    /// True if some ranks have nothing in some positions at the start.
    has_empty: bool,
    found: Vec<Violation>,
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        flow: &'a dyn Flow,
        lanes: &'a [LaneId],
        tile: &'a Tile,
        base: u32,
        scratch: &'a mut TileScratch,
    ) -> Self {
        let width = tile.positions().len();
        // Expressions are compared if several ranks get the same result.
        scratch.values.reset(base, flow.collective().gets_copies());
        scratch.strips.reset(flow.n_ranks(), width as u32);
        scratch.operands.reset(flow.n_ranks());
        scratch.orders.clear();
        scratch.orders.resize(width, None);
        let has_empty = !combines(flow) || flow.collective().sums() != Sums::Everyone;
        Execution { flow, lanes, tile, scratch, has_empty, found: Vec::new() }
    }

    /// Reports a fault in position `at`, relative to the tile's first position.
    fn report(&mut self, rank: Rank, (lane, step): LaneStep, at: u32, fault: PlanFault) {
        if self.found.len() < MOST_VIOLATIONS {
            let position = Some(Position(self.tile.positions().start + at));
            self.found.push(Violation { rank, lane: Some(lane), step, position, fault });
        }
    }

    /// The tile's part of a share on a rank, at the start or at the end, relative to the tile's first position.
    fn share(&self, share: Share, rank: Rank, at_end: bool) -> SmallVec<[Range<u32>; 1]> {
        let positions = self.flow.space(self.lanes[0], rank).positions(share, rank, at_end);
        let tile = self.tile.positions();
        let clip = |positions: Range<u32>| {
            let start = positions.start.clamp(tile.start, tile.end);
            start - tile.start..positions.end.clamp(start, tile.end) - tile.start
        };
        positions.into_iter().map(clip).filter(|range| !range.is_empty()).collect()
    }

    /// Executes all steps and checks the outcome.
    pub(super) fn run(
        mut self,
        expected: &Expected,
        fingerprints: &mut Fingerprints,
    ) -> Vec<Violation> {
        self.fill();
        let n_steps = self.lanes.iter().map(|&lane| self.flow.lanes()[lane.index()].n_steps).max();
        for step in StepId::first(n_steps.unwrap_or(0)) {
            let sent = self.send(step, fingerprints);
            self.receive(step, &sent);
            self.free_unused();
        }
        self.verify(expected);
        self.found
    }

    /// Writes the data that ranks give at the start.
    fn fill(&mut self) {
        let (collective, root) = (self.flow.collective(), self.flow.root());
        for rank in Rank::first(self.flow.n_ranks()) {
            let gives = collective.gives(rank, root, self.flow.n_ranks());
            for range in self.share(gives, rank, false) {
                self.scratch.strips.write(rank, &range, Content::of(Value::of(rank)));
            }
        }
    }

    /// All runs that are sent in a step; they are read before anything is stored.
    fn send(&mut self, step: StepId, fingerprints: &mut Fingerprints) -> Vec<Sent> {
        let mut sent: Vec<Sent> = Vec::new();
        let first = self.tile.positions().start;
        for &lane in self.lanes {
            if step.index() >= self.flow.lanes()[lane.index()].n_steps {
                continue;
            }
            let TileScratch { strips, operands, .. } = &mut *self.scratch;
            operands.begin_step();
            let mut visit = |message: Message<'_>| {
                let Message { from, to, runs } = message;
                let action = self.flow.action(lane, step, to);
                let index = match action {
                    Action::Copy => 0,
                    Action::Reduce => operands.next(to, runs),
                };
                fingerprints.add_executed(lane, step, message, index);
                for run in runs {
                    let range = run.start - first..run.end() - first;
                    let content = strips.send(from, &range);
                    sent.push(Sent { lane, from, to, range, content, action });
                }
            };
            self.flow.messages(lane, step, self.tile, &mut visit);
        }
        if self.has_empty {
            for Sent { lane, from, range, content, .. } in &sent {
                if let Some(at) = self.scratch.strips.chunks.first_empty(*content, range) {
                    self.report(*from, (*lane, Some(step)), at, PlanFault::SentEmpty);
                }
            }
        }
        sent
    }

    /// Stores and combines the data received in a step.
    fn receive(&mut self, step: StepId, sent: &[Sent]) {
        // Messages to ranks whose own value is not the first operand are folded together. Each lane has its own
        // order of operands.
        let mut folds: BTreeMap<(Rank, LaneId), (u32, Vec<&Sent>)> = BTreeMap::new();
        for message in sent {
            let Sent { lane, to, ref range, content, action, .. } = *message;
            let at = (lane, Some(step));
            match action {
                Action::Copy => {
                    let TileScratch { strips, values, .. } = &mut *self.scratch;
                    if let Some(lost) = strips.overwrite(to, range, content, values) {
                        self.report(to, at, lost, PlanFault::Overwritten);
                    }
                }
                Action::Reduce => match self.flow.own_at(lane, step, to) {
                    0 => self.fold(step, to, range, &[], &[message]),
                    own_at => {
                        let fold = folds.entry((to, lane)).or_insert((own_at, Vec::new()));
                        fold.1.push(message);
                    }
                },
            }
        }
        for ((to, _), (own_at, messages)) in folds {
            let ends = messages.iter().flat_map(|message| [message.range.start, message.range.end]);
            let mut ends: Vec<u32> = ends.collect();
            ends.sort_unstable();
            ends.dedup();
            for range in ends.windows(2).map(|ends| ends[0]..ends[1]) {
                let covers = |message: &&&Sent| {
                    message.range.start <= range.start && range.end <= message.range.end
                };
                let operands: Vec<&Sent> = messages.iter().filter(covers).copied().collect();
                if !operands.is_empty() {
                    let (left, right) = operands.split_at(operands.len().min(own_at as usize));
                    self.fold(step, to, &range, left, right);
                }
            }
        }
    }

    /// Combines operands in this order: `left`, the rank's own value, `right`. Each of them covers `range`.
    fn fold(
        &mut self,
        step: StepId,
        to: Rank,
        range: &Range<u32>,
        left: &[&Sent],
        right: &[&Sent],
    ) {
        let TileScratch { strips, values, .. } = &mut *self.scratch;
        let mut lacking = None;
        let mut repeated: Option<(&Sent, u32)> = None;
        strips.update(to, range, |chunks, own| {
            lacking = if self.has_empty { chunks.first_empty(own, range) } else { None };
            let mut result: Option<Content> = None;
            let operands = left.iter().map(|sent| Some(*sent));
            let operands = operands.chain([None]).chain(right.iter().map(|sent| Some(*sent)));
            for operand in operands {
                let content = match operand {
                    Some(sent) => chunks.part(sent.content, &sent.range, range),
                    None => own,
                };
                result = Some(match result {
                    None => content,
                    Some(so_far) => {
                        let (content, twice) = chunks.combine(so_far, content, range, values);
                        let by = operand.or(left.last().copied());
                        repeated = repeated.or(by.zip(twice));
                        content
                    }
                });
            }
            result.unwrap_or(own)
        });
        let lane = left.iter().chain(right).map(|sent| sent.lane).next().unwrap_or(self.lanes[0]);
        if let Some(at) = lacking {
            self.report(to, (lane, Some(step)), at, PlanFault::CombinedEmpty);
        }
        // In a barrier a rank may receive a contribution twice: nothing is counted.
        if let Some((sent, at)) = repeated.filter(|_| !is_barrier(self.flow)) {
            let (lane, from) = (sent.lane, sent.from);
            self.report(to, (lane, Some(step)), at, PlanFault::CountedTwice { from });
        }
    }

    /// Forgets values that no rank holds. Only barriers need this: their sets are long, and each step makes new
    /// values.
    fn free_unused(&mut self) {
        let TileScratch { values, strips, .. } = &mut *self.scratch;
        if is_barrier(self.flow) && values.n_free() == 0 && values.len() > MANY_VALUES {
            let mut is_held = vec![false; values.len()];
            strips.mark(&mut is_held);
            values.retain(&is_held);
        }
    }

    /// Checks the collective's post-condition: every position holds all that was given to it.
    fn verify(&mut self, expected: &Expected) {
        let (collective, root) = (self.flow.collective(), self.flow.root());
        // If a position is the same block on all ranks, the same rank has given it everywhere.
        let space = self.flow.space(self.lanes[0], Rank(0));
        let is_of_all = space.payload != Payload::Pairs && !combines(self.flow);
        let sources: Vec<Option<Rank>> = match is_of_all {
            true => self.tile.positions().map(|at| self.source_of(Rank(0), Position(at))).collect(),
            false => Vec::new(),
        };
        let n_ranks = self.flow.n_ranks();
        // For scans: the set of the ranks up to the current one, extended from one rank to the next.
        let mut of_prefix = expected.nobody();
        for rank in Rank::first(n_ranks) {
            let ranges = self.share(collective.gets(rank, root, n_ranks), rank, true);
            if ranges.is_empty() {
                continue;
            }
            let end = collective.contributors(rank, n_ranks);
            let expected = if end == n_ranks {
                expected
            } else {
                of_prefix.extend(end);
                &of_prefix
            };
            let combines = combines(self.flow);
            let TileScratch { values, strips, orders, .. } = &mut *self.scratch;
            let mut is_right = |value: Value, range: &Range<u32>| {
                let range = range.start as usize..range.end as usize;
                if !combines {
                    let source = values.source(value);
                    return is_of_all && sources[range].iter().all(|&other| other == source);
                }
                let order = values.order(value);
                values.is_complete(value, expected)
                    && orders[range]
                        .iter_mut()
                        .all(|like| like.get_or_insert((order, rank)).0 == order)
            };
            let is_common = collective.sums() == Sums::Everyone;
            let mut wrong = Vec::new();
            let contents: Vec<_> =
                ranges.iter().flat_map(|range| strips.contents(rank, range)).collect();
            for (range, content) in contents {
                if !strips.chunks.are_right(content, &range, is_common, &mut is_right) {
                    wrong.push((range, content));
                }
            }
            for (range, content) in wrong {
                self.explain(rank, range, content, expected);
            }
        }
    }

    /// The rank whose contribution `rank` must hold in a position at the end, if nothing is combined.
    fn source_of(&self, rank: Rank, position: Position) -> Option<Rank> {
        let space = self.flow.space(self.lanes[0], rank);
        let block = space.block_at_end(rank, position)?;
        let root = self.flow.root();
        let n_ranks = self.flow.n_ranks();
        Some(match (self.flow.collective().gives(Rank(block.0), root, n_ranks), space.payload) {
            (_, Payload::Pairs) | (Share::Own, _) => Rank(block.0),
            _ => root,
        })
    }

    /// Reports, position by position, what is wrong in a content.
    fn explain(&mut self, rank: Rank, range: Range<u32>, content: Content, expected: &Expected) {
        let lane = self.lanes[0];
        let mut start = range.start;
        for stretch in self.scratch.strips.chunks.stretches(content, range.end, &range) {
            for at in start..stretch.end {
                if let Some(fault) = self.fault(rank, at, stretch.value, expected) {
                    self.report(rank, (lane, None), at, fault);
                }
            }
            start = stretch.end;
        }
    }

    /// The fault of a value that a position holds at the end; `None` if the value is right.
    fn fault(&self, rank: Rank, at: u32, value: Value, expected: &Expected) -> Option<PlanFault> {
        let position = Position(self.tile.positions().start + at);
        let space = self.flow.space(self.lanes[0], rank);
        let TileScratch { values, orders, .. } = &*self.scratch;
        let found = if combines(self.flow) {
            match values.is_out_of_order(value) {
                true => Some(WrongContent::OutOfOrder),
                false => (!values.is_complete(value, expected)).then_some(WrongContent::Incomplete),
            }
        } else {
            match values.source(value) {
                Some(source) if Some(source) == self.source_of(rank, position) => {
                    self.misdirected(rank, source, position)
                }
                Some(other) => Some(WrongContent::From(other)),
                None => Some(WrongContent::Nothing),
            }
        };
        if let Some(found) = found {
            let block = space.block_at_end(rank, position)?;
            return Some(PlanFault::WrongResult { block, found });
        }
        let (order, than) = orders[at as usize]?;
        (order != values.order(value)).then_some(PlanFault::DifferentOrder { than })
    }

    /// For alltoalls: the right rank gave the block, but it is a block for another rank.
    fn misdirected(&self, rank: Rank, source: Rank, position: Position) -> Option<WrongContent> {
        let space = self.flow.space(self.lanes[0], source);
        if space.payload != Payload::Pairs {
            return None;
        }
        let block = space.block_at_start(source, position)?;
        (block.0 != rank.0).then_some(WrongContent::For(block))
    }
}

pub(super) fn is_barrier(flow: &dyn Flow) -> bool {
    flow.collective().payload() == Payload::Token
}

/// True if contents are combined: contributions to a reduction, or in a barrier the set of ranks heard from.
pub(super) fn combines(flow: &dyn Flow) -> bool {
    flow.collective().is_reduction() || is_barrier(flow)
}
