//! What a schedule puts on the wires: volume, hops and the most loaded link.
//!
//! Counted on dimension-order routes of the shape (see [`crate::geometry::Route`]), in
//! fractions of n, the bytes of the vector (of all blocks of a rank, for collectives on
//! blocks). Purely static: no time, no protocol.

use super::flow::{Flow, for_each_message};
use super::types::n_positions;
use crate::geometry::{Link, RankMap, Route, Shape};

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
    /// Bytes times hops, per rank, as a multiple of n.
    pub hop_bytes: f64,
    /// What the most loaded link carries in all, as a multiple of n.
    pub max_link_load: f64,
    /// That link; `None` if nothing is sent.
    pub max_link: Option<Link>,
    /// Messages of the rank that sends most of them.
    pub max_messages: usize,
    /// Runs in the message with most of them: 1 if all that is sent is contiguous.
    pub max_runs: usize,
}

/// Adds up the messages of all ranks on a shape.
pub fn traffic(flow: &dyn Flow, shape: &Shape, map: &RankMap) -> Traffic {
    let n_ranks = flow.n_ranks();
    let mut load = vec![0.0; Link::count(shape)];
    let mut sent = vec![0.0; n_ranks as usize];
    let mut messages = vec![0usize; n_ranks as usize];
    let per_rank = 1.0 / f64::from(n_ranks.max(1));
    let (mut hop_bytes, mut max_runs) = (0.0, 0);
    let lanes = flow.lanes();
    for_each_message(flow, |lane, _, message| {
        let volume = n_positions(message.runs) as f64 * lanes[lane].position_share();
        sent[message.from.index()] += volume;
        messages[message.from.index()] += 1;
        max_runs = max_runs.max(message.runs.len());
        let [from, to] = [message.from, message.to].map(|rank| map.node_of(shape, rank.0));
        for link in Route::new(shape, from, to) {
            load[link.index(shape)] += volume;
            hop_bytes += volume * per_rank;
        }
    });
    let mut total = Traffic {
        n_ranks,
        n_steps: lanes.iter().map(|lane| lane.n_steps).max().unwrap_or(0),
        max_sent: sent.iter().copied().fold(0.0, f64::max),
        mean_sent: sent.iter().sum::<f64>() * per_rank,
        hop_bytes,
        max_link_load: 0.0,
        max_link: None,
        max_messages: messages.into_iter().max().unwrap_or(0),
        max_runs,
    };
    for (index, &carried) in load.iter().enumerate() {
        if carried > total.max_link_load {
            total.max_link_load = carried;
            total.max_link = Some(Link::from_index(shape, index));
        }
    }
    total
}
