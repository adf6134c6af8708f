//! Placement of the ranks: checks that neighbours in the job's torus are neighbours on Tofu.

use std::collections::HashMap;

use hopbine::torus::Shape;
use hopbine::torus::geometry::tofu::{TofuCoord, hops};
use hopbine::torus::geometry::{AxisLink, Coord, MAX_DIMS};
use hopbine::{Info, World};

use super::findings::{Finding, slow, well, wrong};
use crate::error::CliError;

/// Sizes of Fugaku along x, y and z. If a job has all nodes of an axis, the axis wraps.
const FUGAKU: [u8; 3] = [24, 23, 24];

/// The nodes of all ranks, by the ranks' coordinates in the job's torus.
pub struct Places {
    shape: Shape,
    nodes: HashMap<Coord, TofuCoord>,
    n_ranks: usize,
}

impl Places {
    /// Gathers the nodes of all ranks.
    ///
    /// # Errors
    /// The errors of an allgather.
    pub fn of_all(world: &World) -> Result<Self, CliError> {
        const NUMBERS: usize = MAX_DIMS + 6;
        let (comm, info) = (world.communicator(), world.info());
        let shape = comm.shape().clone();
        let mut mine = [0u32; NUMBERS];
        mine[..info.coordinates.len()].copy_from_slice(&info.coordinates);
        for (to, from) in mine[MAX_DIMS..].iter_mut().zip(info.tofu_coordinates) {
            *to = from.into();
        }
        let mut all = vec![0u32; NUMBERS * comm.size() as usize];
        comm.allgather(&mine, &mut all)?;
        let n_dims = shape.n_dims();
        let nodes = all.chunks_exact(NUMBERS).map(|numbers| {
            let tofu = std::array::from_fn(|k| numbers[MAX_DIMS + k] as u8);
            (Coord::new(&numbers[..n_dims]), tofu)
        });
        Ok(Places { nodes: nodes.collect(), shape, n_ranks: all.len() / NUMBERS })
    }

    /// Checks that all ranks have different coordinates and that neighbours are one hop apart.
    pub fn findings(&self, info: &Info) -> Vec<Finding> {
        let Places { shape, nodes, n_ranks } = self;
        let what = "torus";
        if nodes.len() != *n_ranks {
            let found = format!(
                "{n_ranks} ranks of {shape} have only {} different coordinates",
                nodes.len()
            );
            return vec![wrong(what, found, "check HOPBINE_RANK_MAP and HOPBINE_TORUS")];
        }
        let (mut n_links, mut farthest, mut n_far) = (0u64, 0, 0u64);
        for (&coord, &node) in nodes {
            for next in self.next(coord) {
                let distance = distance(node, nodes[&next]);
                n_links += 1;
                n_far += u64::from(distance > 1);
                farthest = farthest.max(distance);
            }
        }
        let found = format!("{shape}, ranks on each node: {}", info.ranks_per_node);
        match (info.backend, n_far) {
            ("tofu" | "emu", 0) => {
                vec![well(what, format!("{found}; each of {n_links} links is one hop on Tofu"))]
            }
            ("tofu" | "emu", _) => vec![slow(
                what,
                format!(
                    "{found}; {n_far} of {n_links} links are more than one hop on Tofu, the longest {farthest} hops"
                ),
                "submit the job with node=XxYxZ:torus and without an order of ranks",
            )],
            _ => vec![well(
                what,
                format!("{found}; not compared with a network: this backend is not Tofu"),
            )],
        }
    }

    /// Neighbours of a coordinate in the positive direction of each dimension with links, including the wrap-around.
    fn next(&self, coord: Coord) -> impl Iterator<Item = Coord> {
        let along = |(dim, axis): (usize, &hopbine::torus::geometry::Axis)| {
            let mut next = coord.as_slice().to_vec();
            next[dim] += 1;
            // On a ring of two nodes, the wrap-around is the same link as the first one.
            let wraps = axis.link == AxisLink::Torus && axis.size > 2;
            if next[dim] == axis.size {
                next[dim] = 0;
                return wraps.then(|| Coord::new(&next));
            }
            (axis.link != AxisLink::Node).then(|| Coord::new(&next))
        };
        self.shape.axes().iter().enumerate().filter_map(along).collect::<Vec<_>>().into_iter()
    }
}

/// Hops between two nodes. An axis as long as Fugaku's is a ring.
fn distance(p: TofuCoord, q: TofuCoord) -> u32 {
    let around = |k: usize| {
        let apart = p[k].abs_diff(q[k]);
        u32::from(apart).saturating_sub((FUGAKU[k] - apart).into())
    };
    hops(p, q) - (0..3).map(around).sum::<u32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_machine_is_a_ring() {
        let at = |x| [x, 0, 0, 0, 0, 0];
        assert_eq!(distance(at(0), at(23)), 1);
        assert_eq!(distance(at(0), at(12)), 12);
        assert_eq!(distance(at(3), at(5)), 2);
        assert_eq!(distance([0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 2, 1]), 3);
    }

    #[test]
    fn each_link_is_counted_once() {
        let shape: Shape = "3x2x4m".parse().unwrap();
        let places = Places { nodes: HashMap::new(), n_ranks: 0, shape: shape.clone() };
        let n: usize = shape.vertices().map(|v| places.next(shape.coord(v)).count()).sum();
        // 3 links on each of 8 rings of three, 1 on each of 12 rings of two, 3 on each of 6 lines of four.
        assert_eq!(n, 3 * 8 + 12 + 3 * 6);
    }
}
