//! A search that stops after a number of predictions, not after a time.

use super::request::{Best, Certificate, SearchError, SearchRequest};
use super::split::{better, splits};
use super::tree::Search;
use crate::sim::{Machine, Network};

/// The most nodes of the tree that are visited for one schedule.
const NODES_EACH: u64 = 4096;
/// Schedules for which unequal parts of lanes are tried.
const SPLIT: usize = 2;

/// Returns the best of all rows of the registry on all ports and of up to `more` other schedules, with equal or
/// unequal parts of lanes, and its certificate. Equal requests have equal results where arithmetic is the same.
/// `None` if no prediction is exact enough; those of the registry's rows always are.
///
/// # Errors
/// [`SearchError`].
pub fn best_of(
    request: &SearchRequest,
    (network, machine): (&Network, &Machine),
    more: u64,
) -> Result<Option<(Best, Certificate)>, SearchError> {
    let mut search = Search::new(request, network, machine)?;
    let (mut others, mut best_rows) = (0, None);
    while search.has_rows() || others < more {
        if !search.has_rows() && best_rows.is_none() {
            best_rows = Some(first(&search));
        }
        // Nothing is left, or one schedule needs too many nodes.
        let Some(candidate) = search.next(NODES_EACH) else { break };
        others += u64::from(!candidate.is_registry_row);
        let cost = candidate.cost(request, (network, machine), search.best_ns());
        search.learn(candidate, cost);
    }
    let Some(best) = search.best() else { return Ok(None) };
    // Try the best rows, too: schedules that take less time may gain less by a split.
    let mut to_split = best_rows.unwrap_or_default();
    for found in first(&search) {
        if !to_split.iter().any(|known| known.schedule == found.schedule) {
            to_split.push(found);
        }
    }
    let split = to_split.iter().flat_map(|found| splits(found, request, (network, machine)));
    let found = better(split, best).unwrap_or_else(|| best.clone());
    Ok(Some((found, search.certificate())))
}

/// The schedules for which unequal parts of lanes are tried.
fn first(search: &Search<'_>) -> Vec<Best> {
    search.found().iter().take(SPLIT).cloned().collect()
}
