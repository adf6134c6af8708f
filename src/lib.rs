//! hopbine: MPI-style collectives along the links of a torus.
//!
//! Ranks are processes ([`init`]) or threads of one process ([`emulate`]); both give a
//! [`Communicator`] with every collective, blocking, non-blocking ([`Communicator::scope`]) and
//! persistent ([`Persistent`]), on slices of any [`reduce::Datatype`].
//!
//! Modules of this crate, from the caller to the wire:
//!
//! - `world`: start-up;
//! - `comm`: communicators, calls, choice of algorithms;
//! - `engine`: compiles plans to programs, and runs programs;
//! - [`reduce`]: element types and operators;
//! - `memory`: the registration cache;
//! - `timeline`: a trace of what each rank did and when;
//! - `endpoint`: messages over four wires.
//!
//! Plans come from the pure crate [`hopbine_torus`] (here [`torus`]). The crate `utofu` provides the uTofu interface,
//! either Fujitsu's or that of the emulated device.

// They panic if the stream cannot be written.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod comm;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(not(planted))]
mod planted;
#[cfg(planted)]
#[doc(hidden)]
pub mod planted;
pub mod reduce;
mod slab;
mod symbols;
mod sync;
mod timeline;
mod world;

// Users need none of these modules; the tests and benchmarks of the repository do.
#[cfg(not(feature = "internals"))]
mod endpoint;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod endpoint;
#[cfg(not(feature = "internals"))]
mod engine;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod engine;
#[cfg(not(feature = "internals"))]
mod memory;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod memory;

pub use comm::{
    Asked, Blocks, Call, CallOptions, Communicator, Explanation, Form, GatesInfo, Hardware,
    Persistent, Preferred, Registered, Repeated, Request, Scope, Short, Started, Tuning, Wanted,
};
pub use endpoint::UnexpectedStats;
pub use endpoint::shm::Reading;
pub use error::{Awaited, Blame, BlockProblem, Error, Fault, ScheduleProblem, WireError};
pub use hopbine_torus as torus;
pub use hopbine_torus::choose::{Choice, Wire};
pub use memory::{CacheMode, CacheStats};
pub use timeline::TraceConfig;
pub use world::{
    Attempt, Barrier, DeviceInfo, Drive, EmulationConfig, FreeQueues, Info, OnTimeout, Onesided,
    World, emulate, init, init_over, n_ranks_said,
};

#[cfg(feature = "emu")]
pub use world::Latency;
pub use world::init_mpi;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub use world::torus_of_nodes;

#[cfg(feature = "sim")]
pub use endpoint::sim::{Entry, Fate, Mapping, Simulated};
#[cfg(feature = "sim")]
pub use world::{SimulatedWire, Simulation, SimulationConfig, simulate};

/// The MPI library of the process, provided by the crate `hopbine-mpi` or by a program in C.
pub mod mpi {
    pub use crate::endpoint::mpi::ffi::{self, is_provided, provide};
}

/// The version and, in release builds, the commit: `0.1.0 (1234567)`, with `, changed` after the commit if files
/// differed from it.
pub const VERSION: &str = env!("HOPBINE_VERSION");

/// A rank of a communicator, numbered as in MPI. The planner's [`torus::Rank`] holds the same number in a type of its
/// own, since a plan has blocks and positions beside ranks.
pub type Rank = u32;

/// Compiles and runs the programs of the README and the guide as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/guide/rust.md")]
struct Guide;
