//! ParLinNa: an alltoall first inside every node, then between nodes (Fan et al. 2025, section 4).
//!
//! Inside a node of Q ranks blocks go by the digits of how far on their owner's place in its node
//! is, as in Bruck's alltoall with a radix from 2 to Q; blocks for all nodes go at once, those for
//! one place together. Then every rank has all blocks of its node for the ranks with its own place,
//! and sends them there directly: the Q blocks for a rank in one message (*coalesced*), or one by
//! one (*staggered*).
//!
//! Position `d * Q + m` is the displacement by `d` nodes and `m` places. Lanes share one working
//! space and have their node displacements, dealt so that concurrent messages leave on different
//! links, as in the pairwise alltoall.

use std::sync::Arc;

use smallvec::SmallVec;

use super::flow::Message;
use super::members::{Tile, clip};
use super::places::Places;
use super::rounds::displacements;
use super::types::{Blocks, Run, Step, Transfer};
use crate::geometry::{Coord, Node, Shape};

/// How ParLinNa goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParLinNa {
    /// The radix inside nodes, 2 or more.
    pub radix: u32,
    /// Messages that a rank has under way between nodes at a time, 1 or more; all if `None`.
    /// Never more than one to the same rank.
    pub batch: Option<u32>,
    /// Between nodes one message for each block.
    pub staggered: bool,
}

/// The steps of one lane.
#[derive(Debug)]
pub struct ParLinNaPass {
    places: Arc<Places>,
    steps: Vec<Vec<Hop>>,
}

/// What every rank sends to the rank this far on.
#[derive(Clone, Debug)]
struct Hop {
    by: Coord,
    blocks: Blocks,
}

/// The passes of `n_lanes` lanes.
pub fn passes(recipe: ParLinNa, places: &Arc<Places>, n_lanes: u32) -> Vec<ParLinNaPass> {
    let shape = &places.shape;
    let nodes = shape.without_node_axis();
    let lanes = displacements(&nodes, n_lanes).into_iter().enumerate();
    let pass = |(lane, between): (usize, Vec<u32>)| {
        let rows = Rows { shape, nodes: &nodes, per_node: shape.ranks_per_node() };
        // Blocks that stay on the node are the first lane's.
        let within = (lane == 0).then_some(0).into_iter().chain(between.iter().copied());
        let mut steps = rows.inside(recipe.radix, &within.collect::<Vec<_>>());
        steps.extend(rows.between(recipe, &between));
        ParLinNaPass { places: places.clone(), steps }
    };
    lanes.map(pass).collect()
}

/// Positions as rows of places, one for each node displacement.
struct Rows<'a> {
    shape: &'a Shape,
    nodes: &'a Shape,
    per_node: u32,
}

impl Rows<'_> {
    /// A step for each digit, with a message for each of its values.
    fn inside(&self, radix: u32, rows: &[u32]) -> Vec<Vec<Hop>> {
        let powers = std::iter::successors(Some(1u32), |power| power.checked_mul(radix.max(2)));
        let powers = powers.take_while(|&power| power < self.per_node);
        let hops = |power: u32| {
            let values = (1..radix).take_while(move |digit| digit * power < self.per_node);
            let hop = |digit: u32| {
                let moves = |place: &u32| place / power % radix == digit;
                let mut blocks = Blocks::new();
                for row in rows {
                    for place in (0..self.per_node).filter(moves) {
                        push(&mut blocks, row * self.per_node + place);
                    }
                }
                Hop { by: self.displacement(0, digit * power), blocks }
            };
            values.map(hop).filter(|hop| !hop.blocks.is_empty()).collect()
        };
        powers.map(hops).collect()
    }

    /// Batches of messages, none of them with two to one node.
    fn between(&self, recipe: ParLinNa, rows: &[u32]) -> Vec<Vec<Hop>> {
        let size = recipe.batch.unwrap_or(u32::MAX).max(1) as usize;
        let (n_messages, n_blocks) =
            if recipe.staggered { (self.per_node, 1) } else { (1, self.per_node) };
        let messages = |place: u32| {
            let hop = move |row: &u32| {
                let blocks = Blocks::from_slice(&[Run::new(row * self.per_node + place, n_blocks)]);
                Hop { by: self.displacement(*row, 0), blocks }
            };
            rows.chunks(size).map(move |batch| batch.iter().map(hop).collect())
        };
        (0..n_messages).flat_map(messages).collect()
    }

    fn displacement(&self, row: u32, places: u32) -> Coord {
        let nodes = self.nodes.coord(Node(row));
        let mut parts: SmallVec<[u32; 8]> =
            (0..self.nodes.n_dims()).map(|dim| nodes[dim]).collect();
        parts.extend((self.shape.n_dims() > parts.len()).then_some(places));
        Coord::new(&parts)
    }
}

fn push(blocks: &mut Blocks, position: u32) {
    match blocks.last_mut() {
        Some(last) if last.end() == position => last.len += 1,
        _ => blocks.push(Run::new(position, 1)),
    }
}

impl ParLinNaPass {
    /// Number of steps.
    pub fn n_steps(&self) -> usize {
        self.steps.len()
    }

    /// The node `by` on from one, or as far back.
    fn displaced(&self, at: Coord, by: Coord, forwards: bool) -> Coord {
        let shape = &self.places.shape;
        let part = |dim: usize| {
            let (size, by) = (u64::from(shape.size(dim)), u64::from(by[dim]));
            let by = if forwards { by } else { size - by };
            ((u64::from(at[dim]) + by) % size) as u32
        };
        Coord::new(&(0..shape.n_dims()).map(part).collect::<SmallVec<[u32; 8]>>())
    }

    /// Appends what the node at `at` does.
    pub fn list(&self, at: Coord, steps: &mut Vec<Step>) {
        steps.extend(self.steps.iter().map(|hops| {
            let transfers = |forwards| {
                let transfer = move |hop: &Hop| Transfer {
                    peer: self.places.rank(self.displaced(at, hop.by, forwards)),
                    blocks: hop.blocks.clone(),
                };
                hops.iter().map(transfer).collect()
            };
            Step { sends: transfers(true), recvs: transfers(false), ..Step::default() }
        }));
    }

    /// Visits the messages of a step as far as they touch a tile.
    pub fn messages(&self, step: usize, tile: &Tile, visit: &mut dyn FnMut(Message<'_>)) {
        let shape = &self.places.shape;
        for Hop { by, blocks } in &self.steps[step] {
            let runs: Blocks = blocks.iter().filter_map(|run| clip(*run, tile)).collect();
            if runs.is_empty() {
                continue;
            }
            for node in shape.nodes() {
                let to = self.displaced(shape.coord(node), *by, true);
                let (from, to) = (self.places.rank_on(node), self.places.rank(to));
                visit(Message { from, to, runs: &runs });
            }
        }
    }
}
