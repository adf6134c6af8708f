//! Operations that are ready to run, and those that follow them.

use std::sync::Arc;

use hopbine_torus::plan::Plan;
use hopbine_torus::registry::Algorithm;

use super::key::Key;
use crate::engine::{
    CheckedPlan, Learnt, Operation, OperationWatch, Program, UserKeys, UserMemory, log_words,
};
use crate::reduce::Reducer;

/// Bytes of working and staging memory that idle operations of a rank keep. The operation used last is kept in any
/// case.
pub(crate) const IDLE_BYTES_LIMIT: u64 = 256 << 20;
/// Programs that a communicator keeps for calls that may come again.
pub(crate) const PROGRAM_LIMIT: usize = 128;
/// Bytes of a communicator's programs for calls with lists of counts, with their keys and what has been learnt: a
/// program for n ranks takes about n log2(n) times 100 bytes, and a call with other counts needs another one.
pub(crate) const LISTED_BYTES_LIMIT: u64 = IDLE_BYTES_LIMIT / 8;
/// Such programs that are kept in any case: those of an application that uses a few lists in turn.
pub(crate) const LISTED_PROGRAMS: usize = 4;
/// Bytes kept for several operations of one program at once.
const PROGRAM_IDLE_BYTES_LIMIT: u64 = IDLE_BYTES_LIMIT / 4;
/// Bytes of working memory that the operation after an exchange of sizes may keep for the sizes learnt last. If that
/// exchanges sizes once more, the operation after it is not counted.
const LEARNT_BYTES_LIMIT: u64 = IDLE_BYTES_LIMIT / PROGRAM_LIMIT as u64;

/// A program, and what its operations need.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) program: Arc<Program>,
    pub(crate) reducer: Option<Reducer>,
    /// For a program that moves sizes: what follows.
    pub(crate) after_sizes: Option<Arc<AfterSizes>>,
}

/// An operation that is ready to run and not in use.
pub(crate) struct Ready {
    pub(crate) key: Key,
    /// Index of its program in the table when it was last put there.
    pub(crate) entry: usize,
    pub(crate) operation: Arc<Operation>,
    pub(crate) keys: UserKeys,
    /// Watches over the run under way.
    pub(crate) watch: OperationWatch,
    /// For an operation that moves sizes: what it has learnt.
    pub(crate) size_exchange: Option<Box<SizeExchange>>,
    /// When it was used last ([`IdleBudget::now`](super::idle_budget::IdleBudget::now)).
    pub(crate) last_used: u64,
}

/// The algorithm, its settings and the plan that move the data of a call.
#[derive(Clone)]
pub(crate) struct DataPlan {
    pub(crate) algorithm: Algorithm,
    pub(crate) ports: u32,
    pub(crate) segment_bytes: u64,
    pub(crate) plan: Arc<CheckedPlan>,
}

/// What follows when ranks have exchanged sizes.
pub(crate) struct AfterSizes {
    pub(crate) data: DataPlan,
    /// The plan whose messages carry the sizes.
    pub(crate) size_plan: Arc<Plan>,
    /// The library chose the algorithm, and may choose another when it knows the sizes.
    pub(crate) is_chosen: bool,
    /// By rank, the bytes of the block for it; at the end, the bytes of the longest.
    pub(crate) send_sizes: Box<[u64]>,
}

/// State of an exchange of sizes.
pub(crate) struct SizeExchange {
    pub(crate) after_sizes: Arc<AfterSizes>,
    send_sizes: Box<[u64]>,
    pub(crate) log: Box<[u64]>,
    /// The sizes learnt last, and the operation compiled for them.
    pub(crate) last: Option<(Learnt, Box<Ready>)>,
}

impl AfterSizes {
    /// The most operations that a call consists of: all ranks reserve that many numbers.
    pub(crate) fn n_stages(&self) -> u32 {
        if self.is_chosen { 3 } else { 2 }
    }
}

impl SizeExchange {
    pub(crate) fn new(after_sizes: Arc<AfterSizes>) -> Self {
        let log = vec![0; log_words(&after_sizes.size_plan) as usize].into();
        SizeExchange { send_sizes: after_sizes.send_sizes.clone(), log, last: None, after_sizes }
    }

    pub(crate) fn n_stages(&self) -> u32 {
        self.after_sizes.n_stages()
    }

    /// The memory of the operation that moves sizes.
    pub(crate) fn memory(&mut self) -> [UserMemory; 2] {
        [&mut self.send_sizes, &mut self.log].map(|words| UserMemory {
            ptr: words.as_mut_ptr().cast(),
            len: size_of_val::<[u64]>(words) as u64,
        })
    }

    /// The operation that follows.
    pub(crate) fn next(&mut self) -> Option<&mut Ready> {
        self.last.as_mut().map(|(_, ready)| &mut **ready)
    }

    /// Bytes of the lists.
    fn list_bytes(&self) -> u64 {
        let last = self.last.as_ref().map_or(0, |(learnt, ready)| {
            let received: usize = learnt.received.iter().map(|lens| size_of_val(&**lens)).sum();
            received as u64 + ready.list_bytes() + ready.operation.program().list_bytes()
        });
        (size_of_val(&*self.send_sizes) + size_of_val(&*self.log)) as u64 + last
    }

    /// Drops the operation learnt last if it has too much memory.
    pub(crate) fn shrink(&mut self) {
        let bytes = |ready: &Ready| ready.operation.program().memory_bytes();
        self.last.take_if(|(_, ready)| bytes(ready) > LEARNT_BYTES_LIMIT);
    }
}

impl Ready {
    pub(crate) fn new(
        key: Key,
        operation: Arc<Operation>,
        size_exchange: Option<Box<SizeExchange>>,
    ) -> Self {
        let (keys, watch) = Default::default();
        Ready { key, entry: usize::MAX, operation, keys, watch, size_exchange, last_used: 0 }
    }

    /// Bytes of the lists besides those of its program, which others may share.
    pub(super) fn list_bytes(&self) -> u64 {
        self.size_exchange.as_ref().map_or(0, |size_exchange| size_exchange.list_bytes())
    }

    /// Bytes of working memory of this operation and of the one that follows.
    pub(crate) fn idle_bytes(&self) -> u64 {
        let own = self.operation.program().memory_bytes();
        let learnt =
            self.size_exchange.as_ref().and_then(|size_exchange| size_exchange.last.as_ref());
        own + learnt.map_or(0, |(_, ready)| ready.idle_bytes())
    }
}

/// Whether `n` idle operations of a program may keep their memory.
pub(super) fn is_worth_keeping(program: &Program, n: u64) -> bool {
    program.memory_bytes() * n <= PROGRAM_IDLE_BYTES_LIMIT
}
