//! Number types that the compiler keeps apart: ranks, blocks, positions, lanes, ports, steps, links.

use std::fmt;

/// Defines an enumeration whose values have names in text, with lists of the values: `ALL`, or several lists. The
/// type is `Copy`, `Hash` and `Ord` (in the order of declaration).
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $Type:ident {
        $(
            $(#[$of_list:meta])*
            $LIST:ident: { $($(#[$of_value:meta])* $Value:ident = $name:literal,)+ }
        )+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $Type { $($($(#[$of_value])* $Value,)+)+ }

        impl $Type {
            $(
                $(#[$of_list])*
                pub const $LIST: [$Type; [$($name),+].len()] = [$($Type::$Value),+];
            )+

            /// The name in text.
            pub const fn name(self) -> &'static str {
                match self { $($($Type::$Value => $name,)+)+ }
            }
        }

        impl ::std::fmt::Display for $Type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $Type:ident {
        $($(#[$of_value:meta])* $Value:ident = $name:literal,)+
    }) => {
        $crate::named! {
            $(#[$meta])*
            $vis enum $Type {
                /// All values, in order.
                ALL: { $($(#[$of_value])* $Value = $name,)+ }
            }
        }
    };
}

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

            /// The numbers 0 to `count - 1`.
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
    /// A block: the data that belong to the rank of the same number. The pieces of a vector, which no rank owns, are
    /// numbered in order.
    Block(u32)
}
number! {
    /// A block's place in a lane's working space; a position means the same on every rank.
    Position(u32)
}
number! {
    /// A lane of a plan, the same on all ranks. (`LaneId` and `StepId` are used where both occur. A pass counts its
    /// own steps from 0, as plain numbers.)
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
