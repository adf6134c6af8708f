//! The task graph under construction: tasks in plan order, dependencies from memory hazards.
//!
//! A task waits for the last writer of every byte it reads (read after write), and for the
//! last writer and all readers since of every byte it writes (write after write, write after
//! read). Nothing else orders tasks: what may overlap, does.

use std::ops::Range;

use hopbine_torus::PortId;
use smallvec::SmallVec;

use super::intervals::Intervals;
use super::program::{Buffer, Task};

/// A memory in which hazards are tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracked {
    /// One of the buffers.
    In(Buffer),
    /// Positions that have no bytes: each counts as one virtual byte.
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

/// A range of a place.
pub(crate) type TrackedRange = (Tracked, Range<u64>);

/// Who touched a byte last.
#[derive(Clone, Debug, Default)]
struct Touched {
    writer: Option<u32>,
    /// Readers since the last write.
    readers: SmallVec<[u32; 4]>,
}

/// Where a task belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskAt {
    /// The plan's step.
    pub(crate) step: u32,
    /// The piece of a message.
    pub(crate) piece: u32,
    /// The port that does it.
    pub(crate) port: PortId,
}

/// The graph.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) tasks: Vec<Task>,
    pub(crate) at: Vec<TaskAt>,
    /// The tasks that each task waits for, one after the other,
    deps: Vec<u32>,
    /// and where those of each task end.
    deps_end: Vec<u32>,
    accesses: [Intervals<Touched>; Buffer::COUNT + 1],
}

impl Graph {
    pub(crate) fn new() -> Self {
        Graph {
            tasks: Vec::new(),
            at: Vec::new(),
            deps: Vec::new(),
            deps_end: Vec::new(),
            accesses: std::array::from_fn(|_| Intervals::new()),
        }
    }

    /// Number of tasks so far: the number of the next one.
    pub(crate) fn len(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// Adds a task that touches what is listed.
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
            // Nobody writes the user's input: no hazards, and no list of readers that grows.
            if *place == Tracked::In(Buffer::Send) {
                continue;
            }
            self.accesses[place.index()].update(range.clone(), |access| {
                deps.extend(access.writer);
                access.readers.push(id);
            });
        }
        for (place, range) in writes {
            let written = Touched { writer: Some(id), readers: SmallVec::new() };
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

    /// The highest piece number among the tasks numbered `tasks` that read `range` after it
    /// was last written; `None` if none does.
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

    /// Whether two tasks are different ports'.
    pub(crate) fn crosses(&self, a: u32, b: u32) -> bool {
        self.at[a as usize].port != self.at[b as usize].port
    }
}
