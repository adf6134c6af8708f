//! Lower bounds of schedules that are not over walks: rank after rank, and along spanning trees.

use super::bound::BoundModel;
use crate::geometry::{Trees, Vertex};
use crate::plan::{PrefixSteps, Recipe, Schedule, TreeWays};

impl BoundModel<'_> {
    /// The bound of a schedule that is not over a walk, ns.
    pub fn other(&self, schedule: &Schedule) -> f64 {
        let any = self.any(schedule.ports);
        match schedule.recipe {
            Recipe::Prefix(PrefixSteps::Chain) => any.max(self.rank_after_rank(schedule)),
            Recipe::Trees(TreeWays::Lines) => any.max(self.trees(schedule)),
            Recipe::Trees(TreeWays::Cycles) => any.max(self.cycles(schedule)),
            _ => any,
        }
    }

    /// The bound along spanning trees, ns: each segment leaves after the others, and goes from node to node to the
    /// deepest.
    fn trees(&self, schedule: &Schedule) -> f64 {
        let shape = &self.request.shape;
        let trees = Trees::new(shape, schedule.map.vertex_of(shape, schedule.root));
        let root = shape.coord(trees.root());
        // Nodes deep in some tree: last on the line of one dimension, and half way along the others.
        let far = |dim: usize, by: u32| (root[dim] + by) % shape.size(dim);
        let half =
            (0..shape.n_dims()).fold(root, |at, dim| at.with(dim, far(dim, shape.size(dim) / 2)));
        let behind = |dim: usize| {
            let ends = [1, shape.size(dim).saturating_sub(1)];
            ends.map(|by| half.with(dim, far(dim, by)))
        };
        let deep = (0..shape.n_dims()).flat_map(behind).chain([half]);
        let deep: Vec<Vertex> = deep.map(|at| shape.vertex(at)).collect();
        let parts = schedule.ports.min(trees.n_trees() as u32);
        self.pipelined(parts, |bytes| {
            let of_way = |tree: usize, from: Vertex| {
                let (mut at, mut ns) = (from, 0.0);
                while let Some(above) = trees.parent(tree, at) {
                    let [one, other] = [at, above].map(|at| at.0 / shape.ranks_per_node());
                    ns += self.hop(bytes, one == other);
                    at = above;
                }
                ns
            };
            let ways =
                (0..parts as usize).flat_map(|tree| deep.iter().map(move |&from| (tree, from)));
            ways.map(|(tree, from)| of_way(tree, from)).fold(0.0, f64::max)
        })
    }

    /// The bound along a chain of all ranks, ns.
    fn rank_after_rank(&self, schedule: &Schedule) -> f64 {
        let shape = &self.request.shape;
        let others = f64::from(shape.n_ranks() - 1);
        let hop = |bytes| match shape.ranks_per_node() {
            1 => self.hop(bytes, false),
            _ => self.hop(bytes, true).min(self.hop(bytes, false)),
        };
        self.pipelined(schedule.n_parts(), |bytes| others * hop(bytes))
    }

    /// The bound around cycles, ns: the last node is behind all others, whichever node it is.
    fn cycles(&self, schedule: &Schedule) -> f64 {
        let shape = &self.request.shape;
        let hops = f64::from(shape.n_ranks() / shape.ranks_per_node() - 1);
        self.pipelined(schedule.n_parts(), |bytes| hops * self.hop(bytes, false))
    }

    /// Time of `parts` parts in segments that follow each other, ns. `longest` is the time of a segment of some bytes
    /// to the last rank, ns.
    fn pipelined(&self, parts: u32, longest: impl Fn(f64) -> f64) -> f64 {
        let of_segments = self.segments(parts).map(|n| {
            let bytes = self.part(parts) / n;
            let longest = longest(bytes);
            let others = (n - 1.0) * bytes * self.uncontended_ns().min(self.intra_node_ns());
            // A single rank sends nothing.
            if longest > 0.0 { others + longest } else { 0.0 }
        });
        self.machine.call_ns + of_segments.fold(f64::INFINITY, f64::min)
    }
}
