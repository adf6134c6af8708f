//! The software of the measured code: what its ports do in a call.
//!
//! Read in the public sources of the code that the Bine paper was measured with (repository
//! HLC-Lab/bine_trees_fugaku, lib/), in our words: many calls exchange addresses first; a parallel region
//! is opened, a thread a port; every step of a two-phase allreduce makes a timer, whose operations of the
//! heap all threads of a rank do one after the other; all folds of a rank go through one critical section.

mod butterflies;
mod code;
mod rings;
mod trees;

use self::code::Code;
use super::machine::Machine;
use super::score::Score;
use super::script::{NotModelled, Script};
use crate::collectives::{Collective, WalkForm};
use crate::plan::{Flow, Interleave, Placement, Recipe, Schedule};

/// What a call of the papers' code may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaperCall {
    /// The longest piece of a reduction or of a tree, bytes; 0 for whole messages.
    pub segment_bytes: u64,
    /// A bcast over a tree goes through memory whose addresses all ranks know, and is copied in the end.
    pub via_temporary: bool,
}

/// Memory that is allocated and registered beforehand, bytes.
const PREALLOCATED: f64 = 1.5 * (1u64 << 30) as f64;

/// What ports do in a call of `n` bytes.
pub(super) fn script(
    call: PaperCall,
    schedule: &Schedule,
    flow: &dyn Flow,
    score: &Score,
    machine: &Machine,
    n: f64,
) -> Result<Script, NotModelled> {
    use Collective::{
        Allgather, Allreduce, Alltoall, Bcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    use Interleave::Sequential;
    use Placement::{Path, Rank, Resend};
    use WalkForm::{Butterfly, Latency, Tree, TwoPhase};
    // Its threads have equal parts.
    let (Recipe::Walk(recipe), true) = (&schedule.recipe, schedule.split.is_equal()) else {
        return Err(NotModelled::Schedule);
    };
    let code = Code {
        machine,
        flow,
        score,
        n,
        segment: call.segment_bytes as f64,
        ports: score.n_ports(),
    };
    let (collective, positions) = (schedule.collective, recipe.positions);
    Ok(match (recipe.interleave, collective, recipe.form, positions) {
        (Sequential, Allreduce, TwoPhase, _) | (Sequential, Allgather, Butterfly, _) => {
            code.bucket()
        }
        // Vectors and padding fill the memory that is there.
        (Sequential, ReduceScatter, Butterfly, _) if 3.0 * n >= PREALLOCATED => {
            return Err(NotModelled::Memory);
        }
        (Sequential, ReduceScatter, Butterfly, _) => code.bucket(),
        (_, Allreduce, Latency, _) => code.latency(),
        (_, Allreduce, TwoPhase, _) => {
            let dims = schedule.shape.active_dims().len() as u32;
            code.two_phase(score.n_ports() > dims)
        }
        (_, Allgather, Butterfly, Path) => code.allgather(),
        (_, Allgather, Butterfly, Rank) => code.allgather_blocks(),
        (_, Allgather, Butterfly, Resend) => code.allgather_send(),
        (_, ReduceScatter, Butterfly, Path) => code.reduce_scatter(),
        (_, Alltoall, Butterfly, _) if code.ports == 1 => code.alltoall(),
        (_, Bcast, Tree, _) => code.bcast(call.via_temporary),
        (_, Bcast, TwoPhase, _) => code.scatter_allgather(),
        (_, Gather, Tree, _) => code.gather(),
        (_, Scatter, Tree, _) => code.scatter(),
        (_, Reduce, Tree, _) => code.reduce(),
        (_, Reduce, TwoPhase, _) => code.reduce_scatter_gather(),
        _ => return Err(NotModelled::Schedule),
    })
}
