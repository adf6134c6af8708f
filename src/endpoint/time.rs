//! The time that waits use: that of the machine, or that of a wire with a clock of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hopbine_meet::print_remark;

use super::Clock;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Time(Option<Arc<dyn Clock>>);

impl Time {
    /// The time of `clock`, or of the machine if `clock` is `None`.
    pub(crate) fn of(clock: Option<Arc<dyn Clock>>) -> Self {
        Time(clock)
    }

    /// A shared handle to the wire's clock, if the wire has one.
    pub(crate) fn clock(&self) -> Option<Arc<dyn Clock>> {
        self.0.clone()
    }

    /// The current time.
    pub(crate) fn now(&self) -> Instant {
        self.0.as_ref().map_or_else(Instant::now, |clock| clock.now())
    }

    /// The wire's clock, if it has one.
    #[inline]
    pub(crate) fn of_wire(&self) -> Option<&dyn Clock> {
        self.0.as_deref()
    }

    /// Lets other threads run. With a clock of the wire, up to `longest` passes on it.
    pub(crate) fn yield_now(&self, longest: Duration) {
        match &self.0 {
            None => std::thread::yield_now(),
            Some(clock) => clock.pause(longest),
        }
    }

    /// Waits for `duration`.
    pub(crate) fn sleep(&self, duration: Duration) {
        let Some(clock) = &self.0 else { return std::thread::sleep(duration) };
        let end = clock.now() + duration;
        loop {
            let left = end.saturating_duration_since(clock.now());
            if left.is_zero() {
                return;
            }
            clock.pause(left);
        }
    }

    /// Prints or records a warning about a wait that exceeds the time limit.
    pub(crate) fn warn(&self, text: &str) {
        match &self.0 {
            None => print_remark(text),
            Some(clock) => clock.warn(text),
        }
    }
}
