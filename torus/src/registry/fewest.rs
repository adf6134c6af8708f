//! The patterns with which the fused steps of a latency form need the fewest rounds.
//!
//! A round fuses steps with groups whose sizes multiply to at most the messages of a rank plus one. So only the prime
//! factors of the dimensions' sizes matter, and the fewest rounds are the fewest bins of this capacity that hold all
//! factors. A dimension whose size has a larger prime factor, or too many factors, gets a core of at least half its
//! size. The other coordinates fold onto the core: one step before the rounds and one after them.

use std::collections::{BTreeMap, HashMap};

use smallvec::SmallVec;

use crate::geometry::{AxisLink, Shape};
use crate::patterns::PatternKind;

/// The most messages of a rank in a round: one to each neighbour on a torus of six dimensions.
pub(super) const MOST_MESSAGES: u32 = 12;

/// The primes that may be factors of a round.
const PRIMES: [u32; 6] = [2, 3, 5, 7, 11, 13];

/// The most cores of a dimension that are combined with those of others: the best by themselves.
const MOST_CORES: usize = 12;

/// The exponent of each of the primes.
type Powers = [u8; PRIMES.len()];

/// The number of dimensions that fold, and the factors of all cores.
type Chosen = (u32, Powers);

/// The size of a core, and its factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Core {
    size: u32,
    powers: Powers,
}

/// Returns one pattern for each dimension of `shape`, for rounds of at most `messages` messages of a rank. The
/// patterns have the fewest steps, folding included; then the fewest folded dimensions, the fewest messages, the
/// largest cores.
pub(super) fn patterns(shape: &Shape, messages: u32) -> Vec<PatternKind> {
    let mut packing = Packing { most: messages + 1, known: HashMap::new() };
    let is_node = |dim: &usize| shape.axes()[*dim].link == AxisLink::Node;
    let (node, linked): (Vec<usize>, Vec<usize>) = (0..shape.n_dims()).partition(is_node);
    let mut kinds = vec![PatternKind::Direct; shape.n_dims()];
    for dims in [node, linked] {
        let sizes: Vec<u32> = dims.iter().map(|&dim| shape.size(dim)).collect();
        let cores = best_cores(&sizes, messages, &mut packing);
        let factors = packing.factors(&cores);
        for ((dim, core), factors) in dims.iter().zip(&cores).zip(factors) {
            kinds[*dim] = kind(shape.size(*dim), core.size, factors);
        }
    }
    kinds
}

/// The pattern of a dimension of `size` coordinates with this core, whose factors are in far-first order.
fn kind(size: u32, core: u32, mut factors: Vec<u32>) -> PatternKind {
    if core.is_power_of_two() && core > 1 {
        // Bine has the shortest routes.
        return PatternKind::Bine;
    }
    if factors.iter().all(|&factor| factor == 3) && core == size && factors.len() > 1 {
        return PatternKind::Balanced;
    }
    match factors.len() {
        0 | 1 => PatternKind::Direct,
        _ => {
            factors.reverse();
            PatternKind::Radices(factors.into())
        }
    }
}

/// Returns the cores of dimensions whose steps may be fused with one another.
fn best_cores(sizes: &[u32], messages: u32, packing: &mut Packing) -> Vec<Core> {
    // For each number of folded dimensions and each product of factors, the largest cores.
    let mut found: BTreeMap<Chosen, (u64, SmallVec<[Core; 4]>)> = BTreeMap::new();
    found.insert((0, Powers::default()), (1, SmallVec::new()));
    for &size in sizes {
        let mut next = BTreeMap::new();
        let all = cores(size, packing);
        for (&(n_folded, powers), (n_ranks, chosen)) in &found {
            for core in &all {
                let n_folded = n_folded + u32::from(core.size < size);
                let sum = std::array::from_fn(|prime| powers[prime] + core.powers[prime]);
                let n_ranks = n_ranks * u64::from(core.size);
                let best = next.entry((n_folded, sum)).or_insert((0, SmallVec::new()));
                if n_ranks > best.0 {
                    let chosen = chosen.iter().copied().chain([*core]);
                    *best = (n_ranks, chosen.collect());
                }
            }
        }
        found = next;
    }
    let mut cost = |n_folded: u32, powers, n_ranks: u64| {
        // Each folded dimension doubles the number of ranks whose vectors one rank collects before the rounds.
        let too_many = ((1u64 << n_folded) - 1).saturating_sub(u64::from(messages));
        let (n_rounds, n_messages) = packing.cost(powers);
        let n_steps = n_rounds + if n_folded > 0 { 2 } else { 0 };
        (too_many, n_steps, n_folded, n_messages, u64::MAX - n_ranks)
    };
    let best = found
        .into_iter()
        .min_by_key(|&((n_folded, powers), (n_ranks, _))| cost(n_folded, powers, n_ranks));
    best.map_or_else(Vec::new, |(_, (_, chosen))| chosen.into_vec())
}

/// Returns the cores that a dimension may have.
fn cores(size: u32, packing: &mut Packing) -> Vec<Core> {
    let mut all = Vec::new();
    let most = packing.most;
    let primes = PRIMES.iter().take_while(|&&prime| prime <= most).count();
    products(Core { size: 1, powers: Powers::default() }, primes, size, &mut all);
    all.retain(|core| {
        let n_factors: u8 = core.powers.iter().sum();
        let is_cut = core.size < size;
        // The core of a folded dimension is the largest power of two, or has several factors.
        size.div_ceil(2) <= core.size
            && (!is_cut || n_factors > 1 || core.size == 2)
            && (!core.size.is_power_of_two() || core.size > size / 2)
    });
    let mut cost = |core: &Core| (packing.cost(core.powers), u32::MAX - core.size);
    all.sort_by_cached_key(|core| (core.size < size, cost(core)));
    all.truncate(MOST_CORES);
    all
}

/// Appends `core` and its products with the first `primes` primes, up to `most`.
fn products(core: Core, primes: usize, most: u32, all: &mut Vec<Core>) {
    let Some(prime) = primes.checked_sub(1) else {
        all.push(core);
        return;
    };
    let mut core = core;
    loop {
        products(core, prime, most, all);
        match core.size.checked_mul(PRIMES[prime]).filter(|&size| size <= most) {
            Some(size) => core.size = size,
            None => return,
        }
        core.powers[prime] += 1;
    }
}

/// An exact solver for the fewest rounds of given factors.
struct Packing {
    /// The largest product of a round's factors.
    most: u32,
    /// Solved cases: the rounds and messages that factors need, and the first of these rounds.
    known: HashMap<Powers, ((u32, u32), Powers)>,
}

impl Packing {
    fn cost(&mut self, powers: Powers) -> (u32, u32) {
        if let Some((cost, _)) = self.known.get(&powers) {
            return *cost;
        }
        // Some round has the largest factor. That round is chosen first.
        let largest = powers.iter().rposition(|&power| power > 0);
        let mut rounds = Vec::new();
        if let Some(prime) = largest {
            let mut round = Powers::default();
            round[prime] = 1;
            self.extend(powers, prime, PRIMES[prime], round, &mut rounds);
        }
        let mut best: Option<((u32, u32), Powers)> = None;
        for (size, round) in rounds {
            let rest = std::array::from_fn(|prime| powers[prime] - round[prime]);
            let (n_rounds, n_messages) = self.cost(rest);
            let cost = (n_rounds + 1, n_messages + size - 1);
            if best.is_none_or(|(known, _)| cost < known) {
                best = Some((cost, round));
            }
        }
        let best = best.unwrap_or_default();
        self.known.insert(powers, best);
        best.0
    }

    /// Appends this round, and this round with more factors up to `prime`.
    fn extend(
        &self,
        powers: Powers,
        prime: usize,
        size: u32,
        round: Powers,
        rounds: &mut Vec<(u32, Powers)>,
    ) {
        rounds.push((size, round));
        for more in 0..=prime {
            let size = size * PRIMES[more];
            if size <= self.most && round[more] < powers[more] {
                let mut round = round;
                round[more] += 1;
                self.extend(powers, more, size, round, rounds);
            }
        }
    }

    /// Returns the factors of each dimension in the order of the rounds.
    fn factors(&mut self, cores: &[Core]) -> Vec<Vec<u32>> {
        let mut left: Vec<Powers> = cores.iter().map(|core| core.powers).collect();
        let mut factors = vec![Vec::new(); cores.len()];
        let sum = |powers: &[Powers]| -> Powers {
            std::array::from_fn(|prime| powers.iter().map(|powers| powers[prime]).sum())
        };
        loop {
            let powers = sum(&left);
            self.cost(powers);
            let Some(&((n_rounds, _), round)) = self.known.get(&powers) else { return factors };
            if n_rounds == 0 {
                return factors;
            }
            for (prime, &power) in round.iter().enumerate() {
                for _ in 0..power {
                    // Take it from the dimension that has most of these factors left.
                    let dim = (0..left.len()).rev().max_by_key(|&dim| left[dim][prime]);
                    if let Some(dim) = dim {
                        left[dim][prime] -= 1;
                        factors[dim].push(PRIMES[prime]);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::Collective;
    use crate::geometry::RankMap;
    use crate::names::{LaneId, Rank, StepId};
    use crate::plan::Flow;
    use crate::registry::{self, Request};

    /// Steps of the schedule, and the most messages that a rank sends or receives in one.
    fn steps(text: &str, messages: u32) -> (usize, u32) {
        let shape: Shape = text.parse().unwrap();
        let algorithm =
            registry::find(Collective::Allreduce, &format!("fused:{messages}-l")).unwrap();
        let request = Request { shape, map: RankMap::RowMajor, root: Rank(0), ports: Some(1) };
        let flow = algorithm.schedule(&request).unwrap().expand().unwrap();
        let (n_steps, lane) = (flow.lanes()[0].n_steps, LaneId(0));
        let mut most = 0;
        for step in StepId::first(n_steps) {
            let mut counts = vec![[0u32; 2]; flow.n_ranks() as usize];
            flow.volumes(lane, step, &mut |from, to, _| {
                counts[from.index()][0] += 1;
                counts[to.index()][1] += 1;
            });
            most = counts.into_iter().flatten().fold(most, u32::max);
        }
        (n_steps, most)
    }

    #[test]
    fn six_messages_need_few_rounds() {
        for (text, expected) in [
            ("8x8x8", 5),
            ("16x16x16", 6),
            ("64x64", 6),
            ("24x24x24", 6),
            ("5x7", 2),
            ("6x6x6", 3),
            ("9x27", 5),
            ("7", 1),
            ("8", 2),
            // Folded: 11 onto 6, 13 onto 12.
            ("11", 3),
            ("13x2", 4),
        ] {
            let (n_steps, most) = steps(text, 6);
            assert_eq!(n_steps, expected, "{text}");
            assert!(most <= 6, "{text}: {most} messages");
        }
        assert_eq!(steps("8x8x8", 7), (3, 7));
        assert_eq!(steps("8x8x8", 1), (9, 1));
        assert_eq!(steps("8x8x8", 2), (9, 1));
        assert_eq!(steps("9x9", 2), (4, 2));
    }

    /// The core of every chosen pattern is the intended one, and its steps have these factors.
    #[test]
    fn patterns_have_the_cores_that_are_meant() {
        for messages in 1..=MOST_MESSAGES {
            let mut packing = Packing { most: messages + 1, known: HashMap::new() };
            for size in 1..400 {
                for core in cores(size, &mut packing) {
                    let factors = packing.factors(&[core]).remove(0);
                    assert_eq!(factors.iter().product::<u32>(), core.size);
                    let kind = kind(size, core.size, factors);
                    assert_eq!(kind.core(size), core.size, "{kind} on {size}");
                    let text = kind.to_string();
                    assert_eq!(text.parse::<PatternKind>().unwrap(), kind, "{text}");
                }
            }
        }
    }

    #[test]
    fn the_machine_of_158_976_nodes_takes_eight_steps() {
        // 48 stays, 48 folds onto 27 or 36, 69 onto 49: six rounds and two steps for the fold.
        let shape: Shape = "48x69x48".parse().unwrap();
        let kinds = patterns(&shape, 6);
        let cores = kinds.iter().zip(shape.sizes()).map(|(kind, size)| kind.core(size));
        let cores: Vec<u32> = cores.collect();
        let mut packing = Packing { most: 7, known: HashMap::new() };
        let found = best_cores(&shape.sizes(), 6, &mut packing);
        assert_eq!(found.iter().map(|core| core.size).collect::<Vec<_>>(), cores);
        let sum = std::array::from_fn(|prime| found.iter().map(|core| core.powers[prime]).sum());
        assert_eq!(packing.cost(sum).0, 6, "{cores:?}");
    }
}
