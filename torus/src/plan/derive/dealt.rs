//! Lanes that move whole blocks, dealt to them in turns.
//!
//! If each lane moves a part of every block, these parts are short, and messages of many parts have to be packed.
//! Here a lane moves whole blocks: an equal number, or its weight in the split. Each lane has some of the turns,
//! and moves the blocks whose sum of coordinates, modulo the number of turns, is one of its turns. Along each line
//! of any dimension the lanes therefore alternate, so in whichever dimension a lane begins, all ranks soon have
//! equal amounts to pass on. The messages are those of a walk, without the blocks of other lanes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use smallvec::SmallVec;

use super::walk_pass::WalkPass;
use crate::collectives::Action;
use crate::geometry::{Shape, Vertex};
use crate::names::Rank;
use crate::plan::ir::flow::Message;
use crate::plan::ir::members::{CoordSet, Tile};
use crate::plan::ir::pass::{Pass, PassScope};
use crate::plan::ir::runs::{Run, Runs, append};
use crate::plan::ir::view::{DependsOn, StepView};

/// Numbers of blocks by the sum of their coordinates, modulo the number of turns.
type CountsBySum = SmallVec<[u64; 12]>;

/// The lane that moves each block, by position in row-major order.
#[derive(Clone, Debug)]
pub struct Deal {
    lane_of: Arc<[u8]>,
    /// The lane of each turn.
    turns: Arc<[u8]>,
}

impl Deal {
    /// The blocks of a shape, dealt in turns to at most 256 lanes.
    pub fn new(shape: &Shape, turns: &[u32]) -> Self {
        let turns: Arc<[u8]> = turns.iter().map(|&lane| lane as u8).collect();
        let of_vertex = |vertex: Vertex| {
            let sum: u32 = shape.coord(vertex).as_slice().iter().sum();
            turns[sum as usize % turns.len()]
        };
        Deal { lane_of: shape.vertices().map(of_vertex).collect(), turns }
    }

    /// Collects in `found` the part of `runs` that a lane moves.
    fn of_lane(&self, lane: u8, runs: &[Run], found: &mut Runs) {
        found.clear();
        for position in runs.iter().flat_map(|run| run.start..run.end()) {
            if self.lane_of[position as usize] == lane {
                append(found, position);
            }
        }
    }

    /// By coordinate of dimension `dim`, the most blocks of a lane in any product of that coordinate's set with one
    /// set of every other dimension.
    fn most(&self, lane: u8, dim: usize, sets: &[Vec<Cow<'_, CoordSet>>]) -> Vec<u64> {
        let n = self.turns.len();
        let count = |set: &Cow<'_, CoordSet>| {
            let mut counts: CountsBySum = SmallVec::from_elem(0, n);
            let members = set.0.iter().flat_map(|interval| interval.start..interval.end);
            members.for_each(|member| counts[member as usize % n] += 1);
            counts
        };
        // The number of pairs of members of both sets whose sum is `sum`.
        let at = |a: &CountsBySum, b: &CountsBySum, sum: usize| -> u64 {
            (0..n).map(|of_a| a[of_a] * b[(sum + n - of_a) % n]).sum()
        };
        let mut others: HashSet<CountsBySum> = HashSet::new();
        others.insert((0..n).map(|sum| u64::from(sum == 0)).collect());
        for of_dim in (0..sets.len()).filter(|&other| other != dim).map(|other| &sets[other]) {
            let of_dim: HashSet<CountsBySum> = of_dim.iter().map(count).collect();
            let with = |a: &CountsBySum| {
                let both = |b: &CountsBySum| (0..n).map(|sum| at(a, b, sum)).collect();
                of_dim.iter().map(both).collect::<Vec<CountsBySum>>()
            };
            others = others.iter().flat_map(with).collect();
        }
        let own_turns = || (0..n).filter(|&turn| self.turns[turn] == lane);
        let of_lane =
            |own: &CountsBySum, other| own_turns().map(|turn| at(own, other, turn)).sum::<u64>();
        let most = |own: CountsBySum| others.iter().map(|other| of_lane(&own, other)).max();
        sets[dim].iter().map(|set| most(count(set)).unwrap_or(0)).collect()
    }
}

/// The pass of one lane: the messages of `walk` without the blocks of other lanes.
#[derive(Debug)]
pub struct DealtPass {
    pub walk: WalkPass,
    pub deal: Deal,
    pub lane: u8,
}

impl Pass for DealtPass {
    fn n_steps(&self) -> usize {
        self.walk.n_steps()
    }

    fn action(&self, step: usize) -> Action {
        self.walk.action(step)
    }

    fn tiles(&self, most: u32) -> Option<Vec<Tile>> {
        self.walk.tiles(most)
    }

    /// The lines of a step do not all have their blocks at the same time, so senders are listed, with the largest
    /// amounts.
    fn view(&self, step: usize, except: Option<Rank>) -> StepView<'_> {
        let StepView::Lines(mut lines) = self.walk.view(step, except) else {
            return StepView::Messages(None);
        };
        let senders = (0..lines.positions.len()).map(|target| {
            if lines.positions[target] == 0 {
                return Vec::new();
            }
            let most = self.deal.most(self.lane, lines.dim, &self.walk.sets(step, target));
            lines.positions[target] = most.iter().copied().max().unwrap_or(0);
            (0..).zip(most).filter(|(_, most)| *most > 0).collect()
        });
        lines.senders = Some(senders.collect());
        StepView::Lines(lines)
    }

    fn depends_on(&self, step: usize) -> DependsOn {
        self.walk.depends_on(step)
    }

    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>)) {
        let mut own = Runs::new();
        self.walk.messages(scope, &mut |step, Message { from, to, runs }| {
            self.deal.of_lane(self.lane, runs, &mut own);
            if !own.is_empty() {
                visit(step, Message { from, to, runs: &own });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Split, max_ports};

    proptest! {
        /// Along every line of every dimension the numbers of blocks of any two lanes differ by at most one.
        #[test]
        fn lanes_take_turns_on_every_line(sizes in prop::collection::vec(1u32..8, 1..=3), on_node in 1u32..4) {
            let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
            let shape: Shape = format!("{}+{on_node}", sizes.join("x")).parse().unwrap();
            for lanes in 1..=max_ports(&shape) {
                let deal = Deal::new(&shape, &Split::default().turns(lanes));
                for (dim, size) in shape.sizes().into_iter().enumerate() {
                    for start in shape.vertices().map(|at| shape.coord(at)).filter(|at| at[dim] == 0) {
                        let on_line = |x| deal.lane_of[shape.vertex(start.with(dim, x)).index()];
                        for lane in 0..lanes as u8 {
                            let n = (0..size).filter(|&x| on_line(x) == lane).count() as u32;
                            prop_assert!((size / lanes..=size.div_ceil(lanes)).contains(&n));
                        }
                    }
                }
            }
        }
    }
}
