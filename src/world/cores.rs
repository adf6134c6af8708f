//! Which cores a rank's threads use, when ranks are processes.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::config::{Drive, spread};
use hopbine_meet::kernel;

/// What decides: the rank's ports, and the cores it may use with others.
#[derive(Clone, Debug)]
pub(super) struct Seats<'a> {
    pub(super) drive: Drive,
    pub(super) n_ports: usize,
    /// Cores that this process may run on.
    pub(super) available: &'a [usize],
    /// Ranks that may run on the same ones, this one included.
    pub(super) sharers: usize,
    /// This rank's place among them.
    pub(super) place: usize,
    /// The core that the caller is on.
    pub(super) caller: Option<usize>,
    /// Cores that the user wants for workers, for all sharers; empty: not said.
    pub(super) wanted: &'a [usize],
}

/// How a rank is driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seating {
    /// A worker thread for every port.
    pub(super) workers: bool,
    /// Waiting threads may keep a core busy.
    pub(super) own_cores: bool,
    /// For the workers, port by port; empty: not pinned.
    pub(super) cores: Vec<usize>,
}

/// Divides the cores among the sharers and spreads each rank's workers over its part.
pub(super) fn seat(seats: &Seats<'_>) -> Seating {
    let Seats { n_ports, available, sharers, place, .. } = *seats;
    let with_workers = sharers * (n_ports + 1);
    let workers = match seats.drive {
        Drive::Workers => true,
        Drive::Inline => false,
        Drive::Auto => with_workers <= available.len(),
    };
    let own_cores = if workers { with_workers } else { sharers } <= available.len();
    let cores = if !workers {
        Vec::new()
    } else if !seats.wanted.is_empty() {
        seats.wanted.iter().copied().cycle().skip(place * n_ports).take(n_ports).collect()
    } else if own_cores {
        let n = available.len();
        let part = &available[place * n / sharers..(place + 1) * n / sharers];
        spread(part, seats.caller, n_ports).unwrap_or_default()
    } else {
        Vec::new()
    };
    Seating { workers, own_cores, cores }
}

/// A number that ranks have in common exactly if they share their cores. Containers may, although
/// their processes do not see each other.
pub(super) fn seat_number(cores: &[usize]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kernel(), cores).hash(&mut hasher);
    hasher.finish()
}

/// The core that this thread runs on, if the kernel says.
pub(super) fn current_core() -> Option<usize> {
    // SAFETY: no preconditions.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: [usize; 48] = {
        let mut cores = [0; 48];
        let mut at = 0;
        while at < 48 {
            // The cores of an A64FX that are left to the user.
            cores[at] = at + 12;
            at += 1;
        }
        cores
    };

    fn seats(sharers: usize, place: usize) -> Seats<'static> {
        Seats {
            drive: Drive::Auto,
            n_ports: 6,
            available: &NODE,
            sharers,
            place,
            caller: Some(12),
            wanted: &[],
        }
    }

    #[test]
    fn ranks_of_a_node_get_cores_of_their_own() {
        let mut taken = vec![12];
        for place in 0..4 {
            let seating = seat(&seats(4, place));
            assert!(seating.workers && seating.own_cores);
            assert_eq!(seating.cores.len(), 6);
            taken.extend(seating.cores);
        }
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 25);
    }

    #[test]
    fn few_cores_mean_no_workers() {
        let seating = seat(&seats(8, 3));
        assert_eq!(seating, Seating { workers: false, own_cores: true, cores: Vec::new() });
        assert!(!seat(&seats(49, 3)).own_cores);
    }

    #[test]
    fn what_the_user_says_counts() {
        let wanted = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let seating = seat(&Seats { wanted: &wanted, ..seats(2, 1) });
        assert_eq!(seating.cores, [7, 8, 9, 10, 11, 12]);
        let inline = seat(&Seats { drive: Drive::Inline, wanted: &wanted, ..seats(2, 1) });
        assert!(inline.cores.is_empty());
    }
}
