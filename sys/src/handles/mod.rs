//! Owned handles: types that enforce lifetimes and usage rules of the resources that uTofu names by numbers.
//!
//! * [`Vcq`] posts one-sided operations and polls their outcome; [`Registration`] is memory that these operations may
//!   access. A VCQ lives until its last registration is dropped.
//! * [`GateSet`] is a set of barrier gates.
//!
//! This module does not wait, retry or count credits: a full queue is the value [`PostError::Busy`], and the caller
//! decides how to react. Posting is `unsafe`, because a number (a STADD) decides which memory is read and written;
//! see [`Vcq`].

mod batch;
mod flags;
mod memory;
mod poll;
mod post;
mod vbg;
mod vcq;

pub use batch::{Put, Source};
pub use flags::{ArmwOp, PostFlags, VcqFlags};
pub use memory::{Access, Registration};
pub use poll::{CompletionError, Notice, NoticeError};
pub use post::{PostError, PostOptions, Transfer};
pub use vbg::{GateError, GateId, GateLink, GateSet, Operation, ReduceOp};
pub use vcq::{MAX_BATCH, Vcq};
