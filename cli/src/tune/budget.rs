//! Time limits.

use std::str::FromStr;
use std::time::{Duration, Instant};

/// A time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub Duration);

impl Budget {
    /// Whether the time since `start` exceeds the limit.
    pub fn is_over(self, start: Instant) -> bool {
        !self.has_room(start, Duration::ZERO)
    }

    /// Whether work that takes `more` ends within the limit, if the limit began at `start`.
    pub fn has_room(self, start: Instant, more: Duration) -> bool {
        start.elapsed() + more < self.0
    }
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time above 0; write a number and a unit, such as 90s, 10min or 1h 30min")]
pub struct NotATime(String);

impl FromStr for Budget {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        match humantime::parse_duration(text) {
            Ok(time) if !time.is_zero() => Ok(Budget(time)),
            _ => Err(NotATime(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("90s", 90), ("10min", 600), ("2 h", 7200), ("1h 30min", 5400)] {
            assert_eq!(text.parse::<Budget>().unwrap().0, Duration::from_secs(seconds));
        }
        for text in
            ["", "10", "0s", "min", "1.5", "-1s", "99999999999999999999s", "9999999999999999999h"]
        {
            let error = text.parse::<Budget>().unwrap_err().to_string();
            assert!(error.contains("such as 90s"), "{text}: {error}");
        }
    }
}
