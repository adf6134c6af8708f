//! The world of this process: which backend, which ranks, which torus.

use std::sync::Arc;
use std::time::Duration;

use hopbine_meet::Exchange;
use hopbine_meet::variables::{
    ALGORITHM, BACKEND, DRIVE, Lookup, PORTS, RANKS_PER_NODE, SHM, SHM_GROUP, TORUS, TUNING,
    from_environment, timeout,
};

use hopbine_torus::choose::Wire;

use super::backend::{Backend, Layout, NodeMemory};
use super::backend_choice;
use super::caches::llc_bytes;
use super::config::{self, DEFAULT_TIMEOUT};
use super::cores::{
    Pinning, PinningInput, Unbound, assign_cores, available_cores, cores_hash, current_core,
};
use super::fujitsu;
use super::groups::Groups;
use super::info::{Attempt, FreeQueues, Info, environment};
use super::launcher::{connect_ranks, joined_by_all};
use super::layout::{RankMapSetting, lay_out, n_ports, torus};
use super::mpi::{self, Session};
use super::neighbourhood::{Neighbourhood, PlacementSources, Sharing, TorusSource};
use super::startup_record::{CommonSettings, StartupRecord};

use super::placement::Placement;
use super::registrations::parse_cache;
use super::shm::Shm;
use super::threads;
use crate::comm::choice::tuning::Tuning;
use crate::comm::communicator::Communicator;
use crate::comm::state::small::GatesInfo;
use crate::comm::state::world_state::{MOST_RANKS, Settings};
use crate::endpoint::exchange_error;
use crate::endpoint::shm::Reading;
use crate::endpoint::utofu::OnNode;
use crate::engine::EngineConfig;
use crate::error::{Error, WireError};
use crate::memory::stores::CAN_STREAM;
use crate::timeline::TraceConfig;

/// This process as one of the ranks of a job.
///
/// Dropping it waits for the other ranks, at most for the timeout, as they may still write to this rank's memory.
/// Remaining handles of its communicator then refuse every call.
pub struct World {
    /// `None` only while being dropped.
    pub(super) comm: Option<Communicator>,
    pub(super) exchange: Box<dyn Exchange>,
    /// The MPI session, if the ranks are those of one.
    pub(super) session: Option<Arc<Session>>,
    pub(super) facts: StartupFacts,
}

/// Facts and decisions of the start-up.
pub(super) struct StartupFacts {
    pub(super) backend: Box<dyn Backend>,
    /// Backends that cannot be used, each with the reason.
    pub(super) tried: Vec<(String, String)>,
    pub(super) coords: [u8; 6],
    /// Where the torus is from, in words.
    pub(super) torus_source: &'static str,
    pub(super) ranks_per_node: u32,
    pub(super) n_hosts: u32,
    /// Ranks with which this one communicates through shared memory.
    pub(super) in_memory: u32,
    pub(super) reading: Reading,
    pub(super) pinning: Pinning,
    /// How long the ranks wait for each other.
    pub(super) timeout: Duration,
}

/// Joins the world that the environment describes; `hopbine env` lists the variables. All ranks must call it; it returns
/// when they have.
///
/// Without `HOPBINE_TORUS` the torus is the first of these that is known: the shape of the job in Fujitsu MPI, on Tofu one
/// of several dimensions; on Tofu the box that the ranks' Tofu coordinates fill; over MPI the hosts as nodes, if each has
/// equally many ranks, more than one, and neither `HOPBINE_RANKS_PER_NODE` nor `HOPBINE_RANK_MAP` is set; in shared memory
/// a line of up to 64 ranks; else [`near_cubic`](hopbine_torus::geometry::near_cubic).
///
/// ```
/// use hopbine::reduce::Op;
///
/// let world = hopbine::init()?;
/// let comm = world.communicator();
/// let mut sum = [comm.rank() + 1];
/// comm.allreduce_in_place(&mut sum, Op::Sum)?;
/// assert_eq!(sum[0], (1..=comm.size()).sum());
/// # Ok::<(), hopbine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Backend`] lists the backends that were tried. [`Error::Meeting`] names ranks that did not appear within
/// `HOPBINE_TIMEOUT`, or a rank that could not start. [`Error::Layout`] and [`Error::Setting`] say what does not
/// fit. [`Error::Startup`] says why the device cannot be set up.
pub fn init() -> Result<World, Error> {
    let bootstrap = mpi::find(&from_environment)?.map_or(Bootstrap::Environment, Bootstrap::Mpi);
    World::join(&from_environment, bootstrap)
}

/// As [`init`], for ranks that are already connected: `exchange` gives this rank's number and the number of ranks,
/// in place of `HOPBINE_RANK`, `HOPBINE_SIZE` and `HOPBINE_RENDEZVOUS`. It may use PMIx or sockets, for example.
///
/// # Errors
/// As [`init`].
pub fn init_over(exchange: Box<dyn Exchange>) -> Result<World, Error> {
    World::join(&from_environment, Bootstrap::Exchange(exchange))
}

/// The timeline's settings with a number that only this world has: rank 0's. All ranks record timelines, or none does.
///
/// # Errors
/// [`WireError`] of the exchange.
fn of_world(trace: TraceConfig, exchange: &mut dyn Exchange) -> Result<TraceConfig, WireError> {
    let numbers = exchange.allgather(&hopbine_meet::fresh_number().to_le_bytes());
    let numbers = numbers.map_err(|error| exchange_error(&error))?;
    let world = numbers.iter().next().and_then(|first| first.try_into().ok());
    Ok(TraceConfig { world: world.map(u64::from_le_bytes), ..trace })
}

/// How the ranks are connected.
enum Bootstrap {
    /// By the environment.
    Environment,
    /// By this exchange.
    Exchange(Box<dyn Exchange>),
    /// By MPI: they are the ranks of this session.
    Mpi(Arc<Session>),
}

impl World {
    /// Joins the world of the ranks of a session.
    pub(super) fn of_session(session: Arc<Session>) -> Result<World, Error> {
        World::join(&from_environment, Bootstrap::Mpi(session))
    }

    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_deref()
    }

    fn join(get: Lookup<'_>, bootstrap: Bootstrap) -> Result<World, Error> {
        let session =
            if let Bootstrap::Mpi(session) = &bootstrap { Some(session.clone()) } else { None };
        let joined = World::join_this_rank(get, bootstrap).and_then(World::with_clocks_compared);
        if let (Err(error), Some(session)) = (&joined, session) {
            let timeout = timeout(get).ok().flatten();
            session.give_up(timeout.unwrap_or(DEFAULT_TIMEOUT), &error.to_string());
        }
        joined
    }

    /// Joins the world, unless a rank fails to.
    fn join_this_rank(get: Lookup<'_>, bootstrap: Bootstrap) -> Result<World, Error> {
        let timeout = timeout(get)?.unwrap_or(DEFAULT_TIMEOUT);
        let drive = config::drive(get)?;
        let on_timeout = config::on_timeout(get)?;
        let wanted_cores = config::cores(get)?;
        let unexpected_bytes = config::unexpected_bytes(get)?;
        let trace = config::trace(get)?;
        let ports: Option<u32> = PORTS.number(get)?;
        let wanted = ALGORITHM.get(get).unwrap_or_default();
        let preferred = config::preferred(get)?;
        let gate_sum = config::gate_sum(get)?;
        let wanted_table = config::tuning(get)?;
        // Only Tofu registers memory.
        let cache = parse_cache(get, wanted_table.as_ref().unwrap_or(Tuning::tofu_d()))?;
        let per_node = RANKS_PER_NODE.number(get)?.unwrap_or(1);
        let per_node_said = RANKS_PER_NODE.get(get).unwrap_or_default();
        let shm = SHM.switch(get, true)?.then(Shm::from_env).transpose()?;
        let (mut exchange, session) = match bootstrap {
            Bootstrap::Environment => (connect_ranks(get, timeout)?, None),
            Bootstrap::Exchange(exchange) => (exchange, None),
            Bootstrap::Mpi(session) => (session.exchange(timeout), Some(session)),
        };
        exchange.set_timeout(timeout);
        let (available, caller) = (available_cores(), current_core());
        // For threads of the cache and the device, and workers that are not pinned.
        let _unbound = Unbound::on(&available);
        let name = BACKEND.get(get);
        let (backend, tried) =
            backend_choice::choose(name.as_deref(), cache, session.as_ref(), exchange.as_mut())?;
        let tuning = config::tuning_for(wanted_table.as_ref(), backend.tuning())?;
        let drive = backend.drive(drive).map_err(|valid| {
            let found = DRIVE.get(get).unwrap_or_default();
            DRIVE.wrong_here(found, format!("inline or auto: {valid}"))
        })?;
        let (rank, n_ranks) = (exchange.rank() as u32, exchange.size() as u32);
        let startup = |source: WireError| Error::Startup { rank, source };
        if u64::from(n_ranks) > MOST_RANKS {
            let reason = format!("{n_ranks} are more than {MOST_RANKS} ranks");
            return Err(Error::Layout { rank, reason });
        }
        // Checked before the emulated device reads the same settings, since its errors are less specific.
        let torus =
            torus(get, n_ranks, per_node).map_err(|reason| Error::Layout { rank, reason })?;
        let coords = backend.coordinates().map_err(startup)?;
        let wanted_map = RankMapSetting::read(get);
        let settings = format!(
            "HOPBINE_TORUS={} HOPBINE_RANKS_PER_NODE={per_node_said} HOPBINE_PORTS={} \
             HOPBINE_RANK_MAP={} HOPBINE_SHM={} HOPBINE_SHM_GROUP={} HOPBINE_ALGORITHM={wanted} HOPBINE_GATE_SUM={} \
             HOPBINE_TRACE={} backend={}",
            TORUS.get(get).unwrap_or_default(),
            ports.map_or(String::new(), |ports| ports.to_string()),
            wanted_map.comparable_text(),
            if shm.is_some() { "on" } else { "off" },
            SHM_GROUP.get(get).unwrap_or_default(),
            if gate_sum { "on" } else { "off" },
            if trace.is_some() { "on" } else { "off" },
            backend.name(),
        );
        let logical = fujitsu::coordinates().and_then(|logical| logical.torus_place());
        let torus_place = logical.as_ref().map(|(_, place)| *place);
        let (cores, host) = (cores_hash(&available), hopbine_meet::host());
        let table = tuning.table();
        let path = TUNING.get(get).unwrap_or_else(|| table.name().to_owned());
        let common = CommonSettings { settings: &settings, table, path: &path };
        let record = StartupRecord::new(cores, host, coords, torus_place, common);
        let is_free = per_node_said.is_empty() && matches!(wanted_map, RankMapSetting::Unset);
        let sources = PlacementSources {
            logical: logical.as_ref().filter(|_| torus.is_none()),
            source: match torus {
                None if backend.is_physical() => TorusSource::TofuCoordinates,
                None if is_free => TorusSource::Hosts,
                _ => TorusSource::Settings,
            },
            // If no device reports which node a rank is on, the setting decides.
            per_node: RANKS_PER_NODE.get(get).filter(|_| !backend.is_physical()).map(|_| per_node),
            hosts: matches!(wanted_map, RankMapSetting::ByHost),
        };
        let neighbourhood = Neighbourhood::exchange(exchange.as_mut(), &record, common, &sources)?;
        let layout_error = |reason| Error::Layout { rank, reason };
        let (placement, torus_source) = match neighbourhood.placement {
            Some((placement, source)) => (Some(placement), source),
            None if torus.is_some() => (None, TORUS.name),
            None => (None, "the number of ranks"),
        };
        let given = placement.map(Placement::shape_and_map).transpose().map_err(layout_error)?;
        let (wire, hosts) = (backend.wire(), &neighbourhood.hosts);
        let (shape, map) = lay_out(&wanted_map, torus, given, wire, n_ranks, hosts, per_node)
            .map_err(layout_error)?;
        let on_node = neighbourhood.node.n;
        let set = RANKS_PER_NODE.get(get).filter(|_| backend.is_physical());
        if let Some(found) = set.filter(|_| on_node != per_node as usize) {
            let wanted = format!(
                "{on_node}, the number of ranks that the device has on rank {rank}'s node, or unset"
            );
            return Err(RANKS_PER_NODE.wrong_here(found, wanted).into());
        }
        let n_ports = n_ports(ports, &shape, backend.n_interfaces().map_err(startup)?)?;
        let pinning = assign_cores(&PinningInput {
            drive,
            n_ports,
            available: &available,
            sharers: neighbourhood.cores.n,
            place: neighbourhood.cores.place,
            caller,
            wanted: &wanted_cores,
            place_on_node: neighbourhood.node.place,
            n_threads: threads::n_threads(get),
            bound_to: &threads::bound_to(get),
            groups: &Groups::of_machine(),
            is_preloaded: threads::is_preloaded(),
        });
        let pinning = if wanted_cores.is_empty() { pinning } else { pinning.note_refused() };
        let own_cores = pinning.own_cores;
        let node_memory = shm
            .filter(|_| neighbourhood.several_on_a_node)
            .map(|Shm { may_read, .. }| NodeMemory { node: neighbourhood.node_number, may_read });
        let Sharing { place, n } = neighbourhood.node;
        let on_node = OnNode { place, n_ranks: n };
        let limits = tuning.table().shm();
        let layout =
            Layout { n_ports, shape: &shape, map: &map, on_node, own_cores, node_memory, limits };
        let trace = trace.map(|trace| of_world(trace, exchange.as_mut())).transpose();
        let trace = trace.map_err(startup)?;
        let opened = backend.open(exchange.as_mut(), &layout).map_err(startup)?;
        let reading = opened.reading.clone();
        let config = EngineConfig {
            workers: pinning.n_workers,
            cores: pinning.cores.clone(),
            own_cores,
            timeout,
            on_timeout,
            trace,
        };
        debug_assert_eq!(n_ranks, shape.n_ranks());
        let ranks_here = n_ranks.div_ceil(neighbourhood.n_hosts) as usize;
        // Only non-temporal stores depend on it.
        let llc_bytes = CAN_STREAM.then(|| llc_bytes(&available, ranks_here)).flatten();
        let settings = Settings { tuning, gate_sum, llc_bytes, preferred, expansions: None };
        let place = (shape, map, None);
        let engine = (config, Arc::default());
        let comm = opened.communicator(rank, place, engine, unexpected_bytes, settings);
        let comm = joined_by_all(comm, exchange.as_mut(), session.as_deref())?;
        let in_memory = match node_memory {
            _ if wire == Wire::Memory => n_ranks - 1,
            None => 0,
            Some(_) => neighbourhood.neighbours,
        };
        let facts = StartupFacts {
            backend,
            tried,
            coords,
            torus_source,
            ranks_per_node: neighbourhood.ranks_per_node,
            n_hosts: neighbourhood.n_hosts,
            in_memory,
            reading,
            pinning,
            timeout,
        };
        Ok(World { comm: Some(comm), exchange, session, facts })
    }

    /// Compares the ranks' clocks, if timelines of ranks on several hosts are recorded. All ranks record them, or
    /// none does.
    fn with_clocks_compared(self) -> Result<World, Error> {
        let comm = self.communicator();
        if let Some(tracer) = comm.inner.world.engine.tracer().filter(|_| self.facts.n_hosts > 1) {
            tracer.compare(|| comm.barrier())?;
        }
        Ok(self)
    }

    /// The communicator of all ranks.
    pub fn communicator(&self) -> &Communicator {
        let Some(comm) = &self.comm else { unreachable!("taken in drop only") };
        comm
    }

    /// The backend's name: `tofu`, `shm`, `emu` or `mpi`.
    pub fn backend(&self) -> &'static str {
        self.facts.backend.name()
    }

    /// Whether waiting threads have a core of their own, and spin.
    pub fn has_own_cores(&self) -> bool {
        self.facts.pinning.own_cores
    }

    /// The free queues of each TNI of a Tofu device for this process. This creates all of them, one after the other,
    /// and frees them again, so no process should open ports meanwhile.
    pub fn free_queues(&self) -> Vec<FreeQueues> {
        self.facts.backend.free_queues()
    }

    /// Backend, device, place, cores, and the state of caches and gates.
    pub fn info(&self) -> Info {
        let (comm, facts) = (self.communicator(), &self.facts);
        Info {
            hopbine: crate::VERSION,
            backend: facts.backend.name(),
            device: facts.backend.describe(),
            tried: facts
                .tried
                .iter()
                .cloned()
                .map(|(backend, reason)| Attempt { backend, reason })
                .collect(),
            tofu_coordinates: facts.coords,
            rank: comm.rank(),
            size: comm.size(),
            ranks_per_node: facts.ranks_per_node,
            hosts: facts.n_hosts,
            in_memory: facts.in_memory,
            memory_reading: facts.reading.clone(),
            torus: comm.shape().to_string(),
            torus_source: facts.torus_source,
            coordinates: comm.coordinates().as_slice().to_vec(),
            ports: comm.n_ports(),
            workers: facts.pinning.n_workers,
            driven_by: facts.pinning.driven_by(),
            worker_cores: facts.pinning.cores.clone(),
            own_cores: facts.pinning.own_cores,
            timeout_seconds: comm.timeout().as_secs_f64(),
            long_waits: comm.long_waits(),
            gates: match comm.small_collectives() {
                Ok(gates) => gates.describe(),
                Err(reason) => GatesInfo::Absent { reason: reason.to_owned() },
            },
            registration_cache: comm.cache_stats(),
            environment: environment(),
        }
    }
}
