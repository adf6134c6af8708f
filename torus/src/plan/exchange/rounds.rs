//! Rounds of displacements: the order in which a rank exchanges messages with the other ranks.
//!
//! Displacements are grouped by the link on which their dimension-order route leaves a node. Each round takes
//! displacements from different groups, so a node's concurrent puts leave on different links as long as several
//! groups are left. All nodes use the same displacements in the same round, so each round is a permutation: every
//! port sends one put and receives one.

use smallvec::SmallVec;

use crate::geometry::{Axis, AxisLink, Coord, Direction, Route, Shape, Vertex};

/// All displacements except 0 in the order of their rounds, lane by lane.
pub fn displacements(shape: &Shape, n_lanes: u32) -> Vec<Vec<u32>> {
    dealt(&rounds(shape, n_lanes as usize, |_| true), n_lanes)
}

/// The displacements of each lane: one of each round.
pub fn dealt(rounds: &[Vec<u32>], n_lanes: u32) -> Vec<Vec<u32>> {
    let lane = |lane| rounds.iter().filter_map(|round| round.get(lane).copied()).collect();
    (0..n_lanes as usize).map(lane).collect()
}

/// The node `by` displaced from `at`.
pub fn displaced(shape: &Shape, at: Coord, by: Coord) -> Vertex {
    let parts: SmallVec<[u32; 8]> = (0..shape.n_dims())
        .map(|dim| {
            let size = u64::from(shape.size(dim));
            ((u64::from(at[dim]) + u64::from(by[dim])) % size) as u32
        })
        .collect();
    shape.vertex(Coord::new(&parts))
}

/// The displacements except 0 that are `wanted`, in rounds of at most `width`.
pub fn rounds(shape: &Shape, width: usize, wanted: impl Fn(u32) -> bool) -> Vec<Vec<u32>> {
    // On a mesh the first link of a route depends on the node's place, but the rounds must be the same for all
    // nodes: use the routes of the torus.
    let wrapped = |axis: &Axis| match axis.link {
        AxisLink::Node => *axis,
        AxisLink::Torus | AxisLink::Mesh => Axis::torus(axis.size),
    };
    let torus = Shape::from_axes(shape.axes().iter().map(wrapped).collect()).expect("a shape");
    // One group for each direction out of a node, and one for displacements inside the node.
    let mut groups = vec![Vec::new(); 2 * shape.n_dims() + 1];
    // In descending order, so that `pop` returns the nearest first.
    for displacement in (1..shape.n_ranks()).rev().filter(|&by| wanted(by)) {
        let way = match Route::new(&torus, Vertex(0), Vertex(displacement)).next() {
            Some(link) => {
                2 * usize::from(link.dim) + usize::from(link.direction == Direction::Minus)
            }
            None => 2 * shape.n_dims(),
        };
        groups[way].push(displacement);
    }
    let mut rounds = Vec::new();
    loop {
        // One displacement of each group, the largest group first; repeated until the round is full.
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
        let rounds = rounds(&shape, 6, |_| true);
        let mut all: Vec<u32> = rounds.concat();
        all.sort_unstable();
        assert_eq!(all, (1..64).collect::<Vec<_>>());
        let ways = |round: &[u32]| {
            let links = round.iter().map(|&d| {
                let link = Route::new(&shape, Vertex(0), Vertex(d)).next().unwrap();
                (link.dim, link.direction)
            });
            links.collect::<std::collections::HashSet<_>>().len()
        };
        assert_eq!(ways(&rounds[0]), 6);
        // No round uses a link twice while another link is still needed in this or a later round.
        for at in 0..rounds.len() {
            let left = ways(&rounds[at..].concat());
            assert_eq!(ways(&rounds[at]), left.min(rounds[at].len()), "round {at}");
        }
    }
}
