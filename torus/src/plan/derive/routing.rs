//! The derivation of messages: which blocks a node sends at each step of a walk.
//!
//! There is one rule of algorithms.md section 2 for each [`Routing`]. The blocks that a node sends to a target at
//! global step (k, t) are a product over the dimensions: the blocks that *move* in dimension k, and in every other
//! dimension the blocks that are *resident* there at this step. A message exists if no factor is empty. A node
//! receives what its sources send to it.

use std::ops::Range;

use smallvec::SmallVec;

use super::order::{Level, PositionOrder};
use super::walk::{GlobalStep, Walk};
use crate::collectives::Routing;
use crate::geometry::Coord;
use crate::plan::ir::members::CoordSet;

/// The blocks that a pass over a walk moves, dimension by dimension.
#[derive(Clone, Copy, Debug)]
pub struct Moves<'a> {
    /// The walk.
    pub walk: &'a Walk,
    /// The position order of the blocks.
    pub order: &'a PositionOrder,
    /// The rule that selects the blocks.
    pub routing: Routing,
    /// The root, if the rule has one.
    pub root: Coord,
}

impl Moves<'_> {
    /// The factor of dimension `dim` in the blocks that `a` sends to its target number `target` at step `t` of that
    /// dimension.
    pub fn moving(&self, dim: usize, t: u32, target: u32, a: u32) -> CoordSet {
        let toward = self.walk.toward(dim);
        let pattern = toward.pattern();
        let hops = |b: &u32| toward.hop(*b).is_some_and(|hop| hop.target == target);
        let hopping = toward.hopping(t).iter().copied().filter(hops);
        match self.routing {
            Routing::Everything => self.all(dim),
            // `a` forwards the block for x when its image, with x moved to 0, hops towards 0.
            Routing::Toward => self.order.members(dim, hopping.map(|b| pattern.solve(a, b))),
            // The same, if the block passes `a` on its way from the root.
            Routing::FromRoot => {
                let root = self.root[dim];
                let through = hopping.filter_map(|b| {
                    let x = pattern.solve(a, b);
                    let from = toward.number(pattern.normalise(root, x));
                    toward.subtree(b).contains(&from).then_some(x)
                });
                self.order.members(dim, through)
            }
            Routing::ToRoot | Routing::AllToRoot => {
                let b = pattern.normalise(a, self.root[dim]);
                let is_moving =
                    toward.hop(b).is_some_and(|hop| (hop.step, hop.target) == (t, target));
                match self.routing {
                    _ if !is_moving => CoordSet::default(),
                    Routing::AllToRoot => self.all(dim),
                    _ => self.resident_normalised(dim, b, t),
                }
            }
            // All displacements whose path has this hop, whatever the source.
            Routing::Displaced => {
                let mut passes = vec![false; pattern.size() as usize];
                for b in hopping {
                    let Range { start, end } = toward.subtree(b);
                    passes[start as usize..end as usize].fill(true);
                }
                let has_hop = |by: &u32| passes[toward.number(pattern.normalise(0, *by)) as usize];
                self.order.members(dim, (0..pattern.size()).filter(has_hop))
            }
        }
    }

    /// [`Moves::moving`] for every coordinate `a`.
    pub fn all_moving(&self, dim: usize, t: u32, target: u32) -> Vec<CoordSet> {
        let size = self.walk.sizes()[dim];
        match self.routing {
            // The same displacements move at all coordinates.
            Routing::Displaced => vec![self.moving(dim, t, target, 0); size as usize],
            _ => (0..size).map(|a| self.moving(dim, t, target, a)).collect(),
        }
    }

    /// The blocks at coordinate `a` of dimension `dim` after `done` of its steps.
    pub fn resident(&self, dim: usize, done: u32, a: u32) -> CoordSet {
        let toward = self.walk.toward(dim);
        let pattern = toward.pattern();
        match self.routing {
            Routing::Everything | Routing::Displaced => self.all(dim),
            Routing::Toward if done == 0 => self.all(dim),
            Routing::Toward if done == pattern.n_steps() => {
                self.order.members(dim, std::iter::once(a))
            }
            Routing::Toward => {
                let gone = (0..done).flat_map(|t| toward.hopping(t));
                self.order.all_but(dim, gone.map(|&b| pattern.solve(a, b)))
            }
            Routing::FromRoot => {
                let root = self.root[dim];
                let is_here = |x: &u32| {
                    let from = toward.number(pattern.normalise(root, *x));
                    toward.resident(pattern.normalise(a, *x), done).contains(&from)
                };
                self.order.members(dim, (0..pattern.size()).filter(is_here))
            }
            Routing::ToRoot => {
                self.resident_normalised(dim, pattern.normalise(a, self.root[dim]), done)
            }
            Routing::AllToRoot => {
                match self
                    .resident_normalised(dim, pattern.normalise(a, self.root[dim]), done)
                    .is_empty()
                {
                    true => CoordSet::default(),
                    false => self.all(dim),
                }
            }
        }
    }

    /// [`Moves::resident`] for every coordinate `a` after `done` steps, at `done * size + a`.
    pub fn all_resident(&self, dim: usize) -> Vec<CoordSet> {
        let toward = self.walk.toward(dim);
        let pattern = toward.pattern();
        let (size, n_steps) = (pattern.size(), pattern.n_steps());
        if !matches!(self.routing, Routing::FromRoot) {
            let each = (0..=n_steps).flat_map(|done| (0..size).map(move |a| (done, a)));
            return each.map(|(done, a)| self.resident(dim, done, a)).collect();
        }
        // Follow every block from hop to hop; `seen` is its coordinate, normalised to the block's destination.
        let root = self.root[dim];
        let mut seen: Vec<u32> = (0..size).map(|x| pattern.normalise(root, x)).collect();
        let mut all = Vec::with_capacity((n_steps as usize + 1) * size as usize);
        for done in 0..=n_steps {
            let mut here: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); size as usize];
            for (x, b) in (0..size).zip(&mut seen) {
                if let Some(hop) = toward.hop(*b).filter(|hop| hop.step < done) {
                    *b = hop.next;
                }
                here[pattern.denormalise(*b, x) as usize].push(x);
            }
            all.extend(here.into_iter().map(|x| self.order.members(dim, x.into_iter())));
        }
        all
    }

    fn all(&self, dim: usize) -> CoordSet {
        CoordSet::interval(0..self.walk.sizes()[dim])
    }

    /// The blocks that normalised coordinate `b` holds. In a tree's order places are depth-first numbers.
    fn resident_normalised(&self, dim: usize, b: u32, done: u32) -> CoordSet {
        CoordSet::interval(self.walk.toward(dim).resident(b, done))
    }
}

/// The position order by the path from `origin` to the block's coordinate, first step most significant. It makes
/// the sets that `origin` sends contiguous, and with nested patterns the sets of every other node.
///
/// Dimensions whose sets are not nested come first, with all their levels. A set of such a dimension is a few
/// intervals, each contiguous in all later levels; interleaved levels would cut every interval again.
pub fn path_order(walk: &Walk, origin: Coord) -> PositionOrder {
    let digits = digits(walk, |dim, x| walk.toward(dim).path(origin[dim], x).collect());
    let level = |&GlobalStep { dim, t }: &GlobalStep| {
        // The sets of a chain are intervals of coordinates in their own order: one level for all steps.
        let coordinates = || (t == 0).then(|| (0..walk.sizes()[dim]).collect());
        let digits = match &digits[dim] {
            Some(digits) => Some(digits.iter().map(|path| path[t as usize]).collect()),
            None => coordinates(),
        };
        Some(Level { dim, digits: digits? })
    };
    let mut levels = Vec::new();
    let is_nested = |dim: usize| walk.pattern(dim).is_nested();
    for &dim in walk.visited().iter().filter(|&&dim| !is_nested(dim)) {
        levels.extend(walk.steps().iter().filter(|step| step.dim == dim).filter_map(level));
    }
    levels.extend(walk.steps().iter().filter(|step| is_nested(step.dim)).filter_map(level));
    PositionOrder::new(walk.sizes(), levels)
}

/// The depth-first order of the tree towards `root`: by the path to the root, last step most significant. Every
/// subtree is one run, on every shape (Bine, appendix D.2). In each dimension places are the depth-first numbers of
/// the toward table.
pub fn tree_order(walk: &Walk, root: Coord) -> PositionOrder {
    let digits = digits(walk, |dim, y| walk.toward(dim).path(y, root[dim]).collect());
    let levels = walk.steps().iter().rev().filter_map(|&GlobalStep { dim, t }| {
        let toward = walk.toward(dim);
        let pattern = toward.pattern();
        // The depth-first order of a chain is by distance: one level in place of d - 1 levels.
        let distances = || {
            let distance = |y| toward.number(pattern.normalise(y, root[dim]));
            (t + 1 == pattern.n_steps()).then(|| (0..pattern.size()).map(distance).collect())
        };
        let digits = match &digits[dim] {
            Some(digits) => Some(digits.iter().map(|path| path[t as usize]).collect()),
            None => distances(),
        };
        Some(Level { dim, digits: digits? })
    });
    PositionOrder::new(walk.sizes(), levels.collect())
}

/// For every coordinate of every dimension the digits of a path: entry `t` is 0 if step t is not on the path, else
/// 1 + the target that is taken. `None` for dimensions in which one level suffices.
fn digits(walk: &Walk, path: impl Fn(usize, u32) -> Vec<(u32, u32)>) -> Vec<Option<Vec<Vec<u32>>>> {
    let of_dim = |dim: usize| {
        let pattern = walk.pattern(dim);
        let of = |x| {
            let mut digits = vec![0; pattern.n_steps() as usize];
            for (t, target) in path(dim, x) {
                digits[t as usize] = 1 + target;
            }
            digits
        };
        (!pattern.is_chain()).then(|| (0..pattern.size()).map(of).collect())
    };
    (0..walk.sizes().len()).map(of_dim).collect()
}
