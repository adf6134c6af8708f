//! How long it may take.

use std::str::FromStr;
use std::time::{Duration, Instant};

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub Duration);

impl Budget {
    /// Whether it is over, of what began then.
    pub fn is_over(self, start: Instant) -> bool {
        !self.has_room(start, Duration::ZERO)
    }

    /// Whether what takes so long is done before it is over, of what began then.
    pub fn has_room(self, start: Instant, more: Duration) -> bool {
        start.elapsed() + more < self.0
    }
}

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time; write a whole number and s, min or h, such as 90s or 10min")]
pub struct NotATime(String);

impl FromStr for Budget {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let unit: Option<u64> = match unit.trim() {
            "s" => Some(1),
            "min" => Some(60),
            "h" => Some(3600),
            _ => None,
        };
        let number = number.parse::<u64>().ok().filter(|&number| number > 0);
        let seconds = unit.zip(number).and_then(|(unit, number)| unit.checked_mul(number));
        let seconds = seconds.ok_or_else(|| NotATime(text.to_owned()))?;
        Ok(Budget(Duration::from_secs(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("90s", 90), ("10min", 600), ("2 h", 7200)] {
            assert_eq!(text.parse::<Budget>().unwrap().0, Duration::from_secs(seconds));
        }
        for text in
            ["", "10", "0s", "min", "1.5h", "-1s", "99999999999999999999s", "9999999999999999999h"]
        {
            let error = text.parse::<Budget>().unwrap_err().to_string();
            assert!(error.contains("such as 90s"), "{text}: {error}");
        }
    }
}
