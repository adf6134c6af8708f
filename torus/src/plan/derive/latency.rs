//! The pass of a latency form: in every round all ranks of a group exchange their whole vectors.
//!
//! A round is a step of the walk, or several fused steps. In a round of fused steps a rank sends to every rank that
//! any subset of these steps, one after the other, leads to: each contribution comes directly from its first owner
//! instead of by way of other ranks. As groups nest, every message that a rank receives comes from another group
//! (algorithms.md, sections 1 and 5).

use std::sync::Arc;

use smallvec::SmallVec;

use super::walk::{GlobalStep, Walk};
use crate::collectives::Action;
use crate::geometry::Coord;
use crate::names::Rank;
use crate::patterns::{Pattern, Peers};
use crate::plan::ir::flow::Message;
use crate::plan::ir::pass::{Pass, PassScope};
use crate::plan::ir::runs::WHOLE;
use crate::plan::ir::torus::Torus;
use crate::plan::ir::view::{LineStep, ProductStep, StepView};

/// The pass over all rounds of a walk.
#[derive(Debug)]
pub struct LatencyPass {
    torus: Arc<Torus>,
    walk: Arc<Walk>,
    /// By step of the walk and coordinate of its dimension, the least coordinate of the coordinate's group before
    /// the step. `None` if nothing is combined, so that folds need no order.
    leaders: Option<Vec<Vec<u32>>>,
}

/// The group of a rank, as its least coordinate in each dimension of a round.
type Group = SmallVec<[u32; 4]>;

impl LatencyPass {
    /// The pass over `walk`. If operands are combined, they are ordered such that all ranks compute the same
    /// expression.
    pub fn new(torus: Arc<Torus>, walk: Arc<Walk>, combines: bool) -> Self {
        let leaders = combines.then(|| group_leaders(&walk));
        LatencyPass { torus, walk, leaders }
    }

    fn steps(&self, round: usize) -> &[GlobalStep] {
        &self.walk.steps()[self.walk.rounds()[round].clone()]
    }

    /// The ranks to which a rank sends in a round, as coordinates.
    fn receivers(&self, round: usize, at: Coord) -> Vec<Coord> {
        self.reached(self.steps(round).iter(), at, Pattern::targets)
    }

    /// The ranks from which a rank receives in a round, in the order of the fold.
    fn senders(&self, round: usize, at: Coord) -> Vec<Coord> {
        let mut found = self.reached(self.steps(round).iter().rev(), at, Pattern::sources);
        found.sort_by_cached_key(|&from| self.group(round, from));
        found
    }

    /// All coordinates that any non-empty subset of some steps, taken one after the other, leads to.
    fn reached<'a>(
        &'a self,
        steps: impl Iterator<Item = &'a GlobalStep>,
        at: Coord,
        peers: impl Fn(&Pattern, u32, u32) -> Peers,
    ) -> Vec<Coord> {
        let mut found = vec![at];
        for &GlobalStep { dim, t } in steps {
            for index in 0..found.len() {
                let from = found[index];
                let peers = peers(self.walk.pattern(dim), t, from[dim]);
                found.extend(peers.into_iter().map(|a| from.with(dim, a)));
            }
        }
        found.remove(0);
        found
    }

    /// The group whose value a rank holds before a round; all members hold the same value. It is identified by its
    /// least coordinates in the round's dimensions. Without an order of folds, a group is the rank itself.
    fn group(&self, round: usize, at: Coord) -> Group {
        let Some(leaders) = &self.leaders else { return at.as_slice().into() };
        let mut group = Group::new();
        let mut last = None;
        for number in self.walk.rounds()[round].clone() {
            let dim = self.walk.steps()[number].dim;
            // Steps of one dimension are consecutive; the group is that before the first of them.
            if last != Some(dim) {
                group.push(leaders[number][at[dim] as usize]);
                last = Some(dim);
            }
        }
        group
    }
}

impl Pass for LatencyPass {
    fn n_steps(&self) -> usize {
        self.walk.rounds().len()
    }

    fn action(&self, _step: usize) -> Action {
        Action::Reduce
    }

    /// Number of operands of the round's fold whose groups precede the rank's own.
    fn own_at(&self, step: usize, rank: Rank) -> u32 {
        let at = self.torus.coord(rank);
        if self.leaders.is_none() || !self.walk.contains(at) {
            return 0;
        }
        let own = self.group(step, at);
        let senders = self.senders(step, at).into_iter();
        senders.take_while(|&from| self.group(step, from) < own).count() as u32
    }

    /// All coordinates of all lines send the same, unless some take no part.
    fn view(&self, step: usize, except: Option<Rank>) -> StepView<'_> {
        let is_core = self.walk.sizes() != self.torus.shape.sizes();
        // Steps of one dimension are consecutive.
        let by_dim = self.steps(step).chunk_by(|a, b| a.dim == b.dim);
        let line = |of_dim: &[GlobalStep]| {
            let dim = of_dim[0].dim;
            let pattern = self.walk.pattern(dim);
            let steps: SmallVec<[u32; 2]> = of_dim.iter().map(|step| step.t).collect();
            let n_targets = pattern.targets_of(&steps, 0).len();
            let all = || (0..pattern.size()).map(|a| (a, 1)).collect();
            let senders = is_core.then(|| (0..n_targets).map(|_| all()).collect());
            let positions = SmallVec::from_elem(1, n_targets);
            let is_backwards = false;
            let is_on_all_lines = !is_core;
            LineStep {
                dim,
                positions,
                except,
                senders,
                is_on_all_lines,
                pattern,
                steps,
                is_backwards,
            }
        };
        let mut lines: SmallVec<[LineStep<'_>; 2]> = by_dim.map(line).collect();
        match lines.pop() {
            Some(only) if lines.is_empty() => StepView::Lines(only),
            last => {
                lines.extend(last);
                StepView::Products(ProductStep { lines, positions: 1 })
            }
        }
    }

    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>)) {
        match scope {
            PassScope::Step(step, _) => {
                let shape = &self.torus.shape;
                let all = shape.vertices().map(|vertex| shape.coord(vertex));
                let mut all: Vec<Coord> = all.filter(|&at| self.walk.contains(at)).collect();
                // Receivers list their senders by group.
                all.sort_by_cached_key(|&at| self.group(step, at));
                for at in all {
                    let from = self.torus.rank(at);
                    for to in self.receivers(step, at) {
                        let to = self.torus.rank(to);
                        visit(step, Message { from, to, runs: &WHOLE });
                    }
                }
            }
            PassScope::Rank(rank, at) if self.walk.contains(at) => {
                for step in 0..self.n_steps() {
                    for to in self.receivers(step, at) {
                        let to = self.torus.rank(to);
                        visit(step, Message { from: rank, to, runs: &WHOLE });
                    }
                    for from in self.senders(step, at) {
                        let from = self.torus.rank(from);
                        visit(step, Message { from, to: rank, runs: &WHOLE });
                    }
                }
            }
            PassScope::Rank(..) => {}
        }
    }
}

/// By step, the least coordinate of the group of every coordinate of the step's dimension, that is, of all
/// coordinates that have exchanged so far. An operand of a step is the value of a whole group. All members of the
/// groups that exchange in a step fold them in the order of the groups' least coordinates, so that they compute the
/// same expression (algorithms.md section 5).
fn group_leaders(walk: &Walk) -> Vec<Vec<u32>> {
    let mut now: Vec<Vec<u32>> = walk.sizes().iter().map(|&size| (0..size).collect()).collect();
    let mut leaders = Vec::with_capacity(walk.steps().len());
    for &GlobalStep { dim, t } in walk.steps() {
        let pattern = walk.pattern(dim);
        let before = now[dim].clone();
        now[dim] = (0..pattern.size())
            .map(|a| {
                let met = pattern.sources(t, a);
                met.iter().map(|&b| before[b as usize]).fold(before[a as usize], u32::min)
            })
            .collect();
        leaders.push(before);
    }
    leaders
}
