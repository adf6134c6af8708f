//! hopbine: torus collectives.

pub mod endpoint;
pub mod engine;
mod error;
pub mod memory;
pub mod reduce;
pub mod world;

pub use error::{Awaited, Error, WireError};
pub use hopbine_torus as torus;
pub use world::{
    CallOptions, Communicator, Drive, EmulationConfig, Hardware, Latency, Persistent, Scope, World,
    emulate, init,
};
