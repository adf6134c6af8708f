//! Ranks, nodes and coordinates of a job: who is where.

use crate::job::sharing::Sharing;
use crate::limits::coords;
use crate::limits::error::JobError;
use crate::limits::ids::{Coords, coords_ok, pack_coords};

/// Which ranks are on which nodes, and where these are.
pub(crate) struct Layout {
    /// Node of each rank.
    pub(crate) node_of: Vec<u32>,
    /// Number of each rank among those of its node.
    pub(crate) place_of: Vec<u32>,
    /// How the ranks of a node share its TNIs and CQs.
    pub(crate) sharing: Sharing,
    /// Most ranks on one node.
    pub(crate) most_per_node: usize,
    /// Coordinates of each node, in the order of its first rank.
    pub(crate) nodes: Vec<Coords>,
    /// Open hash table: (node key + 1) << 32 | node; 0: empty.
    index: Vec<u64>,
    pub(crate) extent: coords::Extent,
    /// Logical sizes; their product is the number of nodes.
    pub(crate) shape: [u32; 3],
}

fn hash(key: u32, mask: usize) -> usize {
    (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask
}

impl Layout {
    /// One entry per rank; equal coordinates mean the same node. Without a shape the nodes are a
    /// row along y.
    pub(crate) fn new(
        ranks: &[Coords],
        shape: Option<[u32; 3]>,
    ) -> std::result::Result<Layout, JobError> {
        if ranks.is_empty() {
            return Err(JobError::NoRanks);
        }
        let mut layout = Layout {
            node_of: Vec::with_capacity(ranks.len()),
            place_of: Vec::with_capacity(ranks.len()),
            sharing: Sharing::among(1),
            most_per_node: 1,
            nodes: Vec::new(),
            index: vec![0; (ranks.len() * 2).next_power_of_two()],
            extent: coords::extent(ranks.iter().copied()),
            shape: [1; 3],
        };
        let mut count = Vec::new();
        for (rank, &c) in ranks.iter().enumerate() {
            if !coords_ok(c) {
                return Err(JobError::Coords { rank, coords: c });
            }
            let key = pack_coords(c);
            let node = layout.find(key).unwrap_or_else(|| {
                let node = layout.nodes.len();
                layout.nodes.push(c);
                count.push(0);
                let mask = layout.index.len() - 1;
                let mut at = hash(key, mask);
                while layout.index[at] != 0 {
                    at = (at + 1) & mask;
                }
                layout.index[at] = (u64::from(key) + 1) << 32 | node as u64;
                node
            });
            layout.node_of.push(node as u32);
            layout.place_of.push(count[node]);
            count[node] += 1;
        }
        layout.most_per_node = count.into_iter().max().unwrap_or(1) as usize;
        layout.sharing = Sharing::among(layout.most_per_node);
        layout.shape = shape.unwrap_or([1, layout.nodes.len() as u32, 1]);
        Ok(layout)
    }

    /// The node of a key ([`crate::limits::ids::node_key`]).
    #[inline]
    pub(crate) fn find(&self, key: u32) -> Option<usize> {
        let mask = self.index.len() - 1;
        let mut at = hash(key, mask);
        loop {
            let word = self.index[at];
            if word == 0 {
                return None;
            }
            if word >> 32 == u64::from(key) + 1 {
                return Some(word as u32 as usize);
            }
            at = (at + 1) & mask;
        }
    }

    /// Ranks at a node, in order.
    pub(crate) fn ranks_at(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let all = self.node_of.iter().enumerate();
        all.filter(move |(_, n)| **n as usize == node).map(|(r, _)| r)
    }

    /// Logical coordinates of a node, x running fastest.
    pub(crate) fn logical(&self, node: usize) -> [u32; 3] {
        let [x, y, _] = self.shape;
        let n = node as u32;
        [n % x, n / x % y, n / x / y]
    }

    /// The node at coordinates.
    pub(crate) fn node_at(&self, c: Coords) -> Option<usize> {
        coords_ok(c).then(|| self.find(pack_coords(c)))?
    }
}
