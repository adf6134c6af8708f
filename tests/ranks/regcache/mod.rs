//! The registration cache against a device in software.
//!
//! `policy`: what is kept, replaced, evicted and refused, with events made by hand.
//! `events`: memory that really comes and goes, with the events of the process.

mod device;
mod events;
mod policy;
