//! What a communicator keeps: the programs that have been compiled, plans, and idle operations.
//!
//! A repeated call finds its operation among those used last, without a lock and without a hash, also if
//! others of the same program are under way; other calls through a table by all that a program depends on.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use crossbeam_utils::atomic::AtomicCell;
use hopbine_torus::Collective;
use hopbine_torus::plan::Plan;

use super::call::Call;
use super::key::{Key, PlanKey, amount};
use super::options::CallOptions;
use super::ready::{Entry, Ready};

/// Plans kept for other amounts of data.
pub(super) const KEPT_PLANS: usize = 16;
/// Operations found without looking into the table.
const RECENT: usize = 8;

/// The programs of a communicator, for it and its duplicates.
#[derive(Default)]
pub(super) struct Cache {
    recent: [AtomicCell<Option<Box<Ready>>>; RECENT],
    pub(super) programs: Mutex<HashMap<Key, Arc<Entry>>>,
    /// The one used last at the end.
    pub(super) plans: Mutex<Vec<(PlanKey, Arc<Plan>)>>,
    /// Counts lookups, to tell which entry has not been used for longest.
    pub(super) clock: AtomicU64,
}

impl Cache {
    /// The operation of a call, if it is one of those used last.
    pub(super) fn take(&self, call: &Call, options: &Arc<CallOptions>) -> Option<Box<Ready>> {
        let place = &self.recent[place(call.collective, amount(call).0)];
        let mut ready = place.take()?;
        if !ready.key.is_of(call, options) {
            ready.rest();
            return None;
        }
        if ready.below.is_some() {
            leave_below(place, &mut ready);
        }
        Some(ready)
    }

    /// Keeps an operation that is not under way for the next time.
    pub(super) fn put(&self, mut ready: Box<Ready>) {
        if let Some(learning) = &mut ready.learning {
            learning.shrink();
        }
        let place = &self.recent[place(ready.key.collective, ready.key.count)];
        let Some(below) = place.swap(Some(ready)) else { return };
        let piled = match place.take() {
            Some(mut top) => {
                top.pile_on(below);
                top
            }
            // Somebody needs it already.
            None => below,
        };
        if let Some(other) = place.swap(Some(piled)) {
            other.rest();
        }
    }
}

/// Puts what lies below an operation back in its place.
#[inline(never)]
fn leave_below(place: &AtomicCell<Option<Box<Ready>>>, ready: &mut Ready) {
    if let Some(other) = place.swap(ready.take_below()) {
        other.rest();
    }
}

/// Where among the recent ones an operation is.
fn place(collective: Collective, count: u64) -> usize {
    // Counts and collectives that a program has in turn mostly get different places.
    let magnitude = u64::BITS - count.leading_zeros();
    (count as usize ^ magnitude as usize ^ (3 * collective as usize)) % RECENT
}
