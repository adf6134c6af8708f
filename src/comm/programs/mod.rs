//! The programs that communicators keep: for which calls, how many, and for how long.

pub(super) mod cache;
pub(crate) mod expansions;
pub(super) mod idle_budget;
pub(super) mod key;
pub(super) mod ready;
