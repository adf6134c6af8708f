//! Several worlds in sequence in the same processes.

use crate::common::four_at_a_time;
use crate::common::processes::{ranks, run_scenario};
use hopbine::reduce::Op;
use hopbine::{CallOptions, Error, GatesInfo, Hardware, init};

/// The entry point of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| {
        Some(match name {
            "again" => again,
            "after_failures" => after_failures,
            "with_handles" => with_handles,
            _ => return None,
        })
    });
}

fn again() {
    for round in 0..20 {
        let world = init().unwrap();
        let mut sum = [round + world.communicator().rank()];
        world.communicator().allreduce_in_place(&mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [3 * round + 3]);
        world.finish().unwrap();
    }
}

/// Some ranks begin the next world before other ranks have seen that the last world has ended everywhere.
#[test]
fn ranks_meet_again_and_again() {
    four_at_a_time(["emu", "shm"], |backend| {
        ranks(3, "again", &[("HOPBINE_BACKEND", backend), ("HOPBINE_TIMEOUT", "10")]);
    });
}

/// Each world fails, since its ranks make different calls.
fn after_failures() {
    for _ in 0..3 {
        let world = init().unwrap();
        let comm = world.communicator().with(CallOptions::new().hardware(Hardware::Never));
        let mut sum = [1; 3];
        // Other ranks may fail before this rank has received everything.
        let outcome = comm.allreduce_in_place(&mut sum, Op::Sum).and_then(|()| {
            assert_eq!(sum, [3; 3]);
            match comm.rank() {
                1 => comm.barrier(),
                _ => comm.allreduce_in_place(&mut sum, Op::Sum),
            }
        });
        assert!(matches!(outcome, Err(Error::Lost { .. } | Error::Wire { .. })), "{outcome:?}");
    }
}

#[test]
fn a_world_that_has_failed_can_be_followed_by_another() {
    four_at_a_time(["emu", "shm"], |backend| {
        ranks(3, "after_failures", &[("HOPBINE_BACKEND", backend), ("HOPBINE_TIMEOUT", "10")]);
    });
}

/// Threads of this process.
fn n_threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// A device has 88 queues on each interface, and gates for fewer communicators than these.
fn with_handles() {
    let mut handles = Vec::new();
    let mut before = None;
    for _ in 0..40 {
        let world = init().unwrap();
        let info = world.info();
        assert!(info.workers > 0 && matches!(info.gates, GatesInfo::Connected { .. }), "{info:?}");
        let comm = world.communicator().duplicate().unwrap();
        let mut sum = [1u32; 10_000];
        comm.allreduce_in_place(&mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [2; 10_000]);
        handles.push((comm.duplicate().unwrap(), comm));
        world.finish().unwrap();
        for (first, second) in &handles {
            for comm in [first, second] {
                assert!(comm.has_ended());
                assert_eq!(comm.barrier(), Err(Error::Closed));
                let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
                assert_eq!(by_plan.allreduce_in_place(&mut sum, Op::Sum), Err(Error::Closed));
            }
        }
        assert_eq!(n_threads(), *before.get_or_insert_with(n_threads));
    }
}

/// Handles of worlds that have ended keep no threads, queues and gates from later worlds.
#[test]
fn handles_of_ended_worlds_keep_nothing() {
    ranks(2, "with_handles", &[("HOPBINE_DRIVE", "workers"), ("HOPBINE_BACKEND", "emu")]);
}
