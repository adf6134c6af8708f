//! Helpers of several test files: inputs, an independent reference, and a wire in memory.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::sync::Mutex;

pub mod ahead;
pub mod calls;
pub mod memory_wire;
pub mod mixed;
pub mod processes;
pub mod reference;
pub mod skew;

/// Does `work` for every item, four items at a time; meant for ranks that mostly wait.
pub fn four_at_a_time<T: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) + Sync,
) {
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().expect("`next` does not panic").next();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| std::iter::from_fn(next).for_each(&work));
        }
    });
}
