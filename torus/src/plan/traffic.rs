//! The traffic of a schedule: volume, hops, and the load of every link, step by step.
//!
//! Routes are those of a [`Topology`]. Volumes are fractions of n, the bytes of the vector (of all blocks of a
//! rank, for collectives on blocks). The count is static: no time, no protocol.

use super::ir::flow::{Flow, Message};
use super::ir::runs::n_positions;
use crate::geometry::{Topology, Vertex};
use crate::names::{LaneId, LinkId, Rank, StepId};

/// Totals of a collective over all ranks and lanes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Traffic {
    /// Number of ranks.
    pub n_ranks: u32,
    /// Number of steps of the longest lane.
    pub n_steps: usize,
    /// Lower bound on the steps of any algorithm whose ranks send and receive at most as many messages in a step as
    /// the ranks of this one do for one part of the data (Bruck et al. 1997):
    /// [`Collective::minimal_steps`](crate::Collective::minimal_steps).
    pub min_steps: u32,
    /// The most that a rank sends, as a multiple of n.
    pub max_sent: f64,
    /// Mean over the ranks of what they send, as a multiple of n.
    pub mean_sent: f64,
    /// Bytes times links crossed, per rank, as a multiple of n.
    pub hop_bytes: f64,
    /// Bytes that leave their node, crossing at least one link, per rank, as a multiple of n.
    pub between_nodes: f64,
    /// Bytes that stay on their node, per rank, as a multiple of n.
    pub inside_nodes: f64,
    /// Total load of the most loaded link, as a multiple of n.
    pub max_link_load: f64,
    /// The most loaded link; `None` if nothing is sent.
    pub max_link: Option<LinkId>,
    /// Sum over the steps of the load of the step's most loaded link, as a multiple of n. It bounds the time on a
    /// network whose ranks perform the steps in lockstep.
    pub step_load: f64,
    /// The most messages that a rank sends.
    pub max_messages: usize,
    /// The most messages that a rank has in flight at a time by the windows of its lanes; `None` if only data
    /// dependencies delay them.
    pub in_flight: Option<u64>,
    /// The most runs of a message: 1 if all messages are contiguous.
    pub max_runs: usize,
}

impl Traffic {
    /// Bytes times links crossed by all ranks, as a multiple of n.
    pub fn crossed(&self) -> f64 {
        self.hop_bytes * f64::from(self.n_ranks)
    }

    /// Of each figure the larger value of two flows, as of calls with several roots.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        let busier = if other.max_link_load > self.max_link_load { &other } else { &self };
        Traffic {
            n_ranks: self.n_ranks,
            n_steps: self.n_steps.max(other.n_steps),
            min_steps: self.min_steps.max(other.min_steps),
            max_sent: self.max_sent.max(other.max_sent),
            mean_sent: self.mean_sent.max(other.mean_sent),
            hop_bytes: self.hop_bytes.max(other.hop_bytes),
            between_nodes: self.between_nodes.max(other.between_nodes),
            inside_nodes: self.inside_nodes.max(other.inside_nodes),
            max_link_load: busier.max_link_load,
            max_link: busier.max_link,
            step_load: self.step_load.max(other.step_load),
            max_messages: self.max_messages.max(other.max_messages),
            in_flight: self.in_flight.zip(other.in_flight).map(|(a, b)| a.max(b)),
            max_runs: self.max_runs.max(other.max_runs),
        }
    }
}

/// Adds up the messages of all ranks; `place` maps a rank to its vertex of the topology.
pub fn traffic(
    flow: &dyn Flow,
    topology: &dyn Topology,
    place: impl Fn(Rank) -> Vertex,
) -> Traffic {
    let shares: Vec<f64> = flow.lanes().iter().map(|lane| lane.position_share()).collect();
    traffic_with_volumes(flow, topology, place, |lane, _, message| {
        n_positions(message.runs) as f64 * shares[lane.index()]
    })
}

/// Like [`traffic`], with the volume of each message given by `volume`, as a multiple of n, for positions of
/// different sizes. It is called step after step.
pub fn traffic_with_volumes(
    flow: &dyn Flow,
    topology: &dyn Topology,
    place: impl Fn(Rank) -> Vertex,
    volume: impl Fn(LaneId, StepId, &Message<'_>) -> f64,
) -> Traffic {
    let n_ranks = flow.n_ranks();
    let lanes = flow.lanes();
    let n_steps = lanes.iter().map(|lane| lane.n_steps).max().unwrap_or(0);
    let places: Vec<Vertex> = Rank::first(n_ranks).map(place).collect();
    let mut load = vec![0.0; topology.n_links()];
    let mut sent = vec![0.0; n_ranks as usize];
    let mut messages = vec![0usize; n_ranks as usize];
    let (mut hop_bytes, mut max_runs, mut step_load) = (0.0, 0, 0.0);
    let (mut between_nodes, mut inside_nodes) = (0.0, 0.0);
    // Load in the current step; the links in `touched` are reset to 0 after it.
    let mut load_now = vec![0.0; topology.n_links()];
    let mut touched = Vec::new();
    let tiles: Vec<_> = LaneId::first(lanes.len()).map(|lane| flow.tiles(lane, u32::MAX)).collect();
    let mut counts = MessageCounts::new(lanes.len(), n_ranks);
    for step in 0..n_steps {
        for (index, _) in lanes.iter().enumerate().filter(|(_, lane)| step < lane.n_steps) {
            for tile in &tiles[index] {
                flow.messages(LaneId(index), StepId(step), tile, &mut |message| {
                    let volume = volume(LaneId(index), StepId(step), &message);
                    sent[message.from.index()] += volume;
                    messages[message.from.index()] += 1;
                    counts.add(index, message.from, message.to);
                    max_runs = max_runs.max(message.runs.len());
                    let [from, to] = [message.from, message.to].map(|rank| places[rank.index()]);
                    let mut leaves = false;
                    topology.route(from, to, &mut |link| {
                        leaves = true;
                        let load = &mut load_now[link.index()];
                        if *load == 0.0 {
                            touched.push(link);
                        }
                        *load += volume;
                        hop_bytes += volume;
                    });
                    *(if leaves { &mut between_nodes } else { &mut inside_nodes }) += volume;
                });
            }
            counts.end_step();
        }
        let mut most = 0.0f64;
        for link in touched.drain(..) {
            let carried = std::mem::take(&mut load_now[link.index()]);
            most = most.max(carried);
            load[link.index()] += carried;
        }
        step_load += most;
    }
    let per_rank = 1.0 / f64::from(n_ranks.max(1));
    let mut total = Traffic {
        n_ranks,
        n_steps,
        min_steps: counts.min_steps(flow),
        max_sent: sent.iter().copied().fold(0.0, f64::max),
        mean_sent: sent.iter().sum::<f64>() * per_rank,
        hop_bytes: hop_bytes * per_rank,
        between_nodes: between_nodes * per_rank,
        inside_nodes: inside_nodes * per_rank,
        max_link_load: 0.0,
        max_link: None,
        step_load,
        max_messages: messages.into_iter().max().unwrap_or(0),
        in_flight: counts.in_flight(flow),
        max_runs,
    };
    for (link, &carried) in LinkId::first(load.len()).zip(&load) {
        if carried > total.max_link_load {
            (total.max_link_load, total.max_link) = (carried, Some(link));
        }
    }
    total
}

/// Numbers of messages that ranks send, and receive, in a step of a lane.
struct MessageCounts {
    /// By lane, the largest numbers of any rank and step: sends, receives.
    most: Vec<[u32; 2]>,
    /// Numbers of the current step, by rank; reset to 0 after it.
    now: [Vec<u32>; 2],
    touched: Vec<Rank>,
}

impl MessageCounts {
    fn new(n_lanes: usize, n_ranks: u32) -> Self {
        let none = || vec![0; n_ranks as usize];
        MessageCounts { most: vec![[0; 2]; n_lanes], now: [none(), none()], touched: Vec::new() }
    }

    fn add(&mut self, lane: usize, from: Rank, to: Rank) {
        for (side, rank) in [from, to].into_iter().enumerate() {
            let now = &mut self.now[side][rank.index()];
            *now += 1;
            self.most[lane][side] = self.most[lane][side].max(*now);
        }
        self.touched.extend([from, to]);
    }

    fn end_step(&mut self) {
        for rank in self.touched.drain(..) {
            self.now.iter_mut().for_each(|now| now[rank.index()] = 0);
        }
    }

    /// The largest minimal number of steps of any part of the data.
    fn min_steps(&self, flow: &dyn Flow) -> u32 {
        let lanes = || flow.lanes().iter().zip(&self.most);
        let of_part = |part| {
            let of_part = lanes().filter(|(lane, _)| lane.part == part);
            let [sends, recvs] = of_part
                .fold([0, 0], |sum: [u32; 2], (_, most)| [sum[0] + most[0], sum[1] + most[1]]);
            flow.collective().minimal_steps(flow.n_ranks(), sends, recvs)
        };
        lanes().map(|(lane, _)| of_part(lane.part)).max().unwrap_or(0)
    }

    fn in_flight(&self, flow: &dyn Flow) -> Option<u64> {
        let lanes = flow.lanes().iter().zip(&self.most);
        lanes
            .map(|(lane, [sends, _])| {
                let steps = u64::from(lane.window?.get()).min(lane.n_steps as u64);
                Some(steps * u64::from(*sends))
            })
            .sum()
    }
}
