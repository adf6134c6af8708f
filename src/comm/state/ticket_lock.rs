//! A ticket lock: threads take numbers, and act one after the other in the order of the numbers.

use std::sync::atomic::{AtomicU32, Ordering};

/// See the module documentation.
#[derive(Default)]
pub(crate) struct TicketLock {
    /// The number that is taken next. Numbers wrap round.
    next: AtomicU32,
    /// The number whose turn it is.
    now_serving: AtomicU32,
}

/// Numbers that a thread has taken. Dropping it passes the turn on to the next number.
pub(crate) struct Ticket<'t> {
    lock: &'t TicketLock,
    first: u32,
    n: u32,
}

impl TicketLock {
    /// The number that is taken next.
    pub(crate) fn next(&self) -> u32 {
        // Relaxed: a plain counter.
        self.next.load(Ordering::Relaxed)
    }

    /// Takes the next `n` numbers, and waits until all numbers taken before have been dropped.
    #[inline]
    pub(crate) fn acquire(&self, n: u32) -> Ticket<'_> {
        let ticket = self.take(n);
        ticket.acquire();
        ticket
    }

    #[inline]
    fn take(&self, n: u32) -> Ticket<'_> {
        // Relaxed: as above.
        Ticket { lock: self, first: self.next.fetch_add(n, Ordering::Relaxed), n }
    }
}

impl Ticket<'_> {
    /// The first of the numbers.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    #[inline]
    fn has_come(&self) -> bool {
        // Acquire: pairs with the Release in `drop`, so that this ticket sees what earlier ones have stored.
        self.lock.now_serving.load(Ordering::Acquire) == self.first
    }

    #[inline]
    fn acquire(&self) {
        while !self.has_come() {
            // A turn is short, unless its thread is not scheduled.
            std::thread::yield_now();
        }
    }
}

impl Drop for Ticket<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: see `has_come`.
        self.lock.now_serving.store(self.first.wrapping_add(self.n), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_the_order_of_the_numbers() {
        for start in [0, u32::MAX - 1] {
            let lock = TicketLock { next: start.into(), now_serving: start.into() };
            let [one, two, three] = [1, 3, 1].map(|n| lock.take(n));
            let has_come = [&one, &two, &three].map(Ticket::has_come);
            assert_eq!(has_come, [true, false, false]);
            assert_eq!(two.first(), start.wrapping_add(1));
            drop(one);
            assert!(two.has_come() && !three.has_come());
            drop(two);
            assert!(three.has_come());
            assert_eq!(
                (three.first(), lock.next()),
                (start.wrapping_add(4), start.wrapping_add(5))
            );
        }
    }

    /// Turns exclude each other, and each sees the stores of the one before.
    #[test]
    fn threads_act_one_after_the_other() {
        let (lock, done) = (TicketLock::default(), AtomicU32::new(0));
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..200 {
                        let ticket = lock.acquire(1);
                        // Relaxed: the turns order it.
                        assert_eq!(done.load(Ordering::Relaxed), ticket.first());
                        std::thread::yield_now();
                        done.store(ticket.first() + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 800);
    }
}
