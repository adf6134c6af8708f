//! Groups of a flat buffer's ranks whose cores share a cache or a memory ([`stages`](super::stages)).

use std::sync::Arc;

/// All groups from the view of one rank.
#[derive(Debug)]
pub(super) struct FlatGroups {
    /// The ranks of each group, ascending.
    pub(super) groups: Vec<Arc<[usize]>>,
    /// Index of this rank's group.
    pub(super) own: usize,
    /// Memory that each group's leader writes.
    pub(super) parts: Vec<*mut u8>,
    /// For each group: all its ranks are known to have read the calls before this one.
    pub(super) read: Vec<u64>,
}

impl FlatGroups {
    /// `of` holds a group number for each rank; `part` is the memory that a rank writes as a leader.
    pub(super) fn new(of: &[u32], me: usize, part: impl Fn(usize) -> *mut u8) -> Self {
        let mut numbers = of.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let ranks = |number: &u32| (0..of.len()).filter(|&rank| of[rank] == *number).collect();
        let mut groups: Vec<Arc<[usize]>> = numbers.iter().map(ranks).collect();
        // In the order of their first ranks, so that contiguous groups are folded in the order of ranks.
        groups.sort_unstable();
        let own = groups.iter().position(|group| group.contains(&me)).unwrap_or(0);
        let parts = groups.iter().map(|group| part(group[0])).collect();
        let read = vec![0; groups.len()];
        FlatGroups { groups, own, parts, read }
    }
}
