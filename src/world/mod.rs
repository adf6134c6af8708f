//! Start-up: which device, which ranks, which torus, which cores; and worlds of threads, of MPI programs and
//! of simulated ranks.

mod backend;
mod backend_choice;
mod caches;
mod config;
mod cores;
mod domains;
mod emulate;
mod fujitsu;
mod groups;
mod info;
mod init;
mod launcher;
mod layout;
mod mpi;
mod neighbourhood;
mod node_memory;
mod over_mpi;
mod placement;
mod registrations;
mod shm;
#[cfg(feature = "sim")]
mod simulate;
mod startup_record;
mod tables;
mod tear_down;
mod threads;
mod tofu;

#[cfg(feature = "emu")]
pub use config::Latency;
pub use config::{Drive, EmulationConfig, OnTimeout};
pub use emulate::emulate;
pub use info::{Attempt, Barrier, DeviceInfo, FreeQueues, Info, Onesided};
pub use init::{World, init, init_over};
pub use launcher::n_ranks_said;
#[cfg(feature = "internals")]
pub use neighbourhood::torus_of_nodes;
pub use over_mpi::init_mpi;
#[cfg(feature = "sim")]
pub use simulate::{SimulatedWire, Simulation, SimulationConfig, simulate};
#[cfg(feature = "fuzzing")]
pub(crate) use startup_record::check_startup_record;
