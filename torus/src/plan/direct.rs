//! The direct alltoall: every rank sends every block straight to its owner.
//!
//! Displacements are grouped by the link on which their dimension-order route leaves a node;
//! each round takes from different groups, so that a node's concurrent puts leave on
//! different links as long as there are such. All nodes use the same displacements in the
//! same rounds, so each round is a permutation: one put out and one in per port.

use std::sync::Arc;

use super::derive::{Exchange, RawStep};
use super::types::Run;
use crate::geometry::{Axis, AxisLink, Coord, Direction, Node, Route, Shape};

/// One port's share. Ports share one working space, in which position `i` holds first the
/// block for the node at displacement `i`, later the block from the node that many before.
#[derive(Debug)]
pub struct DirectPort {
    /// Node for which the block in each position is meant, at the start.
    pub destinations: Vec<Node>,
    /// Node from which the block in each position comes, at the end.
    pub sources: Vec<Node>,
    /// One round each.
    pub steps: Vec<RawStep>,
}

/// The rounds of each of `n_ports` ports for the node at `at`.
pub fn ports(shape: &Shape, n_ports: u32, at: Coord) -> Vec<DirectPort> {
    let shifted = |by: Node, forward: bool| {
        let by = shape.coord(by);
        let parts: Vec<u32> = (0..shape.n_dims())
            .map(|dim| {
                let size = shape.size(dim);
                let by = if forward { by[dim] } else { size - by[dim] };
                ((u64::from(at[dim]) + u64::from(by)) % u64::from(size)) as u32
            })
            .collect();
        shape.node(Coord::new(&parts))
    };
    let destinations: Vec<Node> = shape.nodes().map(|by| shifted(by, true)).collect();
    let sources: Vec<Node> = shape.nodes().map(|by| shifted(by, false)).collect();
    let mut ports: Vec<DirectPort> = (0..n_ports)
        .map(|_| DirectPort {
            destinations: destinations.clone(),
            sources: sources.clone(),
            steps: Vec::new(),
        })
        .collect();
    for round in rounds(shape, n_ports as usize) {
        for (port, displacement) in ports.iter_mut().zip(round) {
            let exchange = |peer| Exchange { peer, blocks: Arc::from([Run::new(displacement, 1)]) };
            port.steps.push(RawStep {
                sends: vec![exchange(destinations[displacement as usize])],
                recvs: vec![exchange(sources[displacement as usize])],
                own_at: 0,
            });
        }
    }
    ports
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
