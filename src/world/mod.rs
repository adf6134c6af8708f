//! Start-up: which device, which ranks, which torus, which cores; and worlds of threads, of MPI programs and
//! of simulated ranks.

mod backend;
mod choice;
mod config;
mod cores;
mod domains;
mod emulate;
mod fujitsu;
mod groups;
mod info;
mod init;
#[cfg(feature = "mpi")]
mod joined;
mod launcher;
mod layout;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(not(feature = "mpi"))]
#[path = "no_mpi.rs"]
mod mpi;
mod neighbourhood;
mod node_memory;
mod place;
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
#[cfg(feature = "mpi")]
pub use joined::init_mpi;
pub use launcher::n_ranks_said;
#[cfg(feature = "internals")]
pub use neighbourhood::torus_of_nodes;
#[cfg(feature = "sim")]
pub use simulate::{SimulatedWire, Simulation, SimulationConfig, simulate};
#[cfg(feature = "fuzzing")]
pub(crate) use startup_record::check_startup_record;
