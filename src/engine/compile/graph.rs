//! The task graph under construction: tasks in plan order, dependencies from memory hazards.
//!
//! A task waits for the last writer of every byte it reads (read after write), and for the
//! last writer and all readers since of every byte it writes (write after write, write after
//! read). Nothing else orders tasks: what may overlap, does.

use std::ops::Range;

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

/// The graph.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) tasks: Vec<Task>,
    pub(crate) steps: Vec<u32>,
    /// For each task, its piece number.
    piece: Vec<u32>,
    /// The tasks that each task waits for, one after the other,
    deps: Vec<u32>,
    /// and where those of each task end.
    deps_end: Vec<u32>,
    accesses: [Intervals<Touched>; Buffer::COUNT + 1],
}

/// A finished graph's dependencies in the form in which they are executed.
pub(crate) struct Successors {
    pub(crate) n_deps: Box<[u32]>,
    pub(crate) start: Box<[u32]>,
    pub(crate) tasks: Box<[u32]>,
}

impl Graph {
    pub(crate) fn new() -> Self {
        Graph {
            tasks: Vec::new(),
            steps: Vec::new(),
            piece: Vec::new(),
            deps: Vec::new(),
            deps_end: Vec::new(),
            accesses: std::array::from_fn(|_| Intervals::new()),
        }
    }

    /// Number of tasks so far: the number of the next one.
    pub(crate) fn len(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// Adds a task of step `step` that touches what is listed.
    pub(crate) fn emit(
        &mut self,
        step: u32,
        piece: u32,
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
        self.steps.push(step);
        self.piece.push(piece);
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
            .map(|&reader| self.piece[reader as usize])
            .max()
    }

    /// Turns "waits for" into "is waited for by".
    pub(crate) fn successors(&self) -> Successors {
        let ends = self.deps_end.iter().map(|&end| end as usize);
        let deps = std::iter::once(0).chain(ends.clone()).zip(ends);
        let deps = deps.map(|(start, end)| &self.deps[start..end]);
        let n_deps: Box<[u32]> = deps.clone().map(|deps| deps.len() as u32).collect();
        let mut start = vec![0u32; self.tasks.len() + 1];
        for &dep in &self.deps {
            start[dep as usize + 1] += 1;
        }
        for index in 1..start.len() {
            start[index] += start[index - 1];
        }
        let mut next = start.clone();
        let mut tasks = vec![0u32; start[self.tasks.len()] as usize];
        for (task, deps) in deps.enumerate() {
            for &dep in deps {
                tasks[next[dep as usize] as usize] = task as u32;
                next[dep as usize] += 1;
            }
        }
        Successors { n_deps, start: start.into(), tasks: tasks.into() }
    }
}
