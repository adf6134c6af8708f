//! The engine: executes plans.
//!
//! [`compile()`] turns a plan and the sizes of a call into a [`Program`], a static graph of
//! sends, receives, copies and folds over regions of four buffers. A [`PortRun`] executes one
//! port's part of it over an [`Endpoint`](crate::endpoint::Endpoint). [`Engine`] holds the
//! ports of a rank and the threads that drive them.
//!
//! The engine knows no algorithm: whatever order it needs follows from which bytes tasks read
//! and write. It must not know what an endpoint is made of, nor where buffers come from.
//!
//! A wire with registered memory that has to register the user's anew in every call gets the same plans with
//! working spaces in working memory (`Staged`): messages from the user's input are packed, and the output is
//! copied at the end.
//!
//! # Results do not depend on timing
//! Tasks that touch the same bytes keep the plan's order, and a fold takes its operands in a
//! fixed order once all have arrived. So one plan gives the same bits in every run.
//!
//! # No deadlock
//! Give every message the level (step, piece number); it is the same on both sides because
//! both cut transfers by the same rule. Then
//! - a send waits for earlier steps, whose results it sends, and, if it is packed, for a slot
//!   of the pack ring, that is, for a send of lower level (the ring has a slot for each send
//!   of a step, so messages of one level never wait for one another);
//! - a receive is posted after receives of its own or lower level have been *posted*, after
//!   its step's landing slot was given up by a message of lower level, and after enough
//!   receives of lower level have finished (the window holds a whole step);
//! - where a lane has a window, both wait for messages of earlier steps of it;
//! - where ports share lanes, a task waits for the same tasks, some of which are other ports', and a slot is
//!   given up when the fold of its message has waited for those of the same level before it;
//! - what has landed leaves staging when the sends that still read its destination have gone.
//!   A slot of the landing ring is used only if these have its own level or a lower one;
//!   otherwise the message gets bytes of the exchange area that no other message of the step
//!   uses. That is why a block that is stored where a block of the same step is still sent
//!   from (an exchange in place) lands in staging: if it landed at once, it would have to wait
//!   for that send, the send for the peer's receive, and that one for the peer's send.
//!
//! So every wait, also one across ranks (a send finishes when the receive has been posted), is
//! for something of a lower level, or of the same level but an earlier kind in the order
//! receive posted, send finished, message received, staging left. A cycle cannot exist, as
//! long as endpoints keep their contract.

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
pub use engine::Engine;
pub use gates_watch::GatesWatch;
pub use run::backoff::OnIdle;
#[cfg(feature = "internals")]
pub use run::crossings::Crossings;
pub use run::failure::Failure;
pub use run::group::{Advance, Advanced, EngineConfig, OnTimeout};
#[cfg(feature = "internals")]
pub use run::memories::Memory;
pub use run::operation::Operation;
#[cfg(feature = "internals")]
pub use run::port_run::PortRun;
pub use run::port_run::StartOrder;
pub use run::user_memory::{UserKeys, UserMemory};
