//! From a plan to a program.
//!
//! Step by step and lane by lane, transfers become messages, and messages become tasks with
//! the ranges of bytes they read and write; [`Graph`](super::graph::Graph) derives from these
//! who waits for whom. Nothing here depends on which algorithm made the plan.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use hopbine_torus::plan::{Invalid, Plan, Step};

use crate::error::CompileError;

use super::emit::{ALIGN, PortCompiler};
use super::geometry::{CompileFailure, Geometry};
use super::passing::positions;
use super::program::{Buffer, Program};
use super::space::WorkingSpace;

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
    if !geometry.sizes.fit(plan.collective, plan.n_ranks) {
        return Err(CompileFailure { lane: 0, step: 0, error: CompileError::Sizes });
    }
    if !geometry.sizes.are_known() {
        check_straight(plan)?;
    }
    let mut ports: Vec<PortCompiler<'_>> = Vec::new();
    ports.resize_with(plan.n_ports() as usize, || PortCompiler::new(geometry));
    // Where in the working buffer the lanes' spaces start, which some have in common.
    let (mut bases, mut end) = (HashMap::new(), 0);
    for (index, lane) in plan.lanes.iter().enumerate() {
        let mut space = WorkingSpace::new(plan, index, geometry);
        let base = *bases.entry(space.memory(index)).or_insert_with(|| {
            let base = end;
            end += space.work_bytes().next_multiple_of(ALIGN);
            base
        });
        space.place_at(base);
        ports[usize::from(lane.port)].add_lane(index, lane, space);
    }
    let ports = ports.into_iter().map(PortCompiler::run).collect::<Result<Vec<_>, _>>()?;
    let (ports, closing): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
    let work_bytes = ports.iter().map(|port| port.needs[Buffer::Work as usize]).max().unwrap_or(0);
    let (collective, rank) = (plan.collective, plan.rank.0);
    Ok(Program { collective, rank, ports, closing: closing.concat().into(), work_bytes, call: 0 })
}

/// A rank that knows the sizes of its own blocks alone can send what it gives, and receive what
/// it gets, and nothing in between.
fn check_straight(plan: &Plan) -> Result<(), CompileFailure> {
    let Plan { collective, rank, root, n_ranks, .. } = *plan;
    for (index, lane) in plan.lanes.iter().enumerate() {
        let gives = lane.space.positions(collective.gives(rank, root, n_ranks), rank, false);
        let gets = lane.space.positions(collective.gets(rank, root, n_ranks), rank, true);
        let holds = |ranges: &[Range<u32>], at: &u32| ranges.iter().any(|range| range.contains(at));
        let mut received = HashSet::new();
        for (step, Step { sends, recvs, .. }) in lane.steps.iter().enumerate() {
            let is_own = |at: u32| holds(&gives, &at) && !received.contains(&at);
            let is_straight =
                positions(sends).all(is_own) && positions(recvs).all(|at| holds(&gets, &at));
            if !is_straight {
                return Err(CompileFailure { lane: index, step, error: CompileError::Forwards });
            }
            received.extend(positions(recvs));
        }
    }
    Ok(())
}
