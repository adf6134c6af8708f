//! What all communicators of a rank share: the engine, the hardware, and the numbers that distinguish communicators.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, RwLock};

use super::small::{CacheStatsFn, SmallCollectives, SmallCollectivesPool};
use crate::Rank;
use crate::comm::choice::preferred::Preferred;
use crate::comm::choice::tuning::Tuning;
use crate::comm::programs::expansions::Expansions;
use crate::endpoint::Tag;
use crate::engine::Engine;
use crate::sync::lock;

/// Bits of a context for the number of the communicator among those with the same first member.
const SERIAL_BITS: u32 = 20;

/// The most ranks of a world.
pub(crate) const MOST_RANKS: u64 = 1 << (Tag::CONTEXT_BITS - SERIAL_BITS);

/// See the module documentation.
pub(crate) struct WorldState {
    pub(crate) engine: Engine,
    /// The hardware for small collectives of the world's communicator, or why there is none.
    pub(crate) small: Result<Box<dyn SmallCollectives>, String>,
    /// Slots for small collectives of further communicators, if there are any.
    pub(crate) small_pool: Option<Box<dyn SmallCollectivesPool>>,
    /// Calls in such slots hold it for reading. The end of the world, which refuses all further calls, holds it for
    /// writing.
    pub(crate) close_lock: RwLock<()>,
    /// The statistics of the registration cache, if there is one.
    pub(crate) cache: Option<CacheStatsFn>,
    pub(crate) settings: Settings,
    contexts: Mutex<Contexts>,
}

/// What the calls of all communicators follow.
pub(crate) struct Settings {
    /// The decision table for calls that name no algorithm.
    pub(crate) tuning: Tuning,
    /// Whether sums of floats may be rounded as barrier gates do.
    pub(crate) gate_sum: bool,
    /// Bytes of the last level of caches that this rank can expect for itself, if they are known.
    pub(crate) llc_bytes: Option<u64>,
    /// Algorithms that the user prefers to those of the table.
    pub(crate) preferred: Preferred,
    /// Expansions that ranks of this process share, if there are several.
    pub(crate) expansions: Option<Arc<Expansions>>,
}

struct Contexts {
    /// The next number to try for a communicator with this rank as its first member.
    next: u32,
    /// Those of this rank's communicators, and those taken for further ones.
    open: HashSet<u64>,
}

impl WorldState {
    pub(crate) fn new(
        engine: Engine,
        small: Result<Box<dyn SmallCollectives>, String>,
        small_pool: Option<Box<dyn SmallCollectivesPool>>,
        cache: Option<CacheStatsFn>,
        settings: Settings,
    ) -> Self {
        // Rank 0's first communicator is the world's.
        let contexts = Mutex::new(Contexts { next: 1, open: HashSet::from([context(0, 0)]) });
        let close_lock = RwLock::default();
        WorldState { engine, small, small_pool, close_lock, cache, settings, contexts }
    }

    /// A number for a communicator whose first member may be this rank; `None` if 2^20 exist. The caller must give
    /// it back.
    pub(crate) fn take_serial(&self) -> Option<u32> {
        let Contexts { next, open } = &mut *lock(&self.contexts);
        let all = 1 << SERIAL_BITS;
        let mut serials = (0..all).map(|step| (*next + step) % all);
        let serial = serials.find(|&serial| open.insert(context(self.engine.rank(), serial)))?;
        // Numbers are not reused soon: ranks end a communicator at different times.
        *next = (serial + 1) % all;
        Some(serial)
    }

    /// Notes that this rank begins a communicator with this first member, another rank, and this number. False if
    /// there is no such number, or if this rank has that communicator already.
    pub(crate) fn open_context(&self, first: Rank, serial: u32) -> bool {
        serial >> SERIAL_BITS == 0 && lock(&self.contexts).open.insert(context(first, serial))
    }

    /// Notes that the communicator with this context has ended on this rank, or that it is not made. Takes the ports'
    /// mutexes.
    pub(crate) fn release_context(&self, context: u64) {
        // Before the context can be used again.
        self.engine.forget_calls(context, None);
        lock(&self.contexts).open.remove(&context);
    }
}

/// The context of the communicator with this first member and this number; unique among the communicators that
/// exist.
pub(crate) fn context(first: Rank, serial: u32) -> u64 {
    u64::from(first) << SERIAL_BITS | u64::from(serial)
}

#[cfg(test)]
mod tests {
    use hopbine_torus::choose::Wire;
    use hopbine_torus::geometry::Shape;

    use super::*;
    use crate::comm::call::options::{CallOptions, Hardware};
    use crate::error::Error;
    use crate::reduce::Op;
    use crate::world::{EmulationConfig, emulate};

    /// The first message of the second communicator arrives before its receiver has made the call.
    #[test]
    fn a_context_that_is_used_again_has_no_call_of_before() {
        for wire in [Wire::Memory, Wire::Network] {
            let mut config = EmulationConfig::new(Shape::torus(&[2]).unwrap());
            (config.wire, config.ports) = (wire, Some(1));
            let received = emulate(&config, |comm| {
                let comm = comm.with(CallOptions::new().hardware(Hardware::Never));
                let first = comm.duplicate_for_requests()?;
                first.allreduce_in_place(&mut [comm.rank()], Op::Sum)?;
                let context = first.inner.context();
                drop(first);
                comm.barrier()?;
                lock(&comm.inner.world.contexts).next = 1;
                let second = comm.duplicate_for_requests()?;
                assert_eq!(second.inner.context(), context);
                let mut word = [7 * (1 - comm.rank())];
                if comm.rank() == 1 {
                    comm.barrier()?;
                }
                second.bcast(&mut word, 0)?;
                if comm.rank() == 0 {
                    comm.barrier()?;
                }
                Ok::<_, Error>(word)
            });
            assert_eq!(received.unwrap(), [Ok([7]), Ok([7])], "{wire:?}");
        }
    }
}
