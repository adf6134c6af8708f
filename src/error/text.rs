//! Parts of error messages.

use std::fmt;

use super::blame::Blame;
use crate::Rank;

/// Each attempt with the reason of its failure.
pub(super) fn all_tried(tried: &[(String, String)]) -> String {
    let each: Vec<String> =
        tried.iter().map(|(what, reason)| format!("{what}: {reason}")).collect();
    each.join("; ")
}

/// The optional part of a location: step and peer.
pub(super) struct Where(pub(super) Option<u32>, pub(super) Option<Rank>);

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.0 {
            write!(f, ", step {step}")?;
        }
        if let Some(peer) = self.1 {
            write!(f, ", peer {peer}")?;
        }
        Ok(())
    }
}

/// The cause of a wait, if it is known.
pub(super) struct Because(pub(super) Option<Blame>);

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |blame| write!(f, "; {blame}"))
    }
}
