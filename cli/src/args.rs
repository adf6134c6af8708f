//! Arguments that several subcommands share, and their values.

use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hopbine::SimulatedWire;
use hopbine_torus::plan::{Schedule, ScheduleError, TextError, max_ports};
use hopbine_torus::registry;
use hopbine_torus::{Algorithm, Collective, Rank, RankMap, Request, Shape};

use super::error::CliError;
use super::host;

/// What carries the messages between the ranks of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendArg {
    /// The emulated Tofu device
    Emu,
    /// Memory that the ranks share
    Shm,
    /// A simulated wire: all ranks run in one thread, and a seed decides the order of events
    Sim,
    /// A simulated wire below the emulated Tofu device
    SimUtofu,
}

impl BackendArg {
    /// The equivalent value of `HOPBINE_BACKEND`.
    pub fn name(self) -> &'static str {
        match self {
            BackendArg::Emu => "emu",
            BackendArg::Shm => "shm",
            BackendArg::Sim => "sim",
            BackendArg::SimUtofu => "sim-utofu",
        }
    }

    /// The simulated wire, if the ranks are simulated.
    pub fn simulated(self) -> Option<SimulatedWire> {
        match self {
            BackendArg::Emu | BackendArg::Shm => None,
            BackendArg::Sim => Some(SimulatedWire::Messages),
            BackendArg::SimUtofu => Some(SimulatedWire::Utofu),
        }
    }

    /// The wire by the library's type.
    pub fn wire(self) -> hopbine::Wire {
        match self {
            BackendArg::Emu | BackendArg::Sim | BackendArg::SimUtofu => hopbine::Wire::Network,
            BackendArg::Shm => hopbine::Wire::Memory,
        }
    }
}

/// Where the ranks are.
#[derive(Clone, Debug, clap::Args)]
pub struct Place {
    /// Shape of the torus: sizes joined by `x`. `m` after a size: this dimension does not wrap. `+K` at the end: K
    /// ranks on each node
    #[arg(long, value_name = "SHAPE")]
    pub torus: Shape,
    /// Order of the ranks on the nodes: column-major (first dimension fastest, as the batch system numbers nodes),
    /// row-major, or a file with one coordinate per line. `hopbine run` with processes also takes `hosts`: the ranks of
    /// one host are neighbours
    #[arg(long, value_name = "ORDER|FILE", default_value = "column-major")]
    pub map: MapArg,
}

/// A rank map as named on the command line.
#[derive(Clone, Debug)]
pub enum MapArg {
    RowMajor,
    ColumnMajor,
    Hosts,
    File(PathBuf),
}

impl FromStr for MapArg {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "row-major" => MapArg::RowMajor,
            "column-major" => MapArg::ColumnMajor,
            "hosts" => MapArg::Hosts,
            path => MapArg::File(PathBuf::from(path)),
        })
    }
}

impl Place {
    /// The rank map for the shape.
    ///
    /// # Errors
    /// As [`MapArg::read`].
    pub fn rank_map(&self) -> Result<RankMap, CliError> {
        self.map.read(&self.torus)
    }
}

impl MapArg {
    /// The equivalent value of `HOPBINE_RANK_MAP`.
    pub fn as_setting(&self) -> &std::ffi::OsStr {
        match self {
            MapArg::RowMajor => "row-major".as_ref(),
            MapArg::ColumnMajor => "column-major".as_ref(),
            MapArg::Hosts => "hosts".as_ref(),
            MapArg::File(path) => path.as_os_str(),
        }
    }

    /// The rank map for a shape.
    ///
    /// # Errors
    /// [`CliError::Read`] or [`CliError::RankMap`] for a file; [`CliError::Usage`] for `hosts`.
    pub fn read(&self, shape: &Shape) -> Result<RankMap, CliError> {
        match self {
            MapArg::RowMajor => Ok(RankMap::RowMajor),
            MapArg::ColumnMajor => Ok(RankMap::ColumnMajor),
            MapArg::Hosts => Err(CliError::Usage(
                "--map hosts needs ranks that are processes (`mpirun ... hopbine run`); use column-major, \
                 row-major or a file"
                    .to_owned(),
            )),
            MapArg::File(path) => {
                let text = read(path)?;
                RankMap::parse(shape, &text)
                    .map_err(|source| CliError::RankMap { path: path.clone(), source })
            }
        }
    }
}

/// The number of ports as given on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortsArg {
    Max,
    All,
    Count(u32),
}

impl PortsArg {
    /// The numbers of ports that the argument selects on a shape.
    pub fn counts(self, shape: &Shape) -> RangeInclusive<u32> {
        match self {
            PortsArg::Max => max_ports(shape)..=max_ports(shape),
            PortsArg::All => 1..=max_ports(shape),
            PortsArg::Count(ports) => ports..=ports,
        }
    }
}

impl FromStr for PortsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max" => Ok(PortsArg::Max),
            "all" => Ok(PortsArg::All),
            _ => text.parse().map(PortsArg::Count).map_err(|_| {
                format!("`{text}` is not a number of ports; use a number, `max` or `all`")
            }),
        }
    }
}

/// The schedule of an algorithm for the request.
///
/// # Errors
/// [`CliError::Unserved`].
pub fn scheduled(algorithm: &Algorithm, request: &Request) -> Result<Schedule, CliError> {
    let unserved = |error| unserved(algorithm.collective, &algorithm.name, error, &request.shape);
    algorithm.schedule(request).map_err(unserved)
}

/// Default limit of the number of ports: the network interfaces of a node of Fugaku.
pub const DEFAULT_PORTS: u32 = 6;

/// Default number of ports of ranks on a shape: one for each direction, at most [`DEFAULT_PORTS`].
pub fn default_ports(shape: &Shape) -> u32 {
    max_ports(shape).min(DEFAULT_PORTS)
}

/// Largest size of a text file in bytes, so that a device without an end does not fill the memory.
const LONGEST: u64 = 1 << 30;

/// Reads a text file.
///
/// # Errors
/// [`CliError::Read`].
pub fn read(path: &Path) -> Result<String, CliError> {
    let text = File::open(path).and_then(whole);
    text.map_err(|source| CliError::Read { path: path.to_owned(), source })
}

/// The text of an open file, at most [`LONGEST`] bytes.
pub fn whole(file: File) -> io::Result<String> {
    let mut text = String::new();
    if file.take(LONGEST + 1).read_to_string(&mut text)? as u64 > LONGEST {
        return Err(io::Error::other(format!("it is longer than {LONGEST} bytes")));
    }
    Ok(text)
}

/// Reads a schedule, as written by `plan --format schedule`, if this host has memory for all its plans.
///
/// # Errors
/// [`CliError`]: the errors of [`read`], an invalid line, or too many ranks.
pub fn read_schedule(path: &Path) -> Result<Schedule, CliError> {
    let text = read(path)?;
    // Parsing a schedule also checks it, which takes memory and time for a large shape. So the shape is checked
    // first.
    let shape = text.lines().find_map(|line| line.trim().strip_prefix("shape "));
    if let Some(shape) = shape.and_then(|shape| shape.trim().parse().ok()) {
        host::check_plans(&shape, true)?;
    }
    text.parse().map_err(|error: TextError| CliError::text(path, error))
}

/// The word `all`, or one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllOr<T> {
    All,
    One(T),
}

impl<T: FromStr> FromStr for AllOr<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" { Ok(AllOr::All) } else { text.parse().map(AllOr::One) }
    }
}

/// The first of the candidates that supports the request, and its schedule.
///
/// # Errors
/// [`CliError`], naming algorithms that support the request.
pub fn first_served(
    collective: Collective,
    candidates: Vec<Algorithm>,
    request: &Request,
) -> Result<(Algorithm, Schedule), CliError> {
    let mut first_error = None;
    for algorithm in candidates {
        match algorithm.schedule(request) {
            Ok(schedule) => return Ok((algorithm, schedule)),
            Err(error) => {
                first_error.get_or_insert((algorithm.name, error));
            }
        }
    }
    let (name, error) = first_error.expect("the registry has algorithms for every collective");
    Err(unserved(collective, &name, error, &request.shape))
}

/// The error for an algorithm that does not support a request; names algorithms that do.
pub fn unserved(
    collective: Collective,
    algorithm: &str,
    source: ScheduleError,
    shape: &Shape,
) -> CliError {
    // Names other algorithms only if the shape is the reason.
    let of_shape = matches!(
        source,
        ScheduleError::Unserved { .. }
            | ScheduleError::NotNested { .. }
            | ScheduleError::NoNodes { .. }
            | ScheduleError::Groups { .. }
            | ScheduleError::Leaders { .. }
    );
    let served = if of_shape {
        let names: Vec<String> = registry::algorithms(collective)
            .into_iter()
            .filter(|other| other.serves(shape).is_ok())
            .map(|other| other.name.into_owned())
            .collect();
        format!("; on {shape} there are {}", names.join(", "))
    } else {
        String::new()
    };
    let source = Box::new(source);
    CliError::Unserved { collective, algorithm: algorithm.to_owned(), source, served }
}

/// Checks that the shape has this rank.
///
/// # Errors
/// [`CliError::Rank`].
pub fn existing_rank(rank: u32, shape: &Shape) -> Result<Rank, CliError> {
    let last = shape.n_ranks() - 1;
    if rank <= last {
        Ok(Rank(rank))
    } else {
        Err(CliError::Rank { rank, last, shape: shape.to_string() })
    }
}
