//! The clock of a wire that does not go by the machine's time.

use std::time::{Duration, Instant};

/// A wire's own time, by which everything that waits for its messages goes: a simulated wire's ranks
/// run one after the other, and its time passes only while all of them wait.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time.
    fn now(&self) -> Instant;

    /// The time since time 0, which is the same for all ranks.
    fn elapsed(&self) -> Duration;

    /// Lets other ranks run. Returns when something has happened to this rank, after `longest` at the
    /// latest.
    fn pause(&self, longest: Duration);

    /// Takes note of what a rank says of a wait that has become too long.
    fn warn(&self, text: &str);
}
