//! Collectives over MPI: one message after the other, each with the cost of MPI's own software.

use super::machine::Machine;
use super::outcome::TimeCategory;
use super::routed::{RoutedPlan, StepFacts};
use super::script::{NotModelled, Op, Script, Threads};
use crate::collectives::{Action, Collective, WalkForm};
use crate::patterns::PatternKind;
use crate::plan::{Flow, Interleave, Placement, Recipe, Schedule};

/// The longest message that MPI copies instead of announcing it, bytes.
const EAGER_BYTES: f64 = 65_536.0;
/// A longer call allocates, touches and registers temporary memory, bytes.
const MOST_BYTES: f64 = (64u64 << 20) as f64;

/// Returns the operations of a rank in a call of `n` bytes.
pub(super) fn script(
    schedule: &Schedule,
    flow: &dyn Flow,
    routed: &RoutedPlan,
    machine: &Machine,
    n: f64,
) -> Result<Script, NotModelled> {
    if n > MOST_BYTES {
        return Err(NotModelled::Memory);
    }
    let Recipe::Walk(recipe) = &schedule.recipe else { return Err(NotModelled::Schedule) };
    let ranks = f64::from(flow.n_ranks());
    let n_steps = routed.facts.first().map_or(0, Vec::len) as f64;
    // How many times all bytes are copied, and the number of pieces each time.
    let is_bruck = |kind: &PatternKind| matches!(kind, PatternKind::Bruck { .. });
    let (times, pieces) = match (recipe.form, recipe.positions, recipe.interleave) {
        _ if schedule.collective == Collective::Alltoall => (n_steps + 2.0, ranks),
        // All blocks are rotated together.
        (WalkForm::Butterfly, ..) if recipe.patterns.iter().any(is_bruck) => (1.0, 0.0),
        (WalkForm::Butterfly, Placement::Path, Interleave::RoundRobin) => (1.0, ranks),
        _ => (0.0, 0.0),
    };
    let copies = times * (n / machine.copy + pieces * machine.block_ns);
    let setup = vec![(TimeCategory::Copy, copies)];
    let lane = |facts: &Vec<StepFacts>| {
        let step = |(step, facts): (usize, &StepFacts)| {
            let bytes = facts.share * n;
            let protocol = match bytes <= EAGER_BYTES {
                true => bytes / machine.paper_eager,
                false => machine.paper_rendezvous_ns,
            };
            let ns = machine.paper_mpi_ns + protocol;
            let put = Op::Put {
                step,
                from: 0.0,
                to: 1.0,
                puts: 1.0,
                post_ns: 0.0,
                gap_ns: 0.0,
                n_sharing: 1.0,
            };
            let fold = (facts.action == Action::Reduce)
                .then_some(Op::Spend { ns: bytes / machine.reduce, category: TimeCategory::Fold });
            let spend = Op::Spend { ns, category: TimeCategory::Software };
            [spend, put, Op::Receive { step, to: 1.0, poll_ns: 0.0 }].into_iter().chain(fold)
        };
        facts.iter().enumerate().flat_map(step).collect()
    };
    let lanes = routed.facts.iter().map(lane).collect();
    Ok(Script { setup, lanes, threads: Threads::Each, ..Script::default() })
}
