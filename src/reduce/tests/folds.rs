//! The fold: its order, its chunks, and that it equals the single operations.

use proptest::prelude::*;

use super::values::vector;
use super::{all_reducers, reducer, reference};
use crate::reduce::{Dtype, Op};

fn check(label: &str, reducer: &crate::reduce::Reducer, operands: &[Vec<u8>], own_at: usize) {
    let all: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    let expected = reference::fold(reducer.dtype(), reducer.op(), &all);
    let mut srcs = all;
    let mut dst = srcs.remove(own_at).to_vec();
    reducer.fold(&mut dst, &srcs, own_at);
    assert!(
        dst == expected,
        "{label}: {} operands of {} bytes, own at {own_at}",
        operands.len(),
        dst.len()
    );
}

#[test]
fn every_place_of_the_own_operand_gives_the_left_fold() {
    for (label, reducer) in all_reducers() {
        for count in [1, 3, 40] {
            let operands: Vec<_> = (0..6).map(|k| vector(reducer.dtype(), count, k)).collect();
            for operands in (1..=6).map(|k| &operands[..k]) {
                for own_at in 0..operands.len() {
                    check(&label, &reducer, operands, own_at);
                }
            }
        }
    }
}

/// Several chunks, the last one partly filled, for every element size.
#[test]
fn long_vectors_are_folded_in_chunks() {
    for dtype in [Dtype::I8, Dtype::Bf16, Dtype::F32, Dtype::F64, Dtype::ComplexF64] {
        let reducer = reducer(dtype, Op::Sum);
        for bytes in [240, 256, 272, 8176, 8192, 8208, 20_000] {
            let count = bytes / dtype.size_bytes();
            let operands: Vec<_> = (0..4).map(|k| vector(dtype, count, k)).collect();
            for own_at in 0..4 {
                check(&format!("{dtype}"), &reducer, &operands, own_at);
            }
        }
    }
}

/// In f32, 1 is lost in a sum with 10^8: different orders of the same operands give different sums.
#[test]
fn the_order_of_the_operands_decides_the_bits() {
    let reducer = reducer(Dtype::F32, Op::Sum);
    let sum = |own: f32, others: [f32; 3], own_at: usize| {
        let others = others.map(f32::to_ne_bytes);
        let mut dst = own.to_ne_bytes();
        reducer.fold(&mut dst, &others.each_ref().map(|bytes| &bytes[..]), own_at);
        f32::from_ne_bytes(dst)
    };
    // 1e8 + 1 - 1e8 + 1, whichever operand is the rank's own.
    assert_eq!(sum(1e8, [1.0, -1e8, 1.0], 0), 1.0);
    assert_eq!(sum(1.0, [1e8, -1e8, 1.0], 1), 1.0);
    assert_eq!(sum(-1e8, [1e8, 1.0, 1.0], 2), 1.0);
    assert_eq!(sum(1.0, [1e8, 1.0, -1e8], 3), 1.0);
    // The same operands in other orders.
    assert_eq!(sum(1e8, [-1e8, 1.0, 1.0], 0), 2.0);
    assert_eq!(sum(-1e8, [1e8, 1.0, 1.0], 3), 0.0);
}

#[test]
fn a_fold_of_nothing_leaves_even_a_nan_as_it_is() {
    let odd_nan = 0xffc0_1234_u32.to_ne_bytes();
    let mut dst = odd_nan;
    reducer(Dtype::F32, Op::Sum).fold(&mut dst, &[], 0);
    assert_eq!(dst, odd_nan);
}

#[test]
#[should_panic(expected = "own operand at 2 of a fold with 1 others")]
fn a_place_beyond_the_operands_is_refused() {
    reducer(Dtype::I8, Op::Sum).fold(&mut [0], &[&[0]], 2);
}

#[test]
#[should_panic(expected = "an operand of 0 bytes does not fit a result of 1 bytes")]
fn an_operand_of_another_length_is_refused() {
    reducer(Dtype::I8, Op::Sum).fold(&mut [0], &[&[0], &[]], 0);
}

proptest! {
    #[test]
    fn any_fold_equals_the_operations_one_by_one(
        which in any::<prop::sample::Index>(),
        own in any::<prop::sample::Index>(),
        operands in 1_usize..8,
        count in 0_usize..1200,
        seed in any::<u64>(),
    ) {
        let reducers = all_reducers();
        let (label, reducer) = which.get(&reducers);
        let vectors: Vec<_> =
            (0..operands as u64).map(|k| vector(reducer.dtype(), count, seed ^ k)).collect();
        check(label, reducer, &vectors, own.index(operands));
    }
}
