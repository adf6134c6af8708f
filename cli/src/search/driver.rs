//! Runs a search on the cores of this host within a time limit.

use std::time::{Duration, Instant};

use hopbine_torus::plan::{Expect, Schedule};
use hopbine_torus::search::{
    Best, Candidate, Certificate, Cost, Search, SearchRequest, better, splits,
};
use hopbine_torus::sim::{Machine, Network};
use rayon::prelude::*;

use crate::check::judge;
use crate::error::CliError;
use crate::progress::{self, Bar};
use crate::tune::Budget;

/// Search nodes visited between two checks of the time.
const NODES_AT_A_TIME: u64 = 100_000;
/// Fraction of the time for the search itself. In the rest, the lanes of the best few schedules get unequal parts.
const SEARCHING: f64 = 0.75;
/// Maximum number of nodes of a search, each about 100 bytes.
const MOST_NODES: u64 = 8_000_000;

/// The result of a search.
pub struct Searched {
    pub found: Best,
    /// The best schedule whose lanes have equal parts, if the parts of `found` are unequal.
    pub equal: Option<Best>,
    /// The best of the registry's rows that were predicted. Rows on all ports that were not predicted cannot be
    /// better.
    pub named: Option<(Schedule, Cost)>,
    pub certificate: Certificate,
    pub elapsed: Duration,
}

/// Searches until no better schedule can be left, or until the time is over and all rows of the registry on all ports
/// have been visited. Then tries unequal parts for the lanes of the best few schedules.
///
/// # Errors
/// [`CliError::Usage`] for a request without a result.
pub fn search(
    request: &SearchRequest,
    network: &Network,
    machine: &Machine,
    budget: Budget,
    bar: &Bar,
) -> Result<Searched, CliError> {
    let start = Instant::now();
    let searching = Budget(budget.0.mul_f64(SEARCHING));
    let mut search = Search::new(request, network, machine)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let (mut named, mut slowest): (Option<(Schedule, Cost)>, _) = (None, Duration::ZERO);
    while !search.is_over() {
        let mut batch: Vec<Candidate> = Vec::new();
        // The first schedule alone: its time may prune the next.
        let most = if slowest.is_zero() { 1 } else { rayon::current_num_threads() };
        while batch.len() < most {
            match search.next(NODES_AT_A_TIME) {
                Some(candidate) => batch.push(candidate),
                None => break,
            }
        }
        let (begun, best_ns) = (Instant::now(), search.best_ns());
        let cost = |candidate: Candidate| {
            let cost = candidate.cost(request, (network, machine), best_ns);
            (candidate, cost)
        };
        let costs: Vec<(Candidate, Cost)> = batch.into_par_iter().map(cost).collect();
        slowest = slowest.max(begun.elapsed());
        for (candidate, cost) in costs {
            bar.expect(1);
            bar.advance(1);
            if candidate.is_registry_row && named.as_ref().is_none_or(|(_, best)| cost.ns < best.ns)
            {
                named = Some((candidate.schedule.clone(), cost));
            }
            search.learn(candidate, cost);
        }
        bar.say(&format!("{:.2} us", search.best_ns() / 1e3));
        let has_room =
            searching.has_room(start, slowest) && search.certificate().visited < MOST_NODES;
        // The result must not be worse than any row of the registry.
        if !has_room && search.best().is_some() && !search.has_rows() {
            break;
        }
    }
    let best = search.best().cloned().ok_or_else(|| {
        CliError::Usage("no schedule was predicted exactly enough; please report it".to_owned())
    })?;
    let of_found = |found: &Best| {
        let mut splits = splits(found, request, (network, machine));
        // The first split takes several predictions.
        let next = || if budget.has_room(start, 4 * slowest) { splits.next() } else { None };
        std::iter::from_fn(next).collect()
    };
    let split: Vec<Vec<Best>> = search.found().par_iter().map(of_found).collect();
    let (found, equal) = match better(split.into_iter().flatten(), &best) {
        Some(split) => (split, Some(best)),
        None => (best, None),
    };
    let (certificate, elapsed) = (search.certificate(), start.elapsed());
    Ok(Searched { found, equal, named, certificate, elapsed })
}

/// Proves that a schedule performs its collective.
///
/// # Errors
/// [`CliError::Usage`] if it does not, which is a bug in hopbine.
pub fn prove(schedule: &Schedule) -> Result<(), CliError> {
    let bar = progress::bar(0, "proving");
    let verdict = judge::schedule(schedule, &[schedule.root], Expect::default(), None, &bar);
    match verdict.violations.first() {
        None => Ok(()),
        Some((_, violation)) => Err(CliError::Usage(format!(
            "the schedule found is wrong ({violation}); please report it with\n{schedule}"
        ))),
    }
}
