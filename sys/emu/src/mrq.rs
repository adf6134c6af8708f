//! The message receive queue: many ranks push notices, one pops them, without locks.
//!
//! A queue holds [`CAPACITY`] notices of one cache line each, which would be 8 MiB per VCQ. To
//! keep a queue that is never far behind small and in the cache, its index space is cut into
//! chunks: the first notice of a chunk takes one, the last that is read gives it back. So a queue in
//! normal use alternates between two chunks. A lock guards who takes and who gives back; notices pass
//! without it.
//!
//! Every notice has one index, given out by `tail`. A notice is there when its entry's `seq` is
//! its index + 1; indices are never used twice, so stale entries of a reused chunk cannot be
//! mistaken for new ones.
//!
//! The poster and the poller know what a notice means; [`Chunks`] knows where chunks lie.

#[cfg(not(loom))]
use crate::shared::lock::SpinLock as Lock;
use crate::sync::{AtomicU64, Ordering};
#[cfg(loom)]
type Lock = loom::sync::Mutex<()>;

/// Notices in a chunk.
#[cfg(not(loom))]
pub(crate) const CHUNK: u64 = 256;
/// Chunks in the index window; more than CAPACITY / CHUNK, so that a slot is never met twice.
#[cfg(not(loom))]
const SLOTS: usize = 1024;
/// Free chunks that a queue keeps: more than are ever in use at once.
#[cfg(not(loom))]
const FREE: usize = 584;
/// Unread notices that a queue holds (the real device's number).
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

/// What travels: five words whose meaning the poster and the poller share, and two numbers that
/// the queue's reader needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Kind, edata and return code, packed by the poster.
    pub meta: u64,
    /// The VCQ on the other side.
    pub vcq: u64,
    /// Remote STADD.
    pub rmt: u64,
    /// Local STADD.
    pub lcl: u64,
    /// Old value of an atomic operation.
    pub value: u64,
    /// For local notices: how many local entries had been posted, this one included.
    pub order: u64,
    /// When it may be seen, in ns; 0: at once.
    pub ready_at: u64,
}

/// One entry: exactly a cache line, so that two senders do not share one.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct Entry {
    seq: AtomicU64,
    words: [AtomicU64; 7],
}

/// A run of entries. Valid when zeroed.
#[repr(C)]
pub(crate) struct Chunk {
    entries: [Entry; CHUNK as usize],
}

#[cfg(any(test, loom))]
impl Default for Chunk {
    fn default() -> Self {
        Chunk { entries: std::array::from_fn(|_| Entry::default()) }
    }
}

/// Where chunks come from.
pub(crate) trait Chunks {
    /// Reserves memory for one zeroed chunk for ever; its number is not 0, and below 2^[`RUN_AT`]. None
    /// if there is none left.
    fn create(&self) -> Option<u64>;
    /// The chunk that `create` has numbered.
    fn at(&self, chunk: u64) -> &Chunk;
}

/// Why a notice is lost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The reader is too far behind, or there is no memory.
    Overflow,
    /// The sender took too long, and the reader does not wait for it any more.
    Late,
}

/// The chunk that a sender's last notice went to. It serves until its last index is used, so the
/// sender's next notice mostly finds it here instead of in the queue's tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    /// Number of the run of indices that it serves, from 1; 0: none.
    run: u64,
    chunk: u64,
}

/// The shared part of a queue. Valid when zeroed.
#[repr(C, align(64))]
pub(crate) struct Ring {
    /// Next index to give out. Written by all senders.
    tail: AtomicU64,
    pad0: [u64; 7],
    /// First index not yet read. Written by the reader, once per chunk.
    head: AtomicU64,
    pad1: [u64; 7],
    /// For each slot of the window which chunk serves it ([`Slot`]); 0: none yet.
    table: [AtomicU64; SLOTS],
    /// Guards what is below, and all changes of `table` and `head`.
    lock: Lock,
    /// How many chunks serve no slot, and which: the last is the one most likely still in a cache.
    n_free: AtomicU64,
    free: [AtomicU64; FREE],
}

#[cfg(any(test, loom))]
impl Default for Ring {
    fn default() -> Self {
        Ring {
            tail: AtomicU64::new(0),
            pad0: [0; 7],
            head: AtomicU64::new(0),
            pad1: [0; 7],
            table: std::array::from_fn(|_| AtomicU64::new(0)),
            lock: Lock::default(),
            n_free: AtomicU64::new(0),
            free: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

/// Number of the run of indices that share a chunk, from 1.
#[inline]
fn run_of(index: u64) -> u64 {
    index / CHUNK + 1
}

fn slot_of(index: u64) -> usize {
    (index / CHUNK) as usize % SLOTS
}

/// Where the run begins in a word of the table.
const RUN_AT: u32 = 40;

/// A word of the table: which round of the window it is for, and the chunk. The round keeps a
/// sender that reads an outdated word from writing into a chunk that has moved on.
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

impl Ring {
    /// Appends a notice. The capacity is looked at once per chunk, so overflow may be found up to
    /// two chunks late, and never early. `recent` is the sender's for this queue.
    #[inline]
    pub(crate) fn push(
        &self,
        chunks: &impl Chunks,
        recent: &mut Recent,
        notice: &Notice,
    ) -> Result<(), Lost> {
        // Relaxed: the index alone publishes nothing; `seq` does.
        let index = self.tail.fetch_add(1, Ordering::Relaxed);
        // The chunk of an index serves it until the reader has passed it, which waits for the
        // notice; if the reader gives that up, the chunk serves nobody else.
        if recent.run != run_of(index) {
            *recent = Recent { run: run_of(index), chunk: self.chunk(chunks, index)? };
        }
        let entry = &chunks.at(recent.chunk).entries[(index % CHUNK) as usize];
        let words = [
            notice.meta,
            notice.vcq,
            notice.rmt,
            notice.lcl,
            notice.value,
            notice.order,
            notice.ready_at,
        ];
        for (to, from) in entry.words.iter().zip(words) {
            to.store(from, Ordering::Relaxed);
        }
        // Release pairs with the Acquire in peek: the words, and the data that the sender has
        // moved before, are visible to who sees this number.
        entry.seq.store(index + 1, Ordering::Release);
        Ok(())
    }

    /// The chunk of an index.
    #[cold]
    fn chunk(&self, chunks: &impl Chunks, index: u64) -> Result<u64, Lost> {
        // Acquire pairs with the Release below: the chunk's earlier notices have been read.
        let word = self.table[slot_of(index)].load(Ordering::Acquire);
        if let Some(chunk) = Slot::chunk(word, index) {
            return Ok(chunk);
        }
        // Relaxed: the lock orders all that it guards.
        let _guard = self.locked();
        let head = self.head.load(Ordering::Relaxed);
        // Head lags behind the reader by up to a chunk: what it may hold is not overflow yet.
        match index.checked_sub(head) {
            None => return Err(Lost::Late),
            Some(behind) if behind >= CAPACITY + CHUNK => return Err(Lost::Overflow),
            Some(_) => {}
        }
        let slot = &self.table[slot_of(index)];
        match slot.load(Ordering::Relaxed) {
            0 => {}
            // Another sender was faster.
            word => return Slot::chunk(word, index).ok_or(Lost::Overflow),
        }
        let n_free = (self.n_free.load(Ordering::Relaxed) as usize).min(FREE);
        let chunk = match n_free.checked_sub(1) {
            Some(last) => {
                self.n_free.store(last as u64, Ordering::Relaxed);
                self.free[last].load(Ordering::Relaxed)
            }
            None => chunks.create().ok_or(Lost::Overflow)?,
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

    /// A reader that starts at the first unread notice. At most one may be in use at a time.
    pub(crate) fn reader(&self) -> Reader {
        Reader { next: self.head.load(Ordering::Acquire), chunk: 0, has_hole: false }
    }

    /// Discards what an earlier owner has left, up to an index that no sender has used yet.
    /// `is_patient` is asked while a notice is announced and not yet written; when it says no, the
    /// sender is given up: it has died, or has found no room.
    // Not modelled: it waits for senders, which loom would try without end.
    #[cfg(not(loom))]
    pub(crate) fn drain(
        &self,
        chunks: &impl Chunks,
        reader: &mut Reader,
        mut is_patient: impl FnMut() -> bool,
    ) {
        while reader.next < self.tail.load(Ordering::Relaxed) {
            if reader.pop(self, chunks).is_none() && !is_patient() {
                reader.skip(self);
            }
        }
        let _guard = self.locked();
        self.head.store(reader.next, Ordering::Release);
    }
}

/// The private part of the one reader.
pub(crate) struct Reader {
    next: u64,
    /// The chunk of `next`, if it was already looked up.
    chunk: u64,
    /// Whether a notice of this chunk was given up. Its sender may still write it, so the chunk must
    /// not serve again.
    has_hole: bool,
}

impl Reader {
    /// The next notice, if there is one.
    // Polls mostly find none, and a notice is 56 bytes that a call would move once more.
    #[inline(always)]
    pub(crate) fn pop(&mut self, ring: &Ring, chunks: &impl Chunks) -> Option<Notice> {
        if self.chunk == 0 {
            // Acquire pairs with the Release of the sender that took it.
            let word = ring.table[slot_of(self.next)].load(Ordering::Acquire);
            self.chunk = Slot::chunk(word, self.next)?;
        }
        let entry = &chunks.at(self.chunk).entries[(self.next % CHUNK) as usize];
        // Acquire pairs with the Release store in push.
        if entry.seq.load(Ordering::Acquire) != self.next + 1 {
            return None;
        }
        let w: [u64; 7] = std::array::from_fn(|i| entry.words[i].load(Ordering::Relaxed));
        self.next += 1;
        if self.next.is_multiple_of(CHUNK) {
            self.leave_chunk(ring);
        }
        Some(Notice {
            meta: w[0],
            vcq: w[1],
            rmt: w[2],
            lcl: w[3],
            value: w[4],
            order: w[5],
            ready_at: w[6],
        })
    }

    /// Passes over a notice that does not come.
    #[cfg(not(loom))]
    fn skip(&mut self, ring: &Ring) {
        self.has_hole = true;
        self.next += 1;
        if self.next.is_multiple_of(CHUNK) {
            self.leave_chunk(ring);
        }
    }

    /// All entries were read, so all their senders are done: the chunk can serve again.
    #[cold]
    fn leave_chunk(&mut self, ring: &Ring) {
        let _guard = ring.locked();
        // Relaxed: the lock orders all that it guards. In this order a reader that dies in between
        // loses a chunk at most.
        ring.table[slot_of(self.next - 1)].store(0, Ordering::Relaxed);
        // Release pairs with the Acquire of a later reader.
        ring.head.store(self.next, Ordering::Release);
        let n_free = ring.n_free.load(Ordering::Relaxed);
        if !self.has_hole
            && let Some(free) = ring.free.get(n_free as usize)
        {
            free.store(self.chunk, Ordering::Relaxed);
            ring.n_free.store(n_free + 1, Ordering::Relaxed);
        }
        self.chunk = 0;
        self.has_hole = false;
    }
}

#[cfg(all(test, not(loom)))]
#[path = "mrq_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "mrq_loom.rs"]
mod loom_tests;
