//! Polling a VCQ: the notices and completions that may be seen.

use crate::limits::error::fatal;
use crate::limits::ids::VcqPlace;
use crate::mrq::{CAPACITY, Notice};
use crate::operations::post;
use crate::queues::vcq::{Receiver, Vcq};
use crate::sync::Ordering;
use crate::timing::model;
use std::ffi::c_int;

impl Receiver {
    /// The next notice that is due. `until` says when the processor has received a message that has
    /// come; None: at once.
    fn take_due(
        &mut self,
        now: impl Fn() -> u64,
        until: impl Fn(&Notice) -> Option<u64>,
    ) -> Option<Notice> {
        loop {
            let due = self.pending.first_entry().filter(|e| e.key().0 <= now())?;
            let mut n = due.remove();
            // A message takes the processor once: then only the time in its key counts.
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
    /// The next noticed completion: its code and cbdata.
    ///
    /// # Safety
    /// As [`Vcq::send`].
    #[inline]
    pub(crate) unsafe fn poll_tcq(&self) -> Option<(c_int, usize)> {
        if self.is_plain {
            // SAFETY: the caller's promise.
            return unsafe { self.send(|s| s.toq.poll(|| self.context.job.now(), || None)) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.poll_tcq_patiently() }
    }

    /// The same if operations are not over when their post returns: the poll may wait for other ranks.
    ///
    /// # Safety
    /// As [`Vcq::send`].
    #[cold]
    unsafe fn poll_tcq_patiently(&self) -> Option<(c_int, usize)> {
        // SAFETY: the caller's promise.
        let polled = unsafe {
            self.send(|s| {
                if self.is_session {
                    post::go_on(self, s);
                }
                s.toq.poll(|| self.context.job.now(), || self.late.as_ref()?.completion())
            })
        };
        self.context.job.polled(polled.is_some());
        polled
    }

    /// The next notice that may be seen, if there is one.
    ///
    /// # Safety
    /// As the C interface demands: without THREAD_SAFE no other thread polls this MRQ now.
    #[inline]
    pub(crate) unsafe fn poll_mrq(&self) -> Option<Notice> {
        let block = self.block();
        // Relaxed: it only ends the process.
        if block.overflowed.load(Ordering::Relaxed) != 0 {
            self.overflow();
        }
        // SAFETY: the caller's promise; the closure does not come back here.
        unsafe {
            self.receive(|r| {
                // Read before the queue: the notices of all operations posted by now are in it.
                let posted = match &self.late {
                    None => self.local_posted.load(Ordering::Acquire),
                    Some(late) => late.local_done.load(Ordering::Acquire),
                };
                let found = if self.is_plain {
                    r.reader.pop(&block.ring, &*self.context.job)
                } else {
                    match self.poll_patiently(r) {
                        None if !r.pending.is_empty() => return None,
                        due => due,
                    }
                };
                // Without a notice silent entries have been walked over as well. With jitter a later
                // one may have been passed before. Relaxed: nobody else writes it meanwhile.
                let seen = found.as_ref().map_or(posted, |n| n.order);
                if seen > self.local_seen.load(Ordering::Relaxed) {
                    self.local_seen.store(seen, Ordering::Relaxed);
                }
                found
            })
        }
    }

    /// The next notice that may be seen, if operations are not over when their post returns.
    #[cold]
    fn poll_patiently(&self, r: &mut Receiver) -> Option<Notice> {
        if self.is_session {
            // SAFETY: a session's sending side is locked; `go_on` does not come back here.
            unsafe { self.send(|sender| post::go_on(self, sender)) };
        }
        // In the late mode notices come late, but can be seen once they are there.
        if self.late.is_some() || !self.context.job.model.takes_time() {
            return r.reader.pop(&self.block().ring, &*self.context.job);
        }
        while let Some(n) = r.reader.pop(&self.block().ring, &*self.context.job) {
            r.arrivals += 1;
            r.pending.insert((n.ready_at, r.arrivals), n);
        }
        r.take_due(|| self.context.job.now(), |n| self.receiving(n))
    }

    /// When the processor has received a message that has come, with a latency model.
    #[cold]
    fn receiving(&self, n: &Notice) -> Option<u64> {
        // Local notices have an order.
        if n.order != 0 {
            return None;
        }
        let job = &*self.context.job;
        let sender = VcqPlace::of(n.vcq).ok()?.tni.coords;
        let cost = job.model.receiving(sender == job.coords_of(self.context.rank));
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
