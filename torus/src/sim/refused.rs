//! Plans that have no score, and why.

use crate::collectives::Collective;
use crate::names::{LinkId, PortId, Rank};

/// What may be slow or dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultyPart {
    /// A link, in its one direction.
    Link(LinkId),
    /// An interface of a node (a TNI), both ways.
    Interface {
        /// The node, as in [`Resource`](super::Resource).
        node: u32,
        /// The port that it is of.
        port: PortId,
    },
}

/// Why a plan has no score.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScoreError {
    /// Too many messages to follow one by one.
    #[error(
        "the plan has {messages} messages or more, and {most} are the most that are followed one by one"
    )]
    TooLong {
        /// Messages counted.
        messages: u64,
        /// The limit.
        most: u64,
    },
    /// Blocks of which there is not one for each rank.
    #[error(
        "{given} sizes of blocks for {ranks} ranks: there is one for each rank, in an alltoall also one for each \
         pair, none negative and not all 0"
    )]
    Blocks {
        /// Sizes given.
        given: usize,
        /// The ranks.
        ranks: usize,
    },
    /// A collective without blocks.
    #[error(
        "{collective} has no blocks whose sizes could differ: allgather, gather, scatter, reduce-scatter and alltoall have"
    )]
    NoBlocks {
        /// The collective.
        collective: Collective,
    },
    /// A fault of what is not there.
    #[error("{} does not exist", name(.part))]
    NoPart {
        /// What should have it.
        part: FaultyPart,
    },
    /// No speed.
    #[error(
        "{speed} is not a factor for a speed: it must be 0 (dead), or above 0 and below 1 (slow)"
    )]
    Speed {
        /// What was given.
        speed: f64,
    },
    /// A call that does not end.
    #[error(
        "rank {from} sends to rank {to} over link {link}, which is dead: the call does not end"
    )]
    DeadLink {
        /// The sender.
        from: Rank,
        /// The receiver.
        to: Rank,
        /// The link, by name.
        link: String,
    },
    /// A node without an interface.
    #[error("node {node} has no interface that works: a call of its ranks does not end")]
    NoInterface {
        /// The node.
        node: u32,
    },
}

fn name(part: &FaultyPart) -> String {
    match part {
        FaultyPart::Link(link) => format!("link number {}", link.0),
        FaultyPart::Interface { node, port } => format!("interface {} of node {node}", port.0),
    }
}
