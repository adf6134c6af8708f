//! ParLinNa: an alltoall first inside every node, then between nodes (Fan et al. 2025, section 4).
//!
//! Inside a node of Q ranks blocks are forwarded by the digits of their displacement to the owner's place in its
//! node, as in Bruck's alltoall, with a radix from 2 to Q; blocks for all nodes are sent together. Then every rank
//! holds all blocks of its node for the ranks with its own place, and sends them directly: the Q blocks for a rank
//! in one message (*coalesced*), or one by one (*staggered*).
//!
//! Position `d * Q + m` is the displacement by `d` nodes and `m` places. Lanes share one working space. Node
//! displacements are distributed over the lanes so that concurrent messages leave on different links, as in the
//! pairwise alltoall.

use std::sync::Arc;

use super::rounds::displacements;
use super::{ExchangePass, Shift};
use crate::plan::ir::grid::Grid;
use crate::plan::ir::runs::{Run, Runs, append};

/// The passes of `n_lanes` lanes over `grid`, which must have no leaders, and nodes as groups. Between nodes a step
/// has `batch` messages; all messages if `None`.
pub fn passes(
    radix: u32,
    batch: Option<u32>,
    staggered: bool,
    grid: &Arc<Grid>,
    n_lanes: u32,
) -> Vec<ExchangePass> {
    let shape = &grid.torus().shape;
    let rows = NodeRows { per_node: shape.ranks_per_node() };
    let lanes = displacements(&shape.without_node_axis(), n_lanes).into_iter().enumerate();
    let pass = |(lane, between): (usize, Vec<u32>)| {
        // The first lane also moves the blocks that stay on the node.
        let within = (lane == 0).then_some(0).into_iter().chain(between.iter().copied());
        let mut steps = rows.inside(radix, &within.collect::<Vec<_>>());
        steps.extend(rows.between(batch, staggered, &between));
        ExchangePass::of_hops(grid.clone(), steps)
    };
    lanes.map(pass).collect()
}

/// Positions as rows of places: one row for each node displacement.
struct NodeRows {
    per_node: u32,
}

impl NodeRows {
    /// The steps inside a node: one for each digit, with one message for each value of the digit.
    fn inside(&self, radix: u32, rows: &[u32]) -> Vec<Vec<Shift>> {
        let powers = std::iter::successors(Some(1u32), |power| power.checked_mul(radix.max(2)));
        let powers = powers.take_while(|&power| power < self.per_node);
        let hops = |power: u32| {
            let values = (1..radix).take_while(move |digit| digit * power < self.per_node);
            let hop = |digit: u32| {
                let moves = |place: &u32| place / power % radix == digit;
                let mut runs = Runs::new();
                for row in rows {
                    for place in (0..self.per_node).filter(moves) {
                        append(&mut runs, row * self.per_node + place);
                    }
                }
                Shift { by: digit * power, runs }
            };
            values.map(hop).filter(|hop| !hop.runs.is_empty()).collect()
        };
        powers.map(hops).collect()
    }

    /// The steps between nodes: batches of messages, each to different nodes.
    fn between(&self, batch: Option<u32>, staggered: bool, rows: &[u32]) -> Vec<Vec<Shift>> {
        let size = batch.unwrap_or(u32::MAX).max(1) as usize;
        let (n_messages, n_blocks) =
            if staggered { (self.per_node, 1) } else { (1, self.per_node) };
        let messages = |place: u32| {
            let hop = move |row: &u32| {
                let runs = Runs::from_slice(&[Run::new(row * self.per_node + place, n_blocks)]);
                Shift { by: row * self.per_node, runs }
            };
            rows.chunks(size).map(move |batch| batch.iter().map(hop).collect())
        };
        (0..n_messages).flat_map(messages).collect()
    }
}
