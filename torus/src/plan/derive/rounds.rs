//! Fused steps: the fewest rounds in which a rank sends at most a given number of messages.
//!
//! Steps whose groups nest can be one round: steps with groups of g and of h, also along different dimensions, make
//! a round with groups of g h, in which a rank sends g h - 1 messages (algorithms.md section 1). The steps of a
//! dimension keep their order; steps of different dimensions may be in any order.

use std::collections::HashMap;

use smallvec::SmallVec;

/// Numbers of steps by dimension: done so far, or taken in a round.
pub(super) type StepCounts = SmallVec<[u32; 4]>;

/// Number of rounds, and number of messages that a rank sends in all of them.
type Cost = (u32, u32);

/// The numbers of steps of each dimension that are taken in each round, for the fewest rounds, and among those the
/// fewest messages in all. `factors` has for each dimension the factor by which each step enlarges groups. A round
/// enlarges groups at most by the factor `messages + 1`, unless it is a single step.
///
/// The search is exact. Its states are the numbers of steps done by dimension. The product of all factors is a
/// number of ranks, so there are at most 32 steps.
pub(super) fn fewest_rounds(factors: &[Vec<u32>], messages: u32) -> Vec<StepCounts> {
    let mut search = Search { factors, messages, best: HashMap::new() };
    let mut done: StepCounts = factors.iter().map(|_| 0).collect();
    search.cost(&done);
    let mut rounds = Vec::new();
    while let Some((_, taken)) = search.best.get(&done).filter(|(cost, _)| cost.0 > 0) {
        done.iter_mut().zip(taken).for_each(|(done, taken)| *done += taken);
        rounds.push(taken.clone());
    }
    rounds
}

struct Search<'a> {
    factors: &'a [Vec<u32>],
    messages: u32,
    /// By steps done: the cost of the remaining steps, and the first round of the best solution.
    best: HashMap<StepCounts, (Cost, StepCounts)>,
}

impl Search<'_> {
    fn cost(&mut self, done: &StepCounts) -> Cost {
        if let Some((cost, _)) = self.best.get(done) {
            return *cost;
        }
        let mut rounds = Vec::new();
        let mut taken: StepCounts = done.iter().map(|_| 0).collect();
        self.extend(done, 0, 1, &mut taken, &mut rounds);
        let mut found: Option<(Cost, StepCounts)> = None;
        for (size, taken) in rounds {
            let next: StepCounts =
                done.iter().zip(&taken).map(|(done, taken)| done + taken).collect();
            let (n_rounds, n_messages) = self.cost(&next);
            let cost = (n_rounds + 1, n_messages + (size - 1));
            if found.as_ref().is_none_or(|(best, _)| cost < *best) {
                found = Some((cost, taken));
            }
        }
        let found = found.unwrap_or_default();
        let cost = found.0;
        self.best.insert(done.clone(), found);
        cost
    }

    /// Appends the possible next rounds that take `taken` steps of the dimensions before `dim`, each with the
    /// factor by which it enlarges groups. `size` is this factor for the steps taken so far.
    fn extend(
        &self,
        done: &StepCounts,
        dim: usize,
        size: u32,
        taken: &mut StepCounts,
        rounds: &mut Vec<(u32, StepCounts)>,
    ) {
        let Some(factors) = self.factors.get(dim) else {
            if taken.iter().any(|&taken| taken > 0) {
                rounds.push((size, taken.clone()));
            }
            return;
        };
        let (mut size, is_first) = (size, size == 1);
        self.extend(done, dim + 1, size, taken, rounds);
        for &factor in &factors[done[dim] as usize..] {
            let larger = u64::from(size) * u64::from(factor);
            let is_alone = is_first && taken[dim] == 0;
            if larger > u64::from(self.messages) + 1 && !is_alone {
                break;
            }
            size = larger as u32;
            taken[dim] += 1;
            self.extend(done, dim + 1, size, taken, rounds);
        }
        taken[dim] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The factors by which the rounds enlarge groups.
    fn sizes(factors: &[Vec<u32>], messages: u32) -> Vec<u32> {
        let mut left: Vec<_> = factors.iter().map(|factors| factors.iter()).collect();
        let rounds = fewest_rounds(factors, messages);
        let sizes = rounds.iter().map(|taken| {
            let of_dim = |(dim, &taken): (usize, &u32)| {
                left[dim].by_ref().take(taken as usize).product::<u32>()
            };
            taken.iter().enumerate().map(of_dim).product()
        });
        let sizes = sizes.collect();
        assert!(left.iter_mut().all(|left| left.next().is_none()));
        sizes
    }

    #[test]
    fn rounds_are_the_fewest() {
        let sorted = |factors: &[Vec<u32>], messages| {
            let mut sizes = sizes(factors, messages);
            sizes.sort_unstable();
            sizes
        };
        let cube = [vec![2; 3], vec![2; 3], vec![2; 3]];
        assert_eq!(sorted(&cube, 6), [2, 4, 4, 4, 4]);
        assert_eq!(sorted(&cube, 7), [8, 8, 8]);
        assert_eq!(sorted(&cube, 1), [2; 9]);
        assert_eq!(sorted(&[vec![2; 4], vec![2; 4], vec![2; 4]], 6), [4; 6]);
        let radices = vec![3, 2, 2, 2];
        assert_eq!(sorted(&[radices.clone(), radices.clone(), radices], 6), [4, 4, 4, 6, 6, 6]);
        // Of two solutions with the same number of rounds, the one with fewer messages.
        assert_eq!(sorted(&[vec![2; 4]], 12), [4, 4]);
        // A step with too many messages is a round of its own.
        assert_eq!(sorted(&[vec![13], vec![2, 2]], 6), [4, 13]);
        assert_eq!(sorted(&[vec![], vec![]], 6), []);
    }
}
