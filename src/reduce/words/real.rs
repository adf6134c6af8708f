//! Sums of floats by hardware that sums doubles and rounds the sum once: the last bits may differ from a fold's, which
//! rounds at every addition.

use super::bits::{read, write};
use crate::reduce::Dtype;

/// A sum of floats as one of doubles; the numbers of complex elements are summed each on their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RealSum {
    /// Of a number: 4 or 8.
    number_bytes: usize,
    /// Numbers of an element.
    numbers: usize,
}

impl RealSum {
    /// That of a type, if there is one.
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

    /// The most elements that fit so many doubles.
    pub(crate) fn most(self, n_doubles: usize) -> u64 {
        (n_doubles / self.numbers) as u64
    }

    /// Doubles for so many elements.
    pub(crate) fn n_doubles(self, count: u64) -> usize {
        count as usize * self.numbers
    }

    /// Writes the doubles that stand for elements, exactly.
    pub(crate) fn encode(self, elements: &[u8], doubles: &mut [f64]) {
        for (double, number) in doubles.iter_mut().zip(elements.chunks_exact(self.number_bytes)) {
            let bits = read(number);
            *double = match self.number_bytes {
                4 => f32::from_bits(bits as u32).into(),
                _ => f64::from_bits(bits),
            };
        }
    }

    /// Writes the elements that sums stand for: those of `f32` are rounded a second time. NaN is the canonical one,
    /// as everywhere in this room.
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
