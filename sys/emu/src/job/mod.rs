//! Jobs and ranks: the ranks that share an arena, their places on the torus, and the rank that a thread acts for.

pub(crate) mod bootstrap;
pub(crate) mod core;
pub(crate) mod current;
pub(crate) mod device;
pub mod env;
pub(crate) mod nodes;
pub(crate) mod records;
pub(crate) mod sharing;
pub(crate) mod stepped;
pub(crate) mod stepping;
