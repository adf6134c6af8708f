//! Programs: what one rank executes, independent of addresses.
//!
//! A [`Program`] holds, for each port, a static graph of tasks over regions of four buffers.
//! [`crate::engine::compile`](fn@crate::engine::compile) creates it once, and
//! [`PortRun`](crate::engine::run::port_run::PortRun) executes it any number of times, on any buffers of the right
//! size. It does not depend on the algorithm, the element type (only the element's size) or the endpoint.

use crate::Rank;

/// The memory that a region lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// The user's input; only read.
    Send = 0,
    /// The user's output; in place, also the input.
    Recv = 1,
    /// Working space of the operation, shared by its ports.
    Work = 2,
    /// Staging of the operation, one for each port.
    Staging = 3,
}

impl Buffer {
    /// Number of buffers.
    pub const COUNT: usize = 4;
}

/// Bytes `offset .. offset + len` of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// Which memory.
    pub buffer: Buffer,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Region {
    pub(crate) fn range(self) -> std::ops::Range<u64> {
        self.offset..self.offset + self.len
    }

    /// Whether the regions have a byte in common.
    pub(crate) fn meets(self, other: Region) -> bool {
        let ends = (self.range().end, other.range().end);
        self.buffer == other.buffer && self.offset < ends.1 && other.offset < ends.0
    }
}

/// Consecutive entries of one of a program's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRange {
    /// First entry.
    pub start: u32,
    /// Number of entries.
    pub len: u32,
}

impl ListRange {
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// One unit of work. A task may start when all tasks it depends on have finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Send `from` as a message.
    Send {
        /// Receiving rank.
        to: Rank,
        /// Number of the message among all that this rank sends to `to` through this port.
        message: u32,
        /// What to send.
        from: Region,
    },
    /// Receive a message.
    Recv {
        /// Sending rank.
        from: Rank,
        /// Number of the message among all that `from` sends to this rank through this port.
        message: u32,
        /// Region to receive into.
        into: Region,
    },
    /// Perform a range of the program's [`Move`]s.
    Copy(ListRange),
    /// Perform a range of the program's [`Fold`]s.
    Fold(ListRange),
}

impl Task {
    /// The region that a message is sent from or received into.
    pub(crate) fn on_wire(self) -> Option<Region> {
        let mut task = self;
        task.on_wire_mut().copied()
    }

    pub(crate) fn on_wire_mut(&mut self) -> Option<&mut Region> {
        match self {
            Task::Send { from: region, .. } | Task::Recv { into: region, .. } => Some(region),
            Task::Copy(_) | Task::Fold(_) => None,
        }
    }
}

/// One copy between disjoint regions of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Source.
    pub from: Region,
    /// Destination.
    pub into: Region,
}

/// One reduction of operands, from left to right, into a region of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Destination.
    pub into: Region,
    /// The operands outside of `into`; entries of the program's operand list.
    pub operands: ListRange,
    /// If the contents of `into` are an operand too: the index of the other operand that they precede. Otherwise
    /// there are at least two other operands.
    pub own_at: Option<u32>,
}

/// A dependency on a task of another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagWait {
    /// Flag of the other port's task, set when that task has ended.
    pub flag: u32,
    /// The task that waits.
    pub task: u32,
}

/// The flag of a task that no other port waits for.
pub const NO_FLAG: u32 = u32::MAX;

/// The tasks of one port.
#[derive(Clone, Debug, Default)]
pub struct PortProgram {
    /// The tasks in plan order, in which they could be executed one by one.
    pub tasks: Box<[Task]>,
    /// For each task, its step of the plan; one past the last step for the final copies.
    pub steps: Box<[u32]>,
    /// For each task, the number of tasks that it waits for, including those of other ports.
    pub n_deps: Box<[u32]>,
    /// For each task, the start of its successors in `successors`; one more entry than tasks.
    pub successor_start: Box<[u32]>,
    /// The successors of each task (the tasks that wait for it), task after task.
    pub successors: Box<[u32]>,
    /// The receives, in plan order.
    pub recvs: Box<[u32]>,
    /// The entries that copies refer to.
    pub moves: Box<[Move]>,
    /// The entries that folds refer to.
    pub folds: Box<[Fold]>,
    /// Operands of folds.
    pub operands: Box<[Region]>,
    /// For each buffer, the length in bytes, from its start, that tasks may touch.
    pub needs: [u64; Buffer::COUNT],
    /// For each buffer, the longest message in bytes that is sent from it or received into it; 0 if there is none.
    pub wire_bytes: [u64; Buffer::COUNT],
    /// Most receives that may be posted and unfinished at a time.
    pub recv_window: u32,
    /// Most receives of one step, all of which must be possible at a time.
    pub step_window: u32,
    /// For each receive, the only local task that reads its message, if the message may be in a view. Otherwise
    /// [`RESULT`](super::readers::RESULT) for results that no task reads, and no task (`u32::MAX`).
    pub readers: Box<[u32]>,
    /// For each task, its flag, or [`NO_FLAG`] if no task of another port waits for it. Empty if no task has a flag.
    pub task_flags: Box<[u32]>,
    /// Dependencies on tasks of other ports: a list for each such port, in the order of that port's tasks.
    pub flag_waits: Box<[Box<[FlagWait]>]>,
}

impl PortProgram {
    /// The flag of a task, if a task of another port waits for it.
    pub fn flag(&self, task: u32) -> Option<u32> {
        self.task_flags.get(task as usize).copied().filter(|&flag| flag != NO_FLAG)
    }

    fn list_bytes(&self) -> usize {
        let Self { tasks, steps, n_deps, successor_start, successors, recvs, .. } = self;
        let Self { moves, folds, operands, readers, task_flags, flag_waits, .. } = self;
        let words = [steps, n_deps, successor_start, successors, recvs, readers, task_flags];
        let words = words.into_iter().map(|list| size_of_val(&**list)).sum::<usize>();
        let waits = flag_waits.iter().map(|list| size_of_val(&**list)).sum::<usize>();
        let copies = size_of_val(&**moves) + size_of_val(&**folds) + size_of_val(&**operands);
        words + waits + copies + size_of_val(&**tasks)
    }

    /// The most operands of a fold.
    pub(crate) fn most_operands(&self) -> usize {
        self.folds.iter().map(|fold| fold.operands.len as usize).max().unwrap_or(0)
    }

    /// The tasks that wait for task `task`.
    pub fn successors(&self, task: u32) -> &[u32] {
        let task = task as usize;
        let range = self.successor_start[task] as usize..self.successor_start[task + 1] as usize;
        &self.successors[range]
    }
}

/// What one rank executes in one collective.
#[derive(Clone, Debug)]
pub struct Program {
    /// This rank.
    pub rank: Rank,
    /// One entry per port.
    pub ports: Vec<PortProgram>,
    /// Copies from the working space to the user's output that must wait for all ports: until then the output may
    /// hold another port's input.
    pub closing: Box<[Move]>,
    /// Bytes copied so that the user's memory need not be registered.
    pub staged_bytes: u64,
    /// Bytes of working space needed.
    pub work_bytes: u64,
    /// Number of flags of tasks that other ports wait for.
    pub n_flags: u32,
    /// Whether results that no task reads are stored past the caches. The compiler sets false; code that knows the
    /// caches sets the value.
    pub past_caches: bool,
    /// Signature of the call on the wire; see [`Tag::call`](crate::endpoint::Tag). The compiler sets 0; code that
    /// knows the call sets the value.
    pub call: u16,
}

impl Program {
    /// The same program with other ranks: rank r becomes `rank_of(r)`.
    #[must_use]
    pub fn renumbered(mut self, rank_of: impl Fn(Rank) -> Rank) -> Self {
        self.rank = rank_of(self.rank);
        for task in self.ports.iter_mut().flat_map(|port| &mut port.tasks) {
            match task {
                Task::Send { to: peer, .. } | Task::Recv { from: peer, .. } => {
                    *peer = rank_of(*peer);
                }
                Task::Copy(_) | Task::Fold(_) => {}
            }
        }
        self
    }

    /// Bytes that the program copies.
    pub(crate) fn copied_bytes(&self) -> u64 {
        let moves = self.ports.iter().flat_map(|port| &port.moves).chain(&self.closing);
        moves.map(|copy| copy.from.len).sum()
    }

    /// Bytes of the user's buffers that the program reads or writes.
    pub fn user_bytes(&self) -> u64 {
        let end = |buffer| self.ports.iter().map(move |port| port.needs[buffer as usize]).max();
        end(Buffer::Send).unwrap_or(0) + end(Buffer::Recv).unwrap_or(0)
    }

    /// Bytes of the program's own lists.
    pub(crate) fn list_bytes(&self) -> u64 {
        let lists = self.ports.iter().map(PortProgram::list_bytes).sum::<usize>();
        (lists + size_of_val(&*self.closing)) as u64
    }

    /// Bytes of memory that an operation needs besides the user's buffers.
    pub fn memory_bytes(&self) -> u64 {
        let staging = |port: &PortProgram| port.needs[Buffer::Staging as usize];
        self.work_bytes + self.ports.iter().map(staging).sum::<u64>()
    }
}
