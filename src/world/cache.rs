//! What a communicator keeps: the programs that have been compiled, plans, and idle operations.
//!
//! A repeated call finds its operation among those used last, without a lock and without a hash;
//! others through a table by all that a program depends on.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};

use crossbeam_utils::atomic::AtomicCell;
use hopbine_torus::Collective;
use hopbine_torus::plan::Plan;

use super::blocks::{Blocks, Form, KeptBlocks};
use super::call::Call;
use super::learning::{Learning, Then};
use super::options::CallOptions;
use crate::Rank;
use crate::engine::{Operation, Program, UserKeys};
use crate::reduce::{Dtype, Op, Reducer};
use crate::sync::lock;

/// Programs kept for calls that may come again.
pub(super) const KEPT_PROGRAMS: usize = 128;
/// Bytes of working and staging memory kept with them; the program used last is kept anyway.
pub(super) const KEPT_BYTES: u64 = 256 << 20;
/// Bytes kept for several operations of one program at once.
const KEPT_BYTES_OF_ONE: u64 = KEPT_BYTES / 4;
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

/// All that a program depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) collective: Collective,
    pub(super) count: u64,
    pub(super) dtype: Dtype,
    pub(super) op: Option<Op>,
    pub(super) root: Rank,
    pub(super) in_place: bool,
    pub(super) form: Form,
    pub(super) send_blocks: Option<KeptBlocks>,
    pub(super) recv_blocks: Option<KeptBlocks>,
    pub(super) options: CallOptions,
}

/// All that a plan depends on, beside the communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanKey {
    pub(super) collective: Collective,
    pub(super) algorithm: Cow<'static, str>,
    pub(super) root: Rank,
    pub(super) ports: u32,
}

/// A program, and operations that are ready to run it.
pub(super) struct Entry {
    pub(super) program: Arc<Program>,
    pub(super) reducer: Option<Reducer>,
    /// If it is sizes that the program moves, what comes after it.
    pub(super) then: Option<Arc<Then>>,
    #[expect(clippy::vec_box, reason = "boxes move between here and `recent` without allocating")]
    pub(super) idle: Mutex<Vec<Box<Ready>>>,
    pub(super) last_used: AtomicU64,
}

/// An operation that nobody uses.
pub(super) struct Ready {
    pub(super) key: Key,
    /// Where it rests. Not held by it: the entry holds the operations that rest there.
    pub(super) entry: Weak<Entry>,
    pub(super) operation: Arc<Operation>,
    pub(super) keys: UserKeys,
    /// If it is sizes that it moves, and another operation comes after it.
    pub(super) learning: Option<Box<Learning>>,
}

/// What moves data without looking at them does the same for all types.
fn amount(call: &Call<'_>) -> (u64, Dtype) {
    if call.collective.is_reduction() || call.form != Form::Regular {
        (call.count, call.dtype)
    } else {
        (call.count.saturating_mul(call.dtype.size_bytes() as u64), Dtype::U8)
    }
}

impl Key {
    pub(super) fn new(call: &Call, options: &CallOptions) -> Self {
        let &Call { collective, op, root, in_place, form, .. } = call;
        let (count, dtype) = amount(call);
        let [send_blocks, recv_blocks] =
            [call.send_blocks, call.recv_blocks].map(|blocks| blocks.map(KeptBlocks::new));
        let options = options.clone();
        Key {
            collective,
            count,
            dtype,
            op,
            root,
            in_place,
            form,
            send_blocks,
            recv_blocks,
            options,
        }
    }

    fn is_of(&self, call: &Call, options: &CallOptions) -> bool {
        (self.collective, self.op, self.root) == (call.collective, call.op, call.root)
            && (self.count, self.dtype) == amount(call)
            && (self.in_place, self.form) == (call.in_place, call.form)
            && (self.form == Form::Regular || self.has_blocks_of(call))
            && self.options == *options
    }

    fn has_blocks_of(&self, call: &Call<'_>) -> bool {
        let are = |kept: &Option<KeptBlocks>, blocks: Option<Blocks<'_>>| match (kept, blocks) {
            (Some(kept), Some(blocks)) => kept.are(blocks),
            (kept, blocks) => kept.is_none() && blocks.is_none(),
        };
        are(&self.send_blocks, call.send_blocks) && are(&self.recv_blocks, call.recv_blocks)
    }

    /// Where among the recent ones its operation is.
    fn place(collective: Collective, count: u64) -> usize {
        // Counts and collectives that a program has in turn mostly get different places.
        let magnitude = u64::BITS - count.leading_zeros();
        (count as usize ^ magnitude as usize ^ (3 * collective as usize)) % RECENT
    }
}

impl Cache {
    /// The operation of a call, if it is one of those used last.
    pub(super) fn take(&self, call: &Call, options: &CallOptions) -> Option<Box<Ready>> {
        let ready = self.recent[Key::place(call.collective, amount(call).0)].take()?;
        if ready.key.is_of(call, options) {
            return Some(ready);
        }
        ready.rest();
        None
    }

    /// Keeps an operation that is not under way for the next time.
    pub(super) fn put(&self, mut ready: Box<Ready>) {
        if let Some(learning) = &mut ready.learning {
            learning.shrink();
        }
        let place = Key::place(ready.key.collective, ready.key.count);
        if let Some(other) = self.recent[place].swap(Some(ready)) {
            other.rest();
        }
    }
}

impl Ready {
    /// Out of the way, for whoever looks into the table; it ends if its entry is there no more.
    fn rest(self: Box<Self>) {
        let Some(entry) = self.entry.upgrade() else { return };
        let idle = &mut *lock(&entry.idle);
        let bytes = entry.program.memory_bytes() * (idle.len() as u64 + 1);
        if idle.is_empty() || bytes <= KEPT_BYTES_OF_ONE {
            idle.push(self);
        }
    }
}
