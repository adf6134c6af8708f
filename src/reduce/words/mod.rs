//! Reductions of elements as reductions of 64-bit words, for hardware that combines only words. A [`WordMap`] has the
//! encoding, the operation on words and the decoding as data. The result has the bits of
//! [`Reducer::fold`](super::Reducer::fold).
//!
//! - Bitwise and logical operators combine each bit separately: elements are packed side by side, logical ones as
//!   single bits.
//! - A sum of integers packs elements with room for carries between them.
//! - Minimum and maximum use a word for each number; the unsigned order of the words is the order of the numbers
//!   (`order`).
//!
//! Each of these operations on words is associative, so the hardware may combine words in any order.

mod bits;
mod real;

pub(crate) use real::RealSum;

use super::order::{Order, of_pair};
use super::{Dtype, Op};
use bits::{read, write};
use utofu::handles::ReduceOp;

/// The code of a number in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    /// The number's bits.
    Bits,
    /// One bit: whether the number is not 0.
    Truth,
    /// The number's sort key in an order.
    Order(Order),
}

/// A reduction of elements as a reduction of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordMap {
    op: ReduceOp,
    /// Codes of an element's first number and of its second, if it has one.
    codes: [Code; 2],
    /// Numbers of an element: 1 or 2.
    numbers: usize,
    /// Bytes of a number.
    number_bytes: usize,
    /// Bits from one number of a word to the next.
    stride: u32,
    /// Numbers in a word.
    per_word: usize,
}

impl WordMap {
    /// The map of `op` on `n_operands` vectors of type `dtype`; `None` if words cannot express it.
    pub(crate) fn new(dtype: Dtype, op: Op, n_operands: u32) -> Option<WordMap> {
        let pair = dtype.pair();
        let numbers = if pair.is_some() || dtype.is_complex() { 2 } else { 1 };
        let number_bytes = dtype.size_bytes() / numbers;
        let width = 8 * number_bytes as u32;
        let with = |codes, op, bits: u32, stride: u32| {
            let per_word = 1 + ((u64::BITS - bits) / stride) as usize;
            Some(WordMap { op, codes, numbers, number_bytes, stride, per_word })
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

    /// The hardware's operation on words.
    pub(crate) fn op(&self) -> ReduceOp {
        self.op
    }

    /// Most elements that fit in `n_words` words.
    pub(crate) fn max_elements(&self, n_words: usize) -> u64 {
        (n_words * self.per_word / self.numbers) as u64
    }

    /// Words for `count` elements.
    pub(crate) fn n_words(&self, count: u64) -> usize {
        (count as usize * self.numbers).div_ceil(self.per_word)
    }

    /// Writes the words of elements.
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
                Code::Order(order) => order.sort_key(number),
            };
            words[at / self.per_word] |= coded << self.shift(at);
        }
    }

    /// Writes the elements of words.
    ///
    /// # Panics
    /// As [`encode`](WordMap::encode).
    pub(crate) fn decode(&self, words: &[u64], elements: &mut [u8]) {
        for (at, number) in elements.chunks_exact_mut(self.number_bytes).enumerate() {
            let coded = words[at / self.per_word] >> self.shift(at);
            // The bits above the number belong to other numbers; `write` drops them.
            let value = match self.codes[at % self.numbers] {
                Code::Bits => coded,
                Code::Truth => coded & 1,
                Code::Order(order) => order.of_sort_key(coded),
            };
            write(value, number);
        }
    }

    fn shift(&self, at: usize) -> u32 {
        (at % self.per_word) as u32 * self.stride
    }
}
