//! The steps of a pass over a walk.

use std::ops::Range;

use super::walk::{GlobalStep, Walk};
use crate::collectives::{Action, Routing, WalkPhase};

/// A step of a pass.
#[derive(Clone, Debug)]
pub(super) struct PassStep {
    /// The step of the walk.
    pub number: usize,
    /// The targets of the walk's step that are sent to in this step.
    pub targets: Range<usize>,
    /// The first step of the pass that belongs to the same step of the walk.
    pub first: usize,
}

/// The steps of a pass: the steps of the walk, in the order of the pass. If the messages that a rank receives in a
/// step of a reduce-scatter carry different blocks, they are not operands of one fold, and each target gets a step
/// of its own. Whatever a rank forwards in these steps it received in earlier steps of the walk, so they all depend
/// on the same data.
pub(super) fn pass_steps(walk: &Walk, phase: WalkPhase) -> Vec<PassStep> {
    let adds =
        phase.routing == Routing::Toward && phase.action == Action::Reduce && !phase.backwards;
    let mut steps = Vec::with_capacity(walk.steps().len());
    for index in 0..walk.steps().len() {
        let number = if phase.backwards { walk.steps().len() - 1 - index } else { index };
        let GlobalStep { dim, t } = walk.steps()[number];
        let n_targets = walk.pattern(dim).targets(t, 0).len();
        let per_step = if adds && !walk.toward(dim).folds_evenly(t) { 1 } else { n_targets };
        let first = steps.len();
        let targets = (0..n_targets).step_by(per_step);
        steps.extend(targets.map(|from| PassStep {
            number,
            targets: from..from + per_step,
            first,
        }));
    }
    steps
}
