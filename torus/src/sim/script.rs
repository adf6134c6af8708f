//! Scripts: the operations of a rank's ports in a call, in order; the same on all ranks.

use super::outcome::TimeCategory;

/// An operation of a port. Steps are numbered within the port's lane. A rank that has no message in a step skips the
/// step's operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Computes or waits.
    Spend {
        /// The time, ns.
        ns: f64,
        /// The category that the time counts as.
        category: TimeCategory,
    },
    /// Computes under a lock, which one port of a rank holds at a time.
    Serial {
        /// The index of the lock among the rank's locks.
        lock: usize,
        /// The time for which it is held, ns.
        ns: f64,
        /// Time to wake up, for a thread that had to wait, ns.
        wake_ns: f64,
        /// The category that the time counts as.
        category: TimeCategory,
    },
    /// Computes for the messages of a step, before they are posted or after they have arrived.
    Handle {
        /// The step.
        step: usize,
        /// For the messages that the rank sends, or else for those that it receives.
        is_sent: bool,
        /// The time for each of these messages, ns.
        each_ns: f64,
        /// The category that the time counts as.
        category: TimeCategory,
    },
    /// Posts the messages of a step, or a part of each.
    Put {
        /// The step.
        step: usize,
        /// The start of the part, as a multiple of each message.
        from: f32,
        /// The end of the part.
        to: f32,
        /// Network messages that each part is cut into.
        puts: f32,
        /// Time of the processor for each network message, ns.
        post_ns: f64,
        /// Least time of the interface for each network message, ns.
        gap_ns: f64,
        /// The number of equally long messages that share the interface at the same time, this one included.
        n_sharing: f32,
    },
    /// Waits until a part of the messages of a step has arrived.
    Receive {
        /// The step.
        step: usize,
        /// The end of the part, as a multiple of each message.
        to: f32,
        /// Time to poll for a message that has arrived, ns.
        poll_ns: f64,
    },
    /// Waits until a part of a step's own messages has left.
    Sent {
        /// The step.
        step: usize,
        /// The end of the part, as a multiple of each message.
        to: f32,
        /// Time from when they have left until the sender sees it, ns.
        ack_ns: f64,
    },
    /// Combines arrived data.
    Fold {
        /// The step.
        step: usize,
        /// The length of the part, as a multiple of each message.
        share: f32,
        /// Time for each byte, ns.
        ns_per_byte: f64,
        /// Time to start, ns.
        start_ns: f64,
    },
    /// Waits for an empty message from each receiver of a step, which allows this rank to send.
    Ready {
        /// The step.
        step: usize,
        /// Time to post such a message, ns.
        post_ns: f64,
        /// Time to poll for such a message, ns.
        poll_ns: f64,
    },
    /// Waits for all other ports of the rank.
    Join,
    /// Pieces of a vector that pass through the rank one behind the other. Each piece goes through its operations in
    /// order. Of all pieces' next operations the port takes a post first, else that of the lowest step and piece. It
    /// waits for messages only if no other operation is left.
    Pieces {
        /// The index in [`Script::pieces`].
        number: usize,
    },
}

/// The threads that drive a rank's ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// Each port has its own thread.
    #[default]
    Each,
    /// Each port has its own thread. Threads take turns at locks, and ports of other ranks in another order. If one
    /// rank stands for all, and all ranks do the same in step k, the message on port q from the peer of this step
    /// left the peer when this rank's port q + k + 1 (modulo the number of ports) sent its own.
    TakingTurns,
    /// One thread drives all ports, one port after the other.
    One,
}

/// The operations of all ports: see [`Op`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Time before any port starts, ns, by category.
    pub setup: Vec<(TimeCategory, f64)>,
    /// By lane of the routed plan, the operations of its port.
    pub lanes: Vec<Vec<Op>>,
    /// For each [`Op::Pieces`], by piece, its operations; each belongs to a step.
    pub pieces: Vec<Vec<Vec<Op>>>,
    /// The threads that perform the operations.
    pub threads: Threads,
}

/// Schedules and calls that the software of a profile does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotModelled {
    /// The software does not perform the schedule.
    #[error(
        "the papers' software has butterflies, trees and rings (bucket) only, on all of its ports, and alltoalls on \
         one port; use --profile hopbine"
    )]
    Schedule,
    /// The call allocates and registers memory, whose time depends on the system.
    #[error(
        "the papers' software allocates and registers memory for a call of this size, which the model does not \
         cover; use fewer bytes, or --profile hopbine"
    )]
    Memory,
}

/// Groups segments into at most `most` parts that are followed one by one. Parts have equally many segments, but the
/// last has one, since its operations come after all others.
pub(super) fn parts(segments: u64, most: u64) -> Vec<u64> {
    if segments <= most {
        return vec![1; segments as usize];
    }
    let (each, more) = ((segments - 1) / (most - 1), (segments - 1) % (most - 1));
    (0..most - 1).map(|part| each + u64::from(part < more)).chain([1]).collect()
}
