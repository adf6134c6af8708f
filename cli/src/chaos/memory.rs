//! The memory of a rank's calls. The program unmaps it at some time after the calls are over.

use hopbine::{Error, Mapping, Simulated};
use hopbine_meet::fnv;
use rand::Rng;

use super::scenario::Random;
use crate::run::CollectiveCase;

/// A completed call with its result.
pub struct CompletedCall {
    pub case: CollectiveCase,
    /// The rank in the call's communicator.
    pub rank: u32,
    pub step: usize,
    pub memory: CallMemory,
}

/// Results and failures of one rank.
#[derive(Default)]
pub struct RankResult {
    pub done: Vec<CompletedCall>,
    /// Failures, each with its step.
    pub failures: Vec<(usize, Error)>,
    /// Buffers of failed calls.
    pub failed_buffers: Vec<CallMemory>,
}

/// Buffers of a call, as words so that they are aligned for every type.
pub struct Buffers {
    pub send: Mapping,
    pub recv: Mapping,
    /// Hash of both buffers when the call was over.
    hash: u64,
}

/// The memory of a completed or failed call.
pub enum CallMemory {
    Kept(Buffers),
    /// The program has unmapped the memory. Contains the former contents of the receive buffer.
    Unmapped(Vec<u64>),
}

impl Buffers {
    pub fn new(send: Mapping, recv: Mapping) -> Self {
        Buffers { send, recv, hash: 0 }
    }

    fn hash_now(&self) -> u64 {
        let mix = |hash: u64, &word: &u64| fnv::mix(hash, word).rotate_left(23);
        self.send.iter().chain(&*self.recv).fold(fnv::START, mix)
    }

    /// Marks the end of the call: from now on nothing may access the buffers.
    pub fn forbid_access(mut self, sim: &Simulated) -> CallMemory {
        self.hash = self.hash_now();
        sim.forbid(&self.send);
        sim.forbid(&self.recv);
        CallMemory::Kept(self)
    }
}

impl CallMemory {
    fn is_untouched(&self) -> bool {
        match self {
            CallMemory::Kept(buffers) => buffers.hash == buffers.hash_now(),
            CallMemory::Unmapped(_) => true,
        }
    }

    /// Unmaps the memory, after checking it once more.
    fn unmap(&mut self, sim: &Simulated) {
        let CallMemory::Kept(Buffers { recv, .. }) = self else { return };
        let held = recv.to_vec();
        if !self.is_untouched() {
            sim.complain(format!(
                "rank {}: a buffer was written after its call was over",
                sim.number()
            ));
        }
        *self = CallMemory::Unmapped(held);
    }
}

impl CompletedCall {
    /// The bytes of the result.
    pub fn result(&self) -> &[u8] {
        let size = self.case.data.dtype.size_bytes();
        let [_, at] = self.case.starts(self.rank);
        let words = match &self.memory {
            CallMemory::Kept(buffers) => &buffers.recv[..],
            CallMemory::Unmapped(held) => held,
        };
        &bytemuck::cast_slice(words)[at * size..][..self.case.result_len(self.rank) * size]
    }
}

impl RankResult {
    /// Whether all buffers are unchanged since their calls were over.
    pub fn is_untouched(&self) -> bool {
        let done = self.done.iter().map(|done| &done.memory);
        done.chain(&self.failed_buffers).all(CallMemory::is_untouched)
    }

    /// Unmaps the buffers of some completed calls: each with probability `often` / 16.
    pub fn unmap_some(&mut self, often: u32, sim: &Simulated, rng: &mut Random) {
        let done = self.done.iter_mut().map(|done| &mut done.memory);
        for memory in done.chain(&mut self.failed_buffers) {
            if matches!(memory, CallMemory::Kept(_)) && rng.random_range(0..16) < often {
                memory.unmap(sim);
            }
        }
    }
}
