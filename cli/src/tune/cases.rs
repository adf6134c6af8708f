//! Algorithms on a shape, simulated at several sizes.

use hopbine_torus::choose::Case;
pub use hopbine_torus::search::SEGMENTS;
use hopbine_torus::sim::{Machine, Network};
use hopbine_torus::{Algorithm, Shape};
use rayon::prelude::*;

use crate::args::unserved;
use crate::error::CliError;
use crate::progress::Bar;

/// An algorithm on a shape with a number of ports.
///
/// # Errors
/// [`CliError::Unserved`].
pub fn case(
    network: &Network,
    shape: &Shape,
    algorithm: &Algorithm,
    ports: u32,
) -> Result<Case, CliError> {
    let refused = |error| unserved(algorithm.collective, &algorithm.name, error, shape);
    Case::new(network, shape, algorithm, ports).map_err(refused)
}

/// All algorithms of a collective on a shape, simulated at several sizes.
pub struct SimulatedCases<'a> {
    pub machine: &'a Machine,
    /// The registry's algorithms, by algorithm and number of ports; then the schedules that a search has found.
    pub all: Vec<Case>,
    n_rows: usize,
    /// Sizes: bytes of all data of a rank.
    pub sizes: Vec<u64>,
    /// Times of calls in ns, by case, size and segment length.
    pub times: Vec<Vec<[f64; SEGMENTS.len()]>>,
}

impl<'a> SimulatedCases<'a> {
    /// Simulates every algorithm with all these numbers of ports, at all these sizes.
    ///
    /// # Errors
    /// As [`case`].
    pub fn play(
        (machine, network): (&'a Machine, &Network),
        shape: &Shape,
        algorithms: &[Algorithm],
        ports: &[u32],
        sizes: Vec<u64>,
        bar: &Bar,
    ) -> Result<Self, CliError> {
        let wanted: Vec<(&Algorithm, u32)> = algorithms
            .iter()
            .flat_map(|algorithm| ports.iter().map(move |&ports| (algorithm, ports)))
            .collect();
        bar.expect(wanted.len() as u64);
        let of = |&(algorithm, ports): &(&Algorithm, u32)| case(network, shape, algorithm, ports);
        let all: Vec<Case> = wanted.par_iter().map(of).collect::<Result<_, _>>()?;
        let n_rows = all.len();
        let mut cases =
            SimulatedCases { machine, all: Vec::new(), n_rows, sizes, times: Vec::new() };
        cases.play_all(all, bar);
        cases.follow_uneven(network, shape)?;
        Ok(cases)
    }

    /// Simulates all ranks of uneven cases at the sizes at which the simulation of one rank makes them the best;
    /// keeps the longer time.
    fn follow_uneven(&mut self, network: &Network, shape: &Shape) -> Result<(), CliError> {
        let (uneven, even): (Vec<usize>, Vec<usize>) =
            (0..self.all.len()).partition(|&at| self.all[at].is_uneven());
        let least = |at: usize, size: usize| least(&self.times[at][size]);
        let times_of = |&at: &usize| {
            let case_of_one = &self.all[at];
            let is_best = |&size: &usize| {
                let of_others =
                    even.iter().filter(|&&other| self.all[other].ports <= case_of_one.ports);
                of_others.map(|&other| least(other, size)).all(|other| least(at, size) < other)
            };
            let sizes: Vec<usize> = (0..self.sizes.len()).filter(is_best).collect();
            let mut times = self.times[at].clone();
            if !sizes.is_empty() {
                let case = case(network, shape, &case_of_one.algorithm, case_of_one.ports)?;
                let case = case.exact(network);
                for size in sizes {
                    let all = self.of_size(&case, self.sizes[size]);
                    times[size].iter_mut().zip(all).for_each(|(one, all)| *one = one.max(all));
                }
            }
            Ok((at, times))
        };
        let found: Vec<(usize, Vec<_>)> =
            uneven.par_iter().map(times_of).collect::<Result<_, CliError>>()?;
        found.into_iter().for_each(|(at, times)| self.times[at] = times);
        Ok(())
    }

    /// Times of a case in ns, for each segment length.
    fn of_size(&self, case: &Case, bytes: u64) -> [f64; SEGMENTS.len()] {
        let whole = case.ns(self.machine, bytes, SEGMENTS[0]);
        // A segment length of at least the size of all data cuts no message.
        SEGMENTS.map(|segment| match segment {
            segment if segment == SEGMENTS[0] || segment >= bytes => whole,
            segment => case.ns(self.machine, bytes, segment),
        })
    }

    /// Adds further algorithms, with all their ranks simulated.
    ///
    /// # Errors
    /// As [`case`].
    pub fn add(
        &mut self,
        network: &Network,
        shape: &Shape,
        others: &[(Algorithm, u32)],
        bar: &Bar,
    ) -> Result<(), CliError> {
        bar.expect(others.len() as u64);
        let of = |(algorithm, ports): &(Algorithm, u32)| {
            Ok(case(network, shape, algorithm, *ports)?.exact(network))
        };
        let others: Vec<Case> = others.par_iter().map(of).collect::<Result<_, CliError>>()?;
        self.play_all(others, bar);
        Ok(())
    }

    fn play_all(&mut self, all: Vec<Case>, bar: &Bar) {
        let of_case = |case: &Case| {
            let times = self.sizes.iter().map(|&bytes| self.of_size(case, bytes)).collect();
            bar.advance(1);
            times
        };
        let times: Vec<_> = all.par_iter().map(of_case).collect();
        self.times.extend(times);
        self.all.extend(all);
    }

    /// Index of the case with this algorithm and number of ports.
    pub fn find(&self, name: &str, ports: u32) -> Option<usize> {
        self.all.iter().position(|case| case.algorithm.name == name && case.ports == ports)
    }

    /// Time of a case in ns, at a size and with a segment length.
    pub fn ns(&self, case: usize, size: usize, segment_bytes: u64) -> f64 {
        let bytes = self.sizes[size];
        let is_same =
            |&segment: &u64| segment == segment_bytes || segment.min(segment_bytes) >= bytes;
        match SEGMENTS.iter().position(is_same) {
            Some(segment) => self.times[case][size][segment],
            None => self.all[case].ns(self.machine, bytes, segment_bytes),
        }
    }

    /// The fastest case on up to `ports` ports at a size, and its time in ns.
    pub fn best(&self, size: usize, ports: u32) -> (&Case, f64) {
        self.best_of(&self.all, size, ports)
    }

    /// The fastest of the registry's cases on up to `ports` ports at a size, and its time in ns.
    pub fn best_row(&self, size: usize, ports: u32) -> (&Case, f64) {
        self.best_of(&self.all[..self.n_rows], size, ports)
    }

    fn best_of<'c>(&'c self, cases: &'c [Case], size: usize, ports: u32) -> (&'c Case, f64) {
        let all = cases.iter().zip(&self.times).filter(|(case, _)| case.ports <= ports);
        let all = all.map(|(case, times)| (case, least(&times[size])));
        all.reduce(|best, other| if other.1 < best.1 { other } else { best })
            .expect("some algorithm serves every shape")
    }
}

/// The time with the best segment length.
fn least(times: &[f64; SEGMENTS.len()]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
