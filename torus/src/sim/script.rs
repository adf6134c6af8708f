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
    /// The same for the messages of a step, before they are posted or behind what has arrived.
    Handle {
        /// The step.
        step: usize,
        /// Of what the rank sends, or else of what it receives.
        is_sent: bool,
        /// How long for each of these, ns.
        each_ns: f64,
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
        /// How many messages as long share the interface at the same time, this one included.
        abreast: f32,
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
    /// Waits until so much of a step's own messages has left.
    Sent {
        /// The step.
        step: usize,
        /// As a multiple of each message.
        to: f32,
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
    /// Pieces of a vector that pass through the rank one behind the other: each goes through its operations in order,
    /// and of those that may be next the port takes a post first, else the one of the lowest step and piece. It
    /// waits for messages only if nothing else is left to do.
    Pieces {
        /// Which of [`Script::pieces`].
        number: usize,
    },
}

/// Which threads drive a rank's ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// Each port has its own.
    #[default]
    Each,
    /// The same, and they take turns at locks, other ranks' ports in another order: where one rank stands
    /// for all, what comes from the peer on port q in the k-th step, in which all ranks do the same, has
    /// left it when our port q + k + 1 (modulo the number of ports) sent its own.
    TakingTurns,
    /// One drives them all, one port after the other.
    One,
}

/// See [`Op`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Before any port starts, ns, by what it is counted as.
    pub setup: Vec<(Part, f64)>,
    /// By lane of the score: what its port does.
    pub lanes: Vec<Vec<Op>>,
    /// Of each [`Op::Pieces`], by piece: what is done with it. Each is of a step.
    pub pieces: Vec<Vec<Vec<Op>>>,
    /// Who does it.
    pub threads: Threads,
}

/// What the software of a profile has no counterpart of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotModelled {
    /// A schedule that it does not perform.
    #[error(
        "the papers' software has butterflies, trees and rings (bucket) only, on all of its ports, and alltoalls on \
         one port; use --profile hopbine"
    )]
    Schedule,
    /// A call that allocates and registers memory, whose time depends on the system.
    #[error(
        "the papers' software allocates and registers memory for a call of this size, which the model does not \
         cover; use fewer bytes, or --profile hopbine"
    )]
    Memory,
}

/// Segments in at most so many parts that are followed one by one: as many in each as in another, the last
/// of one alone, since what is done with it is done when all else has been.
pub(super) fn parts(segments: u64, most: u64) -> Vec<u64> {
    if segments <= most {
        return vec![1; segments as usize];
    }
    let (each, more) = ((segments - 1) / (most - 1), (segments - 1) % (most - 1));
    (0..most - 1).map(|part| each + u64::from(part < more)).chain([1]).collect()
}
