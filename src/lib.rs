//! hopbine: torus collectives.

pub mod memory;
pub mod reduce;
