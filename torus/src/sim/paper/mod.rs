//! The software that the Bine paper measured: the operations of its ports in a call.
//!
//! Source: the public sources of that code (repository HLC-Lab/bine_trees_fugaku, lib/), in our own words. Many calls
//! exchange addresses first. A parallel region is opened, with a thread for each port. Every step of a two-phase
//! allreduce makes a timer; the threads of a rank perform the timers' heap operations one after the other. All folds
//! of a rank go through one critical section.

mod butterflies;
mod rings;
mod software;
mod trees;

use self::software::PaperSoftware;
use super::machine::Machine;
use super::routed::RoutedPlan;
use super::script::{NotModelled, Script};
use crate::collectives::{Collective, WalkForm};
use crate::plan::{Flow, Interleave, Placement, Recipe, Schedule};

/// Options of a call of the papers' code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaperCall {
    /// The longest piece of a reduction or of a tree, bytes; 0 for whole messages.
    pub segment_bytes: u64,
    /// Whether a bcast over a tree goes through memory whose addresses all ranks know, and is copied in the end.
    pub via_temporary: bool,
}

/// Memory that the code allocates and registers beforehand, bytes.
const PREALLOCATED: f64 = 1.5 * (1u64 << 30) as f64;

/// Returns the operations of ports in a call of `n` bytes.
pub(super) fn script(
    call: PaperCall,
    schedule: &Schedule,
    flow: &dyn Flow,
    routed: &RoutedPlan,
    machine: &Machine,
    n: f64,
) -> Result<Script, NotModelled> {
    use Collective::{
        Allgather, Allreduce, Alltoall, Bcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    use Interleave::Sequential;
    use Placement::{Path, Rank, Resend};
    use WalkForm::{Butterfly, Latency, Tree, TwoPhase};
    // The threads of this code have equal parts.
    let (Recipe::Walk(recipe), true) = (&schedule.recipe, schedule.split.is_equal()) else {
        return Err(NotModelled::Schedule);
    };
    let software = PaperSoftware {
        machine,
        flow,
        routed,
        n,
        segment: call.segment_bytes as f64,
        ports: routed.n_ports(),
    };
    let (collective, positions) = (schedule.collective, recipe.positions);
    Ok(match (recipe.interleave, collective, recipe.form, positions) {
        (Sequential, Allreduce, TwoPhase, _) | (Sequential, Allgather, Butterfly, _) => {
            software.bucket()
        }
        // Vectors and padding fill the preallocated memory.
        (Sequential, ReduceScatter, Butterfly, _) if 3.0 * n >= PREALLOCATED => {
            return Err(NotModelled::Memory);
        }
        (Sequential, ReduceScatter, Butterfly, _) => software.bucket(),
        (_, Allreduce, Latency, _) => software.latency(),
        (_, Allreduce, TwoPhase, _) => {
            let dims = schedule.shape.active_dims().len() as u32;
            software.two_phase(routed.n_ports() > dims)
        }
        (_, Allgather, Butterfly, Path) => software.allgather(),
        (_, Allgather, Butterfly, Rank) => software.allgather_blocks(),
        (_, Allgather, Butterfly, Resend) => software.allgather_send(),
        (_, ReduceScatter, Butterfly, Path) => software.reduce_scatter(),
        (_, Alltoall, Butterfly, _) if software.ports == 1 => software.alltoall(),
        (_, Bcast, Tree, _) => software.bcast(call.via_temporary),
        (_, Bcast, TwoPhase, _) => software.scatter_allgather(),
        (_, Gather, Tree, _) => software.gather(),
        (_, Scatter, Tree, _) => software.scatter(),
        (_, Reduce, Tree, _) => software.reduce(),
        (_, Reduce, TwoPhase, _) => software.reduce_scatter_gather(),
        _ => return Err(NotModelled::Schedule),
    })
}
