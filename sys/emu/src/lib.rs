//! The Tofu device in software.
//!
//! Rooms, each of which imports only those above it:
//!
//! * `limits`: what the device has, ids, coordinates, return codes;
//! * `shared`: the arena, locks, registrations, and how bytes move between ranks;
//! * `timing`: the latency model and the links of the torus;
//! * `job`: ranks, nodes and their records; the environment's job; jobs that are stepped;
//! * `queues`: descriptors, and a rank's own half of a VCQ;
//! * `operations`: what they do at once or late, posting and polling;
//! * `gates`: barrier gates and their reductions;
//! * [`mod@c`]: the C interface.
//!
//! Any uTofu program runs on this crate: threads of one process, or processes of one host, are
//! the ranks; their virtual control queues, registered memory and barrier gates live in one arena
//! that all ranks map. A put is executed by the thread that posts it: bytes go straight into the
//! target's memory and a notice goes into the target's queue. Only the late mode ([`Model::late`]) has a
//! device thread, or an owner that does what is due ([`Job::stepped`]).
//!
//! What a rank is, is decided in [`Job`]: threads enter a job explicitly; a thread that has not
//! entered one belongs to the job that the environment describes (see [`mod@env`]). The C interface
//! is [`mod@c`]; it is the only way in for communication.
//!
//! Facts about the interface follow Fujitsu's "Development Studio uTofu User's Guide" (uTofu 1.0)
//! and runs of small programs against Fujitsu's library over its simulated device.
//!
//! This room must not know what the ranks compute: it has never heard of collectives or plans.
//!
//! # The contract of remote memory access
//!
//! As with the real device, a registration promises that the memory stays mapped until the last
//! operation on it is over. Deregistering stops operations that *start* later (they end with an
//! error code), and waits for those that move more than 256 bytes just then, unless the process that
//! performs them has died; a shorter one that has already looked the registration up may still touch the
//! memory. Whoever has polled the notice of a put sees all of it. A rank that reads while another
//! writes may see old bytes beside new ones, with two promises: an aligned word of 1, 2, 4 or 8
//! bytes comes from one put, and once the watched end of a put has changed the rest has too
//! ([`Watched`]).

mod mrq;
mod sync;

// Loom models the queue of notices only.
#[cfg(not(loom))]
pub mod c;
#[cfg(not(loom))]
mod gates;
#[cfg(not(loom))]
mod job;
#[cfg(not(loom))]
mod limits;
#[cfg(not(loom))]
mod operations;
#[cfg(not(loom))]
mod queues;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod timing;

#[cfg(not(loom))]
pub use self::{
    job::core::Job,
    job::current::Entered,
    job::env,
    job::stepping::{Stage, Stepped},
    limits::error::JobError,
    shared::watched::Watched,
    timing::model::{Model, NodeLink},
};
