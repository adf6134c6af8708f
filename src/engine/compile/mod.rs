//! From a plan to a program.
//!
//! Step by step and lane by lane, transfers become messages, and messages become tasks with
//! the ranges of bytes they read and write; [`Graph`](self::graph::Graph) derives from these
//! who waits for whom. Nothing here depends on which algorithm made the plan.

pub(super) mod checked;
pub(super) mod emit;
pub(super) mod geometry;
mod graph;
mod intervals;
pub(super) mod passing;
pub(super) mod program;
pub(super) mod readers;
mod regions;
mod space;
mod staging;
mod transfer;

use crate::error::CompileError;

use self::checked::CheckedPlan;
use self::emit::{ALIGN, PlacedLane, PortCompiler};
use self::geometry::{CompileFailure, Geometry};
use self::program::{Buffer, Program};
use self::space::{Home, WorkingSpace};

/// Makes the program of `plan` for a call of the given geometry.
///
/// # Errors
/// [`CompileFailure`] if the plan asks for something that the engine does not do.
pub fn compile(plan: &CheckedPlan, geometry: &Geometry) -> Result<Program, CompileFailure> {
    if !geometry.sizes.fit(plan.collective, plan.n_ranks) {
        return Err(CompileFailure { lane: 0, step: 0, error: CompileError::Sizes });
    }
    if !geometry.sizes.are_known() {
        plan.check_straight()?;
    }
    let direct = program(plan, geometry, Home::Output)?;
    match geometry.staged {
        Some(staged) if staged.is_for(&direct) => {
            let staged = program(plan, geometry, Home::Work(staged))?;
            let staged_bytes = staged.copied_bytes().saturating_sub(direct.copied_bytes());
            Ok(Program { staged_bytes, ..staged })
        }
        _ => Ok(direct),
    }
}

/// The program whose working spaces lie there.
fn program(plan: &CheckedPlan, geometry: &Geometry, home: Home) -> Result<Program, CompileFailure> {
    let mut spaces = spaces(plan, geometry, home);
    let n_ports = plan.n_ports() as usize;
    let (mut ports, mut closing) = (Vec::with_capacity(n_ports), Vec::new());
    for port in 0..n_ports {
        let lanes = spaces.extract_if(.., |(_, lane, _)| lane.port.index() == port).collect();
        let (program, moves) = PortCompiler::new(geometry, lanes).run()?;
        ports.push(program);
        closing.extend(moves);
    }
    let work_bytes = ports.iter().map(|port| port.needs[Buffer::Work as usize]).max().unwrap_or(0);
    let rank = plan.rank.0;
    Ok(Program { rank, ports, closing: closing.into(), staged_bytes: 0, work_bytes, call: 0 })
}

/// The working spaces of the lanes, at their places in the working buffer, which some have in common.
fn spaces<'a>(plan: &'a CheckedPlan, geometry: &'a Geometry, home: Home) -> Vec<PlacedLane<'a>> {
    let (mut bases, mut end) = (Vec::new(), 0);
    let lanes = plan.lanes.iter().enumerate();
    let placed = lanes.map(|(index, lane)| {
        let mut space = WorkingSpace::new(plan, index, geometry, home);
        let memory = space.memory(index);
        let known = bases.iter().find(|(other, _)| *other == memory).map(|&(_, base)| base);
        space.place_at(known.unwrap_or(end));
        if known.is_none() {
            bases.push((memory, end));
            end += space.work_bytes().next_multiple_of(ALIGN);
        }
        (index, lane, space)
    });
    placed.collect()
}
