//! Memory groups: cores with a common local memory. They are the kernel's NUMA nodes; those of an A64FX (CMGs) have
//! twelve cores each.

use std::collections::BTreeMap;
use std::fs;

use super::config::core_list;

/// Where the kernel lists NUMA nodes.
const LISTED: &str = "/sys/devices/system/node";

/// The groups that have cores, by the kernel's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups(BTreeMap<usize, Vec<usize>>);

/// Free cores of a group, on which the program has no thread, and the number of workers that they get.
pub(super) type FreeCores = (Vec<usize>, usize);

impl Groups {
    /// The groups of this machine, as far as the kernel lists them.
    pub(super) fn of_machine() -> Self {
        let entries = fs::read_dir(LISTED).into_iter().flatten().flatten();
        Groups::of_listing(entries.filter_map(|entry| {
            let cores = fs::read_to_string(entry.path().join("cpulist")).ok()?;
            Some((entry.file_name().into_string().ok()?, cores))
        }))
    }

    /// Parses names and lists of cores: `node4`, `12-23`. Skips entries that are no groups or have no cores.
    pub(super) fn of_listing(listing: impl IntoIterator<Item = (String, String)>) -> Self {
        let group = |(name, cores): (String, String)| {
            let number = name.strip_prefix("node")?.parse().ok()?;
            Some((number, core_list(&cores)?))
        };
        Groups(listing.into_iter().filter_map(group).collect())
    }

    fn of(&self, core: usize) -> Option<usize> {
        self.0.iter().find(|(_, cores)| cores.contains(&core)).map(|(&number, _)| number)
    }

    /// The numbers of these cores' groups, ascending; empty on a machine with one group.
    pub(super) fn of_cores(&self, cores: &[usize]) -> Vec<usize> {
        if self.0.len() < 2 {
            return Vec::new();
        }
        let mut numbers: Vec<usize> = cores.iter().filter_map(|&core| self.of(core)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Distributes `n` workers over the groups of the free cores, round robin: first over the groups in which the
    /// program has threads, and so its memory, as long as these have free cores.
    pub(super) fn distribute_workers(
        &self,
        used: &[usize],
        free: &[usize],
        n: usize,
    ) -> Vec<FreeCores> {
        let homes: Vec<_> = used.iter().map(|&core| self.of(core)).collect();
        let mut groups: BTreeMap<_, FreeCores> = BTreeMap::new();
        for &core in free {
            let group = self.of(core);
            let is_far = !homes.contains(&group);
            groups.entry((is_far, group)).or_default().0.push(core);
        }
        let mut left = n;
        for wanted in [false, true] {
            let of_kind = |key: &(bool, Option<usize>)| key.0 == wanted;
            loop {
                let before = left;
                for (_, (cores, n_workers)) in groups.iter_mut().filter(|(key, _)| of_kind(key)) {
                    if left > 0 && *n_workers < cores.len() {
                        (*n_workers, left) = (*n_workers + 1, left - 1);
                    }
                }
                if left == before {
                    break;
                }
            }
        }
        groups.into_values().collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) static UNKNOWN: Groups = Groups(BTreeMap::new());

    /// The groups of a node: `n_assistants` groups of one assistant core each, and four groups of twelve cores.
    pub(in super::super) fn a64fx(n_assistants: usize) -> Groups {
        let listed = |number: usize, cores: String| (format!("node{number}"), cores + "\n");
        let assistants = (0..n_assistants).map(|core| listed(core, core.to_string()));
        let compute = (0..4).map(|at| listed(4 + at, format!("{}-{}", 12 + 12 * at, 23 + 12 * at)));
        Groups::of_listing(assistants.chain(compute))
    }

    #[test]
    fn groups_are_read_from_the_kernels_listing() {
        for n_assistants in [2, 4] {
            let groups = a64fx(n_assistants);
            assert_eq!(groups.0.len(), n_assistants + 4);
            assert_eq!([0, 12, 23, 24, 59].map(|core| groups.of(core)), [0, 4, 4, 5, 7].map(Some));
            assert_eq!(groups.of(60), None);
            assert_eq!(groups.of_cores(&[59, 30, 31]), [5, 7]);
        }
        let texts = [("node0", "0-1,4-5"), ("node1", "\n"), ("has_cpu", "0"), ("node2", "x")];
        let odd = Groups::of_listing(texts.map(|(name, cores)| (name.into(), cores.into())));
        assert_eq!(odd.0.into_iter().collect::<Vec<_>>(), [(0, vec![0, 1, 4, 5])]);
        // On a machine with one group no group is reported.
        let one = Groups::of_listing([("node0".to_owned(), "0-7".to_owned())]);
        assert!(one.of_cores(&[3]).is_empty() && UNKNOWN.of_cores(&[3]).is_empty());
    }

    #[test]
    fn workers_are_dealt_to_the_groups_of_threads_first() {
        let groups = a64fx(2);
        let dealt = |used: &[usize], free: &[usize], n| -> Vec<usize> {
            let shares = groups.distribute_workers(used, free, n);
            assert!(shares.iter().all(|(cores, n)| *n <= cores.len()));
            shares.iter().map(|(_, n)| *n).collect()
        };
        // Room in each group, in one of them, and in none with threads.
        assert_eq!(dealt(&[12, 24, 36, 48], &[23, 22, 35, 34, 47, 46, 59, 58], 6), [2, 2, 1, 1]);
        assert_eq!(dealt(&[12], &[22, 23, 34, 35, 58, 59], 5), [2, 2, 1]);
        assert_eq!(dealt(&[12, 24], &[46, 47, 58, 59], 2), [1, 1]);
        assert_eq!(dealt(&[], &[12, 24], 0), [0, 0]);
        assert_eq!(UNKNOWN.distribute_workers(&[0], &[1, 2, 3], 2), [(vec![1, 2, 3], 2)]);
    }
}
