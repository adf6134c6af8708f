//! The engine on a wire in memory: every algorithm of the registry, compared with an independent reference. One
//! thread drives all ranks and ports, in random order.

mod by_hand;
mod views;

use std::sync::Arc;

use crate::common::memory_wire::{MemoryEndpoint, MemoryWire};
use crate::common::reference::{Case, expected, inputs};
use hopbine::endpoint::{Endpoint, Event};
use hopbine::engine::{
    Buffer, CheckedPlan, Geometry, Memory, PortFlags, PortRun, Program, Sizes, StartOrder, compile,
};
use hopbine::reduce::{Dtype, Op, Reducer};
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::Flow;
use hopbine_torus::{Algorithm, Collective, PortId, Request, registry};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The buffers of one rank.
struct Rank {
    buffers: [Vec<u64>; Buffer::COUNT],
    staging: Vec<Vec<u64>>,
    program: Arc<Program>,
}

impl Rank {
    fn new(program: Program, send: Vec<u64>, recv: Vec<u64>) -> Self {
        let bytes = |len: u64| vec![0u64; len.div_ceil(8) as usize];
        let staging = program.ports.iter().map(|port| bytes(port.needs[Buffer::Staging as usize]));
        Rank {
            staging: staging.collect(),
            buffers: [send, recv, bytes(program.work_bytes), Vec::new()],
            program: Arc::new(program),
        }
    }

    fn memories(&mut self, port: usize) -> [Memory; Buffer::COUNT] {
        let memory = |buffer: &mut Vec<u64>| Memory {
            ptr: buffer.as_mut_ptr().cast(),
            len: 8 * buffer.len() as u64,
            key: 0,
        };
        let mut memories = [Memory::NONE; Buffer::COUNT];
        for (memory_of, buffer) in memories.iter_mut().zip(&mut self.buffers) {
            *memory_of = memory(buffer);
        }
        memories[Buffer::Staging as usize] = memory(&mut self.staging[port]);
        memories
    }
}

/// Runs the programs of all ranks to their end; returns false if they make no progress.
fn execute(ranks: &mut [Rank], reducer: Reducer, seed: u64) -> bool {
    let wire = MemoryWire::default();
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut runs: Vec<(PortRun, MemoryEndpoint)> = Vec::new();
    for (number, rank) in ranks.iter_mut().enumerate() {
        let port_flags = Arc::new(PortFlags::of(&rank.program));
        for port in 0..rank.program.ports.len() {
            let (program, at) = (rank.program.clone(), PortId(port as u16));
            let mut run = PortRun::new(program, at, Some(reducer), port_flags.clone());
            let memories = rank.memories(port);
            // SAFETY: the buffers outlive the runs and are not accessed before the runs end.
            unsafe { run.start((0, seed as u32), StartOrder::InOrder, memories) };
            runs.push((run, wire.endpoint(number as u32, port, seed)));
        }
    }
    let mut under_way: Vec<usize> =
        (0..runs.len()).filter(|&at| !runs[at].0.is_finished()).collect();
    let mut idle = 0;
    let mut events = Vec::new();
    while !under_way.is_empty() {
        let which = rng.random_range(0..under_way.len());
        let (run, endpoint) = &mut runs[under_way[which]];
        let mut moved = false;
        endpoint.poll(&mut events).unwrap();
        for event in events.drain(..) {
            match event {
                Event::Sent(slot) | Event::Received(slot) => run.finished(slot.task),
                Event::Viewed(slot, view) => run.viewed(slot.task, view),
                other => panic!("{other:?}"),
            }
            moved = true;
        }
        // Sometimes does less than is possible.
        moved |= if rng.random_bool(0.5) {
            run.advance(endpoint, 0, u32::MAX, &mut ()).unwrap()
        } else {
            let heard = run.poll_flags();
            let posted = run.post(endpoint, 0, 0, &mut ()).unwrap();
            let worked = rng.random_bool(0.5) && run.execute_local(0, &mut ()).is_some();
            run.settle();
            heard | posted | worked
        };
        if run.is_finished() {
            under_way.swap_remove(which);
        }
        idle = if moved { 0 } else { idle + 1 };
        if idle > 1000 * runs.len() {
            return false;
        }
    }
    assert!(wire.is_empty());
    // Closes the first run of each rank; the runs of a rank are consecutive.
    let mut at = 0;
    for rank in ranks {
        runs[at].0.close();
        at += rank.program.ports.len();
    }
    true
}

fn reducer() -> Reducer {
    Reducer::new(Dtype::U64, Op::Sum).unwrap()
}

/// The send and receive buffers of a rank before a call.
pub fn buffers(case: &Case, in_place: bool, rank: u32) -> [Vec<u64>; 2] {
    let own = inputs(case, rank);
    let mut recv = vec![u64::MAX; case.recv_len(rank)];
    let mut send = own.clone();
    match case.collective {
        Collective::Bcast => {
            send.clear();
            if rank == case.root {
                recv = own;
            }
        }
        Collective::Scatter if in_place && rank == case.root => recv.clear(),
        Collective::Scatter => {}
        Collective::Allgather | Collective::Gather if in_place && !recv.is_empty() => {
            let at = rank as usize * case.count;
            recv[at..at + case.count].copy_from_slice(&own);
            send.clear();
        }
        Collective::ReduceScatter
        | Collective::Allreduce
        | Collective::Alltoall
        | Collective::Scan
        | Collective::Exscan
            if in_place =>
        {
            recv = own;
            send.clear();
        }
        Collective::Reduce if in_place && rank == case.root => {
            recv = own;
            send.clear();
        }
        _ => {}
    }
    [send, recv]
}

fn run_case(case: Case, in_place: bool, segment_bytes: Option<u64>, plans: &[CheckedPlan]) {
    let geometry = Geometry {
        sizes: Sizes::Equal(case.count as u64),
        elem_bytes: 8,
        in_place,
        segment_bytes,
        staged: None,
    };
    let mut ranks: Vec<Rank> = Vec::new();
    for (rank, plan) in (0..case.n_ranks).zip(plans) {
        let program = match compile(plan, &geometry) {
            Ok(program) => program,
            Err(failure) => panic!("{case:?}: {failure:?}"),
        };
        let [send, recv] = buffers(&case, in_place, rank);
        ranks.push(Rank::new(program, send, recv));
    }
    let seed = case.count as u64 * 31 + u64::from(case.root);
    assert!(execute(&mut ranks, reducer(), seed), "{case:?} in_place {in_place}: stuck");
    for (rank, state) in (0..case.n_ranks).zip(&ranks) {
        let mut want = expected(&case, rank, u64::wrapping_add);
        if in_place && case.collective == Collective::Scatter && rank == case.root {
            want.clear();
        }
        if case.collective == Collective::Exscan && rank == 0 && in_place {
            want = inputs(&case, rank);
        }
        let got = &state.buffers[Buffer::Recv as usize][..want.len()];
        assert!(
            got == want,
            "{case:?} in_place {in_place} {segment_bytes:?}: rank {rank} is wrong"
        );
    }
}

fn plans(algorithm: &Algorithm, shape: &Shape, root: u32, ports: Option<u32>) -> Vec<CheckedPlan> {
    let request = Request {
        shape: shape.clone(),
        map: RankMap::RowMajor,
        root: hopbine_torus::Rank(root),
        ports,
    };
    let expansion = algorithm.schedule(&request).unwrap().expand().unwrap();
    hopbine_torus::Rank::first(shape.n_ranks())
        .map(|rank| CheckedPlan::new(expansion.plan(rank)).unwrap())
        .collect()
}

/// Runs every algorithm on each shape with each of the counts; with more than `most` ranks, with one of them in turn.
fn every_algorithm(collectives: &[Collective], shapes: &[&[u32]], counts: &[usize], most: u32) {
    let mut ran = 0;
    for sizes in shapes {
        let shape = Shape::torus(sizes).unwrap();
        let p = shape.n_ranks();
        for algorithm in registry::all() {
            // An alias makes the same plans as its algorithm.
            if !collectives.contains(&algorithm.collective)
                || algorithm.serves(&shape).is_err()
                || algorithm.alias_of.is_some()
            {
                continue;
            }
            let roots = if algorithm.collective.is_rooted() { vec![0, p - 1] } else { vec![0] };
            for root in roots {
                for ports in [Some(1), None] {
                    let plans = plans(&algorithm, &shape, root, ports);
                    let turn = (ran + ran / 4) % counts.len();
                    let counts = if p > most { &counts[turn..=turn] } else { counts };
                    for &count in counts {
                        let case =
                            Case { collective: algorithm.collective, n_ranks: p, count, root };
                        let segment = [None, Some(64), Some(8)][count % 3];
                        run_case(case, false, segment, &plans);
                        // A rooted call is in place on its root only: see `emulated.rs`.
                        let collective = algorithm.collective;
                        if !collective.is_rooted() && collective != Collective::Barrier {
                            run_case(case, true, segment, &plans);
                        }
                        ran += 1;
                    }
                }
            }
        }
    }
    assert!(ran > 0);
}

const SHAPES: [&[u32]; 9] =
    [&[1], &[2], &[5], &[8], &[2, 3], &[4, 4], &[2, 2, 2], &[3, 3, 3], &[2, 3, 2]];

/// Shapes with more ranks run one count each: what it takes grows with the square of the ranks.
const FEW: u32 = 8;

const OF_BLOCKS: [Collective; 2] = [Collective::ReduceScatter, Collective::Allgather];
const ROOTED: [Collective; 4] =
    [Collective::Bcast, Collective::Reduce, Collective::Gather, Collective::Scatter];
const OTHERS: [Collective; 2] = [Collective::Alltoall, Collective::Barrier];

const OF_VECTORS: [usize; 5] = [0, 1, 7, 29, 300];
const COUNTS: [usize; 4] = [0, 1, 5, 36];

#[test]
fn allreduce() {
    every_algorithm(&[Collective::Allreduce], &SHAPES, &OF_VECTORS, FEW);
}

#[test]
fn reduce_scatter_and_allgather() {
    every_algorithm(&OF_BLOCKS, &SHAPES, &COUNTS, FEW);
}

#[test]
fn rooted() {
    every_algorithm(&ROOTED, &SHAPES, &COUNTS, FEW);
}

#[test]
fn alltoall_and_barrier() {
    every_algorithm(&OTHERS, &SHAPES, &COUNTS, FEW);
}

#[test]
#[ignore = "takes long: cargo test --test ranks -- --ignored"]
fn every_count_on_every_shape() {
    every_algorithm(&[Collective::Allreduce], &SHAPES, &OF_VECTORS, u32::MAX);
    for collectives in [&OF_BLOCKS[..], &ROOTED, &OTHERS] {
        every_algorithm(collectives, &SHAPES, &COUNTS, u32::MAX);
    }
}

#[test]
fn long_runs_travel_separately() {
    let collectives = [
        Collective::ReduceScatter,
        Collective::Allgather,
        Collective::Gather,
        Collective::Scatter,
        Collective::Alltoall,
    ];
    // Blocks of 8 KiB or more in each of two parts.
    every_algorithm(&collectives, &[&[2, 2]], &[2053], FEW);
}

/// Bytes that a rank's program copies, without folds.
fn copied(algorithm: &str, collective: Collective, count: usize, in_place: bool) -> u64 {
    let shape = Shape::torus(&[4, 4]).unwrap();
    let algorithm = registry::find(collective, algorithm).unwrap();
    let geometry = Geometry {
        sizes: Sizes::Equal(count as u64),
        elem_bytes: 8,
        in_place,
        segment_bytes: Some(16 * 1024),
        staged: None,
    };
    let of_rank = |plan: &CheckedPlan| {
        let program = compile(plan, &geometry).unwrap();
        let moves = program.ports.iter().flat_map(|port| port.moves.iter());
        moves.chain(program.closing.iter()).map(|copy| copy.from.len).sum::<u64>()
    };
    plans(&algorithm, &shape, 0, None).iter().map(of_rank).max().unwrap()
}

#[test]
fn long_blocks_are_copied_nowhere() {
    // Four ports, each of which transfers a fourth of every block.
    let (long, short) = (4 * 1024, 4 * 1023);
    let of_one = 8 * long as u64;
    for name in ["bucket", "mixed", "bine-send"] {
        assert_eq!(copied(name, Collective::Allgather, long, false), of_one, "{name}");
        assert_eq!(copied(name, Collective::Allgather, long, true), 0, "{name}");
        assert!(copied(name, Collective::Allgather, short, false) > 10 * of_one, "{name}");
    }
    for (name, collective) in [
        ("bine", Collective::Gather),
        ("mixed-near", Collective::Scatter),
        ("pairwise", Collective::Alltoall),
    ] {
        assert_eq!(copied(name, collective, long, false), of_one, "{name}");
    }
}
