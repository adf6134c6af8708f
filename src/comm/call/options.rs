//! The options of a call.

use std::sync::Arc;

/// Options of a call. The library chooses whatever is `None`. All ranks must use the same options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CallOptions {
    /// The algorithm: its name in the registry, a schedule's text, or `search`; see [`Wanted`](crate::Wanted).
    pub algorithm: Option<Arc<str>>,
    /// Number of ports.
    pub ports: Option<u32>,
    /// The longest message in bytes; rounded down to whole elements.
    pub segment_bytes: Option<u64>,
    /// Register the call's buffers for this call only and cache no registration: for memory that is freed before it
    /// is used again. The registration cache then costs nothing.
    pub register_anew: bool,
    /// The most bytes that a call copies to avoid two registrations, if registrations cannot be cached. Replaces
    /// `HOPBINE_STAGE_BYTES`. May differ between ranks.
    pub stage_bytes: Option<u64>,
    /// Whether the network's barrier gates perform the call.
    pub hardware: Hardware,
    /// Allows the barrier gates (BFPSUM) to sum `f32`, `f64` and complex numbers. The gates round a sum once: it
    /// does not depend on order or shape, but its last bits may differ from those of a plan, which rounds at every
    /// addition. `HOPBINE_GATE_SUM` sets this for all calls.
    pub gate_sum: bool,
    /// The buffers stay registered between calls, as those of persistent collectives do.
    pub(crate) held: bool,
}

/// What performs a barrier or an allreduce of a few numbers: the network's barrier gates or a plan. Only blocking
/// calls can use the gates. A flat buffer also performs non-blocking and persistent calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hardware {
    /// The gates, if there are any, for calls of which they give the same bits as a plan: a barrier, and an
    /// allreduce that fits 6 words of 64 bits. Minimum and maximum of every type take one word per element. Sums of
    /// integers (modulo their size) take one word per element or, below 32 bits, one word for several elements.
    /// Bitwise operators pack 48 bytes, logical ones 384 elements. A call that names an algorithm, ports or segments
    /// uses a plan. On one host a flat buffer in shared memory replaces the gates, for all short collectives, also
    /// for non-blocking and persistent ones with equal blocks. A blocking call does not necessarily match a
    /// non-blocking or persistent call of another rank.
    #[default]
    Auto,
    /// A plan.
    Never,
    /// The gates, or an error. Also allows sums of up to 3 floats, as [`gate_sum`](CallOptions::gate_sum) does.
    Always,
}

impl CallOptions {
    /// Whether an option is set that only a plan can follow: algorithm, ports or segments.
    pub(crate) fn requires_plan(&self) -> bool {
        self.algorithm.is_some() || self.ports.is_some() || self.segment_bytes.is_some()
    }

    /// Options that leave every choice to the library.
    pub fn new() -> Self {
        CallOptions::default()
    }

    /// Sets the algorithm: a name in the registry; the text of a schedule, as printed by
    /// [`Schedule`](hopbine_torus::plan::Schedule)'s `Display` or `hopbine search --format schedule`; or `search` or
    /// `search:MACHINE`, for the best schedule that a search under the network model finds at the first call.
    /// [`Wanted::new`](crate::Wanted::new) lists what is refused.
    #[must_use]
    pub fn algorithm(mut self, name: &str) -> Self {
        self.algorithm = Some(name.into());
        self
    }

    /// Sets the number of ports.
    #[must_use]
    pub fn ports(mut self, ports: u32) -> Self {
        self.ports = Some(ports);
        self
    }

    /// Registers the buffers of a call for that call only.
    #[must_use]
    pub fn register_anew(mut self) -> Self {
        self.register_anew = true;
        self
    }

    /// Sets the most bytes that a call copies to avoid two registrations, if registrations cannot be cached.
    #[must_use]
    pub fn stage_bytes(mut self, bytes: u64) -> Self {
        self.stage_bytes = Some(bytes);
        self
    }

    /// Sets whether the barrier gates perform calls.
    #[must_use]
    pub fn hardware(mut self, hardware: Hardware) -> Self {
        self.hardware = hardware;
        self
    }

    /// Allows sums of floats that are rounded as the barrier gates round them.
    #[must_use]
    pub fn gate_sum(mut self) -> Self {
        self.gate_sum = true;
        self
    }

    /// Sets the longest message in bytes.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = Some(bytes);
        self
    }
}
