//! What the ports of a rank do in a call, in order: the same on all ranks.

use super::outcome::Part;

/// One thing that a port does. Steps are numbered within the port's lane; a rank that has no message in a
/// step passes over what concerns it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Computes or waits.
    Spend {
        /// How long, ns.
        ns: f64,
        /// What it is counted as.
        part: Part,
    },
    /// The same, by one port of a rank at a time, under a lock.
    Serial {
        /// Which of the rank's locks.
        lock: usize,
        /// How long it is held, ns.
        ns: f64,
        /// To wake up, for a thread that had to wait, ns.
        wake_ns: f64,
        /// What it is counted as.
        part: Part,
    },
    /// Posts the messages of a step, or a part of each.
    Put {
        /// The step.
        step: usize,
        /// Where the part begins, as a multiple of each message.
        from: f32,
        /// Where it ends.
        to: f32,
        /// Messages of the network that each is cut into.
        puts: f32,
        /// What the processor does for each of these, ns.
        post_ns: f64,
        /// What the interface takes for each at least, ns.
        gap_ns: f64,
    },
    /// Waits until so much of the messages of a step has arrived.
    Receive {
        /// The step.
        step: usize,
        /// As a multiple of each message.
        to: f32,
        /// To see that one has arrived, ns.
        poll_ns: f64,
    },
    /// Waits until a step's own messages have left.
    Sent {
        /// The step.
        step: usize,
        /// From when they have left until that is seen, ns.
        ack_ns: f64,
    },
    /// Combines what has arrived.
    Fold {
        /// The step.
        step: usize,
        /// How much of it, as a multiple of each message.
        share: f32,
        /// Of each byte, ns.
        ns_per_byte: f64,
        /// To begin, ns.
        start_ns: f64,
    },
    /// Waits for an empty message from each receiver of a step, which says that it may send.
    Ready {
        /// The step.
        step: usize,
        /// To post one's own, ns.
        post_ns: f64,
        /// To see one, ns.
        poll_ns: f64,
    },
    /// Waits for all other ports of the rank.
    Join,
}

/// See [`Op`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Before any port starts, ns, by what it is counted as.
    pub setup: Vec<(Part, f64)>,
    /// By lane of the score: what its port does.
    pub lanes: Vec<Vec<Op>>,
    /// Ports take turns at locks, and other ranks' ports in another order: where one rank stands for all,
    /// what comes from the peer on port q in the k-th step has left it when our port q + k + 1 (modulo the
    /// number of ports) sent its own.
    pub takes_turns: bool,
}
