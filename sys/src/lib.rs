//! The uTofu API as a run-time function table, and safe handles on top of it.
//!
//! uTofu is the user-level interface to the Tofu interconnect (Fujitsu, "Development Studio uTofu
//! User's Guide"). This crate is the only one that calls it: [`Api`] is the table of its functions,
//! filled from Fujitsu's library ([`Api::vendor`], opened at run time) or from the emulated device (feature `emu`:
//! [`Api::emulated`]); [`handles`] owns what the functions give out.
//!
//! This wing must not know of collectives, schedules or buffers of users: it moves bytes between
//! addresses that it is given, and says what happened.

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
