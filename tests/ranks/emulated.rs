//! Collectives on emulated ranks: every algorithm, with several shapes, lengths and types, with and without workers,
//! compared with an independent reference.

use crate::common::calls::{check, config, every_algorithm};
use crate::common::reference::{Case, expected, inputs};
use hopbine::Blocks;
use hopbine::reduce::{Datatype, Dtype, Op};
use hopbine::torus::geometry::Shape;
use hopbine::torus::{Collective, registry};
use hopbine::{CallOptions, Drive, Error, emulate};
use hopbine_testing::cores::one_core;
use proptest::prelude::*;

#[test]
fn every_algorithm_on_a_ring_of_5() {
    every_algorithm(&[5], Drive::Inline, &[0, 1, 4, 5, 6, 1009]);
}

#[test]
fn every_algorithm_on_a_ring_of_8() {
    let _core = one_core();
    every_algorithm(&[8], Drive::Inline, &[1, 9, 1009]);
}

#[test]
fn every_algorithm_on_2x3() {
    every_algorithm(&[2, 3], Drive::Inline, &[0, 1, 5, 6, 7, 1009]);
}

#[test]
fn every_algorithm_on_4x4() {
    let _core = one_core();
    every_algorithm(&[4, 4], Drive::Inline, &[15, 1009]);
}

#[test]
fn every_algorithm_on_2x2x2() {
    let _core = one_core();
    every_algorithm(&[2, 2, 2], Drive::Inline, &[0, 7, 8]);
}

#[test]
fn every_algorithm_on_3x3x3() {
    let _core = one_core();
    every_algorithm(&[3, 3, 3], Drive::Inline, &[300]);
}

#[test]
fn every_algorithm_with_workers() {
    every_algorithm(&[4], Drive::Workers, &[0, 1, 3, 5, 1009]);
    every_algorithm(&[2, 3], Drive::Worker, &[1, 7, 1009]);
}

#[test]
fn one_rank_alone() {
    every_algorithm(&[1], Drive::Inline, &[0, 1, 1009]);
    every_algorithm(&[1, 1], Drive::Workers, &[0, 1, 1009]);
}

#[test]
fn defaults_choose_something_right() {
    emulate(&config(&[3, 2], Drive::Inline), |comm| {
        for collective in Collective::ALL {
            for count in [0, 1, 100, 5000, 100_000] {
                let root = if collective.is_rooted() { comm.size() - 1 } else { 0 };
                let case = Case { collective, n_ranks: comm.size(), count, root };
                check(comm, &case, "default");
            }
        }
    })
    .unwrap();
}

/// The vector is longer than the longest put, whose length is not a multiple of the element size.
#[test]
fn puts_are_cut() {
    emulate(&config(&[2], Drive::Inline), |comm| {
        let n = 2_300_001;
        let options = CallOptions::new().ports(1).segment_bytes(u64::MAX).algorithm("mixed-l");
        let mut vector: Vec<u64> = (0..n).map(|at| at ^ u64::from(comm.rank())).collect();
        comm.with(options).allreduce_in_place(&mut vector, Op::Sum).unwrap();
        assert!((0..n).zip(&vector).all(|(at, &sum)| sum == at + (at ^ 1)));
    })
    .unwrap();
}

/// Values whose sums depend on the order of the operands.
fn rough<T: Datatype>(of: impl Fn(f64) -> T, rank: u32, len: usize) -> Vec<T> {
    let value =
        |at: usize| (f64::from(rank) + 1.3).powi(7) / (at as f64 + 0.7) * [1.0, -1.0][at % 2];
    (0..len).map(|at| of(value(at) / 1e4)).collect()
}

fn identical_bits<T: Datatype>(of: impl Fn(f64) -> T + Sync) {
    let _core = one_core();
    for sizes in [&[5][..], &[8], &[4, 4], &[2, 3], &[3, 3]] {
        let results = emulate(&config(sizes, Drive::Inline), |comm| {
            let serving = registry::algorithms(Collective::Allreduce)
                .into_iter()
                .filter(|algorithm| algorithm.serves(comm.shape()).is_ok());
            let run = |name: &str| {
                let mut vector = rough(&of, comm.rank(), 157);
                let comm = comm.with(CallOptions::new().algorithm(name).segment_bytes(160));
                comm.allreduce_in_place(&mut vector, Op::Sum).unwrap();
                bytemuck::cast_slice::<T, u8>(&vector).to_vec()
            };
            let bits = |name: String| {
                let first = run(&name);
                // The same plan gives the same bits in every run.
                assert_eq!(first, run(&name), "{name}");
                (name, first)
            };
            serving.map(|algorithm| bits(algorithm.name.into_owned())).collect::<Vec<_>>()
        })
        .unwrap();
        for result in &results {
            assert_eq!(*result, results[0], "{sizes:?}");
        }
    }
}

#[test]
fn floats_are_identical_on_all_ranks() {
    identical_bits(|value| value as f32);
    identical_bits(|value| value);
    identical_bits(half::f16::from_f64);
    identical_bits(half::bf16::from_f64);
}

#[test]
fn types_and_operators() {
    emulate(&config(&[2, 3], Drive::Inline), |comm| {
        let rank = comm.rank() as u8;
        let mut bytes: Vec<u8> = (0..77).map(|at| at + rank * 30).collect();
        comm.allreduce_in_place(&mut bytes, Op::Max).unwrap();
        let want = |at: u8| (0..6).map(|rank| at + rank * 30).max();
        assert!((0..77).zip(&bytes).all(|(at, &got)| Some(got) == want(at)));
        let mut bits = vec![1i32 << rank; 1000];
        comm.allreduce_in_place(&mut bits, Op::BitOr).unwrap();
        assert_eq!(bits, vec![63; 1000]);
        let refused = comm.allreduce_in_place(&mut [1.0f32], Op::BitOr).unwrap_err();
        assert!(matches!(refused, Error::Reduce(_)));
    })
    .unwrap();
}

#[test]
fn wrong_calls_are_refused_and_harmless() {
    emulate(&config(&[2, 2], Drive::Inline), |comm| {
        let mut short = [0u32; 3];
        let error = comm.allreduce(&[1, 2], &mut short, Op::Sum).unwrap_err();
        assert_eq!(
            error.to_string(),
            "allreduce: the receive buffer holds 3 elements, it must hold 2"
        );
        let error = comm.allgather(&[1u32], &mut short).unwrap_err();
        assert!(matches!(error, Error::BufferLength { needed: 4, .. }));
        let error = comm.alltoall_in_place(&mut short).unwrap_err();
        assert!(matches!(error, Error::UnevenBlocks { found: 3, n_ranks: 4, .. }));
        let error = comm.bcast(&mut short, 4).unwrap_err();
        assert!(matches!(error, Error::Root { root: 4, n_ranks: 4, .. }));
        let named = |name| comm.with(CallOptions::new().algorithm(name));
        let error = named("magic").bcast(&mut short, 0).unwrap_err();
        assert!(error.to_string().contains("mixed-tree"), "{error}");
        let error = comm.with(CallOptions::new().ports(99)).bcast(&mut short, 0).unwrap_err();
        assert!(matches!(error, Error::Setting { setting: "ports", .. }));
        // No machine has enough memory for the next two calls.
        let error = comm.scatter_init::<f64>(Vec::new(), usize::MAX, 1).map(drop).unwrap_err();
        assert!(matches!(error, Error::Memory { dtype: Dtype::F64, .. }), "{error}");
        let far = [0, 0, 0, u64::MAX - 1];
        let blocks = Blocks::new(&[1; 4]).at(&far);
        let error = comm.allgatherv_init(vec![7u8], blocks).map(drop).unwrap_err();
        assert!(matches!(error, Error::Memory { elements: u64::MAX, .. }), "{error}");
        // The communicator still works.
        comm.bcast(&mut short, 3).unwrap();
    })
    .unwrap();
}

/// The in-place forms that only the interfaces to other languages have: the root's own block stays in its place among
/// the other blocks.
#[test]
fn gather_and_scatter_in_place_on_the_root() {
    use hopbine::Call;
    emulate(&config(&[2, 3], Drive::Inline), |comm| {
        for algorithm in ["mixed", "bucket", "circulant"] {
            for (root, count) in [(0, 5), (4, 700)] {
                let comm = comm.with(CallOptions::new().algorithm(algorithm));
                let (rank, all) = (comm.rank(), 6 * count);
                let at = rank as usize * count;
                let case = |collective| Case { collective, n_ranks: 6, count, root };
                let base = |collective| {
                    let new = Call::new(collective, count as u64, Dtype::U64);
                    Call { root, in_place: rank == root, ..new }
                };
                let gather = case(Collective::Gather);
                let mut send = inputs(&gather, rank);
                let mut recv = vec![u64::MAX; all];
                recv[at..at + count].copy_from_slice(&send);
                let mut call = base(Collective::Gather);
                if rank == root {
                    (call.recv, call.recv_count) = (recv.as_mut_ptr().cast(), all as u64);
                } else {
                    (call.send, call.send_count) = (send.as_ptr().cast(), count as u64);
                }
                // SAFETY: the buffers live until the call returns.
                unsafe { comm.call(&call) }.unwrap();
                if rank == root {
                    assert_eq!(recv, expected(&gather, rank, u64::wrapping_add));
                }

                let scatter = case(Collective::Scatter);
                let blocks = inputs(&scatter, rank);
                let mut call = base(Collective::Scatter);
                if rank == root {
                    (call.send, call.send_count) = (blocks.as_ptr().cast(), all as u64);
                } else {
                    (call.recv, call.recv_count) = (send.as_mut_ptr().cast(), count as u64);
                }
                // SAFETY: the buffers live until the call returns.
                unsafe { comm.call(&call) }.unwrap();
                if rank != root {
                    assert_eq!(send, expected(&scatter, rank, u64::wrapping_add));
                }
            }
        }
    })
    .unwrap();
}

#[test]
fn addresses_that_cannot_be_right_are_refused() {
    emulate(&config(&[2], Drive::Inline), |comm| {
        let mut data = [0u8; 12];
        let (from, to) = (data.as_ptr(), data.as_mut_ptr());
        let at = |send: *const u8, recv: *mut u8| {
            let mut call = hopbine::Call::new(Collective::Allreduce, 8, hopbine::reduce::Dtype::U8);
            call.op = Some(Op::Sum);
            (call.send, call.send_count, call.recv, call.recv_count) = (send, 8, recv, 8);
            // SAFETY: the call is refused, unless all addresses are within `data`.
            unsafe { comm.call(&call) }.unwrap_err()
        };
        assert!(matches!(at(from, to.wrapping_add(4)), Error::Overlap { .. }));
        // Null, the last 8 bytes of the address space (whose end is not an address), and a range that wraps around.
        let last: *mut u8 = std::ptr::without_provenance_mut(usize::MAX - 7);
        for nothing in [std::ptr::null_mut(), last, last.wrapping_add(7)] {
            let refusal = |which| Error::Address {
                collective: Collective::Allreduce,
                which,
                address: nothing.addr() as u64,
                bytes: 8,
            };
            assert_eq!(at(nothing, to), refusal("send"));
            assert_eq!(at(from, nothing), refusal("receive"));
        }
    })
    .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_call_on_any_shape(
        sizes in proptest::collection::vec(1u32..5, 1..4),
        which in 0..Collective::ALL.len(),
        count in 0usize..700,
        root: u32,
        ports in 1u32..7,
        segment in prop_oneof![1u64..64, 64u64..10_000],
        name: proptest::sample::Index,
        drive in 0usize..3,
    ) {
        let shape = Shape::torus(&sizes).unwrap();
        prop_assume!(shape.n_ranks() <= 18);
        let collective = Collective::ALL[which];
        let root = if collective.is_rooted() { root % shape.n_ranks() } else { 0 };
        let serving: Vec<_> = registry::algorithms(collective)
            .into_iter()
            .filter(|algorithm| algorithm.serves(&shape).is_ok())
            .collect();
        let name = &name.get(&serving).name;
        let drive = [Drive::Inline, Drive::Worker, Drive::Workers][drive];
        emulate(&config(&sizes, drive), |comm| {
            let options = CallOptions::new()
                .algorithm(name)
                .ports(ports.min(comm.n_ports()))
                .segment_bytes(segment);
            let case = Case { collective, n_ranks: comm.size(), count, root };
            check(&comm.with(options), &case, name);
        }).unwrap();
    }
}
