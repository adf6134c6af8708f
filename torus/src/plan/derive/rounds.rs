//! Steps that are taken together: the fewest rounds for so many messages of a rank in each.
//!
//! Steps whose groups nest may be one round: of groups of g and of h, also along different dimensions,
//! one of groups of g h, in which a rank sends g h - 1 messages (algorithms.md section 1). Within a
//! dimension steps keep their order; between dimensions any order will do.

use std::collections::HashMap;

use smallvec::SmallVec;

/// Steps done, or taken in a round, by dimension.
pub(super) type StepCounts = SmallVec<[u32; 4]>;

/// Rounds, and the messages that a rank sends in all of them.
type Cost = (u32, u32);

/// The steps of each dimension that are taken in each round: the fewest rounds, and of those with the
/// fewest messages in all. `factors` has by dimension how many times each of its steps makes groups
/// larger; a round makes them at most `messages + 1` times larger, unless it is a single step.
///
/// The search is exact. States are the numbers of steps done by dimension; as the product of all factors
/// is a number of ranks, there are 32 steps at most.
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
    /// What is left costs, and the round to begin with, by steps done.
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

    /// Appends the rounds that may come next and take so much of the dimensions before `dim`, with how
    /// many times they make groups larger.
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

    /// How many times larger each round makes groups.
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
        // Of two ways in as few rounds the one with fewer messages.
        assert_eq!(sorted(&[vec![2; 4]], 12), [4, 4]);
        // What cannot be cut is taken as it is, alone.
        assert_eq!(sorted(&[vec![13], vec![2, 2]], 6), [4, 13]);
        assert_eq!(sorted(&[vec![], vec![]], 6), []);
    }
}
