//! hopbine: torus collectives.
