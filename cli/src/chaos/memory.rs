//! The memory of a rank's calls, which its program unmaps when they are over, sooner or later.

use hopbine::{Error, Mapping, Simulated};
use hopbine_meet::fnv;
use rand::Rng;

use super::scenario::Random;
use crate::run::Case;

/// A call that is over, with its result.
pub struct Done {
    pub case: Case,
    /// The rank in the call's communicator.
    pub rank: u32,
    pub step: usize,
    pub memory: Memory,
}

/// What has come of a rank.
#[derive(Default)]
pub struct OfRank {
    pub done: Vec<Done>,
    /// In which step it failed, and how.
    pub failures: Vec<(usize, Error)>,
    /// Buffers of calls that have failed.
    pub left: Vec<Memory>,
}

/// Words that hold the elements of a call, aligned for every type.
pub struct Buffers {
    pub send: Mapping,
    pub recv: Mapping,
    /// Of both, when the call was over.
    hash: u64,
}

/// The memory of a call that is over.
pub enum Memory {
    Kept(Buffers),
    /// Its program has unmapped it; the receive buffer held this.
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

    /// The call is over: nobody may touch them from now on.
    pub fn over(mut self, sim: &Simulated) -> Memory {
        self.hash = self.hash_now();
        sim.forbid(&self.send);
        sim.forbid(&self.recv);
        Memory::Kept(self)
    }
}

impl Memory {
    fn is_untouched(&self) -> bool {
        match self {
            Memory::Kept(buffers) => buffers.hash == buffers.hash_now(),
            Memory::Unmapped(_) => true,
        }
    }

    /// The program unmaps it, and looks at it once more.
    fn unmap(&mut self, sim: &Simulated) {
        let Memory::Kept(Buffers { recv, .. }) = self else { return };
        let held = recv.to_vec();
        if !self.is_untouched() {
            sim.complain(format!(
                "rank {}: a buffer was written after its call was over",
                sim.number()
            ));
        }
        *self = Memory::Unmapped(held);
    }
}

impl Done {
    /// The result's bytes.
    pub fn result(&self) -> &[u8] {
        let size = self.case.data.dtype.size_bytes();
        let [_, at] = self.case.starts(self.rank);
        let words = match &self.memory {
            Memory::Kept(buffers) => &buffers.recv[..],
            Memory::Unmapped(held) => held,
        };
        &bytemuck::cast_slice(words)[at * size..][..self.case.result_len(self.rank) * size]
    }
}

impl OfRank {
    /// Whether all buffers are as they were when their calls were over.
    pub fn is_untouched(&self) -> bool {
        let done = self.done.iter().map(|done| &done.memory);
        done.chain(&self.left).all(Memory::is_untouched)
    }

    /// The program unmaps some of the buffers of calls that are over.
    pub fn unmap_some(&mut self, often: u32, sim: &Simulated, rng: &mut Random) {
        let done = self.done.iter_mut().map(|done| &mut done.memory);
        for memory in done.chain(&mut self.left) {
            if matches!(memory, Memory::Kept(_)) && rng.random_range(0..16) < often {
                memory.unmap(sim);
            }
        }
    }
}
