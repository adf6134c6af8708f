//! Barriers and small allreduces on the barrier gates: the same results as by plan, on shapes
//! that take the butterfly and on shapes that take the tree, with threads and with processes.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::processes::{ranks, run_scenario};
use hopbine::Call;
use hopbine::reduce::{Datatype, Dtype, Op};
use hopbine::torus::collectives::Collective;
use hopbine::torus::geometry::Shape;
use hopbine::{
    CallOptions, Communicator, Drive, EmulationConfig, Error, Fault, Hardware, OnTimeout, emulate,
    init,
};

/// The entry of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| match name {
        "same_results" => Some(|| same_results(init().unwrap().communicator())),
        "mismatch" => Some(|| mismatch(init().unwrap().communicator())),
        _ => None,
    });
}

const OPS: [Op; 6] = [Op::Sum, Op::Min, Op::Max, Op::BitAnd, Op::BitOr, Op::BitXor];

fn by(comm: &Communicator, hardware: Hardware) -> Communicator {
    comm.with(CallOptions::new().hardware(hardware))
}

/// Values of both signs, equal ones, and such whose sum wraps.
fn value(rank: u32, index: usize) -> u64 {
    let mixed = (u64::from(rank) / 2 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.rotate_left(7 * index as u32) ^ (u64::MAX << index)
}

fn compare<T: Datatype + PartialEq + std::fmt::Debug>(comm: &Communicator, of: fn(u64) -> T) {
    for count in 1..=6 {
        let mine: Vec<T> = (0..count).map(|index| of(value(comm.rank(), index))).collect();
        for op in OPS {
            let [mut gates, mut plan] = [mine.clone(), vec![of(0); count]];
            by(comm, Hardware::Always).allreduce_in_place(&mut gates, op).unwrap();
            by(comm, Hardware::Never).allreduce(&mine, &mut plan, op).unwrap();
            assert_eq!(gates, plan, "{op} of {count} on {}", comm.shape());
            let mut auto = vec![of(0); count];
            comm.allreduce(&mine, &mut auto, op).unwrap();
            assert_eq!(auto, plan);
        }
    }
}

fn same_results(comm: &Communicator) {
    compare::<u64>(comm, |value| value);
    compare::<i64>(comm, |value| value as i64);
    // Gates round once and exactly: with integers in doubles both ways are exact.
    let mine = [f64::from(comm.rank()), 0.25, -3.0];
    let [mut gates, mut plan] = [mine; 2];
    by(comm, Hardware::Always).allreduce_in_place(&mut gates, Op::Sum).unwrap();
    by(comm, Hardware::Never).allreduce_in_place(&mut plan, Op::Sum).unwrap();
    assert_eq!(gates, plan);
    // Where additions one by one lose everything, the gates do not.
    let mut big = [match comm.rank() {
        0 => 1.0,
        1 => 1e18,
        rank if rank == comm.size() - 1 => -1e18,
        _ => 0.0,
    }];
    by(comm, Hardware::Always).allreduce_in_place(&mut big, Op::Sum).unwrap();
    if comm.size() > 2 {
        assert_eq!(
            big,
            [1.0],
            "only the device's gates add exactly: this needs the emulated device"
        );
    }
    for round in 0..200 {
        by(comm, [Hardware::Auto, Hardware::Always, Hardware::Never][round % 3]).barrier().unwrap();
    }
}

fn config(shape: &str, drive: Drive) -> EmulationConfig {
    EmulationConfig::new(shape.parse::<Shape>().unwrap()).with(|config| config.drive = drive)
}

#[test]
fn same_results_with_threads() {
    for shape in ["1", "2", "3", "8", "2x3", "4x2", "3x3", "2x3x2"] {
        emulate(&config(shape, Drive::Inline), same_results).unwrap();
    }
    emulate(&config("3", Drive::Workers), same_results).unwrap();
}

#[test]
fn same_results_with_processes() {
    for (n, torus) in [(4, "2x2"), (3, "3"), (6, "2x3")] {
        ranks(n, "same_results", &[("HOPBINE_TORUS", torus)]);
    }
    ranks(6, "same_results", &[("HOPBINE_TORUS", "3"), ("HOPBINE_RANKS_PER_NODE", "2")]);
}

#[test]
fn the_gates_are_used_only_where_they_give_the_same_bits() {
    emulate(&config("2x2", Drive::Inline), |comm| {
        let uses = |options: CallOptions, dtype, op, count| {
            let mut call = Call::new(Collective::Allreduce, count, dtype);
            call.op = Some(op);
            comm.with(options).uses_gates(&call)
        };
        let auto = CallOptions::new;
        assert!(comm.uses_gates(&Call::new(Collective::Barrier, 0, Dtype::U8)));
        assert!(uses(auto(), Dtype::U64, Op::Sum, 6));
        assert!(!uses(auto(), Dtype::U64, Op::Sum, 7));
        assert!(!uses(auto(), Dtype::U64, Op::Sum, 0));
        assert!(!uses(auto(), Dtype::U64, Op::Product, 1));
        assert!(!uses(auto(), Dtype::F64, Op::Sum, 1));
        assert!(!uses(auto().algorithm("mixed"), Dtype::U64, Op::Sum, 1));
        assert!(!uses(auto().hardware(Hardware::Never), Dtype::U64, Op::Sum, 1));
        let always = || auto().hardware(Hardware::Always);
        assert!(uses(always(), Dtype::F64, Op::Sum, 3));
        assert!(!uses(always(), Dtype::F64, Op::Sum, 4));
        assert!(!uses(always(), Dtype::F64, Op::Max, 1));
    })
    .unwrap();
}

#[test]
fn what_the_gates_cannot_do_is_refused_if_they_must() {
    emulate(&config("3", Drive::Inline), |comm| {
        let gates = by(comm, Hardware::Always);
        let reason = |error: Error| match error {
            Error::NotServed { reason, .. } => reason,
            other => panic!("{other}"),
        };
        let refused = gates.allreduce_in_place(&mut [1.0f64; 4], Op::Sum).unwrap_err();
        assert_eq!(reason(refused), "they take 1 to 3 elements, not 4");
        let refused = gates.allreduce_in_place(&mut [1.0f64], Op::Max).unwrap_err();
        assert!(reason(refused).contains("max on"));
        let refused = gates.bcast(&mut [1u64], 0).unwrap_err();
        assert!(reason(refused).contains("bcast"));
        let refused = gates.barrier_init().map(drop).unwrap_err();
        assert!(reason(refused).contains("blocking"));
        let error = gates.allreduce(&[1u64, 2], &mut [0; 3], Op::Sum).unwrap_err();
        assert!(matches!(error, Error::BufferLength { .. }));
        gates.barrier().unwrap();
    })
    .unwrap();
}

/// Different operations on the gates: every rank is told, and can go on.
fn mismatch(comm: &Communicator) {
    let gates = by(comm, Hardware::Always);
    for _ in 0..3 {
        let outcome = match comm.rank() {
            0 => gates.allreduce_in_place(&mut [1u64; 2], Op::Sum),
            _ => gates.allreduce_in_place(&mut [1u64; 2], Op::Max),
        };
        let collective = Collective::Allreduce;
        assert_eq!(outcome, Err(Error::GatesMismatch { rank: comm.rank(), collective }));
        // The plan's messages are not the gates'.
        by(comm, Hardware::Never).barrier().unwrap();
        let mut sum = [1u64];
        gates.allreduce_in_place(&mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [u64::from(comm.size())]);
    }
}

#[test]
fn a_mismatch_is_told_to_every_rank() {
    for shape in ["2", "3", "2x2", "5"] {
        emulate(&config(shape, Drive::Inline), mismatch).unwrap();
    }
    // Over other wires the plan serves each of these calls by itself.
    ranks(3, "mismatch", &[("HOPBINE_BACKEND", "emu")]);
}

/// A rank that waits at the gates moves its other operations on.
#[test]
fn waiting_at_the_gates_does_not_stop_what_is_under_way() {
    for drive in [Drive::Inline, Drive::Workers] {
        emulate(&config("2x2", drive), |comm| {
            for _ in 0..20 {
                let mine = vec![1u32; 30_000];
                let mut sum = vec![0; 30_000];
                comm.scope(|scope| {
                    let request = scope.allreduce(&mine, &mut sum, Op::Sum)?;
                    if comm.rank().is_multiple_of(2) {
                        // The others come here only when the sum is done.
                        comm.barrier()?;
                        request.wait().map(drop)
                    } else {
                        request.wait()?;
                        comm.barrier()
                    }
                })
                .unwrap();
                assert_eq!(sum, vec![4; 30_000]);
            }
        })
        .unwrap();
    }
}

#[test]
fn a_rank_that_does_not_come_is_a_timeout() {
    let config = config("3", Drive::Inline).with(|config| {
        config.timeout = std::time::Duration::from_millis(300);
        config.on_timeout = OnTimeout::Fail;
    });
    let n_failed = AtomicUsize::new(0);
    let outcomes = emulate(&config, |comm| match comm.rank() {
        2 => {
            // One that leaves would be found out at once.
            while n_failed.load(Ordering::Relaxed) < 2 {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            Ok(())
        }
        _ => comm.barrier().inspect_err(|_| _ = n_failed.fetch_add(1, Ordering::Relaxed)),
    })
    .unwrap();
    assert_eq!(outcomes[2], Ok(()));
    for (rank, outcome) in outcomes.iter().enumerate().take(2) {
        // Whoever is first tells the other.
        let (Err(Error::Timeout { cause: Some(blame), .. }) | Err(Error::Lost { blame, .. })) =
            outcome
        else {
            panic!("{rank}: {outcome:?}");
        };
        assert_eq!((blame.rank, blame.fault), (2, Fault::Absent), "{rank}: {outcome:?}");
    }
}
