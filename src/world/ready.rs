//! Operations that are ready to run, and what runs after them.

use std::sync::{Arc, Mutex, Weak};

use hopbine_torus::plan::Plan;
use hopbine_torus::registry::Algorithm;

use super::cache::KEPT_PROGRAMS;
use super::kept::KEPT_BYTES;
use super::key::Key;
use crate::engine::{
    CheckedPlan, Learnt, Operation, OperationWatch, Program, UserKeys, UserMemory, log_words,
};
use crate::reduce::Reducer;
use crate::sync::lock;

/// Bytes kept for several operations of one program at once.
const KEPT_BYTES_OF_ONE: u64 = KEPT_BYTES / 4;
/// Operations of one program that lie in one pile.
const KEPT_PILED: u64 = 64;
/// Bytes of working memory kept with what was learnt last.
const KEPT_BYTES_LEARNT: u64 = KEPT_BYTES / KEPT_PROGRAMS as u64;

/// A program, and operations that are ready to run it.
pub(super) struct Entry {
    pub(super) program: Arc<Program>,
    pub(super) reducer: Option<Reducer>,
    /// For a program that moves sizes: what follows it.
    pub(super) then: Option<Arc<Then>>,
    #[expect(clippy::vec_box, reason = "boxes move between here and `recent` without allocating")]
    pub(super) idle: Mutex<Vec<Box<Ready>>>,
}

/// An operation that is ready to run and not in use.
pub(super) struct Ready {
    pub(super) key: Key,
    /// The entry that it returns to: a weak reference, as the entry owns its idle operations.
    pub(super) entry: Weak<Entry>,
    pub(super) operation: Arc<Operation>,
    pub(super) keys: UserKeys,
    /// Over the run under way.
    pub(super) watch: OperationWatch,
    /// For an operation that moves sizes: what it has learnt.
    pub(super) learning: Option<Box<Learning>>,
    /// When it was used last ([`Kept::now`](super::kept::Kept::now)).
    pub(super) last_used: u64,
    /// As long as it is kept for the next time: others of the same program, and how many.
    pub(super) below: Option<Box<Ready>>,
    pub(super) n_below: u64,
}

/// How the data of a call move.
pub(super) struct How {
    pub(super) algorithm: Algorithm,
    pub(super) ports: u32,
    pub(super) segment_bytes: u64,
    pub(super) plan: Arc<CheckedPlan>,
}

/// What follows when sizes have been learnt.
pub(super) struct Then {
    pub(super) how: How,
    /// Whose messages the sizes travel in.
    pub(super) sizes: Arc<Plan>,
    /// The library chose the algorithm, and may choose another when it knows the sizes.
    pub(super) is_chosen: bool,
    /// By rank, the bytes of the block for it; in the end, the most of them.
    pub(super) given: Box<[u64]>,
}

/// Sizes on their way.
pub(super) struct Learning {
    pub(super) then: Arc<Then>,
    given: Box<[u64]>,
    pub(super) log: Box<[u64]>,
    /// What was learnt last, and the operation for it.
    pub(super) last: Option<(Learnt, Box<Ready>)>,
}

impl Then {
    /// The most operations that a call consists of: as many are numbered on all ranks.
    pub(super) fn n_stages(&self) -> u32 {
        if self.is_chosen { 3 } else { 2 }
    }
}

impl Learning {
    pub(super) fn new(then: Arc<Then>) -> Self {
        let log = vec![0; log_words(&then.sizes) as usize].into();
        Learning { given: then.given.clone(), log, last: None, then }
    }

    pub(super) fn n_stages(&self) -> u32 {
        self.then.n_stages()
    }

    /// The memory of the operation in which sizes travel.
    pub(super) fn memory(&mut self) -> [UserMemory; 2] {
        [&mut self.given, &mut self.log].map(|words| UserMemory {
            ptr: words.as_mut_ptr().cast(),
            len: size_of_val::<[u64]>(words) as u64,
        })
    }

    /// The operation that follows.
    pub(super) fn next(&mut self) -> Option<&mut Ready> {
        self.last.as_mut().map(|(_, ready)| &mut **ready)
    }

    /// Keeps no more memory than is worth it.
    pub(super) fn shrink(&mut self) {
        let bytes = |ready: &Ready| ready.operation.program().memory_bytes();
        self.last.take_if(|(_, ready)| bytes(ready) > KEPT_BYTES_LEARNT);
    }
}

impl Ready {
    pub(super) fn new(
        key: Key,
        entry: Weak<Entry>,
        operation: Arc<Operation>,
        learning: Option<Box<Learning>>,
    ) -> Self {
        let (keys, watch) = Default::default();
        Ready {
            key,
            entry,
            operation,
            keys,
            watch,
            learning,
            last_used: 0,
            below: None,
            n_below: 0,
        }
    }

    /// Bytes of working memory that are kept with it, and below it.
    pub(super) fn kept_bytes(&self) -> u64 {
        let own = self.operation.program().memory_bytes() * (self.n_below + 1);
        let learnt = self.learning.as_ref().and_then(|learning| learning.last.as_ref());
        own + learnt.map_or(0, |(_, ready)| ready.kept_bytes())
    }

    /// Puts the operation, and those below it, back into their entry, where later calls find them;
    /// drops them if the entry is gone, or has enough.
    pub(super) fn rest(mut self: Box<Self>) {
        let Some(entry) = self.entry.upgrade() else { return };
        let idle = &mut *lock(&entry.idle);
        loop {
            let below = self.take_below();
            if idle.is_empty() || is_worth_keeping(&entry.program, idle.len() as u64 + 1) {
                idle.push(self);
            }
            let Some(next) = below else { return };
            self = next;
        }
    }

    /// Puts others of the same program, which are not in use either, below this one.
    pub(super) fn pile_on(&mut self, below: Box<Ready>) {
        let (program, n_below) = (self.operation.program(), below.n_below + 1);
        let is_like = Arc::ptr_eq(program, below.operation.program());
        let fits = n_below < KEPT_PILED && is_worth_keeping(program, n_below + 1);
        if self.below.is_none() && is_like && fits {
            (self.below, self.n_below) = (Some(below), n_below);
        } else {
            below.rest();
        }
    }

    /// Takes the others away from below.
    pub(super) fn take_below(&mut self) -> Option<Box<Ready>> {
        self.n_below = 0;
        self.below.take()
    }
}

/// Whether memory for `n` operations of a program is not too much.
fn is_worth_keeping(program: &Program, n: u64) -> bool {
    program.memory_bytes() * n <= KEPT_BYTES_OF_ONE
}
