//! The checked mode: it ends the process with a message when puts overlap, when a source changes before it is read,
//! or when memory is deregistered while an operation of the late mode still needs it. It checks only operations of
//! its own process.

use crate::job::core::Job;
use crate::job::device::{Device, PendingWrite};
use crate::limits::ids::without_path;
use crate::operations::remote::{length, source};
use crate::queues::desc::{Op, OpAction};
use crate::queues::targets;
use crate::queues::vcq::OpOrigin;
use crate::shared::copy::{self, AddressSpace};
use crate::shared::registrations::RegisteredRegion;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use utofu_sys::*;

/// Returns the region that an operation reads or writes at its target.
pub(crate) fn region_of(origin: &OpOrigin, op: &Op) -> Option<RegisteredRegion> {
    targets::find(&origin.context.job, op.vcq)?.table.lookup(op.rmt)
}

/// Returns the destination of a put `op` as currently registered; `sum` is the checksum of the put's bytes.
pub(crate) fn pending_write(origin: &OpOrigin, op: &Op, sum: Option<u64>) -> Option<PendingWrite> {
    if !matches!(op.action, OpAction::Put { .. } | OpAction::Piggyback { .. }) {
        return None;
    }
    let RegisteredRegion { owner, addr, .. } = region_of(origin, op)?;
    let len = u64::from(length(op));
    (len > 0).then_some(PendingWrite {
        rank: origin.context.rank,
        vcqs: (origin.id, without_path(op.vcq)),
        is_strong: op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER),
        owner,
        addr,
        len,
        stadd: op.rmt,
        sum,
    })
}

/// Reports misuse if the new put and another put under way write to some of the same bytes, unless the new one is
/// ordered behind the other.
pub(crate) fn check_overlap(job: &Job, old: &PendingWrite, new: &PendingWrite) {
    let is_ordered = new.is_strong && new.vcqs == old.vcqs;
    let overlaps =
        old.owner == new.owner && old.addr < new.addr + new.len && new.addr < old.addr + old.len;
    // A put of the same bytes to the same place changes nothing: programs repeat a put for its notice alone.
    let is_same = (old.addr, old.len, old.sum) == (new.addr, new.len, new.sum);
    let ranks = [new.rank, old.rank, new.owner as usize];
    if overlaps && !is_ordered && !is_same && !ranks.iter().any(|&rank| job.is_exempt(rank)) {
        job.report_misuse(format!(
            "puts of ranks {} and {} to rank {} overlap: {} bytes to STADD {:#x} while {} bytes to \
             {:#x} are under way",
            new.rank, old.rank, new.owner, new.len, new.stadd, old.len, old.stadd
        ));
    }
}

/// Reports misuse if an operation still needs the registration of `stadd` with the CQ of `origin`.
pub(crate) fn check_deregister(device: &Device, origin: &OpOrigin, stadd: u64) {
    let job = &origin.context.job;
    let rank = origin.context.rank;
    if job.is_exempt(rank) {
        return;
    }
    device.for_each(|op| {
        if op.needs(origin.table(), stadd) {
            job.report_misuse(format!(
                "rank {rank} deregisters STADD {stadd:#x} while an operation of rank {} needs it",
                op.rank()
            ));
        }
    });
}

/// Reports misuse if an operation of rank `from` uses memory of a region that its owner has unmapped since
/// registering it.
pub(crate) fn check_unmapped(job: &Job, from: usize, region: Option<RegisteredRegion>, len: u32) {
    let Some(RegisteredRegion { addr, owner, unmap_epoch, .. }) = region else { return };
    let owner = owner as usize;
    let is_checked = job.model.checked && ![from, owner].iter().any(|&rank| job.is_exempt(rank));
    if is_checked && job.is_unmapped(owner, addr..addr + u64::from(len), unmap_epoch) {
        job.report_misuse(format!(
            "an operation of rank {from} uses {len} bytes of rank {owner} that were unmapped after their \
             registration"
        ));
    }
}

/// Returns a checksum of the bytes.
pub(crate) fn sum_of(bytes: &[u8]) -> u64 {
    FxBuildHasher.hash_one(bytes)
}

/// Returns the checksum of what the source of a put holds now.
pub(crate) fn source_sum(origin: &OpOrigin, op: &Op) -> Option<u64> {
    let (lcl, len) = match op.action {
        OpAction::Put { lcl, len } => (lcl, len),
        OpAction::Piggyback { data, len, .. } => {
            let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_ne_bytes()).collect();
            return Some(sum_of(&bytes[..len as usize]));
        }
        _ => return None,
    };
    let from = source(origin, lcl, len).ok()?;
    let mut bytes = vec![0; len as usize];
    // SAFETY: the range lies in a registration; the vector has the room.
    unsafe { copy::read(AddressSpace::Local, from, bytes.as_mut_ptr() as u64, len as usize).ok()? };
    Some(sum_of(&bytes))
}
