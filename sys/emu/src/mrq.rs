//! The message receive queue: many ranks push notices, one pops them, without locks.
//!
//! A queue holds [`CAPACITY`] notices of one cache line each, which would be 8 MiB per VCQ. To keep a queue whose
//! reader keeps up small and in the cache, its index space is divided into chunks. The sender of a chunk's first
//! notice allocates a chunk, and the reader of its last notice frees it, so that a queue in normal use alternates
//! between two chunks. A lock guards allocation and freeing; notices pass without the lock.
//!
//! Every notice has one index, which the sender takes from `tail`. A notice is complete when its entry's `seq` is its
//! index + 1. Indices are never used twice, so stale entries of a reused chunk cannot be mistaken for new ones.
//!
//! Only the poster and the poller interpret notices; [`Chunks`] knows where chunks are in memory.

#[cfg(not(loom))]
use crate::shared::lock::SpinLock as Lock;
use crate::sync::{AtomicU64, Ordering};
#[cfg(loom)]
type Lock = loom::sync::Mutex<()>;

/// Notices in a chunk.
#[cfg(not(loom))]
pub(crate) const CHUNK: u64 = 256;
/// Chunks in the index window; more than CAPACITY / CHUNK, so that no two chunks in use have the same slot.
#[cfg(not(loom))]
const SLOTS: usize = 1024;
/// Free chunks that a queue keeps: more than are in use at any time.
#[cfg(not(loom))]
const FREE: usize = 584;
/// Unread notices that a queue holds, as many as on the real device.
#[cfg(not(loom))]
pub(crate) const CAPACITY: u64 = 131_072;

#[cfg(loom)]
pub(crate) const CHUNK: u64 = 2;
#[cfg(loom)]
const SLOTS: usize = 4;
#[cfg(loom)]
const FREE: usize = 4;
#[cfg(loom)]
pub(crate) const CAPACITY: u64 = 4;

/// A notice: four words that only the poster and the poller interpret, and two numbers for the queue's reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MrqNotice {
    /// Kind, edata and return code, packed by the poster.
    pub meta: u64,
    /// Id of the VCQ on the other side.
    pub vcq: u64,
    /// Remote STADD.
    pub rmt: u64,
    /// Local notices: old value of an atomic operation, or local STADD of a get. As `rmt` in other notices.
    pub value: u64,
    /// Local notices: number of local entries posted up to this one. 0 in other notices.
    pub order: u64,
    /// Time from which a poll may return it, in ns; 0 for at once.
    pub ready_at: u64,
}

/// One entry: exactly a cache line, so that two senders never write to the same line.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct MrqEntry {
    seq: AtomicU64,
    words: [AtomicU64; 6],
}

/// Entries of [`CHUNK`] consecutive indices. Valid when zeroed.
#[repr(C)]
pub(crate) struct Chunk {
    entries: [MrqEntry; CHUNK as usize],
}

#[cfg(any(test, loom))]
impl Default for Chunk {
    fn default() -> Self {
        Chunk { entries: std::array::from_fn(|_| MrqEntry::default()) }
    }
}

/// Allocator of chunks.
pub(crate) trait Chunks {
    /// Allocates one zeroed chunk, which is never freed. Its number is not 0, and below 2^[`RUN_AT`]. `None` if no
    /// memory is left.
    fn create(&self) -> Option<u64>;
    /// Returns the chunk with this number from `create`.
    fn at(&self, chunk: u64) -> &Chunk;
}

/// Reason why a notice is lost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PushError {
    /// The reader is too far behind, or no memory is left.
    Overflow,
    /// The sender took too long, and the reader no longer waits for its notice.
    Late,
}

/// The chunk of a sender's last notice. The chunk stays in place until its last index is used, so the sender's next
/// notice mostly needs no look-up in the queue's tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentChunk {
    /// Number of the chunk's range of indices, from 1; 0 if there is no chunk.
    run: u64,
    chunk: u64,
}

/// The shared part of a queue. Valid when zeroed.
#[repr(C, align(64))]
pub(crate) struct NoticeRing {
    /// Next index to assign. Written by all senders.
    tail: AtomicU64,
    pad0: [u64; 7],
    /// First index not yet read. Written by the reader, once per chunk.
    head: AtomicU64,
    /// Range of indices of the last notice that was given up; 0 if there was none. The notice's sender may still write
    /// it, so the range's chunk must not be reused.
    hole: AtomicU64,
    pad1: [u64; 6],
    /// Chunk of each slot of the window ([`Slot`]); 0 if none is assigned.
    table: [AtomicU64; SLOTS],
    /// Guards the fields below, and all changes of `table` and `head`.
    lock: Lock,
    /// Number of free chunks, and a stack of them: the top one is the most likely to be in a cache still.
    n_free: AtomicU64,
    free: [AtomicU64; FREE],
}

#[cfg(any(test, loom))]
impl Default for NoticeRing {
    fn default() -> Self {
        NoticeRing {
            tail: AtomicU64::new(0),
            pad0: [0; 7],
            head: AtomicU64::new(0),
            hole: AtomicU64::new(0),
            pad1: [0; 6],
            table: std::array::from_fn(|_| AtomicU64::new(0)),
            lock: Lock::default(),
            n_free: AtomicU64::new(0),
            free: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

/// Returns the number of the range of indices that share a chunk, from 1.
#[inline]
fn run_of(index: u64) -> u64 {
    index / CHUNK + 1
}

fn slot_of(index: u64) -> usize {
    (index / CHUNK) as usize % SLOTS
}

/// First bit of the range's number in a word of the table.
const RUN_AT: u32 = 40;

/// A word of the table: the number of a range of indices, and its chunk. The range's number keeps a sender that reads
/// an outdated word from writing into a chunk that has been reused.
struct Slot;

impl Slot {
    fn pack(index: u64, chunk: u64) -> u64 {
        run_of(index) << RUN_AT | chunk
    }

    #[inline]
    fn chunk(word: u64, index: u64) -> Option<u64> {
        let chunk = word & ((1 << RUN_AT) - 1);
        (chunk != 0 && word == Slot::pack(index, chunk)).then_some(chunk)
    }
}

impl NoticeRing {
    /// Appends a notice. The capacity is checked once per chunk, so an overflow may be detected up to two chunks
    /// late, and never early. `recent` belongs to the sender and to this queue.
    #[inline]
    pub(crate) fn push(
        &self,
        chunks: &impl Chunks,
        recent: &mut RecentChunk,
        notice: &MrqNotice,
    ) -> Result<(), PushError> {
        // Relaxed: the index publishes nothing; `seq` does.
        let index = self.tail.fetch_add(1, Ordering::Relaxed);
        // A chunk keeps its range of indices until the reader has passed the range, and the reader waits for every
        // notice. If the reader gives up a notice, the chunk is never reused.
        if recent.run != run_of(index) {
            *recent = RecentChunk { run: run_of(index), chunk: self.chunk(chunks, index)? };
        }
        let entry = &chunks.at(recent.chunk).entries[(index % CHUNK) as usize];
        let words =
            [notice.meta, notice.vcq, notice.rmt, notice.value, notice.order, notice.ready_at];
        for (to, from) in entry.words.iter().zip(words) {
            to.store(from, Ordering::Relaxed);
        }
        // Release pairs with the Acquire in pop: a reader that sees this number also sees the words, and the data
        // that the sender has moved before.
        entry.seq.store(index + 1, Ordering::Release);
        Ok(())
    }

    /// Returns the chunk of an index, and allocates it if necessary.
    #[cold]
    fn chunk(&self, chunks: &impl Chunks, index: u64) -> Result<u64, PushError> {
        // Acquire pairs with the Release below: the chunk's earlier notices have been read.
        let word = self.table[slot_of(index)].load(Ordering::Acquire);
        if let Some(chunk) = Slot::chunk(word, index) {
            return Ok(chunk);
        }
        // Relaxed: the lock orders all accesses to the data that it guards.
        let _guard = self.locked();
        let head = self.head.load(Ordering::Relaxed);
        // `head` lags behind the reader by up to a chunk; notices that the reader may have read are not an overflow.
        match index.checked_sub(head) {
            None => return Err(PushError::Late),
            Some(behind) if behind >= CAPACITY + CHUNK => return Err(PushError::Overflow),
            Some(_) => {}
        }
        let slot = &self.table[slot_of(index)];
        match slot.load(Ordering::Relaxed) {
            0 => {}
            // Another sender was faster.
            word => return Slot::chunk(word, index).ok_or(PushError::Overflow),
        }
        let n_free = (self.n_free.load(Ordering::Relaxed) as usize).min(FREE);
        let chunk = match n_free.checked_sub(1) {
            Some(last) => {
                self.n_free.store(last as u64, Ordering::Relaxed);
                self.free[last].load(Ordering::Relaxed)
            }
            None => chunks.create().ok_or(PushError::Overflow)?,
        };
        // Release pairs with the Acquires of other senders and of the reader.
        slot.store(Slot::pack(index, chunk), Ordering::Release);
        Ok(chunk)
    }

    /// Takes the lock, until the result is dropped.
    fn locked(&self) -> impl Drop + '_ {
        let guard = self.lock.lock();
        #[cfg(loom)]
        let guard = guard.unwrap();
        guard
    }

    /// Returns a reader that starts at the first unread notice. At most one may be in use at a time.
    pub(crate) fn reader(&self) -> MrqReader {
        MrqReader { next: self.head.load(Ordering::Acquire), chunk: 0 }
    }

    /// Discards the notices of an earlier owner, up to an index that no sender has used yet. `keep_waiting` is called
    /// while a notice has an index and is not written yet; if it returns false, the notice is given up: its sender
    /// has died, or has found no room.
    // Not in the loom model: loom would explore the wait for senders without end.
    #[cfg(not(loom))]
    pub(crate) fn drain(
        &self,
        chunks: &impl Chunks,
        reader: &mut MrqReader,
        mut keep_waiting: impl FnMut() -> bool,
    ) {
        while reader.next < self.tail.load(Ordering::Relaxed) {
            if reader.pop(self, chunks).is_none() && !keep_waiting() {
                reader.skip(self);
            }
        }
        let _guard = self.locked();
        self.head.store(reader.next, Ordering::Release);
    }
}

/// The private state of the queue's only reader.
pub(crate) struct MrqReader {
    next: u64,
    /// Chunk of `next`; 0 if not looked up yet.
    chunk: u64,
}

impl MrqReader {
    /// Returns the next notice, if it is complete.
    // Inlined: polls mostly find nothing, and a call would copy the 48 bytes of a notice once more.
    #[inline(always)]
    pub(crate) fn pop(&mut self, ring: &NoticeRing, chunks: &impl Chunks) -> Option<MrqNotice> {
        if self.chunk == 0 {
            // Acquire pairs with the Release of the sender that allocated the chunk.
            let word = ring.table[slot_of(self.next)].load(Ordering::Acquire);
            self.chunk = Slot::chunk(word, self.next)?;
        }
        let entry = &chunks.at(self.chunk).entries[(self.next % CHUNK) as usize];
        // Acquire pairs with the Release store in push.
        if entry.seq.load(Ordering::Acquire) != self.next + 1 {
            return None;
        }
        let w: [u64; 6] = std::array::from_fn(|i| entry.words[i].load(Ordering::Relaxed));
        self.next += 1;
        if self.next.is_multiple_of(CHUNK) {
            self.release_chunk(ring);
        }
        Some(MrqNotice {
            meta: w[0],
            vcq: w[1],
            rmt: w[2],
            value: w[3],
            order: w[4],
            ready_at: w[5],
        })
    }

    /// Skips a notice that its sender has not written.
    #[cfg(not(loom))]
    fn skip(&mut self, ring: &NoticeRing) {
        // Relaxed: `head` publishes it to a later reader.
        ring.hole.store(run_of(self.next), Ordering::Relaxed);
        self.next += 1;
        if self.next.is_multiple_of(CHUNK) {
            self.release_chunk(ring);
        }
    }

    /// Frees the chunk: all of its entries have been read, so all of its senders are done with it.
    #[cold]
    fn release_chunk(&mut self, ring: &NoticeRing) {
        let _guard = ring.locked();
        // Relaxed: the lock orders all accesses to the data that it guards. With this order of stores a reader that
        // dies between them loses at most a chunk.
        ring.table[slot_of(self.next - 1)].store(0, Ordering::Relaxed);
        // Release pairs with the Acquire of a later reader.
        ring.head.store(self.next, Ordering::Release);
        let n_free = ring.n_free.load(Ordering::Relaxed);
        if ring.hole.load(Ordering::Relaxed) != run_of(self.next - 1)
            && let Some(free) = ring.free.get(n_free as usize)
        {
            free.store(self.chunk, Ordering::Relaxed);
            ring.n_free.store(n_free + 1, Ordering::Relaxed);
        }
        self.chunk = 0;
    }
}

#[cfg(all(test, not(loom)))]
#[path = "mrq_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "mrq_loom.rs"]
mod loom_tests;
