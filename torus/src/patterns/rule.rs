//! The rules of patterns: the targets of coordinate 0, and the path of a block to it.

use smallvec::{SmallVec, smallvec};

use super::kind::{PatternKind, factors};
use super::law::{Digits, Law};

/// The peers of one coordinate at one step; one for most patterns.
pub type Peers = SmallVec<[u32; 2]>;

/// The path of a block from a coordinate to 0.
#[derive(Clone, Debug)]
pub(super) enum Descent {
    /// Each hop at the latest step from which the block still arrives.
    Latest,
    /// Step t clears digit t of the coordinate, if it is not 0: the block goes to the target that is nearer by the
    /// digit's value.
    Digits(Digits),
    /// A block starts in one of d - 1 steps, the farthest block first, and moves in each later step.
    Chain,
}

/// A rule on a ring of a certain size.
#[derive(Clone, Debug)]
pub(super) struct RingRule {
    pub law: Law,
    /// The targets of coordinate 0: step t has those of entry `t % cycle.len()`.
    cycle: Vec<Peers>,
    pub n_steps: u32,
    pub descent: Descent,
}

impl RingRule {
    /// The rule of a kind that serves `size`, and whether it must be mirrored.
    pub fn new(kind: &PatternKind, size: u32) -> (Self, bool) {
        let products = |radices: &[u32]| {
            RingRule::clearing(Law::Digits(Digits::new(radices)), Digits::new(radices))
        };
        let shifts = |radix| RingRule::clearing(Law::cyclic(size), Digits::of_radix(radix, size));
        let rule = match kind {
            _ if size == 1 => products(&[]),
            PatternKind::Bine => RingRule::searching(Law::Alternating { size }, bine_offsets(size)),
            PatternKind::Circulant => {
                RingRule::searching(Law::cyclic(size), circulant_offsets(size))
            }
            PatternKind::Balanced => RingRule::searching(Law::cyclic(size), balanced_offsets(size)),
            PatternKind::Ring => RingRule::chain(Law::cyclic(size), vec![1]),
            PatternKind::KRing { group } => {
                // `group - 1` steps inside the group, one step to the same place in the next group, and so on.
                let mut cycle = vec![1; *group as usize - 1];
                cycle.extend((size > *group).then_some(*group));
                RingRule::chain(Law::Digits(Digits::new(&[*group, size / group])), cycle)
            }
            PatternKind::Direct | PatternKind::Leader => products(&[size]),
            PatternKind::Doubling => products(&vec![2; size.trailing_zeros() as usize]),
            PatternKind::Multiplying { max_radix } => products(&factors(size, *max_radix)),
            PatternKind::Radices(radices) => products(radices),
            PatternKind::Knomial { radix } | PatternKind::Bruck { radix } => shifts(*radix),
        };
        (rule, matches!(kind, PatternKind::Bruck { .. }))
    }

    /// The rule in which each step clears one digit. Targets are in descending order of the value that they clear,
    /// so that the nearest target upwards comes first.
    fn clearing(law: Law, digits: Digits) -> Self {
        let cycle = digits.all().iter().map(|digit| {
            let values = (1..digit.radix).rev().map(|value| value * digit.stride);
            values.map(|value| law.inverse(value)).collect()
        });
        let cycle: Vec<Peers> = cycle.collect();
        RingRule { law, n_steps: cycle.len() as u32, cycle, descent: Descent::Digits(digits) }
    }

    fn searching(law: Law, cycle: Vec<Peers>) -> Self {
        RingRule { law, n_steps: cycle.len() as u32, cycle, descent: Descent::Latest }
    }

    fn chain(law: Law, cycle: Vec<u32>) -> Self {
        let cycle = cycle.into_iter().map(|offset| Peers::from_slice(&[offset])).collect();
        RingRule { n_steps: law.size() - 1, law, cycle, descent: Descent::Chain }
    }

    /// The targets of coordinate 0 at step `t`.
    pub fn targets(&self, t: u32) -> &[u32] {
        &self.cycle[t as usize % self.cycle.len()]
    }

    pub fn is_alternating(&self) -> bool {
        matches!(self.law, Law::Alternating { .. })
    }

    /// Half the extent of the groups of neighbours that exchange in step `t`, near-first; `None` if the law is not
    /// one of several digits that the steps clear.
    pub fn half_group(&self, t: u32) -> Option<u32> {
        match &self.descent {
            Descent::Digits(digits) if !self.is_shift() => {
                digits.all().get(t as usize).map(|digit| digit.radix / 2 * digit.stride)
            }
            Descent::Digits(_) | Descent::Latest | Descent::Chain => None,
        }
    }

    /// True if every combination of digits is a coordinate.
    pub fn is_whole(&self) -> bool {
        match &self.descent {
            Descent::Digits(digits) => {
                digits.all().last().is_none_or(|last| self.law.size().is_multiple_of(last.stride))
            }
            Descent::Latest | Descent::Chain => false,
        }
    }

    /// True if the law is the shift around the ring.
    pub fn is_shift(&self) -> bool {
        matches!(&self.law, Law::Digits(digits) if digits.all().len() == 1)
    }
}

/// rho(t) = sum over i <= t of (-2)^i = 1, -1, 3, -5, 11, ... mod d (Bine trees, Eq. 4-5; Swing, Eq. 2). For even
/// sizes that are not powers of two the toward table drops the subtree reached later (Bine, appendix C). A
/// reduce-scatter has 2.11 hop-bytes per vector byte at d = 64, with doubling 3.0 (algorithms.md section 6).
fn bine_offsets(size: u32) -> Vec<Peers> {
    let mut rho = 0i64;
    let n_steps = size.next_power_of_two().trailing_zeros();
    (0..n_steps)
        .map(|t| {
            rho += (-2i64).pow(t);
            smallvec![rho.rem_euclid(i64::from(size)) as u32]
        })
        .collect()
}

/// +1, -2, +4, -8, ...: with these offsets the residues reached so far form one window. Each step shifts the window
/// by its own length, in alternating directions; the last step shifts it by the number of missing residues. d = 7:
/// 1, -2, 3; d = 23: 1, -2, 4, -8, 7. So odd and prime sizes need no fold onto a power of two and no doubled
/// traffic (algorithms.md section 1; ours, the papers use extra steps: Bine appendix C, Swing section 3.2).
fn circulant_offsets(size: u32) -> Vec<Peers> {
    let mut offsets = Vec::new();
    let mut window = 1;
    while window < size {
        let shift = window.min(size - window);
        offsets.push(smallvec![if offsets.len() % 2 == 0 { shift } else { size - shift }]);
        window += shift;
    }
    offsets
}

/// +1 and -1, +3 and -3, +9 and -9, ...: the window of residues reached so far grows by its own length on both
/// sides; in the last step each side grows by half of the missing residues, the upper side by the larger half. d =
/// 8: +1 -1, +3 -2; d = 69: +1 -1, +3 -3, +9 -9, +21 -21. There are ceil(log3 d) steps of two messages each, in
/// opposite directions (algorithms.md section 1; Trivance, arXiv 2602.17254, for powers of three).
fn balanced_offsets(size: u32) -> Vec<Peers> {
    let mut offsets = Vec::new();
    let mut window = 1;
    while window < size {
        let rest = size - window;
        let (up, down) = (window.min(rest.div_ceil(2)), window.min(rest / 2));
        // If one coordinate is missing, only one side grows.
        let down_peer = (down > 0).then(|| size - down);
        offsets.push(std::iter::once(up).chain(down_peer).collect());
        window += up + down;
    }
    offsets
}
