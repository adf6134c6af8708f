//! Element types x operators: the arithmetic of reductions on raw bytes.
//!
//! A [`Reducer`] is chosen once for an element type and an operator; afterwards it only loops over slices. This
//! module does not depend on ranks, plans, the owners of buffers or the wire; it keeps no state and allocates
//! nothing.
//!
//! # Semantics
//! - Integers wrap around. Logical operators take any nonzero value for true and yield 1 or 0.
//! - Minimum and maximum of floats are NaN if either operand is NaN, and order -0 before +0.
//! - Minimum and maximum with location select the pair with the smallest or largest value; a NaN value takes
//!   precedence over any other. Values -0 and +0 count as equal, and the result is +0. Of pairs with equal values the
//!   pair with the lowest location is selected; among locations -0 is before +0, and NaN is last.
//! - 16-bit floats: each operation is computed in `f32` and rounded once, to nearest, ties to even.
//! - Complex product: `(ac - bd) + (ad + bc)i`, each product rounded on its own.
//! - Results do not depend on the vector width, the alignment or the position in the slice; no operation is fused or
//!   reassociated. A NaN that an operation yields is always the canonical one (quiet, positive, no payload), so
//!   operators are commutative to the last bit, and ranks that combine the same operands in the same nesting get the
//!   same bits. (Operators need not be associative: [`Reducer::fold`] keeps the given order.)
//! - All this holds in a program's initial floating-point environment: rounding to nearest, subnormals kept.

mod dtype;
mod error;
mod fold;
mod half_float;
mod kernels;
mod locations;
mod loops;
mod op;
mod operators;
mod order;
mod pair;
#[cfg(target_arch = "aarch64")]
mod sve;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod words;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use dtype::{Datatype, Dtype};
pub use error::ReduceError;
pub use op::Op;
pub use pair::Pair;

use kernels::Kernels;

/// The loops for one element type and operator.
///
/// All methods take slices of bytes at any address; all slices of one call have the same length, a multiple of
/// [`Dtype::size_bytes`]. Any other length is an error of the caller and panics, as in [`slice::copy_from_slice`].
#[derive(Clone, Copy)]
pub struct Reducer {
    dtype: Dtype,
    op: Op,
    kernels: Kernels,
}

impl Reducer {
    /// Selects the loops for elements of type `dtype` under `op`.
    ///
    /// # Errors
    /// [`ReduceError::Undefined`] if [`Op::defined_for`] is false.
    pub fn new(dtype: Dtype, op: Op) -> Result<Reducer, ReduceError> {
        let kernels = table::find(dtype, op).ok_or(ReduceError::Undefined { op, dtype })?;
        Ok(Reducer { dtype, op, kernels })
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The operator.
    pub fn op(&self) -> Op {
        self.op
    }

    /// Combines `src` into `dst`: `dst = dst op src`, which has the same bits as `src op dst`.
    ///
    /// # Panics
    /// If the lengths differ or are not a multiple of the element's size.
    pub fn reduce_into(&self, dst: &mut [u8], src: &[u8]) {
        self.check(dst.len(), &[src]);
        self.kernels.two(dst, src);
    }

    /// Writes `a op b` to `dst`.
    ///
    /// # Panics
    /// If the lengths differ or are not a multiple of the element's size.
    #[inline]
    pub fn reduce3(&self, dst: &mut [u8], a: &[u8], b: &[u8]) {
        self.check(dst.len(), &[a, b]);
        self.kernels.three(dst, a, b);
    }

    /// Combines `srcs` and the value of `dst`, inserted among them at index `own_at`, from left to right:
    /// `((v0 op v1) op v2) op ...`, and leaves the result in `dst`. Without `srcs`, `dst` stays as it is.
    ///
    /// Goes through the vectors once, in chunks that stay in the first-level cache, and allocates nothing. The result
    /// has the same bits as [`reduce3`](Reducer::reduce3) and [`reduce_into`](Reducer::reduce_into) over whole
    /// vectors in that order.
    ///
    /// # Panics
    /// If `own_at > srcs.len()`, or if the lengths differ or are not a multiple of the element's size.
    pub fn fold(&self, dst: &mut [u8], srcs: &[&[u8]], own_at: usize) {
        assert!(
            own_at <= srcs.len(),
            "own operand at {own_at} of a fold with {} others; valid is at most that number",
            srcs.len()
        );
        self.check(dst.len(), srcs);
        fold::fold(self, dst, srcs, own_at);
    }

    fn check(&self, len: usize, srcs: &[&[u8]]) {
        let size = self.dtype.size_bytes();
        // Sizes are powers of two, which the compiler cannot know: a division would take longer than combining a few
        // elements.
        assert!(
            len & (size - 1) == 0,
            "{len} bytes are no whole number of {} elements of {size} bytes",
            self.dtype
        );
        for src in srcs {
            assert!(
                src.len() == len,
                "an operand of {} bytes does not fit a result of {len} bytes",
                src.len()
            );
        }
    }
}

impl std::fmt::Debug for Reducer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reducer({} {})", self.dtype, self.op)
    }
}
