//! The environment variables that hopbine reads.
//!
//! [`ALL`] is the table of the variables: name, values, default, reader, meaning. All code reads a variable through
//! its row, so that errors, `hopbine env` and `docs/environment.md` agree. A variable that is set to the empty string
//! counts as unset.

mod table;

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use hopbine_torus::Shape;
pub use table::*;

use crate::error::VariableError;

/// Function that looks up a variable; tests pass their own.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Largest `HOPBINE_TIMEOUT`: some thirty years, so that sums of times do not overflow.
pub const MAX_TIMEOUT_SECONDS: u64 = 1_000_000_000;

/// The timeout if `HOPBINE_TIMEOUT` is not set.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// An environment variable: a row of [`ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name in the environment.
    pub name: &'static str,
    /// Valid values.
    pub values: Values,
    /// Behaviour if the variable is not set, in words.
    pub default: &'static str,
    /// The part of hopbine that reads the variable.
    pub reader: Reader,
    /// Meaning, in one or two sentences.
    pub meaning: &'static str,
    /// A realistic value.
    pub example: &'static str,
}

/// Valid values of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One of these words.
    Words(&'static [&'static str]),
    /// `on`, `1`, `yes` or `true`; `off`, `0`, `no` or `false`.
    Switch,
    /// A switch, or the path of a file. The path contains a `.` or a `/`, so that a mistyped word is not taken for a
    /// path.
    SwitchOrPath,
    /// A switch, or this word.
    SwitchOr(&'static str),
    /// A whole number in this range, both ends included.
    Number(u64, u64),
    /// A number of seconds above 0, whole or not.
    Seconds,
    /// Text of the form that this string describes.
    Text(&'static str),
}

impl Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Values::Words([first @ .., last]) if !first.is_empty() => {
                write!(f, "{} or {last}", first.join(", "))
            }
            Values::Words(words) => f.write_str(&words.concat()),
            Values::Switch => f.write_str("on or off (1, yes, true; 0, no, false)"),
            Values::SwitchOrPath => {
                write!(f, "{}, or the path of a file with a `.` or a `/` in it", Values::Switch)
            }
            Values::SwitchOr(word) => write!(f, "{}, or {word}", Values::Switch),
            Values::Number(least, u64::MAX) => write!(f, "a whole number from {least}"),
            Values::Number(least, most) => write!(f, "a whole number from {least} to {most}"),
            Values::Seconds => {
                write!(f, "a number of seconds above 0, up to {MAX_TIMEOUT_SECONDS}")
            }
            Values::Text(form) => f.write_str(form),
        }
    }
}

/// Programs and parts of hopbine that read a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Every program that uses hopbine; its ranks may be processes or threads.
    Program,
    /// Ranks that are processes.
    Process,
    /// MPI programs: HB_ calls and `libhopbine_preload.so`.
    MpiProgram,
    /// The emulated Tofu device of ranks that are processes.
    EmulatedDevice,
}

impl Reader {
    /// All readers, in the order of the reference page.
    pub const ALL: [Reader; 4] =
        [Reader::Program, Reader::Process, Reader::MpiProgram, Reader::EmulatedDevice];
}

impl Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reader::Program => "every program",
            Reader::Process => "ranks that are processes",
            Reader::MpiProgram => "MPI programs: HB_ calls and libhopbine_preload.so",
            Reader::EmulatedDevice => "the emulated device of ranks that are processes",
        })
    }
}

impl Variable {
    /// Returns the variable's value.
    pub fn get(&self, get: Lookup<'_>) -> Option<String> {
        get(self.name)
    }

    /// Returns the error that the variable cannot be `value`.
    pub fn wrong(&self, value: impl Into<String>) -> VariableError {
        self.wrong_here(value, self.values.to_string())
    }

    /// Returns the error that the variable cannot be `value` because it must be as described by `wanted`.
    pub fn wrong_here(&self, value: impl Into<String>, wanted: impl Into<String>) -> VariableError {
        VariableError { name: self.name, value: Some(value.into()), wanted: wanted.into() }
    }

    /// Returns the error that the variable is not set, and must be as described by `wanted`.
    pub fn unset(&self, wanted: impl Into<String>) -> VariableError {
        VariableError { name: self.name, value: None, wanted: wanted.into() }
    }

    /// Returns the word of its row that the variable is set to.
    ///
    /// # Errors
    /// [`VariableError`] if the variable is set to anything else.
    pub fn word(&self, get: Lookup<'_>) -> Result<Option<&'static str>, VariableError> {
        self.get(get).map(|text| self.parse_word(&text)).transpose()
    }

    /// Returns the word of its row that equals `text`.
    ///
    /// # Errors
    /// [`VariableError`] if no word does.
    pub fn parse_word(&self, text: &str) -> Result<&'static str, VariableError> {
        let words = if let Values::Words(words) = self.values { words } else { &[] };
        let found = words.iter().find(|&&word| word == text.trim());
        found.copied().ok_or_else(|| self.wrong(text))
    }

    /// Returns whether the switch is on; `unset` if the variable is not set.
    ///
    /// # Errors
    /// [`VariableError`].
    pub fn switch(&self, get: Lookup<'_>, unset: bool) -> Result<bool, VariableError> {
        let Some(text) = self.get(get) else { return Ok(unset) };
        switch(&text).ok_or_else(|| self.wrong(text))
    }

    /// Returns whether the switch is on, and the path that the variable is set to instead of a word.
    ///
    /// # Errors
    /// [`VariableError`].
    pub fn switch_or_path(
        &self,
        get: Lookup<'_>,
        unset: bool,
    ) -> Result<(bool, Option<String>), VariableError> {
        match self.get(get) {
            Some(text) if switch(&text).is_none() && text.contains(['.', '/']) => {
                Ok((true, Some(text)))
            }
            _ => Ok((self.switch(get, unset)?, None)),
        }
    }

    /// Returns whether the switch is on, `unset` if the variable is not set, and `None` for the word of its row.
    ///
    /// # Errors
    /// [`VariableError`].
    pub fn switch_or_word(
        &self,
        get: Lookup<'_>,
        unset: bool,
    ) -> Result<Option<bool>, VariableError> {
        match (self.values, self.get(get)) {
            (Values::SwitchOr(word), Some(text)) if text.trim() == word => Ok(None),
            _ => self.switch(get, unset).map(Some),
        }
    }

    /// Returns the number that the variable is set to.
    ///
    /// # Errors
    /// [`VariableError`] if the value is not a number in its row's range.
    pub fn number<N>(&self, get: Lookup<'_>) -> Result<Option<N>, VariableError>
    where
        N: TryFrom<u64>,
    {
        let Values::Number(least, most) = self.values else {
            unreachable!("{} is no number", self.name)
        };
        let Some(number) = number_of(get, self.name, least..=most)? else { return Ok(None) };
        N::try_from(number).map(Some).map_err(|_| self.wrong(number.to_string()))
    }
}

/// Returns the meaning of a switch's word.
fn switch(text: &str) -> Option<bool> {
    match text.trim() {
        "on" | "1" | "yes" | "true" => Some(true),
        "off" | "0" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// Returns a variable of this process's environment, unless it is empty. Invalid UTF-8 is replaced, so that the code
/// that parses the value refuses it.
pub fn from_environment(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

/// Returns the job's number, for names of files: the batch system's, else this process's id.
pub fn job() -> String {
    let given = ["PJM_JOBID", "SLURM_JOB_ID", "PBS_JOBID"].into_iter().find_map(from_environment);
    given.unwrap_or_else(|| std::process::id().to_string())
}

/// Returns the whole number that a variable is set to, if it is set.
///
/// # Errors
/// [`VariableError`] if the value is not a number in `range`.
pub(crate) fn number_of<N: FromStr + PartialOrd + Display>(
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

/// Returns `HOPBINE_TIMEOUT`, the longest wait of a rank for other ranks, if it is set.
///
/// # Errors
/// [`VariableError`].
pub fn timeout(get: Lookup<'_>) -> Result<Option<Duration>, VariableError> {
    let Some(value) = TIMEOUT.get(get) else { return Ok(None) };
    let time = value.trim().parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    let longest = Duration::from_secs(MAX_TIMEOUT_SECONDS);
    let time = time.filter(|time| !time.is_zero() && *time <= longest);
    time.map(Some).ok_or_else(|| TIMEOUT.wrong(value))
}

/// Returns `HOPBINE_TORUS`, the shape of a job's nodes, if it is set.
///
/// # Errors
/// [`VariableError`] if it is not a shape of `n_nodes` nodes.
pub fn torus(get: Lookup<'_>, n_nodes: u32) -> Result<Option<Shape>, VariableError> {
    let Some(value) = TORUS.get(get) else { return Ok(None) };
    let wanted = match value.trim().parse::<Shape>() {
        Ok(shape) if shape.node_dim().is_none() && shape.n_ranks() == n_nodes => {
            return Ok(Some(shape));
        }
        Ok(shape) if shape.node_dim().is_none() => {
            format!("of {n_nodes} nodes (ranks / {}), not {}", RANKS_PER_NODE.name, shape.n_ranks())
        }
        _ => TORUS.values.to_string(),
    };
    Err(TORUS.wrong_here(value, wanted))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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

    #[test]
    fn a_torus_has_as_many_nodes_as_the_job() {
        let with = |text: &str, n_nodes| torus(&|_| Some(text.to_owned()), n_nodes);
        assert_eq!(with(" 4mx2", 8), Ok(Some("4mx2".parse().unwrap())));
        let refused = |text: &str| with(text, 4).unwrap_err().to_string();
        assert_eq!(
            refused("3x2"),
            "HOPBINE_TORUS=3x2 is not valid; it must be of 4 nodes (ranks / HOPBINE_RANKS_PER_NODE), not 6"
        );
        for text in ["2x+", "2x2+2", "0x4", "4294967295x4294967295"] {
            assert!(refused(text).ends_with(&TORUS.values.to_string()), "{text}");
        }
        assert_eq!(torus(&|_| None, 4), Ok(None));
    }

    #[test]
    fn words_and_switches_are_read_or_refused() {
        let set = |text: &'static str| move |_: &str| Some(text.to_owned());
        assert_eq!(DRIVE.word(&set("inline")), Ok(Some("inline")));
        let error = DRIVE.word(&set("fast")).unwrap_err().to_string();
        assert_eq!(
            error,
            "HOPBINE_DRIVE=fast is not valid; it must be auto, workers, worker or inline"
        );
        assert_eq!(SHM.switch(&set("0"), true), Ok(false));
        assert_eq!(SHM.switch(&|_| None, true), Ok(true));
        assert_eq!(SHM.switch(&set("yes"), false), Ok(true));
        assert!(SHM.switch(&set("maybe"), true).is_err());
        let path = |text: &str| Ok((true, Some(text.to_owned())));
        assert_eq!(REPORT.switch_or_path(&set("report.%j"), false), path("report.%j"));
        assert_eq!(REPORT.switch_or_path(&set("out/report"), false), path("out/report"));
        assert_eq!(REPORT.switch_or_path(&set("true"), false), Ok((true, None)));
        assert_eq!(REPORT.switch_or_path(&|_| None, false), Ok((false, None)));
        assert!(REPORT.switch_or_path(&set("onn"), false).is_err());
        for (text, value) in [("trust", None), ("off", Some(false))] {
            assert_eq!(REG_CACHE.switch_or_word(&set(text), true), Ok(value));
        }
        assert_eq!(REG_CACHE.switch_or_word(&|_| None, true), Ok(Some(true)));
        assert!(REG_CACHE.switch_or_word(&set("trusted"), true).is_err());
        assert_eq!(EMU_BUSY.number::<u8>(&set("255")), Ok(Some(255)));
        assert!(EMU_BUSY.number::<u8>(&set("256")).is_err());
    }

    #[test]
    fn every_variable_has_one_row_whose_example_is_valid() {
        let names: HashSet<_> = ALL.iter().map(|variable| variable.name).collect();
        assert_eq!(names.len(), ALL.len());
        for variable in ALL {
            let get = |_: &str| Some(variable.example.to_owned());
            let is_valid = match variable.values {
                Values::Words(_) => variable.word(&get).is_ok(),
                Values::Switch => variable.switch(&get, true).is_ok(),
                Values::SwitchOrPath => variable.switch_or_path(&get, true).is_ok(),
                Values::SwitchOr(_) => variable.switch_or_word(&get, true) == Ok(None),
                Values::Number(..) => variable.number::<u64>(&get).is_ok(),
                Values::Seconds => timeout(&get).is_ok(),
                Values::Text(_) => !variable.example.is_empty(),
            };
            assert!(is_valid, "{}", variable.name);
            assert!(variable.name.starts_with("HOPBINE_") && variable.meaning.ends_with('.'));
        }
    }

    proptest! {
        /// For every value of a variable the answer is a value or an error that names the variable.
        #[test]
        fn no_setting_does_harm(text in "[0-9]{0,21}|-?[0-9.]{0,9}e?[0-9]{0,4}|\\PC{0,8}") {
            let get = |_: &str| Some(text.clone());
            match timeout(&get) {
                Ok(time) => {
                    let time = time.expect("it is set");
                    prop_assert!(!time.is_zero() && time.as_secs() <= MAX_TIMEOUT_SECONDS);
                }
                Err(error) => prop_assert!(error.to_string().contains("it must be"), "{}", error),
            }
            match EMU_BUSY.number::<u8>(&get) {
                Ok(number) => prop_assert!(number.is_some()),
                Err(error) => prop_assert!(error.to_string().contains("from 0 to 255"), "{}", error),
            }
        }
    }
}
