//! Tofu's six-dimensional coordinates and their fold to a logical 3-D torus.
//!
//! A Tofu node has coordinates (x, y, z, a, b, c). x, y, z count units of twelve nodes; inside a unit a and c have
//! 2 coordinates and b has 3 (b is a ring). A job is a box of units. Its logical axes pair x with a, y with b and z
//! with c. Each pair is traversed along a Hamiltonian cycle, so that logical neighbours, including the two ends of
//! the axis, are one hop apart *without* the wrap-around links of x, y or z, which a job's box need not have.
//!
//! Source of the construction: the pairing is Fujitsu's; the cycles are ours, described at `walk2` and `walk3`.

use super::axis::{Axis, Coord};
use super::shape::{Shape, ShapeError};

/// Coordinates of a node in Tofu's order x, y, z, a, b, c.
pub type TofuCoord = [u8; 6];

/// Sizes of the dimensions a, b, c inside a unit.
pub const UNIT: [u32; 3] = [2, 3, 2];

/// A box of Tofu units, `units[0] x units[1] x units[2]` along x, y, z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TofuBox {
    /// Units along x, y, z; each 1..=256, as a coordinate is one byte.
    pub units: [u32; 3],
}

impl TofuBox {
    /// The logical 3-D torus of the box: 2x by 3y by 2z.
    ///
    /// # Errors
    /// [`ShapeError`] for a unit count of 0.
    pub fn logical_shape(&self) -> Result<Shape, ShapeError> {
        Shape::torus(&[0, 1, 2].map(|k| self.units[k] * UNIT[k]))
    }

    /// The box whose logical torus has the given sizes, if there is one: the sizes must be
    /// multiples of 2, 3 and 2.
    pub fn from_logical(sizes: [u32; 3]) -> Option<Self> {
        let fits = (0..3)
            .all(|k| sizes[k] > 0 && sizes[k].is_multiple_of(UNIT[k]) && sizes[k] / UNIT[k] <= 256);
        fits.then(|| TofuBox { units: [0, 1, 2].map(|k| sizes[k] / UNIT[k]) })
    }

    /// The six-dimensional coordinate of a node with a logical coordinate.
    ///
    /// # Panics
    /// If the coordinate lies outside the logical torus.
    pub fn unfold(&self, logical: Coord) -> TofuCoord {
        let mut tofu = [0u8; 6];
        for k in 0..3 {
            let units = self.units[k];
            assert!(logical[k] < units * UNIT[k], "{logical} is outside the box");
            let (unit, inner) = match UNIT[k] {
                2 => walk2(units, logical[k]),
                _ => walk3(units, logical[k]),
            };
            tofu[k] = unit as u8;
            tofu[3 + k] = inner as u8;
        }
        tofu
    }

    /// The logical coordinate of a six-dimensional one; `None` outside the box.
    pub fn fold(&self, tofu: TofuCoord) -> Option<Coord> {
        let mut logical = [0u32; 3];
        for k in 0..3 {
            let (unit, inner) = (u32::from(tofu[k]), u32::from(tofu[3 + k]));
            if unit >= self.units[k] || inner >= UNIT[k] {
                return None;
            }
            logical[k] = match UNIT[k] {
                2 => walk2_inverse(self.units[k], unit, inner),
                _ => walk3_inverse(self.units[k], unit, inner),
            };
        }
        Some(Coord::new(&logical))
    }
}

/// The order of dimensions on Tofu's routes, with x, y, z, a, b, c as 0 to 5: first to the a, b, c of the path, by
/// default those of the target, then along x, y, z.
pub const ROUTE_ORDER: [usize; 6] = [3, 4, 5, 0, 1, 2];

/// The network of a machine whose shape `machine` counts units along x, y, z: six dimensions, of which b wraps, and
/// x, y, z wrap as the machine's do. `None` if the machine does not have three dimensions.
pub fn network(machine: &Shape) -> Option<Shape> {
    let unit = [Axis::mesh(UNIT[0]), Axis::torus(UNIT[1]), Axis::mesh(UNIT[2])];
    let axes = machine.axes().iter().copied().chain(unit).collect();
    (machine.n_dims() == 3).then(|| Shape::from_axes(axes).ok()).flatten()
}

/// Number of hops between two nodes on Tofu. x, y, z do not wrap here, a and c have size 2, and b is a ring of
/// three.
pub fn hops(p: TofuCoord, q: TofuCoord) -> u32 {
    (0..6)
        .map(|k| {
            let apart = u32::from(p[k].abs_diff(q[k]));
            if k == 4 { apart.min(1) } else { apart }
        })
        .sum()
}

/// The cycle over x and a (or z and c): out along a = 0, back along a = 1. Returns x and a of the node at place `at` of
/// `2 * units`.
pub fn walk2(units: u32, at: u32) -> (u32, u32) {
    if at < units { (at, 0) } else { (2 * units - 1 - at, 1) }
}

fn walk2_inverse(units: u32, unit: u32, inner: u32) -> u32 {
    if inner == 0 { unit } else { 2 * units - 1 - unit }
}

/// The cycle over y and b: out along b = 0, and back through b = 1 and 2, which are both visited in a unit before
/// the next unit. Each unit is entered at the b at which the previous unit was left. The cycle ends next to its
/// start, as 1 and 2 are both neighbours of 0 on b's ring. Returns y and b of the node at place `at` of `3 * units`.
pub fn walk3(units: u32, at: u32) -> (u32, u32) {
    if at < units {
        return (at, 0);
    }
    let back = at - units;
    let (turn, second) = (back / 2, back % 2);
    // On the way back units are visited from the far end; odd turns enter at b = 2.
    let inner = if turn % 2 == 0 { 1 + second } else { 2 - second };
    (units - 1 - turn, inner)
}

fn walk3_inverse(units: u32, unit: u32, inner: u32) -> u32 {
    if inner == 0 {
        return unit;
    }
    let turn = units - 1 - unit;
    let second = if turn.is_multiple_of(2) { inner - 1 } else { 2 - inner };
    units + 2 * turn + second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logical_neighbours_are_one_hop_apart() {
        for units in [[1, 1, 1], [2, 1, 3], [3, 2, 1], [4, 5, 2], [1, 4, 4], [2, 3, 2]] {
            let tofu = TofuBox { units };
            let shape = tofu.logical_shape().unwrap();
            let mut seen = std::collections::HashSet::new();
            for node in shape.vertices() {
                let coord = shape.coord(node);
                let here = tofu.unfold(coord);
                assert!(seen.insert(here), "{coord} folds onto a taken node");
                assert_eq!(tofu.fold(here), Some(coord));
                for dim in 0..3 {
                    let next = coord.with(dim, (coord[dim] + 1) % shape.size(dim));
                    assert_eq!(hops(here, tofu.unfold(next)), 1, "{units:?} {coord} {next}");
                }
            }
        }
    }

    #[test]
    fn the_whole_machine_is_48_69_48() {
        // Fugaku: 24 x 23 x 24 units.
        let tofu = TofuBox { units: [24, 23, 24] };
        assert_eq!(tofu.logical_shape().unwrap().to_string(), "48x69x48");
        assert_eq!(TofuBox::from_logical([48, 69, 48]), Some(tofu));
        assert_eq!(TofuBox::from_logical([48, 68, 48]), None);
        assert_eq!(tofu.fold([24, 0, 0, 0, 0, 0]), None);
    }
}
