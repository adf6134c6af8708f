//! Reductions of elements as reductions of 64-bit words, for hardware that combines nothing else: what is to be
//! encoded, combined and decoded, as data. The result has the bits that [`Reducer::fold`](super::Reducer::fold) has.
//!
//! - What keeps bits apart (bitwise and logical operators) packs elements side by side, logical ones as single bits.
//! - A sum of integers packs them with room for carries between.
//! - Minimum and maximum take a word for each element, whose unsigned order is that of the elements (`order`).
//!
//! Words are combined in any order: each of these operators is associative on them.

mod bits;
mod order;
mod real;

pub(crate) use real::RealSum;

use super::{Dtype, Op};
use bits::{read, write};
use order::Order;

/// How two words become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordOp {
    /// Bits set in both.
    And,
    /// Bits set in at least one.
    Or,
    /// Bits set in exactly one.
    Xor,
    /// The larger one, unsigned.
    Max,
    /// Sum modulo 2^64.
    Sum,
}

/// What stands in a word for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    /// Its bits.
    Bits,
    /// One bit, which says whether it is not 0.
    Truth,
    /// Its place in an order.
    Order(Order),
}

/// A reduction of elements as one of words: see the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordMap {
    op: WordOp,
    code: Code,
    /// Bytes of a number; a complex element is two.
    number_bytes: u32,
    /// Numbers of an element.
    numbers: u32,
    /// Bits from one number of a word to the next.
    stride: u32,
    /// Numbers in a word.
    lanes: u32,
}

impl WordMap {
    /// That of `op` on `n_operands` vectors of type `dtype`; `None` if there is none.
    pub(crate) fn new(dtype: Dtype, op: Op, n_operands: u32) -> Option<WordMap> {
        let numbers = if dtype.is_complex() { 2 } else { 1 };
        let number_bytes = dtype.size_bytes() as u32 / numbers;
        let width = 8 * number_bytes;
        let with = |code, op, bits: u32, stride: u32| {
            let lanes = 1 + (u64::BITS - bits) / stride;
            Some(WordMap { op, code, number_bytes, numbers, stride, lanes })
        };
        let bits = |op| with(Code::Bits, op, width, width);
        let truth = |op| with(Code::Truth, op, 1, 1);
        let order = |is_inverted| {
            with(Code::Order(Order::of(dtype, is_inverted)), WordOp::Max, width, u64::BITS)
        };
        // A fold of one operand is that operand, whatever the operator.
        if n_operands == 1 {
            return bits(WordOp::Or);
        }
        if !op.defined_for(dtype) {
            return None;
        }
        match op {
            Op::Sum if dtype.is_integer() => {
                let carries = n_operands.next_power_of_two().trailing_zeros();
                with(Code::Bits, WordOp::Sum, width, width + carries)
            }
            Op::Sum | Op::Product => None,
            Op::Min => order(true),
            Op::Max => order(false),
            Op::LogicalAnd => truth(WordOp::And),
            Op::LogicalOr => truth(WordOp::Or),
            Op::LogicalXor => truth(WordOp::Xor),
            Op::BitAnd => bits(WordOp::And),
            Op::BitOr => bits(WordOp::Or),
            Op::BitXor => bits(WordOp::Xor),
        }
    }

    /// How the words are combined.
    pub(crate) fn op(&self) -> WordOp {
        self.op
    }

    /// The most elements that fit so many words.
    pub(crate) fn most(&self, n_words: usize) -> u64 {
        n_words as u64 * u64::from(self.lanes) / u64::from(self.numbers)
    }

    /// Words for so many elements.
    pub(crate) fn n_words(&self, count: u64) -> usize {
        (count * u64::from(self.numbers)).div_ceil(u64::from(self.lanes)) as usize
    }

    /// Writes the words that stand for elements.
    ///
    /// # Panics
    /// If there are fewer words than [`n_words`](WordMap::n_words).
    pub(crate) fn encode(&self, elements: &[u8], words: &mut [u64]) {
        words.fill(0);
        for (at, number) in elements.chunks_exact(self.number_bytes as usize).enumerate() {
            let number = read(number);
            let coded = match self.code {
                Code::Bits => number,
                Code::Truth => u64::from(number != 0),
                Code::Order(order) => order.place_of(number),
            };
            words[at / self.lanes as usize] |= coded << self.shift(at);
        }
    }

    /// Writes the elements that words stand for.
    ///
    /// # Panics
    /// As [`encode`](WordMap::encode).
    pub(crate) fn decode(&self, words: &[u64], elements: &mut [u8]) {
        for (at, number) in elements.chunks_exact_mut(self.number_bytes as usize).enumerate() {
            let coded = words[at / self.lanes as usize] >> self.shift(at);
            // What is left above is cut off.
            let value = match self.code {
                Code::Bits => coded,
                Code::Truth => coded & 1,
                Code::Order(order) => order.number_at(coded),
            };
            write(value, number);
        }
    }

    fn shift(&self, at: usize) -> u32 {
        at as u32 % self.lanes * self.stride
    }
}
