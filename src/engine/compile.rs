//! From a plan to a program.
//!
//! Step by step and lane by lane, transfers become messages, and messages become tasks with
//! the ranges of bytes they read and write; [`Graph`](super::graph::Graph) derives from these
//! who waits for whom. Nothing here depends on which algorithm made the plan.

use std::collections::HashMap;

use hopbine_torus::plan::layout::Extent;
use hopbine_torus::plan::{Invalid, Plan};

use crate::error::CompileError;

use super::emit::PortCompiler;
use super::geometry::{CompileFailure, Geometry};
use super::program::{Buffer, Program};
use super::space::WorkingSpace;

/// Parts of the working buffer start at cache lines.
const ALIGN: u64 = 64;

/// Makes the program of `plan` for a call of the given geometry.
///
/// # Errors
/// [`CompileFailure`] if the plan asks for something that the engine does not do.
pub fn compile(plan: &Plan, geometry: &Geometry) -> Result<Program, CompileFailure> {
    if let Err(found) = plan.validate()
        && let Some(Invalid { lane, step, defect }) = found.into_iter().next()
    {
        let (lane, step) = (lane.unwrap_or(0), step.unwrap_or(0));
        return Err(CompileFailure { lane, step, error: CompileError::Invalid(defect) });
    }
    let (bases, work_bytes) = work_layout(plan, geometry);
    let mut ports: Vec<PortCompiler<'_>> = Vec::new();
    ports.resize_with(plan.n_ports() as usize, || PortCompiler::new(geometry));
    let mut used_work = false;
    for (lane, base) in bases.into_iter().enumerate() {
        let space = WorkingSpace::new(plan, lane, geometry, base)
            .map_err(|error| CompileFailure { lane, step: 0, error })?;
        used_work |= space.region(&(0..0)).buffer == Buffer::Work && !space.is_token();
        ports[usize::from(plan.lanes[lane].port)].add_lane(lane, &plan.lanes[lane], space);
    }
    let work_bytes = if used_work { work_bytes } else { 0 };
    let ports = ports.into_iter().map(PortCompiler::run).collect::<Result<_, _>>()?;
    let (collective, rank) = (plan.collective, plan.rank.0);
    Ok(Program { collective, rank, ports, work_bytes, call: 0 })
}

/// For each lane where its part starts in the working buffer, and the buffer's size.
fn work_layout(plan: &Plan, geometry: &Geometry) -> (Vec<u64>, u64) {
    let mut base_of_part = HashMap::new();
    let mut total = 0;
    let bases = plan.lanes.iter().map(|lane| {
        *base_of_part.entry(lane.part).or_insert_with(|| {
            let base = total;
            let len = Extent::new(lane, geometry.count).len() * geometry.elem_bytes;
            total += len.next_multiple_of(ALIGN);
            base
        })
    });
    (bases.collect(), total)
}
