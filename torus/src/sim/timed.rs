//! Timings: the schedule and the software of each timing.
//!
//! Names are those of PICO's result files for Fugaku (repository HLC-Lab/pico, results/fugaku), and for hopbine's own
//! timings those of the registry.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::str::FromStr;
use std::sync::Arc;

use super::engine::CallForm;
use super::machine::Machine;
use super::network::{Network, NetworkError, NetworkKind};
use super::outcome::Outcome;
use super::paper::PaperCall;
use super::profile::Profile;
use super::routed::RoutedPlan;
use super::script::NotModelled;
use crate::collectives::Collective;
use crate::geometry::{RankMap, Shape, Vertex};
use crate::names::Rank;
use crate::plan::{Expansion, Interleave, Recipe, Schedule, ScheduleError, max_ports};
use crate::registry::{self, Request, UnknownAlgorithm};

crate::named! {
    /// The software that was timed.
    pub enum Api {
        /// The Bine paper's code over uTofu.
        Utofu = "utofu",
        /// The Bine paper's code over MPI.
        Mpi = "mpi",
        /// An algorithm of Fujitsu's MPI, or its own choice.
        FujitsuMpi = "fujitsu-mpi",
        /// hopbine.
        Hopbine = "hopbine",
    }
}

/// Error: a name that is not the name of software.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not software with known timings; known are utofu, mpi, fujitsu-mpi and hopbine")]
pub struct UnknownApi(String);

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(text: &str) -> Result<Self, UnknownApi> {
        let known = Self::ALL.into_iter().find(|api| api.name() == text);
        known.ok_or_else(|| UnknownApi(text.to_owned()))
    }
}

/// A call that was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed<'a> {
    /// The software.
    pub api: Api,
    /// The shape of the job, with one rank on each node.
    pub shape: &'a Shape,
    /// The collective; a ring's allgather is called a scatter in some of PICO's files.
    pub collective: Collective,
    /// The algorithm, by its name in the software, such as `bine-b_cont`.
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
#[non_exhaustive]
pub enum PrepareError {
    /// The schedule of the algorithm is not known, or its software is not modelled.
    #[error("{collective} `{algorithm}` of {api} is not modelled: {why}", api = .api.name())]
    NotModelled {
        /// The software.
        api: Api,
        /// The collective.
        collective: Collective,
        /// The algorithm.
        algorithm: String,
        /// The reason.
        why: &'static str,
    },
    /// hopbine has no algorithm of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownAlgorithm),
    /// The shape does not suit the algorithm.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The shape does not suit the network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The software does not perform such a schedule.
    #[error(transparent)]
    Profile(#[from] NotModelled),
}

/// Network interfaces (TNIs) of a node.
const N_INTERFACES: u32 = 6;

/// A schedule on a network: the part of a timing that depends neither on a machine's parameters nor on bytes.
struct RoutedSchedule {
    schedule: Schedule,
    flow: Expansion,
    routed: RoutedPlan,
}

/// A timing that is ready to be played.
#[derive(Clone)]
pub struct Prepared {
    case: Arc<RoutedSchedule>,
    profile: Profile,
    n: f64,
}

impl Prepared {
    /// Predicts the time on a machine, ns. Machines may differ only in parameters: network and fold must be those for
    /// which the timing was prepared.
    pub fn time(&self, machine: &Machine) -> f64 {
        self.play(machine, false).ns
    }

    /// Predicts the time on a machine, by category.
    pub fn play(&self, machine: &Machine, with_spans: bool) -> Outcome {
        let RoutedSchedule { schedule, flow, routed } = &*self.case;
        let played = self.profile.play(schedule, flow, routed, machine, self.n, with_spans);
        played.expect("the profile was asked when it was prepared")
    }
}

/// Prepares timings for one kind of network. Timings that differ only in bytes share their schedule and routed plan.
pub struct Preparation {
    kind: NetworkKind,
    fold: usize,
    networks: HashMap<Shape, Network>,
    cases: HashMap<CaseKey, Arc<RoutedSchedule>>,
}

/// The key of a case.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CaseKey {
    api: Api,
    collective: Collective,
    algorithm: String,
    shape: Shape,
    ports: u32,
    is_by_rank: bool,
}

impl Preparation {
    /// Prepares timings for the network of a machine.
    pub fn new(machine: &Machine) -> Self {
        let (networks, cases) = (HashMap::new(), HashMap::new());
        Preparation { kind: machine.network, fold: machine.fold, networks, cases }
    }

    /// Finds the schedule and the software of a timing.
    ///
    /// # Errors
    /// [`PrepareError`] if there is no schedule, or none that suits the shape.
    pub fn prepare(&mut self, timed: &Timed<'_>) -> Result<Prepared, PrepareError> {
        let Counterpart { collective, algorithm, profile, is_by_rank } = counterpart(timed)?;
        let key = CaseKey {
            api: timed.api,
            collective,
            algorithm: algorithm.to_owned(),
            shape: timed.shape.clone(),
            ports: timed.ports,
            is_by_rank,
        };
        let case = self.case(key, profile)?;
        let n = timed.bytes as f64;
        let (schedule, flow, routed) = (&case.schedule, &case.flow, &case.routed);
        // Any machine shows whether the software performs the schedule.
        profile.script(schedule, flow, routed, &Machine::of("any", self.kind), n)?;
        Ok(Prepared { case, profile, n })
    }

    fn case(
        &mut self,
        key: CaseKey,
        profile: Profile,
    ) -> Result<Arc<RoutedSchedule>, PrepareError> {
        if let Some(case) = self.cases.get(&key) {
            return Ok(Arc::clone(case));
        }
        let network = match self.networks.entry(key.shape.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Network::new(self.kind, &key.shape, self.fold)?),
        };
        let case = Arc::new(RoutedSchedule::new(&key, profile, network)?);
        self.cases.insert(key, Arc::clone(&case));
        Ok(case)
    }
}

impl RoutedSchedule {
    fn new(key: &CaseKey, profile: Profile, network: &Network) -> Result<Self, PrepareError> {
        let CaseKey { api, collective, ref algorithm, ref shape, ports, is_by_rank } = *key;
        let torus = match is_by_rank {
            true => Shape::torus(&[shape.n_ranks()]).expect("as many ranks as a shape has"),
            false => shape.clone(),
        };
        let algorithm = registry::find(collective, algorithm)?;
        let (map, root) = (RankMap::RowMajor, Rank(0));
        let most = max_ports(&torus);
        // The papers' code drives all interfaces of a node, whatever the shape.
        let has_more = api == Api::Utofu && (most..=N_INTERFACES).contains(&ports);
        let asked = if has_more { most } else { ports };
        let request = Request { shape: torus, map, root, ports: Some(asked) };
        let schedule = algorithm.schedule(&request)?;
        let is_ring = matches!(
            &schedule.recipe,
            Recipe::Walk(recipe) if recipe.interleave == Interleave::Sequential
        );
        let schedule = profile.performed(schedule);
        let mut flow = schedule.expand()?;
        // Rings use no more ports than a torus has directions.
        if has_more && !is_ring {
            flow = flow.on_ports(ports);
        }
        let place = |rank: Rank| Vertex(rank.0);
        let routed = match is_by_rank {
            true => RoutedPlan::of_row(&flow, network, place),
            false => RoutedPlan::of_one(&flow, network, place),
        };
        Ok(RoutedSchedule { schedule, flow, routed })
    }
}

/// A schedule of the registry, and the profile that performs it.
struct Counterpart<'a> {
    collective: Collective,
    algorithm: &'a str,
    profile: Profile,
    /// Whether the algorithm knows only ranks, not the torus that they are on.
    is_by_rank: bool,
}

fn counterpart<'a>(timed: &Timed<'a>) -> Result<Counterpart<'a>, PrepareError> {
    let &Timed { api, collective, algorithm, segment_bytes, bytes, .. } = timed;
    let unknown = |why| {
        let algorithm = algorithm.to_owned();
        Err(PrepareError::NotModelled { api, collective, algorithm, why })
    };
    let is_by_rank = api == Api::FujitsuMpi || (api, algorithm) == (Api::Mpi, "bruck-log");
    let ours = |segment_bytes| Profile::Hopbine { segment_bytes, call: CallForm::Repeated };
    let profile = match api {
        Api::Hopbine if segment_bytes == 0 => ours(u64::MAX),
        Api::Hopbine => ours(segment_bytes),
        Api::Utofu => {
            let via_temporary = algorithm.ends_with("_tmpbuf");
            Profile::Paper(PaperCall { segment_bytes, via_temporary })
        }
        Api::Mpi | Api::FujitsuMpi => Profile::Mpi,
    };
    let found = match api {
        Api::Hopbine => Some((collective, algorithm)),
        Api::Utofu => of_utofu(collective, algorithm),
        Api::Mpi => of_mpi(collective, algorithm),
        Api::FujitsuMpi
            if algorithm == "ring" && collective == Collective::Allreduce && bytes < 2048 =>
        {
            return unknown("short vectors go another way");
        }
        Api::FujitsuMpi => of_fujitsu(collective, algorithm),
    };
    let Some((collective, algorithm)) = found else {
        return unknown("its schedule is not public, or its messages meet as no schedule says");
    };
    Ok(Counterpart { collective, algorithm, profile, is_by_rank })
}

/// The registry's name of an algorithm of the Bine paper's code over uTofu.
fn of_utofu(collective: Collective, algorithm: &str) -> Option<(Collective, &'static str)> {
    use Collective::{
        Allgather, Allreduce, Alltoall, Bcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    Some(match (collective, algorithm) {
        (Allreduce, "bine-l") => (collective, "bine-l"),
        (Allreduce, "recdoub-l") => (collective, "doubling-l"),
        (Allreduce, "bine-b_cont") => (collective, "bine"),
        (Allreduce, "recdoub-b_cont") => (collective, "doubling"),
        (Allreduce, "ring-b_cont") => (collective, "bucket"),
        (Allgather, "bine-vec_doubling_cont_permute") => (collective, "bine"),
        (Allgather, "bine-vec_doubling_cont_send") => (collective, "bine-send"),
        (Allgather, "bine-vec_doubling_blocks") => (collective, "swing"),
        (Allgather | Scatter, "ring-vec_doubling_cont_permute") => (Allgather, "bucket"),
        (ReduceScatter, "bine-vec_halving_cont_permute") => (collective, "bine"),
        (ReduceScatter, "ring-vec_halving_cont_permute") => (collective, "bucket"),
        (Alltoall, "bine-log") => (collective, "bine"),
        (Bcast, "bine-binomial_tree" | "bine-binomial_tree_tmpbuf") => (collective, "bine-tree"),
        (Bcast, "bine-scatter_allgather") => (collective, "bine"),
        (Gather, "bine-binomial_tree_cont_permute-inc") => (collective, "bine"),
        (Gather, "bine-binomial_tree_cont_permute-dec") => (collective, "bine-far"),
        (Scatter, "bine-binomial_tree_cont_permute-inc") => (collective, "bine-near"),
        (Scatter, "bine-binomial_tree_cont_permute-dec") => (collective, "bine"),
        (Reduce, "bine-binomial_tree") => (collective, "bine-tree"),
        (Reduce, "bine-reduce_scatter_gather") => (collective, "bine"),
        _ => return None,
    })
}

/// The registry's name of an algorithm of the Bine paper's code over MPI.
fn of_mpi(collective: Collective, algorithm: &str) -> Option<(Collective, &'static str)> {
    use Collective::{Allgather, Alltoall, Gather, Reduce, ReduceScatter, Scatter};
    Some(match (collective, algorithm) {
        (Allgather, "bine-vec_doubling_cont_permute") => (collective, "bine"),
        (Allgather, "bine-vec_doubling_cont_send") => (collective, "bine-send"),
        (ReduceScatter, "bine-vec_halving_cont_permute") => (collective, "bine"),
        (Alltoall, "bruck-log") => (collective, "bruck:2"),
        (Gather | Scatter, "bine-binomial_tree_cont_permute") => (collective, "bine"),
        (Reduce, "bine-binomial_tree") => (collective, "bine-tree"),
        _ => return None,
    })
}

/// The registry's name of an algorithm of Fujitsu's MPI, for ranks in a row.
fn of_fujitsu(collective: Collective, algorithm: &str) -> Option<(Collective, &'static str)> {
    use Collective::{Allgather, Allreduce, Bcast, Gather, Reduce, ReduceScatter, Scatter};
    Some(match (collective, algorithm) {
        (Allreduce, "recursive_doubling") => (collective, "doubling-l"),
        (Allgather, "recursive-doubling") => (collective, "doubling-two"),
        (ReduceScatter, "recursive-halving") => (collective, "doubling-two"),
        (Allreduce | Allgather | ReduceScatter, "ring") => (collective, "bucket"),
        (Allgather, "bruck") => (collective, "bruck:2"),
        (Bcast, "binomial") => (collective, "doubling-tree-near"),
        (Reduce, "binomial") => (collective, "doubling-tree"),
        (Gather | Scatter, "binomial") => (collective, "doubling"),
        _ => return None,
    })
}
