//! What a communicator keeps: the programs that have been compiled, plans, and idle operations.
//!
//! A repeated call finds its operation among those used last, without a lock and without a hash, also if
//! others of the same program are under way; other calls through a table by all that a program depends on.

use std::sync::{Arc, Mutex};

use crossbeam_utils::atomic::AtomicCell;
use hopbine_torus::Collective;
use hopbine_torus::geometry::Shape;
use hopbine_torus::registry::Algorithm;
use rustc_hash::FxHashMap;

use super::kept::{Idle, Kept};
use super::key::{Key, PlanKey, amount};
use super::ready::{Entry, KEPT_PROGRAMS, Ready};
use crate::comm::call::Call;
use crate::comm::call::options::CallOptions;
use crate::comm::choice::candidate::Candidate;
use crate::engine::CheckedPlan;
use crate::sync::lock;

/// Where there are too many, this part of them goes at once: the search for it takes its time.
const GOING_PART: usize = 8;
/// Plans kept for other amounts of data.
pub(crate) const KEPT_PLANS: usize = 16;
/// Operations found without looking into the table.
const RECENT: usize = 8;

/// The programs of a communicator, for it and its duplicates.
pub(crate) struct Cache {
    /// Of all communicators of the rank.
    pub(crate) kept: Arc<Kept>,
    recent: [AtomicCell<Option<Box<Ready>>>; RECENT],
    pub(crate) programs: Mutex<Programs>,
    /// The one used last at the end.
    pub(crate) plans: Mutex<Vec<(PlanKey, Arc<CheckedPlan>)>>,
    /// What rules have asked for, a few algorithms of each collective, and what serves it on the shape of
    /// the members.
    algorithms: Mutex<Vec<(Collective, Candidate, Algorithm)>>,
}

/// Programs by what they depend on.
#[derive(Default)]
pub(crate) struct Programs {
    by_key: FxHashMap<Key, Known>,
    /// Lookups so far, which tell what has not been used for longest.
    clock: u64,
}

struct Known {
    entry: Arc<Entry>,
    last_used: u64,
}

impl Programs {
    pub(crate) fn get(&mut self, key: &Key) -> Option<Arc<Entry>> {
        let known = self.by_key.get_mut(key)?;
        self.clock += 1;
        known.last_used = self.clock;
        Some(known.entry.clone())
    }

    /// Keeps a program, unless there is one for this key meanwhile; returns the one that is kept.
    pub(crate) fn insert(&mut self, key: &Key, entry: Arc<Entry>) -> Arc<Entry> {
        if let Some(kept) = self.get(key) {
            return kept;
        }
        if self.by_key.len() >= KEPT_PROGRAMS {
            self.let_go();
        }
        self.clock += 1;
        self.by_key.insert(key.clone(), Known { entry: entry.clone(), last_used: self.clock });
        entry
    }

    /// Lets go of those that have not been used for longest.
    fn let_go(&mut self) {
        let mut uses: Vec<u64> = self.by_key.values().map(|kept| kept.last_used).collect();
        let n_going = uses.len().div_ceil(GOING_PART);
        let (_, &mut last, _) = uses.select_nth_unstable(n_going - 1);
        self.by_key.retain(|_, known| known.last_used > last);
    }
}

impl Cache {
    /// An empty one, whose idle operations are part of the rank's budget.
    pub(crate) fn new(kept: &Arc<Kept>) -> Arc<Self> {
        let (recent, programs, plans, algorithms) = Default::default();
        let cache = Arc::new(Cache { kept: kept.clone(), recent, programs, plans, algorithms });
        kept.add(&(cache.clone() as Arc<dyn Idle>));
        cache
    }

    /// The algorithm that a rule asks for, on the shape of the members.
    pub(crate) fn algorithm(
        &self,
        collective: Collective,
        candidate: &Candidate,
        shape: &Shape,
    ) -> Algorithm {
        let algorithms = &mut *lock(&self.algorithms);
        let known =
            algorithms.iter().find(|(of, other, _)| (*of, other) == (collective, candidate));
        if let Some((.., algorithm)) = known {
            return algorithm.clone();
        }
        let algorithm = candidate.on(collective, shape);
        algorithms.push((collective, candidate.clone(), algorithm.clone()));
        algorithm
    }

    /// The operation of a call, if it is one of those used last.
    pub(crate) fn take(&self, call: &Call, options: &Arc<CallOptions>) -> Option<Box<Ready>> {
        let place = &self.recent[place(call.collective, amount(call).0)];
        let mut ready = place.take()?;
        if !ready.key.is_of(call, options) {
            ready.rest();
            return None;
        }
        if ready.next_free.is_some() {
            leave_next_free(place, &mut ready);
        }
        Some(ready)
    }

    /// Keeps an operation that is not under way for the next time.
    pub(crate) fn put(&self, mut ready: Box<Ready>) {
        if let Some(learning) = &mut ready.learning {
            learning.shrink();
        }
        ready.last_used = self.kept.now();
        let place = &self.recent[place(ready.key.collective, ready.key.count)];
        let Some(next_free) = place.swap(Some(ready)) else { return };
        let list = match place.take() {
            Some(mut first) => {
                first.push_behind(next_free);
                first
            }
            // Somebody needs it already.
            None => next_free,
        };
        if let Some(other) = place.swap(Some(list)) {
            other.rest();
        }
    }
}

impl Idle for Cache {
    fn retain(&self, stays: &mut dyn FnMut(&Ready) -> bool) -> Vec<Box<Ready>> {
        let mut gone = Vec::new();
        for place in &self.recent {
            let Some(ready) = place.take() else { continue };
            if !stays(&ready) {
                gone.push(ready);
            } else if let Some(other) = place.swap(Some(ready)) {
                // Somebody has put it there meanwhile.
                other.rest();
            }
        }
        for known in lock(&self.programs).by_key.values() {
            gone.extend(lock(&known.entry.idle).extract_if(.., |ready| !stays(ready)));
        }
        gone
    }
}

/// Puts the rest of a free list back in its place.
#[inline(never)]
fn leave_next_free(place: &AtomicCell<Option<Box<Ready>>>, ready: &mut Ready) {
    if let Some(other) = place.swap(ready.take_next_free()) {
        other.rest();
    }
}

/// Where among the recent ones an operation is.
fn place(collective: Collective, count: u64) -> usize {
    // Counts and collectives that a program has in turn mostly get different places.
    let magnitude = u64::BITS - count.leading_zeros();
    (count as usize ^ magnitude as usize ^ (3 * collective as usize)) % RECENT
}
