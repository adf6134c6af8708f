//! The values that a position can hold: sets of contributions, and the order in which they were combined.

use super::expected::Expected;
use super::splitmix64::number;
use crate::names::Rank;

/// The value in a position, or in several positions with the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value(u32);

impl Value {
    /// The value of a position into which nothing has been written.
    pub(super) const NOTHING: Value = Value(Value::END);

    /// The number of [`Value::NOTHING`]; all other values have smaller numbers.
    pub(super) const END: u32 = u32::MAX >> 1;

    /// The contribution of a rank.
    pub(super) fn of(rank: Rank) -> Self {
        Value(rank.0)
    }

    /// The number that identifies the value.
    pub(super) fn number(self) -> u32 {
        self.0
    }

    /// The value with a given number.
    pub(super) fn from_number(number: u32) -> Self {
        Value(number)
    }
}

/// All values of an execution, in the representation that the collective needs. The first values are the
/// contributions of the ranks.
#[derive(Debug)]
pub(super) struct Values {
    n_ranks: u32,
    sets: Sets,
    /// 64-bit hashes of the expressions that computed the values; empty if they are not compared.
    orders: Vec<u64>,
    /// Numbers of values that no position holds any more.
    free: Vec<u32>,
}

#[derive(Debug)]
enum Sets {
    /// Nothing is combined: a value is the contribution of one rank.
    Single,
    /// Sets of contributors as bits, for the ranks from `base` on.
    Bits {
        /// 64-bit words per set.
        words: usize,
        /// The first contributor that is tracked.
        base: u32,
        bits: Vec<u64>,
    },
    /// Sums of pseudo-random 64-bit numbers, one per rank: two different multisets have the same sum with a
    /// probability of about 2^-64.
    Sums(Vec<u64>),
    /// For scans: consecutive ranks combined in their order, as the first rank and one past the last. If an
    /// expression has its operands in the order of ranks, each of its subexpressions is such a run. `None` stands
    /// for everything else.
    Runs(Vec<Option<(u32, u32)>>),
}

/// Hash of "`a` combined with `b`, in this order". The hashes of contributions are pseudo-random numbers.
fn combined(a: u64, b: u64) -> u64 {
    (a.rotate_left(23) ^ b).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

impl Values {
    /// Values that are never combined.
    pub(super) fn single(n_ranks: u32) -> Self {
        Values::new(n_ranks, Sets::Single)
    }

    /// Values with exact sets of up to `words * 64` contributors.
    pub(super) fn bits(n_ranks: u32, words: usize) -> Self {
        Values::new(n_ranks, Sets::Bits { words, base: 0, bits: Vec::new() })
    }

    /// Values with sums as sets.
    pub(super) fn sums(n_ranks: u32) -> Self {
        Values::new(n_ranks, Sets::Sums(Vec::new()))
    }

    /// Values with runs of consecutive ranks as sets.
    pub(super) fn runs(n_ranks: u32) -> Self {
        Values::new(n_ranks, Sets::Runs(Vec::new()))
    }

    fn new(n_ranks: u32, sets: Sets) -> Self {
        Values { n_ranks, sets, orders: Vec::new(), free: Vec::new() }
    }

    /// Forgets all values except the contributions; contributors are tracked from `new_base` on.
    pub(super) fn reset(&mut self, new_base: u32, has_orders: bool) {
        let n_ranks = self.n_ranks as usize;
        let numbers = || Rank::first(n_ranks as u32).map(number);
        match &mut self.sets {
            Sets::Single => {}
            Sets::Bits { words, base, bits } => {
                *base = new_base;
                bits.clear();
                bits.resize(n_ranks * *words, 0);
                for bit in 0..(*words * 64).min(n_ranks.saturating_sub(new_base as usize)) {
                    bits[(new_base as usize + bit) * *words + bit / 64] |= 1 << (bit % 64);
                }
            }
            Sets::Sums(sums) => {
                sums.truncate(n_ranks);
                if sums.is_empty() {
                    sums.extend(numbers());
                }
            }
            Sets::Runs(runs) => {
                runs.clear();
                runs.extend((0..n_ranks as u32).map(|rank| Some((rank, rank + 1))));
            }
        }
        self.orders.truncate(if has_orders { n_ranks } else { 0 });
        if has_orders && self.orders.is_empty() {
            self.orders.extend(numbers());
        }
        self.free.clear();
    }

    /// Number of values, including those that no position holds.
    pub(super) fn len(&self) -> usize {
        match &self.sets {
            Sets::Single => self.n_ranks as usize,
            Sets::Bits { words, bits, .. } => bits.len() / (*words).max(1),
            Sets::Sums(sums) => sums.len(),
            Sets::Runs(runs) => runs.len(),
        }
    }

    /// Number of forgotten values whose numbers can be reused.
    pub(super) fn n_free(&self) -> usize {
        self.free.len()
    }

    /// Forgets all values that are not marked, except the contributions.
    pub(super) fn retain(&mut self, is_held: &[bool]) {
        let made = self.n_ranks..self.len() as u32;
        self.free.clear();
        self.free.extend(made.filter(|&value| !is_held[value as usize]));
    }

    /// Combines `left` with `right`, and returns whether a contribution is in both. Only bit sets and runs detect
    /// that here; with sums the result is wrong at the end. A value combined with nothing is unchanged.
    pub(super) fn combine(&mut self, left: Value, right: Value) -> (Value, bool) {
        if left == Value::NOTHING || right == Value::NOTHING {
            return (if left == Value::NOTHING { right } else { left }, false);
        }
        let (a, b) = (left.0 as usize, right.0 as usize);
        let at = self.free.pop().map_or(self.len(), |free| free as usize);
        let mut is_repeated = false;
        match &mut self.sets {
            // Does not occur: a local rule allows only reductions to combine.
            Sets::Single => return (left, false),
            Sets::Bits { words, bits, .. } => {
                let words = *words;
                bits.resize(bits.len().max((at + 1) * words), 0);
                for word in 0..words {
                    let (a, b) = (bits[a * words + word], bits[b * words + word]);
                    is_repeated |= a & b != 0;
                    bits[at * words + word] = a | b;
                }
            }
            Sets::Sums(sums) => {
                let sum = sums[a].wrapping_add(sums[b]);
                sums.resize(sums.len().max(at + 1), 0);
                sums[at] = sum;
            }
            Sets::Runs(runs) => {
                let pair = runs[a].zip(runs[b]);
                is_repeated = pair.is_some_and(|(a, b)| a.0 < b.1 && b.0 < a.1);
                let joined = pair.filter(|(a, b)| a.1 == b.0).map(|(a, b)| (a.0, b.1));
                runs.resize(runs.len().max(at + 1), None);
                runs[at] = joined;
            }
        }
        if !self.orders.is_empty() {
            let order = combined(self.orders[a], self.orders[b]);
            self.orders.resize(self.orders.len().max(at + 1), 0);
            self.orders[at] = order;
        }
        (Value(at as u32), is_repeated)
    }

    /// True if two values have the same contributors.
    pub(super) fn are_of_the_same(&self, a: Value, b: Value) -> bool {
        if a == b || a == Value::NOTHING || b == Value::NOTHING {
            return a == b;
        }
        let (a, b) = (a.0 as usize, b.0 as usize);
        match &self.sets {
            Sets::Single => false,
            Sets::Bits { words, bits, .. } => {
                bits[a * words..][..*words] == bits[b * words..][..*words]
            }
            Sets::Sums(sums) => sums[a] == sums[b],
            Sets::Runs(runs) => runs[a].is_some() && runs[a] == runs[b],
        }
    }

    /// True if a value has exactly the expected contributions, and in a scan combined in the order of ranks.
    pub(super) fn is_complete(&self, value: Value, expected: &Expected) -> bool {
        let at = value.0 as usize;
        match &self.sets {
            _ if value == Value::NOTHING => false,
            Sets::Single => false,
            Sets::Bits { words, bits, .. } => bits[at * words..][..*words] == expected.set,
            Sets::Sums(sums) => sums[at] == expected.sum,
            Sets::Runs(runs) => runs[at] == Some((0, expected.end)),
        }
    }

    /// True if, in a scan, a value is not the combination of consecutive ranks in their order.
    pub(super) fn is_out_of_order(&self, value: Value) -> bool {
        match &self.sets {
            Sets::Runs(runs) => value != Value::NOTHING && runs[value.0 as usize].is_none(),
            _ => false,
        }
    }

    /// The hash of the expression that computed a value, if expressions are compared.
    pub(super) fn order(&self, value: Value) -> Option<u64> {
        self.orders.get(value.0 as usize).copied()
    }

    /// The rank whose contribution a value is, if nothing is combined; `None` for [`Value::NOTHING`].
    pub(super) fn source(&self, value: Value) -> Option<Rank> {
        (matches!(self.sets, Sets::Single) && value != Value::NOTHING).then_some(Rank(value.0))
    }
}
