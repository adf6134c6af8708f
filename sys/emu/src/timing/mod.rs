//! Durations of operations: the latency model and the links of the torus.

pub(crate) mod links;
pub(crate) mod model;

/// Keeps the calling processor busy for `ns` ns: the time of a driver's work within a call, which cannot be
/// overlapped.
pub(crate) fn busy_wait(ns: u64) {
    if ns == 0 {
        return;
    }
    let start = host_now();
    while host_now() - start < ns {
        std::hint::spin_loop();
    }
}

/// Returns the time in ns of the clock that all processes of the host share.
pub(crate) fn host_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
