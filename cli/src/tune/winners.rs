//! Schedules outside the registry that beat all its algorithms: the additions of a search to a table.

use hopbine_torus::plan::max_ports;
use hopbine_torus::search::{Best, SearchRequest, best_of};
use hopbine_torus::sim::{Machine, Network};
use hopbine_torus::{Algorithm, Collective, Rank, RankMap, Shape};
use rayon::prelude::*;

use super::cases::{SEGMENTS, SimulatedCases};
use crate::error::CliError;
use crate::progress::Bar;

/// Required speed-up over the best row, since the text of a schedule is harder to read than a name.
const MIN_SPEEDUP: f64 = 1.03;
/// Number of schedules that a search predicts in addition to the rows.
const N_PREDICTIONS: u64 = 256;

/// Finds schedules that are over 3 % faster than all rows of the registry (`cases`) at some size and with some of
/// these numbers of ports; returns them with their number of ports. The search ends after a fixed number of
/// predictions, not after a time, so its results are reproducible.
///
/// # Errors
/// [`CliError::Usage`].
pub fn winners(
    (machine, network): (&Machine, &Network),
    (collective, shape): (Collective, &Shape),
    cases: &SimulatedCases<'_>,
    counts: &[u32],
    bar: &Bar,
) -> Result<Vec<(Algorithm, u32)>, CliError> {
    let limits = machine.limits(network);
    let mut asked: Vec<(u32, usize)> = Vec::new();
    for &ports in counts {
        let bounds = hopbine_torus::bounds::Bounds::new(collective, ports, &limits);
        for (size, &bytes) in cases.sizes.iter().enumerate() {
            // If the best row is near the lower bound, there is nothing to gain.
            if cases.best(size, ports).1 > MIN_SPEEDUP * bounds.call(bytes as f64).1 {
                asked.push((ports, size));
            }
        }
    }
    bar.expect(asked.len() as u64);
    let beats = |&(ports, size): &(u32, usize)| {
        let request = SearchRequest {
            collective,
            shape: shape.clone(),
            map: RankMap::default(),
            root: Rank(0),
            ports: ports.min(max_ports(shape)),
            bytes: cases.sizes[size] as f64,
            segments: SEGMENTS.to_vec(),
        };
        let found = best_of(&request, (network, machine), N_PREDICTIONS)
            .map_err(|error| CliError::Usage(error.to_string()))?;
        bar.advance(1);
        let is_better = |found: &Best| {
            found.cost.is_exact && MIN_SPEEDUP * found.cost.ns < cases.best(size, ports).1
        };
        Ok(found.map(|(found, _)| found).filter(is_better))
    };
    let found: Vec<Option<Best>> = asked.par_iter().map(beats).collect::<Result<_, CliError>>()?;
    let mut winners: Vec<(Algorithm, u32)> = Vec::new();
    for Best { schedule, .. } in found.into_iter().flatten() {
        let algorithm = Algorithm::of_schedule(&schedule);
        let is_its = |name: &str| name == algorithm.name;
        // A row of the registry with another number of ports is not a new schedule.
        let is_row = cases.all.iter().any(|case| is_its(&case.algorithm.name));
        let is_known =
            |(other, ports): &(Algorithm, u32)| is_its(&other.name) && *ports == schedule.ports;
        if !is_row && !winners.iter().any(is_known) {
            winners.push((algorithm, schedule.ports));
        }
    }
    Ok(winners)
}
