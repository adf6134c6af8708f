//! Settings, from code or from the environment ([`hopbine_meet::variables`]).

use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use hopbine_meet::Place;
pub(super) use hopbine_meet::variables::DEFAULT_TIMEOUT;
use hopbine_meet::variables::{
    ALGORITHM, BACKEND, CORES, DRIVE, GATE_SUM, Lookup, ON_TIMEOUT, TRACE, TRACE_RECORDS, TUNING,
    UNEXPECTED_BYTES, from_environment, timeout,
};
use hopbine_torus::choose::Wire;
use hopbine_torus::geometry::{RankMap, Shape};
/// Delays of the emulated wire.
#[cfg(feature = "emu")]
pub use utofu_emu::Model as Latency;

use crate::Rank;
use crate::comm::choice::preferred::Preferred;
use crate::comm::choice::tuning::Tuning;
use crate::endpoint::unexpected::DEFAULT_LIMIT;
pub use crate::engine::OnTimeout;
use crate::error::Error;
use crate::timeline::TraceConfig;

/// The longest decision table that is read, bytes.
const LONGEST_TABLE: u64 = 1 << 24;
/// Cores that fit into the system's affinity masks.
const MOST_CORES: usize = libc::CPU_SETSIZE as usize;

/// Which threads drive the ports of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Drive {
    /// A worker thread per port: operations progress while the caller computes.
    Workers,
    /// One worker thread for all ports: operations progress while the caller computes, and use one core.
    Worker,
    /// The caller, whenever it waits or tests.
    Inline,
    /// Workers if the program's threads leave a core for each of them, one worker if they leave at least one core,
    /// else inline.
    #[default]
    Auto,
}

impl Drive {
    /// Its value in `HOPBINE_DRIVE`.
    pub fn name(self) -> &'static str {
        match self {
            Drive::Workers => "workers",
            Drive::Worker => "worker",
            Drive::Inline => "inline",
            Drive::Auto => "auto",
        }
    }
}

impl FromStr for Drive {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Ok(match DRIVE.parse_word(text)? {
            "workers" => Drive::Workers,
            "worker" => Drive::Worker,
            "inline" => Drive::Inline,
            _ => Drive::Auto,
        })
    }
}

/// Configuration of a torus whose ranks are threads of this process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmulationConfig {
    /// The torus.
    pub shape: Shape,
    /// The wire: the emulated device, or the memory of this process.
    pub wire: Wire,
    /// Which rank is on which node.
    pub map: RankMap,
    /// Ports per rank; by default two per dimension of the shape, at most 6.
    pub ports: Option<u32>,
    /// Which threads drive the ports.
    pub drive: Drive,
    /// The longest message in bytes for calls that do not set it; by default it depends on the length of the data.
    pub segment_bytes: Option<u64>,
    /// The decision table of calls that name no algorithm; by default [`table`](EmulationConfig::table).
    pub tuning: Option<Tuning>,
    /// The algorithms that the user prefers to the library's choice, for calls that do not name one.
    pub preferred: Preferred,
    /// Whether sums of floats may be rounded as barrier gates do (`HOPBINE_GATE_SUM`).
    pub gate_sum: bool,
    /// Time without progress after which a wait is too long.
    pub timeout: Duration,
    /// What happens to a wait that is too long.
    pub on_timeout: OnTimeout,
    /// Bytes of unexpected short messages that a port keeps before it makes their senders wait
    /// (`HOPBINE_UNEXPECTED_BYTES`).
    pub unexpected_bytes: usize,
    /// Cores for the workers, rank by rank and port by port, used again from the start if there are more workers. If
    /// empty, workers are spread over the cores if there are enough of them, and not pinned otherwise.
    pub cores: Vec<usize>,
    /// Whether registrations of users' memory are cached. Off by default: registration costs next to nothing on the
    /// emulated device, while a cached registration makes every unmapping of its memory wait until the cache is
    /// notified.
    pub reg_cache: bool,
    /// The ranks' timelines, if they are to be recorded (`HOPBINE_TRACE`).
    pub trace: Option<TraceConfig>,
    /// Delays of the emulated wire; none by default. They are for tests that depend on timing, and show the shapes
    /// of curves: they delay notices, not data.
    #[cfg(feature = "emu")]
    pub latency: Latency,
}

impl EmulationConfig {
    /// A torus with defaults for everything else.
    pub fn new(shape: Shape) -> Self {
        EmulationConfig {
            shape,
            wire: Wire::Network,
            map: RankMap::default(),
            ports: None,
            drive: Drive::Auto,
            segment_bytes: None,
            tuning: None,
            preferred: Preferred::default(),
            gate_sum: false,
            timeout: DEFAULT_TIMEOUT,
            on_timeout: OnTimeout::Warn,
            unexpected_bytes: DEFAULT_LIMIT,
            cores: Vec::new(),
            reg_cache: false,
            trace: None,
            #[cfg(feature = "emu")]
            latency: Latency::default(),
        }
    }

    /// Applies `set` to the configuration.
    #[must_use]
    pub fn with(mut self, set: impl FnOnce(&mut Self)) -> Self {
        set(&mut self);
        self
    }

    /// The built-in decision table of the wire; for the emulated device that of Tofu-D, which it emulates.
    pub fn table(&self) -> &'static Tuning {
        match self.wire {
            Wire::Network => Tuning::tofu_d(),
            Wire::Memory => Tuning::built_in(Wire::Memory),
        }
    }

    /// As [`new`](EmulationConfig::new), with the environment's settings in place of defaults.
    ///
    /// # Errors
    /// [`Error::Setting`] names the variable and what it can be.
    pub fn from_env(shape: Shape) -> Result<Self, Error> {
        let mut config = EmulationConfig::new(shape);
        let get = from_environment;
        config.wire = match BACKEND.word(&get)? {
            None | Some("auto" | "emu") => Wire::Network,
            Some("shm") => Wire::Memory,
            Some(word) => {
                let wanted = "emu or shm, for ranks that are threads";
                return Err(BACKEND.wrong_here(word, wanted).into());
            }
        };
        config.drive = drive(&get)?;
        if let Some(timeout) = timeout(&get)? {
            config.timeout = timeout;
        }
        config.on_timeout = on_timeout(&get)?;
        config.unexpected_bytes = unexpected_bytes(&get)?;
        config.tuning = tuning(&get)?;
        config.preferred = preferred(&get)?;
        config.gate_sum = gate_sum(&get)?;
        config.cores = cores(&get)?;
        config.trace = trace(&get)?;
        Ok(config)
    }
}

/// The drive that the environment requests.
pub(super) fn drive(get: Lookup<'_>) -> Result<Drive, Error> {
    DRIVE.get(get).map_or(Ok(Drive::Auto), |text| text.parse())
}

/// The decision table that the environment names.
///
/// # Errors
/// [`Error::Setting`] if the file cannot be read, [`Error::Tuning`] if it is no table.
pub(super) fn tuning(get: Lookup<'_>) -> Result<Option<Tuning>, Error> {
    let Some(path) = TUNING.get(get) else { return Ok(None) };
    if let Some(built_in) = Tuning::named(&path) {
        return Ok(Some(built_in.clone()));
    }
    let text = read_text(&path, LONGEST_TABLE).map_err(|error| {
        TUNING.wrong_here(&path, format!("{} that can be read ({error})", TUNING.values))
    })?;
    let wrong = |source| {
        let rank = Place::find(get).ok().filter(|place| place.size > 1);
        let rank = rank.map(|place| place.rank as Rank);
        Error::Tuning { rank, table: path.clone(), source: Box::new(source) }
    };
    text.parse().map(Some).map_err(wrong)
}

/// The table `wanted`, if it is for the wire of `built_in`; `built_in` if none is wanted.
///
/// # Errors
/// [`Error::Setting`].
pub(super) fn tuning_for(wanted: Option<&Tuning>, built_in: &Tuning) -> Result<Tuning, Error> {
    let wire = built_in.table().wire();
    let wanted = wanted.unwrap_or(built_in);
    wanted.for_wire(wire).map_err(|other| Error::Setting {
        setting: TUNING.name,
        found: format!("{}, a table for wire {}", wanted.table().name(), other.name()),
        valid: format!("a table for wire {}, the wire of the ranks", wire.name()),
    })
}

/// Reads a text of at most `longest` bytes. Only regular files are read: others may have no end, or wait for a
/// writer.
pub(super) fn read_text(path: &str, longest: u64) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    if File::open(path)?.take(longest + 1).read_to_string(&mut text)? as u64 > longest {
        return Err(io::Error::other(format!("it is longer than {longest} bytes")));
    }
    Ok(text)
}

/// The algorithms that the environment prefers.
pub(super) fn preferred(get: Lookup<'_>) -> Result<Preferred, Error> {
    ALGORITHM.get(get).unwrap_or_default().parse()
}

/// Whether the environment allows the barrier gates' rounding of sums.
pub(super) fn gate_sum(get: Lookup<'_>) -> Result<bool, Error> {
    Ok(GATE_SUM.switch(get, false)?)
}

/// The timeline that the environment requests.
pub(super) fn trace(get: Lookup<'_>) -> Result<Option<TraceConfig>, Error> {
    let records = TRACE_RECORDS.number(get)?.unwrap_or(TraceConfig::RECORDS);
    Ok(TRACE.get(get).map(|file| TraceConfig { records, ..TraceConfig::new(file) }))
}

/// What happens to a wait that is too long, by the environment.
pub(super) fn on_timeout(get: Lookup<'_>) -> Result<OnTimeout, Error> {
    Ok(match ON_TIMEOUT.word(get)? {
        Some("fail") => OnTimeout::Fail,
        _ => OnTimeout::Warn,
    })
}

/// The bound of unexpected messages at a port, by the environment.
pub(super) fn unexpected_bytes(get: Lookup<'_>) -> Result<usize, Error> {
    Ok(UNEXPECTED_BYTES.number(get)?.unwrap_or(DEFAULT_LIMIT))
}

/// The cores for workers, by the environment; empty if it sets none.
pub(super) fn cores(get: Lookup<'_>) -> Result<Vec<usize>, Error> {
    let Some(text) = CORES.get(get) else { return Ok(Vec::new()) };
    core_list(&text).ok_or_else(|| {
        CORES
            .wrong_here(text, format!("core numbers below {MOST_CORES} and ranges like 2,3,8-11"))
            .into()
    })
}

/// Parses cores such as `2,3,8-11`, a form that the kernel uses, too.
pub(super) fn core_list(text: &str) -> Option<Vec<usize>> {
    let ranges: Option<Vec<_>> = text.split(',').map(core_range).collect();
    Some(ranges?.into_iter().flatten().collect())
}

/// Parses one core, or a range such as `8-11`.
pub(super) fn core_range(text: &str) -> Option<RangeInclusive<usize>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last < MOST_CORES).then_some(first..=last)
}

/// `n` of the cores without the caller's, as far apart as possible.
///
/// `None` if there are not enough.
pub(super) fn spread(cores: &[usize], caller: Option<usize>, n: usize) -> Option<Vec<usize>> {
    let free: Vec<usize> = cores.iter().copied().filter(|&core| Some(core) != caller).collect();
    (n <= free.len()).then(|| (0..n).map(|index| free[index * free.len() / n]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_or_refused() {
        assert_eq!("inline".parse::<Drive>().unwrap(), Drive::Inline);
        assert!("fast".parse::<Drive>().unwrap_err().to_string().contains("worker or inline"));
        let with = |text: &'static str| cores(&move |_| Some(text.to_owned()));
        assert_eq!(with("2,4-6").unwrap(), [2, 4, 5, 6]);
        for cores in ["6-4", "", "1024", "0-18446744073709551615"] {
            assert!(with(cores).is_err(), "{cores}");
        }
    }

    #[test]
    fn workers_are_spread_and_leave_the_callers_core() {
        let cores: Vec<usize> = (0..48).collect();
        let spread_out = spread(&cores, Some(0), 6).unwrap();
        assert_eq!(spread_out.len(), 6);
        assert!(!spread_out.contains(&0) && spread_out[5] > 36);
        assert_eq!(spread(&[0, 1], Some(1), 2), None);
    }

    use proptest::prelude::*;

    proptest! {
        /// Whatever the environment says, the answer is settings or an error that names the variable.
        #[test]
        fn no_setting_does_harm(
            text in "[0-9]{0,21}|[0-9,-]{0,16}|-?[0-9.]{0,9}e?[0-9]{0,4}|[a-z=:,/0-9-]{0,24}|\\PC{0,8}",
            algorithm in "(allreduce|alltoall|bcast|scan)=[a-z-]{0,8}(mixed|bruck|kring|knomial|multi-leader)?(:[0-9,]{0,12})?(-l|-tree)?",
        ) {
            let named = |error: Error, name: &str| {
                let text = error.to_string();
                prop_assert!(text.starts_with(name) && text.contains("it must be"), "{}", text);
                Ok(())
            };
            let get = |_: &str| Some(text.clone());
            cores(&get).map_or_else(|error| named(error, "HOPBINE_CORES"), |cores| {
                prop_assert!(cores.iter().all(|&core| core < MOST_CORES));
                Ok(())
            })?;
            on_timeout(&get)
                .map_or_else(|error| named(error, "HOPBINE_ON_TIMEOUT"), |_| Ok(()))?;
            drive(&get).map_or_else(|error| named(error, "HOPBINE_DRIVE"), |_| Ok(()))?;
            unexpected_bytes(&get)
                .map_or_else(|error| named(error, "HOPBINE_UNEXPECTED_BYTES"), |_| Ok(()))?;
            for text in [&text, &algorithm] {
                text.parse::<Preferred>()
                    .map_or_else(|error| named(error, "HOPBINE_ALGORITHM"), |_| Ok(()))?;
            }
        }
    }
}
