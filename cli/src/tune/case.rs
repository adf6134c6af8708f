//! Algorithms on a shape, ready to be played at any size.

use hopbine_torus::plan::{Expansion, Schedule};
pub use hopbine_torus::search::SEGMENTS;
use hopbine_torus::sim::{CallForm, Machine, Network, Profile, Score};
use hopbine_torus::{Algorithm, Rank, RankMap, Request, Shape};
use rayon::prelude::*;

use crate::args::unserved;
use crate::error::CliError;
use crate::progress::Bar;

/// An algorithm on a number of ports.
pub struct Case {
    pub algorithm: Algorithm,
    pub ports: u32,
    schedule: Schedule,
    flow: Expansion,
    score: Score,
}

impl Case {
    /// On a shape, in the default rank map.
    ///
    /// # Errors
    /// [`CliError::Unserved`].
    pub fn new(
        network: &Network,
        shape: &Shape,
        algorithm: &Algorithm,
        ports: u32,
    ) -> Result<Self, CliError> {
        let map = RankMap::default();
        let request =
            Request { shape: shape.clone(), map: map.clone(), root: Rank(0), ports: Some(ports) };
        let refused = |error| unserved(algorithm.collective, &algorithm.name, error, shape);
        let schedule = algorithm.schedule(&request).map_err(refused)?;
        let flow = schedule.expand().map_err(refused)?;
        let score = Score::of_one(&flow, network, |rank| map.vertex_of(shape, rank));
        Ok(Case { algorithm: algorithm.clone(), ports, schedule, flow, score })
    }

    /// What a repeated call of `bytes` bytes takes, ns, with messages up to a length.
    pub fn ns(&self, machine: &Machine, bytes: u64, segment_bytes: u64) -> f64 {
        let profile = Profile::Hopbine { segment_bytes, call: CallForm::Repeated };
        let Case { schedule, flow, score, .. } = self;
        let played = profile.play(schedule, flow, score, machine, bytes as f64, false);
        played.expect("our own software performs all schedules").ns
    }
}

/// All of a collective on a shape, played at some sizes.
pub struct Cases<'a> {
    pub machine: &'a Machine,
    /// By algorithm, then by ports.
    pub all: Vec<Case>,
    /// Bytes of all data of a rank.
    pub sizes: Vec<u64>,
    /// Of each case, by size and longest message, what a call takes, ns.
    pub times: Vec<Vec<[f64; SEGMENTS.len()]>>,
}

impl<'a> Cases<'a> {
    /// Every algorithm on all these numbers of ports, at all these sizes.
    ///
    /// # Errors
    /// As [`Case::new`].
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
        let case =
            |&(algorithm, ports): &(&Algorithm, u32)| Case::new(network, shape, algorithm, ports);
        let all: Vec<Case> = wanted.par_iter().map(case).collect::<Result<_, _>>()?;
        let of_size = |case: &Case, bytes: u64| {
            let whole = case.ns(machine, bytes, SEGMENTS[0]);
            // What is longer than all data cuts nothing.
            SEGMENTS.map(|segment| match segment {
                segment if segment == SEGMENTS[0] || segment >= bytes => whole,
                segment => case.ns(machine, bytes, segment),
            })
        };
        let of_case = |case: &Case| {
            let times = sizes.iter().map(|&bytes| of_size(case, bytes)).collect();
            bar.advance(1);
            times
        };
        let times = all.par_iter().map(of_case).collect();
        Ok(Cases { machine, all, sizes, times })
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
        let least = |of: &[f64; SEGMENTS.len()]| of.iter().copied().fold(f64::INFINITY, f64::min);
        let all = self.all.iter().zip(&self.times).filter(|(case, _)| case.ports <= ports);
        let all = all.map(|(case, times)| (case, least(&times[size])));
        all.reduce(|best, other| if other.1 < best.1 { other } else { best })
            .expect("some algorithm serves every shape")
    }
}
