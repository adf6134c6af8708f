//! Rings (bucket): dimension after dimension, with a parallel region for each dimension and phase.

use super::software::PaperSoftware;
use crate::names::{LaneId, StepId};
use crate::plan::StepView;
use crate::sim::outcome::TimeCategory;
use crate::sim::script::{Op, Script, Threads};

impl PaperSoftware<'_> {
    pub fn bucket(&self) -> Script {
        let reduces = self.steps(0).iter().any(|step| step.reduces);
        let copied = if reduces { self.n } else { self.n / self.ranks() };
        let mut script = self.of_lanes(self.enter() + self.exchange_all(), 0.0, |_| Vec::new());
        script.setup.push((TimeCategory::Copy, copied / self.machine.copy));
        for (lane, ops) in LaneId::first(script.lanes.len()).zip(&mut script.lanes) {
            let mut last = None;
            for step in self.steps(lane.index()) {
                let dim = match self.flow.view(lane, StepId(step.at)) {
                    StepView::Lines(lines) => Some(lines.dim),
                    StepView::Products(_) | StepView::Shifts(_) | StepView::Messages(_) => None,
                };
                if last != Some((dim, step.reduces)) {
                    last = Some((dim, step.reduces));
                    let fork = Op::Spend { ns: self.fork(), category: TimeCategory::Threads };
                    ops.extend([Op::Join, fork, self.heap(2.0)]);
                }
                ops.extend([self.ready(&step), self.put(&step), self.receive(&step)]);
                ops.extend(step.reduces.then(|| self.fold(step.bytes, 1.0)));
                ops.push(self.sent(&step));
            }
        }
        // Ports whose regions begin in different steps have no order among each other.
        let joins = |ops: &Vec<Op>| -> Vec<usize> {
            let numbered = ops.iter().enumerate();
            numbered.filter_map(|(at, op)| (*op == Op::Join).then_some(at)).collect()
        };
        let mut joins = script.lanes.iter().map(joins);
        let first = joins.next();
        if joins.any(|of_lane| Some(of_lane) != first) {
            script.threads = Threads::Each;
        }
        script
    }
}
