//! hopbine: torus collectives.

pub mod memory;
