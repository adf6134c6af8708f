//! The cache of a communicator: compiled programs with their idle operations, and plans.
//!
//! The programs are one table under one lock. A repeated call finds its program among those used last, without a
//! hash; other calls look it up by its [`Key`].

use std::sync::{Arc, Mutex};

use hopbine_torus::Collective;
use hopbine_torus::choose::Candidates;
use hopbine_torus::registry::Algorithm;
use rustc_hash::FxHashMap;

use super::idle_budget::{IdleBudget, IdleOperations};
use super::key::{Key, PlanKey, amount};
use super::ready::{
    Compiled, LISTED_BYTES_LIMIT, LISTED_PROGRAMS, PROGRAM_LIMIT, Ready, is_worth_keeping,
};
use crate::comm::call::Call;
use crate::comm::call::blocks::Form;
use crate::comm::call::options::CallOptions;
use crate::engine::{CheckedPlan, Program};
use crate::sync::lock;

/// Plans that are kept, to be compiled for other amounts of data.
pub(crate) const PLAN_LIMIT: usize = 16;
/// Programs found without a hash.
const RECENT: usize = 8;

/// The cache of a communicator and its duplicates.
pub(crate) struct ProgramCache {
    /// The idle operations of all communicators of the rank.
    pub(crate) budget: Arc<IdleBudget>,
    programs: Mutex<Programs>,
    /// The plan used last is at the end.
    pub(crate) plans: Mutex<Vec<(PlanKey, Arc<CheckedPlan>)>>,
    /// By row of the decision table and number of ports that have been used, the algorithm that serves them and the
    /// shape of the members.
    algorithms: Mutex<Vec<(Collective, Candidates, u32, Algorithm)>>,
}

/// Programs by their keys.
#[derive(Default)]
struct Programs {
    entries: Vec<Entry>,
    by_key: FxHashMap<Key, usize>,
    /// By [`recent_slot`], the index of the entry used last.
    recent: [usize; RECENT],
}

/// A program, and operations that are ready to run it.
struct Entry {
    key: Key,
    compiled: Compiled,
    #[expect(clippy::vec_box, reason = "boxes move from here to calls without allocating")]
    idle: Vec<Box<Ready>>,
    /// As [`Ready::last_used`].
    last_used: u64,
}

/// The cached state of a call's program.
pub(crate) enum CacheHit {
    Idle(Box<Ready>),
    /// All operations of the program are under way.
    Program(Compiled),
}

impl Entry {
    /// Whether its calls have lists of counts: calls with other lists are other programs.
    fn has_lists(&self) -> bool {
        self.key.form != Form::Regular
    }

    /// Bytes of all its lists.
    fn list_bytes(&self) -> u64 {
        let Entry { key, compiled: Compiled { program, after_sizes, .. }, idle, .. } = self;
        let sent = after_sizes.as_ref().map_or(0, |after| size_of_val(&*after.send_sizes) as u64);
        let idle = idle.iter().map(|ready| ready.list_bytes()).sum::<u64>();
        key.list_bytes() + program.list_bytes() + sent + idle
    }
}

impl Programs {
    /// The entry of a key, which becomes the one used last.
    fn entry(&mut self, key: &Key) -> Option<&mut Entry> {
        let at = *self.by_key.get(key)?;
        self.recent[recent_slot(key.collective, key.count)] = at;
        Some(&mut self.entries[at])
    }

    /// The entry of an operation: the one at `at`, if that still has its program, else that of its key.
    #[inline]
    fn entry_of(
        &mut self,
        at: &mut usize,
        program: &Arc<Program>,
        key: &Key,
    ) -> Option<&mut Entry> {
        let is_same = |entry: &Entry| Arc::ptr_eq(&entry.compiled.program, program);
        if !self.entries.get(*at).is_some_and(is_same) {
            *at = *self.by_key.get(key)?;
        }
        self.entries.get_mut(*at)
    }

    /// Removes the least recently used of these entries.
    fn remove_oldest(&mut self, of: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let entries = self.entries.iter().zip(0..).filter(|(entry, _)| of(entry));
        let (_, at) = entries.min_by_key(|(entry, _)| entry.last_used)?;
        let gone = self.entries.swap_remove(at);
        self.by_key.remove(&gone.key);
        if let Some(moved) = self.entries.get(at) {
            self.by_key.insert(moved.key.clone(), at);
        }
        Some(gone)
    }

    /// Adds a program. If there are too many, or those of calls with lists of counts take too many bytes, the least
    /// recently used ones are removed and returned.
    fn add(&mut self, entry: Entry) -> Vec<Entry> {
        let mut gone = Vec::new();
        if self.entries.len() == PROGRAM_LIMIT {
            gone.extend(self.remove_oldest(|_| true));
        }
        if entry.has_lists() {
            let others = self.entries.iter().filter(|entry| entry.has_lists());
            let all: Vec<u64> = others.chain([&entry]).map(Entry::list_bytes).collect();
            let (mut n, mut bytes) = (all.len(), all.iter().sum::<u64>());
            while n > LISTED_PROGRAMS && bytes > LISTED_BYTES_LIMIT {
                let Some(old) = self.remove_oldest(Entry::has_lists) else { break };
                (n, bytes) = (n - 1, bytes - old.list_bytes());
                gone.push(old);
            }
        }
        let (key, at) = (entry.key.clone(), self.entries.len());
        self.entries.push(entry);
        self.recent[recent_slot(key.collective, key.count)] = at;
        self.by_key.insert(key, at);
        gone
    }
}

impl ProgramCache {
    /// An empty cache, whose idle operations are part of the rank's budget.
    pub(crate) fn new(budget: &Arc<IdleBudget>) -> Arc<Self> {
        let (programs, plans, algorithms) = Default::default();
        let cache = Arc::new(ProgramCache { budget: budget.clone(), programs, plans, algorithms });
        budget.add(&(cache.clone() as Arc<dyn IdleOperations>));
        cache
    }

    /// The candidate that serves the ports and the shape of the members; `find` finds it the first time.
    pub(crate) fn algorithm(
        &self,
        collective: Collective,
        (candidates, ports): (&Candidates, u32),
        find: impl FnOnce() -> Algorithm,
    ) -> Algorithm {
        let algorithms = &mut *lock(&self.algorithms);
        let asked = (collective, candidates, ports);
        let known = algorithms.iter().find(|(of, others, used, _)| (*of, others, *used) == asked);
        if let Some((.., algorithm)) = known {
            return algorithm.clone();
        }
        let algorithm = find();
        algorithms.push((collective, candidates.clone(), ports, algorithm.clone()));
        algorithm
    }

    /// An operation for a call, if its program is one of those used last.
    #[inline]
    pub(crate) fn take(&self, call: &Call, options: &Arc<CallOptions>) -> Option<Box<Ready>> {
        let programs = &mut *lock(&self.programs);
        let at = programs.recent[recent_slot(call.collective, amount(call).0)];
        let entry = programs.entries.get_mut(at)?;
        if entry.key.matches(call, options) { entry.idle.pop() } else { None }
    }

    /// An operation for a key, or its program.
    pub(crate) fn find(&self, key: &Key) -> Option<CacheHit> {
        let programs = &mut *lock(&self.programs);
        let entry = programs.entry(key)?;
        let idle = entry.idle.pop().map(CacheHit::Idle);
        Some(idle.unwrap_or_else(|| CacheHit::Program(entry.compiled.clone())))
    }

    /// Adds a program, unless another thread has added one for this key; returns the program of the table.
    pub(crate) fn insert(&self, key: &Key, compiled: Compiled) -> Compiled {
        let mut programs = lock(&self.programs);
        if let Some(other) = programs.entry(key) {
            return other.compiled.clone();
        }
        let gone = programs.add(Entry {
            key: key.clone(),
            compiled: compiled.clone(),
            idle: Vec::new(),
            last_used: self.budget.now(),
        });
        drop(programs);
        // Dropping operations locks ports.
        drop(gone);
        compiled
    }

    /// Keeps an idle operation for the next call, unless its program has gone or has enough idle operations.
    pub(crate) fn put(&self, mut ready: Box<Ready>) {
        if let Some(size_exchange) = &mut ready.size_exchange {
            size_exchange.shrink();
        }
        ready.last_used = self.budget.now();
        let mut programs = lock(&self.programs);
        let program = ready.operation.program();
        if let Some(entry) = programs.entry_of(&mut ready.entry, program, &ready.key)
            && (entry.idle.is_empty() || is_worth_keeping(program, entry.idle.len() as u64 + 1))
        {
            entry.last_used = ready.last_used;
            entry.idle.push(ready);
            return;
        }
        drop(programs);
        // Dropping it locks ports.
        drop(ready);
    }
}

impl IdleOperations for ProgramCache {
    fn retain(&self, keep: &mut dyn FnMut(&Ready) -> bool) -> Vec<Box<Ready>> {
        let mut gone = Vec::new();
        for entry in &mut lock(&self.programs).entries {
            gone.extend(entry.idle.extract_if(.., |ready| !keep(ready)));
        }
        gone
    }
}

/// Slot of a call's program among those used last.
fn recent_slot(collective: Collective, count: u64) -> usize {
    // Counts and collectives that an application uses in turn mostly get different slots.
    let magnitude = u64::BITS - count.leading_zeros();
    (count as usize ^ magnitude as usize ^ (3 * collective as usize)) % RECENT
}
