//! Domains of cores that share a cache or a local memory. Fetching a line from a core of another domain takes
//! longer.

use std::path::Path;

use super::caches::{LISTED, shared_cache};
use super::groups::Groups;

/// Marks a domain that is not known.
const UNKNOWN: u64 = u64::MAX;

/// The domains that all cores of a rank share: the last level of caches, and the memory group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Domains {
    /// The first core of the cache; [`UNKNOWN`] if the rank's cores share none.
    pub(super) cache: u64,
    pub(super) memory: u64,
}

impl Domains {
    /// The domains of a rank that runs on these cores.
    pub(super) fn of_cores(cores: &[usize]) -> Self {
        let cache = shared_cache(Path::new(LISTED), cores).unwrap_or(UNKNOWN);
        let memory = match Groups::of_machine().of_cores(cores)[..] {
            [one] => one as u64,
            _ => UNKNOWN,
        };
        Domains { cache, memory }
    }

    pub(super) fn encode(self) -> [u8; 16] {
        let words = u128::from(self.cache) | u128::from(self.memory) << 64;
        words.to_le_bytes()
    }

    /// Decodes the bytes of [`encode`](Domains::encode); `None` if their number is wrong.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let words = u128::from_le_bytes(bytes.try_into().ok()?);
        Some(Domains { cache: words as u64, memory: (words >> 64) as u64 })
    }
}

/// The group of each rank as the user sets it: `each` consecutive ranks form one. `None` if `each` is 0, or if there
/// would be one group.
pub(super) fn said_groups(n_ranks: usize, each: u32) -> Option<Vec<u32>> {
    let of = |rank: usize| rank as u32 / each;
    (each > 0 && n_ranks > each as usize).then(|| (0..n_ranks).map(of).collect())
}

/// The group number of each rank, if groups pay: the number of stamps that a rank waits for ([`lines`]) is at most
/// half of that without groups.
pub(super) fn groups(all: &[Domains]) -> Option<Vec<u32>> {
    let by = |key: fn(&Domains) -> u64| -> Option<Vec<u32>> {
        let mut keys: Vec<u64> = all.iter().map(key).collect();
        keys.sort_unstable();
        keys.dedup();
        let is_known = !keys.contains(&UNKNOWN);
        let of = |domains| keys.binary_search(&key(domains)).unwrap_or(0) as u32;
        is_known.then(|| all.iter().map(of).collect())
    };
    let ways = [by(|domains| domains.cache), by(|domains| domains.memory)];
    let best = ways.into_iter().flatten().min_by_key(|of| lines(of))?;
    (2 * lines(&best) < all.len()).then_some(best)
}

/// Stamps that a rank of the largest group waits for in a call in groups: those of the other ranks of its group, of
/// the other leaders, and of the result. Without groups a rank waits for the stamps of all other ranks.
fn lines(of: &[u32]) -> usize {
    let n_groups = of.iter().max().map_or(0, |&last| last as usize + 1);
    let mut n_of = vec![0; n_groups];
    of.iter().for_each(|&group| n_of[group as usize] += 1);
    (n_of.into_iter().max().unwrap_or(0) + n_groups).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(n: u64, cache: fn(u64) -> u64, memory: fn(u64) -> u64) -> Vec<Domains> {
        (0..n).map(|rank| Domains { cache: cache(rank), memory: memory(rank) }).collect()
    }

    #[test]
    fn groups_are_made_where_they_halve_the_way() {
        // A64FX: no caches listed, four memory groups of twelve cores.
        let a64fx = domains(48, |_| UNKNOWN, |rank| 4 + rank / 12);
        let of = groups(&a64fx).unwrap();
        assert_eq!(of, (0..48).map(|rank| rank / 12).collect::<Vec<u32>>());
        assert_eq!(lines(&of), 15);
        // Caches of eight cores, in two memories.
        let epyc = domains(128, |rank| rank / 8 * 8, |rank| rank / 64);
        assert_eq!(groups(&epyc).unwrap()[9], 1);
        // No groups: one group only, too few ranks, a group for each rank, and a rank without known domains.
        assert_eq!(groups(&domains(48, |_| 0, |_| 0)), None);
        assert_eq!(groups(&domains(8, |rank| rank / 4, |rank| rank / 4)), None);
        assert_eq!(groups(&domains(48, |rank| rank, |rank| rank)), None);
        let mut one = a64fx.clone();
        one[5].memory = UNKNOWN;
        assert_eq!(groups(&one), None);
        // As the user says.
        assert_eq!(said_groups(5, 2), Some(vec![0, 0, 1, 1, 2]));
        assert_eq!(said_groups(48, 0), None);
        assert_eq!(said_groups(48, 48), None);
        assert_eq!(groups(&[]), None);
    }

    #[test]
    fn domains_are_told_whole() {
        let told = Domains { cache: 7, memory: UNKNOWN };
        assert_eq!(Domains::decode(&told.encode()), Some(told));
        assert_eq!(Domains::decode(&[0; 15]), None);
    }
}
