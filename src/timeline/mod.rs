//! The timeline of a rank (`HOPBINE_TRACE`): its calls, and each message and local task of its ports.
//!
//! Ports append [`Record`]s to rings of a fixed size, each under its port's mutex, with time stamps that cost a few
//! nanoseconds ([`Ticks`](ticks::Ticks)). Besides the text of a call that is made for the first time, nothing is
//! allocated, written or converted before tear-down. A full ring overwrites its oldest records and counts them. At
//! tear-down the rank writes its records to its own file as Chrome trace JSON (Google's "Trace Event Format"); `hopbine
//! trace` merges the files of all ranks.
//!
//! The engine knows only the trait [`Sink`]. Without a timeline the sink is `()`, whose functions are empty.

mod file;
mod ring;
mod ticks;
mod tracer;

pub(crate) use ring::RecordRing;
pub use tracer::TraceConfig;
pub(crate) use tracer::Tracer;

use hopbine_torus::Collective;

use crate::Rank;

/// What a record describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordKind {
    /// A run on the port, until its [`Ended`](RecordKind::Ended) record.
    #[default]
    Run,
    /// The end of a run on the port.
    Ended,
    /// A send, until its [`Done`](RecordKind::Done) record, or `end` if that is set.
    Send,
    /// A receive, until its [`Done`](RecordKind::Done) record, or `end` if that is set.
    Recv,
    /// The completion of a send or receive of a run.
    Done,
    /// A local copy.
    Copy,
    /// A local reduction.
    Fold,
    /// A poll of the endpoint that returned events.
    Poll,
    /// A call; the field `step` is the number of its [`Label`], and `bytes` those of the rank's vector or block.
    Call,
}

/// A record of one event: 64 bytes, a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub struct Record {
    /// Start of the event, ticks.
    pub start: u64,
    /// Return of the post of a message, ticks.
    pub posted: u64,
    /// End of the event, ticks; 0 if another record marks the end.
    pub end: u64,
    /// The operation: its communicator's context and its number, as in [`Tag::operation_id`](crate::endpoint::Tag).
    pub id: u64,
    /// Bytes of a message, or bytes written by a local task.
    pub bytes: u64,
    /// Number of the run on its port.
    pub run: u32,
    /// Number of the task within the run.
    pub task: u32,
    /// The plan's step.
    pub step: u32,
    /// Peer of a message.
    pub peer: Rank,
    /// Number of the message within the operation, counted per sender, receiver and port.
    pub message: u32,
    /// Kind of the event.
    pub kind: RecordKind,
}

/// The form of a call. An enum instead of a string: comparing strings calls into the C library and touches its pages,
/// which was most of the cost of a timeline (0.2 us of 0.25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Procedure {
    Blocking,
    Nonblocking,
    Persistent,
}

impl Procedure {
    /// Number of forms.
    pub(crate) const COUNT: usize = 3;

    /// The prefix of the collective's name.
    fn prefix(self) -> &'static str {
        match self {
            Procedure::Blocking => "",
            Procedure::Nonblocking => "i",
            Procedure::Persistent => "persistent ",
        }
    }
}

/// A label of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) collective: Collective,
    pub(crate) procedure: Procedure,
    /// What performs these calls, and why.
    pub(crate) served_by: String,
}

/// A recipient of a port's records.
pub trait Sink {
    /// The start of the next event, ticks: the end of the last record, or the current time if the port has waited
    /// since then. Time stamps are most of a timeline's cost, and an event that follows directly needs none of its
    /// own.
    fn since(&mut self) -> u64;

    /// Appends the record that `record` makes of the current time, ticks.
    fn note(&mut self, record: impl FnOnce(u64) -> Record);
}

/// A sink that drops all records.
impl Sink for () {
    #[inline]
    fn since(&mut self) -> u64 {
        0
    }

    #[inline]
    fn note(&mut self, _: impl FnOnce(u64) -> Record) {}
}
