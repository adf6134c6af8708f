//! Lower bounds without a machine: the least traffic, in units of n.

use super::links::Links;
use super::{BoundKind, largest};
use crate::collectives::Collective;

/// Volumes that nodes must send or receive, in units of n.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NodeVolume {
    /// Volume that one node sends or receives.
    pub one: f64,
    /// Whether `one` is the volume of every node; else it is that of some nodes.
    pub every: bool,
    /// Volume that all nodes together send.
    pub all: f64,
}

impl NodeVolume {
    /// The volumes of a collective. S = (V - 1)/V = (N - c)/N is the share of the data that belongs to other nodes:
    ///
    /// | collective | one node | all nodes | source |
    /// | --- | --- | --- | --- |
    /// | allgather, reduce-scatter | S, every one | V - 1 | Chan et al. 2007; cuts: arXiv 2305.18461 |
    /// | allreduce | 1, every one | 2 (V - 1), as ranks reduce | Patarasuk and Yuan 2009 |
    /// | bcast, reduce | 1, every one | V - 1 | Chan et al. 2007 |
    /// | gather, scatter | S, the root's | S | Chan et al. 2007 |
    /// | alltoall | c S, every one | V c S | each block leaves its node once |
    /// | scan, exscan | 1, all nodes but one | V - 1 | a later rank on another node needs the vector |
    /// | barrier | 0 | 0 | no data |
    pub fn of(collective: Collective, links: &Links) -> Self {
        let (n_nodes, per_node) = (links.n_nodes(), f64::from(links.per_node));
        if n_nodes < 2.0 {
            return NodeVolume { one: 0.0, every: true, all: 0.0 };
        }
        let (others, share) = (n_nodes - 1.0, (n_nodes - 1.0) / n_nodes);
        let (one, every, all) = match collective {
            Collective::Allgather | Collective::ReduceScatter => (share, true, others),
            Collective::Allreduce => (1.0, true, 2.0 * others),
            Collective::Bcast | Collective::Reduce => (1.0, true, others),
            Collective::Gather | Collective::Scatter => (share, false, share),
            Collective::Alltoall => (per_node * share, true, n_nodes * per_node * share),
            Collective::Scan | Collective::Exscan => (1.0, false, others),
            Collective::Barrier => (0.0, true, 0.0),
        };
        NodeVolume { one, every, all }
    }

    /// Returns the volume over the speed of a node, the larger for one node and for all nodes. Speeds, in links or in
    /// bytes per unit of time, are those of the slowest node, the fastest node, and the mean.
    pub fn over(&self, least: f64, most: f64, mean: f64, n_nodes: f64) -> f64 {
        let over = |volume: f64, speed: f64| if volume > 0.0 { volume / speed } else { 0.0 };
        let one = over(self.one, if self.every { least } else { most });
        one.max(over(self.all, mean * n_nodes))
    }
}

/// Bisection bound: the load, in units of n, of the most loaded link of an alltoall, at least. 0 for other
/// collectives.
///
/// Along a dimension of d coordinates each line of nodes of c ranks has c n/d bytes for each pair of its coordinates.
/// On a ring of even d each link carries c d/8 n, as half of all data cross the middle. Source: algorithms.md section
/// 7 (h_i / l_i).
pub(super) fn bisection(collective: Collective, links: &Links) -> f64 {
    if collective != Collective::Alltoall {
        return 0.0;
    }
    let of_line = links.lines.iter().map(|line| line.all_pairs);
    f64::from(links.per_node) * of_line.fold(0.0, f64::max)
}

/// Lower bounds of a collective's traffic, in units of n.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeastTraffic {
    /// Volume that the busiest rank sends: [`Collective::minimal_volume`].
    pub sent: f64,
    /// Load of the most loaded link, if loads are balanced over the links of each node: the larger of one node's
    /// volume over its links, and of all nodes' volume over all links.
    pub bandwidth: f64,
    /// Load of the most loaded link, if loads are balanced over the links of each dimension.
    pub bisection: f64,
}

impl LeastTraffic {
    /// The bounds of a collective on a network.
    pub fn new(collective: Collective, links: &Links) -> Self {
        let n_nodes = links.n_nodes();
        let volume = NodeVolume::of(collective, links);
        let n_ranks = n_nodes * f64::from(links.per_node);
        LeastTraffic {
            sent: collective.minimal_volume(n_ranks as u32),
            bandwidth: volume.over(links.least(), links.most(), links.mean(), n_nodes),
            bisection: bisection(collective, links),
        }
    }

    /// Returns the least load of the most loaded link, with the kind of the bound.
    pub fn link(&self) -> (BoundKind, f64) {
        largest([(BoundKind::Bandwidth, self.bandwidth), (BoundKind::Bisection, self.bisection)])
    }
}
