//! Compares every loop with the reference, for every remainder of a vector and at unaligned addresses.

use proptest::prelude::*;

use super::values::vector;
use super::{all_reducers, reference};
use crate::reduce::{Dtype, Op, Reducer};

const COUNTS: [usize; 17] = [0, 1, 2, 3, 7, 8, 9, 15, 31, 33, 63, 64, 65, 127, 257, 1000, 2600];

/// A copy of `bytes` that starts `offset` bytes after an address that is aligned for every type.
struct At {
    storage: Vec<u128>,
    offset: usize,
    len: usize,
}

impl At {
    fn new(bytes: &[u8], offset: usize) -> At {
        let mut at =
            At { storage: vec![0; (bytes.len() + offset).div_ceil(16)], offset, len: bytes.len() };
        at.get_mut().copy_from_slice(bytes);
        at
    }

    fn get(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.storage)[self.offset..][..self.len]
    }

    fn get_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.storage)[self.offset..][..self.len]
    }
}

/// Checks all three forms with the operands at these offsets from alignment, in bytes.
fn check(label: &str, reducer: &Reducer, a: &[u8], b: &[u8], [at_dst, at_a, at_b]: [usize; 3]) {
    let expected = reference::combine(reducer.dtype(), reducer.op(), a, b);
    let case =
        |form: &str| format!("{label}, {form}, {} bytes, offsets {at_dst} {at_a} {at_b}", a.len());
    let (src_a, src_b) = (At::new(a, at_a), At::new(b, at_b));

    let mut dst = At::new(a, at_dst);
    reducer.reduce_into(dst.get_mut(), src_b.get());
    assert_eq!(dst.get(), expected, "{}", case("left"));

    let mut dst = At::new(b, at_dst);
    reducer.reduce_into(dst.get_mut(), src_a.get());
    assert_eq!(dst.get(), expected, "{}", case("right"));

    let mut dst = At::new(&vec![0xa5; a.len()], at_dst);
    reducer.reduce3(dst.get_mut(), src_a.get(), src_b.get());
    assert_eq!(dst.get(), expected, "{}", case("three"));
}

#[test]
fn every_loop_agrees_with_the_reference() {
    for (index, (label, reducer)) in all_reducers().into_iter().enumerate() {
        for count in COUNTS {
            let seed = (index * 10_000 + count) as u64;
            let a = vector(reducer.dtype(), count, seed);
            let b = vector(reducer.dtype(), count, !seed);
            for offsets in [[0, 0, 0], [1, 0, 0], [0, 3, 0], [0, 0, 5], [1, 2, 3], [13, 7, 1]] {
                check(&label, &reducer, &a, &b, offsets);
            }
        }
    }
}

/// Ranks may order two operands differently, so swapping them must not change a bit of the result.
#[test]
fn every_operator_is_commutative_to_the_last_bit() {
    for (label, reducer) in all_reducers() {
        let a = vector(reducer.dtype(), 5000, 1);
        let b = vector(reducer.dtype(), 5000, 2);
        let [mut ab, mut ba] = [vec![0; a.len()], vec![0; a.len()]];
        reducer.reduce3(&mut ab, &a, &b);
        reducer.reduce3(&mut ba, &b, &a);
        assert_eq!(ab, ba, "{label}");
    }
}

#[test]
fn bytes_beside_the_slice_stay_as_they_are() {
    for (label, reducer) in all_reducers() {
        let size = reducer.dtype().size_bytes();
        let mut storage = vec![0x5a; 67 * size];
        let src = vector(reducer.dtype(), 65, 3);
        reducer.reduce_into(&mut storage[size..66 * size], &src);
        let edges = [&storage[..size], &storage[66 * size..]].concat();
        assert!(edges.iter().all(|&byte| byte == 0x5a), "{label}");
    }
}

#[test]
#[should_panic(expected = "an operand of 12 bytes does not fit a result of 8 bytes")]
fn an_operand_of_another_length_is_refused() {
    super::reducer(Dtype::F32, Op::Sum).reduce_into(&mut [0; 8], &[0; 12]);
}

#[test]
#[should_panic(expected = "6 bytes are no whole number of f32 elements of 4 bytes")]
fn a_broken_element_is_refused() {
    super::reducer(Dtype::F32, Op::Sum).reduce3(&mut [0; 6], &[0; 6], &[0; 6]);
}

proptest! {
    /// Arbitrary bits, counts and addresses, for every pair and version.
    #[test]
    fn arbitrary_bytes_agree_with_the_reference(
        which in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<(u8, u8)>(), 0..2000),
        offsets in prop::array::uniform3(0_usize..16),
    ) {
        let reducers = all_reducers();
        let (label, reducer) = which.get(&reducers);
        let whole = bytes.len() / reducer.dtype().size_bytes() * reducer.dtype().size_bytes();
        let (a, b): (Vec<u8>, Vec<u8>) = bytes[..whole].iter().copied().unzip();
        check(label, reducer, &a, &b, offsets);
    }
}
