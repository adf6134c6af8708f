//! What a schedule puts on the wires: volume, hops, the load of every link, step by step.
//!
//! Counted on the routes of a [`Topology`], in fractions of n, the bytes of the vector (of all
//! blocks of a rank, for collectives on blocks). Purely static: no time, no protocol.

use super::flow::{Flow, Message};
use super::runs::n_positions;
use crate::geometry::{Node, Topology};
use crate::names::Rank;

/// Totals over all ranks and lanes of a collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Ranks.
    pub n_ranks: u32,
    /// Steps of the longest lane.
    pub n_steps: usize,
    /// Most that a rank sends, as a multiple of n.
    pub max_sent: f64,
    /// Mean over the ranks, as a multiple of n.
    pub mean_sent: f64,
    /// Bytes times links crossed, per rank, as a multiple of n.
    pub hop_bytes: f64,
    /// Bytes that leave their node, crossing at least one link, per rank, as a multiple of n.
    pub between_nodes: f64,
    /// Bytes that stay on their node, per rank, as a multiple of n.
    pub inside_nodes: f64,
    /// What the most loaded link carries in all, as a multiple of n.
    pub max_link_load: f64,
    /// That link's number in the topology; `None` if nothing is sent.
    pub max_link: Option<usize>,
    /// The loads of each step's most loaded link, added up, as a multiple of n: what limits a
    /// network whose ranks go through the steps together.
    pub step_load: f64,
    /// Messages of the rank that sends most of them.
    pub max_messages: usize,
    /// Runs in the message with most of them: 1 if all that is sent is contiguous.
    pub max_runs: usize,
}

impl Traffic {
    /// The larger of each figure: of several roots.
    pub fn larger(self, other: Self) -> Self {
        let (max_link_load, max_link) = if other.max_link_load > self.max_link_load {
            (other.max_link_load, other.max_link)
        } else {
            (self.max_link_load, self.max_link)
        };
        Traffic {
            n_ranks: self.n_ranks,
            n_steps: self.n_steps.max(other.n_steps),
            max_sent: self.max_sent.max(other.max_sent),
            mean_sent: self.mean_sent.max(other.mean_sent),
            hop_bytes: self.hop_bytes.max(other.hop_bytes),
            between_nodes: self.between_nodes.max(other.between_nodes),
            inside_nodes: self.inside_nodes.max(other.inside_nodes),
            max_link_load,
            max_link,
            step_load: self.step_load.max(other.step_load),
            max_messages: self.max_messages.max(other.max_messages),
            max_runs: self.max_runs.max(other.max_runs),
        }
    }

    /// Bytes times links crossed by all ranks, as a multiple of n.
    pub fn crossed(&self) -> f64 {
        self.hop_bytes * f64::from(self.n_ranks)
    }
}

/// Adds up the messages of all ranks; `place` says at which vertex of the topology a rank is.
pub fn traffic(flow: &dyn Flow, topology: &dyn Topology, place: impl Fn(Rank) -> Node) -> Traffic {
    let shares: Vec<f64> = flow.lanes().iter().map(|lane| lane.position_share()).collect();
    weighed(flow, topology, place, |lane, _, message| {
        n_positions(message.runs) as f64 * shares[lane]
    })
}

/// The same, where `volume` says what a message of a lane and a step carries, as a multiple of n,
/// asked step after step: for positions that are not all alike.
pub fn weighed(
    flow: &dyn Flow,
    topology: &dyn Topology,
    place: impl Fn(Rank) -> Node,
    volume: impl Fn(usize, usize, &Message<'_>) -> f64,
) -> Traffic {
    let n_ranks = flow.n_ranks();
    let lanes = flow.lanes();
    let n_steps = lanes.iter().map(|lane| lane.n_steps).max().unwrap_or(0);
    let places: Vec<Node> = Rank::first(n_ranks).map(place).collect();
    let mut load = vec![0.0; topology.n_links()];
    let mut sent = vec![0.0; n_ranks as usize];
    let mut messages = vec![0usize; n_ranks as usize];
    let (mut hop_bytes, mut max_runs, mut step_load) = (0.0, 0, 0.0);
    let (mut between_nodes, mut inside_nodes) = (0.0, 0.0);
    // Of the step at hand; links touched are put back to 0 after it.
    let mut load_now = vec![0.0; topology.n_links()];
    let mut touched = Vec::new();
    let tiles: Vec<_> = (0..lanes.len()).map(|lane| flow.tiles(lane, u32::MAX)).collect();
    for step in 0..n_steps {
        for (index, _) in lanes.iter().enumerate().filter(|(_, lane)| step < lane.n_steps) {
            for tile in &tiles[index] {
                flow.messages(index, step, tile, &mut |message| {
                    let volume = volume(index, step, &message);
                    sent[message.from.index()] += volume;
                    messages[message.from.index()] += 1;
                    max_runs = max_runs.max(message.runs.len());
                    let [from, to] = [message.from, message.to].map(|rank| places[rank.index()]);
                    let mut leaves = false;
                    topology.route(from, to, &mut |link| {
                        leaves = true;
                        if load_now[link] == 0.0 {
                            touched.push(link);
                        }
                        load_now[link] += volume;
                        hop_bytes += volume;
                    });
                    *(if leaves { &mut between_nodes } else { &mut inside_nodes }) += volume;
                });
            }
        }
        let mut most = 0.0f64;
        for link in touched.drain(..) {
            let carried = std::mem::take(&mut load_now[link]);
            most = most.max(carried);
            load[link] += carried;
        }
        step_load += most;
    }
    let per_rank = 1.0 / f64::from(n_ranks.max(1));
    let mut total = Traffic {
        n_ranks,
        n_steps,
        max_sent: sent.iter().copied().fold(0.0, f64::max),
        mean_sent: sent.iter().sum::<f64>() * per_rank,
        hop_bytes: hop_bytes * per_rank,
        between_nodes: between_nodes * per_rank,
        inside_nodes: inside_nodes * per_rank,
        max_link_load: 0.0,
        max_link: None,
        step_load,
        max_messages: messages.into_iter().max().unwrap_or(0),
        max_runs,
    };
    for (link, &carried) in load.iter().enumerate() {
        if carried > total.max_link_load {
            (total.max_link_load, total.max_link) = (carried, Some(link));
        }
    }
    total
}
