//! The links that messages cross: links of a torus, links of a network in which a torus is embedded, or borders of
//! groups of nodes.

use super::axis::Vertex;
use super::route::{Link, Route};
use super::shape::Shape;
use crate::names::LinkId;

/// A network that determines the links that a message crosses.
pub trait Topology {
    /// Upper bound of link numbers: links are `LinkId(0)` up to this number, which is excluded. Some may not exist.
    fn n_links(&self) -> usize;

    /// Calls `cross` with every link on the route between two vertices, in order.
    ///
    /// # Panics
    /// If a vertex does not exist.
    fn route(&self, from: Vertex, to: Vertex, cross: &mut dyn FnMut(LinkId));

    /// The name of a link.
    fn link_name(&self, link: LinkId) -> String;

    /// Number of links on the route between two vertices.
    fn hops(&self, from: Vertex, to: Vertex) -> u32 {
        let mut hops = 0;
        self.route(from, to, &mut |_| hops += 1);
        hops
    }
}

/// The torus itself, with dimension-ordered routes: see [`Route`].
impl Topology for Shape {
    fn n_links(&self) -> usize {
        Link::count(self)
    }

    fn route(&self, from: Vertex, to: Vertex, cross: &mut dyn FnMut(LinkId)) {
        Route::new(self, from, to).for_each(|link| cross(link.id(self)));
    }

    fn link_name(&self, link: LinkId) -> String {
        Link::from_id(self, link).name(self)
    }
}

/// Groups of vertices, such as a Dragonfly's groups or the subtrees of a tapered fat tree. A message that leaves
/// its group crosses one link, the group's link to the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexGroups {
    group_of: Vec<u32>,
    n_groups: usize,
}

impl VertexGroups {
    /// Groups given by the group number of each vertex.
    pub fn new(group_of: Vec<u32>) -> Self {
        let n_groups = group_of.iter().map(|&group| group as usize + 1).max().unwrap_or(0);
        VertexGroups { group_of, n_groups }
    }

    /// Groups of `size` consecutive vertices, of `n` vertices in all.
    ///
    /// # Panics
    /// If `size` is 0.
    pub fn consecutive(n: u32, size: u32) -> Self {
        Self::new((0..n).map(|node| node / size).collect())
    }
}

impl Topology for VertexGroups {
    fn n_links(&self) -> usize {
        self.n_groups
    }

    fn route(&self, from: Vertex, to: Vertex, cross: &mut dyn FnMut(LinkId)) {
        let group = self.group_of[from.index()];
        if group != self.group_of[to.index()] {
            cross(LinkId(group as usize));
        }
    }

    fn link_name(&self, link: LinkId) -> String {
        format!("out of group {link}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_torus_is_its_own_topology() {
        let shape: Shape = "5x4".parse().unwrap();
        let mut names = Vec::new();
        shape.route(Vertex(0), Vertex(18), &mut |link| names.push(shape.link_name(link)));
        assert_eq!(names, ["(0,0)-0", "(4,0)+1", "(4,1)+1"]);
        assert_eq!(shape.hops(Vertex(0), Vertex(18)), 3);
    }

    #[test]
    fn messages_that_leave_their_group_are_counted() {
        let groups = VertexGroups::consecutive(10, 4);
        assert_eq!(groups.n_links(), 3);
        assert_eq!(groups.hops(Vertex(0), Vertex(3)), 0);
        let mut crossed = Vec::new();
        groups.route(Vertex(5), Vertex(8), &mut |link| crossed.push(groups.link_name(link)));
        assert_eq!(crossed, ["out of group 1"]);
    }
}
