//! Keys of programs and plans: everything that they depend on.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hopbine_torus::Collective;
use rustc_hash::FxHasher;

use crate::Rank;
use crate::comm::call::blocks::{Blocks, Form, OwnedBlocks};
use crate::comm::call::options::CallOptions;
use crate::comm::call::{Call, Caller};
use crate::engine::{BlockSizes, Known, Sizes};
use crate::error::Error;
use crate::reduce::{Dtype, Op};

/// Everything that a program depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Hash of all other fields, computed once.
    hash: u64,
    pub(crate) collective: Collective,
    pub(crate) count: u64,
    pub(crate) dtype: Dtype,
    pub(crate) op: Option<Op>,
    pub(crate) root: Rank,
    pub(crate) in_place: bool,
    pub(crate) form: Form,
    pub(crate) send_blocks: Option<OwnedBlocks>,
    pub(crate) recv_blocks: Option<OwnedBlocks>,
    pub(crate) options: Arc<CallOptions>,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Everything that a plan depends on, besides the communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanKey {
    pub(crate) collective: Collective,
    pub(crate) algorithm: Cow<'static, str>,
    pub(crate) root: Rank,
    pub(crate) ports: u32,
}

/// Count and type in a program's key. Collectives that only move data count bytes, so that all types share a
/// program.
pub(crate) fn amount(call: &Call<'_>) -> (u64, Dtype) {
    if call.collective.is_reduction() || call.form != Form::Regular {
        (call.count, call.dtype)
    } else {
        (call.count.saturating_mul(call.dtype.size_bytes() as u64), Dtype::U8)
    }
}

impl Key {
    /// The key of a normalized call.
    pub(crate) fn new(call: &Call, options: &Arc<CallOptions>) -> Self {
        let &Call { collective, op, root, in_place, form, .. } = call;
        let (count, dtype) = amount(call);
        let [send_blocks, recv_blocks] =
            [call.send_blocks, call.recv_blocks].map(|blocks| blocks.map(OwnedBlocks::new));
        let options = options.clone();
        let mut hasher = FxHasher::default();
        (collective, count, dtype, op, root, in_place, form).hash(&mut hasher);
        (&send_blocks, &recv_blocks, &options).hash(&mut hasher);
        Key {
            hash: hasher.finish(),
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

    /// Whether this is the key of the call.
    #[inline]
    pub(crate) fn matches(&self, call: &Call, options: &Arc<CallOptions>) -> bool {
        (self.collective, self.op, self.root) == (call.collective, call.op, call.root)
            && (self.count, self.dtype) == amount(call)
            && (self.in_place, self.form) == (call.in_place, call.form)
            && (self.form == Form::Regular || self.has_blocks_of(call))
            && self.options == *options
    }

    fn has_blocks_of(&self, call: &Call<'_>) -> bool {
        let are = |kept: &Option<OwnedBlocks>, blocks: Option<Blocks<'_>>| match (kept, blocks) {
            (Some(kept), Some(blocks)) => kept.equals(blocks),
            (kept, blocks) => kept.is_none() && blocks.is_none(),
        };
        are(&self.send_blocks, call.send_blocks) && are(&self.recv_blocks, call.recv_blocks)
    }

    /// The counts of the send blocks, else those of the receive blocks; empty without either.
    pub(crate) fn all_counts(&self) -> &[u64] {
        let blocks = self.send_blocks.as_ref().or(self.recv_blocks.as_ref());
        blocks.map_or(&[], OwnedBlocks::counts)
    }

    /// Bytes of the lists of blocks.
    pub(super) fn list_bytes(&self) -> u64 {
        let lists = self.send_blocks.iter().chain(&self.recv_blocks);
        lists.map(OwnedBlocks::list_bytes).sum()
    }

    /// Elements of the vector, or of the average block.
    pub(crate) fn mean_count(&self) -> u64 {
        match self.all_counts() {
            [] => self.count,
            counts => {
                let sum = counts.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
                sum / counts.len() as u64
            }
        }
    }

    /// Bytes of the vector, or of the average block, if all ranks know them.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let bytes = || self.mean_count().saturating_mul(self.dtype.size_bytes() as u64);
        self.form.is_known(self.collective).then(bytes)
    }

    /// Units of an element in the sizes of a vector form: reductions count elements, collectives that only move data
    /// bytes.
    pub(crate) fn unit(&self) -> u64 {
        if self.collective.is_reduction() { 1 } else { self.dtype.size_bytes() as u64 }
    }

    /// The sizes for the engine, and the bytes of the unit in which they count.
    pub(crate) fn sizes(&self, Caller { rank, n_ranks }: Caller) -> Result<(Sizes, u64), Error> {
        let elem_bytes = self.dtype.size_bytes() as u64;
        if self.form == Form::Regular {
            return Ok((Sizes::Equal(self.count), elem_bytes));
        }
        let unit = self.unit();
        // A rank without a list knows only its own block.
        let own = || {
            let mut counts = vec![0; n_ranks as usize];
            counts[rank as usize] = self.count * unit;
            BlockSizes::adjacent(&counts)
        };
        let [send, recv] = [&self.send_blocks, &self.recv_blocks]
            .map(|blocks| blocks.as_ref().map(|blocks| blocks.sizes(unit)));
        let (send, recv) = match (send, recv) {
            (Some(send), Some(recv)) => (send, recv),
            (Some(blocks), None) | (None, Some(blocks)) => (blocks.clone(), blocks),
            (None, None) => (own(), own()),
        };
        let known = match self.form.is_known(self.collective) {
            true => Known::ByAll,
            false => Known::ByEnds,
        };
        Ok((Sizes::PerBlock { send, recv, known }, elem_bytes / unit))
    }
}
