//! The derivations: what a node sends and receives at each step of a walk.
//!
//! Every function follows one rule of algorithms.md section 2 and gives both sides of every
//! transfer: what a node receives is computed as what the sender sends. Blocks are sets that
//! are products over the dimensions; they become runs of positions in a [`PositionOrder`].
//! Nodes are numbered row-major; ranks, actions and placements are the schedule's business.

use std::sync::Arc;

use super::order::{Level, Members, PositionOrder};
use super::types::{Blocks, Run};
use super::walk::{GlobalStep, Walk};
use crate::geometry::{Coord, Node};

/// A transfer between nodes.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The other node.
    pub peer: Node,
    /// What travels.
    pub blocks: Blocks,
}

/// What a node does in one global step.
#[derive(Clone, Debug, Default)]
pub struct RawStep {
    /// What leaves.
    pub sends: Vec<Exchange>,
    /// What arrives.
    pub recvs: Vec<Exchange>,
    /// Receives that come before the own value in a fold.
    pub own_at: u32,
}

/// The same steps backwards: a gather becomes a scatter, a reduce-scatter an allgather.
pub fn reverse(mut steps: Vec<RawStep>) -> Vec<RawStep> {
    steps.reverse();
    for step in &mut steps {
        std::mem::swap(&mut step.sends, &mut step.recvs);
        step.own_at = 0;
    }
    steps
}

/// The single block of a plan that moves whole vectors.
pub fn whole() -> Blocks {
    Arc::from([Run::new(0, 1)])
}

/// The position order in which the sets that leave `origin`, and with it those of every other
/// node on nested patterns, are contiguous: by the path from `origin`, first step first.
///
/// Dimensions whose sets are not nested groups come first, whole: a set of theirs is then a
/// few intervals, each contiguous in all that follows, where interleaving them would cut
/// every interval again at every level.
pub fn path_order(walk: &Walk, origin: Coord) -> PositionOrder {
    let is_chain = |dim: usize| walk.pattern(dim).is_chain();
    let digits: Vec<_> = (0..walk.sizes().len())
        .map(|dim| if is_chain(dim) { Vec::new() } else { walk.digits_from(dim, origin[dim]) })
        .collect();
    let level = |&GlobalStep { dim, t }: &GlobalStep| {
        let digits = if !is_chain(dim) {
            digits[dim].iter().map(|path| path[t as usize]).collect()
        } else if t == 0 {
            // A chain's sets are intervals of coordinates as they are: one level for all steps.
            (0..walk.sizes()[dim]).collect()
        } else {
            return None;
        };
        Some(Level { dim, digits })
    };
    let mut levels = Vec::new();
    for &dim in walk.visited().iter().filter(|&&dim| !walk.pattern(dim).is_nested()) {
        levels.extend(walk.steps().iter().filter(|step| step.dim == dim).filter_map(level));
    }
    levels.extend(
        walk.steps().iter().filter(|step| walk.pattern(step.dim).is_nested()).filter_map(level),
    );
    PositionOrder::new(walk.sizes(), levels)
}

/// The depth-first order of the tree towards `root`: by the path to the root, last step
/// first. Every subtree is one run, on every shape (Bine, appendix D.2).
pub fn tree_order(walk: &Walk, root: Coord) -> PositionOrder {
    let is_chain = |dim: usize| walk.pattern(dim).is_chain();
    let digits: Vec<_> = (0..walk.sizes().len())
        .map(|dim| if is_chain(dim) { Vec::new() } else { walk.digits_to(dim, root[dim]) })
        .collect();
    let levels = walk.steps().iter().rev().filter_map(|&GlobalStep { dim, t }| {
        let digits = if !is_chain(dim) {
            digits[dim].iter().map(|path| path[t as usize]).collect()
        } else if t + 1 == walk.pattern(dim).n_steps() {
            // A chain's depth-first order is by distance: one level in place of d - 1.
            let pattern = walk.pattern(dim);
            let distance = |y| pattern.distance(pattern.normalise(y, root[dim]));
            (0..walk.sizes()[dim]).map(distance).collect()
        } else {
            return None;
        };
        Some(Level { dim, digits })
    });
    PositionOrder::new(walk.sizes(), levels.collect())
}

/// Iterates over the pairs (which target, peer) of a step, for both directions.
fn peers(walk: &Walk, step: GlobalStep, a: u32) -> [Vec<(u32, u32)>; 2] {
    let pattern = walk.pattern(step.dim);
    [pattern.targets(step.t, a), pattern.sources(step.t, a)]
        .map(|peers| peers.iter().enumerate().map(|(i, &peer)| (i as u32, peer)).collect())
}

/// One set per dimension, with that of `dim` replaced.
fn with_dim<'a>(sets: &'a [Members], dim: usize, replaced: &'a Members) -> Vec<&'a Members> {
    let mut product: Vec<&Members> = sets.iter().collect();
    product[dim] = replaced;
    product
}

fn push(list: &mut Vec<Exchange>, peer: Node, blocks: Blocks) {
    if !blocks.is_empty() {
        list.push(Exchange { peer, blocks });
    }
}

/// Reduce-scatter: every node starts with every block and forwards block x at the first
/// global step among the dimensions in which it differs from x.
///
/// The set sent at step (k, t): those x whose coordinate k is forwarded at t and whose other
/// coordinates are reached, or will be at a later step.
pub fn reduce_scatter(walk: &Walk, order: &PositionOrder, at: Coord) -> Vec<RawStep> {
    let n_dims = walk.sizes().len();
    // Per dimension, the coordinates for which nothing has been forwarded yet.
    let mut open: Vec<Members> = (0..n_dims).map(|dim| order.members(dim, |_| true)).collect();
    let mut steps = Vec::with_capacity(walk.steps().len());
    for &step in walk.steps() {
        let GlobalStep { dim, t } = step;
        let toward = walk.toward(dim);
        let mut raw = RawStep::default();
        let [targets, sources] = peers(walk, step, at[dim]);
        for (target, peer) in targets {
            let leaving = order.members(dim, |x| toward.step(at[dim], x) == Some((t, target)));
            let blocks = order.runs(&with_dim(&open, dim, &leaving));
            push(&mut raw.sends, walk.node(at.with(dim, peer)), blocks);
        }
        for (target, peer) in sources {
            let arriving = order.members(dim, |x| toward.step(peer, x) == Some((t, target)));
            let blocks = order.runs(&with_dim(&open, dim, &arriving));
            push(&mut raw.recvs, walk.node(at.with(dim, peer)), blocks);
        }
        open[dim] =
            order.members(dim, |x| toward.step(at[dim], x).is_none_or(|(later, _)| later > t));
        steps.push(raw);
    }
    steps
}

/// Whether a tree carries blocks of their own or one vector.
#[derive(Clone, Copy, Debug)]
pub enum Load<'a> {
    /// Every node's block, in this order: gather.
    Blocks(&'a PositionOrder),
    /// One vector that is combined on the way: reduce.
    Whole,
}

impl Load<'_> {
    fn members(&self, walk: &Walk, is_member: impl Fn(usize, u32) -> bool) -> Vec<Members> {
        match self {
            Load::Blocks(order) => (0..walk.sizes().len())
                .map(|dim| order.members(dim, |y| is_member(dim, y)))
                .collect(),
            Load::Whole => Vec::new(),
        }
    }

    fn blocks(&self, sets: &[Members]) -> Blocks {
        match self {
            Load::Blocks(order) => order.runs(&sets.iter().collect::<Vec<_>>()),
            Load::Whole => whole(),
        }
    }
}

/// The tree towards a root: every node sends once, at its first step towards the root, all
/// that it has received by then.
pub fn tree(walk: &Walk, load: Load<'_>, root: Coord, at: Coord) -> Vec<RawStep> {
    let n_dims = walk.sizes().len();
    // Where the block of a node with coordinate y in a dimension is by now, in that dimension.
    let mut now: Vec<Vec<u32>> = walk.sizes().iter().map(|&size| (0..size).collect()).collect();
    let mut has_sent = false;
    // When `at` itself moves in each dimension.
    let own: Vec<Option<u32>> = (0..n_dims).map(|dim| walk.when(dim, at[dim], root[dim])).collect();
    let mut steps = Vec::with_capacity(walk.steps().len());
    for (number, &step) in walk.steps().iter().enumerate() {
        let GlobalStep { dim, t } = step;
        let toward = walk.toward(dim);
        let mut raw = RawStep::default();
        let [targets, sources] = peers(walk, step, at[dim]);
        for (target, peer) in targets {
            if !has_sent && toward.step(at[dim], root[dim]) == Some((t, target)) {
                let held = load.members(walk, |j, y| now[j][y as usize] == at[j]);
                let to = walk.node(at.with(dim, peer));
                push(&mut raw.sends, to, load.blocks(&held));
                has_sent = true;
            }
        }
        // A source sends now if it has not before: no other dimension moved earlier.
        let others_wait =
            (0..n_dims).all(|j| j == dim || own[j].is_none_or(|when| when > number as u32));
        for (target, peer) in sources {
            if others_wait && toward.step(peer, root[dim]) == Some((t, target)) {
                let held = load.members(walk, |j, y| {
                    now[j][y as usize] == if j == dim { peer } else { at[j] }
                });
                push(&mut raw.recvs, walk.node(at.with(dim, peer)), load.blocks(&held));
            }
        }
        for place in &mut now[dim] {
            if let Some((when, next)) = toward.hop(*place, root[dim])
                && when == t
            {
                *place = next;
            }
        }
        steps.push(raw);
    }
    steps
}

/// The scatter that an allgather over the same walk completes, and whose reverse gathers what
/// a reduce-scatter left: block x goes from `root` along the reduce-scatter's path to x.
pub fn scatter_along(walk: &Walk, order: &PositionOrder, root: Coord, at: Coord) -> Vec<RawStep> {
    let n_dims = walk.sizes().len();
    // Where the block for coordinate x of a dimension is by now, in that dimension.
    let mut now: Vec<Vec<u32>> = walk
        .sizes()
        .iter()
        .enumerate()
        .map(|(dim, &size)| vec![root[dim]; size as usize])
        .collect();
    let mut steps = Vec::with_capacity(walk.steps().len());
    for &step in walk.steps() {
        let GlobalStep { dim, t } = step;
        let toward = walk.toward(dim);
        // What stands in this node's line along `dim`.
        let beside: Vec<Members> =
            (0..n_dims).map(|j| order.members(j, |x| now[j][x as usize] == at[j])).collect();
        let moving = |from: u32, target: u32| {
            order.members(dim, |x| {
                now[dim][x as usize] == from && toward.step(from, x) == Some((t, target))
            })
        };
        let mut raw = RawStep::default();
        let [targets, sources] = peers(walk, step, at[dim]);
        for (target, peer) in targets {
            let blocks = order.runs(&with_dim(&beside, dim, &moving(at[dim], target)));
            push(&mut raw.sends, walk.node(at.with(dim, peer)), blocks);
        }
        for (target, peer) in sources {
            let blocks = order.runs(&with_dim(&beside, dim, &moving(peer, target)));
            push(&mut raw.recvs, walk.node(at.with(dim, peer)), blocks);
        }
        for (x, place) in now[dim].iter_mut().enumerate() {
            if let Some((when, next)) = toward.hop(*place, x as u32)
                && when == t
            {
                *place = next;
            }
        }
        steps.push(raw);
    }
    steps
}

/// Everyone sends everything it has to all its peers at every step: the latency form of
/// allreduce (where groups nest) and the dissemination barrier (everywhere).
///
/// An operand of a step is the value of a whole group: of all that have exchanged so far. All
/// members of the groups that meet fold them in the order of the groups' least coordinates,
/// so that they compute the same expression.
pub fn disseminate(walk: &Walk, at: Coord) -> Vec<RawStep> {
    let exchange = |dim, peer| Exchange { peer: walk.node(at.with(dim, peer)), blocks: whole() };
    // Per dimension, the least coordinate of every coordinate's group by now.
    let mut least: Vec<Vec<u32>> = walk.sizes().iter().map(|&size| (0..size).collect()).collect();
    walk.steps()
        .iter()
        .map(|&GlobalStep { dim, t }| {
            let pattern = walk.pattern(dim);
            let group = |a: u32| least[dim][a as usize];
            let mut sources = pattern.sources(t, at[dim]);
            sources.sort_by_key(|&peer| group(peer));
            let raw = RawStep {
                sends: pattern.targets(t, at[dim]).iter().map(|&p| exchange(dim, p)).collect(),
                own_at: sources.iter().filter(|&&peer| group(peer) < group(at[dim])).count() as u32,
                recvs: sources.iter().map(|&peer| exchange(dim, peer)).collect(),
            };
            let merged = (0..pattern.size()).map(|a| {
                let met = pattern.sources(t, a);
                met.iter().map(|&peer| group(peer)).fold(group(a), u32::min)
            });
            least[dim] = merged.collect();
            raw
        })
        .collect()
}

/// Logarithmic alltoall: the reduce-scatter's paths with sources kept apart.
///
/// The block from s to x stands in the position of its displacement, the image of x under
/// the renumbering that moves s to 0, on every node that it passes: what leaves a position at
/// a step is replaced by what arrives, and all nodes send the same positions. The doubling
/// pattern gives Bruck's algorithm.
pub fn alltoall(walk: &Walk, order: &PositionOrder, at: Coord) -> Vec<RawStep> {
    let all: Vec<Members> =
        (0..walk.sizes().len()).map(|dim| order.members(dim, |_| true)).collect();
    let digits: Vec<_> = (0..walk.sizes().len()).map(|dim| walk.digits_from(dim, 0)).collect();
    walk.steps()
        .iter()
        .map(|&step| {
            let GlobalStep { dim, t } = step;
            let moving = |target: u32| {
                let set = order.members(dim, |x| digits[dim][x as usize][t as usize] == 1 + target);
                order.runs(&with_dim(&all, dim, &set))
            };
            let mut raw = RawStep::default();
            let [targets, sources] = peers(walk, step, at[dim]);
            for (target, peer) in targets {
                push(&mut raw.sends, walk.node(at.with(dim, peer)), moving(target));
            }
            for (target, peer) in sources {
                push(&mut raw.recvs, walk.node(at.with(dim, peer)), moving(target));
            }
            raw
        })
        .collect()
}

/// For each displacement of a dimension, the coordinate x that it leads to from `a`, and the
/// coordinate s from which it leads to `a`.
pub fn displacements(walk: &Walk, dim: usize, a: u32) -> (Vec<u32>, Vec<u32>) {
    let pattern = walk.pattern(dim);
    let size = pattern.size();
    let to = (0..size).map(|displacement| pattern.denormalise(displacement, a)).collect();
    let mut from = vec![0; size as usize];
    for s in 0..size {
        from[pattern.normalise(a, s) as usize] = s;
    }
    (to, from)
}
