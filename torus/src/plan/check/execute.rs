//! The symbolic execution of a tile: the positions of one part, on all ranks.

use std::collections::HashMap;

use super::fault::{Fault, Found, Violation};
use super::ledger::{Contributors, Expected, Ledger};
use super::local::Fingerprints;
use crate::collectives::{Action, Cut, Share};
use crate::names::{Position, Rank};
use crate::plan::flow::{Flow, Message};
use crate::plan::order::Tile;
use crate::plan::types::Run;

/// What a unit of work finds; more of the same kind are not worth listing.
const MOST_VIOLATIONS: usize = 1000;

/// A message of the step at hand.
struct Pending {
    lane: usize,
    from: Rank,
    to: Rank,
    /// Its runs in the list of all.
    runs: std::ops::Range<usize>,
    /// The first of its positions among what is under way.
    first: usize,
}

pub(super) struct Execution<'a> {
    flow: &'a dyn Flow,
    /// The lanes that move the part.
    lanes: &'a [usize],
    tile: &'a Tile,
    width: usize,
    state: Ledger,
    /// Slots whose content was not sent since it was written, as bits.
    live: Vec<u64>,
    found: Vec<Violation>,
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        flow: &'a dyn Flow,
        lanes: &'a [usize],
        tile: &'a Tile,
        state: impl FnOnce(usize) -> Ledger,
    ) -> Self {
        let width = tile.positions().len();
        let slots = flow.n_ranks() as usize * width;
        let live = vec![0; slots.div_ceil(64)];
        Execution { flow, lanes, tile, width, state: state(slots), live, found: Vec::new() }
    }

    fn report(
        &mut self,
        rank: Rank,
        at: (usize, Option<usize>),
        slot: Option<usize>,
        fault: Fault,
    ) {
        if self.found.len() < MOST_VIOLATIONS {
            let (lane, step) = (Some(at.0), at.1);
            let position =
                slot.map(|slot| Position(self.tile.positions().start + (slot % self.width) as u32));
            self.found.push(Violation { rank, lane, step, position, fault });
        }
    }

    fn slot(&self, rank: Rank, position: u32) -> usize {
        rank.index() * self.width + (position - self.tile.positions().start) as usize
    }

    /// The tile's part of a share on a rank, as slots.
    fn slots(&self, share: Share, rank: Rank) -> std::ops::Range<usize> {
        let positions = self.flow.space(self.lanes[0], rank).positions(share, rank);
        let tile = self.tile.positions();
        let start = positions.start.clamp(tile.start, tile.end);
        let end = positions.end.clamp(start, tile.end);
        self.slot(rank, start)..self.slot(rank, start) + (end - start) as usize
    }

    /// Executes all steps and checks the outcome.
    pub(super) fn run(
        mut self,
        expected: &Expected,
        fingerprints: &mut Fingerprints,
    ) -> Vec<Violation> {
        self.fill();
        let mut under_way = self.state.empty_like();
        let n_steps = self.lanes.iter().map(|&lane| self.flow.lanes()[lane].n_steps).max();
        for step in 0..n_steps.unwrap_or(0) {
            under_way.clear();
            let (pending, runs) = self.send(step, &mut under_way, fingerprints);
            self.receive(step, &pending, &runs, &under_way);
        }
        self.verify(expected);
        self.found
    }

    /// The content at the start: what ranks give.
    fn fill(&mut self) {
        let (collective, root) = (self.flow.collective(), self.flow.root());
        for rank in Rank::first(self.flow.n_ranks()) {
            for slot in self.slots(collective.gives(rank, root), rank) {
                self.state.give(slot, rank);
                self.live[slot / 64] |= 1 << (slot % 64);
            }
        }
    }

    /// Reads all that is sent in a step.
    fn send(
        &mut self,
        step: usize,
        under_way: &mut Ledger,
        fingerprints: &mut Fingerprints,
    ) -> (Vec<Pending>, Vec<Run>) {
        let mut pending = Vec::new();
        let mut all_runs = Vec::new();
        let mut n_under_way = 0;
        let mut empty = Vec::new();
        for &lane in self.lanes {
            if step >= self.flow.lanes()[lane].n_steps {
                continue;
            }
            let tile = self.tile;
            self.flow.messages(lane, step, tile, &mut |Message { from, to, runs }| {
                let first_run = all_runs.len();
                pending.push(Pending {
                    lane,
                    from,
                    to,
                    runs: first_run..first_run + runs.len(),
                    first: n_under_way,
                });
                fingerprints.add_executed(lane, step, from, to, runs);
                for run in runs {
                    let first =
                        from.index() * self.width + (run.start - tile.positions().start) as usize;
                    let slots = first..first + run.len as usize;
                    if let Some(slot) = self.state.first_empty(slots.clone()) {
                        empty.push((from, lane, slot));
                    }
                    under_way.push(&self.state, slots.clone());
                    clear_bits(&mut self.live, slots);
                    n_under_way += run.len as usize;
                }
                all_runs.extend_from_slice(runs);
            });
        }
        for (from, lane, slot) in empty {
            self.report(from, (lane, Some(step)), Some(slot), Fault::SentEmpty);
        }
        (pending, all_runs)
    }

    /// Stores and combines what has arrived in a step.
    fn receive(&mut self, step: usize, pending: &[Pending], runs: &[Run], arrived: &Ledger) {
        // By slot: operands so far, and the expression of those to the left of the own one.
        let mut folds: HashMap<usize, (u32, Option<u64>)> = HashMap::new();
        let is_barrier = self.flow.lanes()[self.lanes[0]].space.cut == Cut::Token;
        for message in pending {
            let Pending { lane, from, to, .. } = *message;
            let at = (lane, Some(step));
            let action = self.flow.action(lane, step, to);
            let own_at = match action {
                Action::Reduce => self.flow.own_at(lane, step, to),
                Action::Copy => 0,
            };
            let mut source = message.first;
            for run in &runs[message.runs.clone()] {
                let slot = self.slot(to, run.start);
                let len = run.len as usize;
                match action {
                    Action::Copy => {
                        let lost = (0..len).find(|&i| {
                            self.live[(slot + i) / 64] >> ((slot + i) % 64) & 1 == 1
                                && self.state.differs(slot + i, arrived, source + i)
                        });
                        if let Some(i) = lost {
                            self.report(to, at, Some(slot + i), Fault::Overwritten);
                        }
                        self.state.store(slot, arrived, source, len);
                    }
                    Action::Reduce => {
                        let mut is_left = false;
                        if own_at > 0 {
                            for i in 0..len {
                                let (n_before, left) = folds.entry(slot + i).or_default();
                                is_left = *n_before < own_at;
                                if is_left {
                                    *left = Ledger::gather_left(*left, arrived, source + i);
                                } else if let Some(left) = left.take() {
                                    self.state.put_left(slot + i, left);
                                }
                                *n_before += 1;
                            }
                        }
                        let repeated = self.state.combine(slot, arrived, source, len, is_left);
                        // A barrier has nothing to count: hearing twice does no harm.
                        if let Some(slot) = repeated.filter(|_| !is_barrier) {
                            self.report(to, at, Some(slot), Fault::CountedTwice { from });
                        }
                    }
                }
                set_bits(&mut self.live, slot..slot + len);
                source += len;
            }
        }
        for (slot, (_, left)) in folds {
            if let Some(left) = left {
                self.state.put_left(slot, left);
            }
        }
    }

    /// The collective's post-condition: all that was given to a position is in it.
    fn verify(&mut self, expected: &Expected) {
        let (collective, root) = (self.flow.collective(), self.flow.root());
        let lane = self.lanes[0];
        // By position of the tile, the first rank that has it, for comparison.
        let mut first: Vec<Option<(Rank, u64)>> = vec![None; self.width];
        for rank in Rank::first(self.flow.n_ranks()) {
            for slot in self.slots(collective.gets(rank, root), rank) {
                let offset = slot % self.width;
                let position = Position(self.tile.positions().start + offset as u32);
                let space = self.flow.space(lane, rank);
                let block = space.block_at_end(rank, position);
                let contributors = match (collective.gives(Rank(block.0), root), space.cut) {
                    _ if collective.is_reduction() => Contributors::Everyone,
                    (_, Cut::Token) => Contributors::Everyone,
                    (_, Cut::Pairs) | (Share::Own, _) => Contributors::One(Rank(block.0)),
                    _ => Contributors::One(root),
                };
                let found = if self.state.is_complete(slot, contributors, expected) {
                    self.misdirected(rank, slot, position)
                } else {
                    Some(match (contributors, self.state.source(slot)) {
                        (Contributors::Everyone, _) => Found::Incomplete,
                        (Contributors::One(_), Some(other)) => Found::From(other),
                        (Contributors::One(_), None) => Found::Nothing,
                    })
                };
                if let Some(found) = found {
                    self.report(
                        rank,
                        (lane, None),
                        Some(slot),
                        Fault::WrongResult { block, found },
                    );
                } else if let Some(order) = self.state.order(slot) {
                    let (than, other) = *first[offset].get_or_insert((rank, order));
                    if other != order {
                        self.report(rank, (lane, None), Some(slot), Fault::DifferentOrder { than });
                    }
                }
            }
        }
    }

    /// For pairs: what came from the right rank may have been meant for another.
    fn misdirected(&self, rank: Rank, slot: usize, position: Position) -> Option<Found> {
        let lane = self.lanes[0];
        let source = self.state.source(slot)?;
        let space = self.flow.space(lane, source);
        if space.cut != Cut::Pairs {
            return None;
        }
        let block = space.block_at_start(source, position);
        (block.0 != rank.0).then_some(Found::For(block))
    }
}

fn clear_bits(bits: &mut [u64], range: std::ops::Range<usize>) {
    for_words(range, |word, mask| bits[word] &= !mask);
}

fn set_bits(bits: &mut [u64], range: std::ops::Range<usize>) {
    for_words(range, |word, mask| bits[word] |= mask);
}

/// The words that a range of bits touches, each with the bits of the range in it.
fn for_words(range: std::ops::Range<usize>, mut with: impl FnMut(usize, u64)) {
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min((at / 64 + 1) * 64);
        let n = end - at;
        let mask = if n == 64 { u64::MAX } else { ((1 << n) - 1) << (at % 64) };
        with(at / 64, mask);
        at = end;
    }
}
