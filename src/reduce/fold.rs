//! The fold of many operands in one fixed order, a cache-sized chunk at a time.

use super::Reducer;

/// Bytes of a chunk: the chunk, its copy of the result and the next operand fit together in any first-level cache in
/// use. A multiple of every element's size.
const CHUNK: usize = 8192;
/// Longest result, in bytes, for which the scratch is small: setting up a scratch of [`CHUNK`] bytes takes longer
/// than using it.
const SHORT: usize = 256;

/// Scratch for the result of two or more operands before the value of `dst`.
#[repr(C, align(64))]
struct Scratch<const N: usize>([u8; N]);

/// Performs [`Reducer::fold`], which has checked the lengths.
pub(super) fn fold(reducer: &Reducer, dst: &mut [u8], srcs: &[&[u8]], own_at: usize) {
    let (before, after) = srcs.split_at(own_at);
    match before {
        [] | [_] => fold_beside(reducer, dst, before, after),
        [first, second, more @ ..] if dst.len() <= SHORT => {
            fold_around::<SHORT>(reducer, dst, [first, second], more, after);
        }
        [first, second, more @ ..] => {
            fold_around::<CHUNK>(reducer, dst, [first, second], more, after);
        }
    }
}

/// Folds with at most one operand before the value of `dst`: no scratch is needed.
fn fold_beside(reducer: &Reducer, dst: &mut [u8], before: &[&[u8]], after: &[&[u8]]) {
    for (at, dst) in chunks(dst, CHUNK) {
        let here = at..at + dst.len();
        for src in before.iter().chain(after) {
            reducer.reduce_into(dst, &src[here.clone()]);
        }
    }
}

/// Folds with two or more operands before the value of `dst`: combines these in the scratch first.
fn fold_around<const N: usize>(
    reducer: &Reducer,
    dst: &mut [u8],
    [first, second]: [&[u8]; 2],
    more: &[&[u8]],
    after: &[&[u8]],
) {
    let mut scratch = Scratch([0; N]);
    for (at, dst) in chunks(dst, N) {
        let here = at..at + dst.len();
        let sum = &mut scratch.0[..dst.len()];
        reducer.reduce3(sum, &first[here.clone()], &second[here.clone()]);
        for src in more {
            reducer.reduce_into(sum, &src[here.clone()]);
        }
        reducer.reduce_into(dst, sum);
        for src in after {
            reducer.reduce_into(dst, &src[here.clone()]);
        }
    }
}

/// Pieces of `dst` of at most `size` bytes, each with the offset at which it starts.
fn chunks(dst: &mut [u8], size: usize) -> impl Iterator<Item = (usize, &mut [u8])> {
    dst.chunks_mut(size).enumerate().map(move |(index, chunk)| (index * size, chunk))
}
