//! The input data of a run, which every rank can compute for all ranks.
//!
//! Element i of rank r has the value `table_r[i mod 65521]`. The tables are pseudo-random, one per rank. The period
//! is a prime, so that no block of a usual size is mistaken for another.
//!
//! Floating-point sums and products: elements with an even index are small whole numbers or powers of two, whose
//! result is exact in any order of operations. Elements with an odd index are rounded at every step, so that
//! different orders of operations on different ranks give different bits. Factors are near 1, so that no product
//! overflows.

use hopbine::reduce::{Dtype, Op};

use super::element::Number;
use crate::counts::mix;

/// Period of the data in elements; a prime.
pub const PERIOD: usize = 65_521;

/// The parameters that determine the values.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub dtype: Dtype,
    /// The operator of a reduction; without an operator, values are only moved, and are random.
    pub op: Option<Op>,
    pub n_ranks: u32,
    pub seed: u64,
}

impl Data {
    /// Whether the result of element `index` is exact in any order of operations.
    pub fn is_exact(&self, index: usize) -> bool {
        let has_order =
            self.dtype.is_integer() || matches!(self.op, None | Some(Op::Min | Op::Max));
        // An error bound is useless if rounding errors may be as large as the result.
        has_order || index.is_multiple_of(2) || self.relative_error() > 0.5
    }

    /// Bound of the error in any order of operations: of a sum as a multiple of the sum of absolute values, of a
    /// product as a multiple of the result. n - 1 roundings give (n - 1) u / (1 - (n - 1) u) (Higham, Accuracy and
    /// Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2). The error of a complex product is at most
    /// sqrt(2) times that of two real roundings (section 3.6): each product counts as three roundings.
    pub fn relative_error(&self) -> f64 {
        let (number, _) = Number::of(self.dtype);
        let per_operation =
            if self.dtype.is_complex() && self.op == Some(Op::Product) { 3.0 } else { 1.0 };
        let n = f64::from(self.n_ranks - 1) * per_operation;
        let gamma = |u: f64| if n * u < 1.0 { n * u / (1.0 - n * u) } else { f64::INFINITY };
        // The reference is computed in f64 and has rounding errors, too.
        gamma(number.unit_roundoff()) + gamma(Number::F64.unit_roundoff())
    }

    /// The raw bits of element `index` (below [`PERIOD`]) of a rank: one number, or two numbers of a complex element.
    pub fn element(&self, rank: u32, index: usize) -> (u64, u64) {
        let (number, per_element) = Number::of(self.dtype);
        let random = mix(self.seed ^ mix(u64::from(rank) << 32 | index as u64));
        match number {
            Number::Int { bytes, .. } => {
                (number.truncate(self.integer(random, 8 * bytes as u64)), 0)
            }
            _ => {
                let (re, im) = self.real(rank, index, random);
                (number.round(re), if per_element == 2 { number.round(im) } else { 0 })
            }
        }
    }

    /// An integer, distributed so that the operator's results differ between elements.
    fn integer(&self, random: u64, bits: u64) -> u64 {
        let n = u64::from(self.n_ranks);
        let rarely = (random >> 32).is_multiple_of(2 * n);
        let one_bit = 1 << (random % bits);
        let few_bits = if (random >> 32).is_multiple_of(n / bits + 1) { one_bit } else { 0 };
        let Some(op) = self.op else { return random };
        match op {
            Op::Sum | Op::Min | Op::Max | Op::BitXor | Op::MinLoc | Op::MaxLoc => random,
            // Even factors would soon make every product 0.
            Op::Product => random | 1,
            Op::LogicalAnd => u64::from(!rarely) * one_bit,
            Op::LogicalOr => u64::from(rarely) * one_bit,
            Op::LogicalXor => (random >> 40 & 1) * one_bit,
            Op::BitAnd => !few_bits,
            Op::BitOr => few_bits,
        }
    }

    fn real(&self, rank: u32, index: usize, random: u64) -> (f64, f64) {
        // Two values from -1 to 1.
        let unit = |random: u64| (random >> 11) as f64 * f64::powi(2.0, -52) - 1.0;
        let (a, b) = (unit(random), unit(mix(random)));
        let n = f64::from(self.n_ranks);
        match self.op {
            None => (1000.0 * a, 1000.0 * b),
            Some(Op::Min | Op::Max) => (1000.0 * a, 0.0),
            Some(Op::Product) if self.is_exact(index) => {
                // Signed powers of two from 1/2 to 2; some complex values are imaginary.
                let is = |turn: usize| rank as usize == turn % self.n_ranks as usize;
                let size = match (is(index), is(index / 7)) {
                    (true, false) => 2.0,
                    (false, true) => 0.5,
                    _ => 1.0,
                };
                let size = if random & 1 == 0 { size } else { -size };
                let turns = self.dtype.is_complex() && random & 2 == 0;
                if turns { (0.0, size) } else { (size, 0.0) }
            }
            Some(Op::Product) if self.dtype.is_complex() => (1.0 + a / n, b / n),
            Some(Op::Product) => (1.0 + a / n, 0.0),
            _ if self.is_exact(index) => {
                // Sums stay below 129: exact even with the 8 significant bits of bfloat16.
                let every = self.n_ranks.div_ceil(128) as usize;
                let counts = (rank as usize + index).is_multiple_of(every);
                let small = |random: u64| if counts { (random % 3) as f64 - 1.0 } else { 0.0 };
                (small(random >> 20), small(random >> 40))
            }
            _ => (a, b),
        }
    }

    /// The bytes of a rank's first `n` elements, at most [`PERIOD`].
    pub fn table(&self, rank: u32, n: usize) -> Vec<u8> {
        let (number, per_element) = Number::of(self.dtype);
        let n = n.min(PERIOD);
        let mut bytes = Vec::with_capacity(n * self.dtype.size_bytes());
        for index in 0..n {
            let (first, second) = self.element(rank, index);
            number.push(first, &mut bytes);
            if per_element == 2 {
                number.push(second, &mut bytes);
            }
        }
        bytes
    }

    /// Fills a buffer with a rank's data by repeating its table.
    pub fn fill(&self, rank: u32, buffer: &mut [u8]) {
        let table = self.table(rank, buffer.len() / self.dtype.size_bytes());
        for chunk in buffer.chunks_mut(table.len().max(1)) {
            chunk.copy_from_slice(&table[..chunk.len()]);
        }
    }
}
