//! A search on the cores of this host, within a time.

use std::time::{Duration, Instant};

use hopbine_torus::plan::{Expect, Schedule};
use hopbine_torus::search::{Best, Certificate, Cost, Point, Question, Search, better, splits};
use hopbine_torus::sim::{Machine, Network};
use rayon::prelude::*;

use crate::check::judge;
use crate::error::CliError;
use crate::progress::{self, Bar};
use crate::tune::Budget;

/// Nodes that are looked at between two looks at the clock.
const NODES_AT_A_TIME: u64 = 100_000;
/// The part of the time for the search itself: in the rest the best few get parts of lanes that differ.
const SEARCHING: f64 = 0.75;
/// The most nodes of a search: about 100 bytes each.
const MOST_NODES: u64 = 8_000_000;

/// What a search has found.
pub struct Searched {
    pub found: Best,
    /// The best with equal parts of lanes, if those of what was found differ.
    pub equal: Option<Best>,
    /// The best row of the registry that was predicted; on all ports those that were not cannot be better.
    pub named: Option<(Schedule, Cost)>,
    pub certificate: Certificate,
    pub elapsed: Duration,
}

/// Searches until nothing better is left, or the time is over and all rows of the registry on all ports are known. Then
/// the best few get parts of lanes that differ.
///
/// # Errors
/// [`CliError::Usage`] for a question without an answer.
pub fn search(
    question: &Question,
    network: &Network,
    machine: &Machine,
    budget: Budget,
    bar: &Bar,
) -> Result<Searched, CliError> {
    let start = Instant::now();
    let searching = Budget(budget.0.mul_f64(SEARCHING));
    let mut search = Search::new(question, network, machine)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let (mut named, mut slowest): (Option<(Schedule, Cost)>, _) = (None, Duration::ZERO);
    while !search.is_over() {
        let mut batch: Vec<Point> = Vec::new();
        while batch.len() < rayon::current_num_threads() {
            match search.next(NODES_AT_A_TIME) {
                Some(point) => batch.push(point),
                None => break,
            }
        }
        let (begun, best_ns) = (Instant::now(), search.best_ns());
        let cost = |point: Point| {
            let cost = point.cost(question, (network, machine), best_ns);
            (point, cost)
        };
        let costs: Vec<(Point, Cost)> = batch.into_par_iter().map(cost).collect();
        slowest = slowest.max(begun.elapsed());
        for (point, cost) in costs {
            bar.expect(1);
            bar.advance(1);
            if point.is_named && named.as_ref().is_none_or(|(_, best)| cost.ns < best.ns) {
                named = Some((point.schedule.clone(), cost));
            }
            search.learn(point, cost);
        }
        bar.say(&format!("{:.2} us", search.best_ns() / 1e3));
        let has_room =
            searching.has_room(start, slowest) && search.certificate().visited < MOST_NODES;
        // Nothing that is found may be worse than what has a name.
        if !has_room && search.best().is_some() && !search.has_rows() {
            break;
        }
    }
    let best = search.best().cloned().ok_or_else(|| {
        CliError::Usage("no schedule was predicted exactly enough; please report it".to_owned())
    })?;
    let of_found = |found: &Best| {
        let mut splits = splits(found, question, (network, machine));
        // The first takes a few predictions.
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
/// [`CliError::Usage`] if it does not, which would be our fault.
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
