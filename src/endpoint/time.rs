//! The time that waits go by: the machine's, or that of a wire that has its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Clock;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Time(Option<Arc<dyn Clock>>);

impl Time {
    /// `None` stands for the machine's time.
    pub(crate) fn of(clock: Option<Arc<dyn Clock>>) -> Self {
        Time(clock)
    }

    /// The wire's own clock, shared.
    pub(crate) fn clock(&self) -> Option<Arc<dyn Clock>> {
        self.0.clone()
    }

    /// The time.
    pub(crate) fn now(&self) -> Instant {
        self.0.as_ref().map_or_else(Instant::now, |clock| clock.now())
    }

    /// The wire's own clock, if it has one.
    #[inline]
    pub(crate) fn of_wire(&self) -> Option<&dyn Clock> {
        self.0.as_deref()
    }

    /// Lets other threads run. On a wire's own clock up to `longest` passes.
    pub(crate) fn yield_now(&self, longest: Duration) {
        match &self.0 {
            None => std::thread::yield_now(),
            Some(clock) => clock.pause(longest),
        }
    }

    /// Lets so much time pass.
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

    /// Says that a wait has become too long.
    pub(crate) fn warn(&self, text: &str) {
        match &self.0 {
            None => eprintln!("{text}"),
            Some(clock) => clock.warn(text),
        }
    }
}
