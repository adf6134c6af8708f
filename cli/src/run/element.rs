//! Elements as raw bits, for input data and references.
//!
//! Deliberately independent of the library's arithmetic: conversions are those of the language (or of the `half`
//! crate), and computations use `f64` or 64-bit integers.

use half::{bf16, f16};
use hopbine::reduce::Dtype;

/// One number: a real element, or one part of a complex element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// An integer of this many bytes.
    Int {
        bytes: usize,
        signed: bool,
    },
    F16,
    Bf16,
    F32,
    F64,
}

impl Number {
    /// The type of the numbers in an element, and how many numbers an element has.
    pub fn of(dtype: Dtype) -> (Self, usize) {
        let int = |bytes, signed| (Number::Int { bytes, signed }, 1);
        match dtype {
            Dtype::I8 => int(1, true),
            Dtype::I16 => int(2, true),
            Dtype::I32 => int(4, true),
            Dtype::I64 => int(8, true),
            Dtype::U8 => int(1, false),
            Dtype::U16 => int(2, false),
            Dtype::U32 => int(4, false),
            Dtype::U64 => int(8, false),
            Dtype::F16 => (Number::F16, 1),
            Dtype::Bf16 => (Number::Bf16, 1),
            Dtype::F32 => (Number::F32, 1),
            Dtype::F64 => (Number::F64, 1),
            Dtype::ComplexF32 => (Number::F32, 2),
            Dtype::ComplexF64 => (Number::F64, 2),
            pair => unreachable!("{pair} cannot be asked for"),
        }
    }

    /// Bytes of one number.
    pub fn size(self) -> usize {
        match self {
            Number::Int { bytes, .. } => bytes,
            Number::F16 | Number::Bf16 => 2,
            Number::F32 => 4,
            Number::F64 => 8,
        }
    }

    /// The largest relative error of one rounding to this type; 0 for integers.
    pub fn unit_roundoff(self) -> f64 {
        let bits = match self {
            Number::Int { .. } => return 0.0,
            Number::F16 => 11,
            Number::Bf16 => 8,
            Number::F32 => 24,
            Number::F64 => 53,
        };
        f64::powi(2.0, -bits)
    }

    /// Rounds a floating-point value to this type; returns its raw bits.
    ///
    /// # Panics
    /// For integer types.
    pub fn round(self, value: f64) -> u64 {
        match self {
            Number::Int { .. } => unreachable!("only floating-point values are rounded"),
            Number::F16 => f16::from_f64(value).to_bits().into(),
            Number::Bf16 => bf16::from_f64(value).to_bits().into(),
            Number::F32 => (value as f32).to_bits().into(),
            Number::F64 => value.to_bits(),
        }
    }

    /// The value of raw bits as `f64`.
    pub fn value(self, raw: u64) -> f64 {
        match self {
            Number::Int { .. } => self.integer(raw) as f64,
            Number::F16 => f16::from_bits(raw as u16).to_f64(),
            Number::Bf16 => bf16::from_bits(raw as u16).to_f64(),
            Number::F32 => f32::from_bits(raw as u32).into(),
            Number::F64 => f64::from_bits(raw),
        }
    }

    /// The value of raw integer bits.
    pub fn integer(self, raw: u64) -> i128 {
        match self {
            Number::Int { bytes, signed: true } => {
                let unused = 64 - 8 * bytes as u32;
                i128::from(((raw << unused) as i64) >> unused)
            }
            _ => i128::from(raw),
        }
    }

    /// Truncates raw bits to the size of the type.
    pub fn truncate(self, raw: u64) -> u64 {
        match self.size() {
            8 => raw,
            size => raw & ((1 << (8 * size)) - 1),
        }
    }

    /// Reads the number at `index` of a buffer.
    pub fn read(self, bytes: &[u8], index: usize) -> u64 {
        let size = self.size();
        let at = &bytes[index * size..][..size];
        let mut raw = [0; 8];
        if cfg!(target_endian = "little") {
            raw[..size].copy_from_slice(at);
        } else {
            raw[8 - size..].copy_from_slice(at);
        }
        u64::from_ne_bytes(raw)
    }

    /// Appends a number to a buffer.
    pub fn push(self, raw: u64, bytes: &mut Vec<u8>) {
        let size = self.size();
        let raw = raw.to_ne_bytes();
        bytes.extend_from_slice(if cfg!(target_endian = "little") {
            &raw[..size]
        } else {
            &raw[8 - size..]
        });
    }

    /// Formats a number.
    pub fn show(self, raw: u64) -> String {
        match self {
            Number::Int { .. } => self.integer(raw).to_string(),
            // Formats as the shortest text that parses as the same value of this type.
            Number::F16 => f16::from_bits(raw as u16).to_string(),
            Number::Bf16 => bf16::from_bits(raw as u16).to_string(),
            Number::F32 => format!("{:?}", f32::from_bits(raw as u32)),
            Number::F64 => format!("{:?}", f64::from_bits(raw)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_through_memory() {
        for (number, raw) in [
            (Number::Int { bytes: 1, signed: true }, 0x80),
            (Number::Int { bytes: 8, signed: false }, u64::MAX),
            (Number::F16, Number::F16.round(-1.5)),
            (Number::F64, Number::F64.round(0.1)),
        ] {
            let mut bytes = vec![];
            number.push(1, &mut bytes);
            number.push(raw, &mut bytes);
            assert_eq!(bytes.len(), 2 * number.size());
            assert_eq!(number.read(&bytes, 1), raw);
        }
        assert_eq!(Number::Int { bytes: 1, signed: true }.integer(0x80), -128);
        assert_eq!(Number::Int { bytes: 1, signed: false }.integer(0x80), 128);
        assert_eq!(Number::Bf16.value(Number::Bf16.round(-1.5)), -1.5);
    }
}
