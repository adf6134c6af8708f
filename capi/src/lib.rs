//! hopbine's C interface: `include/hopbine.h`, `libhopbine.so` and `libhopbine.a`.
//!
//! Every call looks its handles up in a table (`handles`), checks its arguments, and returns a code (`failure`). Only
//! the addresses of buffers cannot be checked. No panic leaves a call. The functions of the collectives are generated
//! from the table of their signatures, as are the header and the Fortran modules (`tests/generated`).

// They panic if the stream cannot be written.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod calls;
mod collectives;
mod comms;
mod failure;
mod handles;
mod registered;
mod regular;
mod repeated;
mod report;
mod requests;
mod start;
mod vector;

pub use calls::*;
pub use collectives::*;
pub use comms::*;
pub use failure::*;
pub use handles::{hopbine_comm_t, hopbine_request_t};
pub use registered::*;
pub use repeated::*;
pub use report::*;
pub use requests::*;
pub use start::*;
