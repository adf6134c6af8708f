//! Ranks as threads of this process, on the emulated device.

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use utofu_emu::Job;
use utofu_sys::Api;
use utofu_sys::bootstrap::{Exchange, LocalExchange};

use super::communicator::Communicator;
use super::config::{Drive, EmulationConfig, spread};
use super::device::Site;
use crate::engine::{Engine, EngineConfig, Poison};
use crate::error::{Error, WireError};
use crate::memory::CacheConfig;

/// Ports that ranks have by default at most: the TNIs of a node of Fugaku.
const MOST_PORTS: u32 = 6;
/// Regions that each port's cache keeps: there may be hundreds of ports in the process.
const KEPT_REGIONS: NonZeroU32 = NonZeroU32::new(64).expect("not zero");
/// How long ranks wait for each other to start and to end: as long as it takes. A rank that
/// panics still takes part.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 3600);

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
/// [`Error::RankPanicked`] if `f` panics on a rank: the others' pending calls then fail.
/// [`Error::Startup`] if the emulated device cannot be set up; [`Error::Setting`] if the
/// configuration makes no sense.
pub fn emulate<R: Send>(
    config: &EmulationConfig,
    f: impl Fn(&Communicator) -> R + Sync,
) -> Result<Vec<R>, Error> {
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
    // The device counts nodes with the first size running fastest, shapes with the last.
    let sizes: Vec<u32> = config.shape.sizes().into_iter().rev().collect();
    let of_rank = |rank| config.map.node_of(&config.shape, rank).index();
    let job = Job::coords_for_shape(&sizes).and_then(|nodes| {
        let coords = (0..n_ranks).map(|rank| nodes[of_rank(rank)]).collect();
        Job::with_model(coords, config.latency)
    });
    let job = job.map_err(|error| Error::Startup {
        rank: 0,
        source: WireError {
            call: "setting up the emulated device",
            reason: error.to_string(),
            peer: None,
        },
    })?;
    let poison = Arc::new(Poison::default());
    let exchanges = LocalExchange::group(n_ranks as usize, PATIENCE);
    let cores = Cores::of(config, n_ranks as usize, n_ports as usize);
    let run = |rank: u32, exchange| {
        let _entered = job.enter(rank as usize);
        let world = World { config, n_ports, cores: &cores, job: &job, poison: &poison };
        world.run(rank, exchange, &f)
    };
    let outcomes: Vec<Result<R, Error>> = std::thread::scope(|threads| {
        let spawned: Vec<_> = exchanges
            .into_iter()
            .zip(0..n_ranks)
            .map(|(exchange, rank)| {
                let run = &run;
                std::thread::Builder::new()
                    .name(format!("rank {rank}"))
                    .spawn_scoped(threads, move || run(rank, exchange))
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
    // A panic is the cause of whatever else failed, also of other panics.
    match poison.reason() {
        Some(error @ Error::RankPanicked { .. }) => Err(error),
        _ => outcomes.into_iter().collect(),
    }
}

/// What all ranks of an emulation have in common.
struct World<'a> {
    config: &'a EmulationConfig,
    n_ports: u32,
    cores: &'a Cores,
    job: &'a Arc<Job>,
    poison: &'a Arc<Poison>,
}

impl World<'_> {
    fn run<R>(
        &self,
        rank: u32,
        mut exchange: LocalExchange,
        f: &impl Fn(&Communicator) -> R,
    ) -> Result<R, Error> {
        let comm = self.open(rank, &mut exchange)?;
        // Whatever the panic has left half done stays with the values that `f` owned.
        let result = catch_unwind(AssertUnwindSafe(|| f(&comm))).map_err(|panic| {
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned());
            let message = message.unwrap_or_else(|| "a value that is no text".to_owned());
            let error = Error::RankPanicked { rank, message };
            self.poison.set(&error);
            error
        });
        let closed = comm.close();
        // Peers may write their last credits until all ranks are here.
        match (&closed, exchange.barrier()) {
            // After a failure too: this device writes within the post, and nobody posts here.
            (Ok(()) | Err(Error::Poisoned(_)), Ok(())) => drop(comm),
            // Memory that peers may still write to must not be freed.
            _ => std::mem::forget(comm),
        }
        match closed {
            // What `f` has seen already, or has chosen not to.
            Ok(()) | Err(Error::Poisoned(_)) => result,
            Err(error) => result.and(Err(error)),
        }
    }

    fn open(&self, rank: u32, exchange: &mut LocalExchange) -> Result<Communicator, Error> {
        let startup = |source| Error::Startup { rank, source };
        let EmulationConfig { shape, map, segment_bytes, reg_cache, .. } = self.config;
        let site = Site {
            api: Api::emulated(),
            cache: reg_cache
                .then(|| CacheConfig { max_regions: KEPT_REGIONS, ..CacheConfig::default() }),
            place: 0,
            cores: self.cores.per_rank,
            identity: Some((self.job.clone(), rank as usize)),
        };
        let n_ports = self.n_ports as usize;
        let (endpoints, hardware) = site.open(n_ports, shape, map, exchange).map_err(startup)?;
        let config = EngineConfig {
            workers: self.cores.workers,
            cores: self.cores.of_rank(rank as usize, n_ports),
            own_cores: self.cores.own_cores,
            timeout: self.config.timeout,
        };
        let engine = Engine::new(rank, endpoints, config, self.poison.clone())?;
        let (shape, map) = (shape.clone(), map.clone());
        Ok(Communicator::new(shape, map, *segment_bytes, engine, hardware, site))
    }
}

fn startup(rank: u32, call: &'static str, error: &std::io::Error) -> Error {
    Error::Startup { rank, source: WireError { call, reason: error.to_string(), peer: None } }
}

/// How threads and cores are matched.
struct Cores {
    workers: bool,
    own_cores: bool,
    per_rank: usize,
    /// For each worker of each rank; used again from the start if shorter; empty: not pinned.
    list: Vec<usize>,
}

impl Cores {
    fn of(config: &EmulationConfig, n_ranks: usize, n_ports: usize) -> Self {
        let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let with_workers = n_ranks * (n_ports + 1);
        let workers = match config.drive {
            Drive::Workers => true,
            Drive::Inline => false,
            Drive::Auto => with_workers <= available,
        };
        let own_cores = if workers { with_workers } else { n_ranks } <= available;
        let list = match (&config.cores, workers && own_cores) {
            (list, _) if !list.is_empty() => list.clone(),
            (_, false) => Vec::new(),
            (_, true) => {
                let cores = core_affinity::get_core_ids().unwrap_or_default();
                let cores: Vec<usize> = cores.into_iter().map(|core| core.id).collect();
                // The ranks' threads are not pinned; they find the cores that are left.
                spread(&cores, None, n_ranks * n_ports).unwrap_or_default()
            }
        };
        Cores { workers, own_cores, per_rank: available / n_ranks, list }
    }

    fn of_rank(&self, rank: usize, n_ports: usize) -> Vec<usize> {
        let all = self.list.iter().copied().cycle().skip(rank * n_ports % self.list.len().max(1));
        all.take(if self.list.is_empty() { 0 } else { n_ports }).collect()
    }
}
