//! Variables of the environment: how they are looked up, and numbers in them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::error::VariableError;

/// Looks a variable up; a function of its own in tests.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Variable with the seconds that a rank waits for others.
pub const ENV_TIMEOUT: &str = "HOPBINE_TIMEOUT";
/// Variable with the ranks on each node.
pub const ENV_RANKS_PER_NODE: &str = "HOPBINE_RANKS_PER_NODE";

/// Some thirty years, so that sums of times do not overflow.
const LONGEST_SECONDS: u64 = 1_000_000_000;

/// A variable of this process's environment, unless it is empty. What is no text is shown as well as
/// can be, so that whoever reads a setting refuses it.
pub fn from_environment(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

/// The whole number that a variable holds, if it is set.
///
/// # Errors
/// [`VariableError`] if it is no number in `range`.
pub fn number_of<N: FromStr + PartialOrd + Display>(
    get: Lookup<'_>,
    name: &'static str,
    range: RangeInclusive<N>,
) -> Result<Option<N>, VariableError> {
    let Some(value) = get(name) else { return Ok(None) };
    match value.trim().parse() {
        Ok(number) if range.contains(&number) => Ok(Some(number)),
        _ => {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            Err(VariableError { name, value: Some(value), wanted })
        }
    }
}

/// How long `HOPBINE_TIMEOUT` lets a rank wait for others, if it is set.
///
/// # Errors
/// [`VariableError`].
pub fn timeout(get: Lookup<'_>) -> Result<Option<Duration>, VariableError> {
    let Some(value) = get(ENV_TIMEOUT) else { return Ok(None) };
    let time = value.trim().parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    let longest = Duration::from_secs(LONGEST_SECONDS);
    let time = time.filter(|time| !time.is_zero() && *time <= longest);
    time.map(Some).ok_or_else(|| VariableError {
        name: ENV_TIMEOUT,
        value: Some(value),
        wanted: format!("a number of seconds above 0, up to {LONGEST_SECONDS}"),
    })
}

/// The ranks on each node that `HOPBINE_RANKS_PER_NODE` says, if it is set.
///
/// # Errors
/// [`VariableError`].
pub fn ranks_per_node(get: Lookup<'_>) -> Result<Option<u32>, VariableError> {
    number_of(get, ENV_RANKS_PER_NODE, 1..=u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_or_refused() {
        let with = |text: &str| timeout(&|_| Some(text.to_owned()));
        assert_eq!(with("0.5").unwrap(), Some(Duration::from_millis(500)));
        for text in ["-1", "0", "1e10", "soon"] {
            let error = with(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("HOPBINE_TIMEOUT={text}")), "{error}");
        }
        assert_eq!(timeout(&|_| None), Ok(None));
    }

    proptest! {
        /// Whatever a variable holds, the answer is a value or an error that names it.
        #[test]
        fn no_setting_does_harm(text in "[0-9]{0,21}|-?[0-9.]{0,9}e?[0-9]{0,4}|\\PC{0,8}") {
            let get = |_: &str| Some(text.clone());
            match timeout(&get) {
                Ok(time) => {
                    let time = time.expect("it is set");
                    prop_assert!(!time.is_zero() && time.as_secs() <= LONGEST_SECONDS);
                }
                Err(error) => prop_assert!(error.to_string().contains("it must be"), "{}", error),
            }
            match number_of(&get, "HOPBINE_PORTS", 1..=9u32) {
                Ok(number) => prop_assert!(number.is_some_and(|n| (1..=9).contains(&n))),
                Err(error) => prop_assert!(error.to_string().contains("from 1 to 9"), "{}", error),
            }
        }
    }
}
