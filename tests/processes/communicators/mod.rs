//! Several communicators at the same time, of all ranks and of some: used from two threads of every rank, from one
//! thread, created and dropped in many ways; with ranks as threads and as processes.

mod groups;

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use self::groups::rows_and_columns;
use crate::common::calls::{checked, config};
use crate::common::mixed::{Mixed, latency};
use crate::common::processes::{ranks, run_scenario};
use hopbine::reduce::Op;
use hopbine::{Communicator, Drive, OnTimeout, emulate, init};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use utofu::Api;
use utofu::handles::{Vcq, VcqFlags};

const DRIVES: [Drive; 2] = [Drive::Inline, Drive::Workers];
/// VCQs that a TNI has.
const VCQS: usize = 64;
/// VCQs of one CQ.
const VCQS_OF_A_CQ: usize = 8;

/// The entry point of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| match name {
        "two_at_once" => Some(|| {
            let world = init().unwrap();
            two_at_once(world.communicator(), 600, 40, Duration::from_micros(300));
            opposite_orders(world.communicator());
            dropped_in_any_order(world.communicator());
            rows_and_columns(world.communicator());
            many_at_once(world.communicator(), 500);
            world.finish().unwrap();
        }),
        "one_after_the_other" => Some(|| {
            let world = init().unwrap();
            one_after_the_other(world.communicator(), 20);
            let before = bytes_mapped();
            one_after_the_other(world.communicator(), 200);
            let grown = bytes_mapped().saturating_sub(before);
            assert!(grown < 200 * 20_000, "{grown} bytes more after 200 duplicates");
            world.finish().unwrap();
        }),
        _ => None,
    });
}

/// Bytes of this process's address space that are mapped.
fn bytes_mapped() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 4096
}

/// Every rank has two threads, each with its own communicator; the threads do not wait for each other.
fn two_at_once(comm: &Communicator, calls: usize, seed: u64, longest_pause: Duration) {
    let second = comm.duplicate().unwrap();
    assert_eq!((second.rank(), second.size()), (comm.rank(), comm.size()));
    assert_eq!((second.n_ports(), second.has_workers()), (comm.n_ports(), comm.has_workers()));
    let mixed = |seed, first| Mixed { calls, seed, longest_pause, first };
    std::thread::scope(|threads| {
        threads.spawn(|| mixed(seed + 1000, 1 << 20).run(&second));
        mixed(seed, 0).run(comm);
    });
    drop(second);
}

#[test]
fn two_threads_of_every_rank() {
    for (seed, sizes) in [&[2][..], &[3], &[2, 2], &[2, 3]].into_iter().enumerate() {
        for (drive, calls) in [(Drive::Inline, 2000), (Drive::Workers, 500)] {
            let config = config(sizes, drive).with(|config| config.ports = Some(2));
            let pause = Duration::from_micros(100 * seed as u64);
            emulate(&config, |comm| two_at_once(comm, calls, seed as u64, pause)).unwrap();
        }
    }
}

#[test]
fn two_threads_of_every_rank_over_slow_wires() {
    for seed in 10..16 {
        let sizes: &[u32] = [&[2_u32][..], &[2, 2], &[2, 3]][seed as usize % 3];
        let drive = DRIVES[seed as usize / 3 % 2];
        let config = config(sizes, drive).with(|config| config.latency = latency(seed));
        emulate(&config, |comm| two_at_once(comm, 300, seed, Duration::from_micros(500))).unwrap();
    }
}

#[test]
fn two_threads_of_sixteen_ranks() {
    let config = config(&[4, 4], Drive::Inline);
    emulate(&config, |comm| two_at_once(comm, 300, 20, Duration::from_micros(200))).unwrap();
}

#[test]
fn two_threads_of_every_process() {
    for (n, torus, drive) in [(2, "2", "inline"), (6, "3x2", "inline"), (4, "2x2", "workers")] {
        ranks(n, "two_at_once", &[("HOPBINE_TORUS", torus), ("HOPBINE_DRIVE", drive)]);
    }
    let per_node = [("HOPBINE_TORUS", "2"), ("HOPBINE_RANKS_PER_NODE", "2")];
    ranks(4, "two_at_once", &per_node);
    let library = std::env::current_exe().unwrap().with_file_name("libtofucom_emu.so");
    let library = library.to_str().unwrap();
    ranks(2, "two_at_once", &[("HOPBINE_BACKEND", "tofu"), ("HOPBINE_UTOFU_LIB", library)]);
}

/// One thread has active operations on two communicators; even ranks wait for the first communicator's operation
/// first, odd ranks for the second's.
fn opposite_orders(comm: &Communicator) {
    let second = comm.duplicate().unwrap();
    let is_even = comm.rank().is_multiple_of(2);
    let n = u64::from(comm.size());
    for (round, len) in [1, 3, 200, 5000, 60_000].into_iter().cycle().take(40).enumerate() {
        let mine = vec![u64::from(comm.rank()) + round as u64; len];
        let (mut sum, mut max) = (vec![0; len], vec![0; len]);
        let waited = comm.scope(|first| {
            second.scope(|other| {
                let a = first.allreduce(&mine, &mut sum, Op::Sum)?;
                let b = other.allreduce(&mine, &mut max, Op::Max)?;
                match (round % 3, is_even) {
                    (0, true) => a.wait().map(drop).and(b.wait().map(drop)),
                    (0, false) => b.wait().map(drop).and(a.wait().map(drop)),
                    (1, true) => {
                        while !a.test() {}
                        b.wait().map(drop)
                    }
                    (1, false) => {
                        while !b.test() {}
                        a.wait().map(drop)
                    }
                    // Waits at the gates of one communicator while the other communicator's operation is active.
                    (_, true) => comm.barrier().and(b.wait().map(drop)).and(second.barrier()),
                    (_, false) => b.wait().map(drop).and(comm.barrier()).and(second.barrier()),
                }
            })
        });
        waited.unwrap();
        let of_ranks = n * (n - 1) / 2 + n * round as u64;
        assert_eq!(sum, vec![of_ranks; len], "round {round}");
        assert_eq!(max, vec![n - 1 + round as u64; len], "round {round}");
    }
    drop(second);
}

#[test]
fn one_thread_waits_in_opposite_orders() {
    for drive in DRIVES {
        for sizes in [&[2][..], &[2, 2], &[5]] {
            let timeout = Duration::from_secs(10);
            let on_timeout = OnTimeout::Fail;
            let config = config(sizes, drive).with(|config| {
                config.timeout = timeout;
                config.on_timeout = on_timeout;
            });
            emulate(&config, opposite_orders).unwrap();
        }
    }
}

/// Makes threads run one after the other, in a given order.
struct Turns(Mutex<usize>, Condvar);

impl Turns {
    fn wait_for(&self, place: usize) {
        let turn = self.1.wait_while(self.0.lock().unwrap(), |turn| *turn != place).unwrap();
        drop(turn);
    }

    fn pass(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }
}

/// Each rank has a thread for each of `N` duplicates, and drops them in its own order, while the parent is in use.
fn dropped_in_any_order(comm: &Communicator) {
    const N: usize = 4;
    let duplicates: Vec<Communicator> = (0..N).map(|_| comm.duplicate().unwrap()).collect();
    let rank = comm.rank() as usize;
    let turns = Turns(Mutex::new(0), Condvar::new());
    std::thread::scope(|threads| {
        for (index, duplicate) in duplicates.into_iter().enumerate() {
            let turns = &turns;
            let place = if rank.is_multiple_of(2) { index + rank } else { 2 * N - index + rank };
            threads.spawn(move || {
                checked(&duplicate, 100 + index);
                checked(&duplicate, 3000 + index);
                turns.wait_for(place % N);
                turns.pass();
                drop(duplicate);
            });
        }
        for count in 0..100 {
            checked(comm, count);
        }
    });
}

#[test]
fn ranks_drop_in_different_orders() {
    for drive in DRIVES {
        for seed in 0..10 {
            let config = config(&[2, 2], drive).with(|config| {
                config.ports = Some(2);
                config.latency = latency(seed);
            });
            emulate(&config, dropped_in_any_order).unwrap();
        }
    }
}

fn one_after_the_other(comm: &Communicator, rounds: usize) {
    for round in 0..rounds {
        let second = comm.duplicate().unwrap_or_else(|error| panic!("round {round}: {error}"));
        second.barrier().unwrap();
        checked(&second, [10, 300, 2000][round % 3]);
        match round % 3 {
            0 => {
                // A duplicate of the duplicate, not of the original.
                let third = second.duplicate().unwrap();
                checked(&third, 77);
                drop(third);
                checked(&second, 78);
            }
            1 => {
                let third = comm.duplicate().unwrap();
                drop(second);
                checked(&third, 79);
            }
            _ => drop(second),
        }
    }
    checked(comm, 500);
}

#[test]
fn two_hundred_one_after_the_other() {
    for (sizes, drive, reg_cache) in [
        (&[2, 2][..], Drive::Inline, false),
        (&[3], Drive::Inline, true),
        (&[2], Drive::Workers, true),
        (&[1], Drive::Inline, false),
    ] {
        let config = config(sizes, drive).with(|config| {
            config.reg_cache = reg_cache;
            config.ports = Some(2);
        });
        emulate(&config, |comm| one_after_the_other(comm, 200)).unwrap();
    }
}

#[test]
fn memory_comes_back() {
    ranks(2, "one_after_the_other", &[]);
    ranks(3, "one_after_the_other", &[("HOPBINE_DRIVE", "workers"), ("HOPBINE_PORTS", "2")]);
}

/// Creates `n` VCQs for this rank's node, on the TNI with index `tni`.
fn take_vcqs(tni: usize, n: usize) -> Vec<Vcq> {
    let api = Api::emulated();
    let tni = api.onesided_tnis().unwrap()[tni];
    (0..n).map(|_| Vcq::create(api, tni, VcqFlags::NONE).unwrap()).collect()
}

/// A communicator needs no VCQ: all others are taken. The port has a CQ of its own.
#[test]
fn a_communicator_costs_no_vcq() {
    let config = config(&[2, 2], Drive::Inline).with(|config| config.ports = Some(1));
    emulate(&config, |comm| {
        let taken = take_vcqs(0, VCQS - VCQS_OF_A_CQ);
        let second = comm.duplicate().unwrap();
        checked(&second, 3000);
        let row = comm.sub_box(&[0]).unwrap();
        checked(&row, 3000);
        drop(taken);
    })
    .unwrap();
}

/// Many communicators, with active operations on many of them. Several threads drop some of the communicators, in
/// any order.
fn many_at_once(comm: &Communicator, n: usize) {
    let mut all: Vec<Communicator> = Vec::new();
    for index in 0..n {
        all.push(match index % 3 {
            0 => comm.duplicate().unwrap(),
            1 => all[index / 2].duplicate().unwrap(),
            _ => comm.split(Some(comm.rank() % 2), -i64::from(comm.rank())).unwrap().unwrap(),
        });
    }
    let mut persistent = Vec::new();
    for (index, other) in all.iter().enumerate().filter(|(index, _)| index % 5 == 0) {
        let mine = vec![u64::from(other.rank()) + index as u64; 1 + index % 700];
        let mut allreduce = other.allreduce_init(mine, Op::Sum).unwrap();
        allreduce.start().unwrap();
        persistent.push((index, u64::from(other.size()), allreduce));
    }
    let mut rng = SmallRng::seed_from_u64(u64::from(comm.rank()));
    all.shuffle(&mut rng);
    let mut halves = all.split_off(n / 2);
    std::thread::scope(|threads| {
        threads.spawn(move || all.clear());
        threads.spawn(move || halves.drain(..).for_each(drop));
        persistent.shuffle(&mut rng);
        for (index, size, mut allreduce) in persistent {
            if rng.random_bool(0.1) {
                // The drop also waits.
                drop(allreduce);
                continue;
            }
            allreduce.wait().unwrap();
            let sum = size * (size - 1) / 2 + size * index as u64;
            assert!(allreduce.buffer().unwrap().iter().all(|&value| value == sum), "{index}");
        }
    });
    checked(comm, 100);
}

#[test]
fn thousands_at_once() {
    emulate(&config(&[2, 2], Drive::Inline), |comm| many_at_once(comm, 5000)).unwrap();
    emulate(&config(&[2], Drive::Workers), |comm| many_at_once(comm, 1000)).unwrap();
}
