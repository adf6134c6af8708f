//! Loops over bytes, generic in element and operator; compiled once for every set of vector instructions.
//!
//! The loops access elements as packed lanes without alignment: on x86-64 and aarch64 the vector instructions for
//! unaligned data cost nothing extra on aligned data, so one loop serves every address. The compiler vectorises the
//! loops. All slices of one call have the same length, a multiple of the element's size.

use bytemuck::{Pod, Zeroable};

use super::operators::{Element, Operator};

/// An element at any address.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub(super) struct Unaligned<T>(pub(super) T);

/// Bytes of a block of results that is searched for NaN at once: small enough to stay mostly in registers, large
/// enough to hide the branch. 128 and 512 were slower.
const BLOCK_BYTES: usize = 256;

/// Elements of type `T` in a block of results.
pub(super) const fn block_lanes<T>() -> usize {
    BLOCK_BYTES / size_of::<T>()
}

/// `dst = dst op src`. `B` is `block_lanes::<T>()`.
#[inline(always)]
pub(super) fn two<T: Element, O: Operator<T>, const B: usize>(dst: &mut [u8], src: &[u8]) {
    let mut dst: &mut [Unaligned<T>] = bytemuck::cast_slice_mut(dst);
    let mut src: &[Unaligned<T>] = bytemuck::cast_slice(src);
    if O::NONCANONICAL_NAN {
        let (dst_blocks, dst_rest) = dst.as_chunks_mut::<B>();
        let (src_blocks, src_rest) = src.as_chunks::<B>();
        for (d, s) in dst_blocks.iter_mut().zip(src_blocks) {
            let results = block::<T, O, B>(d, s);
            store(d, results);
        }
        (dst, src) = (dst_rest, src_rest);
    }
    for (d, s) in dst.iter_mut().zip(src) {
        d.0 = one::<T, O>(d.0, s.0);
    }
}

/// `dst = a op b`. `B` is `block_lanes::<T>()`.
#[inline(always)]
pub(super) fn three<T: Element, O: Operator<T>, const B: usize>(
    dst: &mut [u8],
    a: &[u8],
    b: &[u8],
) {
    let mut dst: &mut [Unaligned<T>] = bytemuck::cast_slice_mut(dst);
    let mut a: &[Unaligned<T>] = bytemuck::cast_slice(a);
    let mut b: &[Unaligned<T>] = bytemuck::cast_slice(b);
    if O::NONCANONICAL_NAN {
        let (dst_blocks, dst_rest) = dst.as_chunks_mut::<B>();
        let (a_blocks, a_rest) = a.as_chunks::<B>();
        let (b_blocks, b_rest) = b.as_chunks::<B>();
        for ((d, a), b) in dst_blocks.iter_mut().zip(a_blocks).zip(b_blocks) {
            let results = block::<T, O, B>(a, b);
            store(d, results);
        }
        (dst, a, b) = (dst_rest, a_rest, b_rest);
    }
    for ((d, a), b) in dst.iter_mut().zip(a).zip(b) {
        d.0 = one::<T, O>(a.0, b.0);
    }
}

#[inline(always)]
fn one<T: Element, O: Operator<T>>(a: T, b: T) -> T {
    let result = O::apply(a, b);
    if O::NONCANONICAL_NAN { result.canonical() } else { result }
}

/// A block of results, before NaNs are made canonical.
#[inline(always)]
fn block<T: Element, O: Operator<T>, const B: usize>(
    a: &[Unaligned<T>; B],
    b: &[Unaligned<T>; B],
) -> [T; B] {
    let mut results = [T::zeroed(); B];
    for i in 0..B {
        results[i] = O::apply(a[i].0, b[i].0);
    }
    results
}

/// Stores a block of results and makes the NaNs among them canonical.
#[inline(always)]
fn store<T: Element, const B: usize>(dst: &mut [Unaligned<T>; B], results: [T; B]) {
    let mut nan = false;
    for i in 0..B / 2 {
        // In pairs: one comparison finds a NaN in either of two floats.
        nan |= results[i].has_nan() | results[i + B / 2].has_nan();
    }
    for i in 0..B {
        dst[i].0 = results[i];
    }
    if nan {
        make_canonical(dst);
    }
}

#[cold]
#[inline(never)]
pub(super) fn make_canonical<T: Element>(block: &mut [Unaligned<T>]) {
    for lane in block {
        lane.0 = lane.0.canonical();
    }
}
