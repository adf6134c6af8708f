//! A search that stops by what it has done, and not by a clock.

use super::question::{Best, Certificate, Question, QuestionError};
use super::tree::Search;
use crate::sim::{Machine, Network};

/// Nodes of the tree that are looked at for one schedule.
const NODES_EACH: u64 = 4096;

/// The best of all rows of the registry on all ports and of up to `more` other schedules, and how good it is known to
/// be: the same for all who ask the same, where arithmetic is the same. `None` if nothing was predicted exactly
/// enough, which rows of the registry always are.
///
/// # Errors
/// [`QuestionError`].
pub fn best_of(
    question: &Question,
    (network, machine): (&Network, &Machine),
    more: u64,
) -> Result<Option<(Best, Certificate)>, QuestionError> {
    let mut search = Search::new(question, network, machine)?;
    let mut others = 0;
    while search.has_rows() || others < more {
        // Nothing is left, or too much was looked at for one schedule.
        let Some(point) = search.next(NODES_EACH) else { break };
        others += u64::from(!point.is_named);
        let cost = point.cost(question, (network, machine), search.best_ns());
        search.learn(point, cost);
    }
    Ok(search.best().cloned().map(|found| (found, search.certificate())))
}
