//! Sums of floats by hardware that sums doubles and rounds the sum once. The last bits may differ from those of a
//! fold, which rounds at every addition.

use super::bits::{read, write};
use crate::reduce::Dtype;

/// A sum of floats as a sum of doubles; the parts of complex elements are summed separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RealSum {
    /// Bytes of a number: 4 or 8.
    number_bytes: usize,
    /// Numbers of an element: 1 or 2.
    numbers: usize,
}

impl RealSum {
    /// The sum of a type's elements; `None` if it is not a type of floats of 4 or 8 bytes.
    pub(crate) fn new(dtype: Dtype) -> Option<RealSum> {
        let (number_bytes, numbers) = match dtype {
            Dtype::F32 => (4, 1),
            Dtype::ComplexF32 => (4, 2),
            Dtype::F64 => (8, 1),
            Dtype::ComplexF64 => (8, 2),
            _ => return None,
        };
        Some(RealSum { number_bytes, numbers })
    }

    /// Most elements that fit in `n_doubles` doubles.
    pub(crate) fn max_elements(self, n_doubles: usize) -> u64 {
        (n_doubles / self.numbers) as u64
    }

    /// Doubles for `count` elements.
    pub(crate) fn n_doubles(self, count: u64) -> usize {
        count as usize * self.numbers
    }

    /// Writes the doubles of elements; exact.
    pub(crate) fn encode(self, elements: &[u8], doubles: &mut [f64]) {
        for (double, number) in doubles.iter_mut().zip(elements.chunks_exact(self.number_bytes)) {
            let bits = read(number);
            *double = match self.number_bytes {
                4 => f32::from_bits(bits as u32).into(),
                _ => f64::from_bits(bits),
            };
        }
    }

    /// Writes the elements of sums; sums of `f32` are rounded a second time. NaN is the canonical one, as in all of
    /// [`reduce`](crate::reduce).
    pub(crate) fn decode(self, doubles: &[f64], elements: &mut [u8]) {
        for (&double, number) in doubles.iter().zip(elements.chunks_exact_mut(self.number_bytes)) {
            let sum = if double.is_nan() { f64::NAN } else { double };
            let bits = match self.number_bytes {
                4 => (sum as f32).to_bits().into(),
                _ => sum.to_bits(),
            };
            write(bits, number);
        }
    }
}
