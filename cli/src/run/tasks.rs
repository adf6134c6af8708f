//! The algorithms and numbers of ports to run, named by the user or chosen by the library.

use std::path::Path;

use hopbine::{Asked, Wanted};
use hopbine_meet::fnv;
use hopbine_torus::plan::{Flow, Schedule, Traffic, traffic};
use hopbine_torus::{Collective, Rank, Request, registry};

use super::super::args::{self, DEFAULT_PORTS};
use super::super::error::CliError;
use super::super::volumes::Volumes;
use super::ranks::Ranks;
use super::reference::CollectiveCase;
use super::{Args, Written};

/// Maximum number of ranks for which a row has the number of messages of its plan.
const MOST_COUNTED: u32 = 4096;
/// The same limit if blocks have different sizes.
const MOST_WEIGHED: u32 = 1024;

/// An algorithm to run.
#[derive(Clone)]
pub(super) struct RunTask {
    /// The algorithm's name in calls ([`Wanted`]); `None` if the library chooses.
    pub(super) algorithm: Option<String>,
    /// `None` if the library chooses.
    pub(super) ports: Option<u32>,
}

/// The algorithm and ports of a row, chosen by the user or by the library.
pub(super) struct Chosen {
    pub(super) algorithm: String,
    pub(super) ports: u32,
    pub(super) steps: usize,
    /// The traffic of the plan; `None` if there are too many ranks to count it.
    pub(super) traffic: Option<Traffic>,
}

impl RunTask {
    /// Resolves the task for a case, by the library's own rule for what is not given.
    pub(super) fn chosen(
        &self,
        case: &CollectiveCase,
        args: &Args,
        ranks: &Ranks,
    ) -> Result<Chosen, CliError> {
        let config = &ranks.config;
        let shape = &args.place.torus;
        let most = config.ports.unwrap_or(DEFAULT_PORTS);
        let tuning = config.tuning.as_ref().unwrap_or(config.table());
        let choice = if case.is_learnt() {
            let choice = tuning.choose_unknown(case.collective, shape, most);
            match choice.algorithm.is_direct() || case.collective != Collective::Alltoall {
                true => choice,
                // The algorithm for the data, after the ranks have learnt the sizes.
                false => tuning.choose_learnt(shape, case.longest_bytes(), most),
            }
        } else {
            let blocks = u64::from(case.collective.n_blocks(shape.n_ranks()));
            let bytes = case.total_bytes() / blocks;
            tuning.choose(case.collective, shape, bytes, most)
        };
        let preferred = config.preferred.serving(case.collective, shape);
        let map = config.map.clone();
        let (algorithm, said) = match &self.algorithm {
            None => (preferred.cloned().unwrap_or(choice.algorithm), None),
            Some(text) => {
                let asked = Asked::new(case.collective, shape.clone(), most);
                let root = map.vertex_of(shape, Rank(args.root)).0;
                let bytes = (!case.is_learnt()).then(|| whole_blocks(case, shape.n_ranks()));
                let asked = asked.with(root, self.ports, bytes);
                let refused = |error: hopbine::Error| match &args.schedule {
                    Some(path) => CliError::text(path, error),
                    None => CliError::Usage(error.to_string()),
                };
                let wanted = Wanted::new(text, &asked, ranks.own()).map_err(refused)?;
                (wanted.algorithm, wanted.ports)
            }
        };
        let ports = said.or(self.ports).unwrap_or(choice.ports);
        let request =
            Request { shape: shape.clone(), map, root: Rank(args.root), ports: Some(ports) };
        let unserved = |error| args::unserved(case.collective, &algorithm.name, error, shape);
        // The number of steps is the same on all ranks.
        let expansion = algorithm.schedule(&request).and_then(|schedule| schedule.expand());
        let expansion = expansion.map_err(unserved)?;
        let steps = expansion.lanes().iter().map(|lane| lane.n_steps).max().unwrap_or(0);
        let place = |rank: Rank| config.map.vertex_of(shape, rank);
        let count = || match case.counts {
            None => traffic(&expansion, shape, place),
            Some(_) => {
                let volumes = Volumes::new(&expansion, |from, to| case.block(from, to));
                volumes.traffic(&expansion, shape, place)
            }
        };
        let most = if case.counts.is_some() { MOST_WEIGHED } else { MOST_COUNTED };
        let traffic = (shape.n_ranks() <= most).then(count);
        Ok(Chosen { algorithm: algorithm.name.into_owned(), ports, steps, traffic })
    }
}

/// Bytes of all data of a rank if every block had the average length.
fn whole_blocks(case: &CollectiveCase, n_ranks: u32) -> u64 {
    let blocks = u64::from(case.collective.n_blocks(n_ranks));
    let element = case.data.dtype.size_bytes() as u64;
    case.total_bytes() / element / blocks * blocks * element
}

/// The text of the schedule in a file, which must be the same on all ranks.
fn agreed(
    read: Result<Schedule, CliError>,
    path: &Path,
    ranks: &Ranks,
) -> Result<String, CliError> {
    let read = read.map(|schedule| schedule.to_string());
    let Some(world) = &ranks.world else { return read };
    let comm = world.communicator();
    // A rank that cannot read its file takes part with 0, so that all ranks learn of the failure.
    let own = read.as_ref().map_or(0, |text| fnv::of_bytes(text.bytes()));
    let mut all = vec![0; comm.size() as usize];
    let gathered = comm.allgather(&[own], &mut all);
    let is_agreed = gathered.is_ok();
    let checked = |text| {
        gathered?;
        match all.iter().position(|&other| other != own) {
            None => Ok(text),
            Some(other) => Err(CliError::Usage(format!(
                "rank {}: the schedule in {} is not that of rank {other}; all ranks need the same schedule",
                comm.rank(),
                path.display()
            ))),
        }
    };
    // If the gather failed because ranks have left, the rank's own read error is more informative.
    let checked = read.and_then(checked);
    checked.map_err(|error| if is_agreed { CliError::Agreed(Box::new(error)) } else { error })
}

/// The algorithms to run, and notes on those that are left out.
pub(super) fn tasks(
    args: &Args,
    ranks: &Ranks,
    written: Written,
) -> Result<(Vec<RunTask>, Vec<String>), CliError> {
    let config = &ranks.config;
    let (collective, shape) = (args.collective, &args.place.torus);
    let ports = config.ports;
    let request =
        Request { shape: shape.clone(), map: config.map.clone(), root: Rank(args.root), ports };
    let mut notes = vec![];
    let as_called = |text: String| {
        let task = RunTask { algorithm: Some(text), ports: args.ports };
        Ok((vec![task], vec![]))
    };
    if let (Some(path), Some(read)) = (&args.schedule, written) {
        return as_called(agreed(read, path, ranks)?);
    }
    let algorithms = match args.algorithm.as_str() {
        "auto" if args.numbers.are_of_algorithms() => {
            return Err(CliError::Usage(
                "--leaders, --group, --radix and --block-count need --algorithm NAME, or --algorithm all"
                    .to_owned(),
            ));
        }
        "auto" => {
            // The algorithm is discarded; this only checks that ports and root are valid for some algorithm.
            args::first_served(collective, registry::algorithms(collective), &request)?;
            return Ok((vec![RunTask { algorithm: None, ports: args.ports }], notes));
        }
        name if Wanted::is_search(name) => return as_called(name.to_owned()),
        "all" => args.numbers.serving(collective, shape, &mut notes)?,
        name => args.numbers.algorithms(collective, Some(name))?,
    };
    let task = |algorithm: hopbine_torus::Algorithm| RunTask {
        // An algorithm with a split of lanes needs its number of ports.
        ports: args.ports.or(algorithm.ports()).or(ports),
        algorithm: Some(algorithm.name.into_owned()),
    };
    let tasks: Vec<RunTask> = algorithms.into_iter().map(task).collect();
    Ok((tasks, notes))
}
