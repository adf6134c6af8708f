//! An end point for tests: one VCQ and one registered buffer, with the calls unwrapped.
// Every test program uses only a part of this.
#![allow(dead_code)]

use std::ffi::{c_ulong, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use utofu_emu::{Job, c};
use utofu_sys::*;

pub const TCQ: c_ulong = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
pub const LCL: c_ulong = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
pub const RMT: c_ulong = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

/// Reads a word of a leaked buffer, to which the device may write.
pub fn word(p: *mut u64, at: usize) -> u64 {
    // SAFETY: within the buffer, which is never freed.
    unsafe { p.add(at).read_volatile() }
}

/// Writes a word of a leaked buffer.
pub fn set(p: *mut u64, at: usize, value: u64) {
    // SAFETY: within the buffer, which is never freed.
    unsafe { p.add(at).write_volatile(value) };
}

/// An end point for each of a job's two ranks, in one thread, with leaked buffers of `words` words.
pub fn two_ends(job: &Arc<Job>, words: usize) -> [(EndPoint, *mut u64); 2] {
    [0, 1].map(|rank| {
        let _me = job.enter(rank);
        let buffer = vec![0u64; words].leak();
        let p = buffer.as_mut_ptr();
        (EndPoint::open(buffer), p)
    })
}

pub struct EndPoint {
    pub handle: utofu_vcq_hdl_t,
    pub id: utofu_vcq_id_t,
    pub stadd: utofu_stadd_t,
}

impl EndPoint {
    /// A VCQ on TNI 0 for the rank that the thread has entered. The buffer must outlive it.
    pub fn open(buf: &mut [u64]) -> EndPoint {
        EndPoint::open_on(0, buf)
    }

    pub fn open_on(tni: u16, buf: &mut [u64]) -> EndPoint {
        EndPoint::open_with(tni, 0, buf)
    }

    pub fn open_with(tni: u16, flags: c_ulong, buf: &mut [u64]) -> EndPoint {
        let (mut handle, mut id, mut stadd) = (0, 0, 0);
        // SAFETY: valid addresses for the results; the buffer outlives the end point.
        unsafe {
            assert_eq!(c::utofu_create_vcq(tni, flags, &mut handle), 0);
            assert_eq!(c::utofu_query_vcq_id(handle, &mut id), 0);
            let (p, n) = (buf.as_mut_ptr().cast(), size_of_val(buf));
            assert_eq!(c::utofu_reg_mem(handle, p, n, 0, &mut stadd), 0);
        }
        EndPoint { handle, id, stadd }
    }

    pub fn close(self) {
        // SAFETY: used by this thread only.
        unsafe {
            assert_eq!(c::utofu_dereg_mem(self.handle, self.stadd, 0), 0);
            assert_eq!(c::utofu_free_vcq(self.handle), 0);
        }
    }

    /// Puts eight bytes; polls the TCQ when the queue is full.
    pub fn piggyback8(&self, to: u64, value: u64, stadd: u64, edata: u64, flags: c_ulong) {
        loop {
            // SAFETY: the target's buffer outlives the operation.
            let rc = unsafe {
                c::utofu_put_piggyback8(
                    self.handle,
                    to,
                    value,
                    stadd,
                    8,
                    edata,
                    flags,
                    std::ptr::null_mut(),
                )
            };
            match rc {
                UTOFU_ERR_BUSY => assert_eq!(self.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND)),
                rc => return assert_eq!(rc, 0, "{}", last_error()),
            }
        }
    }

    pub fn put(&self, to: u64, from: u64, at: u64, len: usize, edata: u64, flags: c_ulong) -> i32 {
        // SAFETY: the buffers outlive the operation.
        unsafe { c::utofu_put(self.handle, to, from, at, len, edata, flags, 7 as *mut c_void) }
    }

    pub fn get(&self, to: u64, into: u64, at: u64, len: usize, edata: u64, flags: c_ulong) -> i32 {
        // SAFETY: the buffers outlive the operation.
        unsafe { c::utofu_get(self.handle, to, into, at, len, edata, flags, 8 as *mut c_void) }
    }

    pub fn poll_tcq(&self) -> Result<usize, i32> {
        let mut cb = std::ptr::null_mut();
        // SAFETY: a valid address for the result.
        match unsafe { c::utofu_poll_tcq(self.handle, 0, &mut cb) } {
            0 => Ok(cb as usize),
            rc => Err(rc),
        }
    }

    /// Returns the return code and the notice.
    pub fn poll_mrq(&self) -> (i32, utofu_mrq_notice) {
        let mut notice = utofu_mrq_notice::default();
        // SAFETY: a valid address for the result.
        let rc = unsafe { c::utofu_poll_mrq(self.handle, 0, &mut notice) };
        (rc, notice)
    }

    pub fn wait_notice(&self) -> utofu_mrq_notice {
        loop {
            match self.poll_mrq() {
                (UTOFU_ERR_NOT_FOUND, _) => std::thread::yield_now(),
                (rc, notice) => {
                    assert_eq!(rc, 0, "{}", last_error());
                    return notice;
                }
            }
        }
    }
}

/// Index of the word in [`put_words`]'s buffer that stops it.
const STOP: usize = 24;

/// Puts from sources of any alignment in `buf`, which is registered at `ep`, to three words at `to`, until
/// [`read_words`] has seen enough changes.
pub fn put_words(ep: &EndPoint, id: u64, buf: &mut [u64], to: u64) {
    // The first eight words are all zero bits, the next eight all one bits.
    buf[..8].fill(0);
    buf[8..16].fill(u64::MAX);
    // SAFETY: the word is in the buffer; only the other rank writes it.
    let stop = unsafe { &*buf.as_ptr().add(STOP).cast::<AtomicU64>() };
    let mut round = 0;
    let start = std::time::Instant::now();
    while stop.load(Ordering::Acquire) == 0 && start.elapsed().as_secs() < 200 {
        let from = ep.stadd + round % 2 * 64 + round % 7;
        // 1, 1.5, 2, 2.5 and 3 words.
        let len = [8, 12, 16, 20, 24][round as usize % 5];
        assert_eq!(ep.put(id, from, to, len, 0, 0), 0, "{}", last_error());
        assert_eq!(ep.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
        round += 1;
        if round % 64 == 0 {
            std::thread::yield_now();
        }
    }
}

/// Reads words that [`put_words`] writes; `writer` is the VCQ id of the writing rank and the STADD of its buffer.
///
/// # Safety
/// There are three words at `words`, and only the writing rank writes them.
pub unsafe fn read_words(ep: &EndPoint, words: *const u64, writer: (u64, u64)) {
    const CHANGES: u32 = 500;
    // SAFETY: the caller's promise.
    let word = |n: usize| unsafe { (*words.add(n).cast::<AtomicU64>()).load(Ordering::Acquire) };
    let (mut changes, mut last, mut torn) = (0, 0, None);
    let start = std::time::Instant::now();
    while changes < CHANGES && torn.is_none() && start.elapsed().as_secs() < 120 {
        for _ in 0..1000 {
            let seen = [word(0), word(1)];
            changes += u32::from(seen[0] != last);
            last = seen[0];
            // A put of twelve bytes writes half of the second word.
            let halves = [u64::from(u32::MAX), !u64::from(u32::MAX)];
            let is_whole = |w: &u64| *w == 0 || *w == u64::MAX;
            if !is_whole(&seen[0]) || !(is_whole(&seen[1]) || halves.contains(&seen[1])) {
                torn = Some(seen);
            }
        }
        std::thread::yield_now();
    }
    ep.piggyback8(writer.0, 1, writer.1 + 8 * STOP as u64, 0, 0);
    assert_eq!(torn, None, "parts of two puts in one word");
    assert!(changes >= CHANGES, "only {changes} changes were seen in 120 s");
}

pub fn last_error() -> String {
    let mut text = [0u8; 1024];
    // SAFETY: room for 1024 bytes.
    unsafe { c::utofu_get_last_error(text.as_mut_ptr().cast_const().cast()) };
    let end = text.iter().position(|b| *b == 0).unwrap();
    String::from_utf8_lossy(&text[..end]).into_owned()
}

/// An allgather of all threads, which is also a barrier.
pub struct Exchange<T> {
    round: Mutex<Round<T>>,
    changed: Condvar,
}

struct Round<T> {
    number: usize,
    arrived: Vec<Option<T>>,
    /// The values of the last round.
    all: Vec<T>,
}

impl<T: Copy> Exchange<T> {
    pub fn new(n: usize) -> Self {
        let round = Round { number: 0, arrived: vec![None; n], all: Vec::new() };
        Exchange { round: Mutex::new(round), changed: Condvar::new() }
    }

    /// Returns the values of all ranks. If a rank has failed and does not call, the other ranks fail, too.
    pub fn gather(&self, rank: usize, value: T) -> Vec<T> {
        let mut round = self.round.lock().unwrap();
        let mine = round.number;
        round.arrived[rank] = Some(value);
        if round.arrived.iter().all(Option::is_some) {
            round.all = round.arrived.iter_mut().filter_map(Option::take).collect();
            round.number += 1;
            self.changed.notify_all();
        }
        // The next round cannot end before this rank takes part in it.
        let waits = |round: &mut Round<T>| round.number == mine;
        let (round, waited) = self.changed.wait_timeout_while(round, DEADLINE, waits).unwrap();
        assert!(!waited.timed_out(), "rank {rank} waits for one that does not come");
        round.all.clone()
    }
}

/// Longer than any rank computes between two rounds.
const DEADLINE: Duration = Duration::from_secs(300);
