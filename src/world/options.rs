//! What a call may choose.

use std::sync::Arc;

/// Choices for calls; whatever is `None` is chosen by the library. All ranks must choose alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallOptions {
    /// The algorithm's name in the registry.
    pub algorithm: Option<Arc<str>>,
    /// Number of ports.
    pub ports: Option<u32>,
    /// The longest message in bytes; rounded down to whole elements.
    pub segment_bytes: Option<u64>,
}

impl CallOptions {
    /// Everything chosen by the library.
    pub fn new() -> Self {
        CallOptions::default()
    }

    /// With this algorithm.
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

    /// With messages of at most this many bytes.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = Some(bytes);
        self
    }
}
