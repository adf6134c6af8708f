//! Tofu coordinates for a logical shape.
//!
//! A logical torus X x Y x Z is folded into six coordinates as on the real machine: an even X runs along a closed cycle
//! through x and a, an even Z through z and c, and a Y that is a multiple of three through y and b
//! ([`hopbine_torus::geometry::tofu`]). Neighbours are then one hop apart. Other sizes use x, y, z alone; a size larger
//! than 256 that cannot be folded is split without regard to neighbourhood.

use crate::limits::error::JobError;
use crate::limits::ids::{ABC, Coords};
use hopbine_torus::geometry::tofu::{walk2, walk3};

/// Returns the long (x, y or z, below 256) and the short coordinate (a, b or c, below `short`) of a node of a logical
/// axis; `size` is at most 256 times `short`.
fn fold(size: u32, short: u32, at: u32) -> (u8, u8) {
    let is_closed = size > short && size.is_multiple_of(short);
    let (long, short) = match short {
        2 if is_closed => walk2(size / 2, at),
        3 if is_closed => walk3(size / 3, at),
        _ if size <= 256 => (at, 0),
        _ => (at / short, at % short),
    };
    (long as u8, short as u8)
}

/// Returns a shape as exactly three sizes: missing sizes are 1, sizes after the third are multiplied into it.
pub(crate) fn to_3d(shape: &[u32]) -> Result<[u32; 3], JobError> {
    let size = |i: usize| shape.get(i).copied().unwrap_or(1);
    let z = shape.iter().skip(2).map(|&n| u64::from(n)).product::<u64>();
    let too_large = || {
        JobError::Shape(format!(
            "shape {shape:?}: a size is too long: at most 512, 768 and 512 nodes along the three \
             dimensions"
        ))
    };
    let out = [size(0), size(1), u32::try_from(z).map_err(|_| too_large())?];
    if out.contains(&0) {
        return Err(JobError::Shape(format!("shape {shape:?}: every size must be at least 1")));
    }
    if (0..3).any(|i| out[i] > 256 * u32::from(ABC[i])) {
        return Err(too_large());
    }
    Ok(out)
}

/// Returns the coordinates of all nodes of a shape, x running fastest.
pub(crate) fn of_shape(shape: &[u32]) -> Result<Vec<Coords>, JobError> {
    let [nx, ny, nz] = to_3d(shape)?;
    let along = |i: usize, size: u32| -> Vec<(u8, u8)> {
        (0..size).map(|at| fold(size, ABC[i].into(), at)).collect()
    };
    let (xs, ys, zs) = (along(0, nx), along(1, ny), along(2, nz));
    let mut out = Vec::with_capacity(xs.len() * ys.len() * zs.len());
    for &(z, c) in &zs {
        for &(y, b) in &ys {
            for &(x, a) in &xs {
                out.push([x, y, z, a, b, c]);
            }
        }
    }
    Ok(out)
}

/// Largest coordinate plus one along each axis: up to 256.
pub(crate) type Extent = [u16; 6];

/// Returns the extent of these coordinates.
pub(crate) fn extent(all: impl Iterator<Item = Coords>) -> Extent {
    all.fold([0; 6], |e, c| std::array::from_fn(|i| e[i].max(u16::from(c[i]) + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ids::coords_ok;
    use crate::timing::links::route;
    use std::collections::HashSet;

    #[test]
    fn every_node_has_coordinates_of_its_own() {
        for shape in [
            &[1][..],
            &[4],
            &[2, 3, 2],
            &[5, 7, 3],
            &[512, 1, 1],
            &[1, 700, 1],
            &[1, 4],
            &[2, 2, 2, 3, 5],
            &[48, 69, 48],
        ] {
            let all = of_shape(shape).unwrap();
            assert_eq!(all.len() as u32, shape.iter().product());
            assert!(all.iter().all(|c| coords_ok(*c)));
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        }
        assert!(of_shape(&[0, 2]).is_err());
        assert!(of_shape(&[513]).is_err());
    }

    /// A job of 512 nodes along x has the coordinates 0 to 255 there.
    #[test]
    fn the_ends_of_the_longest_axis_are_neighbours() {
        let all = of_shape(&[512]).unwrap();
        let e = extent(all.iter().copied());
        for (to, expected) in [([255, 0, 0, 0, 0, 0], 1), ([128, 0, 0, 0, 0, 0], 128)] {
            assert_eq!(route([0; 6], to, e).count(), expected);
        }
    }

    #[test]
    fn neighbours_of_a_folded_ring_are_one_hop_apart() {
        for shape in [[8, 1, 1], [1, 12, 1], [1, 9, 1], [1, 1, 6], [6, 6, 4]] {
            let all = of_shape(&shape).unwrap();
            let e = extent(all.iter().copied());
            let at = |x: u32, y: u32, z: u32| {
                all[((z % shape[2] * shape[1] + y % shape[1]) * shape[0] + x % shape[0]) as usize]
            };
            for (x, y, z) in [(0, 0, 0), (shape[0] - 1, shape[1] - 1, shape[2] - 1), (1, 1, 1)] {
                for (dx, dy, dz) in [(1, 0, 0), (0, 1, 0), (0, 0, 1)] {
                    let h = route(at(x, y, z), at(x + dx, y + dy, z + dz), e).count();
                    assert!(h <= 1, "{shape:?} {x} {y} {z}: {h} hops");
                }
            }
        }
    }
}
