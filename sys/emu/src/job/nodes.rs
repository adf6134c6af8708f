//! Ranks, nodes and coordinates of a job.

use crate::job::sharing::TniSharing;
use crate::limits::coords;
use crate::limits::error::JobError;
use crate::limits::ids::{Coords, coords_ok, pack_coords};
use rustc_hash::FxHashMap;

/// The node of each rank, and the coordinates of each node.
pub(crate) struct NodePlacement {
    /// Node of each rank.
    pub(crate) node_of: Vec<u32>,
    /// Number of each rank among the ranks of its node, from 0.
    pub(crate) local_rank_of: Vec<u32>,
    /// How the ranks of a node share its TNIs and CQs.
    pub(crate) sharing: TniSharing,
    /// Largest number of ranks on one node.
    pub(crate) most_per_node: usize,
    /// Coordinates of each node; nodes are numbered in the order of their first ranks.
    pub(crate) nodes: Vec<Coords>,
    /// Nodes by their keys ([`crate::limits::ids::node_key`]).
    index: FxHashMap<u32, usize>,
    pub(crate) extent: coords::Extent,
    /// Logical sizes; their product is the number of nodes.
    pub(crate) shape: [u32; 3],
}

impl NodePlacement {
    /// `ranks` has one entry per rank; equal coordinates mean the same node. Without a shape the nodes are a row
    /// along y.
    pub(crate) fn new(
        ranks: &[Coords],
        shape: Option<[u32; 3]>,
    ) -> std::result::Result<NodePlacement, JobError> {
        if ranks.is_empty() {
            return Err(JobError::NoRanks);
        }
        let mut placement = NodePlacement {
            node_of: Vec::with_capacity(ranks.len()),
            local_rank_of: Vec::with_capacity(ranks.len()),
            sharing: TniSharing::among(1),
            most_per_node: 1,
            nodes: Vec::new(),
            index: FxHashMap::default(),
            extent: coords::extent(ranks.iter().copied()),
            shape: [1; 3],
        };
        let mut count = Vec::new();
        for (rank, &c) in ranks.iter().enumerate() {
            if !coords_ok(c) {
                return Err(JobError::Coords { rank, coords: c });
            }
            let node = *placement.index.entry(pack_coords(c)).or_insert_with(|| {
                placement.nodes.push(c);
                count.push(0);
                placement.nodes.len() - 1
            });
            placement.node_of.push(node as u32);
            placement.local_rank_of.push(count[node]);
            count[node] += 1;
        }
        placement.most_per_node = count.into_iter().max().unwrap_or(1) as usize;
        placement.sharing = TniSharing::among(placement.most_per_node);
        placement.shape = shape.unwrap_or([1, placement.nodes.len() as u32, 1]);
        Ok(placement)
    }

    /// Returns the node of a key ([`crate::limits::ids::node_key`]).
    #[inline]
    pub(crate) fn find(&self, key: u32) -> Option<usize> {
        self.index.get(&key).copied()
    }

    /// Returns the ranks on a node, in ascending order.
    pub(crate) fn ranks_at(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let all = self.node_of.iter().enumerate();
        all.filter(move |(_, n)| **n as usize == node).map(|(r, _)| r)
    }

    /// Returns the logical coordinates of a node, x running fastest.
    pub(crate) fn logical(&self, node: usize) -> [u32; 3] {
        let [x, y, _] = self.shape;
        let n = node as u32;
        [n % x, n / x % y, n / x / y]
    }

    /// Returns the node at Tofu coordinates.
    pub(crate) fn node_at(&self, c: Coords) -> Option<usize> {
        coords_ok(c).then(|| self.find(pack_coords(c)))?
    }
}
