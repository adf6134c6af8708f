//! Flat buffers of communicators other than the world's, as long as any are free.

use std::sync::Arc;

use hopbine_torus::choose::ShmLimits;

use super::flat_buffer::{MOST_RANKS, SharedFlatBuffer, spins, too_many};
use crate::comm::state::members::Members;
use crate::comm::state::small::{Allgather, SmallCollectives, SmallCollectivesPool};
use crate::endpoint::shm::FlatBuffers;
use crate::error::Error;

/// The flat buffers of further communicators.
pub(super) struct FlatBufferPool {
    flats: Arc<FlatBuffers>,
    spins: u32,
    limits: ShmLimits,
}

impl FlatBufferPool {
    /// The flat buffers of a world of `n_ranks` ranks.
    pub(super) fn new(flats: Arc<FlatBuffers>, n_ranks: usize, limits: ShmLimits) -> Self {
        FlatBufferPool { flats, spins: spins(n_ranks), limits }
    }
}

impl SmallCollectivesPool for FlatBufferPool {
    fn take(&self) -> Option<u32> {
        self.flats.take()
    }

    fn give_back(&self, slot: u32) {
        self.flats.give_back(slot);
    }

    fn open(
        &self,
        slot: u32,
        members: &Members,
        _: Allgather<'_>,
    ) -> Result<Result<Box<dyn SmallCollectives>, String>, Error> {
        let (ranks, me) = (members.world_ranks(), members.caller.rank as usize);
        let failed = |source| Error::Wire { rank: members.me(), port: 0, step: None, source };
        let Some((mut flat, lease)) = self.flats.open(slot, &ranks, me).map_err(failed)? else {
            return Ok(Err("all are in use by other communicators".to_owned()));
        };
        if ranks.len() > MOST_RANKS {
            lease.end(&mut flat);
            return Ok(Err(too_many(ranks.len())));
        }
        let flat = SharedFlatBuffer::new(flat, Some(lease), ranks.into(), self.spins, self.limits);
        Ok(Ok(Box::new(flat)))
    }
}
