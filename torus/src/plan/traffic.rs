//! What plans put on the wires: volume, hops and the most loaded link.
//!
//! Counted on dimension-order routes of the shape (see [`crate::geometry::Route`]), in
//! fractions of n, the bytes of the vector (of all blocks of a rank, for collectives on
//! blocks). Purely static: no time, no protocol.

use super::types::{Plan, n_positions};
use crate::collectives::Collective;
use crate::geometry::{Link, RankMap, Route, Shape};

/// Totals over all ranks and ports of a collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Ranks.
    pub n_ranks: u32,
    /// Steps of the longest port.
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

/// Adds up the traffic of all ranks' plans on a shape.
pub fn traffic(plans: &[Plan], shape: &Shape, map: &RankMap) -> Traffic {
    let mut load = vec![0.0; Link::count(shape)];
    let mut total = Traffic {
        n_ranks: plans.len() as u32,
        n_steps: plans.iter().map(Plan::n_steps).max().unwrap_or(0),
        max_sent: 0.0,
        mean_sent: 0.0,
        hop_bytes: 0.0,
        max_link_load: 0.0,
        max_link: None,
        max_messages: 0,
        max_runs: 0,
    };
    let per_rank = 1.0 / (plans.len().max(1)) as f64;
    for plan in plans {
        let here = map.node_of(shape, plan.rank);
        let (mut sent, mut messages) = (0.0, 0);
        for port in &plan.ports {
            let unit = 1.0 / (f64::from(port.parts) * f64::from(port.positions));
            for send in port.steps.iter().flat_map(|step| &step.sends) {
                let volume = n_positions(&send.blocks) as f64 * unit;
                sent += volume;
                messages += 1;
                total.max_runs = total.max_runs.max(send.blocks.len());
                for link in Route::new(shape, here, map.node_of(shape, send.to)) {
                    load[link.index(shape)] += volume;
                    total.hop_bytes += volume * per_rank;
                }
            }
        }
        total.max_sent = total.max_sent.max(sent);
        total.mean_sent += sent * per_rank;
        total.max_messages = total.max_messages.max(messages);
    }
    for (index, &carried) in load.iter().enumerate() {
        if carried > total.max_link_load {
            total.max_link_load = carried;
            total.max_link = Some(Link::from_index(shape, index));
        }
    }
    total
}

/// The least that the busiest rank must send, as a multiple of n, whatever the algorithm.
///
/// Sources: Chan et al., "Collective communication: theory, practice, and experience" (2007)
/// for the bounds p - 1 over p; rooted collectives are bounded by what the root sends, or
/// what every other rank contributes.
pub fn minimal_volume(collective: Collective, n_ranks: u32) -> f64 {
    let p = f64::from(n_ranks);
    let share = if n_ranks < 2 { 0.0 } else { (p - 1.0) / p };
    match collective {
        Collective::Allreduce => 2.0 * share,
        Collective::ReduceScatter
        | Collective::Allgather
        | Collective::Scatter
        | Collective::Alltoall => share,
        // The root's vector must leave it once; every other rank's contribution must too.
        Collective::Bcast | Collective::Reduce if n_ranks > 1 => 1.0,
        Collective::Gather if n_ranks > 1 => 1.0 / p,
        Collective::Bcast | Collective::Reduce | Collective::Gather | Collective::Barrier => 0.0,
    }
}
