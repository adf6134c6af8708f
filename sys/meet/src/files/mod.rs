//! The exchange through files at the path of the rendezvous, with plain reads and writes. It works on every file
//! system that the ranks share, across containers and network name spaces, over NFS or Lustre.

mod access;
mod backoff;
mod bootstrap;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod piece;
mod record;
mod slots;
mod teardown;

pub use bootstrap::Bootstrap;
#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::play as fuzz_records;
