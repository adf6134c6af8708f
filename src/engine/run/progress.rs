//! The progress of a run.

use std::sync::Arc;

use crate::Rank;
use crate::planted::{self, Planted};

use super::port_flags::PortFlags;
use super::ready::ReadySet;
use crate::engine::compile::program::{PortProgram, Task};

/// Marks a finished task among the counters of unfinished predecessors.
const DONE: u32 = u32::MAX;

/// Which tasks have finished, and which may start.
pub(super) struct Progress {
    /// For each task, the number of its unfinished predecessors, or [`DONE`].
    pub(super) waiting: Box<[u32]>,
    pub(super) sends: ReadySet,
    pub(super) locals: ReadySet,
    /// The ready sets at the start.
    first_sends: ReadySet,
    first_locals: ReadySet,
    pub(super) unfinished: usize,
    port_flags: Arc<PortFlags>,
    round: u32,
    /// For each list in the port's `flag_waits`, the number of entries whose tasks have ended.
    n_seen: Box<[u32]>,
    /// Entries of all these lists whose tasks have not ended.
    pub(super) n_flags_pending: u32,
}

/// Number of dependencies of a port on tasks of other ports.
fn n_flag_waits(code: &PortProgram) -> u32 {
    code.flag_waits.iter().map(|of_port| of_port.len() as u32).sum()
}

impl Progress {
    /// The start of a port's program; `port_flags` has the flags that it shares with other ports.
    pub(super) fn new(code: &PortProgram, port_flags: Arc<PortFlags>) -> Self {
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
            round: port_flags.round(),
            port_flags,
            n_seen: vec![0; code.flag_waits.len()].into(),
            n_flags_pending: n_flag_waits(code),
        }
    }

    /// Returns to the start of the same program.
    pub(super) fn start(&mut self, code: &PortProgram) {
        self.waiting.copy_from_slice(&code.n_deps);
        self.sends.copy_from(&self.first_sends);
        self.locals.copy_from(&self.first_locals);
        self.unfinished = code.tasks.len();
        if !(code.task_flags.is_empty() && code.flag_waits.is_empty()) {
            self.round = self.port_flags.round();
            self.n_seen.fill(0);
            self.n_flags_pending = n_flag_waits(code);
        }
    }

    /// The first unfinished task without unfinished predecessors; `None` if all unfinished tasks depend on other
    /// ports.
    pub(super) fn first_awaited(&self) -> Option<usize> {
        self.waiting.iter().position(|&waiting| waiting == 0)
    }

    /// Notes that a task has finished; `differing` is a peer that makes another call.
    #[inline]
    pub(super) fn finish(&mut self, code: &PortProgram, task: u32, differing: Option<Rank>) {
        self.waiting[task as usize] = DONE;
        self.unfinished -= 1;
        for &next in code.successors(task) {
            self.release(code, next);
        }
        if !code.task_flags.is_empty() {
            self.set_flag(code, task, differing);
        }
    }

    /// Sets the flag of a finished task, if a task of another port waits for it.
    #[cold]
    fn set_flag(&self, code: &PortProgram, task: u32, differing: Option<Rank>) {
        if let Some(flag) = code.flag(task) {
            self.port_flags.set(flag, self.round, differing);
        }
    }

    /// Polls the flags of other ports' tasks. Returns whether any task has ended, and a peer that makes another call.
    pub(super) fn poll_flags(&mut self, code: &PortProgram) -> (bool, Option<Rank>) {
        let before = self.n_flags_pending;
        for (list, of_port) in code.flag_waits.iter().enumerate() {
            while let Some(wait) = of_port.get(self.n_seen[list] as usize)
                && self.port_flags.is_set(wait.flag, self.round)
            {
                self.n_seen[list] += 1;
                self.n_flags_pending -= 1;
                self.release(code, wait.task);
            }
        }
        (self.n_flags_pending < before, self.port_flags.differing())
    }

    /// Notes that a predecessor of a task has finished.
    #[inline(always)]
    fn release(&mut self, code: &PortProgram, task: u32) {
        let waiting = &mut self.waiting[task as usize];
        *waiting -= 1;
        let is_fold = matches!(code.tasks[task as usize], Task::Fold(_));
        let is_early = planted::is(Planted::FoldBeforeOperand) && is_fold;
        let last = u32::from(is_early && code.n_deps[task as usize] > 1);
        if *waiting == last {
            match code.tasks[task as usize] {
                Task::Send { .. } => self.sends.insert(task),
                Task::Copy(_) | Task::Fold(_) => self.locals.insert(task),
                // `post` finds receives, in plan order.
                Task::Recv { .. } => {}
            }
        }
    }
}
