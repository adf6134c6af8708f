//! The timeline of a rank (`HOPBINE_TRACE`): its calls, and what its ports do, message by message.
//!
//! Ports note [`Record`]s in rings of a fixed size, each under its port's mutex, with stamps that cost a few
//! nanoseconds ([`Ticks`]); nothing is allocated, written or converted before the end. When a ring is full its
//! oldest records give way, and are counted. At the end the rank writes them to a file of its own, as Chrome trace
//! JSON (Google's "Trace Event Format") that `hopbine trace` merges with those of other ranks.
//!
//! The engine knows a [`Sink`] only. Without a timeline that is `()`, whose functions are empty.

mod file;
mod ring;
mod ticks;
mod tracer;

pub(crate) use ring::Ring;
pub use tracer::TraceConfig;
pub(crate) use tracer::Tracer;

use hopbine_torus::Collective;

use crate::Rank;

/// What a record is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A run is under way on the port, until its [`Ended`](Kind::Ended).
    #[default]
    Run,
    /// The port has finished a run.
    Ended,
    /// A message is sent, until its [`Done`](Kind::Done) or `end`.
    Send,
    /// A message is awaited, until its [`Done`](Kind::Done) or `end`.
    Recv,
    /// A send or receive of a run is done.
    Done,
    /// A local copy.
    Copy,
    /// A local reduction.
    Fold,
    /// A poll of the endpoint that has brought something.
    Poll,
    /// A call, whose [`Label`] has the number `step`.
    Call,
}

/// Something that has happened: 64 bytes, a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub struct Record {
    /// When it began, ticks,
    pub start: u64,
    /// when the post of a message had returned,
    pub posted: u64,
    /// and when it ended; 0 if another record says that.
    pub end: u64,
    /// The operation: its communicator's context and its number, as [`Tag::operation_id`](crate::endpoint::Tag)
    /// has them.
    pub id: u64,
    /// Bytes of a message, or written by a local task.
    pub bytes: u64,
    /// The number of the run on its port,
    pub run: u32,
    /// and of the task in it.
    pub task: u32,
    /// The plan's step.
    pub step: u32,
    /// The other rank of a message.
    pub peer: Rank,
    /// The number of the message among those of the operation from one rank to the other by this port.
    pub message: u32,
    /// What it is.
    pub kind: Kind,
}

/// How a call is made. Not by its name: comparing one takes a call into the C library, with the pages that it is on,
/// which is what a timeline cost most of (0.2 us of 0.25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Procedure {
    Blocking,
    Nonblocking,
    Persistent,
}

impl Procedure {
    /// What stands before the collective's name.
    fn prefix(self) -> &'static str {
        match self {
            Procedure::Blocking => "",
            Procedure::Nonblocking => "i",
            Procedure::Persistent => "persistent ",
        }
    }
}

/// Calls that are called the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Label {
    pub(crate) collective: Collective,
    /// Of a rank's vector or block.
    pub(crate) bytes: u64,
    /// The communicator.
    pub(crate) context: u64,
    pub(crate) procedure: Procedure,
    /// The address of its options.
    pub(crate) options: usize,
}

/// Who is told what a port does.
pub trait Sink {
    /// When what was noted last ended, in ticks of its own; the time, if the port has waited since. Stamps take most
    /// of a timeline's time: what follows at once needs no stamp of its own.
    fn since(&mut self) -> u64;

    /// Takes note of what `record` makes of the time.
    fn note(&mut self, record: impl FnOnce(u64) -> Record);
}

/// Nobody.
impl Sink for () {
    #[inline]
    fn since(&mut self) -> u64 {
        0
    }

    #[inline]
    fn note(&mut self, _: impl FnOnce(u64) -> Record) {}
}
