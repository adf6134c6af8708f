//! The Tofu device in software.
//!
//! Any uTofu program runs on this crate: threads of one process, or processes of one host, are
//! the ranks; their virtual control queues, registered memory and barrier gates live in one arena
//! that all ranks map. A put is executed by the thread that posts it: bytes go straight into the
//! target's memory and a notice goes into the target's queue. There is no device thread.
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
//! error code); an operation that has already looked the registration up may still touch the
//! memory. Bytes that one rank reads while another writes them are whatever the memory system
//! yields; only aligned accesses of 1, 2, 4 or 8 bytes are indivisible. The notices order
//! everything else: what was put is visible to whoever has polled its notice.

mod mrq;
mod sync;

#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod atomic_op;
#[cfg(not(loom))]
mod bfpsum;
#[cfg(not(loom))]
pub mod c;
#[cfg(not(loom))]
mod coords;
#[cfg(not(loom))]
mod copy;
#[cfg(not(loom))]
mod desc;
#[cfg(not(loom))]
pub mod env;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod gates;
#[cfg(not(loom))]
mod ids;
#[cfg(not(loom))]
mod job;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod mem;
#[cfg(not(loom))]
mod model;
#[cfg(not(loom))]
mod nodes;
#[cfg(not(loom))]
mod ops;
#[cfg(not(loom))]
mod reduce;
#[cfg(not(loom))]
mod share;
#[cfg(not(loom))]
mod slots;
#[cfg(not(loom))]
mod toq;
#[cfg(not(loom))]
mod vcq;

#[cfg(not(loom))]
pub use error::JobError;
#[cfg(not(loom))]
pub use job::{Entered, Job};
#[cfg(not(loom))]
pub use model::Model;
