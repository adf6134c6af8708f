//! Operations that are ready to run, and what runs after them.

use std::sync::Arc;

use hopbine_torus::plan::Plan;
use hopbine_torus::registry::Algorithm;

use super::key::Key;
use crate::engine::{
    CheckedPlan, Learnt, Operation, OperationWatch, Program, UserKeys, UserMemory, log_words,
};
use crate::reduce::Reducer;

/// Bytes of working and staging memory that idle operations of a rank keep; the one used last is kept anyway.
pub(crate) const KEPT_BYTES: u64 = 256 << 20;
/// Programs that a communicator keeps for calls that may come again.
pub(crate) const KEPT_PROGRAMS: usize = 128;
/// Bytes kept for several operations of one program at once.
const KEPT_BYTES_OF_ONE: u64 = KEPT_BYTES / 4;
/// Bytes of working memory kept with what was learnt last.
const KEPT_BYTES_LEARNT: u64 = KEPT_BYTES / KEPT_PROGRAMS as u64;

/// A program, and what its operations need.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) program: Arc<Program>,
    pub(crate) reducer: Option<Reducer>,
    /// For a program that moves sizes: what follows it.
    pub(crate) then: Option<Arc<Then>>,
}

/// An operation that is ready to run and not in use.
pub(crate) struct Ready {
    pub(crate) key: Key,
    /// Where its program was in the table when it was put there last.
    pub(crate) entry: usize,
    pub(crate) operation: Arc<Operation>,
    pub(crate) keys: UserKeys,
    /// Over the run under way.
    pub(crate) watch: OperationWatch,
    /// For an operation that moves sizes: what it has learnt.
    pub(crate) learning: Option<Box<Learning>>,
    /// When it was used last ([`Kept::now`](super::kept::Kept::now)).
    pub(crate) last_used: u64,
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
        operation: Arc<Operation>,
        learning: Option<Box<Learning>>,
    ) -> Self {
        let (keys, watch) = Default::default();
        Ready { key, entry: usize::MAX, operation, keys, watch, learning, last_used: 0 }
    }

    /// Bytes of working memory that are kept with it.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let own = self.operation.program().memory_bytes();
        let learnt = self.learning.as_ref().and_then(|learning| learning.last.as_ref());
        own + learnt.map_or(0, |(_, ready)| ready.kept_bytes())
    }
}

/// Whether memory for `n` operations of a program is not too much.
pub(super) fn is_worth_keeping(program: &Program, n: u64) -> bool {
    program.memory_bytes() * n <= KEPT_BYTES_OF_ONE
}
