//! Checks that all ranks make the same calls at gates. The gates themselves see only an operator and a number of
//! words.
//!
//! A [`History`] is a hash of all calls so far. If a call leaves words unused, the hash goes with the data, in a
//! form by which every rank sees from the result whether all hashes were equal. If it leaves none, a later call
//! checks it.

use crate::comm::call::Call;
use utofu::handles::ReduceOp;

/// The most consecutive calls without room for the hash, before it gets an operation of its own.
const MOST_UNCHECKED: u32 = 64;
/// The most words that a check needs.
const MOST: usize = 4;

/// The calls that the ranks of a chain of gates have made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    hash: u64,
    unchecked: u32,
}

impl History {
    /// The history with this call, which no check has covered.
    pub(super) fn after(self, call: &Call) -> History {
        let op = call.op.map_or(0, |op| op as u64 + 1);
        let call = call.count << 16 | op << 8 | call.dtype as u64;
        let mixed = (self.hash ^ call).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        History { hash, unchecked: self.unchecked + 1 }
    }

    /// The history after a check: all ranks have the same one.
    pub(super) fn checked(self) -> History {
        History { unchecked: 0, ..self }
    }

    /// Whether there are calls that no check has covered.
    pub(super) fn is_unchecked(self) -> bool {
        self.unchecked > 0
    }

    /// Whether there are too many such calls.
    pub(super) fn is_due(self) -> bool {
        self.unchecked >= MOST_UNCHECKED
    }
}

/// Words that ranks give the gates before their data, and the result if all ranks have the same history. If they do
/// not, every rank gets another result, except once in 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Check {
    contribution: [u64; MOST],
    expected: [u64; MOST],
    len: usize,
}

impl Check {
    /// The check of a reduction by `op` that leaves `room` words; empty if these are too few.
    pub(super) fn of(history: History, op: ReduceOp, n_ranks: u32, room: usize) -> Check {
        let hash = history.hash;
        let (contribution, len) = match op {
            // Each bit and its complement: if ranks differ, one of the two changes.
            ReduceOp::And | ReduceOp::Or => ([hash << 32 | (!hash & 0xffff_ffff), 0, 0, 0], 1),
            // The maximum of the hashes and that of their complements, which is their minimum.
            ReduceOp::Max => ([hash, !hash, 0, 0], 2),
            ReduceOp::MaxLoc => ([hash, 0, !hash, 0], 4),
            ReduceOp::Sum => ([hash, 0, 0, 0], 1),
            // Two ranks with the same other hash would not be detected.
            ReduceOp::Xor => ([0; MOST], 0),
        };
        let mut expected = contribution;
        if op == ReduceOp::Sum {
            expected[0] = hash.wrapping_mul(n_ranks.into());
        }
        Check { contribution, expected, len: if len <= room { len } else { 0 } }
    }

    /// The words that go before the data.
    pub(super) fn contribution(&self) -> &[u64] {
        &self.contribution[..self.len]
    }

    /// Whether the result of these words shows that all ranks agree.
    pub(super) fn agrees(&self, back: &[u64]) -> bool {
        *back == self.expected[..self.len]
    }
}

/// The check of a sum of doubles: the double that is given to the gates, and its sum over `n_ranks`, at most 2^21,
/// which is exact.
pub(super) fn check_doubles(history: History, n_ranks: u32) -> (f64, f64) {
    let contribution = (history.hash >> 32) as f64;
    (contribution, contribution * f64::from(n_ranks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::{Dtype, Op};
    use hopbine_torus::collectives::Collective;

    const OPS: [ReduceOp; 5] =
        [ReduceOp::And, ReduceOp::Or, ReduceOp::Max, ReduceOp::MaxLoc, ReduceOp::Sum];

    fn after(count: u64, op: Op, dtype: Dtype) -> History {
        let call = Call { op: Some(op), ..Call::new(Collective::Allreduce, count, dtype) };
        History::default().after(&call).checked()
    }

    /// The result of the gates for the words of all ranks.
    fn combined(op: ReduceOp, words: &[&[u64]]) -> Vec<u64> {
        let two = |a: Vec<u64>, b: &&[u64]| -> Vec<u64> {
            if op == ReduceOp::MaxLoc {
                let pairs = a.chunks(2).zip(b.chunks(2));
                let larger = |(a, b): (&[u64], &[u64])| if b[0] > a[0] { b } else { a }.to_vec();
                return pairs.flat_map(larger).collect();
            }
            a.iter()
                .zip(*b)
                .map(|(&a, &b)| match op {
                    ReduceOp::And => a & b,
                    ReduceOp::Or => a | b,
                    ReduceOp::Max => a.max(b),
                    _ => a.wrapping_add(b),
                })
                .collect()
        };
        words[1..].iter().fold(words[0].to_vec(), two)
    }

    #[test]
    fn every_rank_sees_whether_all_agree() {
        let base = after(2, Op::Min, Dtype::F64);
        for other in [
            after(2, Op::Max, Dtype::F64),
            after(3, Op::Min, Dtype::F64),
            after(2, Op::Min, Dtype::I64),
            History::default(),
        ] {
            for (op, n) in OPS.into_iter().flat_map(|op| [2u32, 3, 4, 64].map(|n| (op, n))) {
                for n_others in [0, 1, n / 2, n - 1] {
                    let of = |rank| if rank < n_others { other } else { base };
                    let checks: Vec<_> = (0..n).map(|rank| Check::of(of(rank), op, n, 6)).collect();
                    let contribution: Vec<_> = checks.iter().map(Check::contribution).collect();
                    let back = combined(op, &contribution);
                    let seen = checks.iter().filter(|check| !check.agrees(&back)).count();
                    assert_eq!(seen, if n_others == 0 { 0 } else { n as usize }, "{op:?}, {n}");
                    let doubles: Vec<_> = (0..n).map(|rank| check_doubles(of(rank), n)).collect();
                    let sum: f64 = doubles.iter().map(|(contribution, _)| contribution).sum();
                    assert!(doubles.iter().all(|&(_, whole)| (whole == sum) == (n_others == 0)));
                }
            }
        }
    }

    #[test]
    fn a_check_takes_the_room_that_is_left() {
        let words = |op, room| Check::of(History::default(), op, 2, room).contribution().len();
        assert_eq!(OPS.map(|op| words(op, 4)), [1, 1, 2, 4, 1]);
        assert_eq!(OPS.map(|op| words(op, 1)), [1, 1, 0, 0, 1]);
        assert_eq!(words(ReduceOp::Xor, 5), 0);
    }

    #[test]
    fn calls_without_a_check_are_counted() {
        let call = Call::new(Collective::Allreduce, 6, Dtype::F64);
        let mut history = History::default();
        for _ in 0..MOST_UNCHECKED {
            assert!(!history.is_due());
            history = history.after(&call);
        }
        assert!(history.is_due() && history.is_unchecked());
        assert!(!history.checked().is_unchecked());
        assert!(!history.after(&call).checked().is_unchecked());
    }
}
