//! Why plans cannot be routed.

use crate::collectives::Collective;
use crate::names::{LinkId, PortId, Rank};

/// A part of the network that may be slow or dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultyPart {
    /// A link, in its one direction.
    Link(LinkId),
    /// An interface of a node (a TNI), in both directions.
    Interface {
        /// The node, as in [`Resource`](super::Resource).
        node: u32,
        /// The port of the interface.
        port: PortId,
    },
}

/// Why a plan cannot be routed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RoutingError {
    /// There are too many messages to follow one by one.
    #[error(
        "the plan has {messages} messages or more, and {most} are the most that are followed one by one"
    )]
    TooLong {
        /// Messages counted.
        messages: u64,
        /// The limit.
        most: u64,
    },
    /// There is no room for the links of all messages.
    #[error(
        "the messages that are followed one by one use {links} links, and there is no room for more"
    )]
    NoRoom {
        /// Links of all messages so far.
        links: usize,
    },
    /// Blocks do not have one valid size for each rank or pair.
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
    /// The collective has no blocks.
    #[error(
        "{collective} has no blocks whose sizes could differ: allgather, gather, scatter, reduce-scatter and alltoall have"
    )]
    NoBlocks {
        /// The collective.
        collective: Collective,
    },
    /// The part that has a fault does not exist.
    #[error("{} does not exist", name(.part))]
    NoPart {
        /// The part.
        part: FaultyPart,
    },
    /// The speed is not valid.
    #[error(
        "{speed} is not a factor for a speed: it must be 0 (dead), or above 0 and below 1 (slow)"
    )]
    Speed {
        /// The given speed.
        speed: f64,
    },
    /// A call does not end, as a message needs a dead link.
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
    /// All interfaces of a node are dead.
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
