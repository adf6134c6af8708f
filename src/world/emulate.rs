//! Ranks as threads of this process, on the emulated device.

use std::any::Any;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hopbine_meet::{Exchange, LocalExchange};
use hopbine_torus::choose::Wire;
use hopbine_torus::geometry::Shape;

use super::backend::{Backend, Layout};
use super::config::{EmulationConfig, spread, tuning_for};
use super::cores::{available_cores, n_workers};
use super::launcher::joined_by_all;
use super::registrations::stage_bytes;
use super::shm::Shm;
use super::tofu::Emulation;
use crate::comm::choice::tuning::Tuning;
use crate::comm::communicator::Communicator;
use crate::comm::programs::expansions::Expansions;
use crate::comm::state::world_state::Settings;
use crate::endpoint::utofu::OnNode;
use crate::engine::{EngineConfig, Failure};
use crate::error::{Error, WireError};
use crate::memory::CacheConfig;
use crate::sync::lock;

/// The most ports of a rank by default: the TNIs of a node of Fugaku.
const MOST_PORTS: u32 = 6;
/// Regions that each port's registration cache keeps; few, since there may be hundreds of ports in the process.
const KEPT_REGIONS: NonZeroU32 = NonZeroU32::new(64).expect("not zero");
/// Limit of the ranks' waits for each other at the start and the end: practically none. A rank that panics still
/// takes part.
const NO_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Runs `f` on every rank of an emulated torus, each in a thread of its own, and returns the
/// results in rank order.
///
/// ```
/// use hopbine::{EmulationConfig, emulate, reduce::Op};
/// use hopbine::torus::geometry::Shape;
///
/// let config = EmulationConfig::new(Shape::torus(&[2, 3]).unwrap());
/// let sums = emulate(&config, |comm| {
///     let mut vector = vec![f64::from(comm.rank()); 4];
///     comm.allreduce_in_place(&mut vector, Op::Sum).map(|()| vector[0])
/// });
/// assert_eq!(sums.unwrap(), vec![Ok(15.0); 6]);
/// ```
///
/// # Errors
/// [`Error::RankPanicked`] if `f` panics on a rank: the others' pending calls then fail. [`Error::Startup`] if the
/// emulated device cannot be set up, [`Error::Backend`] if hopbine was built without it; [`Error::Setting`] if the
/// configuration is invalid.
pub fn emulate<R: Send>(
    config: &EmulationConfig,
    f: impl Fn(&Communicator) -> R + Sync,
) -> Result<Vec<R>, Error> {
    // Only this part depends on the types, since callers compile it again for each.
    let results: Vec<_> = (0..config.shape.n_ranks()).map(|_| Mutex::new(None)).collect();
    on_every_rank(config, &|rank, comm| {
        let result = f(comm);
        *lock(&results[rank as usize]) = Some(result);
    })?;
    let of_rank = |result: Mutex<Option<R>>| {
        let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.unwrap_or_else(|| unreachable!("no rank has failed"))
    };
    Ok(results.into_iter().map(of_rank).collect())
}

/// The program of a rank; it gets the rank's number.
type RankProgram<'a> = &'a (dyn Fn(u32, &Communicator) + Sync);

/// Ports of each rank: `wanted`, or by default two per dimension of the shape, at most [`MOST_PORTS`].
///
/// # Errors
/// [`Error::Setting`] if that is 0.
pub(super) fn n_ports(wanted: Option<u32>, shape: &Shape) -> Result<u32, Error> {
    let most = hopbine_torus::plan::max_ports(shape).min(MOST_PORTS);
    match wanted.unwrap_or(most) {
        0 => Err(Error::Setting {
            setting: "ports",
            found: "0".to_owned(),
            valid: "at least 1".to_owned(),
        }),
        n => Ok(n),
    }
}

/// Runs `f` on every rank; see [`emulate`].
fn on_every_rank(config: &EmulationConfig, f: RankProgram<'_>) -> Result<(), Error> {
    let n_ranks = config.shape.n_ranks();
    let n_ports = n_ports(config.ports, &config.shape)?;
    let tuning = tuning_for(config.tuning.as_ref(), config.table())?;
    let emulation = match config.wire {
        Wire::Network => Some(Emulation::new(config)?),
        Wire::Memory => None,
    };
    let exchanges = LocalExchange::group(n_ranks as usize, NO_TIMEOUT);
    let world = EmulatedWorld {
        config,
        n_ports,
        tuning,
        cores: Cores::of(config, n_ranks as usize, n_ports as usize),
        emulation,
        failure: Arc::default(),
        expansions: Arc::default(),
    };
    let outcomes: Vec<Result<(), Error>> = std::thread::scope(|threads| {
        let spawned: Vec<_> = exchanges
            .into_iter()
            .zip(0..n_ranks)
            .map(|(exchange, rank)| {
                let world = &world;
                std::thread::Builder::new()
                    .name(format!("rank {rank}"))
                    .spawn_scoped(threads, move || world.run(rank, exchange, f))
                    .map_err(|error| (rank, error))
            })
            .collect();
        let join = |thread: Result<std::thread::ScopedJoinHandle<'_, _>, (u32, std::io::Error)>| {
            match thread {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                Err((rank, error)) => Err(startup(rank, "starting a rank's thread", &error)),
            }
        };
        spawned.into_iter().map(join).collect()
    });
    // The first panic is the cause of all other failures, also of other panics.
    match world.failure.reason() {
        Some(error @ Error::RankPanicked { .. }) => Err(error),
        _ => outcomes.into_iter().collect(),
    }
}

/// What all ranks of an emulation have in common.
struct EmulatedWorld<'a> {
    config: &'a EmulationConfig,
    n_ports: u32,
    tuning: Tuning,
    cores: Cores,
    /// The emulated device; `None` if the ranks use shared memory.
    emulation: Option<Emulation>,
    failure: Arc<Failure>,
    expansions: Arc<Expansions>,
}

impl EmulatedWorld<'_> {
    fn run(&self, rank: u32, mut exchange: LocalExchange, f: RankProgram<'_>) -> Result<(), Error> {
        let _entered = self.emulation.as_ref().map(|emulation| emulation.enter(rank));
        let comm = self.open(rank, &mut exchange)?;
        // Only values that `f` owned can be inconsistent after the panic.
        let result = catch_unwind(AssertUnwindSafe(|| f(rank, &comm))).map_err(|panic| {
            let error = Error::RankPanicked { rank, message: panic_text(panic) };
            comm.fail(&error);
            error
        });
        let closed = comm.close();
        // Peers may write their last credits until all ranks are here.
        match (&closed, exchange.barrier()) {
            // Also after a failure: this device writes during the post, and no rank posts any more.
            (Ok(()) | Err(Error::Poisoned(_)), Ok(())) => drop(comm),
            // Memory that peers may still write to must not be freed.
            _ => std::mem::forget(comm),
        }
        match closed {
            // `f` has seen this failure already, or has ignored it.
            Ok(()) | Err(Error::Poisoned(_)) => result,
            Err(error) => result.and(Err(error)),
        }
    }

    fn open(&self, rank: u32, exchange: &mut LocalExchange) -> Result<Communicator, Error> {
        let startup = |source| Error::Startup { rank, source };
        let EmulationConfig { shape, map, segment_bytes, reg_cache, .. } = self.config;
        let stage_bytes = stage_bytes(&self.tuning);
        let cache = reg_cache.then(|| CacheConfig {
            max_regions: KEPT_REGIONS,
            stage_bytes,
            ..CacheConfig::default()
        });
        let n_ports = self.n_ports as usize;
        let own_cores = self.cores.own_cores;
        let layout = Layout {
            n_ports,
            shape,
            map,
            on_node: OnNode::ALONE,
            own_cores,
            node_memory: None,
            limits: self.tuning.table().shm(),
        };
        let opened = match &self.emulation {
            Some(emulation) => emulation.device(cache).open(exchange, &layout),
            None => Shm::from_env()?.open(exchange, &layout),
        };
        let opened = opened.map_err(startup)?;
        let config = EngineConfig {
            workers: self.cores.n_workers,
            cores: self.cores.of_rank(rank as usize),
            own_cores,
            timeout: self.config.timeout,
            on_timeout: self.config.on_timeout,
            trace: self.config.trace.clone(),
        };
        let settings = Settings {
            tuning: self.tuning.clone(),
            gate_sum: self.config.gate_sum,
            llc_bytes: None,
            preferred: self.config.preferred.clone(),
            expansions: Some(self.expansions.clone()),
        };
        let (place, limit) =
            ((shape.clone(), map.clone(), *segment_bytes), self.config.unexpected_bytes);
        let engine = (config, self.failure.clone());
        joined_by_all(opened.communicator(rank, place, engine, limit, settings), exchange, None)
    }
}

/// The message of a panic.
pub(super) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| {
        // It may be of a type that panics when it is dropped.
        std::mem::forget(panic);
        "a value that is no text".to_owned()
    })
}

fn startup(rank: u32, call: &'static str, error: &std::io::Error) -> Error {
    Error::Startup { rank, source: WireError::new(call, error) }
}

/// How workers are assigned to cores.
struct Cores {
    /// Workers of each rank.
    n_workers: usize,
    own_cores: bool,
    /// Cores of the workers, rank by rank, used again from the start if shorter; empty if workers are not pinned.
    list: Vec<usize>,
}

impl Cores {
    fn of(config: &EmulationConfig, n_ranks: usize, n_ports: usize) -> Self {
        let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let n_workers = n_workers(config.drive, n_ports, (available / n_ranks).saturating_sub(1));
        let own_cores = n_ranks * (n_workers + 1) <= available;
        let list = match (&config.cores, n_workers > 0 && own_cores) {
            (list, _) if !list.is_empty() => list.clone(),
            (_, false) => Vec::new(),
            (_, true) => {
                // The ranks' threads are not pinned; they find the cores that are left.
                spread(&available_cores(), None, n_ranks * n_workers).unwrap_or_default()
            }
        };
        Cores { n_workers, own_cores, list }
    }

    fn of_rank(&self, rank: usize) -> Vec<usize> {
        let n = self.n_workers;
        let all = self.list.iter().copied().cycle().skip(rank * n % self.list.len().max(1));
        all.take(if self.list.is_empty() { 0 } else { n }).collect()
    }
}
