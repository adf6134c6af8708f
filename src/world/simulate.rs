//! Ranks in one thread, on a simulated wire.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use hopbine_torus::geometry::{RankMap, Shape};

use super::communicator::Communicator;
use super::config::DEFAULT_TIMEOUT;
use super::emulate::panic_text;
use super::expansions::Expansions;
use super::members::Members;
use super::preferred::Preferred;
use super::rank::RankOfWorld;
use super::select::Wire;
use crate::Rank;
use crate::endpoint::Endpoint;
use crate::endpoint::sim::{self, Entry, Simulated};
use crate::engine::{Engine, EngineConfig, Failure, OnTimeout};
use crate::error::Error;

/// Ports that ranks have by default at most: the TNIs of a node of Fugaku.
const MOST_PORTS: u32 = 6;
/// Of a rank's stack; pages that a rank does not use take no memory.
const STACK_BYTES: usize = 256 * 1024;
/// A simulated hour: ranks that have not ended by then hang.
const LIMIT: Duration = Duration::from_secs(3600);

/// A torus of ranks that run in one thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SimulationConfig {
    /// The torus.
    pub shape: Shape,
    /// Which rank is on which node.
    pub map: RankMap,
    /// Ports per rank; by default two per dimension of the shape, at most 6.
    pub ports: Option<u32>,
    /// Decides all that the wire leaves open. The same seed repeats a run exactly.
    pub seed: u64,
    /// The wire has no moods: no post is put off, no message is kept back. Many ranks are simulated
    /// more quickly so. By default each seed has moods of its own.
    pub is_calm: bool,
    /// Whether the whole story is kept ([`Simulation::story`]); by default only its hash is.
    pub keeps_story: bool,
    /// The longest message in bytes for calls that do not say; by default it depends on the length of
    /// the data.
    pub segment_bytes: Option<u64>,
    /// The algorithms of calls that do not name one, where the library is not to choose.
    pub preferred: Preferred,
    /// How long nothing may move before a wait is too long, in the simulated time.
    pub timeout: Duration,
    /// What becomes of it then.
    pub on_timeout: OnTimeout,
    /// Bytes that a rank's program may use of its stack; 256 KiB by default.
    pub stack_bytes: usize,
}

impl SimulationConfig {
    /// A torus and a seed, with everything else by default.
    pub fn new(shape: Shape, seed: u64) -> Self {
        SimulationConfig {
            shape,
            map: RankMap::default(),
            ports: None,
            seed,
            is_calm: false,
            keeps_story: false,
            segment_bytes: None,
            preferred: Preferred::default(),
            timeout: DEFAULT_TIMEOUT,
            on_timeout: OnTimeout::Warn,
            stack_bytes: STACK_BYTES,
        }
    }
}

/// What has come of a simulation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Simulation<R> {
    /// The results of all ranks.
    pub results: Vec<R>,
    /// The errors of the ranks' ends, by rank: of those that were left with something to do.
    pub ends: Vec<Result<(), Error>>,
    /// A hash of all that has happened: the same for the same seed, on any machine.
    pub trace: u64,
    /// How much that was.
    pub n_steps: u64,
    /// The simulated time.
    pub elapsed: Duration,
    /// What may never happen, and has: empty unless something is wrong with the library.
    pub violations: Vec<String>,
    /// What has happened, in order, if it was to be kept.
    pub story: Vec<Entry>,
}

/// Runs `f` on every rank of a simulated torus, all in this thread: wherever a rank would wait, another
/// one runs. What the wire leaves open is decided by the seed, so that a run can be repeated exactly.
/// `f` waits only by calls of its communicator, or of the [`Simulated`] rank.
///
/// ```
/// use hopbine::{SimulationConfig, reduce::Op, simulate};
/// use hopbine::torus::geometry::Shape;
///
/// let config = SimulationConfig::new(Shape::torus(&[4, 4, 4]).unwrap(), 7);
/// let run = || simulate(&config, |comm, _| {
///     let mut sum = [u64::from(comm.rank())];
///     comm.allreduce_in_place(&mut sum, Op::Sum).map(|()| sum[0])
/// });
/// let (once, again) = (run()?, run()?);
/// assert_eq!(once.results, vec![Ok(63 * 64 / 2); 64]);
/// assert_eq!(once.trace, again.trace);
/// # Ok::<(), hopbine::Error>(())
/// ```
///
/// # Errors
/// [`Error::RankPanicked`] if `f` panics on a rank; [`Error::Startup`] if there is no memory for the
/// ranks; [`Error::Setting`] if the configuration makes no sense.
pub fn simulate<R>(
    config: &SimulationConfig,
    f: impl Fn(&Communicator, &Simulated) -> R,
) -> Result<Simulation<R>, Error> {
    let results: Vec<_> = (0..config.shape.n_nodes()).map(|_| RefCell::new(None)).collect();
    let simulation = on_every_rank(config, &|rank, comm, simulated| {
        let result = f(comm, simulated);
        *results[rank as usize].borrow_mut() = Some(result);
    })?;
    let of_rank = |result: RefCell<Option<R>>| result.into_inner().expect("no rank has panicked");
    let results = results.into_iter().map(of_rank).collect();
    let Simulation { ends, trace, n_steps, elapsed, violations, story, .. } = simulation;
    Ok(Simulation { results, ends, trace, n_steps, elapsed, violations, story })
}

/// What a rank does, given its number.
type Program<'a> = &'a dyn Fn(Rank, &Communicator, &Simulated);

fn on_every_rank(config: &SimulationConfig, f: Program<'_>) -> Result<Simulation<()>, Error> {
    let n_ranks = config.shape.n_nodes();
    let most = hopbine_torus::plan::max_ports(&config.shape);
    let n_ports = config.ports.unwrap_or(most.min(MOST_PORTS));
    if n_ports == 0 {
        return Err(Error::Setting {
            setting: "ports",
            found: "0".to_owned(),
            valid: "at least 1".to_owned(),
        });
    }
    let wire = sim::Wire::new(sim::Config {
        n_ranks,
        n_ports: n_ports as usize,
        seed: config.seed,
        is_calm: config.is_calm,
        is_told: config.keeps_story,
        limit: LIMIT,
    });
    let ranks: Vec<Simulated> = (0..n_ranks).map(|rank| wire.rank(rank)).collect();
    let expansions = Arc::new(Expansions::default());
    let open = |rank: &Simulated| open(config, n_ports as usize, rank, &expansions);
    let comms = ranks.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let ends: Vec<_> = ranks.iter().map(|_| RefCell::new(None)).collect();
    let program = |rank: Rank| {
        let (comm, at) = (&comms[rank as usize], rank as usize);
        let outcome = catch_unwind(AssertUnwindSafe(|| f(rank, comm, &ranks[at])));
        let end = match outcome {
            Ok(()) => comm.close(),
            Err(panic) => {
                let error = Error::RankPanicked { rank, message: panic_text(&*panic) };
                comm.fail(&error);
                Err(error)
            }
        };
        *ends[at].borrow_mut() = Some(end);
    };
    sim::run(&wire, &ranks, config.stack_bytes, &program).map_err(|source| {
        let rank = source.peer.unwrap_or(0);
        Error::Startup { rank, source }
    })?;
    let ends: Vec<Result<(), Error>> =
        ends.into_iter().map(|end| end.into_inner().expect("all ranks have ended")).collect();
    let is_well = ends.iter().all(Result::is_ok);
    // No rank runs any more: whatever others may have written to can go.
    drop(comms);
    let violations = wire.violations(is_well);
    let is_panic = |end: &&Result<(), Error>| matches!(end, Err(Error::RankPanicked { .. }));
    if let Some(Err(panicked)) = ends.iter().find(is_panic) {
        return Err(panicked.clone());
    }
    let (trace, n_steps) = wire.trace();
    let (elapsed, story) = (wire.elapsed(), wire.entries());
    Ok(Simulation { results: Vec::new(), ends, trace, n_steps, elapsed, violations, story })
}

/// The world's communicator on one rank.
fn open(
    config: &SimulationConfig,
    n_ports: usize,
    rank: &Simulated,
    expansions: &Arc<Expansions>,
) -> Result<Communicator, Error> {
    let endpoint = |port| Box::new(rank.endpoint(port)) as Box<dyn Endpoint>;
    let engine_config = EngineConfig {
        workers: false,
        cores: Vec::new(),
        own_cores: true,
        timeout: config.timeout,
        on_timeout: config.on_timeout,
    };
    let endpoints = (0..n_ports).map(endpoint).collect();
    let engine =
        Engine::new(rank.number(), endpoints, engine_config, Arc::new(Failure::default()))?;
    let small = Err("the simulated wire has none".to_owned());
    let preferred = config.preferred.clone();
    let of_world = RankOfWorld::new(engine, Wire::Network, small, None, None, preferred)
        .sharing(expansions.clone());
    let SimulationConfig { shape, map, segment_bytes, .. } = config;
    let members = Members::world(rank.number(), shape.clone(), map.clone(), *segment_bytes);
    Ok(Communicator::world(of_world, members))
}
