//! The engine on a wire in memory, all ranks and ports in one thread, in random order:
//! every algorithm of the registry, against an independent reference.

use std::sync::Arc;

use crate::common::memory_wire::{MemoryEndpoint, MemoryWire};
use crate::common::reference::{Case, expected, inputs};
use hopbine::endpoint::{Endpoint, Event};
use hopbine::engine::{Buffer, CompileError, Geometry, Memory, PortRun, Program, Sizes, compile};
use hopbine::reduce::{Dtype, Op, Reducer};
use hopbine_torus::collectives::{Action, Cut};
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{
    BlockOrder, Blocks, Defect, Flow, Lane, Plan, Run, Space, Step, Transfer,
};
use hopbine_torus::{Algorithm, Collective, Request, registry};
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

/// Runs the programs of all ranks to their end; false if they got stuck.
fn execute(ranks: &mut [Rank], reducer: Reducer, seed: u64) -> bool {
    let wire = MemoryWire::default();
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut runs: Vec<(PortRun, MemoryEndpoint)> = Vec::new();
    for (number, rank) in ranks.iter_mut().enumerate() {
        for port in 0..rank.program.ports.len() {
            let mut run = PortRun::new(rank.program.clone(), port, Some(reducer));
            let memories = rank.memories(port);
            // SAFETY: the buffers outlive the runs and are not touched before they end.
            unsafe { run.start((0, seed as u32), memories) };
            runs.push((run, wire.endpoint(number as u32, port, seed)));
        }
    }
    let mut idle = 0;
    let mut events = Vec::new();
    while runs.iter().any(|(run, _)| !run.is_finished()) {
        let which = rng.random_range(0..runs.len());
        let (run, endpoint) = &mut runs[which];
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
        // Sometimes less than could be done.
        moved |= if rng.random_bool(0.5) {
            run.advance(endpoint, 0, u32::MAX).unwrap()
        } else {
            let posted = run.post(endpoint, 0, 0).unwrap();
            let worked = rng.random_bool(0.5) && run.work().is_some();
            run.settle();
            posted | worked
        };
        idle = if moved { 0 } else { idle + 1 };
        if idle > 1000 * runs.len() {
            return false;
        }
    }
    assert!(wire.is_empty());
    // Once for each rank, whose first run comes before its others.
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

fn run_case(case: Case, in_place: bool, segment_bytes: Option<u64>, plan: impl Fn(u32) -> Plan) {
    let geometry =
        Geometry { sizes: Sizes::Equal(case.count as u64), elem_bytes: 8, in_place, segment_bytes };
    let mut ranks: Vec<Rank> = Vec::new();
    for rank in 0..case.n_ranks {
        let program = match compile(&plan(rank), &geometry) {
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

fn plans(algorithm: &Algorithm, shape: &Shape, root: u32, ports: Option<u32>) -> Vec<Plan> {
    let request = Request { shape: shape.clone(), map: RankMap::RowMajor, root, ports };
    let expansion = algorithm.schedule(&request).unwrap().expand().unwrap();
    hopbine_torus::Rank::first(shape.n_nodes()).map(|rank| expansion.plan(rank)).collect()
}

fn every_algorithm(collectives: &[Collective], shapes: &[&[u32]], counts: &[usize]) {
    let mut ran = 0;
    for sizes in shapes {
        let shape = Shape::torus(sizes).unwrap();
        let p = shape.n_nodes();
        for algorithm in registry::all() {
            if !collectives.contains(&algorithm.collective) || algorithm.serves(&shape).is_err() {
                continue;
            }
            let roots = if algorithm.collective.is_rooted() { vec![0, p - 1] } else { vec![0] };
            for root in roots {
                for ports in [Some(1), None] {
                    let plans = plans(&algorithm, &shape, root, ports);
                    for &count in counts {
                        let case =
                            Case { collective: algorithm.collective, n_ranks: p, count, root };
                        let segment = [None, Some(64), Some(8)][count % 3];
                        run_case(case, false, segment, |rank| plans[rank as usize].clone());
                        // A rooted call is in place on its root only: see `emulated.rs`.
                        let collective = algorithm.collective;
                        if !collective.is_rooted() && collective != Collective::Barrier {
                            run_case(case, true, segment, |rank| plans[rank as usize].clone());
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

#[test]
fn allreduce() {
    every_algorithm(&[Collective::Allreduce], &SHAPES, &[0, 1, 7, 29, 300]);
}

#[test]
fn reduce_scatter_and_allgather() {
    let collectives = [Collective::ReduceScatter, Collective::Allgather];
    every_algorithm(&collectives, &SHAPES, &[0, 1, 5, 36]);
}

#[test]
fn rooted() {
    let collectives =
        [Collective::Bcast, Collective::Reduce, Collective::Gather, Collective::Scatter];
    every_algorithm(&collectives, &SHAPES, &[0, 1, 5, 36]);
}

#[test]
fn alltoall_and_barrier() {
    every_algorithm(&[Collective::Alltoall, Collective::Barrier], &SHAPES, &[0, 1, 5, 36]);
}

#[test]
fn long_runs_travel_separately() {
    every_algorithm(&[Collective::ReduceScatter, Collective::Alltoall], &[&[2, 3]], &[1021]);
}

fn transfer(peer: u32, start: u32, len: u32) -> Transfer {
    let blocks = Blocks::from_slice(&[Run::new(start, len)]);
    Transfer { peer: hopbine_torus::Rank(peer), blocks }
}

/// A plan of one step on one lane over a vector of some pieces, for what no algorithm does.
fn one_step(rank: u32, n_ranks: u32, n_positions: u32, step: Step) -> Plan {
    let space = Space { cut: Cut::Vector, n_positions, order: BlockOrder::Identity };
    let lane = Lane {
        port: 0,
        part: 0,
        parts: 1,
        space: Arc::new(space),
        window: None,
        steps: vec![step],
    };
    let (rank, root) = (hopbine_torus::Rank(rank), hopbine_torus::Rank(0));
    Plan { collective: Collective::Allreduce, rank, n_ranks, root, lanes: vec![lane] }
}

/// Everybody sends everything to everybody at once and folds in rank order.
fn fold_plan(rank: u32, n_ranks: u32, positions: u32) -> Plan {
    let others = || (0..n_ranks).filter(move |&other| other != rank);
    let step = Step {
        sends: others().map(|to| transfer(to, 0, positions)).collect(),
        recvs: others().map(|from| transfer(from, 0, positions)).collect(),
        action: Action::Reduce,
        own_at: rank,
    };
    one_step(rank, n_ranks, positions, step)
}

#[test]
fn folds_take_many_operands_in_order() {
    for n_ranks in [2, 3, 12] {
        for (count, segment) in [(1, None), (100, Some(64)), (1000, Some(8))] {
            for in_place in [false, true] {
                let case = Case { collective: Collective::Allreduce, n_ranks, count, root: 0 };
                run_case(case, in_place, segment, |rank| fold_plan(rank, n_ranks, 1));
            }
        }
    }
}

#[test]
fn folds_give_identical_bits() {
    let n_ranks = 7;
    let geometry = |in_place| Geometry {
        sizes: Sizes::Equal(50),
        elem_bytes: 8,
        in_place,
        segment_bytes: Some(64),
    };
    let value = |rank: u32, index: usize| (f64::from(rank) + 0.1).powi(5) / (index as f64 + 0.3);
    let bits = |rank| (0..50).map(|index| value(rank, index).to_bits()).collect::<Vec<u64>>();
    let want: Vec<u64> = (0..50)
        .map(|index| {
            (1..n_ranks).fold(value(0, index), |sum, rank| sum + value(rank, index)).to_bits()
        })
        .collect();
    for in_place in [false, true] {
        let mut ranks: Vec<Rank> = (0..n_ranks)
            .map(|rank| {
                let program = compile(&fold_plan(rank, n_ranks, 1), &geometry(in_place)).unwrap();
                let (send, recv) =
                    if in_place { (vec![], bits(rank)) } else { (bits(rank), vec![0; 50]) };
                Rank::new(program, send, recv)
            })
            .collect();
        assert!(execute(&mut ranks, Reducer::new(Dtype::F64, Op::Sum).unwrap(), 3));
        for rank in &ranks {
            assert_eq!(rank.buffers[Buffer::Recv as usize], want);
        }
    }
}

/// Two receives that overlap unevenly: rank 0 gets positions 0..2 and 1..3. There is no order in
/// which all positions could fold them.
#[test]
fn uneven_overlaps_are_refused() {
    let step = Step {
        recvs: [(1, 0), (2, 1)].into_iter().map(|(from, start)| transfer(from, start, 2)).collect(),
        action: Action::Reduce,
        ..Step::default()
    };
    let geometry = Geometry {
        sizes: Sizes::Equal(30),
        elem_bytes: 8,
        in_place: true,
        segment_bytes: Some(24),
    };
    let refused = compile(&one_step(0, 3, 3, step), &geometry).unwrap_err();
    let overlap = Defect::Overlap { run: Run::new(1, 2) };
    assert_eq!(refused.error, CompileError::Invalid(overlap));
}

/// Runs one step of `plan` on `n_ranks` ranks, in place, and returns what each has then. Rank r
/// starts with r * 1000 + the piece's number in every element of a piece.
fn run_in_place(
    n_ranks: u32,
    piece: usize,
    segment_bytes: Option<u64>,
    plan: impl Fn(u32) -> Plan,
) -> Vec<Vec<u64>> {
    let count = n_ranks as usize * piece;
    let geometry = Geometry {
        sizes: Sizes::Equal(count as u64),
        elem_bytes: 8,
        in_place: true,
        segment_bytes,
    };
    let mut ranks: Vec<Rank> = (0..n_ranks)
        .map(|rank| {
            let program = compile(&plan(rank), &geometry).unwrap();
            let data = (0..count).map(|at| u64::from(rank) * 1000 + (at / piece) as u64).collect();
            Rank::new(program, vec![], data)
        })
        .collect();
    assert!(execute(&mut ranks, reducer(), 5), "stuck");
    ranks.into_iter().map(|rank| rank.buffers[Buffer::Recv as usize].clone()).collect()
}

/// An exchange in place: blocks are stored where others of the same step are sent from, in an
/// order in which a naive engine would wait for itself.
#[test]
fn exchanges_in_place_do_not_wait_for_each_other() {
    let n_ranks = 5;
    let plan = |rank: u32| {
        let mut step = Step::default();
        for by in 1..n_ranks {
            let (to, from) = ((rank + by) % n_ranks, (rank + n_ranks - by) % n_ranks);
            step.sends.push(transfer(to, to, 1));
            step.recvs.push(transfer(from, from, 1));
        }
        one_step(rank, n_ranks, n_ranks, step)
    };
    for (piece, segment) in [(1, None), (100, Some(64)), (3, Some(8))] {
        for (rank, got) in run_in_place(n_ranks, piece, segment, plan).iter().enumerate() {
            let from = |at: usize| (at / piece) as u64 * 1000 + rank as u64;
            let want: Vec<u64> = (0..got.len()).map(from).collect();
            assert_eq!(*got, want);
        }
    }
}

/// Ranks shift their blocks by different amounts within one transfer, so that a message lands
/// where messages with other piece numbers are sent from.
#[test]
fn landing_waits_never_form_a_cycle() {
    let n_ranks = 4;
    let plan = |rank: u32| {
        let (next, previous) = ((rank + 1) % n_ranks, (rank + n_ranks - 1) % n_ranks);
        // Position i goes to position n - 1 - i of the next rank.
        let reversed: Blocks = (0..n_ranks).rev().map(|at| Run::new(at, 1)).collect();
        let previous = Transfer { peer: hopbine_torus::Rank(previous), blocks: reversed };
        let step = Step {
            sends: std::iter::once(transfer(next, 0, 4)).collect(),
            recvs: std::iter::once(previous).collect(),
            ..Step::default()
        };
        one_step(rank, n_ranks, n_ranks, step)
    };
    for (rank, got) in run_in_place(n_ranks, 64, Some(8), plan).iter().enumerate() {
        let from = (rank as u64 + 3) % 4;
        let want: Vec<u64> = (0..256).map(|at| from * 1000 + 3 - at / 64).collect();
        assert_eq!(*got, want);
    }
}
