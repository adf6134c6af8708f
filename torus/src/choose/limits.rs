//! Lengths at which shared memory changes its way, where a machine decides them.

/// Limits in bytes for the ranks of one host; the same on all of them. The defaults are from hosts of two cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShmLimits {
    /// The longest contribution to the flat buffer if all ranks contribute and all read all contributions. In a plan
    /// the ranks read longer ones in place, and each folds a part.
    pub flat: u64,
    /// The most bytes that a rank reads in a call on the flat buffer; beyond that, messages of blocks move fewer
    /// bytes.
    pub flat_read: u64,
    /// The longest message that is always staged, with more than two ranks. Staging moves every byte between cores'
    /// caches twice: to the slot, whose lines the receiver's cache holds, and from there. Up to this length it is
    /// faster than a system call for any placement of ranks; beyond it the measured cost of copies decides.
    pub staged: u64,
    /// As `staged`, with two ranks: a slot has one receiver.
    pub staged_pair: u64,
}

impl Default for ShmLimits {
    fn default() -> Self {
        let [flat, flat_read, staged, staged_pair] = [32, 128, 32, 16].map(|kib| kib * 1024);
        ShmLimits { flat, flat_read, staged, staged_pair }
    }
}
