//! Pairwise alltoall: every rank sends every block straight to its owner.
//!
//! Displacements are grouped by the link on which their dimension-order route leaves a node;
//! each round takes from different groups, so that a node's concurrent puts leave on
//! different links as long as there are such. All nodes use the same displacements in the
//! same rounds, so each round is a permutation: one put out and one in per port.
//!
//! Lanes share one working space, in which position `i` holds first the block for the node at
//! displacement `i`, later the block from the node that many before.

use std::sync::Arc;

use smallvec::SmallVec;

use super::flow::Message;
use super::members::Tile;
use super::places::Places;
use super::types::{Blocks, Run, Step, Transfer};
use crate::geometry::{Axis, AxisLink, Coord, Direction, Node, Route, Shape};

/// The steps of one lane.
#[derive(Debug)]
pub struct PairwisePass {
    pub places: Arc<Places>,
    /// The displacement of each step.
    pub displacements: Vec<u32>,
}

/// The passes of `n_lanes` lanes.
pub fn passes(places: &Arc<Places>, n_lanes: u32) -> Vec<PairwisePass> {
    let lane = |displacements| PairwisePass { places: places.clone(), displacements };
    displacements(&places.shape, n_lanes).into_iter().map(lane).collect()
}

/// All displacements but 0 in the order of their rounds, lane by lane.
pub fn displacements(shape: &Shape, n_lanes: u32) -> Vec<Vec<u32>> {
    let rounds = rounds(shape, n_lanes as usize);
    let lane = |lane| rounds.iter().filter_map(|round| round.get(lane).copied()).collect();
    (0..n_lanes as usize).map(lane).collect()
}

/// The node `by` displaced from `at`, forwards or backwards.
pub fn displaced(shape: &Shape, at: Coord, by: Coord, forwards: bool) -> Node {
    let parts: SmallVec<[u32; 8]> = (0..shape.n_dims())
        .map(|dim| {
            let size = u64::from(shape.size(dim));
            let by = if forwards { u64::from(by[dim]) } else { size - u64::from(by[dim]) };
            ((u64::from(at[dim]) + by) % size) as u32
        })
        .collect();
    shape.node(Coord::new(&parts))
}

impl PairwisePass {
    /// Appends what the node at `at` does.
    pub fn list(&self, at: Coord, steps: &mut Vec<Step>) {
        let shape = &self.places.shape;
        steps.extend(self.displacements.iter().map(|&displacement| {
            let by = shape.coord(Node(displacement));
            let transfer = |forwards| Transfer {
                peer: self.places.rank_on(displaced(shape, at, by, forwards)),
                blocks: Blocks::from_slice(&[Run::new(displacement, 1)]),
            };
            Step {
                sends: std::iter::once(transfer(true)).collect(),
                recvs: std::iter::once(transfer(false)).collect(),
                ..Step::default()
            }
        }));
    }

    /// Visits the messages of a step, if its displacement lies in the tile.
    pub fn messages(&self, step: usize, tile: &Tile, visit: &mut dyn FnMut(Message<'_>)) {
        let displacement = self.displacements[step];
        if !tile.positions().contains(&displacement) {
            return;
        }
        let shape = &self.places.shape;
        let by = shape.coord(Node(displacement));
        let runs = [Run::new(displacement, 1)];
        for node in shape.nodes() {
            let from = self.places.rank_on(node);
            let to = self.places.rank_on(displaced(shape, shape.coord(node), by, true));
            visit(Message { from, to, runs: &runs });
        }
    }
}

/// All displacements but 0, in rounds of at most `width`.
fn rounds(shape: &Shape, width: usize) -> Vec<Vec<u32>> {
    // On a mesh the way out depends on where the node is, but the rounds must be the same
    // for all: take them as the torus would.
    let wrapped = |axis: &Axis| match axis.link {
        AxisLink::Node => *axis,
        AxisLink::Torus | AxisLink::Mesh => Axis::torus(axis.size),
    };
    let torus = Shape::from_axes(shape.axes().iter().map(wrapped).collect()).expect("a shape");
    // One group for each way out of a node, and one for those that stay on it.
    let mut groups = vec![Vec::new(); 2 * shape.n_dims() + 1];
    // Backwards, so that popping gives the nearest first.
    for displacement in (1..shape.n_nodes()).rev() {
        let way = match Route::new(&torus, Node(0), Node(displacement)).next() {
            Some(link) => {
                2 * usize::from(link.dim) + usize::from(link.direction == Direction::Minus)
            }
            None => 2 * shape.n_dims(),
        };
        groups[way].push(displacement);
    }
    let mut rounds = Vec::new();
    loop {
        // The fullest groups first, each once; then again, until the round is full.
        let mut by_length: Vec<usize> =
            (0..groups.len()).filter(|&group| !groups[group].is_empty()).collect();
        if by_length.is_empty() {
            return rounds;
        }
        by_length.sort_by_key(|&group| std::cmp::Reverse(groups[group].len()));
        let mut round = Vec::with_capacity(width);
        while round.len() < width {
            let before = round.len();
            for &group in &by_length {
                if round.len() < width
                    && let Some(displacement) = groups[group].pop()
                {
                    round.push(displacement);
                }
            }
            if round.len() == before {
                break;
            }
        }
        rounds.push(round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_leave_on_different_links_while_there_are_any() {
        let shape: Shape = "4x4x4".parse().unwrap();
        let rounds = rounds(&shape, 6);
        let mut all: Vec<u32> = rounds.concat();
        all.sort_unstable();
        assert_eq!(all, (1..64).collect::<Vec<_>>());
        let ways = |round: &[u32]| {
            let links = round.iter().map(|&d| {
                let link = Route::new(&shape, Node(0), Node(d)).next().unwrap();
                (link.dim, link.direction)
            });
            links.collect::<std::collections::HashSet<_>>().len()
        };
        assert_eq!(ways(&rounds[0]), 6);
        // No round repeats a link while another link is still to be used at all.
        for at in 0..rounds.len() {
            let left = ways(&rounds[at..].concat());
            assert_eq!(ways(&rounds[at]), left.min(rounds[at].len()), "round {at}");
        }
    }
}
