//! Programs: what one rank executes, independent of addresses.
//!
//! A [`Program`] holds for each port a static graph of tasks over regions of four buffers. It
//! is made once by [`crate::engine::compile`](fn@crate::engine::compile) and run any number of times, on any
//! buffers of the right size, by [`PortRun`](crate::engine::PortRun). It knows no algorithm, no
//! element type (only the element's size) and no endpoint.

use crate::Rank;

/// The memory that a region lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// The user's input; only read.
    Send = 0,
    /// The user's output; in place, also the input.
    Recv = 1,
    /// Working space of the request, shared by its ports.
    Work = 2,
    /// Staging of the request, one for each port.
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
    /// Give `from` to the wire.
    Send {
        /// Receiving rank.
        to: Rank,
        /// Number of the message among all that this rank sends to `to` through this port.
        message: u32,
        /// What to send.
        from: Region,
    },
    /// Take a message from the wire.
    Recv {
        /// Sending rank.
        from: Rank,
        /// Number of the message among all that `from` sends to this rank through this port.
        message: u32,
        /// Where it lands.
        into: Region,
    },
    /// Copy each of some [`Move`]s.
    Copy(ListRange),
    /// Combine each of some [`Fold`]s.
    Fold(ListRange),
}

impl Task {
    /// What a message is sent from or received into.
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

/// One reduction: the operands, from left to right, into a region of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Where the result goes.
    pub into: Region,
    /// The operands outside of `into`; entries of the program's operand list.
    pub operands: ListRange,
    /// If what `into` holds is an operand too: before which of the others it stands.
    /// Otherwise there are at least two others.
    pub own_at: Option<u32>,
}

/// A task waits for one of another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// That one's flag, which says that it has ended.
    pub flag: u32,
    /// The one that waits.
    pub task: u32,
}

/// In place of a flag, for tasks that no other port waits for.
pub const NO_FLAG: u32 = u32::MAX;

/// The tasks of one port.
#[derive(Clone, Debug, Default)]
pub struct PortProgram {
    /// The tasks, in plan order: an order in which they could be executed one by one.
    pub tasks: Box<[Task]>,
    /// For each task, the plan's step it belongs to; one past the last for the final copies.
    pub steps: Box<[u32]>,
    /// For each task, the number of tasks it waits for, of other ports, too.
    pub n_deps: Box<[u32]>,
    /// For each task, where its successors start in `successors`; one entry more than tasks.
    pub successor_start: Box<[u32]>,
    /// The tasks that wait for a task, task after task.
    pub successors: Box<[u32]>,
    /// The receives, in plan order.
    pub recvs: Box<[u32]>,
    /// What copies copy.
    pub moves: Box<[Move]>,
    /// What folds combine.
    pub folds: Box<[Fold]>,
    /// Operands of folds.
    pub operands: Box<[Region]>,
    /// How many bytes of each buffer the tasks may touch, from its start.
    pub needs: [u64; Buffer::COUNT],
    /// The longest message sent from or received into each buffer: 0 if the wire does not
    /// touch it.
    pub wire_bytes: [u64; Buffer::COUNT],
    /// How many receives may be posted and unfinished at a time.
    pub recv_window: u32,
    /// The most receives of one step: so many must be possible at a time.
    pub step_window: u32,
    /// For each receive the one local task that reads its message, if that may be elsewhere than
    /// in the receive's region; no task (`u32::MAX`) otherwise, and for other tasks.
    pub readers: Box<[u32]>,
    /// For each task its flag, if a task of another port waits for it, or [`NO_FLAG`]. Empty if none has one.
    pub tells: Box<[u32]>,
    /// What tasks wait for, port by other port, in the order of that port's tasks.
    pub hears: Box<[Box<[Heard]>]>,
}

impl PortProgram {
    /// The flag of a task, if a task of another port waits for it.
    pub fn flag(&self, task: u32) -> Option<u32> {
        self.tells.get(task as usize).copied().filter(|&flag| flag != NO_FLAG)
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
    /// Copies from the working space to the user's output for which all ports must be done:
    /// until then what is there may be another port's input.
    pub closing: Box<[Move]>,
    /// Bytes that are copied so that the user's memory need not be registered.
    pub staged_bytes: u64,
    /// Bytes of working space needed.
    pub work_bytes: u64,
    /// Flags of tasks that other ports wait for.
    pub n_flags: u32,
    /// Stands for the call on the wire; see [`Tag::call`](crate::endpoint::Tag). 0 as compiled:
    /// what makes calls equal is for those to say who know the call.
    pub call: u16,
}

impl Program {
    /// The same program among other ranks: what was rank r is now `rank_of(r)`.
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

    /// Bytes that its copies copy.
    pub(crate) fn copied_bytes(&self) -> u64 {
        let moves = self.ports.iter().flat_map(|port| &port.moves).chain(&self.closing);
        moves.map(|copy| copy.from.len).sum()
    }

    /// Bytes of memory that an operation needs besides the user's buffers.
    pub fn memory_bytes(&self) -> u64 {
        let staging = |port: &PortProgram| port.needs[Buffer::Staging as usize];
        self.work_bytes + self.ports.iter().map(staging).sum::<u64>()
    }
}
