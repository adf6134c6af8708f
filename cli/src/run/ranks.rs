//! The ranks of a run: threads of this process, processes of a job, or simulated ranks.

use clap::ValueEnum;
use hopbine::{Drive, EmulationConfig, SimulatedWire, SimulationConfig, Wire, World};
use hopbine_meet::variables::{
    self, BACKEND, DRIVE, PORTS, RANK, RANK_MAP, RANKS_PER_NODE, RENDEZVOUS, Reader, SIZE, TORUS,
    Variable, from_environment,
};

use super::{Args, Written};
use crate::args::{BackendArg, Place, default_ports};
use crate::error::CliError;

/// The configuration of the ranks, and the job if this process is one of its ranks.
pub struct Ranks {
    /// Shape, map and ports; further settings of ranks that are threads.
    pub config: EmulationConfig,
    /// Settings of simulated ranks; None if ranks are not simulated.
    pub simulation: Option<SimulationConfig>,
    /// The job's world, if this process is a rank of a job.
    pub world: Option<World>,
}

/// Maximum number of ranks for which the simulated wire delays posts and messages at random. With more ranks it does
/// not ([`SimulationConfig::is_calm`]), which is faster.
const MOST_WITH_RANDOM_DELAYS: u32 = 256;

impl Ranks {
    /// Chooses the kind of ranks from the arguments and the environment; see [`n_ranks_said`](hopbine::n_ranks_said).
    ///
    /// # Errors
    /// [`CliError`].
    pub fn new(args: &Args, written: &mut Written) -> Result<Self, CliError> {
        let from_env =
            BACKEND.word(&from_environment).map_err(|error| CliError::Usage(error.to_string()))?;
        let from_env = from_env.and_then(|name| BackendArg::from_str(name, false).ok());
        if let Some(wire) = args.backend.or(from_env).and_then(BackendArg::simulated) {
            return Ranks::simulated(args, wire);
        }
        match hopbine::n_ranks_said().map_err(CliError::World)? {
            1 => Ranks::threads(args),
            _ => Ranks::processes(args, written),
        }
    }

    fn simulated(args: &Args, wire: SimulatedWire) -> Result<Self, CliError> {
        let shape = &args.place.torus;
        let usage = |error: hopbine::Error| CliError::Usage(error.to_string());
        let mut simulation = SimulationConfig::from_env(shape.clone(), args.seed).map_err(usage)?;
        simulation.wire = wire;
        simulation.map = args.place.rank_map()?;
        simulation.ports = Some(args.ports.unwrap_or(default_ports(shape)));
        simulation.is_calm = shape.n_ranks() > MOST_WITH_RANDOM_DELAYS;
        let mut config = EmulationConfig::new(shape.clone());
        config.map = simulation.map.clone();
        config.ports = simulation.ports;
        config.tuning =
            Some(simulation.tuning.clone().unwrap_or_else(|| simulation.table().clone()));
        config.preferred = simulation.preferred.clone();
        Ok(Ranks { config, simulation: Some(simulation), world: None })
    }

    fn threads(args: &Args) -> Result<Self, CliError> {
        let shape = &args.place.torus;
        let mut config = EmulationConfig::from_env(shape.clone())
            .map_err(|error| CliError::Usage(error.to_string()))?;
        config.map = args.place.rank_map()?;
        config.ports = Some(args.ports.unwrap_or(default_ports(shape)));
        if let Some(backend) = args.backend {
            config.wire = backend.wire();
        }
        config.drive = args.drive.unwrap_or(config.drive);
        Ok(Ranks { config, simulation: None, world: None })
    }

    fn processes(args: &Args, written: &mut Written) -> Result<Self, CliError> {
        let world = join_world(&args.place, args.ports, args.drive, args.backend);
        // A rank that cannot read the schedule joins with other settings than the other ranks. Its read error is more
        // useful than the resulting mismatch.
        world.map(Ranks::joined).map_err(|error| match written.take() {
            Some(Err(unread)) => unread,
            _ => error,
        })
    }

    /// The ranks of a world.
    pub fn joined(world: World) -> Self {
        let comm = world.communicator();
        let mut config = EmulationConfig::new(comm.shape().clone());
        config.tuning = Some(comm.tuning().clone());
        config.preferred = comm.preferred().clone();
        config.ports = Some(comm.n_ports());
        config.wire = match world.info().backend {
            "shm" => Wire::Memory,
            _ => Wire::Network,
        };
        Ranks { config, simulation: None, world: Some(world) }
    }

    /// Whether this process writes the report.
    pub fn reports(&self) -> bool {
        self.own() == 0
    }

    /// The rank of this process; 0 if all ranks are in this process.
    pub fn own(&self) -> u32 {
        self.world.as_ref().map_or(0, |world| world.communicator().rank())
    }

    /// A note on variables of the environment that are ignored because only ranks that are processes read them.
    pub fn unread(&self) -> Option<String> {
        if self.world.is_some() {
            return None;
        }
        let of_processes = |variable: &&&Variable| {
            matches!(variable.reader, Reader::Process | Reader::EmulatedDevice)
                && ![RANK, SIZE, RENDEZVOUS].contains(variable)
        };
        let set = |variable: &&&Variable| variable.get(&from_environment).is_some();
        let unread: Vec<&str> = variables::ALL
            .iter()
            .filter(of_processes)
            .filter(set)
            .map(|variable| variable.name)
            .collect();
        (!unread.is_empty()).then(|| {
            let names = unread.join(", ");
            format!(
                "{names}: only ranks that are processes read this; `hopbine launch` starts such ranks."
            )
        })
    }

    /// The name of the wire in reports.
    pub fn backend(&self) -> &'static str {
        let simulated = self.simulation.as_ref().map(|simulation| simulation.wire);
        match (&self.world, simulated, self.config.wire) {
            (Some(world), ..) => world.info().backend,
            (None, Some(SimulatedWire::Messages), _) => "sim",
            (None, Some(SimulatedWire::Utofu), _) => "sim-utofu",
            (None, None, Wire::Network) => "emulated",
            (None, None, Wire::Memory) => "shm",
        }
    }
}

/// Joins the job of this process. The arguments override the environment; the job's torus must be that of `place`.
///
/// # Errors
/// [`CliError`].
pub fn join_world(
    place: &Place,
    ports: Option<u32>,
    drive: Option<Drive>,
    backend: Option<BackendArg>,
) -> Result<World, CliError> {
    let shape = &place.torus;
    // The variable contains the torus of nodes; the number of ranks on each node is a variable of its own.
    let torus = shape.without_node_axis().to_string();
    let per_node = shape.node_dim().map(|_| shape.ranks_per_node().to_string());
    let ports = ports.map(|ports| ports.to_string());
    let drive = drive.map(Drive::name);
    let settings = [
        (TORUS.name, Some(torus.as_ref())),
        (RANKS_PER_NODE.name, per_node.as_deref().map(AsRef::as_ref)),
        (RANK_MAP.name, Some(place.map.as_setting())),
        (PORTS.name, ports.as_deref().map(AsRef::as_ref)),
        (DRIVE.name, drive.map(AsRef::as_ref)),
        (BACKEND.name, backend.map(|backend| backend.name().as_ref())),
    ];
    for (name, value) in settings {
        if let Some(value) = value {
            // SAFETY: this program has no other threads yet.
            unsafe { std::env::set_var(name, value) };
        }
    }
    let world = hopbine::init().map_err(CliError::World)?;
    let found = world.communicator().shape();
    if found != shape {
        return Err(CliError::Usage(format!(
            "--torus: the job's ranks are on a torus of {found}, not of {shape}"
        )));
    }
    Ok(world)
}
