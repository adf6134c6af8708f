//! Alltoall as a product of exchanges (see [`Grid`]): pairwise, along one dimension after the
//! other, between nodes before inside them, through leaders.
//!
//! The forms of "Scaling All-to-all Operations Across Emerging Many-Core Supercomputers" are
//! choices of three things: which ranks form a group, whether the members' blocks are gathered on
//! a leader first and scattered in the end, and along which axes each exchange goes.
//!
//! In an exchange every rank, or leader, sends one message for every displacement along its axes,
//! `batch` of them at a time: 1 is pairwise, all of them non-blocking. They are in the order of
//! [`rounds`]. Where blocks go straight to their owners, a step has one message, and `batch` steps are
//! under way at a time. Otherwise blocks are packed, and there is room to pack one step: a step has
//! `batch` messages, and one step is under way at a time.
//!
//! With one exchange and no leaders, lanes share the working space, and the displacements of each
//! round are dealt out to them. Otherwise each lane has its part of every block and goes over all
//! displacements, in each round beginning with another one than the other lanes. Where exchanges are
//! along single dimensions, lane q < D begins with the q-th, and lane D + q does the same in the
//! opposite direction. So ports use different links all the time.

pub(super) mod linear;
mod parlinna;
pub(super) mod rounds;

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::SmallVec;

use self::rounds::{dealt, rounds};
use super::derive::pass::{Pass, PassScope};
use super::ir::flow::Message;
use super::ir::grid::{Grid, NodeGroups};
use super::ir::members::clip;
use super::ir::runs::{Runs, n_positions};
use super::ir::torus::Torus;
use super::ir::view::{self, DependsOn, ShiftStep, StepView};
use crate::geometry::Shape;
use crate::names::Rank;

/// How the ranks of a torus exchange blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExchangeRecipe {
    /// Which ranks of a node belong together.
    pub groups: NodeGroups,
    /// Along which axes each exchange goes.
    pub stages: ExchangeStages,
    /// Messages that a rank has under way at a time in an exchange; all if `None`.
    pub batch: Option<u32>,
}

/// Along which axes each exchange goes, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExchangeStages {
    /// All at once: everybody with everybody.
    Together,
    /// All but those inside groups, then inside groups: or between nodes, then between the groups
    /// of a node, where the groups have leaders.
    NodesFirst,
    /// One dimension after the other, the node axis last.
    Dimensions,
    /// Inside nodes by digits, then between nodes straight to the owners: ParLinNa (Fan et al. 2025,
    /// section 4). Never more than one message to the same rank at a time.
    InsideFirst {
        /// The radix of the digits, 2 or more.
        radix: u32,
        /// Between nodes one message for each block.
        staggered: bool,
    },
}

impl ExchangeRecipe {
    /// Everybody with everybody, one at a time.
    pub const PAIRWISE: ExchangeRecipe = ExchangeRecipe {
        groups: NodeGroups::OfSize(1),
        stages: ExchangeStages::Together,
        batch: Some(1),
    };

    /// True if every block goes straight to its owner.
    pub fn is_straight(&self) -> bool {
        self.stages == ExchangeStages::Together && !self.has_leaders()
    }

    /// True if leaders handle the blocks of others.
    pub fn has_leaders(&self) -> bool {
        matches!(self.groups, NodeGroups::WithLeaders(_))
    }

    /// Whether lanes have whole blocks in turn, and do not cut them.
    fn has_whole_blocks(&self, shape: &Shape) -> bool {
        let has_inner = shape.node_dim().is_some();
        let is_one_exchange = match self.stages {
            ExchangeStages::InsideFirst { .. } => return true,
            ExchangeStages::Together => true,
            ExchangeStages::NodesFirst => !has_inner,
            ExchangeStages::Dimensions => !has_inner && shape.n_dims() == 1,
        };
        is_one_exchange && !self.has_leaders()
    }

    /// Into how many parts so many lanes cut the blocks.
    pub(super) fn n_parts(&self, shape: &Shape, n_lanes: u32) -> u32 {
        if self.has_whole_blocks(shape) { 1 } else { n_lanes }
    }

    /// Messages of a step.
    fn per_step(&self) -> usize {
        if self.is_straight() { 1 } else { self.batch.map_or(usize::MAX, |batch| batch as usize) }
    }

    /// Steps under way at a time.
    pub(super) fn window(&self) -> Option<NonZeroU32> {
        let batch = self.batch.and_then(NonZeroU32::new);
        if self.is_straight() { batch } else { batch.and(Some(NonZeroU32::MIN)) }
    }
}

/// The steps of one lane.
#[derive(Debug)]
pub struct ExchangePass {
    grid: Arc<Grid>,
    steps: Vec<ExchangeStep>,
    /// By step, the one whose arrivals it passes on: what goes along some axes has come along others,
    /// or from members.
    after: Vec<DependsOn>,
}

#[derive(Clone, Debug)]
enum ExchangeStep {
    /// Members give their blocks to their leader (or, in the end, get them).
    Members { in_the_end: bool },
    /// Messages over these displacements along these axes.
    Along { along: SmallVec<[bool; 8]>, by: SmallVec<[u32; 1]> },
    /// Messages that are listed.
    Hops(Vec<Shift>),
}

/// What every rank, or leader, sends over a displacement.
#[derive(Clone, Debug)]
pub struct Shift {
    /// The displacement on the grid.
    pub by: u32,
    /// Its positions.
    pub runs: Runs,
}

/// The positions that a group sends.
type SentBy<'a> = dyn Fn(u32) -> Cow<'a, Runs> + 'a;
/// Who sends them on behalf of a group, and to whom.
type EndRanks<'a> = dyn Fn(u32) -> [Rank; 2] + 'a;

/// By exchange, the axes that it is along.
fn axes(exchange: &ExchangeRecipe, grid: &Grid, shape: &Shape) -> Vec<SmallVec<[bool; 8]>> {
    let n_axes = grid.n_axes();
    let mask = |along: &dyn Fn(usize) -> bool| (0..n_axes).map(along).collect();
    // Members on their own, or else the groups of a node, are the last axis.
    let has_inner = shape.node_dim().is_some();
    match exchange.stages {
        ExchangeStages::Together => vec![mask(&|_| true)],
        ExchangeStages::NodesFirst if has_inner => {
            vec![mask(&|axis| axis + 1 < n_axes), mask(&|axis| axis + 1 == n_axes)]
        }
        ExchangeStages::NodesFirst => vec![mask(&|_| true)],
        ExchangeStages::Dimensions => (0..n_axes).map(|dim| mask(&|axis| axis == dim)).collect(),
        ExchangeStages::InsideFirst { .. } => Vec::new(),
    }
}

/// The passes of `n_lanes` lanes.
pub fn passes(
    exchange: &ExchangeRecipe,
    torus: &Arc<Torus>,
    grid: &Arc<Grid>,
    n_lanes: u32,
) -> Vec<ExchangePass> {
    if let ExchangeStages::InsideFirst { radix, staggered } = exchange.stages {
        return parlinna::passes(radix, exchange.batch, staggered, grid, n_lanes);
    }
    let shape = &torus.shape;
    // Displacements of groups stand for those of their leaders; all groups are as large there.
    let even = grid.even_shape();
    let rounds = |along: &[bool]| {
        let wanted = |by: u32| {
            let (group, member) = (by / grid.served(), by % grid.served());
            member == 0 && grid.is_along(group, along)
        };
        let mut rounds = rounds(&even, n_lanes as usize, wanted);
        rounds.iter_mut().flatten().for_each(|by| *by /= grid.served());
        rounds
    };
    let along_steps = |along: &SmallVec<[bool; 8]>, order: &[u32]| -> Vec<ExchangeStep> {
        let step =
            |by: &[u32]| ExchangeStep::Along { along: along.clone(), by: SmallVec::from_slice(by) };
        order.chunks(exchange.per_step().max(1)).map(step).collect()
    };
    let stages = axes(exchange, grid, shape);
    if exchange.has_whole_blocks(shape) {
        let along = &stages[0];
        let lane = |order: Vec<u32>| ExchangePass::new(grid.clone(), along_steps(along, &order));
        return dealt(&rounds(along), n_lanes).into_iter().map(lane).collect();
    }
    let stages: Vec<_> = stages.into_iter().map(|along| (rounds(&along), along)).collect();
    // Dimensions with links take turns.
    let turns = match exchange.stages {
        ExchangeStages::Dimensions => shape.active_dims(),
        _ => Vec::new(),
    };
    let lane = |lane: usize| {
        let mut order = turns.clone();
        order.rotate_left(lane % turns.len().max(1));
        order.extend((0..stages.len()).filter(|stage| !turns.contains(stage)));
        let exchanges = order.into_iter().flat_map(|stage| {
            let (rounds, along) = &stages[stage];
            let order: Vec<u32> = match turns.contains(&stage) {
                // The other way round: what is opposite leaves on another link.
                true if lane >= turns.len() => {
                    let all = rounds.iter().flatten();
                    all.map(|&by| grid.displaced(0, by, false)).collect()
                }
                true => rounds.concat(),
                false => {
                    let turned = |round: &Vec<u32>| {
                        let (before, first) = round.split_at(lane % round.len());
                        [first, before].concat()
                    };
                    rounds.iter().flat_map(turned).collect()
                }
            };
            along_steps(along, &order)
        });
        let members = |in_the_end| {
            (grid.served() > 1).then_some(ExchangeStep::Members { in_the_end }).into_iter()
        };
        let steps = members(false).chain(exchanges).chain(members(true)).collect();
        ExchangePass::new(grid.clone(), steps)
    };
    (0..n_lanes as usize).map(lane).collect()
}

impl ExchangePass {
    fn new(grid: Arc<Grid>, steps: Vec<ExchangeStep>) -> Self {
        let mut after: Vec<DependsOn> = Vec::with_capacity(steps.len());
        for (step, now) in steps.iter().enumerate() {
            after.push(match (steps[..step].last(), now) {
                (
                    Some(ExchangeStep::Along { along: before, .. }),
                    ExchangeStep::Along { along, .. },
                ) if before == along => after[step - 1],
                _ => DependsOn::before(step),
            });
        }
        ExchangePass { grid, steps, after }
    }

    /// The pass with these messages in each step.
    pub fn of_hops(grid: Arc<Grid>, steps: Vec<Vec<Shift>>) -> Self {
        Self::new(grid, steps.into_iter().map(ExchangeStep::Hops).collect())
    }

    /// Visits the displacements of an exchange, each with the positions that a group sends.
    fn for_each_hop(&self, step: &ExchangeStep, visit: &mut dyn FnMut(u32, &SentBy<'_>)) {
        match step {
            ExchangeStep::Members { .. } => {}
            ExchangeStep::Hops(hops) => {
                hops.iter().for_each(|hop| visit(hop.by, &|_| Cow::Borrowed(&hop.runs)));
            }
            ExchangeStep::Along { along, by } => {
                for &by in by {
                    let all = self.grid.displaced_positions(by, along);
                    visit(by, &|group| self.grid.standing(Cow::Borrowed(&all), group, false));
                }
            }
        }
    }
}

impl Pass for ExchangePass {
    fn n_steps(&self) -> usize {
        self.steps.len()
    }

    fn after(&self, step: usize) -> DependsOn {
        self.after[step]
    }

    /// Without leaders everybody sends over the same displacements.
    fn view(&self, step: usize, except: Option<Rank>) -> StepView<'_> {
        if self.grid.served() > 1 || except.is_some() {
            return StepView::Messages(None);
        }
        let mut shifts = SmallVec::new();
        self.for_each_hop(&self.steps[step], &mut |by, sent| {
            let positions = n_positions(&sent(0));
            if positions > 0 {
                shifts.push(view::Shift { by: self.grid.digits(by), positions });
            }
        });
        StepView::Shifts(ShiftStep { sizes: self.grid.axes().into(), shifts })
    }

    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>)) {
        let grid = &*self.grid;
        let mut send = |step, own: &[u32], sent: &SentBy<'_>, ends: &EndRanks<'_>| {
            let mut visit = |group, runs: &Runs| {
                if !runs.is_empty() {
                    let [from, to] = ends(group);
                    visit(step, Message { from, to, runs });
                }
            };
            match scope {
                PassScope::Step(_, tile) => grid.alike().for_each(|first| {
                    let runs = sent(first);
                    let runs = runs.iter().filter_map(|run| clip(*run, tile)).collect();
                    grid.like(first).for_each(|group| visit(group, &runs));
                }),
                PassScope::Rank(..) => own.iter().for_each(|&group| visit(group, &sent(group))),
            }
        };
        let (steps, (own, member)) = match scope {
            PassScope::Step(step, _) => (step..step + 1, (0, 0)),
            PassScope::Rank(rank, _) => (0..self.n_steps(), grid.member(rank)),
        };
        for number in steps {
            match self.steps[number] {
                ExchangeStep::Members { in_the_end } => {
                    let members = if member == 0 { 1..grid.served() } else { member..member + 1 };
                    for member in members {
                        let sent =
                            |group| Cow::Owned(grid.member_positions(group, member, in_the_end));
                        let inwards = |group| [member, 0].map(|member| grid.rank(group, member));
                        let outwards = |group| [0, member].map(|member| grid.rank(group, member));
                        send(number, &[own], &sent, if in_the_end { &outwards } else { &inwards });
                    }
                }
                // Only leaders exchange, if there are any.
                _ if member > 0 => {}
                ref hops => self.for_each_hop(hops, &mut |by, sent| {
                    let from = grid.displaced(own, by, false);
                    let ends = |group| {
                        let to = if group == from { own } else { grid.displaced(group, by, true) };
                        [group, to].map(|group| grid.rank(group, 0))
                    };
                    send(number, &[own, from], sent, &ends);
                }),
            }
        }
    }
}
