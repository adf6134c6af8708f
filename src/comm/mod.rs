//! Communicators, and how collectives are called.
//!
//! A call passes from the method named after the collective ([`Communicator`], [`Scope`] or
//! [`Persistent`]) through the communicator, which finds or compiles the program, to the engine, which
//! runs it over an endpoint:
//!
//! - `call`: the request of a caller, checked;
//! - `choice`: which algorithm;
//! - `programs`: the programs that a communicator keeps, and their keys;
//! - `state`: what a communicator consists of;
//! - `operations`: from a call to a running operation;
//! - `forms`: blocking, non-blocking and persistent calls, with one count or one for each block.
//!
//! Nothing here may depend on how programs are executed, on the wire, or on how a world starts.

pub(crate) mod call;
pub(crate) mod choice;
pub(crate) mod communicator;
mod forms;
mod operations;
pub(crate) mod programs;
mod split;
pub(crate) mod state;

pub use call::Call;
pub use call::blocks::{Blocks, Form};
pub use call::options::{CallOptions, Hardware};
pub use choice::preferred::Preferred;
pub use choice::tuning::Tuning;
pub use choice::wanted::{Asked, Wanted};
pub use communicator::Communicator;
pub use forms::persistent::Persistent;
pub use forms::raw::Started;
pub use forms::registered::Registered;
pub use forms::scope::{Request, Scope};
pub use forms::short::Short;
pub use operations::explain::Explanation;
pub use operations::started::Repeated;
pub use state::small::GatesInfo;
