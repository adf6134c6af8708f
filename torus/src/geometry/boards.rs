//! A line of HammingMesh: boards whose nodes are joined like a mesh, and switches that join the ends of all boards
//! (Hoefler et al., SC 2022; Swing, section 5.4). With boards of one node it is a line of HyperX, on which any two
//! nodes are two links apart.

use super::axis::Vertex;
use super::topology::Topology;
use crate::names::LinkId;

/// A line of nodes on boards. A node has links to the next and to the previous node of its board; the nodes at the
/// ends of a board also have links up to the switches, and down from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boards {
    size: u32,
    board: u32,
}

/// The links of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Out {
    Next,
    Previous,
    /// From the low end (0) or the high end (1) of the board.
    Up(usize),
    Down(usize),
}

impl Out {
    const COUNT: usize = 6;

    fn number(self) -> usize {
        match self {
            Out::Next => 0,
            Out::Previous => 1,
            Out::Up(end) => 2 + end,
            Out::Down(end) => 4 + end,
        }
    }
}

impl Boards {
    /// A line of `size` nodes on boards of `board` nodes; `None` unless all boards are full.
    pub fn new(size: u32, board: u32) -> Option<Self> {
        (board > 0 && size.is_multiple_of(board)).then_some(Boards { size, board })
    }

    /// True if a link is on a board.
    pub fn is_on_board(&self, link: LinkId) -> bool {
        link.index() % Out::COUNT < Out::Up(0).number()
    }

    /// The node that a link leaves (or, for a link down from a switch, reaches), and the link's direction as text.
    pub fn node_and_direction(link: LinkId) -> (u32, &'static str) {
        let direction = [
            "+",
            "-",
            " up at the low end",
            " up at the high end",
            " down at the low end",
            " down at the high end",
        ][link.index() % Out::COUNT];
        ((link.index() / Out::COUNT) as u32, direction)
    }

    fn walk(&self, from: u32, to: u32, cross: &mut dyn FnMut(LinkId)) {
        let (out, step) = if from < to { (Out::Next, 1) } else { (Out::Previous, u32::MAX) };
        let mut at = from;
        while at != to {
            cross(Self::link(at, out));
            at = at.wrapping_add(step);
        }
    }

    fn link(node: u32, out: Out) -> LinkId {
        LinkId(node as usize * Out::COUNT + out.number())
    }

    /// The end of a node's board at which a message leaves or enters it: the nearer one; if both are equally near,
    /// `preferred`.
    fn end(&self, node: u32, preferred: usize) -> (u32, usize) {
        let first = node - node % self.board;
        let ends = [first, first + self.board - 1];
        let end = match ends.map(|end| end.abs_diff(node)) {
            [low, high] if low < high => 0,
            [low, high] if high < low => 1,
            _ => preferred,
        };
        (ends[end], end)
    }
}

impl Topology for Boards {
    fn n_links(&self) -> usize {
        self.size as usize * Out::COUNT
    }

    fn route(&self, Vertex(from): Vertex, Vertex(to): Vertex, cross: &mut dyn FnMut(LinkId)) {
        assert!(from.max(to) < self.size, "vertices {from} and {to} of {}", self.size);
        if from / self.board == to / self.board {
            return self.walk(from, to, cross);
        }
        // Of two equally near ends the one in the direction of a torus's shorter way. Messages to both sides of a
        // node then use both ends.
        let up = (to + self.size - from) % self.size;
        let preferred = usize::from(2 * up <= self.size);
        let (leaves, low_or_high) = self.end(from, preferred);
        let (enters, side) = self.end(to, 1 - preferred);
        self.walk(from, leaves, cross);
        cross(Self::link(leaves, Out::Up(low_or_high)));
        cross(Self::link(enters, Out::Down(side)));
        self.walk(enters, to, cross);
    }

    fn link_name(&self, link: LinkId) -> String {
        let (node, direction) = Self::node_and_direction(link);
        format!("{node}{direction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(boards: Boards, from: u32, to: u32) -> Vec<String> {
        let mut names = Vec::new();
        boards.route(Vertex(from), Vertex(to), &mut |link| names.push(boards.link_name(link)));
        names
    }

    #[test]
    fn messages_leave_boards_at_the_nearer_end() {
        let boards = Boards::new(16, 4).unwrap();
        assert_eq!(names(boards, 1, 3), ["1+", "2+"]);
        assert_eq!(
            names(boards, 1, 6),
            ["1-", "0 up at the low end", "7 down at the high end", "7-"]
        );
        assert_eq!(boards.hops(Vertex(0), Vertex(15)), 2);
        assert!(boards.is_on_board(Boards::link(3, Out::Previous)));
        assert!(!boards.is_on_board(Boards::link(3, Out::Up(1))));
        assert!(Boards::new(15, 4).is_none() && Boards::new(4, 0).is_none());
    }

    #[test]
    fn hyperx_is_two_links_from_anywhere_to_anywhere() {
        let line = Boards::new(8, 1).unwrap();
        for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
            assert_eq!(line.hops(Vertex(a), Vertex(b)), if a == b { 0 } else { 2 });
        }
        // Messages to the two sides leave over different links.
        assert_eq!(names(line, 0, 1), ["0 up at the high end", "1 down at the low end"]);
        assert_eq!(names(line, 1, 0), ["1 up at the low end", "0 down at the high end"]);
    }
}
