//! The exchange through files at the path of the rendezvous, with plain reads and writes. It works on every file
//! system that the ranks share, across containers and network name spaces, over NFS or Lustre.

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
