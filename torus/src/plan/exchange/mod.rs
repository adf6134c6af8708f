//! Alltoall as a product of exchanges (see [`Grid`]): pairwise, along one dimension after the other, between nodes
//! and then inside them, or through leaders.
//!
//! The algorithms of "Scaling All-to-all Operations Across Emerging Many-Core Supercomputers" are combinations of
//! three choices: which ranks form a group, whether the members' blocks are first gathered on a leader and finally
//! scattered from it, and along which axes each exchange goes.
//!
//! In an exchange every rank, or leader, sends one message for every displacement along the exchange's axes,
//! `batch` of them at a time: with 1 the exchange is pairwise, with all it is non-blocking. Displacements are in
//! the order of [`rounds`](fn@rounds). If blocks go directly to their owners, a step has one message, and `batch` steps
//! are in flight at a time. Otherwise blocks are packed, and there is memory to pack one step: a step has `batch`
//! messages, and one step is in flight at a time.
//!
//! With a single exchange and no leaders, lanes share the working space, and the displacements of each round are
//! distributed over the lanes. Otherwise each lane moves its part of every block over all displacements, and each
//! lane starts a round with another displacement. In exchanges along single dimensions, lane q < D begins with the
//! q-th dimension, and lane D + q goes in the opposite direction. So ports use different links at all times.

pub(super) mod linear;
mod parlinna;
pub(super) mod rounds;

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::SmallVec;

use self::rounds::{dealt, rounds};
use super::ir::flow::Message;
use super::ir::grid::{Grid, NodeGroups};
use super::ir::members::clip;
use super::ir::pass::{Pass, PassScope};
use super::ir::runs::{Runs, n_positions};
use super::ir::torus::Torus;
use super::ir::view::{self, DependsOn, ShiftStep, StepView};
use crate::geometry::Shape;
use crate::names::Rank;

/// Description of how the ranks of a torus exchange blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExchangeRecipe {
    /// How the ranks of a node form groups.
    pub groups: NodeGroups,
    /// The axes of each exchange.
    pub stages: ExchangeStages,
    /// Messages that a rank has in flight at a time in an exchange; `None` for all.
    pub batch: Option<u32>,
}

/// The axes of the exchanges that are performed one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExchangeStages {
    /// One exchange along all axes: all ranks, or leaders, with all.
    Together,
    /// All axes except the last, then the last: first between nodes, then between the members of groups, or with
    /// leaders between the groups of a node.
    NodesFirst,
    /// One dimension after the other, the node axis last.
    Dimensions,
    /// Inside nodes by digits, then between nodes directly to the owners: ParLinNa (Fan et al. 2025, section 4). A
    /// step has at most one message to the same rank.
    InsideFirst {
        /// The radix of the digits, 2 or more.
        radix: u32,
        /// Between nodes each block is a message of its own.
        staggered: bool,
    },
}

impl ExchangeRecipe {
    /// All ranks with all, one message at a time.
    pub const PAIRWISE: ExchangeRecipe = ExchangeRecipe {
        groups: NodeGroups::OfSize(1),
        stages: ExchangeStages::Together,
        batch: Some(1),
    };

    /// True if every block goes directly to its owner.
    pub fn is_direct(&self) -> bool {
        self.stages == ExchangeStages::Together && !self.has_leaders()
    }

    /// True if leaders handle the blocks of other ranks.
    pub fn has_leaders(&self) -> bool {
        matches!(self.groups, NodeGroups::WithLeaders(_))
    }

    /// True if blocks are distributed over the lanes whole, and not cut into parts.
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

    /// Number of parts into which `n_lanes` lanes cut the blocks.
    pub(super) fn n_parts(&self, shape: &Shape, n_lanes: u32) -> u32 {
        if self.has_whole_blocks(shape) { 1 } else { n_lanes }
    }

    /// Number of messages of a step.
    fn per_step(&self) -> usize {
        if self.is_direct() { 1 } else { self.batch.map_or(usize::MAX, |batch| batch as usize) }
    }

    /// Number of steps in flight at a time.
    pub(super) fn window(&self) -> Option<NonZeroU32> {
        let batch = self.batch.and_then(NonZeroU32::new);
        if self.is_direct() { batch } else { batch.and(Some(NonZeroU32::MIN)) }
    }
}

/// The steps of one lane.
#[derive(Debug)]
pub struct ExchangePass {
    grid: Arc<Grid>,
    steps: Vec<ExchangeStep>,
    /// By step, the step whose received data it forwards: data that go along some axes have come along other axes,
    /// or from members.
    depends_on: Vec<DependsOn>,
}

#[derive(Clone, Debug)]
enum ExchangeStep {
    /// Members send their blocks to their leader, or at the end receive them from it.
    Members { at_end: bool },
    /// Messages over the displacements `by`, along these axes.
    Along { along: SmallVec<[bool; 8]>, by: SmallVec<[u32; 1]> },
    /// The listed messages.
    Hops(Vec<Shift>),
}

/// The message that every rank, or leader, sends over a displacement.
#[derive(Clone, Debug)]
pub struct Shift {
    /// The displacement on the grid.
    pub by: u32,
    /// Positions that the message carries.
    pub runs: Runs,
}

/// The positions that a group sends, by group.
type SentBy<'a> = dyn Fn(u32) -> Cow<'a, Runs> + 'a;
/// The sender and the receiver of a group's message, by group.
type EndRanks<'a> = dyn Fn(u32) -> [Rank; 2] + 'a;

/// The axes of each exchange.
fn axes(exchange: &ExchangeRecipe, grid: &Grid, shape: &Shape) -> Vec<SmallVec<[bool; 8]>> {
    let n_axes = grid.n_axes();
    let mask = |along: &dyn Fn(usize) -> bool| (0..n_axes).map(along).collect();
    // The last axis is that of the members, or with leaders of the groups of a node.
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
    // `rounds` works on ranks: in a shape with equal groups, the displacement of a group is that of its leader.
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
    // Lanes begin with different dimensions, among those with links.
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
                // The opposite direction: opposite displacements leave on other links.
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
        let members =
            |at_end| (grid.served() > 1).then_some(ExchangeStep::Members { at_end }).into_iter();
        let steps = members(false).chain(exchanges).chain(members(true)).collect();
        ExchangePass::new(grid.clone(), steps)
    };
    (0..n_lanes as usize).map(lane).collect()
}

impl ExchangePass {
    fn new(grid: Arc<Grid>, steps: Vec<ExchangeStep>) -> Self {
        let mut depends_on: Vec<DependsOn> = Vec::with_capacity(steps.len());
        for (step, now) in steps.iter().enumerate() {
            depends_on.push(match (steps[..step].last(), now) {
                (
                    Some(ExchangeStep::Along { along: before, .. }),
                    ExchangeStep::Along { along, .. },
                ) if before == along => depends_on[step - 1],
                _ => DependsOn::before(step),
            });
        }
        ExchangePass { grid, steps, depends_on }
    }

    /// The pass whose steps have these messages.
    pub fn of_hops(grid: Arc<Grid>, steps: Vec<Vec<Shift>>) -> Self {
        Self::new(grid, steps.into_iter().map(ExchangeStep::Hops).collect())
    }

    /// Visits the displacements of an exchange step, each with the positions that a group sends.
    fn for_each_hop(&self, step: &ExchangeStep, visit: &mut dyn FnMut(u32, &SentBy<'_>)) {
        match step {
            ExchangeStep::Members { .. } => {}
            ExchangeStep::Hops(hops) => {
                hops.iter().for_each(|hop| visit(hop.by, &|_| Cow::Borrowed(&hop.runs)));
            }
            ExchangeStep::Along { along, by } => {
                for &by in by {
                    let all = self.grid.displaced_positions(by, along);
                    visit(by, &|group| self.grid.used_positions(Cow::Borrowed(&all), group, false));
                }
            }
        }
    }
}

impl Pass for ExchangePass {
    fn n_steps(&self) -> usize {
        self.steps.len()
    }

    fn depends_on(&self, step: usize) -> DependsOn {
        self.depends_on[step]
    }

    /// Without leaders all ranks send over the same displacements.
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
                PassScope::Step(_, tile) => grid.layouts().for_each(|first| {
                    let runs = sent(first);
                    let runs = runs.iter().filter_map(|run| clip(*run, tile)).collect();
                    grid.groups_with_layout(first).for_each(|group| visit(group, &runs));
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
                ExchangeStep::Members { at_end } => {
                    let members = if member == 0 { 1..grid.served() } else { member..member + 1 };
                    for member in members {
                        let sent = |group| Cow::Owned(grid.member_positions(group, member, at_end));
                        let inwards = |group| [member, 0].map(|member| grid.rank(group, member));
                        let outwards = |group| [0, member].map(|member| grid.rank(group, member));
                        send(number, &[own], &sent, if at_end { &outwards } else { &inwards });
                    }
                }
                // With leaders, only leaders exchange.
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
