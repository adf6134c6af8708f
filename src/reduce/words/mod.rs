//! Reductions of elements as reductions of 64-bit words, for hardware that combines nothing else: what is to be
//! encoded, combined and decoded, as data. The result has the bits that [`Reducer::fold`](super::Reducer::fold) has.
//!
//! - What keeps bits apart (bitwise and logical operators) packs elements side by side, logical ones as single bits.
//! - A sum of integers packs them with room for carries between.
//! - Minimum and maximum take a word for each number, whose unsigned order is that of the numbers (`order`).
//!
//! Words are combined in any order: each of these operators is associative on them.

mod bits;
mod real;

pub(crate) use real::RealSum;

use super::order::{Order, of_pair};
use super::{Dtype, Op};
use bits::{read, write};
use utofu::handles::ReduceOp;

/// What stands in a word for a number.
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
    op: ReduceOp,
    /// Of an element's first number, and of its second if it has one.
    codes: [Code; 2],
    /// Numbers of an element: 1 or 2.
    numbers: usize,
    /// Bytes of a number.
    number_bytes: usize,
    /// Bits from one number of a word to the next.
    stride: u32,
    /// Numbers in a word.
    lanes: usize,
}

impl WordMap {
    /// That of `op` on `n_operands` vectors of type `dtype`; `None` if there is none.
    pub(crate) fn new(dtype: Dtype, op: Op, n_operands: u32) -> Option<WordMap> {
        let pair = dtype.pair();
        let numbers = if pair.is_some() || dtype.is_complex() { 2 } else { 1 };
        let number_bytes = dtype.size_bytes() / numbers;
        let width = 8 * number_bytes as u32;
        let with = |codes, op, bits: u32, stride: u32| {
            let lanes = 1 + ((u64::BITS - bits) / stride) as usize;
            Some(WordMap { op, codes, numbers, number_bytes, stride, lanes })
        };
        let bits = |op| with([Code::Bits; 2], op, width, width);
        let truth = |op| with([Code::Truth; 2], op, 1, 1);
        let order = |is_min| {
            with([Code::Order(Order::of(dtype, is_min)); 2], ReduceOp::Max, width, u64::BITS)
        };
        // A fold of one operand is that operand, whatever the operator.
        if n_operands == 1 {
            return bits(ReduceOp::Or);
        }
        if !op.defined_for(dtype) {
            return None;
        }
        match op {
            Op::Sum if dtype.is_integer() => {
                let carries = n_operands.next_power_of_two().trailing_zeros();
                with([Code::Bits; 2], ReduceOp::Sum, width, width + carries)
            }
            Op::Sum | Op::Product => None,
            Op::Min => order(true),
            Op::Max => order(false),
            Op::LogicalAnd => truth(ReduceOp::And),
            Op::LogicalOr => truth(ReduceOp::Or),
            Op::LogicalXor => truth(ReduceOp::Xor),
            Op::BitAnd => bits(ReduceOp::And),
            Op::BitOr => bits(ReduceOp::Or),
            Op::BitXor => bits(ReduceOp::Xor),
            Op::MinLoc | Op::MaxLoc => {
                let (value, location) = pair?;
                let (values, locations) = of_pair(value, location, op == Op::MinLoc);
                let codes = [Code::Order(values), Code::Order(locations)];
                with(codes, ReduceOp::MaxLoc, width, u64::BITS)
            }
        }
    }

    /// How the words are combined.
    pub(crate) fn op(&self) -> ReduceOp {
        self.op
    }

    /// The most elements that fit so many words.
    pub(crate) fn most(&self, n_words: usize) -> u64 {
        (n_words * self.lanes / self.numbers) as u64
    }

    /// Words for so many elements.
    pub(crate) fn n_words(&self, count: u64) -> usize {
        (count as usize * self.numbers).div_ceil(self.lanes)
    }

    /// Writes the words that stand for elements.
    ///
    /// # Panics
    /// If there are fewer words than [`n_words`](WordMap::n_words).
    pub(crate) fn encode(&self, elements: &[u8], words: &mut [u64]) {
        words.fill(0);
        for (at, number) in elements.chunks_exact(self.number_bytes).enumerate() {
            let number = read(number);
            let coded = match self.codes[at % self.numbers] {
                Code::Bits => number,
                Code::Truth => u64::from(number != 0),
                Code::Order(order) => order.place_of(number),
            };
            words[at / self.lanes] |= coded << self.shift(at);
        }
    }

    /// Writes the elements that words stand for.
    ///
    /// # Panics
    /// As [`encode`](WordMap::encode).
    pub(crate) fn decode(&self, words: &[u64], elements: &mut [u8]) {
        for (at, number) in elements.chunks_exact_mut(self.number_bytes).enumerate() {
            let coded = words[at / self.lanes] >> self.shift(at);
            // What is left above is cut off.
            let value = match self.codes[at % self.numbers] {
                Code::Bits => coded,
                Code::Truth => coded & 1,
                Code::Order(order) => order.number_at(coded),
            };
            write(value, number);
        }
    }

    fn shift(&self, at: usize) -> u32 {
        (at % self.lanes) as u32 * self.stride
    }
}
