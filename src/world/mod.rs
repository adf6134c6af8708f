//! The world: ranks, communicators, and how collectives are called.
//!
//! A call passes from the method named after the collective ([`Communicator`], [`Scope`] or
//! [`Persistent`]) through the communicator, which finds or compiles the program, to the
//! engine, which runs it over an endpoint. This room must not know how programs are executed
//! nor what the wire is.

mod backend;
mod blocking;
mod blocks;
mod cache;
mod call;
mod card;
mod choice;
mod communicator;
mod config;
mod cores;
mod emulate;
mod expansions;
mod explain;
mod fujitsu;
mod info;
mod init;
mod inner;
mod kept;
mod key;
mod launcher;
mod layout;
mod learning;
mod leaving;
mod members;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(not(feature = "mpi"))]
#[path = "no_mpi.rs"]
mod mpi;
mod near;
mod options;
mod persistent;
mod place;
mod preferred;
mod programs;
mod rank;
mod raw;
mod ready;
mod registered;
mod running;
mod scope;
mod select;
mod shm;
mod short;
#[cfg(feature = "sim")]
mod simulate;
mod split;
mod stages;
mod tofu;
mod turns;
mod vector;

pub use blocks::{Blocks, Form};
pub use call::Call;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use card::check_card;
pub use communicator::Communicator;
pub use config::{Drive, EmulationConfig, Latency, OnTimeout};
pub use emulate::emulate;
pub use explain::Explanation;
pub use info::{Attempt, Barrier, DeviceInfo, GatesInfo, Info, Onesided};
pub use init::{World, init, init_over};
pub use launcher::n_ranks_said;
#[cfg(feature = "mpi")]
pub use mpi::joined::init_mpi;
pub use options::{CallOptions, Hardware};
pub use persistent::Persistent;
pub use place::near_cubic;
pub use preferred::Preferred;
pub use raw::{Repeated, Started};
pub use registered::Registered;
pub use scope::{Request, Scope};
pub use select::{Choice, Wire, choose, choose_unknown, learnt_choice};
pub use short::Short;
#[cfg(feature = "sim")]
pub use simulate::{SimulatedWire, Simulation, SimulationConfig, simulate};
