//! hopbine's C interface: `include/hopbine.h`, `libhopbine.so` and `libhopbine.a`.
//!
//! Every call looks its handles up in a table (`handles`), checks what it was given, and ends in
//! a code (`failure`): nothing that a C program passes is trusted but the addresses of its
//! buffers, and no panic leaves a call. The functions are written out, one by one, since the
//! header is made from their source.

mod blocking;
mod calls;
mod comms;
mod failure;
mod handles;
mod known;
mod lists;
mod nonblocking;
mod persistent;
mod registered;
mod report;
mod requests;
mod start;
mod vector;

pub use blocking::*;
pub use calls::*;
pub use comms::*;
pub use failure::*;
pub use handles::{hopbine_comm_t, hopbine_request_t};
pub use nonblocking::*;
pub use persistent::*;
pub use registered::*;
pub use report::*;
pub use requests::*;
pub use start::*;
pub use vector::*;
