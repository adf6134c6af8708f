//! Unusual conditions of a call: blocks of several sizes, links and interfaces that are slow or dead.

use std::collections::HashSet;

use super::error::{FaultyPart, RoutingError};
use super::network::Network;
use crate::collectives::Payload;
use crate::names::{LaneId, LinkId, PortId, Position, Rank, StepId};
use crate::plan::{Flow, Message};

/// Conditions of a call, in which all ranks are followed one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Relative lengths of blocks: one for each rank's block; in an alltoall one for the blocks that each rank gives,
    /// or one for each pair, rank by rank. Empty if all blocks are equally long. The sum of all blocks is n; in an
    /// alltoall n is this sum over the number of ranks.
    pub blocks: Vec<f64>,
    /// Slow and dead parts.
    pub faults: Vec<Fault>,
}

/// A part of the network that is slow or dead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// The part.
    pub part: FaultyPart,
    /// Its speed, as a multiple of its usual speed; 0 if it is dead. Messages of a dead interface use the node's next
    /// interface, in the order of ports. No message goes round a dead link.
    pub speed: f64,
}

impl Conditions {
    /// Whether there are no such conditions.
    pub fn is_usual(&self) -> bool {
        self.blocks.is_empty() && self.faults.is_empty()
    }

    /// The dead parts.
    fn dead(&self) -> HashSet<FaultyPart> {
        let dead = self.faults.iter().filter(|fault| fault.speed == 0.0);
        dead.map(|fault| fault.part).collect()
    }
}

/// Conditions, checked for a plan on a network.
pub(super) struct CheckedConditions<'a> {
    conditions: &'a Conditions,
    dead: HashSet<FaultyPart>,
    n_ports: u32,
    /// Mean of the relative lengths; a block of this length counts as 1 position.
    mean: f64,
}

impl<'a> CheckedConditions<'a> {
    pub fn new(
        conditions: &'a Conditions,
        flow: &dyn Flow,
        network: &Network,
        n_ports: u32,
    ) -> Result<Self, RoutingError> {
        let ranks = flow.n_ranks() as usize;
        let n_nodes = flow.n_ranks() / network.per_node();
        for &Fault { part, speed } in &conditions.faults {
            let is_there = match part {
                FaultyPart::Link(link) => link.index() < network.whole().n_links(),
                FaultyPart::Interface { node, port } => {
                    node < n_nodes && u32::from(port.0) < n_ports
                }
            };
            if !is_there {
                return Err(RoutingError::NoPart { part });
            }
            if !(speed >= 0.0 && speed.is_finite()) {
                return Err(RoutingError::Speed { speed });
            }
        }
        let blocks = &conditions.blocks;
        let payload = flow.lanes().first().map(|lane| lane.space.payload);
        let fits = match payload {
            _ if blocks.is_empty() => true,
            Some(Payload::Blocks) => blocks.len() == ranks,
            Some(Payload::Pairs) => blocks.len() == ranks || blocks.len() == ranks * ranks,
            _ => return Err(RoutingError::NoBlocks { collective: flow.collective() }),
        };
        let sum: f64 = blocks.iter().sum();
        let are_sizes = blocks.iter().all(|&block| block >= 0.0) && sum.is_finite() && sum > 0.0;
        if !fits || !(are_sizes || blocks.is_empty()) {
            return Err(RoutingError::Blocks { given: blocks.len(), ranks });
        }
        let mean = sum / blocks.len().max(1) as f64;
        Ok(CheckedConditions { conditions, dead: conditions.dead(), n_ports, mean })
    }

    /// The port whose interface carries a node's messages of a port.
    pub fn via(&self, node: u32, port: PortId) -> Result<PortId, RoutingError> {
        let of = |port: u32| PortId((port % self.n_ports) as u16);
        let works = |&port: &PortId| !self.dead.contains(&FaultyPart::Interface { node, port });
        let others = (0..self.n_ports).map(|by| of(u32::from(port.0) + by));
        others.into_iter().find(works).ok_or(RoutingError::NoInterface { node })
    }

    /// Whether a link is dead.
    pub fn is_dead(&self, link: LinkId) -> bool {
        self.dead.contains(&FaultyPart::Link(link))
    }

    /// The blocks of a lane at its positions, if blocks differ in length.
    pub fn blocks(&self, flow: &'a dyn Flow, lane: LaneId) -> Option<BlockLengths<'a>> {
        let weights = &self.conditions.blocks[..];
        (!weights.is_empty()).then(|| BlockLengths::new(flow, lane, weights, self.mean))
    }
}

/// The blocks at the positions of all ranks.
pub(super) struct BlockLengths<'a> {
    flow: &'a dyn Flow,
    lane: LaneId,
    weights: &'a [f64],
    mean: f64,
    /// By rank and position, the length of the block there, as a multiple of the mean. For pairs only, whose blocks
    /// keep their positions, but move between ranks.
    lengths: Vec<Vec<f64>>,
}

impl<'a> BlockLengths<'a> {
    fn new(flow: &'a dyn Flow, lane: LaneId, weights: &'a [f64], mean: f64) -> Self {
        let mut blocks = BlockLengths { flow, lane, weights, mean, lengths: Vec::new() };
        if flow.lanes()[lane.index()].space.payload == Payload::Pairs {
            blocks.lengths =
                Rank::first(flow.n_ranks()).map(|rank| blocks.at_start(rank)).collect();
        }
        blocks
    }

    /// Lengths of the blocks at a rank's positions at the start.
    fn at_start(&self, rank: Rank) -> Vec<f64> {
        let (space, ranks) = (self.flow.space(self.lane, rank), self.flow.n_ranks() as usize);
        let of = |position| match space.block_at_start(rank, position) {
            Some(to) if self.weights.len() > ranks => {
                self.weights[rank.index() * ranks + to.index()] / self.mean
            }
            Some(_) => self.weights[rank.index()] / self.mean,
            None => 0.0,
        };
        Position::first(space.n_positions).map(of).collect()
    }

    /// Visits the messages of a step, each with the number of positions that it would carry if all blocks were equal.
    pub fn step(&mut self, step: StepId, visit: &mut dyn FnMut(Rank, Rank, f64)) {
        let BlockLengths { flow, lane, weights, mean, ref mut lengths } = *self;
        let mut moved = Vec::new();
        let mut count = |message: Message<'_>| {
            let Message { from, to, runs } = message;
            let positions = runs.iter().flat_map(|run| run.start..run.end());
            let mut sum = 0.0;
            for position in positions {
                let block = match lengths.get(from.index()) {
                    Some(lengths) => {
                        moved.push((to, position, lengths[position as usize]));
                        lengths[position as usize]
                    }
                    None => {
                        let space = flow.space(lane, from);
                        let block = space.block_at_start(from, Position(position));
                        block.map_or(0.0, |block| weights[block.index()] / mean)
                    }
                };
                sum += block;
            }
            // Empty blocks are not sent.
            if sum > 0.0 {
                visit(from, to, sum);
            }
        };
        for tile in flow.tiles(lane, u32::MAX) {
            flow.messages(lane, step, &tile, &mut count);
        }
        for (to, position, block) in moved {
            lengths[to.index()][position as usize] = block;
        }
    }
}
