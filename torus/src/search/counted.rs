//! A search that stops by what it has done, and not by a clock.

use super::question::{Best, Certificate, Question, QuestionError};
use super::split::{better, splits};
use super::tree::Search;
use crate::sim::{Machine, Network};

/// Nodes of the tree that are looked at for one schedule.
const NODES_EACH: u64 = 4096;
/// Schedules that get parts of lanes that differ.
const SPLIT: usize = 2;

/// The best of all rows of the registry on all ports and of up to `more` other schedules, with equal parts of lanes or
/// others, and how good it is known to be: the same for all who ask the same, where arithmetic is the same. `None` if
/// nothing was predicted exactly enough, which rows of the registry always are.
///
/// # Errors
/// [`QuestionError`].
pub fn best_of(
    question: &Question,
    (network, machine): (&Network, &Machine),
    more: u64,
) -> Result<Option<(Best, Certificate)>, QuestionError> {
    let mut search = Search::new(question, network, machine)?;
    let (mut others, mut best_rows) = (0, None);
    while search.has_rows() || others < more {
        if !search.has_rows() && best_rows.is_none() {
            best_rows = Some(first(&search));
        }
        // Nothing is left, or too much was looked at for one schedule.
        let Some(point) = search.next(NODES_EACH) else { break };
        others += u64::from(!point.is_named);
        let cost = point.cost(question, (network, machine), search.best_ns());
        search.learn(point, cost);
    }
    let Some(best) = search.best() else { return Ok(None) };
    // The best rows too: others that take less may gain less by a split.
    let mut to_split = best_rows.unwrap_or_default();
    for found in first(&search) {
        if !to_split.iter().any(|known| known.schedule == found.schedule) {
            to_split.push(found);
        }
    }
    let split = to_split.iter().flat_map(|found| splits(found, question, (network, machine)));
    let found = better(split, best).unwrap_or_else(|| best.clone());
    Ok(Some((found, search.certificate())))
}

/// The schedules that get parts of lanes that differ.
fn first(search: &Search<'_>) -> Vec<Best> {
    search.found().iter().take(SPLIT).cloned().collect()
}
