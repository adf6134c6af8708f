//! A walk: the interleaving of 1-D steps that one lane performs on a torus.

use std::ops::Range;

use super::rounds::fewest_rounds;
use smallvec::SmallVec;

use crate::geometry::{Coord, Shape};
use crate::patterns::{Pattern, Toward};

/// The order in which the steps of the dimensions alternate. All steps of a node axis come first, so that as much
/// as possible is combined inside a node before data leave it (Bine, section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interleave {
    /// One step of each dimension in turn, among those that have steps left.
    RoundRobin,
    /// Round robin from the last steps: far-first steps in the reverse of the order that near-first steps have.
    RoundRobinBackwards,
    /// All steps of one dimension, then all of the next (bucket).
    Sequential,
    /// In the fewest rounds of one or several steps in which a rank sends at most `messages` messages: for the
    /// latency form, whose groups nest.
    Fused {
        /// At least 1; a round of a single step may have more.
        messages: u32,
    },
}

/// One step of a walk: step `t` of the pattern of dimension `dim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalStep {
    /// The dimension.
    pub dim: usize,
    /// The number of the step in the dimension's pattern.
    pub t: u32,
}

/// The steps of all dimensions, in one order.
#[derive(Clone, Debug)]
pub struct Walk {
    sizes: Vec<u32>,
    toward: Vec<Toward>,
    steps: Vec<GlobalStep>,
    rounds: Vec<Range<usize>>,
    visited: Vec<usize>,
}

impl Walk {
    /// The walk over `patterns`, one per dimension of `shape`, starting at the `start`-th dimension with links,
    /// counted cyclically. If a pattern is smaller than its dimension, only the first coordinates take part.
    pub fn new(
        shape: &Shape,
        patterns: Vec<Pattern>,
        interleave: Interleave,
        start: usize,
    ) -> Self {
        let n_steps: SmallVec<[u32; 8]> = patterns.iter().map(Pattern::n_steps).collect();
        let (mut steps, mut rounds) = (Vec::new(), Vec::new());
        match interleave {
            Interleave::Fused { messages } => {
                let node: Vec<usize> = shape.node_dim().into_iter().collect();
                for dims in [&node, &linked_from(shape, start)] {
                    fuse(&patterns, dims, messages, &mut steps, &mut rounds);
                }
            }
            _ => steps = interleaved(shape, &n_steps, interleave, start),
        }
        if rounds.is_empty() {
            rounds.extend((0..steps.len()).map(|step| step..step + 1));
        }
        let visited = shape.node_dim().into_iter().chain(linked_from(shape, start)).collect();
        let sizes = patterns.iter().map(Pattern::size).collect();
        let toward = patterns.into_iter().map(Toward::new).collect();
        Walk { sizes, toward, steps, rounds, visited }
    }

    /// The global steps in order.
    pub fn steps(&self) -> &[GlobalStep] {
        &self.steps
    }

    /// The rounds, as ranges of steps that are taken together: one step each unless some are fused.
    pub fn rounds(&self) -> &[Range<usize>] {
        &self.rounds
    }

    /// Sizes of the patterns, by dimension.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// True if a node's coordinates are inside the walk.
    pub fn contains(&self, at: Coord) -> bool {
        at.is_below(&self.sizes)
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
}

/// The dimensions with links, starting at the `start`-th, cyclically.
fn linked_from(shape: &Shape, start: usize) -> Vec<usize> {
    let mut linked = shape.active_dims();
    let n_linked = linked.len();
    linked.rotate_left(if n_linked == 0 { 0 } else { start % n_linked });
    linked
}

/// `n_steps[dim]` steps of each dimension in the order of a walk; for [`Interleave::Fused`] one dimension after
/// another.
pub(crate) fn interleaved(
    shape: &Shape,
    n_steps: &[u32],
    interleave: Interleave,
    start: usize,
) -> Vec<GlobalStep> {
    let linked = linked_from(shape, start);
    let step = |dim: usize, t: u32| (t < n_steps[dim]).then_some(GlobalStep { dim, t });
    let whole = |dim: usize| (0..n_steps[dim]).filter_map(move |t| step(dim, t));
    let mut steps: Vec<GlobalStep> = shape.node_dim().into_iter().flat_map(whole).collect();
    let longest = linked.iter().map(|&dim| n_steps[dim]).max().unwrap_or(0);
    match interleave {
        Interleave::RoundRobin => {
            let round = |t| linked.iter().filter_map(move |&dim| step(dim, t));
            steps.extend((0..longest).flat_map(round));
        }
        Interleave::RoundRobinBackwards => {
            let from_end = |dim: usize, round: u32| step(dim, n_steps[dim].checked_sub(round + 1)?);
            let round = |round| linked.iter().rev().filter_map(move |&dim| from_end(dim, round));
            steps.extend((0..longest).rev().flat_map(round));
        }
        Interleave::Sequential | Interleave::Fused { .. } => {
            steps.extend(linked.iter().copied().flat_map(whole));
        }
    }
    steps
}

/// Appends the steps of `dims`, fused into the fewest rounds.
fn fuse(
    patterns: &[Pattern],
    dims: &[usize],
    messages: u32,
    steps: &mut Vec<GlobalStep>,
    rounds: &mut Vec<Range<usize>>,
) {
    let factor = |pattern: &Pattern, t| pattern.targets(t, 0).len() as u32 + 1;
    let factors = dims.iter().map(|&dim| {
        let pattern = &patterns[dim];
        (0..pattern.n_steps()).map(|t| factor(pattern, t)).collect()
    });
    let factors: Vec<Vec<u32>> = factors.collect();
    let mut done = vec![0; dims.len()];
    for round in fewest_rounds(&factors, messages) {
        let first = steps.len();
        for ((&dim, done), taken) in dims.iter().zip(&mut done).zip(round) {
            steps.extend((*done..*done + taken).map(|t| GlobalStep { dim, t }));
            *done += taken;
        }
        rounds.push(first..steps.len());
    }
}
