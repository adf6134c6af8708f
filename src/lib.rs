//! hopbine: torus collectives.

pub mod endpoint;
pub mod engine;
mod error;
pub mod reduce;

pub use error::{Awaited, Error, WireError};
