//! Ranks in one thread, on a simulated wire.

use std::cell::{OnceCell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use hopbine_torus::PortId;
use hopbine_torus::choose::{ShmLimits, Wire};
use hopbine_torus::geometry::{RankMap, Shape};

use hopbine_meet::variables::{from_environment, timeout};

use super::backend::{Layout, Opened};
use super::config::{DEFAULT_TIMEOUT, on_timeout, preferred, trace, tuning, tuning_for};
use super::emulate::{n_ports, panic_text};
use super::tofu::{Emulation, gates_under};
use crate::Rank;
use crate::comm::choice::preferred::Preferred;
use crate::comm::choice::tuning::Tuning;
use crate::comm::communicator::Communicator;
use crate::comm::programs::expansions::Expansions;
use crate::comm::state::small::CacheStatsFn;
use crate::comm::state::world_state::Settings;
use crate::endpoint::shm::Reading;
use crate::endpoint::sim::{self, Entry, Meeting, Simulated};
use crate::endpoint::unexpected::DEFAULT_LIMIT;
use crate::endpoint::utofu::OnNode;
use crate::engine::{EngineConfig, OnTimeout};
use crate::error::Error;
use crate::timeline::TraceConfig;

/// Bytes of a rank's stack; pages that a rank does not use take no memory.
const STACK_BYTES: usize = 256 * 1024;
/// Limit of the simulated time, one hour: ranks that have not ended by then hang.
const LIMIT: Duration = Duration::from_secs(3600);

/// What carries the messages of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SimulatedWire {
    /// The simulation itself, with every behaviour that a wire may have.
    #[default]
    Messages,
    /// The library's uTofu endpoints, over the emulated device in its late and its checked mode: their
    /// credits, slots, channels and fences are those of the real network.
    Utofu,
}

/// Configuration of a torus whose ranks run in one thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SimulationConfig {
    /// The torus.
    pub shape: Shape,
    /// Which rank is on which node.
    pub map: RankMap,
    /// Ports per rank; by default two per dimension of the shape, at most 6.
    pub ports: Option<u32>,
    /// What carries the messages; by default the simulation itself.
    pub wire: SimulatedWire,
    /// Seed of all decisions that the wire leaves open. The same seed repeats a run exactly.
    pub seed: u64,
    /// Whether the wire never defers a post or holds a message back, which speeds up simulations of many ranks. By
    /// default each seed has its own probability of doing so.
    pub is_calm: bool,
    /// Whether all events are kept ([`Simulation::story`]); by default only their hash is.
    pub keeps_story: bool,
    /// The longest message in bytes for calls that do not set it; by default it depends on the length of the data.
    pub segment_bytes: Option<u64>,
    /// The decision table of calls that name no algorithm; by default [`table`](SimulationConfig::table).
    pub tuning: Option<Tuning>,
    /// The algorithms that the user prefers to the library's choice, for calls that do not name one.
    pub preferred: Preferred,
    /// Simulated time without progress after which a wait is too long.
    pub timeout: Duration,
    /// What happens to a wait that is too long.
    pub on_timeout: OnTimeout,
    /// Bytes of unexpected messages that each port keeps before it makes their senders wait.
    pub unexpected_bytes: usize,
    /// The ranks' timelines, if they are to be recorded (`HOPBINE_TRACE`), in the simulated time.
    pub trace: Option<TraceConfig>,
    /// Bytes that a rank's program may use of its stack; 256 KiB by default.
    pub stack_bytes: usize,
}

impl SimulationConfig {
    /// A torus and a seed, with defaults for everything else.
    pub fn new(shape: Shape, seed: u64) -> Self {
        SimulationConfig {
            shape,
            map: RankMap::default(),
            ports: None,
            wire: SimulatedWire::default(),
            seed,
            is_calm: false,
            keeps_story: false,
            segment_bytes: None,
            tuning: None,
            preferred: Preferred::default(),
            timeout: DEFAULT_TIMEOUT,
            on_timeout: OnTimeout::Warn,
            unexpected_bytes: DEFAULT_LIMIT,
            trace: None,
            stack_bytes: STACK_BYTES,
        }
    }

    /// The decision table that is built in for the wire.
    pub fn table(&self) -> &'static Tuning {
        match self.wire {
            SimulatedWire::Messages => Tuning::built_in(Wire::Network),
            SimulatedWire::Utofu => Tuning::tofu_d(),
        }
    }

    /// As [`new`](SimulationConfig::new), with the environment's settings in place of defaults: `HOPBINE_TIMEOUT`,
    /// `HOPBINE_ON_TIMEOUT`, `HOPBINE_TUNING`, `HOPBINE_ALGORITHM`, `HOPBINE_TRACE`.
    ///
    /// # Errors
    /// [`Error::Setting`] names the variable and what it can be.
    pub fn from_env(shape: Shape, seed: u64) -> Result<Self, Error> {
        let mut config = SimulationConfig::new(shape, seed);
        let get = from_environment;
        if let Some(timeout) = timeout(&get)? {
            config.timeout = timeout;
        }
        config.on_timeout = on_timeout(&get)?;
        config.tuning = tuning(&get)?;
        config.preferred = preferred(&get)?;
        config.trace = trace(&get)?;
        Ok(config)
    }
}

/// The outcome of a simulation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Simulation<R> {
    /// The results of all ranks.
    pub results: Vec<R>,
    /// By rank, the outcome of its end: an error if the rank was left with something to do.
    pub ends: Vec<Result<(), Error>>,
    /// The ranks that have died.
    pub dead: Vec<Rank>,
    /// A hash of all events: the same for the same seed, on any machine.
    pub trace: u64,
    /// Number of these events.
    pub n_steps: u64,
    /// The simulated time.
    pub elapsed: Duration,
    /// Events that must never happen; empty unless the library has an error.
    pub violations: Vec<String>,
    /// The events in order, if they were to be kept.
    pub story: Vec<Entry>,
}

/// Runs `f` on every rank of a simulated torus, all in this thread: whenever a rank would wait, another one runs.
/// The seed decides everything that the wire leaves open, so that a run can be repeated exactly. `f` must wait only
/// in calls of its communicator or of the [`Simulated`] rank.
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
/// [`Error::RankPanicked`] if `f` panics on a rank; [`Error::Startup`] if there is no memory for the ranks;
/// [`Error::Setting`] if the configuration is invalid.
pub fn simulate<R>(
    config: &SimulationConfig,
    f: impl Fn(&Communicator, &Simulated) -> R,
) -> Result<Simulation<R>, Error> {
    let results: Vec<_> = (0..config.shape.n_ranks()).map(|_| RefCell::new(None)).collect();
    let simulation = on_every_rank(config, &|rank, comm, simulated| {
        let result = f(comm, simulated);
        *results[rank as usize].borrow_mut() = Some(result);
    })?;
    let of_rank = |result: RefCell<Option<R>>| result.into_inner().expect("no rank has panicked");
    let results = results.into_iter().map(of_rank).collect();
    Ok(Simulation {
        results,
        ends: simulation.ends,
        dead: simulation.dead,
        trace: simulation.trace,
        n_steps: simulation.n_steps,
        elapsed: simulation.elapsed,
        violations: simulation.violations,
        story: simulation.story,
    })
}

/// The program of a rank; it gets the rank's number.
type RankProgram<'a> = &'a dyn Fn(Rank, &Communicator, &Simulated);

fn on_every_rank(config: &SimulationConfig, f: RankProgram<'_>) -> Result<Simulation<()>, Error> {
    let n_ranks = config.shape.n_ranks();
    let n_ports = n_ports(config.ports, &config.shape)?;
    let wire = sim::SimWire::new(sim::Config {
        size: (n_ranks, n_ports as usize),
        seed: config.seed,
        is_calm: config.is_calm,
        keeps_entries: config.keeps_story,
        limit: LIMIT,
    });
    let ranks: Vec<Simulated> = (0..n_ranks).map(|rank| wire.rank(rank)).collect();
    if config.wire == SimulatedWire::Utofu {
        Emulation::under(&wire, &config.shape, &config.map)?;
    }
    let opening = Opening {
        config,
        n_ports: n_ports as usize,
        tuning: tuning_for(config.tuning.as_ref(), config.table())?,
        expansions: Arc::new(Expansions::default()),
        meeting: Meeting::new(n_ranks),
    };
    // Dropped when no rank runs any more.
    let comms: Vec<_> = ranks.iter().map(|_| OnceCell::new()).collect();
    let ends: Vec<_> = ranks.iter().map(|_| RefCell::new(None)).collect();
    let program = |rank: Rank| {
        let at = rank as usize;
        let run = || {
            let comm = opening.open(&ranks[at])?;
            let comm = comms[at].get_or_init(|| comm);
            f(rank, comm, &ranks[at]);
            comm.close()
        };
        let end = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let error = Error::RankPanicked { rank, message: panic_text(panic) };
            if let Some(comm) = comms[at].get() {
                comm.fail(&error);
            }
            Err(error)
        });
        *ends[at].borrow_mut() = Some(end);
    };
    sim::run(&wire, &ranks, config.stack_bytes, &program).map_err(|source| {
        let rank = source.peer.unwrap_or(0);
        Error::Startup { rank, source }
    })?;
    let ends: Vec<Result<(), Error>> =
        ends.into_iter().map(|end| end.into_inner().expect("all ranks have ended")).collect();
    let is_well = ends.iter().all(Result::is_ok);
    // No rank runs any more, so memory that peers may have written to can be freed.
    wire.end(is_well);
    for comm in comms.iter().filter_map(OnceCell::get) {
        comm.inner.world.engine.all_have_ended();
    }
    let kept = ranks.iter().zip(&comms).filter_map(|(rank, comm)| too_much_kept(rank, comm.get()?));
    let kept: Vec<String> = kept.collect();
    drop(comms);
    let mut violations = wire.violations(is_well);
    violations.extend(kept);
    let is_fatal = |end: &&Result<(), Error>| {
        matches!(end, Err(Error::RankPanicked { .. } | Error::Startup { .. }))
    };
    if let Some(Err(error)) = ends.iter().find(is_fatal) {
        return Err(error.clone());
    }
    let (trace, n_steps) = wire.trace();
    let (elapsed, story) = (wire.elapsed(), wire.entries());
    let dead = ranks.iter().filter(|rank| rank.is_dead()).map(Simulated::number).collect();
    Ok(Simulation { results: Vec::new(), ends, dead, trace, n_steps, elapsed, violations, story })
}

/// The violation, if a rank has kept more bytes of unexpected messages than its bound.
fn too_much_kept(rank: &Simulated, comm: &Communicator) -> Option<String> {
    let kept = comm.unexpected();
    let (rank, most, bound) = (rank.number(), kept.most_bytes, kept.bound_bytes);
    (most > bound).then(|| {
        format!("rank {rank} has kept {most} bytes that came too early, and may keep {bound}")
    })
}

/// What ranks need to start.
struct Opening<'a> {
    config: &'a SimulationConfig,
    n_ports: usize,
    tuning: Tuning,
    expansions: Arc<Expansions>,
    meeting: Meeting,
}

impl Opening<'_> {
    /// Opens the world's communicator on one rank.
    fn open(&self, rank: &Simulated) -> Result<Communicator, Error> {
        let SimulationConfig { shape, map, segment_bytes, preferred, .. } = self.config;
        let config = EngineConfig {
            workers: 0,
            cores: Vec::new(),
            own_cores: true,
            timeout: self.config.timeout,
            on_timeout: self.config.on_timeout,
            trace: self.config.trace.clone(),
        };
        let settings = Settings {
            tuning: self.tuning.clone(),
            gate_sum: false,
            llc_bytes: None,
            preferred: preferred.clone(),
            expansions: Some(self.expansions.clone()),
        };
        let (place, limit) =
            ((shape.clone(), map.clone(), *segment_bytes), self.config.unexpected_bytes);
        let opened = self.device(rank)?;
        opened.communicator(rank.number(), place, (config, Arc::default()), limit, settings)
    }

    /// The ports of a rank, the figures of its registration cache, and the collectives that its hardware performs.
    fn device(&self, rank: &Simulated) -> Result<Opened, Error> {
        let reading = Reading::Unused;
        if self.config.wire == SimulatedWire::Messages {
            let endpoints = PortId::first(self.n_ports as u16)
                .map(|port| Box::new(rank.endpoint(port)) as _)
                .collect();
            let small = Err("the simulated wire has none".to_owned());
            return Ok(Opened { endpoints, small, small_pool: None, cache: None, reading });
        }
        let failed = |source| Error::Startup { rank: rank.number(), source };
        let SimulationConfig { shape, map, .. } = self.config;
        let (exchange, n_ports) = (&mut self.meeting.of(rank), self.n_ports);
        let (endpoints, view) = rank.utofu_ports(exchange, n_ports).map_err(failed)?;
        let cache = view.map(|view| Box::new(move || view.stats()) as CacheStatsFn);
        let (small, small_pool) = match rank.has_gates() {
            true => {
                let layout = Layout {
                    n_ports,
                    shape,
                    map,
                    on_node: OnNode::ALONE,
                    own_cores: true,
                    node_memory: None,
                    limits: ShmLimits::default(),
                };
                gates_under(exchange, &layout).map_err(failed)?
            }
            false => (Err("this seed has none".to_owned()), None),
        };
        Ok(Opened { endpoints, small, small_pool, cache, reading })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EmulationConfig, emulate};
    use super::*;

    /// The panic of a rank that waits where it does not run.
    const WAITS: &str = "a simulated rank waits only while its own program runs";
    const MOMENT: Duration = Duration::from_millis(1);

    fn torus(n_ranks: u32) -> Shape {
        Shape::torus(&[n_ranks]).unwrap()
    }

    fn config(n_ranks: u32) -> SimulationConfig {
        // A rank may run a simulation of its own.
        SimulationConfig { stack_bytes: 1 << 20, ..SimulationConfig::new(torus(n_ranks), 1) }
    }

    fn panic_of<R>(outcome: Result<R, Error>) -> String {
        match outcome.map(drop) {
            Err(Error::RankPanicked { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn memory_beyond_the_address_space_is_refused() {
        for n_words in [1 << 60, 1 << 61, usize::MAX] {
            let panic = panic_of(simulate(&config(1), |_, rank| rank.map(n_words).len()));
            assert!(panic.contains("memory of a simulated rank"), "{n_words}: {panic}");
        }
    }

    #[test]
    fn a_panic_may_be_of_a_value_that_panics() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("the value of a panic is dropped");
            }
        }
        let saved = RefCell::new(None);
        let simulated = simulate::<()>(&config(1), |_, rank| {
            *saved.borrow_mut() = Some(rank.clone());
            std::panic::panic_any(Bomb)
        });
        assert_eq!(panic_of(simulated), "a value that is no text");
        let saved: Simulated = saved.take().unwrap();
        let waits = catch_unwind(AssertUnwindSafe(|| saved.sleep(MOMENT)));
        assert_eq!(panic_text(waits.unwrap_err()), WAITS);
        let emulated =
            emulate::<()>(&EmulationConfig::new(torus(2)), |_| std::panic::panic_any(Bomb));
        assert_eq!(panic_of(emulated), "a value that is no text");
    }

    #[test]
    fn no_rank_waits_in_the_place_of_another() {
        let ranks = RefCell::<Vec<Simulated>>::default();
        let all_wait = simulate(&config(2), |_, rank| {
            ranks.borrow_mut().push(rank.clone());
            let here = ranks.borrow().clone();
            here.iter().for_each(|rank| rank.sleep(MOMENT));
        });
        assert_eq!(panic_of(all_wait), WAITS);

        let ranks = RefCell::<Vec<Simulated>>::default();
        let in_a_barrier = simulate(&config(2), |comm, rank| {
            ranks.borrow_mut().push(rank.clone());
            comm.barrier().unwrap();
            if comm.rank() == 0 {
                // Then rank 1 waits in its second barrier.
                rank.sleep(MOMENT);
                let other = ranks.borrow().iter().find(|other| other.number() == 1).cloned();
                other.unwrap().sleep(MOMENT);
            }
            comm.barrier()
        });
        assert_eq!(panic_of(in_a_barrier), WAITS);

        let within = simulate(&config(1), |_, outer| {
            let inner = simulate(&config(1), |_, _| outer.sleep(MOMENT));
            outer.sleep(MOMENT);
            panic_of(inner)
        });
        assert_eq!(within.unwrap().results, [WAITS]);
    }
}
