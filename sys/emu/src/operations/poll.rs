//! Polling a VCQ: the notices and completions that are visible by now.

use crate::limits::error::fatal;
use crate::limits::ids::VcqPlace;
use crate::mrq::{CAPACITY, MrqNotice};
use crate::operations::post;
use crate::queues::vcq::{Receiver, Vcq};
use crate::sync::Ordering;
use crate::timing::model;
use std::ffi::c_int;

impl Receiver {
    /// Returns the next notice that is due. `until` returns the time at which the processor has finished receiving a
    /// message that has arrived; `None` if receiving takes no time.
    fn take_due(
        &mut self,
        now: impl Fn() -> u64,
        until: impl Fn(&MrqNotice) -> Option<u64>,
    ) -> Option<MrqNotice> {
        loop {
            let due = self.pending.first_entry().filter(|e| e.key().0 <= now())?;
            let mut n = due.remove();
            // A message occupies the processor once: from then on only the time in its key counts.
            let Some(end) = (if n.ready_at == 0 { None } else { until(&n) }) else {
                return Some(n);
            };
            n.ready_at = 0;
            self.arrivals += 1;
            self.pending.insert((end, self.arrivals), n);
        }
    }
}

impl Vcq {
    /// Returns the code and the cbdata of the next completion that was requested.
    ///
    /// # Safety
    /// As [`Vcq::send`].
    #[inline]
    pub(crate) unsafe fn poll_tcq(&self) -> Option<(c_int, usize)> {
        if self.is_immediate {
            // SAFETY: the caller's promise.
            return unsafe { self.send(|s| s.toq.poll(|| self.context.job.now(), || None)) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.poll_tcq_slow() }
    }

    /// As [`Vcq::poll_tcq`], for VCQs whose operations are not over when their posts return: the poll may wait for
    /// other ranks.
    ///
    /// # Safety
    /// As [`Vcq::send`].
    #[cold]
    unsafe fn poll_tcq_slow(&self) -> Option<(c_int, usize)> {
        // SAFETY: the caller's promise.
        let polled = unsafe {
            self.send(|s| {
                if self.is_session {
                    post::start_waiting(self, s);
                }
                s.toq.poll(|| self.context.job.now(), || self.late.as_ref()?.completion())
            })
        };
        self.context.job.count_poll(polled.is_some());
        polled
    }

    /// Returns the next notice that is visible, if there is one.
    ///
    /// # Safety
    /// As the C interface demands: without THREAD_SAFE no other thread polls this MRQ now.
    #[inline]
    pub(crate) unsafe fn poll_mrq(&self) -> Option<MrqNotice> {
        let block = self.block();
        // Relaxed: the flag only ends the process.
        if block.overflowed.load(Ordering::Relaxed) != 0 {
            self.overflow();
        }
        // SAFETY: the caller's promise; the closure does not lead back to this function.
        unsafe {
            self.receive(|r| {
                // Read before the queue: the queue contains the notices of all operations posted by now.
                let posted = match &self.late {
                    None => self.local_posted.load(Ordering::Acquire),
                    Some(late) => late.local_done.load(Ordering::Acquire),
                };
                let found = if self.is_immediate {
                    r.reader.pop(&block.ring, &*self.context.job)
                } else {
                    match self.poll_mrq_slow(r) {
                        None if !r.pending.is_empty() => return None,
                        due => due,
                    }
                };
                // Without a notice in the queue, the poll has also passed all entries that have no notice. With
                // jitter a later entry may have been passed before. Relaxed: only this poller writes the counter.
                let seen = found.as_ref().map_or(posted, |n| n.order);
                if seen > self.local_seen.load(Ordering::Relaxed) {
                    self.local_seen.store(seen, Ordering::Relaxed);
                }
                found
            })
        }
    }

    /// As [`Vcq::poll_mrq`], for VCQs whose operations are not over when their posts return.
    #[cold]
    fn poll_mrq_slow(&self, r: &mut Receiver) -> Option<MrqNotice> {
        if self.is_session {
            // SAFETY: a session's sending side is locked; `start_waiting` does not lead back to this function.
            unsafe { self.send(|sender| post::start_waiting(self, sender)) };
        }
        // In the late mode notices enter the queue late, but are visible as soon as they are in it.
        if self.late.is_some() || !self.context.job.model.has_latency() {
            return r.reader.pop(&self.block().ring, &*self.context.job);
        }
        while let Some(n) = r.reader.pop(&self.block().ring, &*self.context.job) {
            r.arrivals += 1;
            r.pending.insert((n.ready_at, r.arrivals), n);
        }
        r.take_due(|| self.context.job.now(), |n| self.receive_end(n))
    }

    /// Latency model: returns the time in ns at which the processor has finished receiving a message that has
    /// arrived.
    #[cold]
    fn receive_end(&self, n: &MrqNotice) -> Option<u64> {
        // Local notices have an order other than 0.
        if n.order != 0 {
            return None;
        }
        let job = &*self.context.job;
        let sender = VcqPlace::of(n.vcq).ok()?.tni.coords;
        let cost = job.model.receive_overhead(sender == job.coords_of(self.context.rank));
        (cost > 0).then(|| model::occupy(&self.busy_until, n.ready_at, cost))
    }

    /// Ends the process with a message, as the real device does.
    #[cold]
    fn overflow(&self) -> ! {
        let VcqPlace { tni, cq, extra } = self.place;
        let tni = tni.number;
        fatal(&format!(
            "MRQ overflow: rank {}, VCQ at TNI {tni} CQ {cq} extra value {extra}, had {CAPACITY} \
             unread notices, or the job has no memory for more; poll more often",
            self.context.rank
        ));
    }
}
