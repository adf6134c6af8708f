//! Parts of error messages.

use super::blame::Blame;
use crate::Rank;

/// Each attempt with the reason of its failure.
pub(super) fn all_tried(tried: &[(String, String)]) -> String {
    let each: Vec<String> =
        tried.iter().map(|(what, reason)| format!("{what}: {reason}")).collect();
    each.join("; ")
}

/// The optional part of a location: step and peer.
pub(super) fn place(step: Option<u32>, peer: Option<Rank>) -> String {
    let step = step.map(|step| format!(", step {step}"));
    step.into_iter().chain(peer.map(|peer| format!(", peer {peer}"))).collect()
}

/// The cause of a wait, if it is known.
pub(super) fn because(cause: Option<Blame>) -> String {
    cause.map_or_else(String::new, |blame| format!("; {blame}"))
}
