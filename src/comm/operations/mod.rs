//! From a call to a running operation: the program is found, compiled or learnt, and started.

pub(super) mod explain;
mod find;
pub(crate) mod hardware;
pub(super) mod recorded;
mod run;
pub(super) mod running;
mod short_run;
mod size_exchange;
mod stages;
pub(super) mod started;
