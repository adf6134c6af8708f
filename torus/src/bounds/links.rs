//! The links of a network, as far as bounds need them.

use smallvec::SmallVec;

use crate::geometry::{Axis, AxisLink, Shape};

/// One dimension of a network: what its lines are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineLinks {
    /// Nodes of a line.
    pub size: u32,
    /// Links out of a node, and as many into it: of the node with the fewest, of the one with the most, and
    /// on average.
    pub least: f64,
    /// See above.
    pub most: f64,
    /// See above.
    pub mean: f64,
    /// The load of the most loaded link of a line, at least, if every node of it has a message of 1/size for
    /// every node of it, itself included. 0 if it is not known.
    pub all_pairs: f64,
    /// The most links between two nodes, at least; seen from the node for which they are fewest.
    pub reach: u32,
}

impl LineLinks {
    /// The lines of a dimension of a torus or mesh; `None` for a node axis.
    ///
    /// All pairs of a ring of d: the distances add up to d^2/4 a node (d even) or (d^2 - 1)/4, over 2 d
    /// links (d if d = 2); of a mesh, floor(d/2) ceil(d/2) messages cross its middle.
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
                // The distances from one node to all, floor(d/2) ceil(d/2) in all.
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
    /// Dimension by dimension.
    pub lines: SmallVec<[LineLinks; 6]>,
    /// Ranks of a node.
    pub per_node: u32,
}

impl Links {
    /// Those of a shape as it stands: every dimension has links of its own.
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

    /// The links from any node to the one that is farthest from it, at least.
    pub fn reach(&self) -> u32 {
        self.lines.iter().map(|line| line.reach).sum()
    }
}
