//! Lanes in which every message is a whole vector: trees, chains, and butterflies that combine all data in each step.
//! Ranks forward the vector piece by piece, since hopbine's engine waits for bytes and not for steps.

use crate::collectives::Payload;
use crate::names::{LaneId, StepId};
use crate::plan::{DependsOn, Flow, StepView};

/// By lane, the share of n of each message; `None` if messages differ, or if nothing can be forwarded.
pub(super) fn whole_vectors(flow: &dyn Flow) -> Vec<Option<f64>> {
    let lanes = LaneId::first(flow.lanes().len()).zip(flow.lanes());
    let share = lanes.map(|(lane, header)| {
        let n = u64::from(header.space.n_positions);
        let is_plain = header.space.payload == Payload::Vector
            && header.window.is_none()
            && header.n_steps > 1;
        let is_whole = |step: StepId| {
            let follows = flow.depends_on(lane, step) == DependsOn::before(step.index());
            follows && are_all(flow, lane, step, n)
        };
        let is_whole = is_plain && StepId::first(header.n_steps).all(is_whole);
        is_whole.then(|| n as f64 * header.position_share())
    });
    share.collect()
}

/// Whether every message of a step carries `n` positions.
fn are_all(flow: &dyn Flow, lane: LaneId, step: StepId, n: u64) -> bool {
    match flow.view(lane, step) {
        StepView::Lines(lines) => lines.hops().all(|hop| hop.positions == n),
        StepView::Products(product) => product.positions == n,
        StepView::Shifts(shifts) => shifts.shifts.iter().all(|shift| shift.positions == n),
        StepView::Messages(_) => {
            let mut are_all = true;
            flow.volumes(lane, step, &mut |_, _, positions| are_all &= positions == n);
            are_all
        }
    }
}
