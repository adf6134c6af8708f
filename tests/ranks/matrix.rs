//! The execution matrix: every algorithm of the registry on real vectors, on the shapes for which plans are proved;
//! every element type with every operator; long vectors.

use crate::common::calls::{check_on, config, every_algorithm_on, every_algorithm_once};
use crate::common::reference::{Case, expected, inputs};
use hopbine::reduce::{Datatype, Dtype, Op};
use hopbine::torus::geometry::Shape;
use hopbine::torus::{Collective, registry};
use hopbine::{CallOptions, Communicator, Drive, emulate};
use hopbine_testing::cores::one_core;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Runs every algorithm on each shape, with one of the lengths 0, 1, p-1, p and p+1.
fn shapes(texts: &[&str]) {
    let _core = one_core();
    for text in texts {
        let (shape, lengths) = lengths_of(text);
        every_algorithm_once(&shape, Drive::Inline, &lengths);
    }
}

/// Shapes of the ignored test only, because so many ranks on one core take minutes.
const LARGE: [&str; 12] = [
    "24",
    "31",
    "32",
    "8x4",
    "5x3x2",
    "4x4+2",
    "5x7",
    "4x4x4",
    "3x3x3+2",
    "4x6x4",
    "2x3x2x2x3x2",
    "6x9x4",
];

fn lengths_of(text: &str) -> (Shape, [usize; 5]) {
    let shape: Shape = text.parse().unwrap();
    let p = shape.n_ranks() as usize;
    (shape, [0, 1, p - 1, p, p + 1])
}

// `emulated` tests further shapes, with more lengths.
const RINGS: [&str; 7] = ["2", "3", "4", "7", "12", "16", "23"];
const BOXES: [&str; 8] = ["2x2", "3x3", "2x6", "4x6", "1x6", "6x1", "2x1x4", "2x3x2"];
/// Shapes with several ranks on each node.
const NODES: [&str; 4] = ["1+4", "4+2", "5+3", "2x3+4"];

#[test]
fn rings() {
    shapes(&RINGS);
}

#[test]
fn boxes() {
    shapes(&BOXES);
}

#[test]
fn nodes() {
    shapes(&NODES);
}

#[test]
#[ignore = "takes ten minutes: cargo test --test ranks -- --ignored"]
fn every_length_on_every_shape() {
    for text in RINGS.iter().chain(&BOXES).chain(&NODES).chain(&LARGE) {
        let (shape, lengths) = lengths_of(text);
        every_algorithm_on(&shape, Drive::Inline, &lengths);
    }
}

/// The longest length of the matrix, 1,000,003 elements, which every algorithm divides.
#[test]
fn a_million_elements() {
    const COUNT: usize = 1_000_003;
    let vectors = [Collective::Allreduce, Collective::Bcast, Collective::Reduce];
    emulate(&config(&[3], Drive::Inline), |comm| {
        for collective in Collective::ALL {
            let root = u32::from(collective.is_rooted());
            let case = Case { collective, n_ranks: 3, count: COUNT, root };
            // The same for all algorithms: to compute it takes longer than a call.
            let send = inputs(&case, comm.rank());
            let want = expected(&case, comm.rank(), u64::wrapping_add);
            for algorithm in registry::algorithms(collective) {
                // Blocks have this length for each of the three ranks, so only one algorithm per collective with
                // blocks runs. An alias makes the same plans as its algorithm.
                if algorithm.serves(comm.shape()).is_err()
                    || algorithm.alias_of.is_some()
                    || !(vectors.contains(&collective) || algorithm.name == "mixed")
                {
                    continue;
                }
                let comm = comm.with(CallOptions::new().algorithm(&algorithm.name));
                check_on(&comm, &case, &send, &want, &algorithm.name);
            }
        }
    })
    .unwrap();
}

/// A value of any element type, made of two small integers (real and imaginary part, or only the first), so that
/// other arithmetic can compute the reference exactly.
trait Small: Datatype {
    fn make(re: i64, im: i64) -> Self;
    /// Result of an operator on all ranks' values, by its definition.
    fn reference(op: Op, values: &[(i64, i64)]) -> Self;
}

/// Result of an operator on integers, by its definition. Products may wrap, because the type is narrower.
fn on_integers(op: Op, values: &[i64]) -> i64 {
    let truth = |value: i64| value != 0;
    let mut values = values.iter().copied();
    match op {
        Op::Sum => values.sum(),
        Op::Product => values.fold(1, i64::wrapping_mul),
        Op::Min => values.min().unwrap(),
        Op::Max => values.max().unwrap(),
        Op::LogicalAnd => i64::from(values.all(truth)),
        Op::LogicalOr => i64::from(values.any(truth)),
        Op::LogicalXor => values.filter(|&value| truth(value)).count() as i64 % 2,
        Op::BitAnd => values.fold(-1, |a, b| a & b),
        Op::BitOr => values.fold(0, |a, b| a | b),
        Op::BitXor => values.fold(0, |a, b| a ^ b),
        location => unreachable!("{location} of numbers"),
    }
}

macro_rules! integers {
    ($($type:ty)*) => { $(
        impl Small for $type {
            fn make(re: i64, _: i64) -> Self {
                re as $type
            }

            fn reference(op: Op, values: &[(i64, i64)]) -> Self {
                // Converts the values to the type first: unsigned types have no negative numbers.
                let seen: Vec<i64> = values.iter().map(|&(re, _)| (re as $type) as i64).collect();
                if matches!(op, Op::Min | Op::Max) && <$type>::MIN == 0 {
                    let unsigned = seen.iter().map(|&value| value as u64);
                    let best = if op == Op::Min { unsigned.min() } else { unsigned.max() };
                    return best.unwrap() as $type;
                }
                on_integers(op, &seen) as $type
            }
        }
    )* };
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($type:ty: $from:expr;)*) => { $(
        impl Small for $type {
            fn make(re: i64, _: i64) -> Self {
                $from(re as f64)
            }

            fn reference(op: Op, values: &[(i64, i64)]) -> Self {
                let seen: Vec<i64> = values.iter().map(|&(re, _)| re).collect();
                $from(on_integers(op, &seen) as f64)
            }
        }
    )* };
}

floats! {
    half::f16: half::f16::from_f64;
    half::bf16: half::bf16::from_f64;
    f32: |value: f64| value as f32;
    f64: |value: f64| value;
}

macro_rules! complexes {
    ($($part:ty)*) => { $(
        impl Small for num_complex::Complex<$part> {
            fn make(re: i64, im: i64) -> Self {
                Self::new(re as $part, im as $part)
            }

            fn reference(op: Op, values: &[(i64, i64)]) -> Self {
                let combine = |a: (i64, i64), b: (i64, i64)| match op {
                    Op::Sum => (a.0 + b.0, a.1 + b.1),
                    _ => (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0),
                };
                let (re, im) = values.iter().copied().reduce(combine).unwrap();
                Self::make(re, im)
            }
        }
    )* };
}

complexes!(f32 f64);

/// Element `index` of `rank`: integers so small that sums and products of six values are exact in every
/// floating-point type, including f16 and bf16.
fn value(rank: u32, index: usize) -> (i64, i64) {
    let mut rng = SmallRng::seed_from_u64(u64::from(rank) << 32 | index as u64);
    (rng.random_range(-2..=2), rng.random_range(-2..=2))
}

fn every_operator<T: Small + PartialEq + std::fmt::Debug>(comm: &Communicator) {
    let (p, me) = (comm.size(), comm.rank());
    for op in Op::ALL.into_iter().filter(|op| op.defined_for(T::DTYPE)) {
        for count in [1usize, 5, 6, 97] {
            let make = |len: usize| -> Vec<T> {
                (0..len).map(|index| value(me, index)).map(|(re, im)| T::make(re, im)).collect()
            };
            let want = |index: usize| {
                T::reference(op, &(0..p).map(|rank| value(rank, index)).collect::<Vec<_>>())
            };
            let what = format!("{} {op} of {count}", T::DTYPE);
            let all: Vec<T> = (0..count).map(want).collect();

            let mut vector = make(count);
            comm.allreduce_in_place(&mut vector, op).unwrap();
            assert_eq!(vector, all, "allreduce {what} on rank {me}");

            let mut reduced = make(if me == 1 { count } else { 0 });
            comm.reduce(&make(count), &mut reduced, op, 1).unwrap();
            assert_eq!(reduced, if me == 1 { all } else { Vec::new() }, "reduce {what}");

            let mut block = make(count);
            comm.reduce_scatter(&make(count * p as usize), &mut block, op).unwrap();
            let own = me as usize * count;
            let all: Vec<T> = (own..own + count).map(want).collect();
            assert_eq!(block, all, "reduce-scatter {what} on rank {me}");
        }
    }
}

#[test]
fn every_type_with_every_operator() {
    let _core = one_core();
    for algorithm in ["mixed", "multiplying", "bucket"] {
        emulate(&config(&[2, 3], Drive::Inline), |comm| {
            let comm = comm.with(CallOptions::new().algorithm(algorithm));
            macro_rules! types {
                ($($type:ty)*) => {{
                    let tested = [$({
                        every_operator::<$type>(&comm);
                        <$type as Datatype>::DTYPE
                    }),*];
                    assert_eq!(tested, Dtype::ALL);
                }};
            }
            types!(i8 i16 i32 i64 u8 u16 u32 u64 half::f16 half::bf16 f32 f64
                   num_complex::Complex<f32> num_complex::Complex<f64>);
        })
        .unwrap();
    }
}
