//! A sender's cache of the VCQs that it posts to.
//!
//! The look-up of an id goes through a table of nodes and the records of a TNI to a VCQ's shared half. These never
//! move once created, so the cache keeps the result. Only whether the VCQ currently exists is checked each time.

use crate::job::core::Job;
use crate::job::records::VcqBlock;
use crate::limits::error::Result;
use crate::limits::ids::VcqPlace;
use crate::mrq::RecentChunk;
use crate::shared::arena::ArenaRef;
use crate::shared::registrations::StagTable;
use utofu_sys::*;

/// Size of the cache: as many VCQs as most ranks have peers on a port.
const CACHE_SIZE: usize = 16;

/// An existing VCQ, found by its id.
pub(crate) struct Target<'a> {
    pub(crate) block: &'a VcqBlock,
    pub(crate) table: &'a StagTable,
}

/// An entry of the cache, in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct CachedTarget {
    id: utofu_vcq_id_t,
    block: ArenaRef<VcqBlock>,
    table: ArenaRef<StagTable>,
    recent: RecentChunk,
}

/// The VCQs that one VCQ has recently posted to.
#[derive(Default)]
pub(crate) struct Targets {
    cached: Box<[Option<CachedTarget>; CACHE_SIZE]>,
    /// For a VCQ that is not in the cache.
    recent: RecentChunk,
}

#[inline]
fn slot_of(id: utofu_vcq_id_t) -> usize {
    // The highest bits of the product depend on all bits of the id.
    (id.wrapping_mul(0xff51_afd7_ed55_8ccd) >> (u64::BITS - CACHE_SIZE.ilog2())) as usize
}

impl Targets {
    /// Returns INVALID_VCQ_ID if `id` is not the id of a VCQ.
    #[inline]
    pub(crate) fn check(&self, id: utofu_vcq_id_t) -> Result<()> {
        match &self.cached[slot_of(id)] {
            Some(cached) if cached.id == id => Ok(()),
            _ => VcqPlace::of(id).map(drop),
        }
    }

    /// Returns the VCQ of an id, if it exists now, and this sender's chunk of the VCQ's queue.
    ///
    /// # Safety
    /// Every call passes the same job.
    #[inline]
    pub(crate) unsafe fn find<'a>(
        &mut self,
        job: &'a Job,
        id: utofu_vcq_id_t,
    ) -> Option<(Target<'a>, &mut RecentChunk)> {
        let cached = &mut self.cached[slot_of(id)];
        if !cached.is_some_and(|cached| cached.id == id) {
            let found = VcqPlace::of(id).ok().and_then(|place| job.queue_at(id, place));
            if let Some((block, table)) = found {
                *cached = Some(CachedTarget { id, block, table, recent: RecentChunk::default() });
            }
        }
        if let Some(cached) = cached.as_mut().filter(|cached| cached.id == id) {
            // SAFETY: both were found in the job's arena, which is mapped as long as the job is.
            let (block, table) = unsafe { (cached.block.get(), cached.table.get()) };
            if block.is_alive() {
                return Some((Target { block, table }, &mut cached.recent));
            }
        }
        self.recent = RecentChunk::default();
        Some((find(job, id)?, &mut self.recent))
    }
}

/// Returns the VCQ of an id, if it exists now.
#[cold]
pub(crate) fn find(job: &Job, id: utofu_vcq_id_t) -> Option<Target<'_>> {
    let place = VcqPlace::of(id).ok()?;
    let at = |cq| {
        let (block, table) = job.queue_at(id, VcqPlace { cq, ..place })?;
        // SAFETY: the arena is mapped as long as the job is.
        let (block, table) = unsafe { (block.get(), table.get()) };
        block.is_alive().then_some(Target { block, table })
    };
    at(place.cq).or_else(|| other_cq(job, place.cq).and_then(at))
}

/// Returns the first CQ of the rank that owns `cq`, unless that is `cq` itself. Some programs compute the CQs of the
/// other ranks on a node from tables of machines that divide the CQs differently (2 ranks: 0 and 6; 3: 0, 4, 8; 4: 0,
/// 2, 5, 8). Here each of these CQs belongs to the rank that the program means. The CQs 0, 3, 6, 9 for 4 ranks do
/// not: programs that use them need `HOPBINE_EMU_CQS`.
fn other_cq(job: &Job, cq: u8) -> Option<u8> {
    let first = job.placement.sharing.first_cq(cq.into()) as u8;
    (job.placement.most_per_node > 1 && first != cq).then_some(first)
}
