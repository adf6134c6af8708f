//! What the diagnosis asks a run: which operation it executes, how much is left, and what it waits for.

use super::PortRun;
use crate::engine::compile::program::Task;
use crate::error::Awaited;

impl PortRun {
    /// Context and number of the operation that is executed.
    pub fn operation(&self) -> (u64, u32) {
        (self.context, self.operation)
    }

    /// Tasks that have not finished.
    pub fn unfinished(&self) -> usize {
        self.progress.unfinished
    }

    /// Step and item that an unfinished run waits for, by the first unfinished task without unfinished predecessors.
    /// `None` if all unfinished tasks depend on other ports.
    pub fn awaited(&self) -> Option<(u32, Awaited)> {
        let task = self.progress.first_awaited()?;
        let awaited = match self.code().tasks[task] {
            Task::Send { to, .. } => Awaited::ReadyFrom(to),
            Task::Recv { from, .. } => Awaited::MessageFrom(from),
            Task::Copy(_) | Task::Fold(_) => Awaited::Interface,
        };
        Some((self.code().steps[task], awaited))
    }
}
