//! Barriers and small allreduces on the barrier gates: the same results as by plan, on shapes with a butterfly and
//! on shapes with a tree, with threads and with processes.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::processes::{ranks, run_scenario};
use hopbine::Call;
use hopbine::reduce::{Dtype, Op};
use hopbine::torus::choose::Wire;
use hopbine::torus::collectives::Collective;
use hopbine::torus::geometry::Shape;
use hopbine::{
    CallOptions, Communicator, Drive, EmulationConfig, Error, Fault, Hardware, OnTimeout, emulate,
    init,
};

/// The entry point of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| match name {
        "same_results" => Some(|| same_results(init().unwrap().communicator())),
        "reals" => Some(|| reals(init().unwrap().communicator())),
        "communicators" => Some(|| communicators(init().unwrap().communicator())),
        "mismatch" => Some(|| mismatch_of_all(init().unwrap().communicator())),
        _ => None,
    });
}

fn by(comm: &Communicator, hardware: Hardware) -> Communicator {
    comm.with(CallOptions::new().hardware(hardware))
}

/// Pairs, many of them with equal values.
fn pairs(value: Dtype, location: Dtype, count: u64, rank: u32, seed: u64) -> Vec<u8> {
    let of = |dtype, seed| vector(dtype, count, rank, seed);
    let (values, locations) = (of(value, seed), of(location, seed + 1));
    let size = value.size_bytes();
    values.chunks(size).zip(locations.chunks(size)).flat_map(|(v, l)| [v, l].concat()).collect()
}

/// Vectors of every type with edge cases; the same arguments give the same vector.
fn vector(dtype: Dtype, count: u64, rank: u32, seed: u64) -> Vec<u8> {
    if let Some((value, location)) = dtype.pair() {
        return pairs(value, location, count, rank, seed);
    }
    let float = |width: u32, fraction: u32| {
        let (sign, one) = (1u64 << (width - 1), 1u64 << fraction);
        let infinity = (sign - 1) >> fraction << fraction;
        let nan = infinity | one >> 1;
        vec![
            0,
            sign,
            infinity,
            infinity | sign,
            nan,
            nan | sign | 1,
            infinity | 1,
            1,
            sign | 1,
            infinity - 1,
        ]
    };
    let (size, special) = match dtype {
        Dtype::F16 => (2, float(16, 10)),
        Dtype::Bf16 => (2, float(16, 7)),
        Dtype::F32 | Dtype::ComplexF32 => (4, float(32, 23)),
        Dtype::F64 | Dtype::ComplexF64 => (8, float(64, 52)),
        integer => (
            integer.size_bytes(),
            vec![0, 1, 2, u64::MAX, u64::MAX - 1, 1 << (8 * integer.size_bytes() - 1)],
        ),
    };
    let numbers = count as usize * dtype.size_bytes() / size;
    let number = |at: u64| {
        let mixed = (seed ^ u64::from(rank) << 32 ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        match mixed >> 61 {
            0..3 => special[(mixed >> 8) as usize % special.len()],
            3 => mixed >> 8 & 1,
            _ => mixed,
        }
    };
    (0..numbers as u64).flat_map(|at| number(at).to_le_bytes()[..size].to_vec()).collect()
}

/// An allreduce of the bytes `mine`.
fn allreduce(
    comm: &Communicator,
    (dtype, op, count): (Dtype, Op, u64),
    mine: &[u8],
    in_place: bool,
) -> Vec<u8> {
    let mut result = if in_place { mine.to_vec() } else { vec![0xa5; mine.len()] };
    let call = Call { op: Some(op), in_place, ..Call::new(Collective::Allreduce, count, dtype) };
    // SAFETY: both buffers hold `count` elements.
    unsafe { comm.call(&call.at(comm, mine.as_ptr(), result.as_mut_ptr())) }.unwrap();
    result
}

/// Every operator on every type, for every length that fits the gates: the call uses gates where it should, and
/// gives the same bits as a plan.
fn compare(comm: &Communicator) {
    let (gates, plan) = (by(comm, Hardware::Always), by(comm, Hardware::Never));
    let ops = || Op::ALL.into_iter().chain(Op::LOCATIONS);
    let all = Dtype::ALL.into_iter().chain(Dtype::PAIRS);
    let all = all.flat_map(|dtype| ops().map(move |op| (dtype, op)));
    for (dtype, op) in all.filter(|(dtype, op)| op.defined_for(*dtype)) {
        let call = |count| Call { op: Some(op), ..Call::new(Collective::Allreduce, count, dtype) };
        let is_served =
            op != Op::Product && (op != Op::Sum || dtype.is_integer()) || comm.size() == 1;
        assert_eq!(comm.uses_gates(&call(1)), is_served, "{op} on {dtype}");
        let most = (1..400).take_while(|&count| comm.uses_gates(&call(count))).last().unwrap_or(0);
        let counts = [1, 2, 5, most / 2, most - most.min(1), most];
        for (seed, &count) in (0..).zip(counts.iter().filter(|&&count| (1..=most).contains(&count)))
        {
            let mine = vector(dtype, count, comm.rank(), 97 * seed + op as u64);
            let kind = (dtype, op, count);
            let expected = allreduce(&plan, kind, &mine, false);
            for (by, in_place) in [(&gates, false), (&gates, true), (comm, seed % 2 == 0)] {
                let got = allreduce(by, kind, &mine, in_place);
                assert_eq!(got, expected, "{op} of {count} {dtype} on {}", comm.shape());
            }
        }
    }
}

fn same_results(comm: &Communicator) {
    compare(comm);
    for round in 0..200 {
        by(comm, [Hardware::Auto, Hardware::Always, Hardware::Never][round % 3]).barrier().unwrap();
    }
}

/// Sums of floats for which the caller allows the rounding of the gates.
fn reals(comm: &Communicator) {
    let by_gates = comm.with(CallOptions::new().gate_sum());
    let n = f64::from(comm.size());
    let sum = |dtype: Dtype, numbers: &[u8]| {
        let kind = (dtype, Op::Sum, (numbers.len() / dtype.size_bytes()) as u64);
        let [gates, always, plan] =
            [&by_gates, &by(comm, Hardware::Always), &by(comm, Hardware::Never)]
                .map(|comm| allreduce(comm, kind, numbers, true));
        assert_eq!(gates, always, "{dtype}");
        (gates, plan)
    };
    // Gates round the exact sum once. Sums of integers in doubles are exact by gates and by plan.
    let doubles = [f64::from(comm.rank()), 0.25, -3.0].map(f64::to_ne_bytes).concat();
    let floats = [comm.rank() as f32, 0.25, -3.0].map(f32::to_ne_bytes).concat();
    for (dtype, numbers) in [
        (Dtype::F64, &doubles[..]),
        (Dtype::F32, &floats[..]),
        (Dtype::ComplexF64, &doubles[..16]),
        (Dtype::ComplexF32, &floats[..8]),
    ] {
        let (gates, plan) = sum(dtype, numbers);
        assert_eq!(gates, plan, "{dtype} on {}", comm.shape());
    }
    // A NaN result is the canonical NaN both ways, and sums of infinities agree. A sum of -0 is +0 by gates.
    let infinity = if comm.rank() == 0 { f64::INFINITY } else { f64::NEG_INFINITY };
    let (gates, plan) =
        sum(Dtype::F64, &[-f64::NAN, infinity, -0.0].map(f64::to_ne_bytes).concat());
    if comm.size() > 1 {
        assert_eq!(gates[..16], plan[..16]);
        assert_eq!((&gates[16..], &plan[16..]), (&[0; 8][..], &(-0.0f64).to_ne_bytes()[..]));
    }
    // Results that round differently: within one unit in the last place, for f32 after a second rounding.
    let mut tenth = [0.1f32];
    by_gates.allreduce_in_place(&mut tenth, Op::Sum).unwrap();
    assert_eq!(tenth[0], (n * f64::from(0.1f32)) as f32);
    // Separate additions lose all small addends here; the gates do not.
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
}

/// Whether a communicator has gates; all its ranks must agree.
fn has_gates(comm: &Communicator) -> bool {
    let has = comm.uses_gates(&Call::new(Collective::Barrier, 0, Dtype::U8));
    let mut all = [u32::from(has), u32::from(!has)];
    by(comm, Hardware::Never).allreduce_in_place(&mut all, Op::Max).unwrap();
    assert_eq!(all, [u32::from(has), u32::from(!has)], "some ranks have gates, and some have none");
    has
}

/// Rows, columns, and ranks in any order have their own gates and free them when they are dropped. If no gates are
/// free, all ranks use a plan.
fn communicators(comm: &Communicator) {
    for round in 0..20u32 {
        let backwards: Vec<u32> = (0..comm.size()).rev().collect();
        let n_dims = comm.shape().n_dims();
        let made = [
            comm.duplicate().unwrap(),
            comm.sub_box(&[round as usize % n_dims]).unwrap(),
            comm.group(&backwards).unwrap().expect("all are in it"),
            comm.split(Some(comm.rank() % 2), -i64::from(comm.rank())).unwrap().expect("a colour"),
        ];
        for one in &made {
            assert_eq!(has_gates(one), one.size() > 1, "round {round}, {}", one.shape());
            let mut sum = [i64::from(comm.rank()), -1];
            one.allreduce_in_place(&mut sum, Op::Min).unwrap();
            assert_eq!(sum[1], -1);
            one.barrier().unwrap();
        }
        if round == 0 {
            made.iter().filter(|one| one.size() > 1).for_each(compare);
        }
        let mut made = Vec::from(made);
        made.rotate_left(comm.rank() as usize % 4);
        while let Some(one) = made.pop() {
            drop(one);
        }
    }
    let mut made: Vec<Communicator> = Vec::new();
    // There are at most 16 chains on each of 6 TNIs; the relay gates may be used up earlier.
    while made.last().is_none_or(has_gates) {
        made.push(comm.duplicate().unwrap());
        assert!(made.len() < 97);
    }
    let explained =
        made.last().unwrap().explain(&Call::new(Collective::Barrier, 0, Dtype::U8)).unwrap();
    assert!(explained.why.contains("of this communicator has no free gates"), "{explained}");
    let mut sum = [1u64];
    for one in made.iter().rev() {
        one.allreduce_in_place(&mut sum, Op::Max).unwrap();
    }
    assert_eq!(sum, [1]);
    // Only rank 0 has freed its gates first; in a tree rank 0 may be the only rank that had no free gates.
    let first = made.remove(0);
    let again = if comm.rank() == 0 {
        drop(first);
        comm.duplicate().unwrap()
    } else {
        let again = comm.duplicate().unwrap();
        drop(first);
        again
    };
    assert!(!comm.size().is_power_of_two() || !has_gates(&again));
    drop(again);
    assert!(has_gates(&comm.duplicate().unwrap()));
}

#[test]
fn sums_of_floats_are_rounded_once_where_that_is_allowed() {
    for shape in ["1", "2", "3", "4x2", "3x3"] {
        emulate(&config(shape, Drive::Inline), reals).unwrap();
    }
    let config = config("3", Drive::Inline).with(|config| config.gate_sum = true);
    emulate(&config, |comm| {
        let sum = Call { op: Some(Op::Sum), ..Call::new(Collective::Allreduce, 1, Dtype::F64) };
        assert!(comm.uses_gates(&sum) && comm.duplicate().unwrap().uses_gates(&sum));
    })
    .unwrap();
}

#[test]
fn further_communicators_have_gates_while_gates_last() {
    for (shape, drive) in [("2x3", Drive::Inline), ("2x2", Drive::Workers), ("3", Drive::Inline)] {
        emulate(&config(shape, drive), communicators).unwrap();
    }
    ranks(
        4,
        "communicators",
        &[("HOPBINE_TORUS", "2"), ("HOPBINE_RANKS_PER_NODE", "2"), ("HOPBINE_SHM", "off")],
    );
}

#[test]
fn communicators_for_requests_leave_the_gates_to_others() {
    emulate(&config("4", Drive::Inline), |comm| {
        // More than there are chains.
        let made: Vec<_> = (0..97).map(|_| comm.duplicate_for_requests().unwrap()).collect();
        assert!(!has_gates(&made[0]) && has_gates(&comm.duplicate().unwrap()));
        let mut barrier = made[96].barrier_init().unwrap();
        barrier.start().unwrap();
        barrier.wait().unwrap();
    })
    .unwrap();
    // Flat buffers serve requests.
    let config = config("4", Drive::Inline).with(|config| config.wire = Wire::Memory);
    emulate(&config, |comm| assert!(has_gates(&comm.duplicate_for_requests().unwrap()))).unwrap();
}

fn config(shape: &str, drive: Drive) -> EmulationConfig {
    EmulationConfig::new(shape.parse::<Shape>().unwrap()).with(|config| config.drive = drive)
}

#[test]
fn same_results_with_threads() {
    for shape in ["1", "2", "3", "5", "7m", "8", "2x3", "4x2", "3x3", "2x3x2"] {
        emulate(&config(shape, Drive::Inline), same_results).unwrap();
    }
    emulate(&config("3", Drive::Workers), same_results).unwrap();
}

#[test]
fn same_results_with_processes() {
    for (n, torus) in [(4, "2x2"), (3, "3"), (6, "2x3")] {
        ranks(n, "same_results", &[("HOPBINE_TORUS", torus)]);
        ranks(n, "reals", &[("HOPBINE_TORUS", torus)]);
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
        assert!(uses(auto(), Dtype::I32, Op::LogicalOr, 384));
        assert!(!uses(auto(), Dtype::I32, Op::LogicalOr, 385));
        assert!(uses(auto(), Dtype::F32, Op::Max, 6));
        assert!(!uses(auto(), Dtype::F64, Op::Sum, 1));
        assert!(uses(auto().gate_sum(), Dtype::F64, Op::Sum, 3));
        assert!(uses(auto().gate_sum(), Dtype::ComplexF32, Op::Sum, 1));
        assert!(!uses(auto().gate_sum(), Dtype::ComplexF32, Op::Sum, 2));
        assert!(!uses(auto().gate_sum(), Dtype::F16, Op::Sum, 1));
        assert!(!uses(auto().algorithm("mixed"), Dtype::U64, Op::Sum, 1));
        assert!(!uses(auto().hardware(Hardware::Never), Dtype::U64, Op::Sum, 1));
        let always = || auto().hardware(Hardware::Always);
        assert!(uses(always(), Dtype::F64, Op::Sum, 3));
        assert!(!uses(always(), Dtype::F64, Op::Sum, 4));
        assert!(!uses(always(), Dtype::F64, Op::Product, 1));
        let why = |options: CallOptions, dtype, op, count| {
            let call = Call { op: Some(op), ..Call::new(Collective::Allreduce, count, dtype) };
            comm.with(options).explain(&call).unwrap()
        };
        assert_eq!(why(auto(), Dtype::I32, Op::Sum, 6).by, "gates");
        for (explained, reason) in [
            (why(auto(), Dtype::I32, Op::Sum, 7), "; not by gates, which take 1 to 6 elements"),
            (
                why(auto(), Dtype::F64, Op::Product, 1),
                "; not by gates: prod on f64 is not supported",
            ),
            (why(auto(), Dtype::F64, Op::Sum, 1), "(HOPBINE_GATE_SUM=1 permits it)"),
            (why(auto().ports(1), Dtype::I32, Op::Sum, 1), "; not by gates: a plan is asked for"),
        ] {
            assert!(explained.why.ends_with(reason) && explained.by != "gates", "{explained}");
        }
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
        assert_eq!(reason(refused), "4 elements are not supported, only 1 to 3");
        let refused = gates.allreduce_in_place(&mut [1.0f64], Op::Product).unwrap_err();
        assert!(reason(refused).contains("prod on"));
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

fn mismatch_of_all(comm: &Communicator) {
    mismatch(comm, comm.rank());
}

/// Ranks start different operations on the gates: every rank gets an error, which names it as a rank of the world,
/// and can continue.
fn mismatch(comm: &Communicator, rank: u32) {
    let gates = by(comm, Hardware::Always);
    for _ in 0..3 {
        let outcome = match comm.rank() {
            0 => gates.allreduce_in_place(&mut [1u64; 2], Op::Sum),
            _ => gates.allreduce_in_place(&mut [1u64; 2], Op::Max),
        };
        let collective = Collective::Allreduce;
        assert_eq!(outcome, Err(Error::GatesMismatch { rank, collective }));
        // The plan's messages do not interfere with the gates.
        by(comm, Hardware::Never).barrier().unwrap();
        let mut sum = [1u64];
        gates.allreduce_in_place(&mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [u64::from(comm.size())]);
    }
}

#[test]
fn a_mismatch_is_told_to_every_rank() {
    for shape in ["2", "3", "2x2", "5"] {
        emulate(&config(shape, Drive::Inline), mismatch_of_all).unwrap();
    }
    emulate(&config("4", Drive::Inline), |comm| {
        mismatch(&comm.split(Some(comm.rank() / 2), 0).unwrap().expect("a colour"), comm.rank());
    })
    .unwrap();
    // On other wires the plan serves each of these calls.
    ranks(3, "mismatch", &[("HOPBINE_BACKEND", "emu")]);
}

/// An allreduce of zeros: type, operator, count.
type Made = (Dtype, Op, u64);

/// Rank 0 makes the first of these calls, the other ranks the second. Returns whether this rank gets an error.
fn differ(comm: &Communicator, [one, other]: [Made; 2]) -> bool {
    let (dtype, op, count) = if comm.rank() == 0 { one } else { other };
    let (send, mut recv) = (vec![0u8; 512], vec![0xa5u8; 512]);
    let call = Call { op: Some(op), ..Call::new(Collective::Allreduce, count, dtype) };
    let comm = by(comm, Hardware::Always);
    // SAFETY: both buffers hold `count` elements.
    let outcome = unsafe { comm.call(&call.at(&comm, send.as_ptr(), recv.as_mut_ptr())) };
    let collective = Collective::Allreduce;
    match outcome {
        Ok(()) => false,
        error => {
            assert_eq!(error, Err(Error::GatesMismatch { rank: comm.rank(), collective }));
            assert!(recv.iter().all(|&byte| byte == 0xa5), "something was written");
            true
        }
    }
}

/// Pairs of calls that the gates cannot distinguish: the same number of words, combined by the same operation.
const DIFFER: [[Made; 2]; 9] = [
    [(Dtype::F64, Op::Min, 1), (Dtype::F64, Op::Max, 1)],
    [(Dtype::F64, Op::Min, 4), (Dtype::I64, Op::Min, 4)],
    [(Dtype::U8, Op::BitOr, 3), (Dtype::U8, Op::BitOr, 4)],
    [(Dtype::U8, Op::BitOr, 8), (Dtype::U64, Op::BitOr, 1)],
    [(Dtype::I8, Op::LogicalAnd, 8), (Dtype::U8, Op::BitAnd, 1)],
    [(Dtype::U16, Op::Sum, 1), (Dtype::U16, Op::Sum, 2)],
    [(Dtype::PairF64, Op::MinLoc, 1), (Dtype::PairF64, Op::MaxLoc, 1)],
    [(Dtype::F32, Op::Sum, 1), (Dtype::F64, Op::Sum, 1)],
    [(Dtype::F32, Op::Sum, 2), (Dtype::ComplexF32, Op::Sum, 1)],
];

/// Pairs of this kind whose calls use all words, so that no word is left to detect the difference.
const DIFFER_LATE: [[Made; 2]; 4] = [
    [(Dtype::F64, Op::Min, 6), (Dtype::F64, Op::Max, 6)],
    [(Dtype::U8, Op::BitXor, 3), (Dtype::U8, Op::BitXor, 4)],
    [(Dtype::PairF64, Op::MinLoc, 2), (Dtype::PairF64, Op::MaxLoc, 2)],
    [(Dtype::F32, Op::Sum, 3), (Dtype::F64, Op::Sum, 3)],
];

#[test]
fn calls_that_differ_in_what_gates_do_not_see_are_told_to_every_rank() {
    for shape in ["2", "3", "2x2"] {
        emulate(&config(shape, Drive::Inline), |comm| {
            let both = |made| [made; 2];
            for made in DIFFER {
                assert!(differ(comm, made), "{made:?}");
                assert!(!differ(comm, both(made[0])), "{made:?}");
            }
            let small = (Dtype::F64, Op::Min, 1);
            for made in DIFFER_LATE {
                // The next call with a free word, or the next barrier, reports it.
                assert!(!differ(comm, made), "{made:?}");
                assert!(differ(comm, both(small)), "{made:?}");
                assert!(!differ(comm, both(small)), "{made:?}");
                assert!(!differ(comm, made), "{made:?}");
                assert!(comm.barrier().is_err(), "{made:?}");
                comm.barrier().unwrap();
                // Otherwise the 64th call reports it.
                let told = (0..64).position(|_| differ(comm, made));
                assert_eq!(told, Some(63), "{made:?}");
            }
            // Equally many words, but only rank 0's call has a free one: only rank 0 gets the error at once.
            for made in [
                [(Dtype::F64, Op::Max, 4), (Dtype::F64, Op::Max, 6)],
                [(Dtype::F64, Op::Sum, 2), (Dtype::F64, Op::Sum, 3)],
            ] {
                assert_eq!(differ(comm, made), comm.rank() == 0, "{made:?}");
                assert!(differ(comm, both(small)), "{made:?}");
            }
            assert!(!differ(comm, both(small)));
            comm.barrier().unwrap();
        })
        .unwrap();
    }
}

/// A rank that waits at the gates makes progress on its other operations.
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
                        // The other ranks enter the barrier only after the sum is complete.
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
            // The other ranks would detect at once that a rank has left.
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
        // The first rank that fails informs the other.
        let (Err(Error::Timeout { cause: Some(blame), .. }) | Err(Error::Lost { blame, .. })) =
            outcome
        else {
            panic!("{rank}: {outcome:?}");
        };
        assert_eq!((blame.rank, blame.fault), (2, Fault::Absent), "{rank}: {outcome:?}");
    }
}

/// Ranks outside the communicator need not call, and are not blamed.
#[test]
fn a_member_that_does_not_come_is_named() {
    let config = config("5", Drive::Inline).with(|config| {
        config.timeout = std::time::Duration::from_millis(300);
        config.on_timeout = OnTimeout::Fail;
    });
    let n_failed = AtomicUsize::new(0);
    let outcomes = emulate(&config, |comm| {
        let made = comm.group(&[4, 1, 2]).unwrap_or(None);
        match made {
            Some(made) if comm.rank() != 2 => {
                assert!(made.uses_gates(&Call::new(Collective::Barrier, 0, Dtype::U8)));
                made.barrier().inspect_err(|_| _ = n_failed.fetch_add(1, Ordering::Relaxed))
            }
            made => {
                while n_failed.load(Ordering::Relaxed) < 2 {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                drop(made);
                Ok(())
            }
        }
    })
    .unwrap();
    for (rank, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Ok(()) => assert!([0, 2, 3].contains(&rank)),
            Err(Error::Timeout { cause: Some(blame), .. } | Error::Lost { blame, .. }) => {
                assert_eq!((blame.rank, blame.fault), (2, Fault::Absent), "{rank}: {outcome:?}");
            }
            other => panic!("{rank}: {other:?}"),
        }
    }
}
