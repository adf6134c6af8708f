//! What has happened in a simulation: a hash of all of it, and on request all entries.

use std::fmt;
use std::time::Duration;

use hopbine_meet::fnv;
use hopbine_torus::PortId;

use crate::Rank;
use crate::endpoint::Tag;

/// Something that has happened.
#[derive(Clone, Debug)]
pub(super) enum TraceStep {
    /// A rank goes on.
    Resumes,
    /// A rank posts a send, or a receive.
    Sends {
        to: Rank,
        port: PortId,
        tag: Tag,
        len: usize,
        how: &'static str,
    },
    Awaits {
        from: Rank,
        port: PortId,
        tag: Tag,
        len: usize,
    },
    /// Something has come from another rank.
    Hears {
        from: Rank,
        port: PortId,
        what: &'static str,
    },
    /// The device has moved bytes of a message.
    Moves {
        from: Rank,
        bytes: usize,
    },
    /// A device has done a part of an operation of a rank, in this rank's queues or memory.
    #[cfg_attr(not(feature = "emu"), expect(dead_code, reason = "of the emulated device"))]
    Device {
        from: Rank,
        what: &'static str,
        bytes: usize,
    },
    /// What has become of memory of a rank's program.
    Memory(&'static str),
    /// A rank is killed, stopped, or goes on after that.
    Fate(&'static str),
    /// What the program says of itself.
    Says(String),
}

/// One line of the trace.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When, since the start.
    pub at: Duration,
    /// To whom.
    pub rank: Rank,
    step: TraceStep,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Trace {
    hash: u64,
    n_steps: u64,
    /// All entries, if they are wanted.
    entries: Option<Vec<Entry>>,
}

impl Trace {
    pub(super) fn new(keeps_entries: bool) -> Self {
        Trace { hash: fnv::START, n_steps: 0, entries: keeps_entries.then(Vec::new) }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn n_steps(&self) -> u64 {
        self.n_steps
    }

    pub(super) fn take_entries(&mut self) -> Vec<Entry> {
        self.entries.take().unwrap_or_default()
    }

    fn mix(&mut self, word: u64) {
        self.hash = fnv::mix(self.hash, word).rotate_left(29);
    }

    pub(super) fn note(&mut self, at: u64, rank: Rank, step: TraceStep) {
        self.n_steps += 1;
        self.mix(at << 20 ^ u64::from(rank));
        match &step {
            TraceStep::Resumes => self.mix(1),
            TraceStep::Sends { to, port, tag, len, how } => {
                self.mix(2 | u64::from(*to) << 8 | u64::from(port.0) << 40);
                self.mix_tag(*tag);
                self.mix(*len as u64);
                self.mix_text(how);
            }
            TraceStep::Awaits { from, port, tag, len } => {
                self.mix(3 | u64::from(*from) << 8 | u64::from(port.0) << 40);
                self.mix_tag(*tag);
                self.mix(*len as u64);
            }
            TraceStep::Hears { from, port, what } => {
                self.mix(4 | u64::from(*from) << 8 | u64::from(port.0) << 40);
                self.mix_text(what);
            }
            TraceStep::Moves { from, bytes } => {
                self.mix(5 | u64::from(*from) << 8);
                self.mix(*bytes as u64);
            }
            TraceStep::Device { from, what, bytes } => {
                self.mix(6 | u64::from(*from) << 8);
                self.mix_text(what);
                self.mix(*bytes as u64);
            }
            TraceStep::Memory(what) | TraceStep::Fate(what) => self.mix_text(what),
            TraceStep::Says(text) => self.mix_text(text),
        }
        if let Some(entries) = &mut self.entries {
            entries.push(Entry { at: Duration::from_nanos(at), rank, step });
        }
    }

    fn mix_tag(&mut self, tag: Tag) {
        self.mix(tag.operation_id());
        self.mix(u64::from(tag.message) << 16 | u64::from(tag.call));
    }

    fn mix_text(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.mix(u64::from(byte)));
    }
}

/// A tag as people read it.
struct Named(Tag);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tag { context, operation, message, call } = self.0;
        let number = message & !Tag::LATE;
        write!(f, "message {number} of operation {context:x}.{operation} (call {call:04x}")?;
        f.write_str(if message == number { ")" } else { ", late)" })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { at, rank, step } = self;
        write!(f, "{:>14.3} us  rank {rank}: ", at.as_nanos() as f64 / 1000.0)?;
        match step {
            TraceStep::Resumes => f.write_str("goes on"),
            TraceStep::Sends { to, port, tag, len, how } => {
                write!(f, "sends {len} B to {to} by port {port}, {how}: {}", Named(*tag))
            }
            TraceStep::Awaits { from, port, tag, len } => {
                write!(f, "awaits {len} B from {from} by port {port}: {}", Named(*tag))
            }
            TraceStep::Hears { from, port, what } => {
                write!(f, "gets {what} of {from} by port {port}")
            }
            TraceStep::Moves { from, bytes } => write!(f, "{bytes} B of {from} are in place"),
            TraceStep::Device { from, what, bytes } => write!(f, "{bytes} B of {from}: it {what}"),
            TraceStep::Memory(what) => write!(f, "memory {what}"),
            TraceStep::Fate(what) => f.write_str(what),
            TraceStep::Says(text) => f.write_str(text),
        }
    }
}
