//! The device, built on the queue of notices: what ranks share ([`arena`], [`layout`]), what they own
//! ([`vcq`], [`toq`], [`targets`]), and what moves data between them ([`ops`], [`copy`]). [`mod@c`] is the way in.

pub(crate) mod arena;
pub(crate) mod atomic_op;
pub(crate) mod bfpsum;
pub mod c;
pub(crate) mod checked;
pub(crate) mod coords;
pub(crate) mod copy;
pub(crate) mod desc;
pub mod env;
pub(crate) mod error;
pub(crate) mod gates;
pub(crate) mod ids;
pub(crate) mod job;
pub(crate) mod late;
pub(crate) mod launcher;
pub(crate) mod layout;
pub(crate) mod links;
pub(crate) mod lock;
pub(crate) mod meet;
pub(crate) mod mem;
pub(crate) mod model;
pub(crate) mod nodes;
pub(crate) mod ops;
pub(crate) mod own;
pub(crate) mod place;
pub(crate) mod reduce;
pub(crate) mod rendezvous;
pub(crate) mod session;
pub(crate) mod share;
pub(crate) mod slots;
pub(crate) mod stepped;
pub(crate) mod targets;
pub(crate) mod toq;
pub(crate) mod tracer;
pub(crate) mod vcq;
pub(crate) mod watched;

pub use error::JobError;
pub use job::{Entered, Job};
pub use launcher::Launched;
pub use model::{Model, NodeLink};
pub use own::{SEALS, lengthen, open_memory, open_own};
#[cfg(any(test, feature = "fuzzing"))]
pub use rendezvous::play as play_rendezvous;
pub use stepped::{Stage, Stepped};
pub use tracer::{Leave, yama_scope};
pub use watched::Watched;
