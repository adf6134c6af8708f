//! Offsets of all objects in the shared segment; every rank computes the same.

use std::ops::Range;

use hopbine_torus::PortId;

/// Bytes of a descriptor, and the alignment of payloads: a cache line of most processors.
pub(super) const LINE: usize = 64;
/// Distance of words that different ranks write, or of which only one is written often: the longest cache line of the
/// architecture's processors, on aarch64 that of A64FX.
pub(super) const APART: usize = if cfg!(target_arch = "aarch64") { 256 } else { LINE };
/// Descriptors in a queue.
pub(super) const QUEUE_LINES: usize = 128;
/// Bytes of a queue's payloads.
pub(super) const PAYLOAD_BYTES: usize = 16 * 1024;
/// Number of staging slots of a port.
pub(super) const SLOTS: usize = 48;
/// Bytes of a staging slot.
pub const SLOT_BYTES: usize = 64 * 1024;
/// Distance of two slots: not a power of two, so that slots use different sets of the caches.
const SLOT_STRIDE: usize = SLOT_BYTES + 4096 + APART;

/// The longest contribution to a collective through a flat buffer, bytes.
pub const CONTRIBUTION_BYTES: usize = 40 * 1024;
/// Places of each rank in a flat buffer: the number of calls by which a rank can be ahead of a rank for which it does
/// not wait.
pub(super) const DEPTH: u64 = 4;
/// Distance of two places: not a power of two, as for slots.
pub(super) const STRIDE: usize = APART + CONTRIBUTION_BYTES + APART;
/// Bytes of a rank's part of a flat buffer: a line of status words, and the places.
pub(super) const PART_BYTES: usize = APART + DEPTH as usize * STRIDE;

/// Bulk places of all ranks together (`bulk`), and the least useful number per rank.
const BULK_PLACES: usize = 96;
const LEAST_BULK_PLACES: usize = 2 * DEPTH as usize;

/// Where the next `len` bytes go in `room` bytes of which the first `end` were written before: behind these if there
/// is room, so that short messages use the whole room, too. The returned end is a multiple of a line.
pub(super) fn next_range(end: usize, len: usize, room: usize) -> Range<usize> {
    let start = if end + len <= room { end } else { 0 };
    start..(start + len).next_multiple_of(LINE)
}

/// The longest contribution to a call in groups (`stages`), bytes.
pub const GROUP_BYTES: usize = 8 * 1024;
/// Distance of two places of a leader: not a power of two, as for slots.
pub(super) const GROUP_STRIDE: usize = APART + GROUP_BYTES + APART;
/// Bytes that a rank needs as a leader: two places for each call.
pub(super) const LEADER_BYTES: usize = 2 * DEPTH as usize * GROUP_STRIDE;

const HEADER_BYTES: usize = 4096;
const RANK_BYTES: usize = 3 * APART;
/// Offset of a queue's descriptors, behind two words of the receiver.
pub(super) const LINES_AT: usize = 2 * APART;
const QUEUE_BYTES: usize = LINES_AT + QUEUE_LINES * LINE + PAYLOAD_BYTES;
const STAGING_BYTES: usize = SLOTS * APART + SLOTS * SLOT_STRIDE;

/// Layout of the segment of `n_ranks` ranks with `n_ports` ports each. The segment is initially zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShmLayout {
    pub(super) n_ranks: usize,
    pub(super) n_ports: usize,
    /// Flat buffers that each rank can lease to communicators, in addition to that of all ranks.
    pub(super) flats_per_rank: usize,
}

impl ShmLayout {
    /// One past the last port.
    fn end_of_ports(&self) -> PortId {
        PortId(self.n_ports as u16)
    }

    /// The number of sleeping threads of the whole segment.
    pub(super) fn sleepers(&self) -> usize {
        APART
    }

    /// Status, news and bell of a rank, in this order, [`APART`] from each other.
    pub(super) fn rank(&self, rank: usize) -> usize {
        HEADER_BYTES + rank * RANK_BYTES
    }

    /// The state of a port's reads of peers' memory; see [`Cma`](super::cma::Cma).
    pub(super) fn reads(&self, port: PortId, rank: usize) -> usize {
        self.rank(self.n_ranks) + (port.index() * self.n_ranks + rank) * APART
    }

    /// The queue of messages from one rank to another.
    pub(super) fn queue(&self, port: PortId, from: usize, to: usize) -> usize {
        let index = (port.index() * self.n_ranks + from) * self.n_ranks + to;
        self.reads(self.end_of_ports(), 0) + index * QUEUE_BYTES
    }

    /// The number of readers of a rank's staging slot.
    pub(super) fn readers(&self, port: PortId, rank: usize, slot: usize) -> usize {
        self.queue(self.end_of_ports(), 0, 0)
            + (port.index() * self.n_ranks + rank) * STAGING_BYTES
            + slot * APART
    }

    /// A rank's staging slot.
    pub(super) fn slot(&self, port: PortId, rank: usize, slot: usize) -> usize {
        self.readers(port, rank, SLOTS) + slot * SLOT_STRIDE
    }

    /// A rank's part of a flat buffer; index 0 is the flat buffer of all ranks.
    pub(super) fn flat(&self, index: usize, rank: usize) -> usize {
        let staging = self.readers(self.end_of_ports(), 0, 0);
        staging.next_multiple_of(4096) + (index * self.n_ranks + rank) * PART_BYTES
    }

    /// Memory that a rank writes as the leader of a group of the first flat buffer.
    pub(super) fn leader(&self, rank: usize) -> usize {
        self.flat(1 + self.n_ranks * self.flats_per_rank, 0) + rank * LEADER_BYTES
    }

    /// Number of bulk places per rank.
    pub(super) fn n_bulk_places(&self) -> usize {
        let each = BULK_PLACES / self.n_ranks;
        if each < LEAST_BULK_PLACES { 0 } else { each }
    }

    /// Bytes of the bulk places of a rank.
    pub(super) fn bulk_bytes(&self) -> usize {
        self.n_bulk_places() * STRIDE
    }

    /// The bulk places of a rank.
    pub(super) fn bulk(&self, rank: usize) -> usize {
        self.leader(self.n_ranks).next_multiple_of(4096) + rank * self.bulk_bytes()
    }

    /// Bytes of the segment.
    pub(super) fn len(&self) -> usize {
        self.bulk(self.n_ranks).next_multiple_of(4096)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_apart_share_no_line_of_this_processor() {
        // SAFETY: accesses no memory.
        let line = unsafe { libc::sysconf(libc::_SC_LEVEL1_DCACHE_LINESIZE) };
        // Not positive: the system does not know.
        assert!(line <= APART as libc::c_long, "{line}");
    }

    #[test]
    fn nothing_overlaps_and_what_ranks_write_is_apart() {
        for (n_ranks, n_ports) in [(48, 1), (4, 6), (3, 2)] {
            let layout = ShmLayout { n_ranks, n_ports, flats_per_rank: 2 };
            let mut parts = vec![(0, layout.sleepers()), (layout.sleepers(), APART)];
            for rank in 0..n_ranks {
                parts.extend((0..3).map(|word| (layout.rank(rank) + word * APART, APART)));
                for flat in (0..1 + 2 * n_ranks).map(|flat| layout.flat(flat, rank)) {
                    parts.push((flat, APART));
                    let place = |turn| (flat + APART + turn * STRIDE, STRIDE);
                    parts.extend((0..DEPTH as usize).map(place));
                }
                let group = |place| (layout.leader(rank) + place * GROUP_STRIDE, GROUP_STRIDE);
                parts.extend((0..LEADER_BYTES / GROUP_STRIDE).map(group));
                let bulk = |place| (layout.bulk(rank) + place * STRIDE, STRIDE);
                parts.extend((0..layout.n_bulk_places()).map(bulk));
                for port in PortId::first(n_ports as u16) {
                    parts.push((layout.reads(port, rank), APART));
                    for queue in (0..n_ranks).map(|to| layout.queue(port, rank, to)) {
                        let [taken, holds] = [queue, queue + APART].map(|word| (word, APART));
                        parts.extend([taken, holds, (queue + LINES_AT, QUEUE_BYTES - LINES_AT)]);
                    }
                    let readers = |slot| (layout.readers(port, rank, slot), APART);
                    parts.extend((0..SLOTS).map(readers));
                    let slot = |slot| (layout.slot(port, rank, slot), SLOT_BYTES);
                    parts.extend((0..SLOTS).map(slot));
                }
            }
            parts.sort_unstable();
            assert!(parts.iter().all(|(start, _)| start % APART == 0));
            assert!(parts.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
            assert!(parts.last().is_some_and(|(start, len)| start + len <= layout.len()));
        }
    }
}
