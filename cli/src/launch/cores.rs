//! Binding of ranks to cores.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Where the ranks of a job run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum BindTo {
    /// Cores of its own for each rank, the same number for all, if there are as many cores as ranks
    #[default]
    Core,
    /// No cores: the system schedules the ranks
    None,
}

/// The cores that this process may use, divided among the ranks.
#[derive(Debug)]
pub(super) struct Shares {
    cores: Vec<usize>,
    per_rank: usize,
}

impl Shares {
    /// `None` if there are fewer cores than ranks, or if the system does not list the cores.
    pub(super) fn of_job(ranks: u32) -> Option<Self> {
        let cores = core_affinity::get_core_ids()?.into_iter().map(|core| core.id);
        Shares::new(cores.filter(|&core| core < CpuSet::MAX_CPU).collect(), ranks)
    }

    fn new(cores: Vec<usize>, ranks: u32) -> Option<Self> {
        let per_rank = cores.len() / ranks as usize;
        (per_rank > 0).then_some(Shares { cores, per_rank })
    }

    fn of(&self, rank: u32) -> &[usize] {
        &self.cores[rank as usize * self.per_rank..][..self.per_rank]
    }

    /// A function that binds a rank to its cores, to be called in the rank's process between fork and exec. If the
    /// system refuses, the rank stays unbound.
    pub(super) fn binder(&self, rank: u32) -> impl FnMut() -> io::Result<()> + use<> {
        let mut set = CpuSet::new();
        self.of(rank).iter().for_each(|&core| set.set(core));
        move || {
            // sched_setaffinity is safe between fork and exec.
            let _ = sched_setaffinity(None, &set);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_get_equally_many_cores_of_their_own() {
        let shares = Shares::new(vec![0, 2, 4, 6, 8, 10, 12], 3).unwrap();
        let of_ranks: Vec<_> = (0..3).map(|rank| shares.of(rank)).collect();
        assert_eq!(of_ranks, [[0, 2], [4, 6], [8, 10]]);
        assert_eq!(Shares::new(vec![5], 1).unwrap().of(0), [5]);
        assert!(Shares::new(vec![0, 1], 3).is_none());
    }
}
