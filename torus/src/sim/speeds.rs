//! How fast messages are on their way.

/// What messages meet on their way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// Of a link in one direction, bytes per ns.
    pub link: f64,
    /// Of an interface in one direction, bytes per ns.
    pub interface: f64,
    /// Of a copy between ranks of one node, bytes per ns, and of all of them together.
    pub copy: f64,
    /// See above.
    pub copy_all: f64,
    /// A message without bytes to a neighbour, ns.
    pub latency_ns: f64,
    /// Each further cable, ns.
    pub hop_ns: f64,
    /// Each further link on a board, ns.
    pub board_hop_ns: f64,
    /// A message between ranks of one node, ns.
    pub shm_latency_ns: f64,
}

impl Speeds {
    /// Of a message that shares nothing, bytes per ns; `stays` on its node or leaves it.
    pub(super) fn alone(&self, stays: bool) -> f64 {
        if stays { self.copy.min(self.copy_all) } else { self.link.min(self.interface) }
    }

    /// The most that one message can have, bytes per ns.
    pub(super) fn most(&self, stays: bool) -> f64 {
        if stays { self.copy } else { self.interface }
    }

    /// From when a message leaves until it is there, whatever its length.
    pub(crate) fn latency(&self, hops: [u16; 2]) -> f64 {
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
