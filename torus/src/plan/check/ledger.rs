//! What positions hold: whose contributions, combined in which order.

use std::ops::Range;

use super::expected::Expected;
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
pub(super) fn number(rank: Rank) -> u64 {
    scramble(u64::from(rank.0) + 1)
}

/// The finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
pub(super) fn scramble(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The hash of "`a` combined with `b`, in this order"; operands begin as pseudo-random numbers.
fn combined(a: u64, b: u64) -> u64 {
    (a.rotate_left(23) ^ b).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// Fills some of the orders, where they are kept.
fn fill(orders: &mut Orders, slots: Range<usize>, order: u64) {
    if let Some(orders) = orders.get_mut(slots) {
        orders.fill(order);
    }
}

/// `len` entries to be written from `slot` on, and as many to be read from `source` on: of
/// `from`, or of the same list, where they do not overlap.
fn ends<'a>(
    own: &'a mut [u64],
    slot: usize,
    from: Option<&'a Vec<u64>>,
    source: usize,
    len: usize,
) -> (&'a mut [u64], &'a [u64]) {
    match from {
        Some(from) => (&mut own[slot..slot + len], &from[source..source + len]),
        None if slot < source => {
            let (low, high) = own.split_at_mut(source);
            (&mut low[slot..slot + len], &high[..len])
        }
        None => {
            let (low, high) = own.split_at_mut(slot);
            (&mut high[..len], &low[source..source + len])
        }
    }
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
    /// A ledger for copies, without slots.
    pub(super) fn sources() -> Self {
        Ledger::Sources(Vec::new())
    }

    /// A ledger of exact sets of `words * 64` contributors, without slots.
    pub(super) fn sets(words: usize) -> Self {
        Ledger::Sets { words, base: 0, sets: Vec::new(), orders: Vec::new() }
    }

    /// A ledger of sums, without slots.
    pub(super) fn sums() -> Self {
        Ledger::Sums { sums: Vec::new(), orders: Vec::new() }
    }

    /// Empties the ledger and gives it `slots` slots, in the memory that it has, for
    /// contributors from `new_base` on.
    pub(super) fn reset(&mut self, slots: usize, new_base: u32, has_orders: bool) {
        let refill = |list: &mut Vec<u64>, len: usize| {
            list.clear();
            list.resize(len, 0);
        };
        let n_orders = if has_orders { slots } else { 0 };
        match self {
            Ledger::Sources(sources) => {
                sources.clear();
                sources.resize(slots, NOTHING);
            }
            Ledger::Sets { words, base, sets, orders } => {
                *base = new_base;
                refill(sets, slots * *words);
                refill(orders, n_orders);
            }
            Ledger::Sums { sums, orders } => {
                refill(sums, slots);
                refill(orders, n_orders);
            }
        }
    }

    /// Bytes per slot.
    pub(super) fn slot_bytes(words: Option<usize>, combines: bool) -> u64 {
        match (combines, words) {
            (false, _) => 4,
            (true, Some(words)) => 8 * words as u64 + 8,
            (true, None) => 16,
        }
    }

    /// Puts what `rank` gives into some slots.
    pub(super) fn give(&mut self, slots: Range<usize>, rank: Rank) {
        match self {
            Ledger::Sources(sources) => sources[slots].fill(rank.0),
            Ledger::Sets { words, base, sets, orders } => {
                let bit = rank.0.checked_sub(*base).filter(|&bit| (bit as usize) < *words * 64);
                if let Some(bit) = bit {
                    for slot in slots.clone() {
                        sets[slot * *words + bit as usize / 64] |= 1 << (bit % 64);
                    }
                }
                fill(orders, slots, number(rank));
            }
            Ledger::Sums { sums, orders } => {
                sums[slots.clone()].fill(number(rank));
                fill(orders, slots, number(rank));
            }
        }
    }

    /// The first of some slots that holds nothing.
    pub(super) fn first_empty(&self, slots: Range<usize>) -> Option<usize> {
        match self {
            Ledger::Sources(sources) => {
                slots.clone().zip(&sources[slots]).find(|(_, s)| **s == NOTHING).map(|(at, _)| at)
            }
            Ledger::Sets { words, sets, .. } => slots
                .clone()
                .zip(sets[slots.start * *words..slots.end * *words].chunks_exact((*words).max(1)))
                .find(|(_, set)| set.iter().all(|&word| word == 0))
                .map(|(at, _)| at),
            Ledger::Sums { sums, .. } => {
                slots.clone().zip(&sums[slots]).find(|(_, sum)| **sum == 0).map(|(at, _)| at)
            }
        }
    }

    /// True if there are no slots.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Ledger::Sources(sources) => sources.is_empty(),
            Ledger::Sets { sets, .. } => sets.is_empty(),
            Ledger::Sums { sums, .. } => sums.is_empty(),
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

    /// Stores `len` slots from `source` on: of `from`, or of this ledger, which they then must
    /// not overlap.
    pub(super) fn store(&mut self, slot: usize, from: Option<&Ledger>, source: usize, len: usize) {
        match (self, from) {
            (Ledger::Sources(own), None) => own.copy_within(source..source + len, slot),
            (Ledger::Sources(own), Some(Ledger::Sources(from))) => {
                own[slot..slot + len].copy_from_slice(&from[source..source + len]);
            }
            (Ledger::Sets { words, sets, orders, .. }, from) => {
                let words = *words;
                let (from_sets, from_orders) = match from {
                    Some(Ledger::Sets { sets, orders, .. }) => (Some(sets), Some(orders)),
                    _ => (None, None),
                };
                let (own, new) = ends(sets, slot * words, from_sets, source * words, len * words);
                own.copy_from_slice(new);
                if !orders.is_empty() {
                    let (own, new) = ends(orders, slot, from_orders, source, len);
                    own.copy_from_slice(new);
                }
            }
            (Ledger::Sums { sums, orders }, from) => {
                let (from_sums, from_orders) = match from {
                    Some(Ledger::Sums { sums, orders }) => (Some(sums), Some(orders)),
                    _ => (None, None),
                };
                let (own, new) = ends(sums, slot, from_sums, source, len);
                own.copy_from_slice(new);
                if !orders.is_empty() {
                    let (own, new) = ends(orders, slot, from_orders, source, len);
                    own.copy_from_slice(new);
                }
            }
            _ => unreachable!("ledgers of one execution are of one kind"),
        }
    }

    /// True if the slot holds something else than slot `source` of `from`.
    pub(super) fn differs(&self, slot: usize, from: Option<&Ledger>, source: usize) -> bool {
        match (self, from.unwrap_or(self)) {
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

    /// Combines `len` slots with those from `source` on, of `from` or of this ledger as in
    /// [`Ledger::store`], which become the right operands; but not the expressions if
    /// `sets_only`. Returns the first slot in which a contribution is seen to be repeated: sums
    /// show that at the end only.
    pub(super) fn combine(
        &mut self,
        slot: usize,
        from: Option<&Ledger>,
        source: usize,
        len: usize,
        sets_only: bool,
    ) -> Option<usize> {
        let mut repeated = None;
        let (own_orders, from_orders) = match (self, from) {
            // Only reductions combine: a local rule.
            (Ledger::Sources(_), _) => return None,
            (Ledger::Sets { words, sets, orders, .. }, from) => {
                let words = *words;
                let (from_sets, from_orders) = match from {
                    Some(Ledger::Sets { sets, orders, .. }) => (Some(sets), Some(orders)),
                    _ => (None, None),
                };
                let (own, new) = ends(sets, slot * words, from_sets, source * words, len * words);
                for (index, (own, new)) in own.iter_mut().zip(new).enumerate() {
                    if *own & new != 0 && repeated.is_none() {
                        repeated = Some(slot + index / words);
                    }
                    *own |= new;
                }
                (orders, from_orders)
            }
            (Ledger::Sums { sums, orders }, from) => {
                let (from_sums, from_orders) = match from {
                    Some(Ledger::Sums { sums, orders }) => (Some(sums), Some(orders)),
                    _ => (None, None),
                };
                let (own, new) = ends(sums, slot, from_sums, source, len);
                own.iter_mut().zip(new).for_each(|(own, new)| *own = own.wrapping_add(*new));
                (orders, from_orders)
            }
        };
        if !sets_only && !own_orders.is_empty() {
            let (own, new) = ends(own_orders, slot, from_orders, source, len);
            own.iter_mut().zip(new).for_each(|(own, new)| *own = combined(*own, *new));
        }
        repeated
    }

    /// Makes `left`, an expression or none so far, the left operand of slot `source`.
    pub(super) fn gather_left(
        &self,
        left: Option<u64>,
        from: Option<&Ledger>,
        source: usize,
    ) -> Option<u64> {
        let order = from.unwrap_or(self).order(source)?;
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

    /// True if all of some slots hold everyone's contributions, combined as in the slots from
    /// `like` on.
    pub(super) fn are_complete(
        &self,
        slots: Range<usize>,
        like: usize,
        expected: &Expected,
    ) -> bool {
        let (is_complete, orders) = match self {
            Ledger::Sources(_) => return false,
            Ledger::Sets { words, sets, orders, .. } => {
                let sets = &sets[slots.start * *words..slots.end * *words];
                (sets.chunks_exact((*words).max(1)).all(|set| set == expected.set), orders)
            }
            Ledger::Sums { sums, orders } => {
                (sums[slots.clone()].iter().all(|&sum| sum == expected.sum), orders)
            }
        };
        let like = like..like + slots.len();
        is_complete && (orders.is_empty() || orders[slots] == orders[like])
    }

    /// True if some slots hold what these ranks gave.
    pub(super) fn are_from(&self, slots: Range<usize>, ranks: &[u32]) -> bool {
        matches!(self, Ledger::Sources(sources) if sources[slots] == *ranks)
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
