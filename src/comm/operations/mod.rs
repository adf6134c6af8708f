//! From a call to a running operation: the program is found, compiled or learnt, and started.

mod find;
pub(crate) mod hardware;
mod learning;
mod recorded;
pub(super) mod running;
pub(super) mod stages;
