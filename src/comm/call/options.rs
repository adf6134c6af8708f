//! The options of a call.

use std::sync::Arc;

/// Choices for calls; whatever is `None` is chosen by the library. All ranks must choose alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CallOptions {
    /// The algorithm: its name in the registry, a schedule's text, or `search`; see [`Wanted`](crate::Wanted).
    pub algorithm: Option<Arc<str>>,
    /// Number of ports.
    pub ports: Option<u32>,
    /// The longest message in bytes; rounded down to whole elements.
    pub segment_bytes: Option<u64>,
    /// Register the call's buffers for this call only, and keep nothing of it: for memory
    /// that goes before it is used again. The registration cache then costs nothing.
    pub register_anew: bool,
    /// Where no registrations can be kept: the most bytes that a call copies to save two registrations, in place of
    /// `HOPBINE_STAGE_BYTES`. Ranks need not agree.
    pub stage_bytes: Option<u64>,
    /// Whether the network's barrier gates do the work.
    pub hardware: Hardware,
    /// Sums of `f32`, `f64` and complex numbers may go by the barrier gates (BFPSUM), which round them once:
    /// the sum does not depend on order or shape, but its last bits may differ from a plan's, which
    /// rounds at every addition. `HOPBINE_GATE_SUM` says it for all calls.
    pub gate_sum: bool,
    /// The buffers stay registered from call to call, as those of persistent collectives.
    pub(crate) held: bool,
}

/// Who performs a barrier, or an allreduce of a few numbers: the network's barrier gates, or a
/// plan. Only blocking calls can use the gates; a flat buffer also serves others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hardware {
    /// The gates, where they are there and give the same bits as a plan: a barrier, and an allreduce
    /// that fits 6 words of 64 bits. Minimum and maximum of every type take a word for each element, sums of
    /// integers (modulo their size) one for each or, below 32 bits, for a few; bitwise operators pack
    /// 48 bytes, logical ones 384 elements. A call that names an algorithm, ports or segments goes by plan. On one host
    /// a flat buffer in shared memory serves in place of the gates, for all short collectives, non-blocking and
    /// persistent ones of equal blocks too. A blocking call need not match a non-blocking or persistent call of another
    /// rank.
    #[default]
    Auto,
    /// A plan.
    Never,
    /// The gates, or an error. Also sums of up to 3 floats, as with [`gate_sum`](CallOptions::gate_sum).
    Always,
}

impl CallOptions {
    /// Whether they say anything about a plan.
    pub(crate) fn asks_for_a_plan(&self) -> bool {
        self.algorithm.is_some() || self.ports.is_some() || self.segment_bytes.is_some()
    }

    /// Everything chosen by the library.
    pub fn new() -> Self {
        CallOptions::default()
    }

    /// With this algorithm: a name of the registry, the text of a schedule, as from
    /// [`Schedule`](hopbine_torus::plan::Schedule)'s `Display` or `hopbine search --format schedule`, or `search`, or
    /// `search:MACHINE`, for the best that is found under the network model when the call is made first.
    /// [`Wanted::new`](crate::Wanted::new) says what is refused.
    #[must_use]
    pub fn algorithm(mut self, name: &str) -> Self {
        self.algorithm = Some(name.into());
        self
    }

    /// On this many ports.
    #[must_use]
    pub fn ports(mut self, ports: u32) -> Self {
        self.ports = Some(ports);
        self
    }

    /// With buffers registered for this call only.
    #[must_use]
    pub fn register_anew(mut self) -> Self {
        self.register_anew = true;
        self
    }

    /// With copies of up to this many bytes in place of two registrations, where none can be kept.
    #[must_use]
    pub fn stage_bytes(mut self, bytes: u64) -> Self {
        self.stage_bytes = Some(bytes);
        self
    }

    /// With or without the barrier gates.
    #[must_use]
    pub fn hardware(mut self, hardware: Hardware) -> Self {
        self.hardware = hardware;
        self
    }

    /// With sums of floats that may be rounded as the barrier gates do.
    #[must_use]
    pub fn gate_sum(mut self) -> Self {
        self.gate_sum = true;
        self
    }

    /// With messages of at most this many bytes.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = Some(bytes);
        self
    }
}
