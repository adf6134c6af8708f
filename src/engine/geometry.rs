//! What the compiler of programs is told, and where it fails.

use crate::error::CompileError;

/// What a program needs to know of a call besides the plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Elements of the vector, or of one user block.
    pub count: u64,
    /// Bytes of one element.
    pub elem_bytes: u64,
    /// The input is in the receive buffer (for a scatter's root: its output stays in the
    /// send buffer).
    pub in_place: bool,
    /// The longest message, in bytes; `None` leaves transfers whole.
    pub segment_bytes: Option<u64>,
}

/// Where in a plan compilation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileFailure {
    /// The lane.
    pub lane: usize,
    /// The step.
    pub step: usize,
    /// The reason.
    pub error: CompileError,
}
