//! Timings: which schedule each of them is of, and whose software.
//!
//! Names are those of PICO's result files for Fugaku (repository HLC-Lab/pico, results/fugaku), and of our
//! registry for our own.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use super::machine::Machine;
use super::network::{Network, NetworkError, NetworkKind};
use super::outcome::Outcome;
use super::paper::NotModelled;
use super::player::play;
use super::profile::Profile;
use super::score::Score;
use crate::collectives::Collective;
use crate::geometry::{RankMap, Shape};
use crate::names::Rank;
use crate::plan::{Expansion, Schedule, ScheduleError};
use crate::registry::{self, Request, UnknownAlgorithm};

/// Whose software was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// The Bine paper's code over uTofu.
    Utofu,
    /// The same over MPI.
    Mpi,
    /// An algorithm of Fujitsu's MPI, or its own choice.
    FujitsuMpi,
    /// Ours.
    Hopbine,
}

impl Api {
    /// All of them.
    pub const ALL: [Api; 4] = [Api::Utofu, Api::Mpi, Api::FujitsuMpi, Api::Hopbine];

    /// Its name in files of timings.
    pub const fn name(self) -> &'static str {
        match self {
            Api::Utofu => "utofu",
            Api::Mpi => "mpi",
            Api::FujitsuMpi => "fujitsu-mpi",
            Api::Hopbine => "hopbine",
        }
    }
}

/// No name of software.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no software whose timings are known: there are utofu, mpi, fujitsu-mpi and hopbine"
)]
pub struct UnknownApi(String);

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(text: &str) -> Result<Self, UnknownApi> {
        let known = Self::ALL.into_iter().find(|api| api.name() == text);
        known.ok_or_else(|| UnknownApi(text.to_owned()))
    }
}

/// What was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed<'a> {
    /// Whose software.
    pub api: Api,
    /// The shape of the job, one rank a node.
    pub shape: &'a Shape,
    /// The collective; a ring's allgather is called a scatter in some of PICO's files.
    pub collective: Collective,
    /// The algorithm by its name there, such as `bine-b_cont`.
    pub algorithm: &'a str,
    /// Bytes of a rank's vector, or of all its blocks.
    pub bytes: u64,
    /// The longest piece of a reduction or of a tree, bytes; 0 for whole messages.
    pub segment_bytes: u64,
    /// Ports used.
    pub ports: u32,
}

/// Why a timing has no prediction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// An algorithm whose schedule is not known, or whose software is not modelled.
    #[error("{collective} `{algorithm}` of {api} is not modelled: {why}", api = .api.name())]
    NotModelled {
        /// Whose software.
        api: Api,
        /// The collective.
        collective: Collective,
        /// The algorithm.
        algorithm: String,
        /// What is missing.
        why: &'static str,
    },
    /// Not an algorithm of ours.
    #[error(transparent)]
    Unknown(#[from] UnknownAlgorithm),
    /// The shape does not suit the algorithm.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The shape does not suit the network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The software performs no such schedule.
    #[error(transparent)]
    Profile(#[from] NotModelled),
}

/// A schedule on a network: what does not depend on the parameters of a machine, nor on bytes.
struct Case {
    schedule: Schedule,
    flow: Expansion,
    score: Score,
}

/// A timing whose prediction takes no more than playing it.
#[derive(Clone)]
pub struct Prepared {
    case: Arc<Case>,
    profile: Profile,
    n: f64,
}

impl Prepared {
    /// What it takes on a machine, ns. Only parameters may differ from machine to machine: network and
    /// fold are those that it was prepared for.
    pub fn time(&self, machine: &Machine) -> f64 {
        self.play(machine, false).ns
    }

    /// The same, with what it is spent on.
    pub fn play(&self, machine: &Machine, with_spans: bool) -> Outcome {
        let Case { schedule, flow, score } = &*self.case;
        let script = self.profile.script(schedule, flow, score, machine, self.n);
        let script = script.expect("the profile was asked when it was prepared");
        play(score, &script, &machine.speeds(), self.n, with_spans)
    }

    /// Whether all ranks do the same: see [`Score::is_exact`].
    pub fn is_exact(&self) -> bool {
        self.case.score.is_exact()
    }
}

/// Prepares timings for one kind of network. Timings that differ in bytes only share what they need.
pub struct Preparation {
    kind: NetworkKind,
    fold: usize,
    networks: HashMap<Shape, Arc<Network>>,
    cases: HashMap<(Collective, String, Shape, u32), Arc<Case>>,
}

impl Preparation {
    /// For the network of a machine.
    pub fn new(machine: &Machine) -> Self {
        let (networks, cases) = (HashMap::new(), HashMap::new());
        Preparation { kind: machine.network, fold: machine.fold, networks, cases }
    }

    /// Finds the schedule and the software of a timing.
    ///
    /// # Errors
    /// [`PrepareError`] if there is none, or none that suits the shape.
    pub fn prepare(&mut self, timed: &Timed<'_>) -> Result<Prepared, PrepareError> {
        let Counterpart { collective, algorithm, profile } = counterpart(timed)?;
        let case = self.case(collective, algorithm, timed.shape, timed.ports)?;
        let n = timed.bytes as f64;
        let (schedule, flow, score) = (&case.schedule, &case.flow, &case.score);
        // Any machine will do to see that the software performs such a schedule.
        profile.script(schedule, flow, score, &Machine::of("any", self.kind), n)?;
        Ok(Prepared { case, profile, n })
    }

    fn case(
        &mut self,
        collective: Collective,
        algorithm: &str,
        shape: &Shape,
        ports: u32,
    ) -> Result<Arc<Case>, PrepareError> {
        let key = (collective, algorithm.to_owned(), shape.clone(), ports);
        if let Some(case) = self.cases.get(&key) {
            return Ok(Arc::clone(case));
        }
        let network = match self.networks.get(shape) {
            Some(network) => Arc::clone(network),
            None => Arc::new(Network::new(self.kind, shape, self.fold)?),
        };
        self.networks.insert(shape.clone(), Arc::clone(&network));
        let map = RankMap::RowMajor;
        let request = Request { shape: shape.clone(), map, root: Rank(0), ports: Some(ports) };
        let schedule = registry::find(collective, algorithm)?.schedule(&request)?;
        let flow = schedule.expand()?;
        let place = |rank| schedule.map.vertex_of(&schedule.shape, rank);
        let score = Score::of_one(&flow, &network, place);
        let case = Arc::new(Case { schedule, flow, score });
        self.cases.insert(key, Arc::clone(&case));
        Ok(case)
    }
}

/// A schedule of ours, and who performs it.
struct Counterpart<'a> {
    collective: Collective,
    algorithm: &'a str,
    profile: Profile,
}

fn counterpart<'a>(timed: &Timed<'a>) -> Result<Counterpart<'a>, PrepareError> {
    let &Timed { api, collective, algorithm, segment_bytes, .. } = timed;
    let unknown = |why| {
        let algorithm = algorithm.to_owned();
        Err(PrepareError::NotModelled { api, collective, algorithm, why })
    };
    match api {
        Api::Hopbine => {
            let segment_bytes = if segment_bytes == 0 { u64::MAX } else { segment_bytes };
            Ok(Counterpart { collective, algorithm, profile: Profile::Hopbine { segment_bytes } })
        }
        Api::Utofu => {
            let Some((collective, algorithm)) = of_utofu(collective, algorithm) else {
                return unknown("its schedule is not known");
            };
            Ok(Counterpart { collective, algorithm, profile: Profile::Paper { segment_bytes } })
        }
        Api::Mpi | Api::FujitsuMpi => unknown("nothing over MPI is"),
    }
}

/// The registry's name of what the Bine paper's code performs.
fn of_utofu(collective: Collective, algorithm: &str) -> Option<(Collective, &'static str)> {
    use Collective::{Allgather, Allreduce, Alltoall, ReduceScatter, Scatter};
    Some(match (collective, algorithm) {
        (Allreduce, "bine-l") => (collective, "bine-l"),
        (Allreduce, "recdoub-l") => (collective, "doubling-l"),
        (Allreduce, "bine-b_cont") => (collective, "bine"),
        (Allreduce, "recdoub-b_cont") => (collective, "doubling"),
        (Allreduce, "ring-b_cont") => (collective, "bucket"),
        (Allgather, "bine-vec_doubling_cont_permute") => (collective, "bine"),
        (Allgather | Scatter, "ring-vec_doubling_cont_permute") => (Allgather, "bucket"),
        (ReduceScatter, "bine-vec_halving_cont_permute") => (collective, "bine"),
        (ReduceScatter, "ring-vec_halving_cont_permute") => (collective, "bucket"),
        (Alltoall, "bine-log") => (collective, "bine"),
        _ => return None,
    })
}
