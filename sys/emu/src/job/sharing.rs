//! Assignment of a node's TNIs and CQs to its ranks.
//!
//! Up to four ranks of a node have all its TNIs, and on each TNI CQs of their own. More ranks divide the TNIs between
//! groups of ranks, and the CQs of each TNI as if four ranks used it. Fujitsu's library does the same over its
//! simulated device, as far as observed (1 to 4, 8 and 12 ranks). RIKEN's libutf computes on Fugaku that 5 to 7 ranks
//! have the CQs of 8, and which CQs more than 24 ranks have. Other programs that run on Fugaku compute multiples of
//! 3, or 0 and 6 for two ranks; set `HOPBINE_EMU_CQS` for them.

use crate::limits::{CQS, FIRST_EXTRA, TNIS, VCQS};
use std::ops::Range;

/// First CQs of the sharers if five to eight ranks share a TNI.
const MANY: [&[u8]; 4] =
    [&[0, 2, 5, 8, 10], &[0, 2, 5, 8, 9, 10], &[0, 2, 5, 6, 8, 9, 10], &[0, 2, 4, 5, 6, 8, 9, 10]];

/// Returns the number of groups that `n` ranks of a node form. Each group has TNIs of its own.
fn groups(n: usize) -> usize {
    match n {
        0..=4 => 1,
        5..=8 => 2,
        9..=12 => 3,
        _ => TNIS,
    }
}

/// How the ranks of a node share its TNIs and CQs.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct TniSharing {
    groups: usize,
    /// Ranks among which the CQs of a TNI are divided.
    sharers: usize,
    /// First CQ of each of these ranks; [`CQS`] behind the last one.
    firsts: [u8; CQS + 1],
}

impl TniSharing {
    /// Returns the sharing for at most `n` ranks on a node.
    pub(crate) fn among(n: usize) -> TniSharing {
        let groups = groups(n);
        let sharers = n.div_ceil(groups).max(n.min(4)).max(1);
        let stride = (CQS / sharers).max(1);
        let first = |sharer: usize| if sharer < sharers { (sharer * stride).min(CQS) } else { CQS };
        let firsts = std::array::from_fn(|sharer| first(sharer) as u8);
        let even = TniSharing { groups, sharers, firsts };
        let many = sharers.checked_sub(5).and_then(|more| MANY.get(more));
        many.and_then(|firsts| even.with_cqs(firsts).ok()).unwrap_or(even)
    }

    /// Replaces the first CQs: increasing, from 0 on, below [`CQS`].
    ///
    /// # Errors
    /// The number of first CQs needed, if `firsts` has fewer.
    pub(crate) fn with_cqs(self, firsts: &[u8]) -> Result<TniSharing, usize> {
        let Some(firsts) = firsts.get(..self.sharers) else { return Err(self.sharers) };
        let first = |sharer| firsts.get(sharer).copied().unwrap_or(CQS as u8);
        Ok(TniSharing { firsts: std::array::from_fn(first), ..self })
    }

    /// Returns the TNIs of the node's `local_rank`-th rank.
    pub(crate) fn tnis(self, local_rank: usize) -> Range<usize> {
        let each = TNIS / self.groups;
        let first = local_rank % self.groups * each;
        first..first + each
    }

    /// Returns the CQs of the node's `local_rank`-th rank on each of its TNIs; empty if there are too many ranks.
    pub(crate) fn cqs(self, local_rank: usize) -> Range<usize> {
        self.cqs_of_sharer(local_rank / self.groups)
    }

    fn cqs_of_sharer(self, sharer: usize) -> Range<usize> {
        let first = |sharer: usize| usize::from(self.firsts[sharer.min(CQS)]);
        first(sharer)..first(sharer + 1)
    }

    /// Returns the CQ that has the component ids of the rank that owns `cq`: the rank's first CQ.
    pub(crate) fn first_cq(self, cq: usize) -> usize {
        let before = |first: &&u8| usize::from(**first) <= cq;
        self.firsts.iter().rev().find(before).map_or(0, |first| usize::from(*first))
    }
}

/// Uses of a rank's CQs.
pub(crate) struct CqRoles {
    cqs: Range<usize>,
}

/// Number of CQs after a rank's first one that are reserved for session mode, if the rank has enough CQs. With fewer
/// CQs a session takes the last unused one.
const SESSION: usize = 3;

impl CqRoles {
    pub(crate) fn of(cqs: Range<usize>) -> CqRoles {
        CqRoles { cqs }
    }

    /// Returns the CQs reserved for session mode, each of which serves one VCQ.
    pub(crate) fn session(&self) -> Range<usize> {
        let first = self.cqs.start + 1;
        if self.cqs.len() > SESSION + 1 { first..first + SESSION } else { first..first }
    }

    /// Returns the CQs for other VCQs, in the order in which they are filled.
    pub(crate) fn ordinary(&self) -> impl Iterator<Item = usize> + '_ {
        let session = self.session();
        self.cqs.clone().filter(move |cq| !session.contains(cq))
    }

    /// Returns the CQ that has the component ids, if the rank has a CQ at all.
    pub(crate) fn first(&self) -> Option<usize> {
        self.cqs.clone().next()
    }
}

// Extra values and CQ numbers fit into four bits each.
const _: () = assert!(FIRST_EXTRA as usize + VCQS == 16 && CQS < 16);

#[cfg(test)]
mod tests {
    use super::*;

    fn first_cqs(n: usize) -> Vec<usize> {
        (0..n).map(|local_rank| TniSharing::among(n).cqs(local_rank).start).collect()
    }

    #[test]
    fn as_fujitsus_library_has_it() {
        assert_eq!(first_cqs(1), [0]);
        assert_eq!(first_cqs(2), [0, 5]);
        assert_eq!(first_cqs(3), [0, 3, 6]);
        assert_eq!(first_cqs(4), [0, 2, 4, 6]);
        for n in 1..=4 {
            assert!((0..n).all(|local_rank| TniSharing::among(n).tnis(local_rank) == (0..6)));
        }
        let eight = TniSharing::among(8);
        assert_eq!([eight.tnis(0), eight.tnis(1), eight.tnis(6)], [0..3, 3..6, 0..3]);
        let twelve = TniSharing::among(12);
        assert_eq!([twelve.tnis(0), twelve.tnis(4), twelve.tnis(11)], [0..2, 2..4, 4..6]);
        assert_eq!(first_cqs(8), [0, 0, 2, 2, 4, 4, 6, 6]);
    }

    #[test]
    fn many_ranks_have_the_cqs_of_libutf() {
        let on_one_tni = |n| first_cqs(n).into_iter().step_by(TNIS).collect::<Vec<_>>();
        assert_eq!(on_one_tni(25), [0, 2, 5, 8, 10]);
        assert_eq!(on_one_tni(42), [0, 2, 5, 6, 8, 9, 10]);
        assert_eq!(on_one_tni(48), [0, 2, 4, 5, 6, 8, 9, 10]);
        assert_eq!(on_one_tni(54), (0..9).collect::<Vec<_>>());
    }

    /// Ranks that share TNIs have the CQs that they would have if each TNI had four ranks.
    #[test]
    fn a_node_with_fewer_ranks_has_the_cqs_of_a_full_one() {
        for (full, fewer) in [(8, 5..8), (12, 9..12), (24, 13..24)] {
            for n in fewer {
                assert_eq!(first_cqs(n), first_cqs(full)[..n], "{n} ranks");
            }
        }
    }

    #[test]
    fn nobody_has_what_is_anothers() {
        for n in 1..=66 {
            let sharing = TniSharing::among(n);
            let mut taken = [[false; CQS]; TNIS];
            for local_rank in 0..n {
                let cqs = sharing.cqs(local_rank);
                assert!(!cqs.is_empty(), "{local_rank} of {n}");
                for tni in sharing.tnis(local_rank) {
                    for cq in cqs.clone() {
                        assert!(
                            !std::mem::replace(&mut taken[tni][cq], true),
                            "{local_rank} of {n}"
                        );
                        assert_eq!(sharing.first_cq(cq), cqs.start);
                    }
                }
            }
        }
    }

    #[test]
    fn other_first_cqs_can_be_asked_for() {
        for (n, cqs) in [(2, &[0, 6][..]), (4, &[0, 3, 6, 9]), (8, &[0, 3, 6, 9])] {
            let sharing = TniSharing::among(n).with_cqs(cqs).unwrap();
            for (local_rank, first) in
                (0..n).map(|local_rank| (local_rank, cqs[local_rank / sharing.groups]))
            {
                let mine = sharing.cqs(local_rank);
                assert_eq!(mine.start, usize::from(first));
                assert!(mine.clone().all(|cq| sharing.first_cq(cq) == mine.start), "{mine:?}");
            }
        }
        assert_eq!(TniSharing::among(4).with_cqs(&[0, 3, 6]).unwrap_err(), 4);
    }

    /// A rank that has a node to itself has the CQs that were measured; a rank with few CQs has none reserved for
    /// sessions.
    #[test]
    fn sessions_have_cqs_of_their_own() {
        let alone = CqRoles::of(0..11);
        assert_eq!(alone.session(), 1..4);
        assert_eq!(alone.ordinary().collect::<Vec<_>>(), [0, 4, 5, 6, 7, 8, 9, 10]);
        let fourth = CqRoles::of(6..11);
        assert_eq!(fourth.ordinary().collect::<Vec<_>>(), [6, 10]);
        assert_eq!(CqRoles::of(2..4).ordinary().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(CqRoles::of(11..11).first(), None);
    }
}
