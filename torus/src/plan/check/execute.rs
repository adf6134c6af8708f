//! The symbolic execution of a tile: the positions of one part, on all ranks.

use std::collections::HashMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::expected::Expected;
use super::fault::{Fault, Found, Violation};
use super::ledger::{Contributors, Ledger};
use super::local::Fingerprints;
use crate::collectives::{Action, Cut, Share, Sums};
use crate::names::{Block, Position, Rank};
use crate::plan::flow::{Flow, Message};
use crate::plan::members::Tile;
use crate::plan::types::Run;

/// What a unit of work finds; more of the same kind are not worth listing.
const MOST_VIOLATIONS: usize = 1000;

/// A message of the step at hand.
struct Pending {
    lane: usize,
    from: Rank,
    to: Rank,
    /// Its runs in the list of all.
    runs: Range<usize>,
}

/// The memory of an execution, to be used again for the next tile.
#[derive(Debug)]
pub(super) struct Scratch {
    state: Ledger,
    /// What is under way in a step in which some rank overwrites what it sends.
    under_way: Ledger,
    /// Slots whose content was not sent since it was written, as bits.
    live: Vec<u64>,
    /// Slots that are sent in the step at hand.
    sent: Vec<u64>,
}

impl Scratch {
    /// For contents of the kind of `ledger`.
    pub(super) fn new(ledger: Ledger) -> Self {
        let under_way = ledger.clone();
        Scratch { state: ledger, under_way, live: Vec::new(), sent: Vec::new() }
    }
}

pub(super) struct Execution<'a> {
    flow: &'a dyn Flow,
    /// The lanes that move the part.
    lanes: &'a [usize],
    tile: &'a Tile,
    width: usize,
    scratch: &'a mut Scratch,
    /// Some ranks begin with nothing; elsewhere every slot is given something, tracked or not.
    has_empty: bool,
    found: Vec<Violation>,
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        flow: &'a dyn Flow,
        lanes: &'a [usize],
        tile: &'a Tile,
        base: u32,
        scratch: &'a mut Scratch,
    ) -> Self {
        let width = tile.positions().len();
        let slots = flow.n_ranks() as usize * width;
        // Expressions are compared if several ranks get the same.
        scratch.state.reset(slots, base, flow.collective().gets_copies());
        for bits in [&mut scratch.live, &mut scratch.sent] {
            bits.clear();
            bits.resize(slots.div_ceil(64), 0);
        }
        let has_empty = !combines(flow) || flow.collective().sums() != Sums::Everyone;
        Execution { flow, lanes, tile, width, scratch, has_empty, found: Vec::new() }
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

    /// The tile's part of a share on a rank, at the start or in the end, as slots.
    fn slots(&self, share: Share, rank: Rank, at_end: bool) -> SmallVec<[Range<usize>; 1]> {
        let positions = self.flow.space(self.lanes[0], rank).positions(share, rank, at_end);
        let tile = self.tile.positions();
        let clip = |positions: Range<u32>| {
            let start = positions.start.clamp(tile.start, tile.end);
            let end = positions.end.clamp(start, tile.end);
            self.slot(rank, start)..self.slot(rank, start) + (end - start) as usize
        };
        positions.into_iter().map(clip).filter(|slots| !slots.is_empty()).collect()
    }

    /// Executes all steps and checks the outcome.
    pub(super) fn run(
        mut self,
        expected: &Expected,
        fingerprints: &mut Fingerprints,
    ) -> Vec<Violation> {
        self.fill();
        let n_steps = self.lanes.iter().map(|&lane| self.flow.lanes()[lane].n_steps).max();
        for step in 0..n_steps.unwrap_or(0) {
            let (pending, runs) = self.send(step, fingerprints);
            self.receive(step, &pending, &runs);
        }
        self.verify(expected);
        self.found
    }

    /// The content at the start: what ranks give.
    fn fill(&mut self) {
        let (collective, root) = (self.flow.collective(), self.flow.root());
        for rank in Rank::first(self.flow.n_ranks()) {
            let gives = collective.gives(rank, root, self.flow.n_ranks());
            for slots in self.slots(gives, rank, false) {
                self.scratch.state.give(slots.clone(), rank);
                set_bits(&mut self.scratch.live, slots);
            }
        }
    }

    /// The slots of a run on a rank.
    fn run_slots(&self, rank: Rank, run: &Run) -> Range<usize> {
        let first = self.slot(rank, run.start);
        first..first + run.len as usize
    }

    /// Lists all that is sent in a step. If some rank overwrites what it sends, what is under
    /// way is read now; else it is where it comes from until it has arrived.
    fn send(&mut self, step: usize, fingerprints: &mut Fingerprints) -> (Vec<Pending>, Vec<Run>) {
        let mut pending: Vec<Pending> = Vec::new();
        let mut all_runs: Vec<Run> = Vec::new();
        for &lane in self.lanes {
            if step >= self.flow.lanes()[lane].n_steps {
                continue;
            }
            let mut visit = |Message { from, to, runs }: Message<'_>| {
                let runs_of = all_runs.len()..all_runs.len() + runs.len();
                pending.push(Pending { lane, from, to, runs: runs_of });
                fingerprints.add_executed(lane, step, from, to, runs);
                all_runs.extend_from_slice(runs);
            };
            self.flow.messages(lane, step, self.tile, &mut visit);
        }
        for message in &pending {
            for run in &all_runs[message.runs.clone()] {
                let slots = self.run_slots(message.from, run);
                if self.has_empty
                    && let Some(slot) = self.scratch.state.first_empty(slots.clone())
                {
                    let at = (message.lane, Some(step));
                    self.report(message.from, at, Some(slot), Fault::SentEmpty);
                }
                clear_bits(&mut self.scratch.live, slots.clone());
                set_bits(&mut self.scratch.sent, slots);
            }
        }
        let is_overwritten = |message: &Pending| {
            let mut runs = all_runs[message.runs.clone()].iter();
            runs.any(|run| any_bit(&self.scratch.sent, self.run_slots(message.to, run)))
        };
        let reads_ahead = pending.iter().any(is_overwritten);
        self.scratch.under_way.clear();
        for message in &pending {
            for run in &all_runs[message.runs.clone()] {
                let slots = self.run_slots(message.from, run);
                let Scratch { state, under_way, sent, .. } = &mut *self.scratch;
                if reads_ahead {
                    under_way.push(state, slots.clone());
                }
                clear_bits(sent, slots);
            }
        }
        (pending, all_runs)
    }

    /// Stores and combines what has arrived in a step.
    fn receive(&mut self, step: usize, pending: &[Pending], runs: &[Run]) {
        let under_way = std::mem::replace(&mut self.scratch.under_way, Ledger::sources());
        let arrived = Some(&under_way).filter(|under_way| !under_way.is_empty());
        let mut next_under_way = 0;
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
            for run in &runs[message.runs.clone()] {
                let slot = self.slot(to, run.start);
                let len = run.len as usize;
                let source = match arrived {
                    Some(_) => next_under_way,
                    None => self.slot(from, run.start),
                };
                next_under_way += len;
                match action {
                    Action::Copy => {
                        let is_lost = |i: &usize| {
                            self.scratch.live[(slot + i) / 64] >> ((slot + i) % 64) & 1 == 1
                                && self.scratch.state.differs(slot + i, arrived, source + i)
                        };
                        let any_live = any_bit(&self.scratch.live, slot..slot + len);
                        if any_live && let Some(i) = (0..len).find(is_lost) {
                            self.report(to, at, Some(slot + i), Fault::Overwritten);
                        }
                        self.scratch.state.store(slot, arrived, source, len);
                    }
                    Action::Reduce => {
                        if self.has_empty
                            && let Some(slot) = self.scratch.state.first_empty(slot..slot + len)
                        {
                            self.report(to, at, Some(slot), Fault::CombinedEmpty);
                        }
                        let mut is_left = false;
                        if own_at > 0 {
                            for i in 0..len {
                                let (n_before, left) = folds.entry(slot + i).or_default();
                                is_left = *n_before < own_at;
                                if is_left {
                                    *left =
                                        self.scratch.state.gather_left(*left, arrived, source + i);
                                } else if let Some(left) = left.take() {
                                    self.scratch.state.put_left(slot + i, left);
                                }
                                *n_before += 1;
                            }
                        }
                        let repeated =
                            self.scratch.state.combine(slot, arrived, source, len, is_left);
                        // A barrier has nothing to count: hearing twice does no harm.
                        if let Some(slot) = repeated.filter(|_| !is_barrier) {
                            self.report(to, at, Some(slot), Fault::CountedTwice { from });
                        }
                    }
                }
                set_bits(&mut self.scratch.live, slot..slot + len);
            }
        }
        for (slot, (_, left)) in folds {
            if let Some(left) = left {
                self.scratch.state.put_left(slot, left);
            }
        }
        self.scratch.under_way = under_way;
    }

    /// The collective's post-condition: all that was given to a position is in it.
    fn verify(&mut self, expected: &Expected) {
        let (collective, root) = (self.flow.collective(), self.flow.root());
        // Where positions mean the same on all ranks, so does what must be in them.
        let space = self.flow.space(self.lanes[0], Rank(0));
        let is_of_all = space.cut != Cut::Pairs && !self.combines();
        let givers: Vec<u32> = match is_of_all {
            true => {
                let block = |at| space.block_at_end(Rank(0), Position(at));
                let giver = |at| block(at).map_or(u32::MAX, |block| self.giver(block).0);
                self.tile.positions().map(giver).collect()
            }
            false => Vec::new(),
        };
        // The slots that are compared with: those of the first rank that gets any.
        let mut like: Option<Range<usize>> = None;
        let n_ranks = self.flow.n_ranks();
        // Where ranks get sums of prefixes: of more ranks from one rank to the next.
        let mut of_prefix = expected.nobody();
        for rank in Rank::first(n_ranks) {
            let ranges = self.slots(collective.gets(rank, root, n_ranks), rank, true);
            // What is not combined in pairs may lie here and there.
            let [slots] = &ranges[..] else {
                ranges.into_iter().for_each(|slots| self.explain(rank, slots, 0, expected));
                continue;
            };
            let slots = slots.clone();
            let end = collective.contributors(rank, n_ranks);
            let expected = if end == n_ranks {
                expected
            } else {
                of_prefix.extend(end);
                &of_prefix
            };
            let offset = slots.start % self.width;
            let is_right = if self.combines() {
                let like = like.get_or_insert_with(|| slots.clone());
                // Of ranks that get different positions none has anything to be like.
                let like = if like.len() == slots.len() && like.start % self.width == offset {
                    like.start
                } else {
                    slots.start
                };
                self.scratch.state.are_complete(slots.clone(), like, expected)
            } else {
                is_of_all
                    && self.scratch.state.are_from(slots.clone(), &givers[offset..][..slots.len()])
            };
            if !is_right {
                let like = like.as_ref().map_or(slots.start, |like| like.start);
                self.explain(rank, slots, like, expected);
            }
        }
    }

    fn combines(&self) -> bool {
        combines(self.flow)
    }

    /// Who must have given a block that somebody has in the end, where nothing is combined.
    fn giver(&self, block: Block) -> Rank {
        let cut = self.flow.collective().cut();
        let root = self.flow.root();
        let n_ranks = self.flow.n_ranks();
        match (self.flow.collective().gives(Rank(block.0), root, n_ranks), cut) {
            (_, Cut::Pairs) | (Share::Own, _) => Rank(block.0),
            _ => root,
        }
    }

    /// Says slot by slot what is wrong, if anything is; `like` is where the expressions of the
    /// first slot's position are compared with.
    fn explain(&mut self, rank: Rank, slots: Range<usize>, like: usize, expected: &Expected) {
        let lane = self.lanes[0];
        for slot in slots.clone() {
            let offset = slot % self.width;
            let position = Position(self.tile.positions().start + offset as u32);
            let block = self.flow.space(lane, rank).block_at_end(rank, position);
            let Some(block) = block else { continue };
            let contributors = match self.combines() {
                true => Contributors::Everyone,
                false => Contributors::One(self.giver(block)),
            };
            let found = if self.scratch.state.is_complete(slot, contributors, expected) {
                self.misdirected(rank, slot, position)
            } else {
                Some(match (contributors, self.scratch.state.source(slot)) {
                    (Contributors::Everyone, _) => Found::Incomplete,
                    (Contributors::One(_), Some(other)) => Found::From(other),
                    (Contributors::One(_), None) => Found::Nothing,
                })
            };
            let than = like + (slot - slots.start);
            if let Some(found) = found {
                self.report(rank, (lane, None), Some(slot), Fault::WrongResult { block, found });
            } else if self.scratch.state.order(slot) != self.scratch.state.order(than) {
                let than = Rank((than / self.width) as u32);
                self.report(rank, (lane, None), Some(slot), Fault::DifferentOrder { than });
            }
        }
    }

    /// For pairs: what came from the right rank may have been meant for another.
    fn misdirected(&self, rank: Rank, slot: usize, position: Position) -> Option<Found> {
        let lane = self.lanes[0];
        let source = self.scratch.state.source(slot)?;
        let space = self.flow.space(lane, source);
        if space.cut != Cut::Pairs {
            return None;
        }
        let block = space.block_at_start(source, position)?;
        (block.0 != rank.0).then_some(Found::For(block))
    }
}

fn combines(flow: &dyn Flow) -> bool {
    flow.collective().is_reduction() || flow.collective().cut() == Cut::Token
}

fn any_bit(bits: &[u64], range: Range<usize>) -> bool {
    let mut any = false;
    for_words(range, |word, mask| any |= bits[word] & mask != 0);
    any
}

fn clear_bits(bits: &mut [u64], range: Range<usize>) {
    for_words(range, |word, mask| bits[word] &= !mask);
}

fn set_bits(bits: &mut [u64], range: Range<usize>) {
    for_words(range, |word, mask| bits[word] |= mask);
}

/// The words that a range of bits touches, each with the bits of the range in it.
fn for_words(range: Range<usize>, mut with: impl FnMut(usize, u64)) {
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min((at / 64 + 1) * 64);
        let n = end - at;
        let mask = if n == 64 { u64::MAX } else { ((1 << n) - 1) << (at % 64) };
        with(at / 64, mask);
        at = end;
    }
}
