//! The engine, which executes plans.
//!
//! [`compile()`] turns a plan and the sizes of a call into a [`Program`], a static graph of
//! sends, receives, copies and folds over regions of four buffers. A [`PortRun`](run::port_run::PortRun) executes one
//! port's part of it over an [`Endpoint`](crate::endpoint::Endpoint). [`Engine`] holds the
//! ports of a rank and the threads that drive them.
//!
//! The engine does not depend on algorithms: the order of tasks follows from the bytes that they read and write. Nor
//! does it depend on the implementation of an endpoint, or on the origin of buffers.
//!
//! If a wire would have to register the user's memory anew in every call, the same plans are compiled with their
//! working spaces in working memory (`Staged`): messages from the user's input are packed, and the output is copied
//! at the end.
//!
//! # Results do not depend on timing
//! Tasks that touch the same bytes keep the plan's order, and a fold takes its operands in a fixed order once all
//! have arrived. So a plan gives the same bits in every run.
//!
//! # No deadlock
//! Every message has a level (step, piece number), the same on both sides because both cut transfers by the same
//! rule.
//! - A send waits for earlier steps, whose results it sends. A packed send also waits for a slot of the pack ring,
//!   that is, for a send of a lower level: the ring has a slot for each send of a step, so messages of one level
//!   never wait for each other.
//! - A receive is posted after receives of its own or a lower level have been *posted*, after a message of a lower
//!   level has released the receive slot, and after enough receives of lower levels have finished (the receive window
//!   holds a whole step).
//! - In a lane with a window, sends and receives also wait for messages of earlier steps of the lane.
//! - If ports share lanes, a task waits for the same tasks, some of them on other ports. A receive slot is released
//!   when its message's fold has waited for the folds of the same level before it.
//! - A message leaves staging when the sends that still read its destination have finished. It is received in a slot of
//!   the receive ring only if these sends have its own level or a lower one; otherwise in bytes of the exchange area
//!   that no other message of the step uses. So if a block is stored where a block of the same step is still sent from
//!   (an exchange in place), it is received in staging: a receive into the destination would have to wait for that
//!   send, the send for the peer's receive, and that receive for the peer's send.
//!
//! So every wait, including one across ranks (a send finishes when the receive has been posted), is for an event of a
//! lower level, or of the same level but an earlier kind in the order: receive posted, send finished, message
//! received, staging left. A cycle cannot exist, as long as endpoints fulfil their contract.

mod compile;
mod diagnosis;
mod drain;
#[expect(clippy::module_inception, reason = "the file holds what the room is named after")]
mod engine;
mod gates_watch;
mod pace;
mod run;
#[cfg(all(test, feature = "emu"))]
mod tests;
mod waiting;

#[cfg(feature = "internals")]
pub use crate::error::CompileError;
pub use compile::checked::CheckedPlan;
pub use compile::compile;
pub use compile::emit::{compile_sizes, learnt, log_words};
#[cfg(feature = "internals")]
pub use compile::geometry::Staged;
pub use compile::geometry::{BlockSizes, CompileFailure, Geometry, Known, Learnt, Sizes};
pub use compile::passing::positions;
pub use compile::program::Program;
#[cfg(feature = "internals")]
pub use compile::program::{Buffer, Fold, ListRange, Move, PortProgram, Region, Task};
pub use diagnosis::operation::OperationWatch;
pub use drain::Admitted;
pub use engine::Engine;
pub use gates_watch::GatesWatch;
pub use run::backoff::OnIdle;
pub use run::failure::Failure;
pub use run::group::{EngineConfig, OnTimeout, ProgressHook, ProgressState};
#[cfg(feature = "internals")]
pub use run::memories::Memory;
pub use run::operation::Operation;
#[cfg(feature = "internals")]
pub use run::port_flags::PortFlags;
#[cfg(feature = "internals")]
pub use run::port_run::PortRun;
pub use run::port_run::StartOrder;
pub use run::user_memory::{UserKeys, UserMemory};
