//! Jobs and ranks: which ranks share an arena, where they are on the torus, and for which rank a thread acts.

pub(crate) mod core;
pub(crate) mod current;
pub(crate) mod device;
pub mod env;
pub(crate) mod meet;
pub(crate) mod nodes;
pub(crate) mod records;
pub(crate) mod sharing;
pub(crate) mod stepped;
pub(crate) mod stepping;
