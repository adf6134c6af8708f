//! The world: ranks, communicators, and how collectives are called.
//!
//! A call passes from the method named after the collective ([`Communicator`], [`Scope`] or
//! [`Persistent`]) through the communicator, which finds or compiles the program, to the
//! engine, which runs it over an endpoint. This room must not know how programs are executed
//! nor what the wire is.

mod blocking;
mod call;
mod communicator;
mod config;
mod emulate;
mod options;
mod persistent;
mod scope;
mod select;

pub use call::Call;
pub use communicator::Communicator;
pub use config::{Drive, EmulationConfig};
pub use emulate::emulate;
pub use options::CallOptions;
pub use persistent::Persistent;
pub use scope::{Request, Scope};
pub use select::{Choice, choose};
