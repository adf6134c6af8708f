//! Verifies that the executed programs are what was proved: the engine's compiled programs (segments, staging, places
//! of operands, hazards) are executed symbolically in random topological orders.
//!
//! An element of a buffer is a symbol: the sum of the combined values, and a hash of the expression. A message may be
//! read when its send may start, or only when its receive is posted. From the posting of a receive until its message
//! arrives, its region holds rubbish. So an edge that the task graph lacks causes a wrong result in some order.

use super::engine::buffers;
use crate::common::reference::{Case, expected};
use hopbine::engine::{
    Buffer, CheckedPlan, CompileFailure, Geometry, Program, Region, Sizes, Staged, Task, compile,
};
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{Flow, max_ports};
use hopbine_torus::{Algorithm, Collective, Request, registry};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustc_hash::FxHashMap;

/// Bytes of an element.
pub(super) const SIZE: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) sum: u64,
    /// Hash of the expression.
    order: u64,
}

const RUBBISH: Symbol = Symbol { sum: 0xdead_beef_dead_beef, order: 0x0bad_cafe_0bad_cafe };

impl Symbol {
    fn combined(self, right: Symbol) -> Symbol {
        let order = (self.order.rotate_left(23) ^ right.order).wrapping_mul(0xff51_afd7_ed55_8ccd);
        Symbol { sum: self.sum.wrapping_add(right.sum), order }
    }
}

/// A rank's buffers. Each port has its own staging buffer.
pub(super) struct Memory {
    pub(super) shared: [Vec<Symbol>; 3],
    staging: Vec<Vec<Symbol>>,
    elem_bytes: u64,
}

impl Memory {
    fn of(&mut self, port: usize, region: Region) -> &mut [Symbol] {
        let size = self.elem_bytes;
        let list = match region.buffer {
            Buffer::Staging => &mut self.staging[port],
            buffer => &mut self.shared[buffer as usize],
        };
        let is_whole = region.offset.is_multiple_of(size) && region.len.is_multiple_of(size);
        assert!(is_whole, "{region:?}");
        let start = (region.offset / size) as usize;
        &mut list[start..start + (region.len / size) as usize]
    }
}

/// Key of a message: sender, receiver, port and number.
type Key = (u32, u32, usize, u32);
/// Key of a task: rank, port and number.
type At = (usize, usize, u32);

enum Item {
    Start(At),
    Deliver(Key),
}

/// A send that has started: its task and region if the data are still to be read, otherwise the data.
enum Sent {
    Waiting(At, Region),
    Read(Vec<Symbol>),
}

pub(super) struct Execution {
    programs: Vec<Program>,
    pub(super) memories: Vec<Memory>,
    /// Number of unfinished dependencies of every task, by rank and port.
    n_deps: Vec<Vec<Vec<u32>>>,
    items: Vec<Item>,
    sent: FxHashMap<Key, Sent>,
    posted: FxHashMap<Key, (At, Region)>,
    n_left: usize,
    /// Numbers of sends and of receives in progress, by rank and port. `most_under_way` is the largest so far.
    under_way: Vec<Vec<[u32; 2]>>,
    pub(super) most_under_way: u32,
}

impl Execution {
    pub(super) fn new(programs: Vec<Program>, inputs: Vec<[Vec<u64>; 2]>, elem_bytes: u64) -> Self {
        let symbols = |list: Vec<u64>| -> Vec<Symbol> {
            let leaf = |value: u64| Symbol { sum: value, order: value.wrapping_mul(3) ^ 77 };
            list.into_iter().map(leaf).collect()
        };
        let rubbish = |bytes: u64| vec![RUBBISH; bytes.div_ceil(elem_bytes) as usize];
        let memories = programs.iter().zip(inputs).map(|(program, [send, recv])| Memory {
            shared: [symbols(send), symbols(recv), rubbish(program.work_bytes)],
            staging: {
                let needs = program.ports.iter().map(|port| port.needs[Buffer::Staging as usize]);
                needs.map(rubbish).collect()
            },
            elem_bytes,
        });
        let n_deps: Vec<Vec<Vec<u32>>> = programs
            .iter()
            .map(|program| program.ports.iter().map(|port| port.n_deps.to_vec()).collect())
            .collect();
        let mut execution = Execution {
            memories: memories.collect(),
            items: Vec::new(),
            sent: FxHashMap::default(),
            posted: FxHashMap::default(),
            under_way: n_deps.iter().map(|ports| vec![[0; 2]; ports.len()]).collect(),
            most_under_way: 0,
            n_left: n_deps.iter().flatten().map(Vec::len).sum(),
            n_deps,
            programs,
        };
        for rank in 0..execution.programs.len() {
            for port in 0..execution.programs[rank].ports.len() {
                for task in 0..execution.n_deps[rank][port].len() {
                    if execution.n_deps[rank][port][task] == 0 {
                        execution.items.push(Item::Start((rank, port, task as u32)));
                    }
                }
            }
        }
        execution
    }

    pub(super) fn run(&mut self, rng: &mut SmallRng) {
        while !self.items.is_empty() {
            let index = rng.random_range(0..self.items.len());
            match self.items.swap_remove(index) {
                Item::Start(at) => self.start(at, rng),
                Item::Deliver(key) => self.deliver(key),
            }
        }
        assert_eq!(self.n_left, 0, "stuck");
        for (program, memory) in self.programs.iter().zip(&mut self.memories) {
            for copy in &program.closing {
                let read = memory.of(0, copy.from).to_vec();
                memory.of(0, copy.into).copy_from_slice(&read);
            }
        }
    }

    fn start(&mut self, at @ (rank, port, task): At, rng: &mut SmallRng) {
        if let Some(which) = self.on_wire(at) {
            let under_way = &mut self.under_way[rank][port][which];
            *under_way += 1;
            self.most_under_way = self.most_under_way.max(*under_way);
        }
        let code = &self.programs[rank].ports[port];
        let memory = &mut self.memories[rank];
        match code.tasks[task as usize] {
            Task::Send { to, message, from } => {
                let key = (rank as u32, to, port, message);
                if rng.random_bool(0.5) {
                    self.sent.insert(key, Sent::Read(memory.of(port, from).to_vec()));
                    self.finish(at);
                } else {
                    self.sent.insert(key, Sent::Waiting(at, from));
                }
                self.meet(key);
            }
            Task::Recv { from, message, into } => {
                memory.of(port, into).fill(RUBBISH);
                let key = (from, rank as u32, port, message);
                assert!(self.posted.insert(key, (at, into)).is_none(), "{key:?} twice");
                self.meet(key);
            }
            Task::Copy(span) => {
                let moves = span.start as usize..(span.start + span.len) as usize;
                for copy in &code.moves[moves] {
                    let read = memory.of(port, copy.from).to_vec();
                    memory.of(port, copy.into).copy_from_slice(&read);
                }
                self.finish(at);
            }
            Task::Fold(span) => {
                for fold in &code.folds[span.start as usize..(span.start + span.len) as usize] {
                    let operands = fold.operands;
                    let range = operands.start as usize..(operands.start + operands.len) as usize;
                    let mut values: Vec<Vec<Symbol>> = code.operands[range]
                        .iter()
                        .map(|region| memory.of(port, *region).to_vec())
                        .collect();
                    if let Some(own_at) = fold.own_at {
                        values.insert(own_at as usize, memory.of(port, fold.into).to_vec());
                    }
                    let folded = values.into_iter().reduce(|left, right| {
                        left.iter().zip(&right).map(|(a, b)| a.combined(*b)).collect()
                    });
                    let folded = folded.expect("a fold has operands");
                    memory.of(port, fold.into).copy_from_slice(&folded);
                }
                self.finish(at);
            }
        }
    }

    /// Index of a wire task's kind: 0 for a send, 1 for a receive; `None` for other tasks.
    fn on_wire(&self, (rank, port, task): At) -> Option<usize> {
        match self.programs[rank].ports[port].tasks[task as usize] {
            Task::Send { .. } => Some(0),
            Task::Recv { .. } => Some(1),
            Task::Copy(_) | Task::Fold(_) => None,
        }
    }

    fn meet(&mut self, key: Key) {
        if self.sent.contains_key(&key) && self.posted.contains_key(&key) {
            self.items.push(Item::Deliver(key));
        }
    }

    fn deliver(&mut self, key: Key) {
        let (from, to, port, _) = key;
        let data = match self.sent.remove(&key).expect("it has met") {
            Sent::Read(data) => data,
            Sent::Waiting(at, region) => {
                let data = self.memories[from as usize].of(port, region).to_vec();
                self.finish(at);
                data
            }
        };
        let (at, into) = self.posted.remove(&key).expect("it has met");
        self.memories[to as usize].of(port, into).copy_from_slice(&data);
        self.finish(at);
    }

    fn finish(&mut self, at @ (rank, port, task): At) {
        if let Some(which) = self.on_wire(at) {
            self.under_way[rank][port][which] -= 1;
        }
        self.n_left -= 1;
        let program = &self.programs[rank];
        let code = &program.ports[port];
        let mut waiting: Vec<At> =
            code.successors(task).iter().map(|&next| (rank, port, next)).collect();
        if let Some(flag) = code.flag(task) {
            for (port, other) in program.ports.iter().enumerate() {
                let heard = other.flag_waits.iter().flatten().filter(|heard| heard.flag == flag);
                waiting.extend(heard.map(|heard| (rank, port, heard.task)));
            }
        }
        for at @ (rank, port, task) in waiting {
            let n_deps = &mut self.n_deps[rank][port][task as usize];
            *n_deps -= 1;
            if *n_deps == 0 {
                self.items.push(Item::Start(at));
            }
        }
    }
}

/// Shapes of at most 35 ranks: every kind of axis, and nodes with several ranks.
pub(super) const SHAPES: [&str; 20] = [
    "1", "2", "3", "4", "5", "7", "8", "12", "16", "23", "2x3", "3x3", "4x4", "2x6", "5x7",
    "2x2x2", "2x3x2", "3x3x3", "2x3+4", "4x3mx2",
];

/// Shapes with more ranks have one call of each algorithm, in turn: what it takes grows with the square of the ranks.
const FEW: u32 = 12;
/// Shapes with more ranks have every other algorithm, in turn.
const MANY: u32 = 16;

/// Whether each test run has this algorithm of the registry on this shape of the list.
pub(super) fn is_in_turn(n_ranks: u32, shape: usize, algorithm: usize) -> bool {
    n_ranks <= MANY || (shape + algorithm).is_multiple_of(2)
}

fn interpret(collective: Collective) {
    interpret_some(collective, false);
}

/// Runs every call on every shape, both in place and out of place.
#[test]
#[ignore = "takes minutes: cargo test --test ranks -- --ignored"]
fn everything() {
    Collective::ALL.into_iter().for_each(|collective| interpret_some(collective, true));
}

/// Makes every other call in place, and few calls with many ranks; if `all`, makes each call both in place and out of
/// place.
fn interpret_some(collective: Collective, all: bool) {
    let can = !collective.is_rooted() && collective != Collective::Barrier;
    let mut rng = SmallRng::seed_from_u64(5);
    let mut n_run = 0;
    for (number, text) in SHAPES.iter().enumerate() {
        let shape: Shape = text.parse().unwrap();
        let (p, most) = (shape.n_ranks(), max_ports(&shape));
        let roots = if collective.is_rooted() && p > 1 { vec![0, p - 1] } else { vec![0] };
        // An alias makes the same plans as its algorithm.
        let is_own = |algorithm: &Algorithm| algorithm.alias_of.is_none();
        let own = registry::algorithms(collective).into_iter().filter(is_own);
        for (at, algorithm) in own.enumerate().filter(|&(at, _)| all || is_in_turn(p, number, at)) {
            let calls: Vec<(u32, u32)> =
                roots.iter().copied().zip([most, 1]).chain([(roots[0], 1)]).collect();
            let turn = (number + at) % calls.len();
            let calls = if all || p <= FEW { &calls[..] } else { &calls[turn..=turn] };
            for &(root, ports) in calls {
                let (map, shape) = (RankMap::ColumnMajor, shape.clone());
                let request =
                    Request { shape, map, root: hopbine_torus::Rank(root), ports: Some(ports) };
                let Ok(schedule) = algorithm.schedule(&request) else { continue };
                let expansion = schedule.expand().unwrap();
                let is_vector = expansion.lanes()[0].space.payload.name() == "vector";
                let count = if is_vector { 2 * p as usize * most as usize + 3 } else { 5 };
                let case = Case { collective, n_ranks: p, count, root };
                let is_odd = n_run % 2 == 1;
                let in_place: &[bool] = match (can, all) {
                    (false, _) => &[false],
                    (true, true) => &[false, true],
                    (true, false) => std::slice::from_ref(&is_odd),
                };
                for &in_place in in_place {
                    let segment_bytes = [None, Some(8), Some(16)][(number + n_run) % 3];
                    let what = format!("{collective} {} on {text}", algorithm.name);
                    let how = How { in_place, segment_bytes, elem_bytes: SIZE, number: n_run };
                    interpret_one(&expansion, &case, how, &mut rng, &what);
                    n_run += 1;
                }
            }
        }
    }
    println!("{collective}: {n_run} sets of programs");
}

/// The parameters of a call besides its plan. `number` determines which ranks are staged.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) in_place: bool,
    pub(super) segment_bytes: Option<u64>,
    pub(super) elem_bytes: u64,
    pub(super) number: usize,
}

/// Runs one call.
pub(super) fn interpret_one(
    flow: &dyn Flow,
    case: &Case,
    how: How,
    rng: &mut SmallRng,
    what: &str,
) {
    let How { in_place, segment_bytes, elem_bytes, number } = how;
    let sizes = Sizes::Equal(case.count as u64);
    let geometry = Geometry { sizes, elem_bytes, in_place, segment_bytes, staged: None };
    // Some ranks may have to register memory anew in each call, while other ranks keep registrations.
    let staged = Staged { keyless_bytes: elem_bytes, up_to_bytes: u64::MAX };
    let programs = hopbine_torus::Rank::first(case.n_ranks)
        .map(|rank| {
            let is_staged = (rank.index() + number / 2) % 4 < 2;
            let staged = is_staged.then_some(staged);
            let plan = CheckedPlan::new(flow.plan(rank))?;
            let program = compile(&plan, &Geometry { staged, ..geometry.clone() })?;
            assert!(!is_staged || registers_nothing(&program, elem_bytes));
            Ok(program)
        })
        .collect::<Result<Vec<Program>, CompileFailure>>();
    let inputs = (0..case.n_ranks).map(|rank| buffers(case, in_place, rank)).collect();
    let mut execution = Execution::new(programs.unwrap(), inputs, elem_bytes);
    execution.run(rng);
    check(case, &execution, what);
}

/// Whether no message longer than `keyless_bytes` is sent from or received into the user's memory.
pub(super) fn registers_nothing(program: &Program, keyless_bytes: u64) -> bool {
    let longest = program.ports.iter().flat_map(|port| &port.wire_bytes[..2]);
    longest.max().is_none_or(|&longest| longest <= keyless_bytes)
}

fn check(case: &Case, execution: &Execution, what: &str) {
    let mut first: Option<Vec<u64>> = None;
    for (rank, memory) in execution.memories.iter().enumerate() {
        let want = expected(case, rank as u32, u64::wrapping_add);
        if case.collective == Collective::Exscan && rank == 0 {
            // Rank 0 receives nothing in an exscan.
            continue;
        }
        let got = &memory.shared[Buffer::Recv as usize][..want.len()];
        let sums: Vec<u64> = got.iter().map(|symbol| symbol.sum).collect();
        assert!(sums == want, "{what}, root {}: rank {rank} is wrong", case.root);
        if case.collective == Collective::Allreduce {
            let orders: Vec<u64> = got.iter().map(|symbol| symbol.order).collect();
            let same = first.get_or_insert_with(|| orders.clone()) == &orders;
            assert!(same, "{what}: rank {rank} combines in another order");
        }
    }
}

/// Calls of 5 GiB, most of whose offsets have more than 32 bits: elements are as long as the pieces into which copies are
/// cut.
#[test]
fn offsets_of_more_than_32_bits() {
    let (elem_bytes, total_bytes) = (256 << 10, 5u64 << 30);
    let mut rng = SmallRng::seed_from_u64(8);
    for (number, collective) in Collective::ALL.into_iter().enumerate() {
        let text = ["4", "2x2+2", "3"][number % 3];
        let shape: Shape = text.parse().unwrap();
        let n_ranks = shape.n_ranks();
        let algorithm = &registry::algorithms(collective)[0];
        let root = if collective.is_rooted() { n_ranks - 1 } else { 0 };
        let (map, root_rank) = (RankMap::RowMajor, hopbine_torus::Rank(root));
        let request = Request { shape, map, root: root_rank, ports: None };
        let expansion = algorithm.schedule(&request).unwrap().expand().unwrap();
        let is_vector = expansion.lanes()[0].space.payload.name() == "vector";
        let n_blocks = if is_vector { 1 } else { u64::from(n_ranks) };
        let count = (total_bytes / elem_bytes / n_blocks) as usize;
        let case = Case { collective, n_ranks, count, root };
        let segment_bytes = [None, Some(1 << 30)][number % 2];
        let how = How { in_place: false, segment_bytes, elem_bytes, number };
        interpret_one(&expansion, &case, how, &mut rng, &format!("5 GiB of {collective}"));
    }
}

/// A batched algorithm has at most one batch of messages in progress, an algorithm without batches more.
#[test]
fn batches_bound_what_is_under_way() {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut most = |name: &str, text: &str| {
        let algorithm = registry::find(Collective::Alltoall, name).unwrap();
        let shape: Shape = text.parse().unwrap();
        let request =
            Request { shape, map: RankMap::RowMajor, root: hopbine_torus::Rank(0), ports: Some(1) };
        let expansion = algorithm.schedule(&request).unwrap().expand().unwrap();
        let p = expansion.n_ranks();
        let case = Case { collective: Collective::Alltoall, n_ranks: p, count: 3, root: 0 };
        let (sizes, segment_bytes) = (Sizes::Equal(3), None);
        let geometry =
            Geometry { sizes, elem_bytes: SIZE, in_place: false, segment_bytes, staged: None };
        let program =
            |rank| compile(&CheckedPlan::new(expansion.plan(rank)).unwrap(), &geometry).unwrap();
        let programs = hopbine_torus::Rank::first(p).map(program).collect();
        let inputs = (0..p).map(|rank| buffers(&case, false, rank)).collect();
        let mut execution = Execution::new(programs, inputs, SIZE);
        execution.run(&mut rng);
        check(&case, &execution, name);
        execution.most_under_way
    };
    for batch in [1, 2, 5] {
        for (name, text) in [
            ("pairwise", "23"),
            ("node-aware", "12+2"),
            ("dimensions", "7x5"),
            ("parlinna:2", "12+2"),
            ("parlinna-staggered:2", "12+2"),
        ] {
            let found = most(&format!("{name}-batched:{batch}"), text);
            assert!(found <= batch, "{name} on {text}: {found} at a time, not {batch}");
            let without = most(&format!("{name}-nonblocking"), text);
            assert!(without > 5, "{name} on {text}: {without} at a time");
        }
    }
}

crate::for_every_collective!(interpret);
