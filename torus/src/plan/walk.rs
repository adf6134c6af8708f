//! A walk: the interleaving of 1-D steps that one port performs on a torus.
//!
//! Which dimension comes when is free (Swing, section 4); a walk fixes it and knows, for
//! every coordinate, when and whither a block is forwarded in each dimension.

use crate::geometry::{Coord, Node, Shape};
use crate::patterns::{Pattern, Toward};

/// How the dimensions' steps are interleaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interleave {
    /// One step of each dimension that still has steps, in turn (Swing, section 4).
    RoundRobin,
    /// All steps of a dimension before those of the next (bucket; Swing, section 2.3.4).
    Sequential,
}

/// One global step: a step of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalStep {
    /// The dimension.
    pub dim: usize,
    /// The 1-D step.
    pub t: u32,
}

/// The steps of one port and the toward tables behind them.
#[derive(Clone, Debug)]
pub struct Walk {
    sizes: Vec<u32>,
    toward: Vec<Toward>,
    steps: Vec<GlobalStep>,
    /// Global step number of each 1-D step, per dimension.
    when: Vec<Vec<u32>>,
    /// Dimensions in the order in which they are first visited.
    visited: Vec<usize>,
}

impl Walk {
    /// The walk over `patterns` (one per dimension of `shape`) that starts at the
    /// `start`-th dimension of size above 1, counted cyclically.
    pub fn new(
        shape: &Shape,
        patterns: Vec<Pattern>,
        interleave: Interleave,
        start: usize,
    ) -> Self {
        let mut visited = shape.active_dims();
        let n_active = visited.len();
        visited.rotate_left(if n_active == 0 { 0 } else { start % n_active });
        let n_steps: Vec<u32> = patterns.iter().map(Pattern::n_steps).collect();
        let step = |dim: usize, t: u32| (t < n_steps[dim]).then_some(GlobalStep { dim, t });
        // Inside the node first: what leaves it is then reduced as far as it can be.
        let within = shape.node_dim().filter(|&dim| shape.size(dim) > 1);
        let within_steps = within
            .into_iter()
            .flat_map(|dim| (0..n_steps[dim]).map(move |t| GlobalStep { dim, t }));
        let steps: Vec<GlobalStep> = match interleave {
            Interleave::RoundRobin => {
                let longest = visited.iter().map(|&dim| n_steps[dim]).max().unwrap_or(0);
                (0..longest)
                    .flat_map(|t| visited.iter().filter_map(move |&dim| step(dim, t)))
                    .collect()
            }
            Interleave::Sequential => visited
                .iter()
                .flat_map(|&dim| (0..n_steps[dim]).filter_map(move |t| step(dim, t)))
                .collect(),
        };
        let steps: Vec<GlobalStep> = within_steps.chain(steps).collect();
        visited.splice(0..0, within);
        let mut when: Vec<Vec<u32>> = n_steps.iter().map(|&n| vec![0; n as usize]).collect();
        for (number, step) in steps.iter().enumerate() {
            when[step.dim][step.t as usize] = number as u32;
        }
        let toward = patterns.into_iter().map(Toward::new).collect();
        Walk { sizes: shape.sizes(), toward, steps, when, visited }
    }

    /// The global steps in order.
    pub fn steps(&self) -> &[GlobalStep] {
        &self.steps
    }

    /// Sizes of the dimensions.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Dimensions of size above 1 in the order of their first step.
    pub fn visited(&self) -> &[usize] {
        &self.visited
    }

    /// The toward table of a dimension.
    pub fn toward(&self, dim: usize) -> &Toward {
        &self.toward[dim]
    }

    /// The pattern of a dimension.
    pub fn pattern(&self, dim: usize) -> &Pattern {
        self.toward[dim].pattern()
    }

    /// The global step at which a node with coordinate `a` in `dim` forwards what is meant
    /// for coordinate `x` there; `None` if `a` is `x`.
    pub fn when(&self, dim: usize, a: u32, x: u32) -> Option<u32> {
        self.toward[dim].step(a, x).map(|(t, _)| self.when[dim][t as usize])
    }

    /// For every coordinate x of `dim`, the digits of the path from `origin` to x: entry
    /// `t` is 0 if step t is not on it, else 1 + which target is taken.
    pub fn digits_from(&self, dim: usize, origin: u32) -> Vec<Vec<u32>> {
        self.digits(dim, |toward, x| toward.path(origin, x).collect())
    }

    /// For every coordinate y of `dim`, the digits of the path from y to `target`.
    pub fn digits_to(&self, dim: usize, target: u32) -> Vec<Vec<u32>> {
        self.digits(dim, |toward, y| toward.path(y, target).collect())
    }

    fn digits(&self, dim: usize, path: impl Fn(&Toward, u32) -> Vec<(u32, u32)>) -> Vec<Vec<u32>> {
        let n_steps = self.when[dim].len();
        (0..self.sizes[dim])
            .map(|x| {
                let mut digits = vec![0; n_steps];
                for (t, target) in path(&self.toward[dim], x) {
                    digits[t as usize] = 1 + target;
                }
                digits
            })
            .collect()
    }

    /// The node number of a coordinate.
    pub fn node(&self, coord: Coord) -> Node {
        let parts = self.sizes.iter().zip(coord.as_slice());
        Node(parts.fold(0, |node, (&size, &at)| node * size + at))
    }
}
