//! Barriers and reductions over shared memory in groups of ranks, as on hosts with many cores.

use std::time::{SystemTime, UNIX_EPOCH};

use hopbine::reduce::{Dtype, Op};
use hopbine::torus::Collective;
use hopbine::{Call, Communicator, Error, Fault, GatesInfo, init};

use crate::common::calls::check;
use crate::common::processes::{ranks, run_scenario};
use crate::common::reference::Case;

/// The entry point of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| {
        Some(match name {
            "in_groups" => in_groups,
            "many" => many,
            "differs_in_groups" => differs_in_groups,
            _ => return None,
        })
    });
}

fn n_groups(info: &GatesInfo) -> usize {
    match info {
        GatesInfo::FlatBuffer { groups, .. } => *groups,
        other => panic!("{other:?}"),
    }
}

/// A number without a short binary form, different on each rank.
fn odd(rank: u32, at: usize) -> f64 {
    1.0 / f64::from(3 + rank) + at as f64 * 0.1
}

/// Sums of floats have the same bits on all ranks, whether in place or not.
fn sums(comm: &Communicator, count: usize) {
    let mine: Vec<f64> = (0..count).map(|at| odd(comm.rank(), at)).collect();
    let mut sum = vec![0.0; count];
    comm.allreduce(&mine, &mut sum, Op::Sum).unwrap();
    let mut again = mine.clone();
    comm.allreduce_in_place(&mut again, Op::Sum).unwrap();
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
    assert_eq!(bits(&sum), bits(&again));
    let mut all = vec![0u64; count * comm.size() as usize];
    comm.allgather(&bits(&sum), &mut all).unwrap();
    for (at, found) in sum.iter().enumerate() {
        let want: f64 = (0..comm.size()).map(|rank| odd(rank, at)).sum();
        assert!((found - want).abs() < 1e-9 * want, "{found} {want}");
        let of = |rank| all[rank * count + at];
        assert!((0..comm.size() as usize).all(|rank| of(rank) == found.to_bits()));
    }
}

/// No rank leaves a barrier before all ranks have entered it, whichever rank is late.
fn barriers(comm: &Communicator) {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    for late in 0..comm.size() {
        if comm.rank() == late {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        let came = now();
        comm.barrier().unwrap();
        let left = now();
        let mut all = vec![0; comm.size() as usize];
        comm.allgather(&[came], &mut all).unwrap();
        assert!(all.iter().all(|&came| came <= left), "{late} was late: {all:?}, {left}");
    }
}

fn in_groups() {
    let world = init().unwrap();
    let comm = world.communicator();
    let want: usize = std::env::var("HOPBINE_TEST_GROUPS").unwrap().parse().unwrap();
    assert_eq!(n_groups(&world.info().gates), want);
    for count in [0, 1, 7, 8, 500, 1024, 1025, 4000] {
        sums(comm, count);
    }
    for root in 0..comm.size() {
        for collective in Collective::ALL {
            if root > 0 && !collective.is_rooted() {
                continue;
            }
            for count in [0, 1, 13, 1009] {
                check(comm, &Case { collective, n_ranks: comm.size(), count, root }, "default");
            }
        }
    }
    barriers(comm);
    // Requests between the calls; requests do not use groups.
    let me = u64::from(comm.rank());
    let n = u64::from(comm.size());
    for round in 0..200 {
        let (mine, mut sums) = ([me], [[0u64]; 7]);
        comm.scope(|scope| {
            for sum in &mut sums {
                // The scope waits for the request at its end.
                _ = scope.allreduce(&mine, sum, Op::Sum)?;
            }
            let mut sum = [me + round];
            comm.allreduce_in_place(&mut sum, Op::Sum)?;
            assert_eq!(sum, [n * (n - 1) / 2 + n * round]);
            let mut largest = [me];
            let root = (round % n) as u32;
            comm.reduce_in_place(&mut largest, Op::Max, root)?;
            assert!(comm.rank() != root || largest == [n - 1]);
            comm.barrier()
        })
        .unwrap();
        assert_eq!(sums, [[n * (n - 1) / 2]; 7]);
    }
    world.finish().unwrap();
}

#[test]
fn groups_serve_barriers_and_reductions() {
    for (n, group, groups) in
        [(5, "2", "3"), (6, "3", "2"), (4, "1", "4"), (4, "0", "0"), (4, "4", "0")]
    {
        let set = [
            ("HOPBINE_BACKEND", "shm"),
            ("HOPBINE_SHM_GROUP", group),
            ("HOPBINE_TEST_GROUPS", groups),
        ];
        ranks(n, "in_groups", &set);
    }
}

fn many() {
    let world = init().unwrap();
    let comm = world.communicator();
    assert_eq!(n_groups(&world.info().gates), 9);
    let sum = Call { op: Some(Op::Sum), ..Call::new(Collective::Allreduce, 1, Dtype::F64) };
    assert!(comm.uses_gates(&sum));
    let explained = comm.explain_started(&sum).unwrap();
    assert_ne!(explained.by, "flat buffer");
    let gather = Call::new(Collective::Allgather, 1, Dtype::F64);
    assert!(!comm.uses_gates(&gather));
    sums(comm, 3);
    barriers(comm);
    world.finish().unwrap();
}

/// More ranks than the number up to which ranks read each other's contributions directly.
#[test]
fn many_ranks_reduce_in_groups_only() {
    ranks(66, "many", &[("HOPBINE_BACKEND", "shm"), ("HOPBINE_SHM_GROUP", "8")]);
}

/// Whichever rank gives another count, the call fails on all ranks that need its result, and the next is served.
fn differs_in_groups() {
    let world = init().unwrap();
    let comm = world.communicator();
    comm.spare();
    for odd in 0..comm.size() {
        let values = vec![1u64; if comm.rank() == odd { 2 } else { 1 }];
        let mut into = values.clone();
        let check = |outcome| {
            let Err(Error::Lost { blame, .. }) = outcome else { panic!("{odd}: {outcome:?}") };
            assert_eq!(blame.fault, Fault::Elsewhere);
            assert!([blame.rank, blame.by].contains(&odd), "{odd}: {blame}");
        };
        check(comm.allreduce(&values, &mut into, Op::Sum));
        for root in 0..comm.size() {
            let reduced = comm.reduce(&values, &mut into, Op::Sum, root);
            if comm.rank() == root {
                check(reduced);
            }
        }
        sums(comm, 3);
        comm.barrier().unwrap();
    }
    world.finish().unwrap();
}

#[test]
fn a_mismatch_in_groups_ends_on_all_ranks() {
    let set = [("HOPBINE_BACKEND", "shm"), ("HOPBINE_SHM_GROUP", "2")];
    let limit = [("HOPBINE_TIMEOUT", "10"), ("HOPBINE_ON_TIMEOUT", "fail")];
    ranks(5, "differs_in_groups", &[set, limit].concat());
}
