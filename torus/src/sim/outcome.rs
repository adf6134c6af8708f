//! The predicted time of a call, and what it is spent on.

crate::named! {
    /// A category of time: what it is spent on.
    #[non_exhaustive]
    pub enum TimeCategory {
        /// Work before ports start: entering the call, registering memory, exchanging addresses.
        Setup = "setup",
        /// Waking threads and waiting for them.
        Threads = "threads",
        /// Posting messages, polling for them, locks of the allocator.
        Software = "software",
        /// Latency of a message, whatever its length.
        Latency = "latency",
        /// Transfer of bytes over the slowest resource of their route, unshared.
        Wire = "wire",
        /// Additional time of transfers because other messages share their resources.
        Congestion = "congestion",
        /// Combining data.
        Fold = "fold",
        /// Waiting for a lock that another port of the rank holds.
        Lock = "lock",
        /// Copies of a rank's own data.
        Copy = "copy",
        /// Waiting for late ranks.
        Skew = "skew",
    }
}

/// Times by category, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeBreakdown([f64; TimeCategory::ALL.len()]);

impl TimeBreakdown {
    /// The time of a category, ns.
    pub fn of(&self, category: TimeCategory) -> f64 {
        self.0[category as usize]
    }

    /// Adds to a category, ns.
    pub fn add(&mut self, category: TimeCategory, ns: f64) {
        self.0[category as usize] += ns;
    }

    /// The sum, ns.
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// What a port does in a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Computes; the time counts as this category.
    Busy(TimeCategory),
    /// Waits for messages.
    Waits,
    /// Its interface sends a message.
    Sends {
        /// The number of the message in the step: see [`RoutedPlan::message`](super::RoutedPlan::message).
        message: u32,
    },
}

impl SpanKind {
    /// What a port does in time of a category.
    pub(super) fn of(category: TimeCategory) -> Self {
        match category {
            TimeCategory::Latency
            | TimeCategory::Wire
            | TimeCategory::Congestion
            | TimeCategory::Lock
            | TimeCategory::Skew => SpanKind::Waits,
            _ => SpanKind::Busy(category),
        }
    }
}

/// A span of a port's time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// The rank; 0 if one stands for all.
    pub rank: u32,
    /// The lane.
    pub lane: u32,
    /// The step, if there is one.
    pub step: Option<u32>,
    /// What the port does.
    pub kind: SpanKind,
    /// The start, ns.
    pub start_ns: f64,
    /// The end, ns.
    pub end_ns: f64,
}

/// The predicted time of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Time until the last port of the last rank is done, ns.
    pub ns: f64,
    /// That port's time by category.
    pub breakdown: TimeBreakdown,
    /// The spans of all ports, if requested.
    pub spans: Vec<Span>,
}

impl Outcome {
    /// Extrapolates to a longer call: adds `times` times the difference between this call and a shorter one, which is
    /// at least `least_ns`. Where calls of a few segments meet on links that longer calls keep busy, the difference
    /// can be too short, even negative.
    pub(super) fn extended(self, shorter: &Outcome, times: f64, least_ns: f64) -> Outcome {
        let Outcome { ns, breakdown, spans } = self;
        let more = |now: f64, before: f64| now + times * (now - before);
        let of = |category: TimeCategory| {
            more(breakdown.of(category), shorter.breakdown.of(category)).max(0.0)
        };
        let ns = ns + times * (ns - shorter.ns).max(least_ns);
        // The parts do not add up if another rank was last in the shorter call. They are scaled to the time.
        let all: f64 = TimeCategory::ALL.into_iter().map(of).sum();
        let mut extended = TimeBreakdown::default();
        TimeCategory::ALL
            .into_iter()
            .for_each(|category| extended.add(category, of(category) * ns / all));
        Outcome { ns, breakdown: extended, spans }
    }
}
