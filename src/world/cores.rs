//! Which cores a rank's threads use, when ranks are processes.

use std::hash::{DefaultHasher, Hash, Hasher};

use core_affinity::CoreId;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::config::{Drive, spread};
use super::groups::Groups;
use super::threads;
use hopbine_meet::kernel;

/// Cores that this process may run on, as far as the system reports them: those of the calling thread, and those of
/// OpenMP's places, since a runtime that binds threads leaves the thread that has loaded it only one place.
pub(super) fn available_cores() -> Vec<usize> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let mut cores: Vec<usize> = cores.into_iter().map(|core| core.id).collect();
    cores.extend(threads::openmp_cores().unwrap_or_default());
    cores.sort_unstable();
    cores.dedup();
    cores
}

/// Lets the calling thread run on all cores of the rank until this is dropped, so that the threads that it starts
/// meanwhile may run there, too: they inherit its cores, of which OpenMP may have left it one.
pub(super) struct Unbound(Option<CpuSet>);

impl Unbound {
    pub(super) fn on(cores: &[usize]) -> Self {
        let mut all = CpuSet::new();
        cores.iter().filter(|&&core| core < CpuSet::MAX_CPU).for_each(|&core| all.set(core));
        let before = sched_getaffinity(None).ok().filter(|own| *own != all);
        Unbound(before.filter(|_| sched_setaffinity(None, &all).is_ok()))
    }
}

impl Drop for Unbound {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // It was the thread's own, so the system takes it back.
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// The input of [`assign_cores`]: the rank's ports, the cores that it may share with other ranks, and the program's
/// use of them.
#[derive(Clone, Debug)]
pub(super) struct PinningInput<'a> {
    pub(super) drive: Drive,
    pub(super) n_ports: usize,
    /// Cores that this process may run on.
    pub(super) available: &'a [usize],
    /// Ranks that may run on these cores, this one included.
    pub(super) sharers: usize,
    /// This rank's number among them.
    pub(super) place: usize,
    /// The core that the caller is on.
    pub(super) caller: Option<usize>,
    /// Cores that the user sets for the workers of all ranks of the node; empty if unset.
    pub(super) wanted: &'a [usize],
    /// This rank's number among those of the node.
    pub(super) place_on_node: usize,
    /// Threads that the program computes with, the caller among them.
    pub(super) n_threads: usize,
    /// Cores that these threads are bound to, as far as known; empty if unknown.
    pub(super) bound_to: &'a [usize],
    pub(super) groups: &'a Groups,
    /// Whether the program was not built for hopbine (LD_PRELOAD).
    pub(super) is_preloaded: bool,
}

/// Which threads drive a rank, on which cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pinning {
    /// Worker threads.
    pub(super) n_workers: usize,
    /// Whether waiting threads may keep a core busy.
    pub(super) own_cores: bool,
    /// The core of each worker; empty if workers are not pinned.
    pub(super) cores: Vec<usize>,
    /// The memory groups of these cores, on a machine that has several.
    pub(super) groups: Vec<usize>,
    /// The reason, in words.
    pub(super) why: String,
}

/// How many workers drive the ports of a rank whose threads leave `n_spare` cores.
pub(super) fn n_workers(drive: Drive, n_ports: usize, n_spare: usize) -> usize {
    match drive {
        Drive::Workers => n_ports,
        Drive::Worker => n_ports.min(1),
        Drive::Inline => 0,
        Drive::Auto if n_spare >= n_ports => n_ports,
        Drive::Auto => n_spare.min(1),
    }
}

/// Divides the cores among the sharers. A rank's workers get the cores of its part that the program's threads leave.
pub(super) fn assign_cores(input: &PinningInput<'_>) -> Pinning {
    let PinningInput { drive, n_ports, available, sharers, place, n_threads, is_preloaded, .. } =
        *input;
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
    } else if !input.wanted.is_empty() {
        let is_own = |core: &usize| available.contains(core);
        let own_wanted: Vec<usize> = input.wanted.iter().copied().filter(is_own).collect();
        // Ranks with cores of their own share no core of the list.
        let (wanted, place) = match &own_wanted[..] {
            [] => (input.wanted, input.place_on_node),
            own => (own, place),
        };
        wanted.iter().copied().cycle().skip(place * n_workers).take(n_workers).collect()
    } else if own_cores {
        let n = available.len();
        cores_beside(&available[place * n / sharers..(place + 1) * n / sharers], input, n_workers)
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
    let groups = input.groups.of_cores(&cores);
    Pinning { n_workers, own_cores, cores, groups, why }
}

/// Chooses cores for workers from the rank's part: cores without a thread, in the memory groups of the threads if
/// possible.
fn cores_beside(part: &[usize], input: &PinningInput<'_>, n_workers: usize) -> Vec<usize> {
    let PinningInput { n_threads, caller, bound_to, groups, .. } = *input;
    let mut used: Vec<usize> =
        bound_to.iter().copied().filter(|core| part.contains(core)).collect();
    if used.is_empty() && n_threads == 1 {
        used = caller.into_iter().filter(|core| part.contains(core)).collect();
    } else if used.is_empty() {
        // OpenMP uses cores from the first one on.
        used = part.to_vec();
    }
    used.truncate(n_threads);
    let free: Vec<usize> = part.iter().copied().filter(|core| !used.contains(core)).collect();
    let of_group = |(free, n): (Vec<usize>, usize)| match n_threads {
        1 => spread(&free, None, n).unwrap_or_default(),
        _ => free[free.len() - n..].to_vec(),
    };
    groups.distribute_workers(&used, &free, n_workers).into_iter().flat_map(of_group).collect()
}

fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

impl Pinning {
    /// Adds to the reason which of the workers' cores the system refuses to this process: it runs a worker with such a
    /// core on any other.
    pub(super) fn note_refused(mut self) -> Self {
        let cores = self.cores.clone();
        let refused = move |core: &usize| !core_affinity::set_for_current(CoreId { id: *core });
        // On a thread of its own, which is bound to them in turn.
        let look = move || cores.into_iter().filter(refused).collect();
        let thread = std::thread::Builder::new().spawn(look);
        // If there can be no further thread, starting the workers fails, too, and says so.
        let found: Vec<usize> =
            thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_default();
        if !found.is_empty() {
            let found: Vec<String> = found.iter().map(usize::to_string).collect();
            self.why +=
                &format!("; not bound to {}, which this process may not use", found.join(" "));
        }
        self
    }

    /// Which threads drive the ports, on which cores, and why, in words.
    pub(super) fn driven_by(&self) -> String {
        let Pinning { n_workers, cores, groups, why, .. } = self;
        let who = match n_workers {
            0 => "the caller".to_owned(),
            &n => counted(n, "worker"),
        };
        let listed: Vec<String> = cores.iter().map(usize::to_string).collect();
        let numbers: Vec<String> = groups.iter().map(usize::to_string).collect();
        let of = match &numbers[..] {
            [] => String::new(),
            [group] => format!(" of memory group {group}"),
            groups => format!(" of memory groups {}", groups.join(" ")),
        };
        match (n_workers, &listed[..]) {
            (0, _) => format!("{who} ({why})"),
            (_, []) => format!("{who}, not bound ({why})"),
            (_, [core]) => format!("{who} on core {core}{of} ({why})"),
            (_, cores) => format!("{who} on cores {}{of} ({why})", cores.join(" ")),
        }
    }
}

/// A number that is equal on ranks exactly if they share their cores. Ranks in different containers may share cores,
/// although their processes do not see each other.
pub(super) fn cores_hash(cores: &[usize]) -> u64 {
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
    use super::super::groups::tests::{UNKNOWN, a64fx};
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

    fn input(sharers: usize, place: usize) -> PinningInput<'static> {
        PinningInput {
            drive: Drive::Auto,
            n_ports: 6,
            available: &NODE,
            sharers,
            place,
            caller: Some(12),
            wanted: &[],
            place_on_node: place,
            n_threads: 1,
            bound_to: &[],
            groups: &UNKNOWN,
            is_preloaded: false,
        }
    }

    /// The workers of a single rank are in the memory groups of its threads, as far as these have free cores.
    #[test]
    fn workers_are_in_the_memory_groups_of_threads() {
        for n_assistants in [2, 4] {
            let groups = &a64fx(n_assistants);
            let with = |n_threads, bound_to: &[usize]| {
                assign_cores(&PinningInput { n_threads, bound_to, groups, ..input(1, 0) })
            };
            let alone = with(1, &[]);
            assert_eq!((alone.groups, alone.cores.len()), (vec![4], 6));
            // Threads fill two groups, and begin the third.
            assert_eq!(with(30, &[]).cores, [42, 43, 44, 45, 46, 47]);
            // They fill two, and none is left there.
            assert_eq!(with(24, &[]).cores, [45, 46, 47, 57, 58, 59]);
            // Eleven threads in each group leave a core in each.
            let apart: Vec<usize> = (12..60).filter(|core| core % 12 != 3).collect();
            let one_each = with(44, &apart);
            assert_eq!((one_each.n_workers, &one_each.cores[..]), (1, &[15][..]));
            let told = one_each.driven_by();
            let expected = "1 worker on core 15 of memory group 4 (44 threads on 48 cores leave 4)";
            assert_eq!(told, expected);
            let (drive, n_ports) = (Drive::Workers, 4);
            let few = PinningInput {
                n_threads: 44,
                bound_to: &apart,
                groups,
                drive,
                n_ports,
                ..input(1, 0)
            };
            let few = assign_cores(&few);
            assert_eq!(few.cores, [15, 27, 39, 51]);
            let of =
                "4 workers on cores 15 27 39 51 of memory groups 4 5 6 7 (HOPBINE_DRIVE=workers)";
            assert_eq!(few.driven_by(), of);
            // Of a list for the whole node, the rank's cores count.
            let second = PinningInput {
                n_threads: 6,
                bound_to: &[12, 30, 31, 32, 33, 34, 35],
                groups,
                ..input(4, 1)
            };
            assert_eq!(assign_cores(&second).cores, [24, 25, 26, 27, 28, 29]);
        }
    }

    #[test]
    fn ranks_of_a_node_get_cores_of_their_own() {
        let mut taken = vec![12];
        for place in 0..4 {
            let pinning = assign_cores(&input(4, place));
            assert!(pinning.own_cores);
            assert_eq!((pinning.n_workers, pinning.cores.len()), (6, 6));
            taken.extend(pinning.cores);
        }
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 25);
    }

    #[test]
    fn few_cores_mean_one_worker_or_none() {
        let one = assign_cores(&input(8, 3));
        assert_eq!((one.n_workers, one.own_cores, one.cores.len()), (1, true, 1));
        let none = assign_cores(&input(48, 3));
        assert_eq!((none.n_workers, none.own_cores), (0, true));
        assert_eq!(none.driven_by(), "the caller (1 thread on 1 core leave none)");
        assert!(!assign_cores(&input(49, 3)).own_cores);
    }

    #[test]
    fn cores_that_the_system_refuses_are_named() {
        let known = available_cores();
        let with = |wanted| {
            let input =
                PinningInput { wanted, drive: Drive::Worker, available: &known, ..input(1, 0) };
            assign_cores(&input).note_refused().driven_by()
        };
        // On a single core, the text between says that the worker shares it with the program.
        let is_named = |driven_by: &str, core: usize, end: &str| {
            let start = format!("1 worker on core {core} (HOPBINE_DRIVE=worker");
            driven_by.starts_with(&start) && driven_by.ends_with(end)
        };
        let bound = with(&known);
        assert!(is_named(&bound, known[0], ")") && !bound.contains("not bound"), "{bound}");
        let refused = with(&[1023]);
        let why = "; not bound to 1023, which this process may not use)";
        assert!(is_named(&refused, 1023, why), "{refused}");
    }

    /// Four ranks of a node with a memory group of twelve cores each.
    #[test]
    fn threads_of_openmp_keep_their_cores() {
        let with =
            |n_threads, drive| assign_cores(&PinningInput { n_threads, drive, ..input(4, 1) });
        assert_eq!(with(12, Drive::Auto).n_workers, 0);
        let cores_beside = with(11, Drive::Auto);
        assert_eq!(
            cores_beside.driven_by(),
            "1 worker on core 35 (11 threads on 12 cores leave 1)"
        );
        assert_eq!(with(6, Drive::Auto).cores, [30, 31, 32, 33, 34, 35]);
        let crowded = with(12, Drive::Workers);
        assert_eq!((crowded.n_workers, crowded.own_cores), (6, false));
        assert!(crowded.why.contains("share cores"), "{}", crowded.why);
        assert!(!with(6, Drive::Workers).why.contains("share"));
    }

    #[test]
    fn a_program_that_knows_nothing_of_it_keeps_all_cores() {
        let auto = PinningInput { is_preloaded: true, ..input(1, 0) };
        assert_eq!(assign_cores(&auto).n_workers, 0);
        assert_eq!(assign_cores(&PinningInput { drive: Drive::Worker, ..auto }).n_workers, 1);
    }

    #[test]
    fn what_the_user_says_counts() {
        let wanted: Vec<usize> = (13..25).collect();
        let pinning = assign_cores(&PinningInput { wanted: &wanted, ..input(2, 1) });
        assert_eq!(pinning.cores, [19, 20, 21, 22, 23, 24]);
        let inline =
            assign_cores(&PinningInput { drive: Drive::Inline, wanted: &wanted, ..input(2, 1) });
        assert!(inline.cores.is_empty());
    }

    /// Four ranks of a node, each bound to its memory group.
    #[test]
    fn of_a_list_for_the_node_each_rank_takes_its_own_cores() {
        let with = |wanted, place_on_node| {
            let first = 12 * place_on_node;
            let (available, drive) = (&NODE[first..first + 12], Drive::Worker);
            let input = PinningInput { available, wanted, place_on_node, drive, ..input(1, 0) };
            assign_cores(&input).cores
        };
        for place in 0..4 {
            assert_eq!(with(&[23, 35, 47, 59], place), [23 + 12 * place]);
            // Of assistant cores no rank has any.
            assert_eq!(with(&[0, 1, 2, 3], place), [place]);
        }
    }

    #[test]
    fn a_bound_thread_starts_unbound_ones() {
        let of_thread = || core_affinity::get_core_ids().unwrap_or_default();
        let known = of_thread();
        let bound_and_back = move || {
            let all: Vec<usize> = known.iter().map(|core| core.id).collect();
            assert!(core_affinity::set_for_current(known[0]));
            let unbound = Unbound::on(&all);
            assert_eq!(std::thread::spawn(of_thread).join().unwrap(), known);
            drop(unbound);
            assert_eq!(of_thread(), known[..1]);
        };
        std::thread::spawn(bound_and_back).join().unwrap();
    }
}
