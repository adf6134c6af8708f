//! What a plan takes.

/// What time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Before ports start: entering the call, registering memory, exchanging addresses.
    Setup,
    /// Waking threads and waiting for them.
    Threads,
    /// Posting messages, looking for them, locks of the allocator.
    Software,
    /// The way of a message, whatever its length.
    Latency,
    /// Bytes over the slowest resource of their way, alone.
    Wire,
    /// The same, longer because others share it.
    Congestion,
    /// Combining.
    Fold,
    /// Waiting for other ports that combine.
    Lock,
    /// Copies of a rank's own data.
    Copy,
    /// Waiting for ranks that are late.
    Skew,
}

impl Part {
    /// All in order.
    pub const ALL: [Part; 10] = [
        Part::Setup,
        Part::Threads,
        Part::Software,
        Part::Latency,
        Part::Wire,
        Part::Congestion,
        Part::Fold,
        Part::Lock,
        Part::Copy,
        Part::Skew,
    ];

    /// Its name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Setup => "setup",
            Part::Threads => "threads",
            Part::Software => "software",
            Part::Latency => "latency",
            Part::Wire => "wire",
            Part::Congestion => "congestion",
            Part::Fold => "fold",
            Part::Lock => "lock",
            Part::Copy => "copy",
            Part::Skew => "skew",
        }
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
