//! Lists of regions in which adjacent regions are joined.

use smallvec::SmallVec;

use super::program::Region;

/// Regions in order; mostly one.
pub(crate) type Regions = SmallVec<[Region; 2]>;

/// Whether `next` begins where `region` ends.
pub(crate) fn continues(region: &Region, next: &Region) -> bool {
    region.buffer == next.buffer && region.offset + region.len == next.offset
}

/// Appends `next`, or extends the last region if `next` continues it.
pub(crate) fn push_joined(regions: &mut Regions, next: Region) {
    match regions.last_mut() {
        Some(last) if continues(last, &next) => last.len += next.len,
        _ => regions.push(next),
    }
}
