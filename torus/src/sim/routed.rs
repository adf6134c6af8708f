//! A plan's messages on a network, with the resources that each crosses.

use std::collections::HashMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::speeds::Speeds;
use super::subtrees::TreesOfLanes;
use super::work::LaneWork;
use crate::collectives::Action;
use crate::names::{LaneId, LinkId, PortId, Rank, StepId};
use crate::plan::DependsOn;

/// The most messages of a call whose ranks are all followed.
const MOST_FOLLOWED: u64 = 1 << 16;

/// The number of a [`Resource`].
pub(super) type ResourceId = u32;

/// Resources that messages share. Nodes are numbered like the network's vertices, with the ranks of a node as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A link of the network; a link of a line, if one rank stands for all.
    Link(LinkId),
    /// An interface, in the direction into its node.
    In {
        /// The node.
        node: u32,
        /// The port of the interface.
        port: PortId,
    },
    /// The memory of a node, for messages between its ranks.
    Memory {
        /// The node.
        node: u32,
    },
    /// An interface, in the direction out of its node, if several ranks share it.
    Out {
        /// The node.
        node: u32,
        /// The interface.
        port: PortId,
    },
}

/// A message of a step.
#[derive(Clone, Debug)]
pub(super) struct Transit {
    pub from: u32,
    pub to: u32,
    /// The port that sends and receives it.
    pub port: PortId,
    /// Bytes, as a multiple of n.
    pub share: f64,
    /// Numbers of cables and of links on boards that it crosses.
    pub hops: [u32; 2],
    /// Resources crossed (a range of `RoutedPlan::paths`), each with the number of such messages on it at the same
    /// time.
    pub path: Range<u32>,
}

impl Transit {
    /// Whether the message is between ranks of one node, and so crosses no link.
    pub(super) fn is_intra_node(&self) -> bool {
        self.hops == [0, 0]
    }
}

/// The messages of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct RoutedStep {
    pub messages: Vec<Transit>,
    /// By agent, the start of its messages in `messages` and in `received`.
    sent_start: Vec<u32>,
    received_start: Vec<u32>,
    /// The indices of messages, sorted by receiver.
    received: Vec<u32>,
}

impl RoutedStep {
    pub(super) fn new(mut messages: Vec<Transit>, n_agents: u32) -> Self {
        messages.sort_by_key(|message| message.from);
        let starts = |of: &dyn Fn(&Transit) -> u32| {
            let mut start = vec![0u32; n_agents as usize + 1];
            messages.iter().for_each(|message| start[of(message) as usize + 1] += 1);
            for agent in 1..start.len() {
                start[agent] += start[agent - 1];
            }
            start
        };
        let (sent_start, received_start) =
            (starts(&|message| message.from), starts(&|message| message.to));
        let mut received: Vec<u32> = (0..messages.len() as u32).collect();
        received.sort_by_key(|&message| messages[message as usize].to);
        RoutedStep { messages, sent_start, received_start, received }
    }

    /// The messages that an agent sends, as indices.
    pub fn sent(&self, agent: u32) -> Range<u32> {
        self.sent_start[agent as usize]..self.sent_start[agent as usize + 1]
    }

    /// The messages that an agent receives, as indices.
    pub fn received(&self, agent: u32) -> &[u32] {
        let range = self.received_start[agent as usize]..self.received_start[agent as usize + 1];
        &self.received[range.start as usize..range.end as usize]
    }

    /// The largest sum, over the ports of an agent, of `of` for the messages that the port sends, or else receives:
    /// the ports work at the same time.
    pub fn most_of_port(&self, agent: u32, is_sent: bool, of: impl Fn(&Transit) -> f64) -> f64 {
        let mut ports: SmallVec<[(PortId, f64); 6]> = SmallVec::new();
        let mut add = |message: &Transit| match ports.iter_mut().find(|(p, _)| *p == message.port) {
            Some((_, sum)) => *sum += of(message),
            None => ports.push((message.port, of(message))),
        };
        let of_agent = |number: u32| &self.messages[number as usize];
        match is_sent {
            true => self.sent(agent).map(of_agent).for_each(&mut add),
            false => self.received(agent).iter().map(|&number| of_agent(number)).for_each(add),
        }
        ports.into_iter().map(|(_, sum)| sum).fold(0.0, f64::max)
    }
}

/// The facts of a step that scripts need, the same for all ranks.
#[derive(Clone, Copy, Debug)]
pub struct StepFacts {
    /// What a rank does with arriving data.
    pub action: Action,
    /// The step whose data its messages carry.
    pub depends_on: DependsOn,
    /// The most that a rank sends, as a multiple of n.
    pub share: f64,
    /// The most messages that a rank sends.
    pub n_sends: u32,
    /// Whether it is known that all ranks do the same.
    pub is_everywhere: bool,
    /// Whether no message leaves its node.
    pub is_intra_node: bool,
}

#[derive(Debug)]
pub(super) struct RoutedLane {
    pub steps: Vec<RoutedStep>,
}

/// A plan's messages on a network; see the module documentation.
#[derive(Debug)]
pub struct RoutedPlan {
    pub(super) n_agents: u32,
    pub(super) lanes: Vec<RoutedLane>,
    /// By lane and step, the facts that are the same for all ranks.
    pub(super) facts: Vec<Vec<StepFacts>>,
    /// By lane, the work of a rank beside its messages.
    pub(super) work: Vec<LaneWork>,
    /// By lane, the share of n of each message, if each is a whole vector.
    pub(super) whole: Vec<Option<f64>>,
    /// The trees of the lanes, if all lanes are trees and one rank stands for all.
    pub(super) trees: Option<TreesOfLanes>,
    pub(super) n_ports: u32,
    /// Paths of all messages: resources, each with the number of messages on it. A message has a range.
    pub(super) paths: Vec<(ResourceId, f32)>,
    /// Resources in order: links, interfaces in, memories, interfaces out, up to `n_resources`.
    pub(super) first_in: usize,
    pub(super) first_memory: usize,
    pub(super) first_out: usize,
    pub(super) n_resources: usize,
    /// Slow resources, each with its speed as a multiple of the usual speed.
    pub(super) slow: Vec<(ResourceId, f64)>,
    /// By agent and port, the port whose interface carries its messages instead.
    pub(super) detours: HashMap<(u32, PortId), PortId>,
    pub(super) is_exact: bool,
}

/// A message of a [`RoutedPlan`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoutedMessage<'a> {
    /// The lane of the message.
    pub lane: LaneId,
    /// The port that sends and receives it.
    pub port: PortId,
    /// The step of the lane.
    pub step: StepId,
    /// The sender; 0 if one rank stands for all.
    pub from: Rank,
    /// The receiver; 0 if one rank stands for all.
    pub to: Rank,
    /// Bytes, as a multiple of n.
    pub share: f64,
    /// Resources that it crosses ([`RoutedPlan::resource`]), each with the number of such messages at the same time.
    pub crossed: &'a [(u32, f32)],
}

impl RoutedPlan {
    /// Whether the prediction is that of all ranks: all ranks are followed, or in every step the messages of each
    /// rank cross as many links, and meet as many messages on their busiest link, as those of every other rank. If
    /// not, the rank that stands for all has the longest route and the busiest link. Messages of different lanes are
    /// compared in steps of the same number only: where lanes get apart in time and share links, the prediction may be
    /// a few per cent off.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Messages of `n_ranks` ranks that each have as many as those of this plan.
    pub(crate) fn n_messages(&self, n_ranks: u32) -> u64 {
        self.messages().count() as u64 * u64::from(n_ranks) / u64::from(self.n_agents)
    }

    /// Whether `n_ranks` ranks like those of this plan have few enough messages together to follow all ranks.
    pub fn has_few_messages(&self, n_ranks: u32) -> bool {
        self.n_messages(n_ranks) <= MOST_FOLLOWED
    }

    /// The number of ranks that are followed.
    pub fn n_agents(&self) -> u32 {
        self.n_agents
    }

    /// The number of ports that drive lanes.
    pub fn n_ports(&self) -> u32 {
        self.n_ports
    }

    /// The port through whose interface an agent sends the messages of a port.
    pub(super) fn via(&self, agent: u32, port: PortId) -> PortId {
        match self.detours.is_empty() {
            true => port,
            false => self.detours.get(&(agent, port)).copied().unwrap_or(port),
        }
    }

    /// The resource with a number of [`RoutedMessage::crossed`].
    pub fn resource(&self, number: u32) -> Resource {
        let number = number as usize;
        let interface = |first: usize| {
            let (node, port) =
                ((number - first) as u32 / self.n_ports, (number - first) as u32 % self.n_ports);
            (node, PortId(port as u16))
        };
        if number < self.first_in {
            Resource::Link(LinkId(number))
        } else if number < self.first_memory {
            let (node, port) = interface(self.first_in);
            Resource::In { node, port }
        } else if number < self.first_out {
            Resource::Memory { node: (number - self.first_memory) as u32 }
        } else {
            let (node, port) = interface(self.first_out);
            Resource::Out { node, port }
        }
    }

    /// The messages, lane after lane and step after step, in the order of their senders.
    pub fn messages(&self) -> impl Iterator<Item = RoutedMessage<'_>> {
        let lanes = LaneId::first(self.lanes.len()).zip(&self.lanes);
        let steps = lanes.flat_map(|(lane, of_lane)| {
            let steps = StepId::first(of_lane.steps.len()).zip(&of_lane.steps);
            steps.map(move |(step, of_step)| (lane, step, of_step.messages.len() as u32))
        });
        steps.flat_map(move |(lane, step, n)| {
            (0..n).map(move |number| self.message(lane, step, number))
        })
    }

    /// By resource, its speed, bytes a ns.
    pub(super) fn capacity(&self, speeds: &Speeds) -> Vec<f64> {
        let mut capacity = vec![speeds.link; self.n_resources];
        capacity[self.first_in..].fill(speeds.interface);
        capacity[self.first_memory..self.first_out].fill(speeds.copy_all);
        self.slow.iter().for_each(|&(resource, speed)| capacity[resource as usize] *= speed);
        capacity
    }

    /// Time of the busiest resource for each byte of a call, ns.
    pub(super) fn busiest_ns(&self, speeds: &Speeds) -> f64 {
        let capacity = self.capacity(speeds);
        let mut busy = vec![0.0f64; self.n_resources];
        for message in self.messages() {
            for &(resource, load) in message.crossed {
                let resource = resource as usize;
                busy[resource] += message.share * f64::from(load) / capacity[resource];
            }
        }
        busy.into_iter().fold(0.0, f64::max)
    }

    /// A message of a step, by its number in the step.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn message(&self, lane: LaneId, step: StepId, number: u32) -> RoutedMessage<'_> {
        let message = &self.lanes[lane.index()].steps[step.index()].messages[number as usize];
        RoutedMessage {
            lane,
            port: message.port,
            step,
            from: Rank(message.from),
            to: Rank(message.to),
            share: message.share,
            crossed: &self.paths[message.path.start as usize..message.path.end as usize],
        }
    }

    /// By lane, the share of n of each message, if each is a whole vector, which ranks forward piece by piece.
    pub fn whole(&self) -> &[Option<f64>] {
        &self.whole
    }

    /// By lane, the work of a rank beside its messages, if the software is hopbine.
    pub fn work(&self) -> &[LaneWork] {
        &self.work
    }
}
