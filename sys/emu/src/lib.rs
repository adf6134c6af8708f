//! The Tofu device in software.
//!
//! Modules, each of which imports only modules above it:
//!
//! * `limits`: the device's limits, ids, coordinates, return codes;
//! * `shared`: the arena, locks, registrations, and copies between ranks;
//! * `timing`: the latency model and the links of the torus;
//! * `job`: ranks, nodes and their records; the environment's job; jobs that are stepped;
//! * `queues`: descriptors, and a rank's private half of a VCQ;
//! * `operations`: execution of descriptors, at once or late; posting and polling;
//! * `gates`: barrier gates and their reductions;
//! * [`mod@c`]: the C interface.
//!
//! Any uTofu program runs on this crate. The ranks are threads of one process or processes of one host; their virtual
//! control queues, registrations and barrier gates live in one arena that all ranks map. The thread that posts a put
//! also executes it: it copies the bytes into the target's memory and a notice into the target's queue. Only the late
//! mode ([`Model::late`]) has a device thread, or an owner that performs the stages that are due ([`Job::stepped`]).
//!
//! [`Job`] determines the rank of a thread: a thread enters a job explicitly; a thread that has not entered a job
//! belongs to the job that the environment describes (see [`mod@env`]). All communication goes through the C
//! interface, [`mod@c`].
//!
//! Facts about the interface follow Fujitsu's "Development Studio uTofu User's Guide" (uTofu 1.0) and runs of small
//! programs against Fujitsu's library over its simulated device.
//!
//! This crate must not depend on what the ranks compute: it knows neither collectives nor plans.
//!
//! # The contract of remote memory access
//!
//! As with the real device, a registration promises that the memory stays mapped until the last operation on it is
//! over. Deregistering makes operations that *start* later end with an error code. It waits for operations in
//! progress that move more than 256 bytes from or to the memory as their target, unless the process that performs them
//! has died; a shorter operation that has already looked up the registration may still access the memory. For the
//! source of a put and the destination of a get it waits only in the late mode: otherwise the rank's own post accesses
//! them. A rank that has polled the notice of a put sees all of the put's data. A rank that reads while another rank
//! writes may see old bytes beside new ones, with two promises: an aligned word of 1, 2, 4 or 8 bytes comes from one
//! put, and once the watched end of a put has changed the rest has changed too ([`Watched`]).

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
    job::current::RankGuard,
    job::env,
    job::stepping::{Stage, StepEvent},
    limits::error::JobError,
    shared::watched::Watched,
    timing::model::{Model, NodeLink},
};
