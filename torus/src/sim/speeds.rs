//! Speeds and latencies of messages.

/// Speeds and latencies that messages meet on their routes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// Speed of a link in one direction, bytes per ns.
    pub link: f64,
    /// Speed of an interface in one direction, bytes per ns.
    pub interface: f64,
    /// Speed of one copy between ranks of a node, bytes per ns.
    pub copy: f64,
    /// Speed of all such copies of a node together, bytes per ns.
    pub copy_all: f64,
    /// Latency of an empty message to a neighbour, ns.
    pub latency_ns: f64,
    /// Latency of each further cable, ns.
    pub hop_ns: f64,
    /// Latency of each further link on a board, ns.
    pub board_hop_ns: f64,
    /// Latency of a message between ranks of one node, ns.
    pub shm_latency_ns: f64,
}

impl Speeds {
    /// Speed of a message that shares nothing, bytes per ns; `is_intra_node`: it does not leave its node.
    pub(super) fn uncontended(&self, is_intra_node: bool) -> f64 {
        if is_intra_node { self.copy.min(self.copy_all) } else { self.link.min(self.interface) }
    }

    /// The highest speed of one message, bytes per ns.
    pub(super) fn max_rate(&self, is_intra_node: bool) -> f64 {
        if is_intra_node { self.copy } else { self.interface }
    }

    /// Time from when a message leaves until it arrives, whatever its length, ns.
    pub(crate) fn latency(&self, hops: [u32; 2]) -> f64 {
        if hops == [0, 0] {
            return self.shm_latency_ns;
        }
        let [cables, boards] = hops.map(f64::from);
        // The first link, a cable if there is one, is part of the latency.
        let further =
            if cables > 0.0 { [cables - 1.0, boards] } else { [0.0, (boards - 1.0).max(0.0)] };
        self.latency_ns + further[0] * self.hop_ns + further[1] * self.board_hop_ns
    }
}
