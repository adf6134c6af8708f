//! The collectives and the registry of algorithms that perform them.

mod kind;

pub use kind::{Collective, UnknownCollective};
