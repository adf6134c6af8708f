//! Numbers that must not be taken for one another.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $number);

        impl $name {
            /// The number as an index.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The first `count` of them.
            pub fn first(count: $number) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator {
                (0..count).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A rank of the communicator, `0..n_ranks`.
    Rank(u32)
}
number! {
    /// A block: what belongs to the rank of the same number. Pieces of a vector that nobody
    /// owns are numbered in order.
    Block(u32)
}
number! {
    /// Where a block stands in a lane's working space; it means the same on every rank.
    Position(u32)
}
number! {
    /// A lane of a plan, the same on all ranks. (Passes count their own steps from 0, as plain
    /// numbers; lanes and steps have types where they stand side by side, outside of passes.)
    LaneId(usize)
}
number! {
    /// A port of a rank: one of its ways to the network.
    PortId(u16)
}
number! {
    /// A step of a lane, the same on all ranks.
    StepId(usize)
}
number! {
    /// A link of a [`Topology`](crate::geometry::Topology), below its number of links.
    LinkId(usize)
}
