//! The exchange through files beside the rendezvous, with plain reads and writes: it works wherever the ranks
//! share a file system, across containers and network name spaces, over NFS or Lustre.

mod access;
mod bootstrap;
#[cfg(any(test, feature = "fuzzing"))]
mod hostile;
mod leaving;
mod piece;
mod record;
mod slots;
mod wait;

pub use bootstrap::Bootstrap;
#[cfg(any(test, feature = "fuzzing"))]
pub use hostile::play as play_records;
