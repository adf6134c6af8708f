//! Layout of the arena: a header, one record per rank, one per node, then the heap.
//!
//! All types here are valid when zeroed, and all ranks share their values.

use crate::job::nodes::NodePlacement;
use crate::limits::{CQS, TNIS, VCQS};
use crate::mrq::{Chunk, NoticeRing};
use crate::shared::arena::{Heap, Offset, Shared};
use crate::shared::copy;
use crate::shared::lock::SpinLock;
use crate::shared::registrations::{EntryHolders, StagTable};
use crate::sync::{AtomicU64, Ordering};
use crate::timing::links::{Calendar, LINKS_PER_NODE};
use hopbine_meet::Stat;
use std::sync::atomic::AtomicU32;

/// The arena's header, at offset 0.
#[repr(C, align(64))]
pub(crate) struct ArenaHeader {
    pub(crate) heap: Heap,
    /// Random number that identifies this memory (processes only).
    pub(crate) token: AtomicU64,
    /// Guards the calendars of all links and TNIs (latency model only).
    pub(crate) links: SpinLock,
}

/// The record of a rank.
#[repr(C, align(64))]
pub(crate) struct RankRecord {
    /// Guards atomic operations on this rank's memory for which the processor's atomics cannot be used.
    pub(crate) atomics: SpinLock,
    /// Operations of this rank's process that hold a registration (processes only).
    pub(crate) holding: AtomicU32,
}

/// A process that may hold registrations that have ended.
pub(crate) struct PossibleHolder<'a> {
    record: &'a RankRecord,
    process: u32,
    state: EntryHolders,
}

impl<'a> PossibleHolder<'a> {
    /// The process of this id, of the rank with this record.
    pub(crate) fn new(record: &'a RankRecord, process: u32) -> Self {
        PossibleHolder { record, process, state: EntryHolders::Running }
    }

    /// Removes from `all` the processes that hold nothing now, and returns the state of the others. What a process holds
    /// later it finds invalid. `checks` as for
    /// [`FindHolders`](crate::shared::registrations::FindHolders).
    pub(crate) fn remaining(all: &mut Vec<Self>, checks: bool) -> EntryHolders {
        all.retain_mut(|holder| {
            if checks {
                holder.state = state_of(holder.process);
            }
            // SeqCst: see `RegistrationEntry::hold`.
            holder.state != EntryHolders::None && holder.record.holding.load(Ordering::SeqCst) > 0
        });
        all.iter().map(|holder| holder.state).max().unwrap_or(EntryHolders::None)
    }
}

fn state_of(process: u32) -> EntryHolders {
    if !copy::exists(process) {
        return EntryHolders::None;
    }
    // A process whose state cannot be read counts as running.
    match Stat::of(process) {
        Ok(Some(Stat { state: b'T', .. })) => EntryHolders::Stopped,
        _ => EntryHolders::Running,
    }
}

/// The record of a node.
#[repr(C, align(64))]
pub(crate) struct NodeRecord {
    pub(crate) tnis: [TniRecord; TNIS],
    /// Links that leave the node (latency model only).
    pub(crate) links: [Calendar; LINKS_PER_NODE],
}

/// One TNI of a node.
#[repr(C, align(64))]
pub(crate) struct TniRecord {
    /// Guards the allocation of VCQs and gates.
    pub(crate) lock: SpinLock,
    /// When the TNI can send again, in ns (latency model only).
    pub(crate) busy_until: AtomicU64,
    /// Offset of the gate table; 0 if no gate was ever allocated.
    pub(crate) gates: AtomicU64,
    pub(crate) cqs: [CqRecord; CQS],
    /// Times at which messages arrive (latency model only).
    pub(crate) arriving: Calendar,
}

/// One CQ.
#[repr(C, align(64))]
pub(crate) struct CqRecord {
    /// Bit i: VCQ i exists. Bit 31: one VCQ has the whole CQ.
    pub(crate) used: AtomicU32,
    /// Checked mode: whether a thread is posting, and whether one is polling the MRQ.
    pub(crate) busy: [AtomicU32; 2],
    /// Offset of the registration table; 0 if the CQ was never used.
    pub(crate) table: AtomicU64,
    /// Offsets of the VCQ blocks; 0 if never created. Successive VCQs at the same place share a block.
    pub(crate) vcqs: [AtomicU64; VCQS],
}

/// The shared half of a VCQ.
#[repr(C, align(64))]
pub(crate) struct VcqBlock {
    /// Not 0 while a VCQ exists here.
    pub(crate) alive: AtomicU32,
    /// Rank that owns the VCQ.
    pub(crate) owner: AtomicU32,
    /// Not 0 after a notice found the queue full, which terminates the owner.
    pub(crate) overflowed: AtomicU32,
    /// Total of the session progress steps that operations have brought; wraps.
    pub(crate) steps: AtomicU32,
    pub(crate) ring: NoticeRing,
}

impl VcqBlock {
    /// Returns whether a VCQ exists here.
    #[inline]
    pub(crate) fn is_alive(&self) -> bool {
        // Acquire pairs with the Release in Vcq::create: the owner is set.
        self.alive.load(Ordering::Acquire) != 0
    }
}

impl CqRecord {
    /// Returns the offsets of the block and the table of the VCQ at index `n`, if both exist.
    #[inline]
    pub(crate) fn vcq(&self, n: usize) -> Option<(Offset<VcqBlock>, Offset<StagTable>)> {
        // Acquire pairs with the Release in Job::lazy.
        let block = self.vcqs[n].load(Ordering::Acquire);
        let table = self.table.load(Ordering::Acquire);
        (block != 0 && table != 0).then(|| (Offset::new(block), Offset::new(table)))
    }
}

// SAFETY: this and the following types are repr(C) and consist of atomics, locks and arrays of these.
unsafe impl Shared for ArenaHeader {}
// SAFETY: see ArenaHeader.
unsafe impl Shared for RankRecord {}
// SAFETY: see ArenaHeader.
unsafe impl Shared for NodeRecord {}
// SAFETY: see ArenaHeader; the padding of NoticeRing is never written.
unsafe impl Shared for VcqBlock {}
// SAFETY: see ArenaHeader.
unsafe impl Shared for Chunk {}

/// Offsets of the fixed part.
#[derive(Clone, Copy)]
pub(crate) struct ArenaLayout {
    pub(crate) ranks: Offset<RankRecord>,
    pub(crate) nodes: Offset<NodeRecord>,
    pub(crate) heap: u64,
    /// Bytes of the whole arena.
    pub(crate) len: u64,
}

/// Heap per rank, in bytes. A VCQ usually takes two chunks; this is enough for eight full queues per rank, and costs
/// only address space.
const HEAP_PER_RANK: u64 = 64 << 20;
/// Heap of the smallest job, in bytes.
const HEAP_LEAST: u64 = 1 << 30;

impl ArenaLayout {
    pub(crate) fn of(placement: &NodePlacement) -> ArenaLayout {
        let (ranks, nodes) = (placement.node_of.len(), placement.nodes.len());
        let first = Offset::new(size_of::<ArenaHeader>() as u64);
        let node = Offset::new(first.nth(ranks).bytes());
        let heap = Offset::<NodeRecord>::nth(node, nodes).bytes().next_multiple_of(4096);
        let room = (ranks as u64 * HEAP_PER_RANK).max(HEAP_LEAST);
        ArenaLayout { ranks: first, nodes: node, heap, len: heap + room }
    }
}

#[cfg(test)]
mod tests {
    use hopbine_testing::processes::Process;

    use super::*;

    fn record(holding: u32) -> RankRecord {
        // SAFETY: a record is valid when zeroed.
        let record: RankRecord = unsafe { std::mem::zeroed() };
        record.holding.store(holding, Ordering::Relaxed);
        record
    }

    /// A process holds a registration only while it lives and its count is not 0.
    #[test]
    fn the_dead_hold_nothing() {
        let of = |pid, holding| {
            let record = record(holding);
            PossibleHolder::remaining(&mut vec![PossibleHolder::new(&record, pid)], true)
        };
        let living = std::process::id();
        assert_eq!((of(living, 0), of(living, 1)), (EntryHolders::None, EntryHolders::Running));
        let mut child = Process::start(std::process::Command::new("sleep").arg("100"));
        let pid = child.id();
        child.signal(libc::SIGSTOP);
        while of(pid, 1) == EntryHolders::Running {
            std::thread::yield_now();
        }
        assert_eq!(of(pid, 1), EntryHolders::Stopped);
        assert_eq!(of(pid, 0), EntryHolders::None);
        child.kill();
        drop(child);
        assert_eq!(of(pid, 1), EntryHolders::None);
    }

    /// Ranks that always work on something, but in turn, are not waited for: none still holds what has ended.
    #[test]
    fn what_is_held_later_does_not_count() {
        let (a, b, living) = (record(0), record(1), std::process::id());
        let mut all = [&a, &b].map(|record| PossibleHolder::new(record, living)).into();
        assert_eq!(PossibleHolder::remaining(&mut all, false), EntryHolders::Running);
        a.holding.store(1, Ordering::Relaxed);
        assert_eq!(PossibleHolder::remaining(&mut all, true), EntryHolders::Running);
        b.holding.store(0, Ordering::Relaxed);
        assert_eq!(PossibleHolder::remaining(&mut all, false), EntryHolders::None);
    }
}
