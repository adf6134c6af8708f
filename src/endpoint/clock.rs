//! The clock of a wire whose time is not that of the machine.

use std::time::{Duration, Instant};

/// A wire's own time, which all waits for its messages use. The ranks of a simulated wire run one after the other,
/// and its time advances only while all of them wait.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The current time.
    fn now(&self) -> Instant;

    /// The time since time 0, on which all ranks agree.
    fn elapsed(&self) -> Duration;

    /// Lets other ranks run. Returns after an event of this rank, or after `longest`.
    fn pause(&self, longest: Duration);

    /// Records a rank's warning about a wait that exceeds the time limit.
    fn warn(&self, text: &str);
}
