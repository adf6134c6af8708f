//! Scans: prefixes of the ranks' vectors, combined in the order of ranks.
//!
//! Every rank holds the sum of an interval of ranks that ends with itself. If a rank receives the sum of the
//! interval that ends just before its own, it adds that sum on the left. So operands stay in the order of ranks,
//! and one value per rank is enough.
//!
//! - *Chain*: rank after rank, in p - 1 steps. The segments of a long vector are pipelined.
//! - *Sweeps*: in the upward steps a rank whose number ends with k ones in binary accumulates the sum of 2^k ranks.
//!   In the downward steps ranks that hold a whole prefix send it to the ranks whose intervals begin just after it.
//!   At most 2 log2 p - 1 steps, for every p (Brent and Kung, 1982; Blelloch, 1990).
//!
//! An exscan is a scan of all ranks but the last, and one more step in which every rank sends its sum to the next
//! rank.

use super::schedule::PrefixSteps;
use crate::collectives::Action;
use crate::names::Rank;
use crate::plan::ir::flow::Message;
use crate::plan::ir::pass::{Pass, PassScope};
use crate::plan::ir::runs::WHOLE;

/// The steps of one lane; all lanes have the same steps.
#[derive(Debug)]
pub struct PrefixPass {
    steps: Vec<PrefixStep>,
}

/// Ranks `first`, `first + stride`, ... below `end` send to the ranks `distance` after them.
#[derive(Clone, Copy, Debug)]
struct PrefixStep {
    first: u32,
    stride: u32,
    end: u32,
    distance: u32,
    action: Action,
}

impl PrefixStep {
    fn sends(&self, rank: u32) -> bool {
        (self.first..self.end).contains(&rank) && (rank - self.first).is_multiple_of(self.stride)
    }
}

impl PrefixPass {
    /// The steps of a scan, or if `is_exclusive` of an exscan.
    pub fn new(n_ranks: u32, how: PrefixSteps, is_exclusive: bool) -> Self {
        let summed = if is_exclusive { n_ranks - 1 } else { n_ranks };
        let fold = |first, stride, distance| PrefixStep {
            first,
            stride,
            end: summed.saturating_sub(distance),
            distance,
            action: Action::Reduce,
        };
        let mut steps: Vec<PrefixStep> = match how {
            PrefixSteps::Chain => (1..summed).map(|to| fold(to - 1, summed, 1)).collect(),
            PrefixSteps::Sweeps => {
                let distances = || (0..31).map(|bit| 1u32 << bit);
                let up = distances().take_while(|by| 2 * by <= summed);
                let down = distances().take_while(|by| 3 * by <= summed);
                let down: Vec<u32> = down.collect();
                up.map(|by| fold(by - 1, 2 * by, by))
                    .chain(down.into_iter().rev().map(|by| fold(2 * by - 1, 2 * by, by)))
                    .collect()
            }
        };
        if is_exclusive && n_ranks > 1 {
            let action = Action::Copy;
            steps.push(PrefixStep { first: 0, stride: 1, end: n_ranks - 1, distance: 1, action });
        }
        PrefixPass { steps }
    }
}

impl Pass for PrefixPass {
    fn n_steps(&self) -> usize {
        self.steps.len()
    }

    fn action(&self, step: usize) -> Action {
        self.steps[step].action
    }

    /// Received data are combined to the left of a rank's own value.
    fn own_at(&self, step: usize, rank: Rank) -> u32 {
        let step = &self.steps[step];
        let source = rank.0.checked_sub(step.distance);
        u32::from(step.action == Action::Reduce && source.is_some_and(|from| step.sends(from)))
    }

    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>)) {
        let mut send = |number: usize, from: u32| {
            let (from, to) = (Rank(from), Rank(from + self.steps[number].distance));
            visit(number, Message { from, to, runs: &WHOLE });
        };
        match scope {
            PassScope::Step(number, _) => {
                let PrefixStep { first, stride, end, .. } = self.steps[number];
                (first..end).step_by(stride as usize).for_each(|from| send(number, from));
            }
            PassScope::Rank(rank, _) => {
                for (number, step) in self.steps.iter().enumerate() {
                    let ends = [Some(rank.0), rank.0.checked_sub(step.distance)];
                    let senders = ends.into_iter().flatten().filter(|&from| step.sends(from));
                    senders.for_each(|from| send(number, from));
                }
            }
        }
    }
}
