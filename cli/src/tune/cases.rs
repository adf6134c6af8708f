//! Algorithms on a shape, played at some sizes.

use hopbine_torus::choose::Case;
pub use hopbine_torus::search::SEGMENTS;
use hopbine_torus::sim::{Machine, Network};
use hopbine_torus::{Algorithm, Shape};
use rayon::prelude::*;

use crate::args::unserved;
use crate::error::CliError;
use crate::progress::Bar;

/// An algorithm on a shape and a number of ports.
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

/// All of a collective on a shape, played at some sizes.
pub struct Cases<'a> {
    pub machine: &'a Machine,
    /// By algorithm, then by ports; behind these what was found beyond the registry's rows.
    pub all: Vec<Case>,
    n_rows: usize,
    /// Bytes of all data of a rank.
    pub sizes: Vec<u64>,
    /// Of each case, by size and longest message, what a call takes, ns.
    pub times: Vec<Vec<[f64; SEGMENTS.len()]>>,
}

impl<'a> Cases<'a> {
    /// Every algorithm on all these numbers of ports, at all these sizes.
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
        let mut cases = Cases { machine, all: Vec::new(), n_rows, sizes, times: Vec::new() };
        cases.play_all(all, bar);
        cases.follow_uneven(network, shape)?;
        Ok(cases)
    }

    /// Where one rank of a case is unlike others, and takes less than the best of the other cases, what all take.
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

    /// What a case takes with messages up to each length.
    fn of_size(&self, case: &Case, bytes: u64) -> [f64; SEGMENTS.len()] {
        let whole = case.ns(self.machine, bytes, SEGMENTS[0]);
        // What is longer than all data cuts nothing.
        SEGMENTS.map(|segment| match segment {
            segment if segment == SEGMENTS[0] || segment >= bytes => whole,
            segment => case.ns(self.machine, bytes, segment),
        })
    }

    /// Others beside them, with all their ranks followed.
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

    /// The case of this name on this number of ports.
    pub fn find(&self, name: &str, ports: u32) -> Option<usize> {
        self.all.iter().position(|case| case.algorithm.name == name && case.ports == ports)
    }

    /// What a case takes at a size with messages up to a length, ns.
    pub fn ns(&self, case: usize, size: usize, segment_bytes: u64) -> f64 {
        let bytes = self.sizes[size];
        let is_same =
            |&segment: &u64| segment == segment_bytes || segment.min(segment_bytes) >= bytes;
        match SEGMENTS.iter().position(is_same) {
            Some(segment) => self.times[case][size][segment],
            None => self.all[case].ns(self.machine, bytes, segment_bytes),
        }
    }

    /// The case that takes least on up to `ports` ports at a size, and what it takes, ns.
    pub fn best(&self, size: usize, ports: u32) -> (&Case, f64) {
        self.best_of(&self.all, size, ports)
    }

    /// Of the registry's rows the one that does.
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

/// At the best length of messages.
fn least(times: &[f64; SEGMENTS.len()]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
