//! The collectives and the registry of algorithms that perform them.

mod kind;
pub mod registry;

pub use kind::{Collective, UnknownCollective};
pub use registry::{Algorithm, Request};
