//! The latency model: how long operations take.
//!
//! It is off by default: an operation is over when its post returns (but for the late mode,
//! [`crate::late`]). With a model the bytes still move at the post, and no poll shows a notice before
//! its time: the completion in the TCQ when the TNI has sent the bytes, the remote notice a delay and
//! the hops later, the local notice when the answer has come back. A program that waits for notices
//! meets the latencies; one that watches memory does not. Barrier gates are not delayed.
//!
//! Without jitter, operations on one target are seen in the order in which they were posted. With
//! jitter only those with STRONG_ORDER keep behind the earlier ones, which is all that hardware
//! promises: a program that leans on more fails.

use crate::copy::Watched;
use crate::sync::{AtomicU64, Ordering};

/// Delays of one-sided communication. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Delay of every operation from leaving the TNI to arriving, in ns (`HOPBINE_EMU_PUT_NS`).
    pub put_ns: u64,
    /// More delay for every hop, in ns (`HOPBINE_EMU_HOP_NS`).
    pub hop_ns: u64,
    /// More delay for every operation, random up to this many ns (`HOPBINE_EMU_JITTER_NS`).
    pub jitter_ns: u64,
    /// What one TNI sends, in 10^6 bytes per second (`HOPBINE_EMU_TNI_MBPS`); 0: no limit.
    pub tni_mbps: u64,
    /// The late mode, with this seed (`HOPBINE_EMU_LATE`): a thread moves the bytes, just before
    /// their notice can be seen; the source of a put is read just before its completion. Operations
    /// without STRONG_ORDER overtake each other.
    pub late: Option<u64>,
    /// Whether misuse ends the process with a message (`HOPBINE_EMU_CHECKED`): a CQ that threads
    /// share without THREAD_SAFE; in the late mode also puts that overlap, sources that change
    /// before they are read, and memory that is deregistered while it is needed.
    pub checked: bool,
    /// The end of a put that the ranks watch without a notice (`HOPBINE_EMU_WATCHED`).
    pub watched: Watched,
}

/// When the parts of an operation may be seen, in ns of [`now`]; 0: at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) sent: u64,
    pub(crate) remote: u64,
    pub(crate) local: u64,
}

impl Model {
    /// Whether there are latencies.
    pub(crate) fn takes_time(&self) -> bool {
        (self.put_ns | self.hop_ns | self.jitter_ns | self.tni_mbps) != 0
    }

    /// Times of one operation among others of a sender. `earlier` are the latest times of those
    /// that it posted before to the same target, and become those of all.
    pub(crate) fn queue(
        &self,
        mut times: Times,
        earlier: &mut Times,
        strong: bool,
        random: &mut Random,
    ) -> Times {
        if self.jitter_ns > 0 {
            let jitter = random.below(self.jitter_ns.saturating_add(1));
            times.remote += jitter;
            times.local += jitter;
        }
        if strong || self.jitter_ns == 0 {
            times.remote = times.remote.max(earlier.remote);
            times.local = times.local.max(earlier.local);
        }
        earlier.remote = earlier.remote.max(times.remote);
        earlier.local = earlier.local.max(times.local);
        times
    }

    fn wire(&self, bytes: u64) -> u64 {
        (bytes * 1000).checked_div(self.tni_mbps).unwrap_or(0)
    }

    /// Times of a put or an atomic operation whose sender's TNI is free from `busy_until`.
    pub(crate) fn put(&self, bytes: u64, hops: u64, busy_until: &AtomicU64) -> Times {
        let way = self.put_ns + hops * self.hop_ns;
        let sent = occupy(busy_until, now(), self.wire(bytes));
        Times { sent, remote: sent + way, local: sent + way + hops * self.hop_ns }
    }

    /// Times of a get; `busy_until` is that of the TNI which has the data.
    pub(crate) fn get(&self, bytes: u64, hops: u64, busy_until: &AtomicU64) -> Times {
        let way = self.put_ns + hops * self.hop_ns;
        let sent = now();
        let remote = occupy(busy_until, sent + way, self.wire(bytes));
        Times { sent, remote, local: remote + way }
    }
}

/// Random numbers by xorshift: the delays need no better ones.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A delay of the late mode in ns: mostly that of a few messages, now and then that of a rank
    /// that was kept from its processor.
    pub(crate) fn late(&mut self) -> u64 {
        let longest = if self.below(16) == 0 { 400_000 } else { 10_000 };
        self.below(longest)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Occupies a link for a while, from when it is free; returns the end.
fn occupy(busy_until: &AtomicU64, from: u64, ns: u64) -> u64 {
    let mut busy = busy_until.load(Ordering::Relaxed);
    loop {
        let end = busy.max(from) + ns;
        // Relaxed: only the number matters.
        match busy_until.compare_exchange_weak(busy, end, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return end,
            Err(b) => busy = b,
        }
    }
}

/// The clock that all processes of the host share, in ns.
pub(crate) fn now() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: t is a valid place for the result; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_sends_one_thing_after_the_other() {
        let model = Model { put_ns: 500, hop_ns: 100, tni_mbps: 1000, ..Model::default() };
        let busy = AtomicU64::new(0);
        let first = model.put(1_000_000, 2, &busy);
        let second = model.put(1_000_000, 2, &busy);
        assert_eq!(first.remote - first.sent, 700);
        assert_eq!(first.local - first.remote, 200);
        assert_eq!(second.sent - first.sent, 1_000_000, "1 MB at 1000 MB/s takes 1 ms");
    }

    #[test]
    fn without_a_limit_only_the_way_takes_time() {
        let model = Model { put_ns: 10, ..Model::default() };
        let busy = AtomicU64::new(0);
        let t = model.get(1 << 20, 3, &busy);
        assert_eq!((t.remote - t.sent, t.local - t.sent), (10, 20));
        assert!(!Model::default().takes_time() && model.takes_time());
    }
}
