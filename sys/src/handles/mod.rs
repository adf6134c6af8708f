//! Owned handles: types that enforce the lifetimes and the rules of what uTofu names by numbers.
//!
//! * [`Vcq`] posts one-sided operations and polls their outcome; [`Registration`] is memory that
//!   such operations may touch. A VCQ lives until its last registration is gone.
//! * [`GateSet`] is a set of barrier gates.
//!
//! Nothing here waits, retries or counts credits: a full queue is the value [`PostError::Busy`],
//! and what to do about it is the caller's policy. Posting itself is `unsafe`, because a number (a
//! STADD) decides which memory is read and written; see [`Vcq`].

mod flags;
mod memory;
mod poll;
mod post;
mod together;
mod vbg;
mod vcq;

pub use flags::{ArmwOp, PostFlags, VcqFlags};
pub use memory::{Access, Registration};
pub use poll::{CompletionError, Notice, NoticeError};
pub use post::{Mark, PostError, Transfer};
pub use together::{Put, Source};
pub use vbg::{GateError, GateId, GateLink, GateSet, Operation, ReduceOp};
pub use vcq::{MOST_TOGETHER, Vcq};
