//! Algorithms on a shape, ready to be played at any size.

use hopbine_torus::plan::{Expansion, Schedule};
use hopbine_torus::sim::{CallForm, Machine, Network, Profile, Score};
use hopbine_torus::{Algorithm, Rank, RankMap, Request, Shape};
use rayon::prelude::*;

use crate::args::unserved;
use crate::error::CliError;
use crate::progress::Bar;

/// The longest messages that are tried, the one that is taken where nothing is cut first.
pub const SEGMENTS: [u64; 3] = [1 << 20, 256 << 10, 64 << 10];

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

/// All of a collective on a shape.
pub struct Cases<'a> {
    pub machine: &'a Machine,
    /// By algorithm, then by ports.
    pub all: Vec<Case>,
}

/// Of each case, by size and longest message, what a call takes, ns.
pub type Times = Vec<Vec<[f64; SEGMENTS.len()]>>;

impl<'a> Cases<'a> {
    /// Every algorithm on all these numbers of ports.
    ///
    /// # Errors
    /// As [`Case::new`].
    pub fn new(
        (machine, network): (&'a Machine, &Network),
        shape: &Shape,
        algorithms: &[Algorithm],
        ports: &[u32],
        bar: &Bar,
    ) -> Result<Self, CliError> {
        let wanted: Vec<(&Algorithm, u32)> = algorithms
            .iter()
            .flat_map(|algorithm| ports.iter().map(move |&ports| (algorithm, ports)))
            .collect();
        bar.expect(wanted.len() as u64);
        let case =
            |&(algorithm, ports): &(&Algorithm, u32)| Case::new(network, shape, algorithm, ports);
        let all = wanted.par_iter().map(case).collect::<Result<_, _>>()?;
        Ok(Cases { machine, all })
    }

    /// What they take.
    pub fn times(&self, sizes: &[u64], bar: &Bar) -> Times {
        let of_size = |case: &Case, bytes: u64| {
            let whole = case.ns(self.machine, bytes, SEGMENTS[0]);
            // What is longer than all data cuts nothing.
            SEGMENTS.map(|segment| match segment {
                segment if segment == SEGMENTS[0] || segment >= bytes => whole,
                segment => case.ns(self.machine, bytes, segment),
            })
        };
        let of_case = |case: &Case| {
            let times = sizes.iter().map(|&bytes| of_size(case, bytes)).collect();
            bar.advance(1);
            times
        };
        self.all.par_iter().map(of_case).collect()
    }
}
