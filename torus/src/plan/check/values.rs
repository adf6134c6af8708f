//! What a position can hold: whose contributions, combined in which order.

use super::expected::Expected;
use super::scramble::number;
use crate::names::Rank;

/// What a position holds, or several alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value(u32);

impl Value {
    /// What is in a position that nobody has given anything.
    pub(super) const NOTHING: Value = Value(Value::END);

    /// All values have smaller numbers, but for [`Value::NOTHING`].
    pub(super) const END: u32 = u32::MAX >> 1;

    /// What a rank gives.
    pub(super) fn of(rank: Rank) -> Self {
        Value(rank.0)
    }

    /// A number that tells it from all others.
    pub(super) fn number(self) -> u32 {
        self.0
    }

    /// The value of a number.
    pub(super) fn from_number(number: u32) -> Self {
        Value(number)
    }
}

/// All values of an execution, in the representation that their collective needs. The first are
/// what the ranks give.
#[derive(Debug)]
pub(super) struct Values {
    n_ranks: u32,
    sets: Sets,
    /// The expressions that combined the values, as 64-bit hashes; empty where nobody compares
    /// them.
    orders: Vec<u64>,
    /// Numbers of values that nothing holds any more.
    free: Vec<u32>,
}

#[derive(Debug)]
enum Sets {
    /// Nothing is ever combined: a value is what one rank gave.
    Single,
    /// Contributors as bits, those of ranks from `base` on.
    Bits {
        /// 64-bit words per set.
        words: usize,
        /// The first contributor that is tracked.
        base: u32,
        bits: Vec<u64>,
    },
    /// Sums of pseudo-random 64-bit numbers, one per rank: two different multisets agree with a
    /// probability of about 2^-64.
    Sums(Vec<u64>),
    /// For scans: consecutive ranks, combined in their order, as the first and the one after the
    /// last. Of an expression whose operands are in the order of ranks every part is such a run.
    /// `None` stands for everything else.
    Runs(Vec<Option<(u32, u32)>>),
}

/// The hash of "`a` combined with `b`, in this order"; operands begin as pseudo-random numbers.
fn combined(a: u64, b: u64) -> u64 {
    (a.rotate_left(23) ^ b).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

impl Values {
    /// Values that are never combined.
    pub(super) fn single(n_ranks: u32) -> Self {
        Values::new(n_ranks, Sets::Single)
    }

    /// Values with exact sets of `words * 64` contributors.
    pub(super) fn bits(n_ranks: u32, words: usize) -> Self {
        Values::new(n_ranks, Sets::Bits { words, base: 0, bits: Vec::new() })
    }

    /// Values with sums for sets.
    pub(super) fn sums(n_ranks: u32) -> Self {
        Values::new(n_ranks, Sets::Sums(Vec::new()))
    }

    /// Values with runs of consecutive ranks for sets.
    pub(super) fn runs(n_ranks: u32) -> Self {
        Values::new(n_ranks, Sets::Runs(Vec::new()))
    }

    fn new(n_ranks: u32, sets: Sets) -> Self {
        Values { n_ranks, sets, orders: Vec::new(), free: Vec::new() }
    }

    /// Forgets all but what the ranks give; contributors are tracked from `new_base` on.
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

    /// Number of values, whether something holds them or not.
    pub(super) fn len(&self) -> usize {
        match &self.sets {
            Sets::Single => self.n_ranks as usize,
            Sets::Bits { words, bits, .. } => bits.len() / (*words).max(1),
            Sets::Sums(sums) => sums.len(),
            Sets::Runs(runs) => runs.len(),
        }
    }

    /// Numbers of forgotten values that new values can take.
    pub(super) fn n_free(&self) -> usize {
        self.free.len()
    }

    /// Keeps only the values that are marked, and what the ranks give.
    pub(super) fn retain(&mut self, is_held: &[bool]) {
        let made = self.n_ranks..self.len() as u32;
        self.free.clear();
        self.free.extend(made.filter(|&value| !is_held[value as usize]));
    }

    /// `left` combined with `right`, and whether a contribution is in both. Only bits and runs show
    /// that here; sums are then wrong at the end. A value combined with nothing stays what it is.
    pub(super) fn combine(&mut self, left: Value, right: Value) -> (Value, bool) {
        if left == Value::NOTHING || right == Value::NOTHING {
            return (if left == Value::NOTHING { right } else { left }, false);
        }
        let (a, b) = (left.0 as usize, right.0 as usize);
        let at = self.free.pop().map_or(self.len(), |free| free as usize);
        let mut is_repeated = false;
        match &mut self.sets {
            // Only reductions combine: a local rule.
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

    /// True if two values are of the same contributors.
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

    /// True if a value has the contributions expected; in a scan, in the order of ranks.
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

    /// True if a value combines ranks that are no run of consecutive ones in their order, where that
    /// is asked.
    pub(super) fn is_out_of_order(&self, value: Value) -> bool {
        match &self.sets {
            Sets::Runs(runs) => value != Value::NOTHING && runs[value.0 as usize].is_none(),
            _ => false,
        }
    }

    /// The expression that made a value, where expressions are kept.
    pub(super) fn order(&self, value: Value) -> Option<u64> {
        self.orders.get(value.0 as usize).copied()
    }

    /// Whose contribution a value is, where nothing is combined: `None` if nobody's.
    pub(super) fn source(&self, value: Value) -> Option<Rank> {
        (matches!(self.sets, Sets::Single) && value != Value::NOTHING).then_some(Rank(value.0))
    }
}
