//! The properties of a network's links that the bounds need.

use smallvec::SmallVec;

use crate::geometry::{Axis, AxisLink, Shape};

/// The lines of one dimension of a network.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LineLinks {
    /// Nodes of a line.
    pub size: u32,
    /// Outgoing links of the node that has the fewest. A node has as many incoming as outgoing links.
    pub least: f64,
    /// Outgoing links of the node that has the most.
    pub most: f64,
    /// Outgoing links of a node, on average.
    pub mean: f64,
    /// Lower bound of the load of a line's most loaded link, if every node of the line has a message of 1/size for
    /// every node of the line, itself included. 0 if unknown.
    pub all_pairs: f64,
    /// Lower bound, in links, of the distance from a node to the farthest node of its line, whichever node it is.
    pub reach: u32,
}

impl LineLinks {
    /// The lines of a dimension of a torus or mesh; `None` for a node axis.
    ///
    /// Load for messages between all pairs: on a ring of d nodes, the distances from one node add up to d^2/4 (d
    /// even) or (d^2 - 1)/4, and the ring has 2 d links (d if d = 2). On a mesh, floor(d/2) ceil(d/2) messages cross
    /// the middle.
    pub fn of_axis(axis: Axis) -> Option<Self> {
        let d = f64::from(axis.size);
        let reach = axis.size / 2;
        let none =
            LineLinks { size: axis.size, least: 0.0, most: 0.0, mean: 0.0, all_pairs: 0.0, reach };
        let halves = f64::from(axis.size / 2) * f64::from(axis.size.div_ceil(2));
        match axis.link {
            AxisLink::Node => None,
            _ if axis.size == 1 => Some(none),
            AxisLink::Torus => {
                let links = if axis.size == 2 { 1.0 } else { 2.0 };
                // `halves` is also the sum of the distances from one node to all.
                let all_pairs = halves / (d * links);
                Some(LineLinks { least: links, most: links, mean: links, all_pairs, ..none })
            }
            AxisLink::Mesh => {
                let most = if axis.size == 2 { 1.0 } else { 2.0 };
                let mean = 2.0 * (d - 1.0) / d;
                Some(LineLinks { least: 1.0, most, mean, all_pairs: halves / d, ..none })
            }
        }
    }
}

/// The links of a network, which the ranks of a node share.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    /// The lines of each dimension.
    pub lines: SmallVec<[LineLinks; 6]>,
    /// Ranks of a node.
    pub per_node: u32,
}

impl Links {
    /// The links of a torus or mesh in which every dimension has links of its own.
    pub fn of(shape: &Shape) -> Self {
        let lines = shape.axes().iter().copied().filter_map(LineLinks::of_axis).collect();
        Links { lines, per_node: shape.ranks_per_node() }
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> f64 {
        self.lines.iter().map(|line| f64::from(line.size)).product()
    }

    /// Links out of the node that has the fewest.
    pub fn least(&self) -> f64 {
        self.of_node(|line| line.least)
    }

    /// Links out of the node that has the most.
    pub fn most(&self) -> f64 {
        self.of_node(|line| line.most)
    }

    /// Links out of a node, on average.
    pub fn mean(&self) -> f64 {
        self.of_node(|line| line.mean)
    }

    fn of_node(&self, links: impl Fn(&LineLinks) -> f64) -> f64 {
        self.lines.iter().map(links).sum()
    }

    /// Lower bound of the distance from any node to the farthest node, in links.
    pub fn reach(&self) -> u32 {
        self.lines.iter().map(|line| line.reach).sum()
    }
}
