//! Lower bounds of the time of a call on a machine, in ns.

use super::links::Links;
use super::spread::spread_ns;
use super::traffic::{NodeVolume, bisection};
use super::{BoundKind, largest};
use crate::collectives::{Collective, Share, Sums};
use crate::names::Rank;

/// The limits of a network and of the software on it. Speeds in bytes per ns, times in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The links of the network.
    pub links: Links,
    /// Speed of a link in one direction.
    pub link: f64,
    /// Speed of a network interface in one direction; a node has one for each port.
    pub interface: f64,
    /// Speed at which all threads of a rank together combine data.
    pub reduce: f64,
    /// Time to enter and leave a call.
    pub call_ns: f64,
    /// Time to post a message.
    pub post_ns: f64,
    /// Latency of an empty message to a neighbour.
    pub latency_ns: f64,
    /// Latency of each further link of a route.
    pub hop_ns: f64,
    /// Time to poll for a message that has arrived.
    pub poll_ns: f64,
    /// Shortest time between two messages of one interface.
    pub gap_ns: f64,
}

/// The bounds of a collective on a machine; see [`BoundKind`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// In ns per byte of n; `bisection` and `reduction` as well.
    bandwidth: f64,
    bisection: f64,
    reduction: f64,
    latency_ns: f64,
}

impl Bounds {
    /// The bounds of a collective with `ports` ports on each rank.
    ///
    /// | bound | formula | source |
    /// | --- | --- | --- |
    /// | bandwidth | n times what one node, or all, must send or receive ([`LeastTraffic`](super::LeastTraffic)), over W = min(links x link, ports x interface) of a node | Chan et al. 2007, Patarasuk and Yuan 2009, arXiv 2305.18461 |
    /// | bisection | n times the load of the most loaded link of a dimension, over the speed of a link | algorithms.md section 7 |
    /// | reduction | n (N - 1)/N, for an exscan n (N - 2)/N, over the speed at which a rank combines | Chan et al. 2007 |
    /// | latency | call + the larger of the best tree to (or from) all nodes and of the way to the farthest one, from posting to seeing | Bruck et al. 1997, Bar-Noy and Kipnis 1992 |
    pub fn new(collective: Collective, ports: u32, limits: &Limits) -> Self {
        let Limits { links, link, interface, reduce, .. } = limits;
        let (n_nodes, per_node) = (links.n_nodes(), f64::from(links.per_node));
        let speed = |n_links: f64| (n_links * link).min(f64::from(ports) * interface);
        let [least, most, mean] = [links.least(), links.most(), links.mean()].map(speed);
        let n_ranks = n_nodes * per_node;
        // The fewest combinations of vectors on all ranks together. The sums of an exscan lack the last vector.
        let combinations = match (collective.is_reduction(), collective.sums()) {
            (false, _) => 0.0,
            (true, Sums::Before) => n_ranks - 2.0,
            (true, _) => n_ranks - 1.0,
        };
        Bounds {
            bandwidth: NodeVolume::of(collective, links).over(least, most, mean, n_nodes),
            bisection: bisection(collective, links) / link,
            reduction: combinations.max(0.0) / n_ranks / reduce,
            latency_ns: latency_ns(collective, ports, limits),
        }
    }

    /// Returns the bound of one kind for a call of `n` bytes, in ns.
    pub fn of(&self, kind: BoundKind, n: f64) -> f64 {
        match kind {
            BoundKind::Bandwidth => n * self.bandwidth,
            BoundKind::Bisection => n * self.bisection,
            BoundKind::Reduction => n * self.reduction,
            BoundKind::Latency => self.latency_ns,
        }
    }

    /// Returns the largest bound for a call of `n` bytes, in ns, with its kind.
    pub fn call(&self, n: f64) -> (BoundKind, f64) {
        largest(BoundKind::ALL.map(|kind| (kind, self.of(kind, n))))
    }
}

fn latency_ns(collective: Collective, ports: u32, limits: &Limits) -> f64 {
    let Limits { links, call_ns, post_ns, latency_ns, hop_ns, poll_ns, gap_ns, .. } = limits;
    let n_nodes = links.n_nodes();
    if n_nodes < 2.0 {
        return 0.0;
    }
    let delay_ns = post_ns + latency_ns + poll_ns;
    // One sender with the ports of all ranks of a node is at least as fast as these ranks.
    let messages = u64::from(ports) * u64::from(links.per_node);
    let (root, other) = (Rank(0), Rank(1));
    let gives = collective.gives(other, root, 2) != Share::Nothing || !collective.is_rooted();
    let gets = collective.gets(other, root, 2) != Share::Nothing || !collective.is_rooted();
    let spread = |gap_ns: f64| spread_ns(n_nodes as u64, messages, gap_ns, delay_ns);
    // If ranks get data, one node's data reach all nodes; if ranks give data, one node hears from all nodes.
    let spreading = if gets { spread(*gap_ns) } else { 0.0 };
    let hearing = if gives { spread(*poll_ns) } else { 0.0 };
    // A rank on the way may forward the data, if that takes less time than a further link.
    let further_ns = hop_ns.min(delay_ns);
    let farthest = delay_ns + f64::from(links.reach().saturating_sub(1)) * further_ns;
    call_ns + spreading.max(hearing).max(farthest)
}
