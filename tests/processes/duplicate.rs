//! Several communicators of the same ranks at once: from two threads of every rank, from one
//! thread, made and closed in many ways; with ranks as threads and as processes.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::common::calls::{checked, config};
use crate::common::mixed::{Mixed, latency};
use crate::common::processes::{ranks, run_scenario};
use hopbine::reduce::{Dtype, Op};
use hopbine::torus::collectives::Collective;
use hopbine::world::Call;
use hopbine::{
    CallOptions, Communicator, Drive, Duplicate, EmulationConfig, Error, Hardware, emulate, init,
};
use utofu_sys::Api;
use utofu_sys::handles::{Vcq, VcqFlags};

const DRIVES: [Drive; 2] = [Drive::Inline, Drive::Workers];
/// VCQs on a TNI.
const VCQS: usize = 64;

/// The entry of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| match name {
        "two_at_once" => Some(|| {
            let world = init().unwrap();
            two_at_once(world.communicator(), 600, 40, Duration::from_micros(300));
            opposite_orders(world.communicator());
            closed_in_any_order(world.communicator());
            world.finish().unwrap();
        }),
        "one_after_the_other" => Some(|| {
            let world = init().unwrap();
            one_after_the_other(world.communicator(), 20);
            let before = bytes_mapped();
            one_after_the_other(world.communicator(), 200);
            // One duplicate maps more than half a megabyte for each port.
            let grown = bytes_mapped().saturating_sub(before);
            assert!(grown < 200 * 200_000, "{grown} bytes more after 200 duplicates");
            world.finish().unwrap();
        }),
        "exhausted" => Some(|| {
            let world = init().unwrap();
            let of_node = VCQS / 2;
            let error = exhaust(world.communicator(), of_node - 1);
            println!("SAID {error}");
            world.finish().unwrap();
        }),
        _ => None,
    });
}

/// Addresses that this process uses.
fn bytes_mapped() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 4096
}

fn barrier() -> Call {
    Call::new(Collective::Barrier, 0, Dtype::U8)
}

/// Every rank has two threads, each with its communicator, that do not wait for each other.
fn two_at_once(comm: &Communicator, calls: usize, seed: u64, longest_pause: Duration) {
    let second = comm.duplicate().unwrap();
    assert_eq!((second.rank(), second.size()), (comm.rank(), comm.size()));
    assert_eq!((second.n_ports(), second.has_workers()), (comm.n_ports(), comm.has_workers()));
    let mixed = |seed, first| Mixed { calls, seed, longest_pause, first };
    std::thread::scope(|threads| {
        threads.spawn(|| mixed(seed + 1000, 1 << 20).run(&second));
        mixed(seed, 0).run(comm);
    });
    second.finish().unwrap();
}

#[test]
fn two_threads_of_every_rank() {
    for (seed, sizes) in [&[2][..], &[3], &[2, 2], &[2, 3]].into_iter().enumerate() {
        for (drive, calls) in [(Drive::Inline, 2000), (Drive::Workers, 500)] {
            let config = EmulationConfig { ports: Some(2), ..config(sizes, drive) };
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
        let config = EmulationConfig { latency: latency(seed), ..config(sizes, drive) };
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

/// One thread has operations of both under way; even ranks wait for the one first, odd ranks
/// for the other.
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
                    // At the gates of the one, with the other under way.
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
    second.finish().unwrap();
}

#[test]
fn one_thread_waits_in_opposite_orders() {
    for drive in DRIVES {
        for sizes in [&[2][..], &[2, 2], &[5]] {
            let timeout = Duration::from_secs(10);
            let config = EmulationConfig { timeout, ..config(sizes, drive) };
            emulate(&config, opposite_orders).unwrap();
        }
    }
}

/// Lets threads go one after the other, in an order.
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

/// Each rank has a thread for each of some duplicates, and begins to close them in an order of
/// its own, while the parent is in use.
fn closed_in_any_order(comm: &Communicator) {
    const N: usize = 4;
    let duplicates: Vec<Duplicate<'_>> = (0..N).map(|_| comm.duplicate().unwrap()).collect();
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
                duplicate.finish().unwrap();
            });
        }
        for count in 0..100 {
            checked(comm, count);
        }
    });
}

#[test]
fn ranks_close_in_different_orders() {
    for drive in DRIVES {
        for seed in 0..10 {
            let config = EmulationConfig {
                ports: Some(2),
                latency: latency(seed),
                ..config(&[2, 2], drive)
            };
            emulate(&config, closed_in_any_order).unwrap();
        }
    }
}

/// More duplicates than there are VCQs and gates: they come back.
fn one_after_the_other(comm: &Communicator, rounds: usize) {
    for round in 0..rounds {
        let second = comm.duplicate().unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert!(second.uses_gates(&barrier()), "round {round}: no gates are left");
        second.barrier().unwrap();
        checked(&second, [10, 300, 2000][round % 3]);
        match round % 4 {
            0 => second.finish().unwrap(),
            1 => {
                // Of the duplicate, not of the original.
                let third = second.duplicate().unwrap();
                checked(&third, 77);
                third.finish().unwrap();
                checked(&second, 78);
            }
            2 => {
                let third = comm.duplicate().unwrap();
                second.finish().unwrap();
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
        let config = EmulationConfig { reg_cache, ports: Some(2), ..config(sizes, drive) };
        emulate(&config, |comm| one_after_the_other(comm, 200)).unwrap();
    }
}

#[test]
fn memory_comes_back() {
    ranks(2, "one_after_the_other", &[]);
    ranks(3, "one_after_the_other", &[("HOPBINE_DRIVE", "workers"), ("HOPBINE_PORTS", "2")]);
}

/// Makes duplicates until there is an error, after `n`, all of which work; then the original
/// still does, and one more can be made when one has been given up.
fn exhaust(comm: &Communicator, n: usize) -> Error {
    let mut all = Vec::new();
    let error = loop {
        match comm.duplicate() {
            Ok(duplicate) => all.push(duplicate),
            Err(error) => break error,
        }
    };
    assert_eq!(all.len(), n);
    for duplicate in &all {
        checked(duplicate, 20);
    }
    checked(comm, 1000);
    assert_eq!(comm.duplicate().map(drop).unwrap_err(), error);
    drop(all.pop());
    let again = comm.duplicate().unwrap();
    checked(&again, 1000);
    error
}

#[test]
fn without_vcqs_all_ranks_get_the_same_error() {
    let config = EmulationConfig { ports: Some(1), ..config(&[2, 2], Drive::Inline) };
    let errors = emulate(&config, |comm| exhaust(comm, VCQS - 1)).unwrap();
    let Error::Duplicate { source } = &errors[0] else { panic!("{:?}", errors[0]) };
    assert_eq!(source.peer, Some(0));
    let text = errors[0].to_string();
    assert!(text.contains("rank 0: utofu_create_vcq") && text.contains("FULL"), "{text}");
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");

    // Two ranks on each node share what it has.
    let env = [("HOPBINE_TORUS", "2"), ("HOPBINE_RANKS_PER_NODE", "2"), ("HOPBINE_PORTS", "1")];
    for ended in ranks(4, "exhausted", &env) {
        assert!(ended.text.contains("SAID the communicator cannot be duplicated"), "{ended:?}");
        assert!(ended.text.contains("utofu_create_vcq"), "{ended:?}");
    }
}

/// Takes VCQs of this rank's node, on the TNI with this index.
fn take_vcqs(tni: usize, n: usize) -> Vec<Vcq> {
    let api = Api::emulated();
    let tni = api.onesided_tnis().unwrap()[tni];
    (0..n).map(|_| Vcq::create(api, tni, VcqFlags::NONE).unwrap()).collect()
}

/// One rank alone has no VCQs left, and only on the last port's TNI.
#[test]
fn a_rank_without_vcqs_keeps_nobody_waiting() {
    let errors = emulate(&config(&[3, 2], Drive::Inline), |comm| {
        let last = comm.n_ports() as usize - 1;
        let taken = take_vcqs(last, if comm.rank() == 4 { VCQS - 1 } else { 0 });
        let error = comm.duplicate().map(drop).unwrap_err();
        checked(comm, 100);
        drop(taken);
        let second = comm.duplicate().unwrap();
        checked(&second, 100);
        error
    })
    .unwrap();
    assert!(matches!(&errors[0], Error::Duplicate { source } if source.peer == Some(4)));
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
}

#[test]
fn any_thread_can_open_and_close() {
    let config = EmulationConfig { ports: Some(1), ..config(&[2, 2], Drive::Inline) };
    emulate(&config, |comm| {
        std::thread::scope(|threads| {
            // Neither thread is the rank's own; the device is.
            let open = || comm.duplicate();
            let taken = take_vcqs(0, VCQS - 1);
            let error = threads.spawn(open).join().unwrap().map(drop).unwrap_err();
            assert!(matches!(error, Error::Duplicate { .. }), "{error}");
            drop(taken);
            let second = threads.spawn(open).join().unwrap().unwrap();
            checked(&second, 3000);
            let third = second.with(CallOptions::new().ports(1));
            threads.spawn(move || drop(second)).join().unwrap();
            assert_eq!(third.barrier(), Err(Error::Closed));
        });
        let here = comm.duplicate().unwrap();
        checked(&here, 10);
    })
    .unwrap();
}

#[test]
fn options_are_inherited() {
    emulate(&config(&[3], Drive::Inline), |comm| {
        let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
        let second = by_plan.duplicate().unwrap();
        assert!(!second.uses_gates(&barrier()));
        let magic = comm.with(CallOptions::new().algorithm("magic"));
        let unknown = magic.duplicate().unwrap();
        let error = unknown.allreduce_in_place(&mut [0u64; 9], Op::Sum).unwrap_err();
        assert!(matches!(error, Error::UnknownAlgorithm { .. }));
    })
    .unwrap();
}
