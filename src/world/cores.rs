//! Which cores a rank's threads use, when ranks are processes.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::config::{Drive, spread};
use hopbine_meet::kernel;

/// What decides: the rank's ports, the cores it may use with others, and what the program uses of them.
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
    /// Threads that the program computes with, the caller among them.
    pub(super) n_threads: usize,
    /// Whether the program knows nothing of hopbine (LD_PRELOAD).
    pub(super) is_preloaded: bool,
}

/// How a rank is driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seating {
    /// Worker threads.
    pub(super) n_workers: usize,
    /// Waiting threads may keep a core busy.
    pub(super) own_cores: bool,
    /// For the workers, one by one; empty: not pinned.
    pub(super) cores: Vec<usize>,
    /// Why, in words.
    pub(super) why: String,
}

/// How many workers drive the ports of a rank to whose threads so many cores are left over.
pub(super) fn n_workers(drive: Drive, n_ports: usize, n_spare: usize) -> usize {
    match drive {
        Drive::Workers => n_ports,
        Drive::Worker => n_ports.min(1),
        Drive::Inline => 0,
        Drive::Auto if n_spare >= n_ports => n_ports,
        Drive::Auto => n_spare.min(1),
    }
}

/// Divides the cores among the sharers, and gives each rank's workers what is left of its part beside the
/// program's threads.
pub(super) fn seat(seats: &Seats<'_>) -> Seating {
    let Seats { drive, n_ports, available, sharers, place, n_threads, is_preloaded, .. } = *seats;
    let n_own = available.len() / sharers;
    let n_spare = n_own.saturating_sub(n_threads);
    let n_workers = match drive {
        Drive::Auto if is_preloaded => 0,
        drive => n_workers(drive, n_ports, n_spare),
    };
    let is_crowded = n_workers > n_spare;
    let own_cores = if n_workers == 0 { n_own > 0 } else { !is_crowded };
    let cores = if n_workers == 0 {
        Vec::new()
    } else if !seats.wanted.is_empty() {
        seats.wanted.iter().copied().cycle().skip(place * n_workers).take(n_workers).collect()
    } else if own_cores {
        let n = available.len();
        let part = &available[place * n / sharers..(place + 1) * n / sharers];
        match n_threads {
            1 => spread(part, seats.caller, n_workers).unwrap_or_default(),
            // OpenMP takes cores from the first one on.
            _ => part[part.len() - n_workers..].to_vec(),
        }
    } else {
        Vec::new()
    };
    let taken = format!("{} on {}", counted(n_threads, "thread"), counted(n_own, "core"));
    let why = match drive {
        Drive::Auto if is_preloaded => "hopbine is preloaded".to_owned(),
        Drive::Auto if n_workers == 0 => format!("{taken} leave none"),
        Drive::Auto => format!("{taken} leave {n_spare}"),
        drive if is_crowded => {
            format!("HOPBINE_DRIVE={}; they share cores with the program: {taken}", drive.name())
        }
        drive => format!("HOPBINE_DRIVE={}", drive.name()),
    };
    Seating { n_workers, own_cores, cores, why }
}

fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

impl Seating {
    /// Who drives the ports, on which cores, and why.
    pub(super) fn driven_by(&self) -> String {
        let Seating { n_workers, cores, why, .. } = self;
        let who = match n_workers {
            0 => "the caller".to_owned(),
            &n => counted(n, "worker"),
        };
        let listed: Vec<String> = cores.iter().map(usize::to_string).collect();
        match (n_workers, &listed[..]) {
            (0, _) => format!("{who} ({why})"),
            (_, []) => format!("{who}, not bound ({why})"),
            (_, [core]) => format!("{who} on core {core} ({why})"),
            (_, cores) => format!("{who} on cores {} ({why})", cores.join(" ")),
        }
    }
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
            n_threads: 1,
            is_preloaded: false,
        }
    }

    #[test]
    fn ranks_of_a_node_get_cores_of_their_own() {
        let mut taken = vec![12];
        for place in 0..4 {
            let seating = seat(&seats(4, place));
            assert!(seating.own_cores);
            assert_eq!((seating.n_workers, seating.cores.len()), (6, 6));
            taken.extend(seating.cores);
        }
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 25);
    }

    #[test]
    fn few_cores_mean_one_worker_or_none() {
        let one = seat(&seats(8, 3));
        assert_eq!((one.n_workers, one.own_cores, one.cores.len()), (1, true, 1));
        let none = seat(&seats(48, 3));
        assert_eq!((none.n_workers, none.own_cores), (0, true));
        assert_eq!(none.driven_by(), "the caller (1 thread on 1 core leave none)");
        assert!(!seat(&seats(49, 3)).own_cores);
    }

    /// Four ranks of a node with a memory group of twelve cores each.
    #[test]
    fn threads_of_openmp_keep_their_cores() {
        let with = |n_threads, drive| seat(&Seats { n_threads, drive, ..seats(4, 1) });
        assert_eq!(with(12, Drive::Auto).n_workers, 0);
        let beside = with(11, Drive::Auto);
        assert_eq!(beside.driven_by(), "1 worker on core 35 (11 threads on 12 cores leave 1)");
        assert_eq!(with(6, Drive::Auto).cores, [30, 31, 32, 33, 34, 35]);
        let crowded = with(12, Drive::Workers);
        assert_eq!((crowded.n_workers, crowded.own_cores), (6, false));
        assert!(crowded.why.contains("share cores"), "{}", crowded.why);
        assert!(!with(6, Drive::Workers).why.contains("share"));
    }

    #[test]
    fn a_program_that_knows_nothing_of_it_keeps_all_cores() {
        let auto = Seats { is_preloaded: true, ..seats(1, 0) };
        assert_eq!(seat(&auto).n_workers, 0);
        assert_eq!(seat(&Seats { drive: Drive::Worker, ..auto }).n_workers, 1);
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
