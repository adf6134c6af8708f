//! From a plan to a program.
//!
//! Step by step and port by port, transfers become messages, and messages become tasks with
//! the ranges of bytes they read and write; [`Graph`](super::graph::Graph) derives from these
//! who waits for whom. Nothing here depends on which algorithm made the plan.

use std::collections::HashMap;

use hopbine_torus::plan::Plan;
use hopbine_torus::plan::layout::Extent;

use super::emit::PortCompiler;
use super::program::{Buffer, Program};
use super::space::WorkingSpace;

/// Parts of the working buffer start at cache lines.
const ALIGN: u64 = 64;

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

/// A plan that the engine does not execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Pieces of a vector differ in size, so they cannot be permuted.
    #[error("a vector's input and output must be whole or nothing")]
    VectorPlacement,
    /// Ports that share blocks would overwrite each other's input.
    #[error("ports that share a part cannot permute blocks in place")]
    SharedInPlace,
    /// Receives that overlap without being equal are folded one after another, which
    /// needs this rank's own value first.
    #[error("overlapping receives with different runs need own_at = 0, found {own_at}")]
    UnevenFold {
        /// [`own_at`](hopbine_torus::plan::Step::own_at) as found.
        own_at: u32,
    },
    /// More tasks than can be numbered.
    #[error("more than 2^32 - 1 tasks; use larger segments")]
    TooLong,
}

/// Where in a plan compilation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileFailure {
    /// The port.
    pub port: usize,
    /// The step.
    pub step: usize,
    /// The reason.
    pub error: CompileError,
}

/// Makes the program of `plan` for a call of the given geometry.
///
/// # Errors
/// [`CompileFailure`] if the plan asks for something that the engine does not do.
pub fn compile(plan: &Plan, geometry: &Geometry) -> Result<Program, CompileFailure> {
    let (bases, work_bytes) = work_layout(plan, geometry);
    let mut ports = Vec::with_capacity(plan.ports.len());
    let mut used_work = false;
    for (port, base) in bases.into_iter().enumerate() {
        let fail = |(step, error)| CompileFailure { port, step, error };
        let space = WorkingSpace::new(plan, port, geometry, base).map_err(|e| fail((0, e)))?;
        used_work |= space.region(&(0..0)).buffer == Buffer::Work && !space.is_token();
        ports.push(PortCompiler::new(&plan.ports[port], geometry, space).run().map_err(fail)?);
    }
    let work_bytes = if used_work { work_bytes } else { 0 };
    Ok(Program { collective: plan.collective, rank: plan.rank, ports, work_bytes, call: 0 })
}

/// For each port where its part starts in the working buffer, and the buffer's size.
fn work_layout(plan: &Plan, geometry: &Geometry) -> (Vec<u64>, u64) {
    let mut base_of_part = HashMap::new();
    let mut total = 0;
    let bases = plan.ports.iter().map(|port| {
        *base_of_part.entry(port.part).or_insert_with(|| {
            let base = total;
            let len = Extent::new(port, geometry.count).len() * geometry.elem_bytes;
            total += len.next_multiple_of(ALIGN);
            base
        })
    });
    (bases.collect(), total)
}
