//! The registration cache against a device in software.
//!
//! `policy`: what is kept, replaced, evicted and refused, with events made by hand.
//! `ports`: ports that share a cache, and explicit registration.
//! `events`: memory that really comes and goes, with the events of the process.

mod device;
mod events;
mod policy;
mod ports;
