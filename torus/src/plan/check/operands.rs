//! The order in which ranks receive operands.

use std::collections::HashMap;

use crate::names::Rank;
use crate::plan::ir::runs::Run;

/// Counts the operands of each fold of a step as they arrive. Operands of one fold have the same runs, and operands
/// of different folds share no position, so the first position identifies a fold.
#[derive(Debug, Default)]
pub(super) struct Operands {
    /// Number of steps so far; 0 before the first.
    step: u32,
    /// By rank, the fold of the first operand of the rank's last step.
    first: Vec<OpenFold>,
    /// Numbers of operands of the step's other folds, by rank and first position.
    others: HashMap<(Rank, u32), u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OpenFold {
    step: u32,
    start: u32,
    n_operands: u32,
}

impl Operands {
    /// Forgets all operands.
    pub(super) fn reset(&mut self, n_ranks: u32) {
        self.step = 0;
        self.first.clear();
        self.first.resize(n_ranks as usize, OpenFold::default());
        self.others.clear();
    }

    /// Begins the next step.
    pub(super) fn begin_step(&mut self) {
        self.step += 1;
        self.others.clear();
    }

    /// The number, within its fold, of the next operand that `to` receives with these runs.
    pub(super) fn next(&mut self, to: Rank, runs: &[Run]) -> u32 {
        let Some(&Run { start, .. }) = runs.first() else { return 0 };
        let first = &mut self.first[to.index()];
        if first.step != self.step {
            *first = OpenFold { step: self.step, start, n_operands: 0 };
        }
        let n_operands = match first.start == start {
            true => &mut first.n_operands,
            false => self.others.entry((to, start)).or_default(),
        };
        *n_operands += 1;
        *n_operands - 1
    }
}
