//! The registration cache against a device in software.
//!
//! - `policy`: what the cache keeps, replaces, evicts and refuses, with events posted by the tests.
//! - `ports`: ports that share a cache, and explicit registration.
//! - `events`: memory that is really mapped and unmapped, with the events of the process.

mod device;
mod events;
mod policy;
mod ports;
