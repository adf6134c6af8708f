//! The uTofu API as a run-time function table, and safe handles on top of it.
//!
//! uTofu is the user-level interface to the Tofu interconnect (Fujitsu, "Development Studio uTofu User's Guide"). No
//! other crate calls uTofu. [`Api`] is the table of its functions, filled from Fujitsu's library ([`Api::vendor`],
//! opened at run time) or from the emulated device (feature `emu`: [`Api::emulated`]). [`handles`] owns the queues,
//! registrations and gates that the functions allocate.
//!
//! This crate depends on no collective, schedule or user buffer: it moves bytes between addresses that its callers
//! pass, and reports the outcome.

// They panic if the stream cannot be written.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod api;
mod caps;
#[cfg(feature = "emu")]
mod emulated;
mod error;
pub mod handles;
mod ids;
mod load;

pub use api::{Api, Functions};
pub use caps::{BarrierCaps, Coords, OnesidedCaps, Tni, Version};
pub use error::UtofuError;
pub use ids::{Cookie, Stadd, VcqId, VcqInfo};
pub use load::LoadError;
pub use utofu_sys as abi;
