//! What the checked mode knows of an operation of the late mode: what it reads, and where it writes.

use crate::copy::{self, Space};
use crate::desc::{Action, Op};
use crate::mem::Region;
use crate::vcq::Origin;
use crate::{ops, targets};

/// A range of a rank's memory.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) owner: u32,
    pub(crate) addr: u64,
    pub(crate) len: u64,
}

impl Place {
    pub(crate) fn overlaps(&self, other: &Place) -> bool {
        self.owner == other.owner
            && self.addr < other.addr + other.len
            && other.addr < self.addr + self.len
    }
}

/// What an operation reads or writes at its target.
pub(crate) fn region_of(origin: &Origin, op: &Op) -> Option<Region> {
    targets::find(&origin.context.job, op.vcq)?.table.lookup(op.rmt)
}

/// Where a put of `op` would write now.
pub(crate) fn target_of(origin: &Origin, op: &Op) -> Option<Place> {
    if !matches!(op.action, Action::Put { .. } | Action::Piggyback { .. }) {
        return None;
    }
    let region = region_of(origin, op)?;
    let len = u64::from(ops::length(op));
    (len > 0).then_some(Place { owner: region.owner, addr: region.addr, len })
}

/// A number that changes with the bytes (FNV-1a).
pub(crate) fn sum_of(bytes: &[u8]) -> u64 {
    let step = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// What the source of a put holds now.
pub(crate) fn source_sum(origin: &Origin, op: &Op) -> Option<u64> {
    let (lcl, len) = match op.action {
        Action::Put { lcl, len } => (lcl, len),
        Action::Piggyback { data, len, .. } => {
            let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_ne_bytes()).collect();
            return Some(sum_of(&bytes[..len as usize]));
        }
        _ => return None,
    };
    let from = ops::source(origin, lcl, len).ok()?;
    let mut bytes = vec![0; len as usize];
    // SAFETY: the range lies in a registration; the vector has the room.
    unsafe { copy::read(Space::Here, from, bytes.as_mut_ptr() as u64, len as usize).ok()? };
    Some(sum_of(&bytes))
}
