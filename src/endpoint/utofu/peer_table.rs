//! Maps ranks to peer numbers by a small hash table: a world has many ranks, a port few peers.

use crate::endpoint::Rank;

const EMPTY: u32 = u32::MAX;

/// Peers' numbers by rank; open addressing, at most half full.
#[derive(Debug)]
pub(super) struct PeerTable {
    /// Rank and peer number; the length is a power of two.
    entries: Box<[(Rank, u32)]>,
    n_peers: u32,
}

impl PeerTable {
    pub(super) fn new() -> Self {
        PeerTable { entries: [(0, EMPTY); 16].into(), n_peers: 0 }
    }

    #[inline]
    pub(super) fn get(&self, rank: Rank) -> Option<u32> {
        let (found, number) = self.entries[self.find(rank)];
        (number != EMPTY && found == rank).then_some(number)
    }

    /// Gives the next peer number to a rank that is not in the table.
    pub(super) fn add(&mut self, rank: Rank) -> u32 {
        if self.entries.len() < 2 * (self.n_peers as usize + 1) {
            let larger = vec![(0, EMPTY); 2 * self.entries.len()].into();
            let old = std::mem::replace(&mut self.entries, larger);
            for (rank, number) in old.into_iter().filter(|&(_, number)| number != EMPTY) {
                let at = self.find(rank);
                self.entries[at] = (rank, number);
            }
        }
        let (at, number) = (self.find(rank), self.n_peers);
        self.entries[at] = (rank, number);
        self.n_peers += 1;
        number
    }

    /// The index of a rank's entry, or of the free entry where it would be inserted.
    #[inline]
    fn find(&self, rank: Rank) -> usize {
        let mask = self.entries.len() - 1;
        // The multiplication spreads ranks whose distances are powers of two, as peers' often are.
        let mut at = (rank.wrapping_mul(0x9e37_79b9) >> 12) as usize & mask;
        loop {
            let (found, number) = self.entries[at];
            if found == rank || number == EMPTY {
                return at;
            }
            at = (at + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_added() {
        let mut table = PeerTable::new();
        assert_eq!(table.get(0), None);
        let ranks: Vec<Rank> = (0..5000).map(|n| n * n * 7 % 100_003 + 1).collect();
        let mut known = std::collections::HashMap::new();
        for rank in ranks.into_iter().chain([0, u32::MAX]) {
            assert_eq!(table.get(rank), known.get(&rank).copied());
            known.entry(rank).or_insert_with(|| table.add(rank));
        }
        assert!(known.iter().all(|(&rank, &number)| table.get(rank) == Some(number)));
        assert_eq!(table.n_peers as usize, known.len());
        assert!(table.entries.len() < 4 * known.len() + 16);
    }
}
