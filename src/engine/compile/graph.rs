//! The task graph under construction: tasks in plan order, with dependencies from memory hazards.
//!
//! A task waits for the last writer of every byte that it reads (read after write), and for the last writer and all
//! readers since of every byte that it writes (write after write, write after read). No other rule orders tasks.

use std::ops::Range;

use hopbine_torus::PortId;
use smallvec::SmallVec;

use super::intervals::IntervalMap;
use super::program::{Buffer, Task};

/// A memory in which hazards are tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracked {
    /// One of the buffers.
    In(Buffer),
    /// Positions without bytes; each counts as one virtual byte.
    Tokens,
}

impl Tracked {
    fn index(self) -> usize {
        match self {
            Tracked::In(buffer) => buffer as usize,
            Tracked::Tokens => Buffer::COUNT,
        }
    }
}

/// A range of a tracked memory.
pub(crate) type TrackedRange = (Tracked, Range<u64>);

/// The last accesses to a byte.
#[derive(Clone, Debug, Default)]
struct LastAccess {
    writer: Option<u32>,
    /// Readers since the last write.
    readers: SmallVec<[u32; 4]>,
}

/// The place of a task in the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskAt {
    /// The plan's step.
    pub(crate) step: u32,
    /// The piece of a message.
    pub(crate) piece: u32,
    /// The port that executes the task.
    pub(crate) port: PortId,
}

/// The graph.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) tasks: Vec<Task>,
    pub(crate) at: Vec<TaskAt>,
    /// The tasks that each task waits for, task after task.
    deps: Vec<u32>,
    /// For each task, the end of its entries in `deps`.
    deps_end: Vec<u32>,
    accesses: [IntervalMap<LastAccess>; Buffer::COUNT + 1],
}

impl Graph {
    pub(crate) fn new() -> Self {
        Graph {
            tasks: Vec::new(),
            at: Vec::new(),
            deps: Vec::new(),
            deps_end: Vec::new(),
            accesses: std::array::from_fn(|_| IntervalMap::new()),
        }
    }

    /// Number of tasks so far, which is the number of the next task.
    pub(crate) fn len(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// Adds a task with the ranges that it reads and writes.
    pub(crate) fn emit(
        &mut self,
        at: TaskAt,
        task: Task,
        reads: &[TrackedRange],
        writes: &[TrackedRange],
    ) {
        let id = self.len();
        let mut deps: SmallVec<[u32; 16]> = SmallVec::new();
        for (place, range) in reads {
            // No task writes the user's input: no hazards, and no list of readers that grows.
            if *place == Tracked::In(Buffer::Send) {
                continue;
            }
            self.accesses[place.index()].update(range.clone(), |access| {
                deps.extend(access.writer);
                access.readers.push(id);
            });
        }
        for (place, range) in writes {
            let written = LastAccess { writer: Some(id), readers: SmallVec::new() };
            self.accesses[place.index()].replace(range.clone(), written, |access| {
                deps.extend(access.writer);
                deps.extend_from_slice(&access.readers);
            });
        }
        deps.sort_unstable();
        deps.dedup();
        self.deps.extend(deps.into_iter().filter(|&dep| dep != id));
        self.deps_end.push(self.deps.len() as u32);
        self.tasks.push(task);
        self.at.push(at);
    }

    /// The highest piece number among tasks numbered `tasks` that read `range` after its last write; `None` if no
    /// task does.
    pub(crate) fn last_piece_reading(
        &self,
        (place, range): TrackedRange,
        tasks: &Range<u32>,
    ) -> Option<u32> {
        self.accesses[place.index()]
            .within(range)
            .flat_map(|(_, access)| &access.readers)
            .filter(|reader| tasks.contains(reader))
            .map(|&reader| self.at[reader as usize].piece)
            .max()
    }

    /// The tasks that a task waits for.
    pub(crate) fn deps(&self, task: u32) -> &[u32] {
        let task = task as usize;
        let start = task.checked_sub(1).map_or(0, |before| self.deps_end[before] as usize);
        &self.deps[start..self.deps_end[task] as usize]
    }

    /// Whether two tasks belong to different ports.
    pub(crate) fn crosses(&self, a: u32, b: u32) -> bool {
        self.at[a as usize].port != self.at[b as usize].port
    }
}
