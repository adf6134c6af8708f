//! Networks: the links that messages cross, of the whole network and line by line.

use std::fmt;
use std::str::FromStr;

use crate::geometry::{
    Axis, AxisLink, Boards, Coord, Direction, Fold, Link, Shape, Topology, Vertex,
};
use crate::names::LinkId;

/// A kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkKind {
    /// Every dimension is a ring of its own links (Swing, section 5).
    IdealTorus,
    /// Tofu-D: six axes, onto which the dimensions of a job are folded.
    TofuD,
    /// HammingMesh with boards of `board` nodes in each dimension (Swing, section 5.4.1).
    HammingMesh {
        /// Nodes of a board, in each dimension.
        board: u32,
    },
    /// All nodes of a line are two links from each other (Swing, section 5.4.2).
    HyperX,
}

/// Why a shape cannot be on a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The shape has no fold of this number.
    #[error(
        "shape {shape} has no fold onto Tofu's six axes{}; give one to three dimensions, of whose sizes \
         those laid along a, b and c are multiples of 2, 3 (or 2) and 2",
        number(*.asked, *.folds)
    )]
    NoFold {
        /// The shape.
        shape: String,
        /// The number asked for.
        asked: usize,
        /// The number of its folds.
        folds: usize,
    },
    /// A dimension cannot be divided into boards.
    #[error("dimension {dim} of shape {shape} does not fall into boards of {board} nodes")]
    Boards {
        /// The shape.
        shape: String,
        /// The dimension.
        dim: usize,
        /// Nodes of a board.
        board: u32,
    },
}

fn number(asked: usize, folds: usize) -> String {
    if folds == 0 {
        String::new()
    } else {
        format!(" with number {asked}: there are {folds}, from 0")
    }
}

/// Error: a name that is not the name of a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a network; known are ideal-torus, tofu-d, hamming-mesh:BOARD (such as hamming-mesh:2) and hyperx"
)]
pub struct UnknownNetwork(String);

impl FromStr for NetworkKind {
    type Err = UnknownNetwork;

    fn from_str(text: &str) -> Result<Self, UnknownNetwork> {
        let unknown = || UnknownNetwork(text.to_owned());
        Ok(match text.split_once(':') {
            None if text == "ideal-torus" => NetworkKind::IdealTorus,
            None if text == "tofu-d" => NetworkKind::TofuD,
            None if text == "hyperx" => NetworkKind::HyperX,
            Some(("hamming-mesh", board)) => {
                let board = board.parse().ok().filter(|&board| board > 0).ok_or_else(unknown)?;
                NetworkKind::HammingMesh { board }
            }
            _ => return Err(unknown()),
        })
    }
}

impl fmt::Display for NetworkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkKind::IdealTorus => f.write_str("ideal-torus"),
            NetworkKind::TofuD => f.write_str("tofu-d"),
            NetworkKind::HammingMesh { board } => write!(f, "hamming-mesh:{board}"),
            NetworkKind::HyperX => f.write_str("hyperx"),
        }
    }
}

type DynTopology = Box<dyn Topology + Send + Sync>;

/// A link of a network: the vertex that it leaves, and its direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkLink {
    /// The vertex, in the coordinates of [`Network::vertices`].
    pub from: Coord,
    /// The dimension of these coordinates along which the link goes.
    pub dim: usize,
    /// The direction, the same text for links of one kind: `+x`, `-1`, `0 up at the low end`.
    pub direction: String,
}

/// A logical shape on a network.
pub struct Network {
    whole: DynTopology,
    lines: Vec<DynTopology>,
    vertices: Shape,
    boards: Option<Boards>,
    /// For each dimension with links, whether all coordinates of a line are alike: on rings of links, and on lines
    /// over one switch.
    rings: Vec<bool>,
    /// Ranks of a node.
    per_node: u32,
    /// The fold of the dimensions, on Tofu.
    pub fold: Option<Fold>,
}

impl Network {
    /// `shape` on a network of a kind; on Tofu with fold number `fold` of [`Fold::all`].
    ///
    /// # Errors
    /// [`NetworkError`] for a shape that has no place on the network.
    pub fn new(kind: NetworkKind, shape: &Shape, fold: usize) -> Result<Self, NetworkError> {
        let board = match kind {
            NetworkKind::IdealTorus => return Ok(Self::torus(shape)),
            NetworkKind::TofuD => return Self::tofu(shape, fold),
            NetworkKind::HammingMesh { board } => board,
            NetworkKind::HyperX => 1,
        };
        let node_dim = shape.node_dim();
        let of_dim = |dim: usize| match node_dim == Some(dim) {
            true => Ok(None),
            false => Boards::new(shape.size(dim), board)
                .map(Some)
                .ok_or_else(|| NetworkError::Boards { shape: shape.to_string(), dim, board }),
        };
        let boards = (0..shape.n_dims()).map(of_dim).collect::<Result<Vec<_>, _>>()?;
        let line = |(dim, boards): (usize, &Option<Boards>)| match *boards {
            Some(boards) => Box::new(boards) as DynTopology,
            None => ring(shape, dim),
        };
        let lines = boards.iter().enumerate().map(line).collect();
        let any = boards.iter().flatten().next().copied();
        let whole = Box::new(Product { shape: shape.clone(), boards });
        let rings = vec![board == 1; shape.node_dim().unwrap_or(shape.n_dims())];
        let (vertices, per_node) = (shape.clone(), shape.ranks_per_node());
        Ok(Network { whole, lines, vertices, boards: any, rings, per_node, fold: None })
    }

    fn torus(shape: &Shape) -> Self {
        let lines = (0..shape.n_dims()).map(|dim| ring(shape, dim)).collect();
        // A node axis is the last dimension.
        let linked = shape.axes().iter().take(shape.node_dim().unwrap_or(shape.n_dims()));
        let rings: Vec<bool> = linked.map(|axis| axis.link == AxisLink::Torus).collect();
        let (whole, vertices, per_node) =
            (Box::new(shape.clone()), shape.clone(), shape.ranks_per_node());
        Network { whole, lines, vertices, boards: None, rings, per_node, fold: None }
    }

    fn tofu(shape: &Shape, number: usize) -> Result<Self, NetworkError> {
        let mut folds = Fold::all(shape);
        if number >= folds.len() {
            let (shape, folds) = (shape.to_string(), folds.len());
            return Err(NetworkError::NoFold { shape, asked: number, folds });
        }
        let fold = folds.swap_remove(number);
        let line = |dim| match shape.node_dim() == Some(dim) {
            true => ring(shape, dim),
            false => Box::new(fold.line(dim)) as DynTopology,
        };
        let lines = (0..shape.n_dims()).map(line).collect();
        let embedding = fold.embedding(shape);
        Ok(Network {
            vertices: embedding.network().clone(),
            whole: Box::new(embedding),
            lines,
            boards: None,
            rings: vec![false; shape.node_dim().unwrap_or(shape.n_dims())],
            per_node: shape.ranks_per_node(),
            fold: Some(fold),
        })
    }

    /// The whole network: links between the vertices of the shape.
    pub fn whole(&self) -> &dyn Topology {
        &*self.whole
    }

    /// One line along a dimension: links between its coordinates. All lines of a dimension are alike, and no link
    /// belongs to two lines.
    pub fn line(&self, dim: usize) -> &dyn Topology {
        &*self.lines[dim]
    }

    /// The vertices that links of the network leave: those of the shape, or on Tofu those of the six axes.
    pub fn vertices(&self) -> &Shape {
        &self.vertices
    }

    /// The vertex and the direction of a link of [`Network::whole`].
    ///
    /// # Panics
    /// If no link has this number.
    pub fn link(&self, link: LinkId) -> NetworkLink {
        if self.boards.is_some() {
            return self.link_of_boards(link);
        }
        let Link { node, dim, direction } = Link::from_id(&self.vertices, link);
        let sign = if direction == Direction::Plus { '+' } else { '-' };
        let dim = usize::from(dim);
        let axis = match self.fold {
            Some(_) => Fold::AXES[dim].to_string(),
            None => dim.to_string(),
        };
        NetworkLink { from: self.vertices.coord(node), dim, direction: format!("{sign}{axis}") }
    }

    /// [`Network::link`] for boards. The links of a dimension's lines follow those of the dimension before.
    fn link_of_boards(&self, link: LinkId) -> NetworkLink {
        let shape = &self.vertices;
        let mut within = link.index();
        for dim in (0..shape.n_dims()).filter(|&dim| shape.node_dim() != Some(dim)) {
            let of_line = self.lines[dim].n_links();
            let of_dim = shape.n_ranks() as usize * of_line;
            if within < of_dim {
                let line = shape.coord(Vertex((within / of_line) as u32));
                let (node, direction) = Boards::node_and_direction(LinkId(within % of_line));
                return NetworkLink {
                    from: line.with(dim, node),
                    dim,
                    direction: format!("{dim}{direction}"),
                };
            }
            within -= of_dim;
        }
        panic!("link {link} does not exist");
    }

    /// Whether routes follow one dimension after the other. On Tofu the axes of all dimensions are mixed.
    pub(super) fn is_dimension_ordered(&self) -> bool {
        self.fold.is_none()
    }

    /// Whether the axes of its vertices are tori or meshes of links.
    pub(super) fn has_axes_of_links(&self) -> bool {
        self.boards.is_none()
    }

    /// The number of dimensions with links: all but a node axis.
    pub(super) fn n_linked(&self) -> usize {
        self.rings.len()
    }

    /// Whether all coordinates of a line along a dimension are alike; true for a node axis.
    pub(super) fn is_ring(&self, dim: usize) -> bool {
        self.rings.get(dim).copied().unwrap_or(true)
    }

    /// The shape, if each dimension with links is a ring of its own links.
    pub(crate) fn rings(&self) -> Option<&Shape> {
        let is_torus = self.boards.is_none() && self.fold.is_none();
        (is_torus && self.rings.iter().all(|is_ring| *is_ring)).then_some(&self.vertices)
    }

    /// Ranks of a node.
    pub(crate) fn per_node(&self) -> u32 {
        self.per_node
    }

    /// The node of a vertex.
    pub(super) fn node(&self, vertex: Vertex) -> u32 {
        vertex.0 / self.per_node
    }

    /// Calls `cross` with every link on the route between two vertices of the network or of a line of it; returns
    /// the numbers of cables and of links on boards.
    pub(crate) fn route(
        &self,
        on: &dyn Topology,
        [from, to]: [Vertex; 2],
        mut cross: impl FnMut(LinkId),
    ) -> [u32; 2] {
        let mut hops = [0; 2];
        on.route(from, to, &mut |link| {
            cross(link);
            hops[usize::from(self.is_on_board(link))] += 1;
        });
        hops
    }

    /// Whether a link is on a board, and so is shorter than a cable.
    pub fn is_on_board(&self, link: LinkId) -> bool {
        // A product numbers links line after line, each line from a multiple of its number of links.
        self.boards.is_some_and(|boards| boards.is_on_board(link))
    }
}

/// One dimension of a shape, as a shape.
fn ring(shape: &Shape, dim: usize) -> DynTopology {
    let axis = shape.axes()[dim];
    // A node axis has no links, and may not be the only dimension of a shape.
    let axes = match shape.node_dim() == Some(dim) {
        true => vec![Axis::torus(1), axis],
        false => vec![axis],
    };
    Box::new(Shape::from_axes(axes).expect("a dimension of a shape"))
}

/// Lines of boards along the dimensions of a shape; messages go along one dimension after the other.
struct Product {
    shape: Shape,
    /// By dimension; `None` for a node axis, which has no links.
    boards: Vec<Option<Boards>>,
}

impl Product {
    /// The number of links along the dimensions before this one. Each vertex has the links of a line, but only those
    /// of each line's first vertex are used.
    fn first_link(&self, dim: usize) -> usize {
        let links = |boards: &Boards| self.shape.n_ranks() as usize * boards.n_links();
        self.boards[..dim].iter().flatten().map(links).sum()
    }
}

impl Topology for Product {
    fn n_links(&self) -> usize {
        self.first_link(self.boards.len())
    }

    fn route(&self, from: Vertex, to: Vertex, cross: &mut dyn FnMut(LinkId)) {
        let (mut at, to) = (self.shape.first_on_node(self.shape.coord(from)), self.shape.coord(to));
        for (dim, boards) in self.boards.iter().enumerate() {
            if let Some(boards) = boards {
                let line = self.shape.vertex(at.with(dim, 0)).index();
                let first = self.first_link(dim) + line * boards.n_links();
                let ends = [at[dim], to[dim]].map(Vertex);
                boards.route(ends[0], ends[1], &mut |link| cross(LinkId(first + link.index())));
            }
            at = at.with(dim, to[dim]);
        }
    }

    fn link_name(&self, link: LinkId) -> String {
        let dim = (0..self.boards.len()).rfind(|&dim| self.first_link(dim) <= link.index());
        let Some((dim, Some(boards))) = dim.map(|dim| (dim, &self.boards[dim])) else {
            return format!("link {link}");
        };
        let within = link.index() - self.first_link(dim);
        let line = self.shape.coord(Vertex((within / boards.n_links()) as u32));
        format!("{line} along {dim}: {}", boards.link_name(LinkId(within % boards.n_links())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_the_whole_does_along_a_dimension() {
        for (kind, text) in [
            (NetworkKind::IdealTorus, "5x4m"),
            (NetworkKind::HammingMesh { board: 2 }, "4x8"),
            (NetworkKind::HyperX, "4x4+2"),
            (NetworkKind::TofuD, "8x4x4"),
        ] {
            let shape: Shape = text.parse().unwrap();
            let network = Network::new(kind, &shape, 0).unwrap();
            for (a, b) in shape.vertices().flat_map(|a| shape.vertices().map(move |b| (a, b))) {
                let ends = [a, b].map(|vertex| shape.coord(vertex));
                let hops = (0..shape.n_dims()).map(|dim| {
                    let [a, b] =
                        ends.map(|end| if shape.node_dim() == Some(dim) { 0 } else { end[dim] });
                    network.line(dim).hops(Vertex(a), Vertex(b))
                });
                let mut crossed = Vec::new();
                network.whole().route(a, b, &mut |link| crossed.push(link));
                assert_eq!(crossed.len() as u32, hops.sum::<u32>(), "{kind} {text}: {a} to {b}");
                assert!(crossed.iter().all(|link| link.index() < network.whole().n_links()));
                crossed.sort();
                crossed.dedup();
                let n_different = crossed.len() as u32;
                assert_eq!(n_different, network.whole().hops(a, b), "a link twice");
            }
        }
    }

    #[test]
    fn links_leave_the_vertices_that_messages_pass() {
        for (kind, text, first, last) in [
            (NetworkKind::IdealTorus, "5x4m", "+0", "+1"),
            (NetworkKind::HammingMesh { board: 2 }, "4x8", "0+", "1 down at the low end"),
            (NetworkKind::HyperX, "4x4+2", "0 up at the high end", "1 down at the low end"),
            (NetworkKind::TofuD, "4x4x4", "+x", "+z"),
        ] {
            let shape: Shape = text.parse().unwrap();
            let network = Network::new(kind, &shape, 0).unwrap();
            let mut to = Coord::new(&vec![1; shape.n_dims()]);
            if kind == (NetworkKind::HammingMesh { board: 2 }) {
                to = Coord::new(&[1, 2]);
            }
            let mut crossed = Vec::new();
            network.whole().route(Vertex(0), shape.vertex(to), &mut |link| {
                crossed.push(network.link(link));
            });
            let origin = Coord::new(&vec![0; network.vertices().n_dims()]);
            assert_eq!(
                (&crossed[0].from, crossed[0].direction.as_str()),
                (&origin, first),
                "{kind}"
            );
            assert_eq!(crossed[crossed.len() - 1].direction, last, "{kind}: {crossed:?}");
            assert!(crossed.iter().all(|link| network.vertices().contains(link.from)));
        }
    }

    #[test]
    fn shapes_without_a_place_are_refused() {
        let new = |kind, text: &str, fold| {
            let shape: Shape = text.parse().unwrap();
            Network::new(kind, &shape, fold).map(|_| ()).unwrap_err().to_string()
        };
        assert!(new(NetworkKind::TofuD, "2x2x2x2", 0).contains("no fold"));
        assert!(new(NetworkKind::TofuD, "4x4x4", 99).contains("number 99: there are"));
        let message = new(NetworkKind::HammingMesh { board: 4 }, "8x6", 0);
        assert!(message.contains("dimension 1 of shape 8x6"), "{message}");
        for text in ["ideal-torus", "tofu-d", "hamming-mesh:2", "hyperx"] {
            assert_eq!(text.parse::<NetworkKind>().unwrap().to_string(), text);
        }
        for text in ["", "torus", "hamming-mesh", "hamming-mesh:0", "hyperx:2"] {
            assert!(text.parse::<NetworkKind>().is_err(), "{text}");
        }
    }
}
