//! Compares reductions by words with the plain fold: the same bits, in whatever order words are combined.

use proptest::prelude::*;

use super::values::vector;
use super::{Dtype, Op, all_dtypes, all_ops, reducer};
use crate::reduce::words::{RealSum, WordMap};
use utofu::handles::ReduceOp;

const WORDS: usize = 6;

fn combine(op: ReduceOp, a: u64, b: u64) -> u64 {
    match op {
        ReduceOp::And => a & b,
        ReduceOp::Or => a | b,
        ReduceOp::Xor => a ^ b,
        ReduceOp::Max => a.max(b),
        ReduceOp::Sum => a.wrapping_add(b),
        ReduceOp::MaxLoc => unreachable!("of pairs"),
    }
}

/// Combines two packets.
fn merge(op: ReduceOp, a: &[u64], b: &[u64]) -> Vec<u64> {
    if op != ReduceOp::MaxLoc {
        return a.iter().zip(b).map(|(&a, &b)| combine(op, a, b)).collect();
    }
    let pairs = a.as_chunks::<2>().0.iter().zip(b.as_chunks::<2>().0);
    pairs.flat_map(|(a, b)| if (b[0], !b[1]) > (a[0], !a[1]) { *b } else { *a }).collect()
}

/// The result by words, combined pair by pair in the order of `pairs`.
fn by_words(map: &WordMap, operands: &[Vec<u8>], count: u64, pairs: &[usize]) -> Vec<u8> {
    let n_words = map.n_words(count);
    assert!(n_words <= WORDS);
    let mut words: Vec<Vec<u64>> = operands
        .iter()
        .map(|operand| {
            // The previous contents do not matter.
            let mut words = vec![u64::MAX; n_words];
            map.encode(operand, &mut words);
            words
        })
        .collect();
    for pair in pairs.iter().cycle() {
        if words.len() == 1 {
            break;
        }
        let one = words.remove(pair % words.len());
        let at = pair / 7 % words.len();
        words[at] = merge(map.op(), &words[at], &one);
    }
    let mut result = vec![0xa5; operands[0].len()];
    map.decode(&words[0], &mut result);
    result
}

fn folded(dtype: Dtype, op: Op, operands: &[Vec<u8>]) -> Vec<u8> {
    let mut result = operands[0].clone();
    let others: Vec<&[u8]> = operands[1..].iter().map(Vec::as_slice).collect();
    reducer(dtype, op).fold(&mut result, &others, 0);
    result
}

fn pair() -> impl Strategy<Value = (Dtype, Op)> {
    let all = all_dtypes().flat_map(|dtype| all_ops().map(move |op| (dtype, op)));
    let all: Vec<_> = all.filter(|(dtype, op)| op.defined_for(*dtype)).collect();
    proptest::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn words_give_the_bits_of_a_fold(
        (dtype, op) in pair(),
        n in prop_oneof![1usize..9, 9usize..40, Just(129)],
        share in 0.0f64..=1.0,
        seed: u64,
        pairs in prop::collection::vec(0usize..1000, 1..40),
    ) {
        let Some(map) = WordMap::new(dtype, op, n as u32) else {
            prop_assert!(op == Op::Product || (op == Op::Sum && !dtype.is_integer()), "{dtype} {op}");
            return Ok(());
        };
        let most = map.max_elements(WORDS);
        prop_assert!(most >= WORDS as u64 / 2 && map.n_words(most) <= WORDS && map.n_words(most + 1) > WORDS);
        let count = 1 + (share * (most - 1) as f64) as u64;
        let operand = |rank: u64| vector(dtype, count as usize, seed.wrapping_add(rank));
        let operands: Vec<_> = (0..n as u64).map(operand).collect();
        let (words, fold) = (by_words(&map, &operands, count, &pairs), folded(dtype, op, &operands));
        prop_assert_eq!(words, fold, "{} {} of {} by {}", dtype, op, count, n);
    }
}

/// Every 16-bit number, which covers the edge cases of wider types, paired with some numbers of all kinds.
#[test]
fn sixteen_bits_are_ordered_as_minimum_and_maximum_order_them() {
    for dtype in [Dtype::F16, Dtype::Bf16, Dtype::I16, Dtype::U16] {
        for op in [Op::Min, Op::Max] {
            let map = WordMap::new(dtype, op, 2).unwrap();
            let place = |bits: u16| {
                let mut word = [0];
                map.encode(&bits.to_ne_bytes(), &mut word);
                word[0]
            };
            let places: Vec<u64> = (0..=u16::MAX).map(place).collect();
            let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
            for one in (0..=u16::MAX).step_by(4099).chain([1, 0x7c00, 0xfc00, 0x7f80, 0x7fc1]) {
                let mut fold = one.to_ne_bytes().repeat(1 << 16);
                reducer(dtype, op).fold(&mut fold, &[&all], 0);
                for (other, expected) in (0..).zip(fold.as_chunks::<2>().0) {
                    let mut got = [0; 2];
                    map.decode(&[places[usize::from(one)].max(places[other])], &mut got);
                    assert_eq!(got, *expected, "{dtype} {op} of {one:#x} and {other:#x}");
                }
            }
        }
    }
}

#[test]
fn packing_is_as_dense_as_bits_allow() {
    let most = |dtype, op, n| WordMap::new(dtype, op, n).map(|map| map.max_elements(WORDS));
    for (dtype, op, n, expected) in [
        (Dtype::I32, Op::Max, 5, Some(6)),
        (Dtype::I32, Op::Sum, 5, Some(6)),
        (Dtype::I32, Op::BitXor, 5, Some(12)),
        (Dtype::I32, Op::LogicalAnd, 5, Some(384)),
        // 256 operands need eight bits for carries: 16 + 24 + 24.
        (Dtype::U16, Op::Sum, 256, Some(18)),
        (Dtype::U16, Op::Sum, 257, Some(12)),
        (Dtype::F64, Op::Sum, 2, None),
        (Dtype::ComplexF64, Op::Sum, 1, Some(3)),
        (Dtype::PairF32I32, Op::MinLoc, 5, Some(3)),
    ] {
        assert_eq!(most(dtype, op, n), expected, "{dtype} {op} of {n}");
    }
}

/// Integers in floats, whose sums are exact; NaN, infinities and values that round to them.
#[test]
fn sums_of_reals_are_those_of_their_doubles() {
    let sum = |dtype, numbers: &[f64]| {
        let map = RealSum::new(dtype).unwrap();
        let mut elements = vec![0; numbers.len() * dtype.size_bytes()];
        map.decode(numbers, &mut elements);
        let mut doubles = vec![0.0; numbers.len()];
        map.encode(&elements, &mut doubles);
        doubles
    };
    let exact = [1.0, -3.0, f64::INFINITY];
    assert_eq!(sum(Dtype::F64, &exact), exact);
    assert_eq!(sum(Dtype::F32, &exact), exact);
    assert_eq!(sum(Dtype::F32, &[1e39, 16_777_217.0]), [f64::INFINITY, 16_777_216.0]);
    let mut bits = [0; 4];
    RealSum::new(Dtype::F32).unwrap().decode(&[-f64::NAN], &mut bits);
    assert_eq!(u32::from_ne_bytes(bits), 0x7fc0_0000);
    let most = |dtype| RealSum::new(dtype).map(|map| map.max_elements(3));
    assert_eq!(most(Dtype::ComplexF64), Some(1));
    assert_eq!((most(Dtype::F64), most(Dtype::F16), most(Dtype::I32)), (Some(3), None, None));
}
