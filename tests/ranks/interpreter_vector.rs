//! The engine's programs for blocks of different sizes, executed symbolically as in `interpreter`.

use super::interpreter::{Execution, SHAPES, SIZE, is_in_turn, registers_nothing};
use crate::common::reference::input;
use std::sync::Arc;

use hopbine::engine::{
    BlockSizes, Buffer, CheckedPlan, Geometry, Known, Sizes, Staged, compile, compile_sizes,
    learnt, log_words,
};
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{Expansion, Flow, Plan, max_ports};
use hopbine_torus::{Collective, Request, registry};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Uneven sizes of blocks, some of them 0. Blocks of kind 0 lie in reverse order with gaps, blocks of kind 1 side by
/// side.
fn uneven(rank: u32, p: u32, collective: Collective, kind: usize) -> (Sizes, bool) {
    let of = |from: u32, to: u32| match kind {
        0 => u64::from((from * 5 + to * 3) % 7),
        _ => {
            if (from + to).is_multiple_of(4) {
                40
            } else {
                0
            }
        }
    };
    let spread = |counts: Vec<u64>| {
        let mut at = 1;
        let mut offsets = vec![0; counts.len()];
        for (offset, count) in offsets.iter_mut().zip(&counts).rev() {
            *offset = at;
            at += count + 1;
        }
        BlockSizes { counts: counts.into(), offsets: offsets.into() }
    };
    let is_pairs = collective == Collective::Alltoall;
    let (send, recv): (Vec<u64>, Vec<u64>) = if is_pairs {
        (0..p).map(|other| (of(rank, other), of(other, rank))).unzip()
    } else {
        (0..p).map(|other| (of(other, 0), of(other, 0))).unzip()
    };
    // The engine can work in place on adjacent blocks.
    let place = |counts: Vec<u64>| {
        if kind == 0 { spread(counts) } else { BlockSizes::adjacent(&counts) }
    };
    let known = if is_pairs { Known::ByEnds } else { Known::ByAll };
    (Sizes::PerBlock { send: place(send), recv: place(recv), known }, is_pairs)
}

/// Range of a block's elements in a buffer with these sizes.
fn block(sizes: &BlockSizes, block: u32) -> std::ops::Range<usize> {
    let start = sizes.offsets[block as usize] as usize;
    start..start + sizes.counts[block as usize] as usize
}

/// A rank's buffers before the call, and the receive buffer's expected contents, by the definitions. Block `to` of
/// rank `from` has the elements `input(from, 1000 * to + index)`.
fn vector_case(
    collective: Collective,
    sizes: &Sizes,
    [rank, p, root]: [u32; 3],
    in_place: bool,
) -> ([Vec<u64>; 2], Vec<Option<u64>>) {
    use Collective as C;
    let Sizes::PerBlock { send, recv, .. } = sizes else { unreachable!("made by `uneven`") };
    let len = |sizes: &BlockSizes| (0..p).map(|at| block(sizes, at).end).max().unwrap_or(0);
    let value = |from: u32, to: u32, index: usize| input(from, 1000 * to as usize + index);
    let own = send.counts[rank as usize] as usize;
    let is_root = rank == root;
    let all = |sizes: &BlockSizes, from: &dyn Fn(u32) -> (u32, u32)| {
        let mut list = vec![None; len(sizes)];
        for at in 0..p {
            let (from, to) = from(at);
            let values = (0..).map(|index| Some(value(from, to, index)));
            list[block(sizes, at)].iter_mut().zip(values).for_each(|(into, from)| *into = from);
        }
        list
    };
    let bare = |list: Vec<Option<u64>>| -> Vec<u64> {
        list.into_iter().map(|value| value.unwrap_or(u64::MAX)).collect()
    };
    let mine = || (0..own).map(|index| value(rank, 0, index)).collect::<Vec<u64>>();
    let gathered = || all(recv, &|at| (at, 0));
    match collective {
        C::Gather if !is_root => ([mine(), vec![]], vec![]),
        C::Allgather | C::Gather if in_place => {
            let mut given = vec![u64::MAX; len(recv)];
            given[block(recv, rank)].copy_from_slice(&mine());
            ([vec![], given], gathered())
        }
        C::Allgather | C::Gather => ([mine(), vec![u64::MAX; len(recv)]], gathered()),
        C::Scatter => {
            let given = if is_root { bare(all(send, &|at| (root, at))) } else { vec![] };
            let got = (0..own).map(|index| Some(value(root, rank, index))).collect();
            ([given, vec![u64::MAX; own]], got)
        }
        C::ReduceScatter => {
            let given = bare(all(send, &|at| (rank, at)));
            let sum =
                |index| (0..p).map(|from| value(from, rank, index)).fold(0, u64::wrapping_add);
            let got = (0..own).map(|index| Some(sum(index))).collect();
            (if in_place { [vec![], given] } else { [given, vec![u64::MAX; own]] }, got)
        }
        _ => {
            let got = all(recv, &|at| (at, rank));
            ([bare(all(send, &|at| (rank, at))), vec![u64::MAX; len(recv)]], got)
        }
    }
}

/// The sizes that each rank learns of other ranks' blocks.
fn learn(expansion: &Expansion, kind: usize, rng: &mut SmallRng) -> Vec<Known> {
    let p = expansion.n_ranks();
    let plans: Vec<Plan> = (0..p).map(|rank| expansion.plan(hopbine_torus::Rank(rank))).collect();
    let given = |rank: u32| {
        let (sizes, _) = uneven(rank, p, Collective::Alltoall, kind);
        let Sizes::PerBlock { send, .. } = sizes else { unreachable!("made by `uneven`") };
        send.counts.iter().copied().chain([0]).collect::<Vec<u64>>()
    };
    let buffers =
        plans.iter().map(|plan| [given(plan.rank.0), vec![u64::MAX; log_words(plan) as usize]]);
    let mut execution =
        Execution::new(plans.iter().map(compile_sizes).collect(), buffers.collect(), SIZE);
    execution.run(rng);
    let log = |rank: usize| -> Vec<u64> {
        let words = &execution.memories[rank].shared[Buffer::Recv as usize];
        words.iter().map(|word| word.sum).collect()
    };
    let known = |(rank, plan): (usize, &Plan)| Known::Learnt(Arc::new(learnt(plan, 0, &log(rank))));
    plans.iter().enumerate().map(known).collect()
}

fn interpret_vector(collective: Collective) {
    interpret_some(collective, false);
}

#[test]
#[ignore = "takes long: cargo test --test ranks -- --ignored"]
fn everything() {
    ALL.into_iter().for_each(|collective| interpret_some(collective, true));
}

/// Like `interpreter`'s, with blocks of different sizes.
fn interpret_some(collective: Collective, all: bool) {
    let mut rng = SmallRng::seed_from_u64(6);
    let mut n_run = 0;
    for (turn, text) in SHAPES.into_iter().enumerate() {
        let shape: Shape = text.parse().unwrap();
        let (p, most) = (shape.n_ranks(), max_ports(&shape));
        // An alias makes the same plans as its algorithm.
        let own = registry::algorithms(collective).into_iter().filter(|one| one.alias_of.is_none());
        for (number, algorithm) in own.enumerate().filter(|&(at, _)| all || is_in_turn(p, turn, at))
        {
            let root = if collective.is_rooted() { number as u32 % p } else { 0 };
            let ports = Some(if number % 3 == 0 { 1 } else { most });
            let (map, shape) = (RankMap::ColumnMajor, shape.clone());
            let request = Request { shape, map, root: hopbine_torus::Rank(root), ports };
            let Ok(schedule) = algorithm.schedule(&request) else { continue };
            let expansion = schedule.expand().unwrap();
            for in_place in [false, true] {
                let can = matches!(
                    collective,
                    Collective::Allgather | Collective::Gather | Collective::ReduceScatter
                );
                if in_place && !can {
                    continue;
                }
                let kind = n_run % 2;
                let segment_bytes = [None, Some(8), Some(16)][n_run % 3];
                let is_pairs = collective == Collective::Alltoall;
                let told =
                    (is_pairs && !algorithm.is_direct()).then(|| learn(&expansion, kind, &mut rng));
                let mut programs = Vec::new();
                let (mut inputs, mut wants) = (Vec::new(), Vec::new());
                for rank in 0..p {
                    let (mut sizes, _) = uneven(rank, p, collective, kind);
                    if in_place
                        && collective == Collective::ReduceScatter
                        && let Sizes::PerBlock { send, recv, .. } = &mut sizes
                    {
                        *recv = send.clone();
                    }
                    if let (Some(told), Sizes::PerBlock { known, .. }) = (&told, &mut sizes) {
                        *known = told[rank as usize].clone();
                    }
                    let (buffers, want) =
                        vector_case(collective, &sizes, [rank, p, root], in_place);
                    let in_place = in_place && (!collective.is_rooted() || rank == root);
                    let staged = rng
                        .random_bool(0.5)
                        .then_some(Staged { keyless_bytes: SIZE, up_to_bytes: u64::MAX });
                    let elem_bytes = SIZE;
                    let geometry = Geometry { sizes, elem_bytes, in_place, segment_bytes, staged };
                    let plan = CheckedPlan::new(expansion.plan(hopbine_torus::Rank(rank))).unwrap();
                    let program = compile(&plan, &geometry).unwrap();
                    assert!(staged.is_none() || registers_nothing(&program, SIZE));
                    programs.push(program);
                    inputs.push(buffers);
                    wants.push(want);
                }
                let mut execution = Execution::new(programs, inputs, SIZE);
                execution.run(&mut rng);
                for (rank, (memory, want)) in execution.memories.iter().zip(wants).enumerate() {
                    let got = &memory.shared[Buffer::Recv as usize];
                    let what = format!("{collective} {} on {text}: rank {rank}", algorithm.name);
                    for (index, want) in want.into_iter().enumerate() {
                        // Elements between blocks stay untouched, unless the input was in this buffer.
                        let want = want.or((!in_place).then_some(u64::MAX));
                        assert!(want.is_none_or(|want| got[index].sum == want), "{what}, {index}");
                    }
                }
                n_run += 1;
            }
        }
    }
    println!("{collective}: {n_run} sets of programs");
}

macro_rules! interpreted_vector {
    ($($name:ident: $collective:ident,)*) => {
        const ALL: [Collective; [$(stringify!($name)),*].len()] = [$(Collective::$collective),*];
        $(#[test]
        fn $name() {
            interpret_vector(Collective::$collective);
        })*
    };
}

interpreted_vector! {
    allgatherv: Allgather,
    gatherv: Gather,
    scatterv: Scatter,
    reduce_scatterv: ReduceScatter,
    alltoallv: Alltoall,
}
