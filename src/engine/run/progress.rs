//! How far a run is.

use crate::planted::{self, Planted};

use super::ready::ReadySet;
use crate::engine::compile::program::{PortProgram, Task};

/// Marks a finished task among the counters of unfinished predecessors.
const DONE: u32 = u32::MAX;

/// Which tasks have finished, and which may start.
pub(super) struct Progress {
    /// For each task how many predecessors are unfinished, or [`DONE`].
    pub(super) waiting: Box<[u32]>,
    pub(super) sends: ReadySet,
    pub(super) locals: ReadySet,
    /// What the sets are at the start.
    first_sends: ReadySet,
    first_locals: ReadySet,
    pub(super) unfinished: usize,
}

impl Progress {
    /// At the start of a port's program.
    pub(super) fn new(code: &PortProgram) -> Self {
        let n_tasks = code.tasks.len();
        let (mut first_sends, mut first_locals) = (ReadySet::new(n_tasks), ReadySet::new(n_tasks));
        for (task, what) in
            code.tasks.iter().enumerate().filter(|(task, _)| code.n_deps[*task] == 0)
        {
            match what {
                Task::Send { .. } => first_sends.insert(task as u32),
                Task::Copy(_) | Task::Fold(_) => first_locals.insert(task as u32),
                Task::Recv { .. } => {}
            }
        }
        Progress {
            waiting: code.n_deps.clone(),
            sends: first_sends.clone(),
            locals: first_locals.clone(),
            first_sends,
            first_locals,
            unfinished: n_tasks,
        }
    }

    /// Back to the start of the same program.
    pub(super) fn start(&mut self, code: &PortProgram) {
        self.waiting.copy_from_slice(&code.n_deps);
        self.sends.copy_from(&self.first_sends);
        self.locals.copy_from(&self.first_locals);
        self.unfinished = code.tasks.len();
    }

    /// The first task that has not finished.
    pub(super) fn first_unfinished(&self) -> Option<usize> {
        self.waiting.iter().position(|&waiting| waiting != DONE)
    }

    /// A task has finished.
    #[inline]
    pub(super) fn finish(&mut self, code: &PortProgram, task: u32) {
        self.waiting[task as usize] = DONE;
        self.unfinished -= 1;
        for &next in code.successors(task) {
            let waiting = &mut self.waiting[next as usize];
            *waiting -= 1;
            let is_fold = matches!(code.tasks[next as usize], Task::Fold(_));
            let is_early = planted::is(Planted::FoldBeforeOperand) && is_fold;
            let last = u32::from(is_early && code.n_deps[next as usize] > 1);
            if *waiting == last {
                match code.tasks[next as usize] {
                    Task::Send { .. } => self.sends.insert(next),
                    Task::Copy(_) | Task::Fold(_) => self.locals.insert(next),
                    // Found by `post`, in plan order.
                    Task::Recv { .. } => {}
                }
            }
        }
    }
}
