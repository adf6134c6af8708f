//! What is not as usual in a call: blocks of several sizes, links and interfaces that are slow or dead.

use std::collections::HashSet;

use super::network::Network;
use super::refused::{FaultyPart, ScoreError};
use crate::collectives::Payload;
use crate::names::{LaneId, LinkId, PortId, Position, Rank, StepId};
use crate::plan::{Flow, Message};

/// Conditions of a call in which all ranks are followed one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// How long blocks are, as multiples of each other: of each rank's block, or in an alltoall of the blocks that
    /// each rank gives, or of all pairs, rank by rank. Empty if all are as long. Their sum, in an alltoall their sum
    /// over the number of ranks, is n.
    pub blocks: Vec<f64>,
    /// What is slow or dead.
    pub faults: Vec<Fault>,
}

/// A part of the network that is slow or dead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Which one.
    pub part: FaultyPart,
    /// Its speed, as a multiple of what it should be; 0 if it is dead. What would go through a dead
    /// interface takes the node's next one, in the order of ports; nothing goes round a dead link.
    pub speed: f64,
}

impl Conditions {
    /// Whether all is as usual.
    pub fn is_usual(&self) -> bool {
        self.blocks.is_empty() && self.faults.is_empty()
    }

    /// What is dead.
    fn dead(&self) -> HashSet<FaultyPart> {
        let dead = self.faults.iter().filter(|fault| fault.speed == 0.0);
        dead.map(|fault| fault.part).collect()
    }
}

/// Conditions of a plan on a network, checked.
pub(super) struct Checked<'a> {
    conditions: &'a Conditions,
    dead: HashSet<FaultyPart>,
    n_ports: u32,
    /// Blocks of equal size as long as these in the mean are 1.
    mean: f64,
}

impl<'a> Checked<'a> {
    pub fn new(
        conditions: &'a Conditions,
        flow: &dyn Flow,
        network: &Network,
        n_ports: u32,
    ) -> Result<Self, ScoreError> {
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
                return Err(ScoreError::NoPart { part });
            }
            if !(speed >= 0.0 && speed.is_finite()) {
                return Err(ScoreError::Speed { speed });
            }
        }
        let blocks = &conditions.blocks;
        let payload = flow.lanes().first().map(|lane| lane.space.payload);
        let fits = match payload {
            _ if blocks.is_empty() => true,
            Some(Payload::Blocks) => blocks.len() == ranks,
            Some(Payload::Pairs) => blocks.len() == ranks || blocks.len() == ranks * ranks,
            _ => return Err(ScoreError::NoBlocks { collective: flow.collective() }),
        };
        let sum: f64 = blocks.iter().sum();
        let are_sizes = blocks.iter().all(|&block| block >= 0.0) && sum.is_finite() && sum > 0.0;
        if !fits || !(are_sizes || blocks.is_empty()) {
            return Err(ScoreError::Blocks { given: blocks.len(), ranks });
        }
        let mean = sum / blocks.len().max(1) as f64;
        Ok(Checked { conditions, dead: conditions.dead(), n_ports, mean })
    }

    /// The port whose interface a node takes for messages of a port.
    pub fn via(&self, node: u32, port: PortId) -> Result<PortId, ScoreError> {
        let of = |port: u32| PortId((port % self.n_ports) as u16);
        let works = |&port: &PortId| !self.dead.contains(&FaultyPart::Interface { node, port });
        let others = (0..self.n_ports).map(|by| of(u32::from(port.0) + by));
        others.into_iter().find(works).ok_or(ScoreError::NoInterface { node })
    }

    /// Whether nothing goes over a link.
    pub fn is_dead(&self, link: LinkId) -> bool {
        self.dead.contains(&FaultyPart::Link(link))
    }

    /// What the blocks of a lane are of its positions, if they differ.
    pub fn blocks(&self, flow: &'a dyn Flow, lane: LaneId) -> Option<Blocks<'a>> {
        let weights = &self.conditions.blocks[..];
        (!weights.is_empty()).then(|| Blocks::new(flow, lane, weights, self.mean))
    }
}

/// The blocks in the positions of all ranks.
pub(super) struct Blocks<'a> {
    flow: &'a dyn Flow,
    lane: LaneId,
    weights: &'a [f64],
    mean: f64,
    /// By rank and position, what stands there, as a multiple of a block in the mean; for pairs only, whose blocks
    /// keep their positions, but not their ranks.
    held: Vec<Vec<f64>>,
}

impl<'a> Blocks<'a> {
    fn new(flow: &'a dyn Flow, lane: LaneId, weights: &'a [f64], mean: f64) -> Self {
        let mut blocks = Blocks { flow, lane, weights, mean, held: Vec::new() };
        if flow.lanes()[lane.index()].space.payload == Payload::Pairs {
            blocks.held = Rank::first(flow.n_ranks()).map(|rank| blocks.at_start(rank)).collect();
        }
        blocks
    }

    /// What stands in a rank's positions at the start.
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

    /// The messages of a step, each with the positions that it would carry if all blocks were equal.
    pub fn step(&mut self, step: StepId, visit: &mut dyn FnMut(Rank, Rank, f64)) {
        let Blocks { flow, lane, weights, mean, ref mut held } = *self;
        let mut moved = Vec::new();
        let mut count = |message: Message<'_>| {
            let Message { from, to, runs } = message;
            let positions = runs.iter().flat_map(|run| run.start..run.end());
            let mut sum = 0.0;
            for position in positions {
                let block = match held.get(from.index()) {
                    Some(held) => {
                        moved.push((to, position, held[position as usize]));
                        held[position as usize]
                    }
                    None => {
                        let space = flow.space(lane, from);
                        let block = space.block_at_start(from, Position(position));
                        block.map_or(0.0, |block| weights[block.index()] / mean)
                    }
                };
                sum += block;
            }
            // Nothing is sent for empty blocks.
            if sum > 0.0 {
                visit(from, to, sum);
            }
        };
        for tile in flow.tiles(lane, u32::MAX) {
            flow.messages(lane, step, &tile, &mut count);
        }
        for (to, position, block) in moved {
            held[to.index()][position as usize] = block;
        }
    }
}
