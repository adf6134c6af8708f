//! Divides the sizes into intervals with one algorithm each: as few intervals as possible, and always near the best.

use hopbine_torus::Shape;

use super::cases::{SEGMENTS, SimulatedCases};

/// Maximum time of the chosen algorithm at a predicted size, as a multiple of the best time.
const TOLERANCE: f64 = 1.02;

/// The choice for an interval of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeInterval {
    /// Lower end in bytes, exclusive; 0 includes size 0.
    pub above: u64,
    /// Upper end in bytes, inclusive; None for the last interval.
    pub up_to: Option<u64>,
    pub algorithm: String,
    /// An algorithm that supports every shape, for shapes outside the class that use this row; `algorithm` itself if
    /// it does.
    pub everywhere: String,
    pub ports: u32,
    /// Index of the segment length in [`SEGMENTS`].
    pub segment: usize,
}

/// A case with a segment length.
#[derive(Clone, Copy)]
struct CellCandidate {
    case: usize,
    segment: usize,
}

/// Chooses the intervals for calls on `ports` ports. From the smallest size on, each interval takes the candidate
/// that stays near the best for the most sizes; among several the one with the least time.
pub fn cover(cases: &SimulatedCases<'_>, ports: u32) -> Vec<SizeInterval> {
    let (sizes, times) = (&cases.sizes, &cases.times);
    let fits = |&case: &usize| cases.all[case].ports <= ports;
    let all: Vec<CellCandidate> = (0..cases.all.len())
        .filter(fits)
        .flat_map(|case| (0..SEGMENTS.len()).map(move |segment| CellCandidate { case, segment }))
        .collect();
    let ns = |candidate: CellCandidate, size: usize| times[candidate.case][size][candidate.segment];
    let best: Vec<f64> = (0..sizes.len()).map(|size| cases.best(size, ports).1).collect();
    let sum = |candidate: CellCandidate, from: usize, to: usize| -> f64 {
        (from..to).map(|size| ns(candidate, size) / best[size]).sum()
    };
    // The candidate with the least time over an interval of sizes; among equal ones the first.
    let least = |of: &mut dyn Iterator<Item = CellCandidate>, from: usize, to: usize| {
        of.map(|candidate| (sum(candidate, from, to), candidate))
            .reduce(|least, other| if other.0 < least.0 { other } else { least })
            .map(|(_, candidate)| candidate)
    };
    let mut intervals = Vec::new();
    let (mut from, mut above) = (0, 0);
    while from < sizes.len() {
        let reach = |candidate: &CellCandidate| {
            let is_near = |size: &usize| ns(*candidate, *size) <= TOLERANCE * best[*size];
            from + (from..sizes.len()).take_while(is_near).count()
        };
        let to = all.iter().map(reach).max().unwrap_or(sizes.len()).max(from + 1);
        let mut near = all.iter().copied().filter(|candidate| reach(candidate) == to);
        let chosen = least(&mut near, from, to).expect("some algorithm serves every shape");
        let algorithm = &cases.all[chosen.case].algorithm;
        let universal =
            |candidate: &CellCandidate| serves_everywhere(&cases.all[candidate.case].algorithm);
        let mut others = all.iter().copied().filter(universal);
        let everywhere = match serves_everywhere(algorithm) {
            true => Some(chosen),
            false => least(&mut others, from, to),
        };
        let everywhere = everywhere.map_or(algorithm, |other| &cases.all[other.case].algorithm);
        let up_to = (to < sizes.len()).then(|| half_way(sizes[to - 1], sizes[to]));
        intervals.push(SizeInterval {
            above,
            up_to,
            algorithm: algorithm.name.to_string(),
            everywhere: everywhere.name.to_string(),
            ports: cases.all[chosen.case].ports,
            segment: chosen.segment,
        });
        above = up_to.unwrap_or(above);
        from = to;
    }
    intervals
}

/// The geometric mean of two sizes.
pub fn half_way(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b)).isqrt() as u64
}

/// Whether an algorithm supports shapes that few algorithms support: with prime sizes, with and without ranks on a
/// node.
fn serves_everywhere(algorithm: &hopbine_torus::Algorithm) -> bool {
    ["71x23x7", "67", "23x7+5"].iter().all(|shape| {
        let shape: Shape = shape.parse().expect("a shape");
        algorithm.serves(&shape).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress;
    use crate::simulate::network;
    use hopbine_torus::sim::Machine;
    use hopbine_torus::{Collective, registry};

    /// The chosen algorithm is near the best at all sizes, and the intervals are contiguous.
    #[test]
    fn runs_cover_all_sizes_near_the_best() {
        let machine = Machine::built_in("tofu-d").unwrap();
        let shape: Shape = "4x4x3".parse().unwrap();
        let network = network(&machine, &shape).unwrap();
        let algorithms: Vec<_> = registry::algorithms(Collective::Allreduce)
            .into_iter()
            .filter(|algorithm| algorithm.serves(&shape).is_ok())
            .collect();
        let bar = progress::bar(0, "");
        let sizes: Vec<u64> = (0..9).map(|power| 8 << (3 * power)).collect();
        let place = (&machine, &network);
        let cases =
            SimulatedCases::play(place, &shape, &algorithms, &[1, 6], sizes.clone(), &bar).unwrap();
        for ports in [1, 6] {
            let intervals = cover(&cases, ports);
            assert!(intervals.len() > 1 && intervals.len() < sizes.len(), "{intervals:?}");
            assert_eq!((intervals[0].above, intervals[intervals.len() - 1].up_to), (0, None));
            assert!(intervals.windows(2).all(|pair| pair[0].up_to == Some(pair[1].above)));
            for (size, &bytes) in sizes.iter().enumerate() {
                let interval = intervals
                    .iter()
                    .find(|interval| interval.up_to.is_none_or(|up_to| bytes <= up_to))
                    .unwrap();
                assert!(interval.ports <= ports);
                let case = &cases.all[cases.find(&interval.algorithm, interval.ports).unwrap()];
                let own = case.ns(&machine, bytes, SEGMENTS[interval.segment]);
                let best = cases.best(size, ports).1;
                assert!(own <= TOLERANCE * best * (1.0 + 1e-9), "{bytes}: {own} and {best}");
            }
        }
        assert_eq!(half_way(8, 32), 16);
    }
}
