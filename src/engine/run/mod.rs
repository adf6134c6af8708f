//! Execution of programs: ports with their endpoints and the runs of operations on them, the threads that drive
//! ports, and their memory.

pub(super) mod backoff;
pub(super) mod failure;
pub(super) mod group;
pub(super) mod hints;
pub(super) mod memories;
pub(super) mod operation;
#[cfg(test)]
mod polled;
pub(super) mod port;
mod port_failure;
pub(super) mod port_flags;
mod port_recorded;
pub(super) mod port_run;
mod progress;
mod ready;
mod records;
mod registration;
pub(super) mod user_memory;
mod window;
pub(super) mod work_memory;
pub(super) mod worker;
