//! What positions hold: whose contributions, combined in which order.

use std::ops::Range;

use crate::names::Rank;

/// The contents of some slots, in the representation that their collective needs.
#[derive(Clone, Debug)]
pub(super) enum Ledger {
    /// Nothing is ever combined: a slot holds what one rank gave.
    Sources(Vec<u32>),
    /// Sets of contributors as bits, those of ranks from `base` on.
    Sets {
        /// 64-bit words per set.
        words: usize,
        /// The first contributor that is tracked.
        base: u32,
        sets: Vec<u64>,
        orders: Orders,
    },
    /// Sets as sums of pseudo-random 64-bit numbers, one per rank: two different multisets
    /// agree with a probability of about 2^-64.
    Sums { sums: Vec<u64>, orders: Orders },
}

/// The expressions that combined the contents, as 64-bit hashes; empty where nobody compares
/// them.
type Orders = Vec<u64>;

/// The source of an empty slot.
const NOTHING: u32 = u32::MAX;

/// The number that stands for a rank in sums.
fn number(rank: Rank) -> u64 {
    scramble(u64::from(rank.0) + 1)
}

/// The finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
pub(super) fn scramble(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The hash of "`a` combined with `b`, in this order".
fn combined(a: u64, b: u64) -> u64 {
    let a = (a ^ (a >> 32)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let b = (b ^ (b >> 29)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    a.rotate_left(31).wrapping_add(b)
}

/// Who must have contributed to a position in the end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Contributors {
    /// One rank.
    One(Rank),
    /// All ranks.
    Everyone,
}

impl Ledger {
    /// The same kind of ledger without slots.
    pub(super) fn empty_like(&self) -> Self {
        match self {
            Ledger::Sources(_) => Ledger::Sources(Vec::new()),
            Ledger::Sets { words, base, .. } => {
                Ledger::Sets { words: *words, base: *base, sets: Vec::new(), orders: Vec::new() }
            }
            Ledger::Sums { .. } => Ledger::Sums { sums: Vec::new(), orders: Vec::new() },
        }
    }

    /// A ledger for copies.
    pub(super) fn sources(slots: usize) -> Self {
        Ledger::Sources(vec![NOTHING; slots])
    }

    /// A ledger of exact sets of `words * 64` contributors from `base` on.
    pub(super) fn sets(slots: usize, words: usize, base: u32, has_orders: bool) -> Self {
        let orders = if has_orders { vec![0; slots] } else { Vec::new() };
        Ledger::Sets { words, base, sets: vec![0; slots * words], orders }
    }

    /// A ledger of sums.
    pub(super) fn sums(slots: usize, has_orders: bool) -> Self {
        let orders = if has_orders { vec![0; slots] } else { Vec::new() };
        Ledger::Sums { sums: vec![0; slots], orders }
    }

    /// Bytes per slot.
    pub(super) fn slot_bytes(words: Option<usize>, combines: bool) -> u64 {
        match (combines, words) {
            (false, _) => 4,
            (true, Some(words)) => 8 * words as u64 + 8,
            (true, None) => 16,
        }
    }

    /// Puts what `rank` gives into a slot.
    pub(super) fn give(&mut self, slot: usize, rank: Rank) {
        match self {
            Ledger::Sources(sources) => sources[slot] = rank.0,
            Ledger::Sets { words, base, sets, orders } => {
                if let Some(bit) = rank.0.checked_sub(*base).filter(|&b| (b as usize) < *words * 64)
                {
                    sets[slot * *words + bit as usize / 64] |= 1 << (bit % 64);
                }
                if let Some(order) = orders.get_mut(slot) {
                    *order = number(rank);
                }
            }
            Ledger::Sums { sums, orders } => {
                sums[slot] = number(rank);
                if let Some(order) = orders.get_mut(slot) {
                    *order = number(rank);
                }
            }
        }
    }

    /// The first of some slots that holds nothing.
    pub(super) fn first_empty(&self, slots: Range<usize>) -> Option<usize> {
        match self {
            Ledger::Sources(sources) => {
                slots.clone().zip(&sources[slots]).find(|(_, s)| **s == NOTHING).map(|(at, _)| at)
            }
            // In reductions every slot is given something.
            Ledger::Sets { .. } | Ledger::Sums { .. } => None,
        }
    }

    /// Forgets all slots.
    pub(super) fn clear(&mut self) {
        match self {
            Ledger::Sources(sources) => sources.clear(),
            Ledger::Sets { sets, orders, .. } | Ledger::Sums { sums: sets, orders } => {
                sets.clear();
                orders.clear();
            }
        }
    }

    /// Appends slots of another ledger of the same kind.
    pub(super) fn push(&mut self, other: &Ledger, slots: Range<usize>) {
        match (self, other) {
            (Ledger::Sources(own), Ledger::Sources(from)) => own.extend_from_slice(&from[slots]),
            (
                Ledger::Sets { words, sets, orders, .. },
                Ledger::Sets { sets: from, orders: from_orders, .. },
            ) => {
                sets.extend_from_slice(&from[slots.start * *words..slots.end * *words]);
                orders.extend_from_slice(from_orders.get(slots).unwrap_or_default());
            }
            (Ledger::Sums { sums, orders }, Ledger::Sums { sums: from, orders: from_orders }) => {
                sums.extend_from_slice(&from[slots.clone()]);
                orders.extend_from_slice(from_orders.get(slots).unwrap_or_default());
            }
            _ => unreachable!("ledgers of one execution are of one kind"),
        }
    }

    /// Stores `len` slots of `from` from `source` on.
    pub(super) fn store(&mut self, slot: usize, from: &Ledger, source: usize, len: usize) {
        fn copy<T: Copy>(own: &mut [T], slot: usize, from: &[T], source: usize, len: usize) {
            own[slot..slot + len].copy_from_slice(&from[source..source + len]);
        }
        match (self, from) {
            (Ledger::Sources(own), Ledger::Sources(from)) => copy(own, slot, from, source, len),
            (
                Ledger::Sets { words, sets, orders, .. },
                Ledger::Sets { sets: from, orders: from_orders, .. },
            ) => {
                copy(sets, slot * *words, from, source * *words, len * *words);
                if !orders.is_empty() {
                    copy(orders, slot, from_orders, source, len);
                }
            }
            (Ledger::Sums { sums, orders }, Ledger::Sums { sums: from, orders: from_orders }) => {
                copy(sums, slot, from, source, len);
                if !orders.is_empty() {
                    copy(orders, slot, from_orders, source, len);
                }
            }
            _ => unreachable!("ledgers of one execution are of one kind"),
        }
    }

    /// True if the slot holds something else than slot `source` of `from`.
    pub(super) fn differs(&self, slot: usize, from: &Ledger, source: usize) -> bool {
        match (self, from) {
            (Ledger::Sources(own), Ledger::Sources(from)) => {
                own[slot] != NOTHING && own[slot] != from[source]
            }
            (Ledger::Sets { words, sets, .. }, Ledger::Sets { sets: from, .. }) => {
                sets[slot * *words..][..*words] != from[source * *words..][..*words]
            }
            (Ledger::Sums { sums, .. }, Ledger::Sums { sums: from, .. }) => {
                sums[slot] != from[source]
            }
            _ => unreachable!("ledgers of one execution are of one kind"),
        }
    }

    /// Combines `len` slots with those of `from` from `source` on, which become the right
    /// operands; but not the expressions if `sets_only`. Returns the first slot in which a
    /// contribution is seen to be repeated: sums show that at the end only.
    pub(super) fn combine(
        &mut self,
        slot: usize,
        from: &Ledger,
        source: usize,
        len: usize,
        sets_only: bool,
    ) -> Option<usize> {
        let mut repeated = None;
        let (own_orders, from_orders) = match (self, from) {
            (
                Ledger::Sets { words, sets, orders, .. },
                Ledger::Sets { sets: from, orders: from_orders, .. },
            ) => {
                let from = &from[source * *words..(source + len) * *words];
                let own = &mut sets[slot * *words..(slot + len) * *words];
                for (index, (own, from)) in own.iter_mut().zip(from).enumerate() {
                    if *own & from != 0 && repeated.is_none() {
                        repeated = Some(slot + index / *words);
                    }
                    *own |= from;
                }
                (orders, from_orders)
            }
            (Ledger::Sums { sums, orders }, Ledger::Sums { sums: from, orders: from_orders }) => {
                for (own, from) in sums[slot..slot + len].iter_mut().zip(&from[source..]) {
                    *own = own.wrapping_add(*from);
                }
                (orders, from_orders)
            }
            // Only reductions combine: a local rule.
            _ => return None,
        };
        if !sets_only && !own_orders.is_empty() {
            for (own, from) in own_orders[slot..slot + len].iter_mut().zip(&from_orders[source..]) {
                *own = combined(*own, *from);
            }
        }
        repeated
    }

    /// Makes `left`, an expression or none so far, the left operand of slot `source` of `from`.
    pub(super) fn gather_left(left: Option<u64>, from: &Ledger, source: usize) -> Option<u64> {
        let order = from.order(source)?;
        Some(left.map_or(order, |left| combined(left, order)))
    }

    /// Makes `left` the left operand of a slot's own expression.
    pub(super) fn put_left(&mut self, slot: usize, left: u64) {
        if let Ledger::Sets { orders, .. } | Ledger::Sums { orders, .. } = self
            && let Some(order) = orders.get_mut(slot)
        {
            *order = combined(left, *order);
        }
    }

    /// The expression in a slot, where expressions are kept.
    pub(super) fn order(&self, slot: usize) -> Option<u64> {
        match self {
            Ledger::Sources(_) => None,
            Ledger::Sets { orders, .. } | Ledger::Sums { orders, .. } => orders.get(slot).copied(),
        }
    }

    /// Whose contribution a slot holds, where nothing is combined: `None` if nobody's.
    pub(super) fn source(&self, slot: usize) -> Option<Rank> {
        match self {
            Ledger::Sources(sources) if sources[slot] != NOTHING => Some(Rank(sources[slot])),
            _ => None,
        }
    }

    /// What `contributors` of `n_ranks` ranks make of a slot.
    pub(super) fn is_complete(
        &self,
        slot: usize,
        contributors: Contributors,
        expected: &Expected,
    ) -> bool {
        match (self, contributors) {
            (Ledger::Sources(sources), Contributors::One(rank)) => sources[slot] == rank.0,
            (Ledger::Sets { words, sets, .. }, Contributors::Everyone) => {
                sets[slot * *words..][..*words] == expected.set
            }
            (Ledger::Sums { sums, .. }, Contributors::Everyone) => sums[slot] == expected.sum,
            _ => false,
        }
    }
}

/// What "everyone" is in the representations of sets.
#[derive(Debug)]
pub(super) struct Expected {
    set: Vec<u64>,
    sum: u64,
}

impl Expected {
    /// Of `n_ranks` ranks, for sets of `words` words from `base` on.
    pub(super) fn new(n_ranks: u32, words: usize, base: u32) -> Self {
        let mut ledger = Ledger::sets(1, words, base, false);
        Rank::first(n_ranks).for_each(|rank| ledger.give(0, rank));
        let set = match ledger {
            Ledger::Sets { sets, .. } => sets,
            Ledger::Sources(_) | Ledger::Sums { .. } => Vec::new(),
        };
        let sum = Rank::first(n_ranks).map(number).fold(0, u64::wrapping_add);
        Expected { set, sum }
    }
}
