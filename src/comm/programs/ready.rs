//! Operations that are ready to run, and what runs after them.

use std::sync::{Arc, Mutex, Weak};

use hopbine_torus::plan::Plan;
use hopbine_torus::registry::Algorithm;

use super::key::Key;
use crate::engine::{
    CheckedPlan, Learnt, Operation, OperationWatch, Program, UserKeys, UserMemory, log_words,
};
use crate::reduce::Reducer;
use crate::sync::lock;

/// Bytes of working and staging memory that idle operations of a rank keep; the one used last is kept anyway.
pub(crate) const KEPT_BYTES: u64 = 256 << 20;
/// Programs that a communicator keeps for calls that may come again.
pub(crate) const KEPT_PROGRAMS: usize = 128;
/// Bytes kept for several operations of one program at once.
const KEPT_BYTES_OF_ONE: u64 = KEPT_BYTES / 4;
/// Operations of one program in one free list.
const MOST_FREE: u64 = 64;
/// Bytes of working memory kept with what was learnt last.
const KEPT_BYTES_LEARNT: u64 = KEPT_BYTES / KEPT_PROGRAMS as u64;

/// A program, and operations that are ready to run it.
pub(crate) struct Entry {
    pub(crate) program: Arc<Program>,
    pub(crate) reducer: Option<Reducer>,
    /// For a program that moves sizes: what follows it.
    pub(crate) then: Option<Arc<Then>>,
    #[expect(clippy::vec_box, reason = "boxes move between here and `recent` without allocating")]
    pub(crate) idle: Mutex<Vec<Box<Ready>>>,
}

/// An operation that is ready to run and not in use.
pub(crate) struct Ready {
    pub(crate) key: Key,
    /// The entry that it returns to: a weak reference, as the entry owns its idle operations.
    pub(crate) entry: Weak<Entry>,
    pub(crate) operation: Arc<Operation>,
    pub(crate) keys: UserKeys,
    /// Over the run under way.
    pub(crate) watch: OperationWatch,
    /// For an operation that moves sizes: what it has learnt.
    pub(crate) learning: Option<Box<Learning>>,
    /// When it was used last ([`Kept::now`](super::kept::Kept::now)).
    pub(crate) last_used: u64,
    /// As long as it is free: the rest of the free list, of the same program, and its length.
    pub(crate) next_free: Option<Box<Ready>>,
    pub(crate) n_behind: u64,
}

/// How the data of a call move.
pub(crate) struct How {
    pub(crate) algorithm: Algorithm,
    pub(crate) ports: u32,
    pub(crate) segment_bytes: u64,
    pub(crate) plan: Arc<CheckedPlan>,
}

/// What follows when sizes have been learnt.
pub(crate) struct Then {
    pub(crate) how: How,
    /// Whose messages the sizes travel in.
    pub(crate) sizes: Arc<Plan>,
    /// The library chose the algorithm, and may choose another when it knows the sizes.
    pub(crate) is_chosen: bool,
    /// By rank, the bytes of the block for it; in the end, the most of them.
    pub(crate) given: Box<[u64]>,
}

/// Sizes on their way.
pub(crate) struct Learning {
    pub(crate) then: Arc<Then>,
    given: Box<[u64]>,
    pub(crate) log: Box<[u64]>,
    /// What was learnt last, and the operation for it.
    pub(crate) last: Option<(Learnt, Box<Ready>)>,
}

impl Then {
    /// The most operations that a call consists of: as many are numbered on all ranks.
    pub(crate) fn n_stages(&self) -> u32 {
        if self.is_chosen { 3 } else { 2 }
    }
}

impl Learning {
    pub(crate) fn new(then: Arc<Then>) -> Self {
        let log = vec![0; log_words(&then.sizes) as usize].into();
        Learning { given: then.given.clone(), log, last: None, then }
    }

    pub(crate) fn n_stages(&self) -> u32 {
        self.then.n_stages()
    }

    /// The memory of the operation in which sizes travel.
    pub(crate) fn memory(&mut self) -> [UserMemory; 2] {
        [&mut self.given, &mut self.log].map(|words| UserMemory {
            ptr: words.as_mut_ptr().cast(),
            len: size_of_val::<[u64]>(words) as u64,
        })
    }

    /// The operation that follows.
    pub(crate) fn next(&mut self) -> Option<&mut Ready> {
        self.last.as_mut().map(|(_, ready)| &mut **ready)
    }

    /// Keeps no more memory than is worth it.
    pub(crate) fn shrink(&mut self) {
        let bytes = |ready: &Ready| ready.operation.program().memory_bytes();
        self.last.take_if(|(_, ready)| bytes(ready) > KEPT_BYTES_LEARNT);
    }
}

impl Ready {
    pub(crate) fn new(
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
            next_free: None,
            n_behind: 0,
        }
    }

    /// Bytes of working memory of the operation and of those behind it in its free list.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let own = self.operation.program().memory_bytes() * (self.n_behind + 1);
        let learnt = self.learning.as_ref().and_then(|learning| learning.last.as_ref());
        own + learnt.map_or(0, |(_, ready)| ready.kept_bytes())
    }

    /// Puts the operation, and those behind it, back into their entry, where later calls find them;
    /// drops them if the entry is gone, or has enough.
    pub(crate) fn rest(mut self: Box<Self>) {
        let Some(entry) = self.entry.upgrade() else { return };
        let idle = &mut *lock(&entry.idle);
        loop {
            let next_free = self.take_next_free();
            if idle.is_empty() || is_worth_keeping(&entry.program, idle.len() as u64 + 1) {
                idle.push(self);
            }
            let Some(next) = next_free else { return };
            self = next;
        }
    }

    /// Puts a free list behind this operation, if it is of the same program and not too long; else back into
    /// its entry.
    pub(crate) fn push_behind(&mut self, next_free: Box<Ready>) {
        let (program, n_behind) = (self.operation.program(), next_free.n_behind + 1);
        let is_like = Arc::ptr_eq(program, next_free.operation.program());
        let fits = n_behind < MOST_FREE && is_worth_keeping(program, n_behind + 1);
        if self.next_free.is_none() && is_like && fits {
            (self.next_free, self.n_behind) = (Some(next_free), n_behind);
        } else {
            next_free.rest();
        }
    }

    /// Takes off the rest of the free list.
    pub(crate) fn take_next_free(&mut self) -> Option<Box<Ready>> {
        self.n_behind = 0;
        self.next_free.take()
    }
}

/// Whether memory for `n` operations of a program is not too much.
fn is_worth_keeping(program: &Program, n: u64) -> bool {
    program.memory_bytes() * n <= KEPT_BYTES_OF_ONE
}
