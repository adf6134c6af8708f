//! Shapes and collectives for the tests of the whole registry.

/// Odd, prime and rectangular shapes, with axes of one coordinate and axes without wrap-around.
pub const SHAPES: [&str; 33] = [
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "12",
    "16",
    "23",
    "24",
    "31",
    "32",
    "2x2",
    "2x3",
    "3x3",
    "4x4",
    "2x6",
    "4x6",
    "5x7",
    "8x4",
    "1x6",
    "6x1",
    "2x2x2",
    "2x3x2",
    "4x4x4",
    "3x3x3",
    "5x3x2",
    "4x6x4",
    "2x1x4",
    "6x9x4",
    "2x3x2x2x3x2",
    "4x6mx3",
];

/// Shapes with several ranks per node.
pub const NODE_SHAPES: [&str; 8] =
    ["1+4", "4+2", "5+3", "2x3+4", "2x2+8", "4x4+2", "3x3x3+2", "5x7+3"];

/// Defines a test for every collective, named after it, that calls a function with it.
#[macro_export]
macro_rules! for_every_collective {
    ($check:path) => {
        $crate::for_every_collective! {
            $check:
            allreduce Allreduce, reduce_scatter ReduceScatter, allgather Allgather, bcast Bcast,
            reduce Reduce, gather Gather, scatter Scatter, alltoall Alltoall, scan Scan,
            exscan Exscan, barrier Barrier,
        }
    };
    ($check:path: $($name:ident $collective:ident,)*) => {
        $(#[test]
        fn $name() {
            $check(hopbine_torus::Collective::$collective);
        })*
    };
}
