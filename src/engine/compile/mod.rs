//! Compiles a plan to a program.
//!
//! Step by step and lane by lane, transfers become messages, and messages become tasks with the ranges of bytes that
//! they read and write; [`Graph`](self::graph::Graph) derives the dependencies between tasks from these ranges. The
//! compiler does not depend on the algorithm that made the plan.

pub(super) mod checked;
pub(super) mod emit;
pub(super) mod geometry;
mod graph;
mod intervals;
pub(super) mod passing;
mod ports;
pub(super) mod program;
pub(super) mod readers;
mod regions;
mod space;
mod staging;
mod transfer;

use hopbine_torus::{LaneId, PortId, StepId};

use crate::error::CompileError;

use self::checked::CheckedPlan;
use self::emit::{ALIGN, Common, PlacedLane, PortCompiler};
use self::geometry::{CompileFailure, Geometry};
use self::program::{Buffer, PortProgram, Program};
use self::space::{SpaceMemory, WorkingSpace};

/// Compiles `plan` for a call of the given geometry.
///
/// # Errors
/// [`CompileFailure`] if the plan needs something that the engine does not support.
pub fn compile(plan: &CheckedPlan, geometry: &Geometry) -> Result<Program, CompileFailure> {
    if !geometry.sizes.fit(plan.collective, plan.n_ranks) {
        let (lane, step) = (LaneId(0), StepId(0));
        return Err(CompileFailure { lane, step, error: CompileError::Sizes });
    }
    if !geometry.sizes.are_known() {
        plan.check_straight()?;
    }
    let direct = program(plan, geometry, SpaceMemory::Output)?;
    match geometry.staged {
        Some(staged) if staged.is_for(&direct) => {
            let staged = program(plan, geometry, SpaceMemory::Work(staged))?;
            let staged_bytes = staged.copied_bytes().saturating_sub(direct.copied_bytes());
            Ok(Program { staged_bytes, ..staged })
        }
        _ => Ok(direct),
    }
}

/// The program whose working spaces lie in `home`.
fn program(
    plan: &CheckedPlan,
    geometry: &Geometry,
    home: SpaceMemory,
) -> Result<Program, CompileFailure> {
    let (mut spaces, work_bytes) = spaces(plan, geometry, home);
    let mut common = Common { work_bytes, n_flags: 0 };
    let mut ports = vec![PortProgram::default(); plan.n_ports() as usize];
    let mut closing = Vec::new();
    for together in sharing_ports(plan) {
        let lanes = spaces.extract_if(.., |(_, lane, _)| together.contains(&lane.port)).collect();
        let (programs, moves) = PortCompiler::new(geometry, &together, lanes).run(&mut common)?;
        for (port, program) in together.iter().zip(programs) {
            ports[port.index()] = program;
        }
        closing.extend(moves);
    }
    let work_bytes = ports.iter().map(|port| port.needs[Buffer::Work as usize]).max().unwrap_or(0);
    Ok(Program {
        rank: plan.rank.0,
        ports,
        closing: closing.into(),
        staged_bytes: 0,
        work_bytes,
        n_flags: common.n_flags,
        past_caches: false,
        call: 0,
    })
}

/// All ports, as sets of ports that share lanes.
fn sharing_ports(plan: &CheckedPlan) -> Vec<Vec<PortId>> {
    let mut sets: Vec<Vec<PortId>> =
        PortId::first(plan.n_ports() as u16).map(|port| vec![port]).collect();
    for lane in &plan.lanes {
        for port in lane.transfers().map(|transfer| transfer.port) {
            let at = |port: PortId| sets.iter().position(|set| set.contains(&port));
            if port != lane.port
                && let (Some(a), Some(b)) = (at(lane.port), at(port))
                && a != b
            {
                let taken = sets.remove(a.max(b));
                sets[a.min(b)].extend(taken);
            }
        }
    }
    sets.iter_mut().for_each(|set| set.sort_unstable());
    sets
}

/// The working spaces of the lanes, each at its place in the working buffer, and the end of the last one. Some lanes
/// have the same place.
fn spaces<'a>(
    plan: &'a CheckedPlan,
    geometry: &'a Geometry,
    home: SpaceMemory,
) -> (Vec<PlacedLane<'a>>, u64) {
    let (mut bases, mut end) = (Vec::new(), 0);
    let lanes = LaneId::first(plan.lanes.len()).zip(&plan.lanes);
    let placed = lanes.map(|(id, lane)| {
        let mut space = WorkingSpace::new(plan, id, geometry, home);
        let memory = space.memory_id(id);
        let known = bases.iter().find(|(other, _)| *other == memory).map(|&(_, base)| base);
        space.place_at(known.unwrap_or(end));
        if known.is_none() {
            bases.push((memory, end));
            end += space.work_bytes().next_multiple_of(ALIGN);
        }
        (id, lane, space)
    });
    let placed = placed.collect();
    (placed, end)
}
