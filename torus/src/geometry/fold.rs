//! Folds of a logical torus onto Tofu's six axes.
//!
//! A job requests a torus of one to three dimensions. The batch system lays each dimension along a product of the
//! axes x, y, z, a, b, c, as a closed walk through neighbours, so a long logical distance is a short physical one.
//! The product that it chooses is not published; [`Fold::all`] lists the possible ones, and measurements decide.
//!
//! A closed walk over several axes needs an axis with two coordinates (or two of b's three). It goes out at the
//! first of them, along all other axes in serpentine order (it turns back at each end of an axis), and returns
//! along the same path at the second. With all three coordinates of b it returns through the second and the third,
//! unit by unit. A walk over one axis is that axis; it is closed only if the axis wraps.
//! Messages go along x, y, z, then a, b, c, in agreement with measurements on Fugaku. (If the network itself
//! chooses the a, b, c of a path, they may be those of the sender.)

use std::fmt;

use smallvec::SmallVec;

use super::axis::{Axis, Coord, Vertex};
use super::embedding::Embedding;
use super::shape::Shape;
use super::tofu::UNIT;

/// Fugaku's axes x, y and z (24 x 23 x 24 units of 2 x 3 x 2 nodes).
const FUGAKU: [u32; 3] = [24, 23, 24];

/// A part of an axis that belongs to a logical dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoldAxis {
    /// The axis, 0 to 5 for x, y, z, a, b, c.
    pub axis: usize,
    /// Number of coordinates in the part.
    pub size: u32,
    /// True if the last coordinate is a neighbour of the first: all of b is a ring, and a dimension along y and b
    /// may be modelled as one ring, because no walk of two rows covers it if its size is not a multiple of three.
    pub wraps: bool,
}

impl FoldAxis {
    fn new(axis: usize, size: u32) -> Self {
        FoldAxis { axis, size, wraps: axis == 4 && size == UNIT[1] }
    }
}

/// The use of axis b in a fold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UseOfB {
    /// This number of its three coordinates.
    Coordinates(u32),
    /// Together with y, as a ring.
    Ring,
}

/// The axes along which each logical dimension is laid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    dims: Vec<SmallVec<[FoldAxis; 6]>>,
}

impl Fold {
    /// The letters of the six axes, in Tofu's order.
    pub const AXES: [char; 6] = ['x', 'y', 'z', 'a', 'b', 'c'];

    /// All folds of a shape of one to three dimensions. Folds that fit on Fugaku come first; among these, the plain
    /// pairs (x, a), (y, b), (z, c), then closed folds, then those with the largest part of b. Folds that differ
    /// only by the names of axes of one kind are listed once.
    pub fn all(shape: &Shape) -> Vec<Fold> {
        let linked = shape.node_dim().unwrap_or(shape.n_dims());
        let sizes: Vec<u32> = shape.sizes()[..linked].to_vec();
        if linked > 3 {
            return Vec::new();
        }
        let mut folds: Vec<Fold> = Vec::new();
        // The dimensions to which a, b and c belong, and the part of b.
        let owners = (0..linked.pow(3))
            .map(|code| [code % linked, code / linked % linked, code / linked / linked]);
        for owner in owners {
            for of_b in [
                UseOfB::Coordinates(UNIT[1]),
                UseOfB::Ring,
                UseOfB::Coordinates(2),
                UseOfB::Coordinates(1),
            ] {
                let b = if let UseOfB::Coordinates(size) = of_b { size } else { 1 };
                let inner = [UNIT[0], b, UNIT[2]];
                let mut dims: Vec<SmallVec<[FoldAxis; 6]>> = vec![SmallVec::new(); linked];
                for (unit, &dim) in owner.iter().enumerate() {
                    if inner[unit] > 1 {
                        dims[dim].push(FoldAxis::new(3 + unit, inner[unit]));
                    }
                }
                let rest: Option<Vec<u32>> = (0..linked)
                    .map(|dim| {
                        let inner: u32 = dims[dim].iter().map(|axis| axis.size).product();
                        sizes[dim].is_multiple_of(inner).then(|| sizes[dim] / inner)
                    })
                    .collect();
                let Some(mut rest) = rest else { continue };
                let ring = (of_b == UseOfB::Ring).then_some(owner[1]);
                if let Some(dim) = ring {
                    // Rings of up to four are walks of two rows. In shapes of fewer than three dimensions, measured
                    // loads are below those of rings.
                    if !dims[dim].is_empty() || sizes[dim] <= 4 || linked < 3 {
                        continue;
                    }
                    rest[dim] = sizes[dim];
                }
                // Each dimension takes one of x, y, z; in shapes of fewer than three dimensions, the dimension with
                // the largest rest may take more.
                for outer in outer_factors(&rest) {
                    let mut dims = dims.clone();
                    let mut next = 0;
                    for (dim, parts) in outer.iter().enumerate() {
                        for &size in parts {
                            let wraps = ring == Some(dim) && parts.len() == 1;
                            if size > 1 {
                                dims[dim].push(FoldAxis { axis: next, size, wraps });
                            }
                            next += 1;
                        }
                        dims[dim].sort();
                    }
                    let fold = Fold { dims };
                    if !folds.contains(&fold) {
                        folds.push(fold);
                    }
                }
            }
        }
        let is_plain = |fold: &Fold| {
            fold.dims
                .iter()
                .enumerate()
                .all(|(dim, axes)| axes.iter().all(|axis| axis.axis % 3 == dim))
        };
        let b = |fold: &Fold| {
            let mut axes = fold.dims.iter().flatten();
            match axes.find(|axis| axis.axis == 4 || axis.wraps) {
                Some(axis) if axis.axis == 4 && axis.wraps => 0,
                Some(axis) if axis.wraps => 1,
                Some(_) => 2,
                None => 3,
            }
        };
        folds.sort_by_key(|fold| {
            (!fold.is_on_fugaku(), !is_plain(fold), !fold.is_closed(), b(fold))
        });
        folds
    }

    /// The axes of a logical dimension.
    pub fn axes(&self, dim: usize) -> &[FoldAxis] {
        &self.dims[dim]
    }

    /// True if every dimension of size above 2 closes to a ring of neighbours.
    pub fn is_closed(&self) -> bool {
        self.dims.iter().all(|axes| {
            let size: u32 = axes.iter().map(|axis| axis.size).product();
            size <= 2
                || return_axis(axes).is_some()
                || matches!(axes[..], [FoldAxis { wraps: true, .. }])
        })
    }

    /// True if no part of an axis is longer than Fugaku's axis; a ring may be as long as y and b together.
    fn is_on_fugaku(&self) -> bool {
        let fits = |axis: &FoldAxis| match FUGAKU.get(axis.axis) {
            Some(&size) if axis.wraps => axis.size <= size * UNIT[1],
            Some(&size) => axis.size <= size,
            None => true,
        };
        self.dims.iter().flatten().all(fits)
    }

    /// The embedding of one logical dimension into the network of its own axes.
    pub fn line(&self, dim: usize) -> Embedding {
        let axes = &self.dims[dim];
        let network = network(axes);
        let places: Vec<Coord> = walk(axes).iter().map(|at| Coord::new(at)).collect();
        let line = Shape::torus(&[places.len() as u32]).expect("a size");
        Embedding::list(&line, network, &places).expect("a walk meets every node once")
    }

    /// The embedding of the whole shape into the network of six axes.
    pub fn embedding(&self, shape: &Shape) -> Embedding {
        let mut axes = [Axis::mesh(1); 6];
        for axis in self.dims.iter().flatten() {
            axes[axis.axis] = tofu_axis(*axis);
        }
        let network = Shape::from_axes(axes.to_vec()).expect("six axes");
        let walks: Vec<_> = self.dims.iter().map(|axes| walk(axes)).collect();
        let nodes = shape.without_node_axis();
        let place = |vertex: Vertex| {
            let logical = nodes.coord(vertex);
            let mut at = [0; 6];
            for (dim, axes) in self.dims.iter().enumerate() {
                for (axis, &coordinate) in axes.iter().zip(&walks[dim][logical[dim] as usize]) {
                    at[axis.axis] = coordinate;
                }
            }
            Coord::new(&at)
        };
        let places: Vec<Coord> = nodes.vertices().map(place).collect();
        Embedding::list(shape, network, &places)
            .expect("walks over different axes meet every node once")
    }
}

/// Formats as `x4 a2, y4 b2, z4 c2`.
impl fmt::Display for Fold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axis = |axis: &FoldAxis| format!("{}{}", Fold::AXES[axis.axis], axis.size);
        let dim =
            |axes: &SmallVec<[FoldAxis; 6]>| axes.iter().map(axis).collect::<Vec<_>>().join(" ");
        f.write_str(&self.dims.iter().map(dim).collect::<Vec<_>>().join(", "))
    }
}

/// The ways to divide x, y and z among dimensions that need `rest` coordinates of them: one axis each, and possibly
/// two for the largest, as two factors of it.
fn outer_factors(rest: &[u32]) -> Vec<Vec<SmallVec<[u32; 3]>>> {
    let one_each: Vec<SmallVec<[u32; 3]>> =
        rest.iter().map(|&size| SmallVec::from_slice(&[size])).collect();
    let mut all = vec![one_each.clone()];
    let Some(largest) = (0..rest.len()).max_by_key(|&dim| rest[dim]) else { return all };
    for first in (2..=rest[largest].isqrt()).filter(|first| rest[largest].is_multiple_of(*first)) {
        if rest.len() < 3 {
            let mut two = one_each.clone();
            two[largest] = SmallVec::from_slice(&[first, rest[largest] / first]);
            all.push(two);
        }
    }
    all
}

fn tofu_axis(FoldAxis { size, wraps, .. }: FoldAxis) -> Axis {
    if wraps { Axis::torus(size) } else { Axis::mesh(size) }
}

fn network(axes: &[FoldAxis]) -> Shape {
    let axes = match axes {
        [] => vec![Axis::mesh(1)],
        axes => axes.iter().map(|&axis| tofu_axis(axis)).collect(),
    };
    Shape::from_axes(axes).expect("at most six axes")
}

/// Coordinates along a walk, by axis.
type WalkCoord = SmallVec<[u32; 6]>;

/// The axis along which a walk returns: one with two coordinates, or all of b; preferably an axis of the unit.
fn return_axis(axes: &[FoldAxis]) -> Option<usize> {
    if axes.len() < 2 {
        return None;
    }
    let of = |wanted: &dyn Fn(&FoldAxis) -> bool| axes.iter().rposition(wanted);
    of(&|axis| axis.axis >= 3 && axis.size == 2)
        .or_else(|| of(&|axis| axis.axis == 4 && axis.size == UNIT[1]))
        .or_else(|| of(&|axis| axis.size == 2))
}

/// The walk over all coordinates of `axes`.
fn walk(axes: &[FoldAxis]) -> Vec<WalkCoord> {
    if axes.is_empty() {
        return vec![SmallVec::from_slice(&[0])];
    }
    let Some(home) = return_axis(axes) else { return serpentine(axes) };
    let mut others: SmallVec<[FoldAxis; 6]> = axes.into();
    let axis = others.remove(home);
    let out = serpentine(&others);
    let at = |node: &WalkCoord, on: u32| {
        let mut node = node.clone();
        node.insert(home, on);
        node
    };
    let mut all: Vec<WalkCoord> = out.iter().map(|node| at(node, 0)).collect();
    for (turn, node) in out.iter().rev().enumerate() {
        match axis.size {
            2 => all.push(at(node, 1)),
            // Each unit is entered where the previous one was left.
            _ if turn.is_multiple_of(2) => all.extend([at(node, 1), at(node, 2)]),
            _ => all.extend([at(node, 2), at(node, 1)]),
        }
    }
    all
}

/// A path through neighbours: to and fro along the shortest axis, for each coordinate of the longer axes.
fn serpentine(axes: &[FoldAxis]) -> Vec<WalkCoord> {
    let mut order: SmallVec<[usize; 6]> = (0..axes.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(axes[at].size));
    let mut path: Vec<WalkCoord> = vec![SmallVec::from_elem(0, axes.len())];
    for at in order {
        let size = axes[at].size;
        let mut longer = Vec::with_capacity(path.len() * size as usize);
        for (turn, node) in path.iter().enumerate() {
            for on in 0..size {
                let mut node = node.clone();
                node[at] = if turn.is_multiple_of(2) { on } else { size - 1 - on };
                longer.push(node);
            }
        }
        path = longer;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Topology;
    use crate::geometry::tofu::TofuBox;

    #[test]
    fn logical_neighbours_are_neighbours() {
        let mut n_folds = 0;
        for text in
            ["2x2x2", "4x4x4", "8x8x8", "64x64", "32x256", "12", "4x6x4", "6x9x4", "24x24x24"]
        {
            let shape: Shape = text.parse().unwrap();
            let folds = Fold::all(&shape);
            assert!(!folds.is_empty(), "{text}");
            for fold in folds {
                for dim in 0..shape.n_dims() {
                    let (line, size) = (fold.line(dim), shape.size(dim));
                    for a in 0..size {
                        let next = (a + 1) % size;
                        let is_end = next < a;
                        let hops = line.hops(Vertex(a), Vertex(next));
                        assert!(
                            hops == 1 || size == 1 || is_end && !fold.is_closed(),
                            "{text}: {fold}, dimension {dim}, {a}: {hops}"
                        );
                    }
                }
                n_folds += 1;
            }
        }
        assert!(n_folds > 30, "{n_folds}");
    }

    #[test]
    fn a_line_is_what_the_whole_does_along_a_dimension() {
        let shape: Shape = "8x4x6+2".parse().unwrap();
        for fold in Fold::all(&shape).into_iter().filter(Fold::is_closed).take(4) {
            let whole = fold.embedding(&shape);
            for dim in 0..3 {
                let line = fold.line(dim);
                for (a, b) in
                    (0..shape.size(dim)).flat_map(|a| (0..shape.size(dim)).map(move |b| (a, b)))
                {
                    let of = |at| shape.vertex(Coord::new(&[1, 1, 1, 0]).with(dim, at));
                    assert_eq!(whole.hops(of(a), of(b)), line.hops(Vertex(a), Vertex(b)), "{fold}");
                }
            }
        }
    }

    /// Folds of two dimensions are not rings, and fit on Fugaku. Bine's steps on 64x64 load their links with 14
    /// units per dimension, 28 in all; measurements show 26 (docs/model.md).
    #[test]
    fn two_dimensions_are_ladders() {
        let fold = &Fold::all(&"64x64".parse().unwrap())[0];
        assert_eq!(fold.to_string(), "x16 b2 c2, y2 z16 a2");
        let busiest = |line: &Embedding, distance: u32| {
            let mut load = vec![0; line.n_links()];
            for a in 0..64u32 {
                let forth = if a.is_multiple_of(2) { distance } else { 64 - distance };
                let ends = [a, (a + forth) % 64].map(Vertex);
                line.route(ends[0], ends[1], &mut |link| load[link.index()] += 1);
            }
            load.into_iter().max().unwrap()
        };
        for dim in 0..2 {
            let line = fold.line(dim);
            let steps = [1, 63, 3, 59, 11, 43].map(|distance| busiest(&line, distance));
            assert_eq!(steps.iter().sum::<u32>(), 14, "{steps:?}");
        }
    }

    #[test]
    fn the_plain_fold_of_a_box_is_that_of_units() {
        let shape: Shape = "8x6x4".parse().unwrap();
        let fold = &Fold::all(&shape)[0];
        assert_eq!(fold.to_string(), "x4 a2, y2 b3, z2 c2");
        let machine: Shape = "4mx2mx2m".parse().unwrap();
        let boxed = TofuBox::from_logical([8, 6, 4]).unwrap();
        let boxed = Embedding::tofu(boxed, 1, &machine, Coord::new(&[0, 0, 0])).unwrap();
        let folded = fold.embedding(&shape);
        for (a, b) in shape.vertices().flat_map(|a| shape.vertices().map(move |b| (a, b))) {
            assert_eq!(boxed.hops(a, b), folded.hops(a, b));
        }
    }
}
