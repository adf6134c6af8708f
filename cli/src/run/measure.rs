//! Times and verifies one row: a collective on the ranks of the run.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hopbine::reduce::{Datatype, Dtype, Op};
use hopbine::{Blocks, CallOptions, Communicator, Error, Simulation, emulate, simulate};
use hopbine_torus::Collective;

use super::ranks::Ranks;
use super::reference::{CollectiveCase, Reference};
use super::verify::{Wrong, verify, verify_same};

/// Number or duration of the measured iterations.
#[derive(Clone, Copy, Debug)]
pub enum Iterations {
    /// This number of iterations.
    Fixed(u64),
    /// As many iterations as fit in this time, within the limits [`ADAPTIVE`].
    For(Duration),
}

/// Minimum and maximum number of iterations if the number is not given.
pub const ADAPTIVE: (u64, u64) = (5, 1000);

/// Number of iterations before the first timed one.
const WARM_UP: u64 = 2;

/// Contents of receive buffers before a call, so that an earlier result cannot pass for a new one.
const STALE: u8 = 0xa5;

/// The measured times of a row, and its wrong results.
#[derive(Debug)]
pub struct Measured {
    /// Time of each iteration in seconds, on the slowest rank.
    pub seconds: Vec<f64>,
    /// Wrong results, by rank.
    pub wrong: Vec<Wrong>,
    /// Whether worker threads drove the ports.
    pub has_workers: bool,
    /// Data of the simulation, if ranks are simulated.
    pub simulated: Option<SimulationData>,
}

/// Data of a simulation, without its results.
#[derive(Debug)]
pub struct SimulationData {
    pub trace: u64,
    pub n_steps: u64,
    pub elapsed: Duration,
    pub violations: Vec<String>,
}

/// Runs, times and verifies a case.
///
/// # Errors
/// As [`emulate`] and the collectives.
pub fn measure(
    reference: &Reference,
    ranks: &Ranks,
    options: &CallOptions,
    iterations: Iterations,
) -> Result<Measured, Error> {
    let shared = |threads| Shared { reference, options, iterations, threads };
    let threads = || Threads { last: AtomicU64::new(u64::MAX), ..Threads::default() };
    let mut simulated = None;
    let mut ranks = match (&ranks.world, &ranks.simulation) {
        (None, Some(config)) => {
            let shared = shared(Some(threads()));
            let run = simulate(config, |comm, _| on_rank(comm, &shared))?;
            let Simulation { results, ends, trace, n_steps, elapsed, violations, .. } = run;
            let ranks = results.into_iter().collect::<Result<Vec<RankTimes>, Error>>()?;
            ends.into_iter().collect::<Result<(), Error>>()?;
            simulated = Some(SimulationData { trace, n_steps, elapsed, violations });
            ranks
        }
        (None, None) => {
            let shared = shared(Some(threads()));
            let ranks = emulate(&ranks.config, |comm| on_rank(comm, &shared))?;
            ranks.into_iter().collect::<Result<Vec<RankTimes>, Error>>()?
        }
        (Some(world), _) => {
            let comm = world.communicator();
            gather(comm, on_rank(comm, &shared(None))?)?
        }
    };
    if simulated.is_some() {
        // Real times of simulated ranks are meaningless, since the ranks take turns in one thread.
        ranks.iter_mut().for_each(|rank| rank.seconds.clear());
    }
    let n = ranks.iter().map(|rank| rank.seconds.len()).min().unwrap_or(0);
    let slowest = |i: usize| ranks.iter().map(|rank| rank.seconds[i]).fold(0.0, f64::max);
    Ok(Measured {
        seconds: (0..n).map(slowest).collect(),
        has_workers: ranks.iter().any(|rank| rank.has_workers),
        wrong: ranks.into_iter().filter_map(|rank| rank.wrong).collect(),
        simulated,
    })
}

/// Data that the ranks of a row share.
struct Shared<'a> {
    reference: &'a Reference,
    options: &'a CallOptions,
    iterations: Iterations,
    /// Data that ranks share if they are threads.
    threads: Option<Threads>,
}

#[derive(Default)]
struct Threads {
    /// Number of the last timed iteration, set by rank 0.
    last: AtomicU64,
    /// Total number of entries into a barrier under test, over all ranks and iterations.
    entered: AtomicU64,
    /// Rank 0's result after the last iteration.
    first: OnceLock<Vec<u8>>,
}

/// The times and wrong results of one rank.
struct RankTimes {
    seconds: Vec<f64>,
    wrong: Option<Wrong>,
    has_workers: bool,
}

fn on_rank(world: &Communicator, shared: &Shared<'_>) -> Result<RankTimes, Error> {
    let (reference, rank) = (shared.reference, world.rank());
    let case = &reference.case;
    let comm = world.with(shared.options.clone());
    let call = typed(case.data.dtype);
    let [(mut send, send_bytes), (mut recv, recv_bytes)] = case.buffers(rank);
    let send = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut send)[..send_bytes];
    let recv = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut recv)[..recv_bytes];
    case.data.fill(rank, send);
    let lists = Lists::new(case, rank);
    let mut seconds = Vec::new();
    let mut wrong = None;
    let mut started = Instant::now();
    let mut iteration = 0;
    loop {
        if iteration == WARM_UP {
            started = Instant::now();
        }
        recv.fill(STALE);
        if case.collective == Collective::Bcast && rank == case.root {
            recv.copy_from_slice(send);
        }
        let is_enough = rank == 0 && is_enough(shared.iterations, iteration, started);
        if shared.is_over(world, iteration, is_enough)? {
            break;
        }
        if let Some(threads) = &shared.threads {
            // Relaxed: a counter, compared only after the barrier under test.
            threads.entered.fetch_add(1, Ordering::Relaxed);
        }
        let start = Instant::now();
        call(&comm, case, &lists, send, recv)?;
        let elapsed = start.elapsed();
        if iteration >= WARM_UP {
            seconds.push(elapsed.as_secs_f64());
        }
        if case.collective == Collective::Barrier {
            let entered = shared.threads.as_ref().map(|all| all.entered.load(Ordering::Relaxed));
            let early = entered.and_then(|entered| left_early(rank, case, iteration, entered));
            wrong = wrong.or(early);
        } else if iteration == 0 {
            wrong = verify(reference, rank, recv);
        }
        iteration += 1;
    }
    // The buffers contain stale bytes again: makes one more call and verifies its result like the first one, now that
    // all of the library's state has been used often.
    call(&comm, case, &lists, send, recv)?;
    corrupt(rank, recv);
    let result = &*recv;
    let first = shared.first(world, case, result)?;
    let wrong = wrong.or_else(|| {
        // A result with the same bits as rank 0's is verified on rank 0 only.
        match first {
            Some(first) if rank != 0 && *first == *result => None,
            Some(first) => verify(reference, rank, result)
                .or_else(|| verify_same(reference, rank, result, &first)),
            None => verify(reference, rank, result),
        }
    });
    Ok(RankTimes { seconds, wrong, has_workers: world.has_workers() })
}

impl Shared<'_> {
    /// Whether rank 0 has ended the measurement before this iteration; the same on all ranks.
    fn is_over(&self, world: &Communicator, iteration: u64, enough: bool) -> Result<bool, Error> {
        let Some(threads) = &self.threads else {
            let mut enough = [u8::from(enough)];
            world.bcast(&mut enough, 0)?;
            world.barrier()?;
            return Ok(enough[0] != 0);
        };
        if enough {
            // Relaxed: the barrier below orders the store before every rank's load.
            threads.last.fetch_min(iteration.saturating_sub(1), Ordering::Relaxed);
        }
        world.barrier()?;
        // A late rank may read the value that rank 0 stores for the next iteration. That value names this iteration
        // as the last one, so the late rank continues like all others.
        Ok(iteration > threads.last.load(Ordering::Relaxed))
    }

    /// Rank 0's result, if all ranks must have the same result.
    fn first<'a>(
        &'a self,
        world: &Communicator,
        case: &CollectiveCase,
        result: &[u8],
    ) -> Result<Option<Cow<'a, [u8]>>, Error> {
        if !case.is_same_everywhere() {
            return Ok(None);
        }
        let Some(threads) = &self.threads else {
            let mut first = result.to_vec();
            world.bcast(&mut first, 0)?;
            return Ok(Some(Cow::Owned(first)));
        };
        if world.rank() == 0 {
            // Only rank 0 sets it, once.
            let _ = threads.first.set(result.to_vec());
        }
        world.barrier()?;
        Ok(threads.first.get().map(|first| Cow::Borrowed(&first[..])))
    }
}

/// Gathers the measurements of all ranks if ranks are processes.
fn gather(comm: &Communicator, own: RankTimes) -> Result<Vec<RankTimes>, Error> {
    let text = serde_json::to_vec(&(&own.seconds, &own.wrong, own.has_workers));
    let text = text.unwrap_or_default();
    let mut lens = vec![0; comm.size() as usize];
    comm.allgather(&[text.len() as u64], &mut lens)?;
    let longest = lens.iter().copied().max().unwrap_or(0) as usize;
    let mut padded = text;
    padded.resize(longest, b' ');
    let mut all = vec![0; longest * lens.len()];
    comm.allgather(&padded, &mut all)?;
    let ranks = all.chunks(longest.max(1)).map(|text| {
        let (seconds, wrong, has_workers) =
            serde_json::from_slice(text).expect("a rank of this program wrote it");
        RankTimes { seconds, wrong, has_workers }
    });
    Ok(ranks.collect())
}

fn is_enough(iterations: Iterations, iteration: u64, started: Instant) -> bool {
    let timed = iteration.saturating_sub(WARM_UP);
    match iterations {
        Iterations::Fixed(n) => timed >= n && iteration > WARM_UP,
        Iterations::For(budget) => {
            timed >= ADAPTIVE.1 || (timed >= ADAPTIVE.0 && started.elapsed() >= budget)
        }
    }
}

/// The sizes of blocks that differ: of the blocks that a rank sends, by receiver, and of the blocks that it receives,
/// by sender; for a rank that sends or receives the blocks of all ranks.
pub struct Lists {
    pub send: Vec<u64>,
    pub recv: Vec<u64>,
}

impl Lists {
    pub fn new(case: &CollectiveCase, rank: u32) -> Self {
        let ranks = 0..if case.counts.is_some() { case.data.n_ranks } else { 0 };
        let is_pairs = case.collective == Collective::Alltoall;
        let sent = |to| if is_pairs { case.block(rank, to) } else { case.block(to, 0) };
        let send = ranks.clone().map(|to| sent(to) as u64).collect();
        Lists { send, recv: ranks.map(|from| case.block(from, rank) as u64).collect() }
    }
}

/// A collective on buffers of bytes.
pub type Call = fn(&Communicator, &CollectiveCase, &Lists, &[u8], &mut [u8]) -> Result<(), Error>;

/// The function that makes the call with elements of a type.
pub fn typed(dtype: Dtype) -> Call {
    use half::{bf16, f16};
    use hopbine::reduce::Pair;
    use num_complex::Complex;
    match dtype {
        Dtype::I8 => call::<i8>,
        Dtype::I16 => call::<i16>,
        Dtype::I32 => call::<i32>,
        Dtype::I64 => call::<i64>,
        Dtype::U8 => call::<u8>,
        Dtype::U16 => call::<u16>,
        Dtype::U32 => call::<u32>,
        Dtype::U64 => call::<u64>,
        Dtype::F16 => call::<f16>,
        Dtype::Bf16 => call::<bf16>,
        Dtype::F32 => call::<f32>,
        Dtype::F64 => call::<f64>,
        Dtype::ComplexF32 => call::<Complex<f32>>,
        Dtype::ComplexF64 => call::<Complex<f64>>,
        Dtype::PairI32 => call::<Pair<i32, i32>>,
        Dtype::PairI64 => call::<Pair<i64, i64>>,
        Dtype::PairF32 => call::<Pair<f32, f32>>,
        Dtype::PairF64 => call::<Pair<f64, f64>>,
        Dtype::PairF32I32 => call::<Pair<f32, i32>>,
    }
}

fn call<T: Datatype>(
    comm: &Communicator,
    case: &CollectiveCase,
    lists: &Lists,
    send: &[u8],
    recv: &mut [u8],
) -> Result<(), Error> {
    let (send, recv) = (bytemuck::cast_slice::<u8, T>(send), bytemuck::cast_slice_mut(recv));
    // Collectives without a reduction ignore the operator.
    let (op, root) = (case.data.op.unwrap_or(Op::Sum), case.root);
    let (sent, received) = (Blocks::new(&lists.send), Blocks::new(&lists.recv));
    match case.collective {
        Collective::ReduceScatter if case.counts.is_some() => {
            comm.reduce_scatterv(send, recv, &lists.send, op)
        }
        Collective::Allgather if case.counts.is_some() => comm.allgatherv(send, recv, received),
        Collective::Gather if case.only_root_knows => {
            comm.gatherv(send, recv, (comm.rank() == root).then_some(received), root)
        }
        Collective::Scatter if case.only_root_knows => {
            comm.scatterv(send, (comm.rank() == root).then_some(sent), recv, root)
        }
        Collective::Gather if case.counts.is_some() => {
            comm.gatherv_known(send, recv, received, root)
        }
        Collective::Scatter if case.counts.is_some() => comm.scatterv_known(send, sent, recv, root),
        Collective::Alltoall if case.counts.is_some() => comm.alltoallv(send, sent, recv, received),
        Collective::Allreduce => comm.allreduce(send, recv, op),
        Collective::ReduceScatter => comm.reduce_scatter(send, recv, op),
        Collective::Allgather => comm.allgather(send, recv),
        Collective::Bcast => comm.bcast(recv, root),
        Collective::Reduce => comm.reduce(send, recv, op, root),
        Collective::Gather => comm.gather(send, recv, root),
        Collective::Scatter => comm.scatter(send, recv, root),
        Collective::Alltoall => comm.alltoall(send, recv),
        Collective::Scan => comm.scan(send, recv, op),
        Collective::Exscan if recv.is_empty() => {
            // The result of rank 0 is undefined in an exscan: it goes to a temporary buffer.
            comm.exscan(send, &mut vec![T::zeroed(); send.len()], op)
        }
        Collective::Exscan => comm.exscan(send, recv, op),
        Collective::Barrier => comm.barrier(),
    }
}

/// Detects a rank that leaves a barrier before all ranks have entered it. (A barrier has no data to verify.)
fn left_early(rank: u32, case: &CollectiveCase, iteration: u64, entered: u64) -> Option<Wrong> {
    let expected = u64::from(case.data.n_ranks) * (iteration + 1);
    (entered < expected).then(|| Wrong {
        rank,
        index: 0,
        expected: format!("all {} ranks in the barrier", case.data.n_ranks),
        found: format!("{} ranks missing", expected - entered),
        n_wrong: 1,
    })
}

/// Fault injection for tests: `HOPBINE_TEST_CORRUPT=RANK:BYTE` changes a byte of a rank's result. Release builds
/// ignore the variable.
#[cfg(debug_assertions)]
fn corrupt(rank: u32, result: &mut [u8]) {
    let Ok(text) = std::env::var("HOPBINE_TEST_CORRUPT") else { return };
    let place = text
        .split_once(':')
        .and_then(|(rank, byte)| Some((rank.parse::<u32>().ok()?, byte.parse::<usize>().ok()?)));
    if let Some((_, byte)) = place.filter(|(at, byte)| *at == rank && *byte < result.len()) {
        result[byte] ^= 0x81;
    }
}

#[cfg(not(debug_assertions))]
fn corrupt(_: u32, _: &mut [u8]) {}
