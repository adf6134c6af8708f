//! What a plan takes.

crate::named! {
    /// What time is spent on.
    pub enum Part {
        /// Before ports start: entering the call, registering memory, exchanging addresses.
        Setup = "setup",
        /// Waking threads and waiting for them.
        Threads = "threads",
        /// Posting messages, looking for them, locks of the allocator.
        Software = "software",
        /// The way of a message, whatever its length.
        Latency = "latency",
        /// Bytes over the slowest resource of their way, alone.
        Wire = "wire",
        /// The same, longer because others share it.
        Congestion = "congestion",
        /// Combining.
        Fold = "fold",
        /// Waiting for other ports that combine.
        Lock = "lock",
        /// Copies of a rank's own data.
        Copy = "copy",
        /// Waiting for ranks that are late.
        Skew = "skew",
    }
}

/// Times by what they are spent on, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts([f64; Part::ALL.len()]);

impl Parts {
    /// The time of a part, ns.
    pub fn of(&self, part: Part) -> f64 {
        self.0[part as usize]
    }

    /// Adds to a part, ns.
    pub fn add(&mut self, part: Part, ns: f64) {
        self.0[part as usize] += ns;
    }

    /// The sum, ns.
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// What a port does in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Computes, by what it is counted as.
    Busy(Part),
    /// Waits for messages.
    Waits,
    /// Its interface sends a message.
    Sends {
        /// Its number in the step: see [`Score::message`](super::Score::message).
        message: u32,
    },
}

/// A time of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The rank; 0 if one stands for all.
    pub rank: u32,
    /// The lane.
    pub lane: u32,
    /// The step that it belongs to, if any.
    pub step: Option<u32>,
    /// What happens.
    pub kind: SpanKind,
    /// From when, ns.
    pub start_ns: f64,
    /// Until when, ns.
    pub end_ns: f64,
}

/// What a call takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Until the last port of the last rank is done, ns.
    pub ns: f64,
    /// What that port spends it on.
    pub parts: Parts,
    /// The times of all ports, if they are asked for.
    pub spans: Vec<Span>,
}

impl Outcome {
    /// What grows as much again, so many times, as from a shorter call to this one.
    pub(super) fn extended(self, shorter: &Outcome, times: f64) -> Outcome {
        let Outcome { ns, parts, spans } = self;
        let more = |now: f64, before: f64| now + times * (now - before);
        let of = |part: Part| more(parts.of(part), shorter.parts.of(part)).max(0.0);
        let ns = more(ns, shorter.ns);
        // What another rank was the last in has other parts: they make up the same time.
        let all: f64 = Part::ALL.into_iter().map(of).sum();
        let mut extended = Parts::default();
        Part::ALL.into_iter().for_each(|part| extended.add(part, of(part) * ns / all));
        Outcome { ns, parts: extended, spans }
    }
}
