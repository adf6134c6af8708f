//! hopbine: torus collectives.

pub mod reduce;
