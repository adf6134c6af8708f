//! A rank of `hopbine bench`: times collectives of hopbine as `collectives.c` in this directory times those of an
//! MPI.

use std::time::Instant;

use hopbine::reduce::Op;
use hopbine::{Blocks, CallOptions, Communicator, Error};

use crate::error::{CliError, Outcome};
use crate::output::OutputArg;

const BATCHES: usize = 5;

/// Time collectives as one rank of a job, for `hopbine bench`
///
/// A size is what a rank holds in all: the vector of allreduce, bcast and reduce; all blocks together of
/// reduce-scatter, allgather and alltoall; of alltoallv-uniform, alltoallv-skewed and alltoallv-sparse about what it
/// sends on average. Sizes that do not divide into blocks are left out. Roots rotate from call to call, so that no rank
/// can run ahead. Each measurement is five batches of equally many calls; rank 0 prints `collective bytes
/// microseconds`, the median batch of the slowest rank.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Names, with commas between
    collectives: String,
    /// Bytes, with commas between
    sizes: String,
    /// Milliseconds per measurement
    budget: f64,
    /// What serves the calls, if the library is not to choose
    algorithm: Option<String>,
    /// The longest message
    segment: Option<u64>,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let mut options = CallOptions::new();
    options.algorithm = args.algorithm.filter(|name| name != "auto").map(Into::into);
    options.segment_bytes = args.segment;
    let sizes: Result<Vec<usize>, _> = args.sizes.split(',').map(str::parse).collect();
    let sizes = sizes.map_err(|error| CliError::Usage(format!("sizes {}: {error}", args.sizes)))?;
    let times = if args.collectives.contains("alltoallv") { 4 } else { 1 };
    let longest = sizes.iter().copied().max().unwrap_or(8).max(8);
    // A size need not be a multiple of a number's.
    let most = times * longest.div_ceil(8);
    let world = hopbine::init().map_err(CliError::World)?;
    let comm = world.communicator();
    let mut bench = Bench {
        comm,
        by: comm.with(options),
        out: vec![f64::from_bits(0x4040_4040_4040_4040); most],
        into: vec![0.0; most],
        sent: Vec::new(),
        received: Vec::new(),
    };
    // Written, as by the C program's memset: zeroed memory that is never written has no pages of its own.
    bench.into.iter_mut().for_each(|number| *number = 0.0);
    let budget = args.budget * 1e-3;
    for what in args.collectives.split(',') {
        match what {
            "barrier" => bench.measure(what, 0, budget)?,
            _ => sizes.iter().try_for_each(|&bytes| bench.measure(what, bytes, budget))?,
        }
    }
    world.finish().map_err(CliError::World)?;
    Ok(Outcome::Well)
}

struct Bench<'a> {
    comm: &'a Communicator,
    /// The communicator with the options of the arguments.
    by: Communicator,
    out: Vec<f64>,
    into: Vec<f64>,
    /// For alltoallv: bytes sent to and received from each rank.
    sent: Vec<u64>,
    received: Vec<u64>,
}

/// Whether blocks of the collective have different sizes.
pub fn is_vector(what: &str) -> bool {
    what.starts_with("alltoallv")
}

/// Bytes that rank `from` sends to rank `to`. Uniform: random, up to twice the mean. Skewed: 1000 of 1000 + p - 1
/// parts go to the next rank, one part to every other rank. Sparse: four times the mean for one rank in four, else 0.
fn block(what: &str, bytes: u64, [from, to, n_ranks]: [u64; 3]) -> u64 {
    let hash = (from + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (to + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33;
    let (mean, part) = (bytes / n_ranks, bytes / (1000 + n_ranks - 1));
    match what {
        "alltoallv-uniform" => hash % (2 * mean + 1),
        "alltoallv-skewed" if to == (from + 1) % n_ranks => bytes - part * (n_ranks - 1),
        "alltoallv-skewed" => part,
        _ if hash.is_multiple_of(4) => 4 * mean,
        _ => 0,
    }
}

/// Bytes that must divide a size.
pub fn unit(what: &str, n_ranks: usize) -> usize {
    match what {
        "reduce-scatter" => 8 * n_ranks,
        "allgather" | "alltoall" => n_ranks,
        "bcast" => 1,
        _ => 8,
    }
}

impl Bench<'_> {
    fn call(&mut self, what: &str, bytes: usize, round: u64) -> Result<(), Error> {
        let Bench { by: comm, out, into, sent, received, .. } = self;
        let n_ranks = comm.size();
        let root = (round % u64::from(n_ranks)) as u32;
        let numbers = bytes / 8;
        let (part, block) = (numbers / n_ranks as usize, bytes / n_ranks as usize);
        match what {
            "allreduce" => comm.allreduce(&out[..numbers], &mut into[..numbers], Op::Sum),
            "reduce-scatter" => comm.reduce_scatter(&out[..numbers], &mut into[..part], Op::Sum),
            "allgather" => comm.allgather(&as_bytes(out)[..block], &mut bytes_of(into)[..bytes]),
            "bcast" => comm.bcast(&mut bytes_of(into)[..bytes], root),
            "reduce" => {
                let into = (comm.rank() == root).then_some(&mut into[..numbers]);
                comm.reduce(&out[..numbers], into.unwrap_or_default(), Op::Sum, root)
            }
            "alltoall" => comm.alltoall(&as_bytes(out)[..bytes], &mut bytes_of(into)[..bytes]),
            _ if is_vector(what) => {
                let (sent, received) = (Blocks::new(sent), Blocks::new(received));
                comm.alltoallv(as_bytes(out), sent, bytes_of(into), received)
            }
            _ => comm.barrier(),
        }
    }

    fn is_right(&self, what: &str, bytes: usize) -> bool {
        // All inputs are the same byte again and again, so all results are known.
        let sum = self.out[0] * f64::from(self.comm.size());
        let sums = |n: usize| self.into[..n].iter().all(|x| (x / sum - 1.0).abs() < 1e-12);
        match what {
            "allreduce" => sums(bytes / 8),
            "reduce-scatter" => sums(bytes / 8 / self.comm.size() as usize),
            // The root of the last call.
            "reduce" => self.comm.rank() + 1 < self.comm.size() || sums(bytes / 8),
            "allgather" | "alltoall" | "bcast" => {
                as_bytes(&self.into)[..bytes] == as_bytes(&self.out)[..bytes]
            }
            _ if is_vector(what) => {
                let all = self.received.iter().sum::<u64>() as usize;
                as_bytes(&self.into)[..all] == as_bytes(&self.out)[..all]
            }
            _ => true,
        }
    }

    /// Seconds of `count` calls on the slowest rank.
    fn batch(&mut self, what: &str, bytes: usize, count: u64) -> Result<f64, CliError> {
        self.timed(what, bytes, count).map_err(CliError::World)
    }

    fn timed(&mut self, what: &str, bytes: usize, count: u64) -> Result<f64, Error> {
        self.comm.barrier()?;
        let start = Instant::now();
        for round in 0..count {
            self.call(what, bytes, round)?;
        }
        let mut slowest = [start.elapsed().as_secs_f64()];
        self.comm.allreduce_in_place(&mut slowest, Op::Max)?;
        Ok(slowest[0])
    }

    fn measure(&mut self, what: &str, bytes: usize, budget: f64) -> Result<(), CliError> {
        if !bytes.is_multiple_of(unit(what, self.comm.size() as usize)) {
            return Ok(());
        }
        let n_ranks = u64::from(self.comm.size());
        if is_vector(what) {
            let me = u64::from(self.comm.rank());
            let size = |from, to| block(what, bytes as u64, [from, to, n_ranks]);
            self.sent = (0..n_ranks).map(|to| size(me, to)).collect();
            self.received = (0..n_ranks).map(|from| size(from, me)).collect();
        }
        // What an earlier call has left cannot pass for a result. The first root is rank 0.
        self.into[..bytes.div_ceil(8)].fill(0.0);
        if what == "bcast" && self.comm.rank() == 0 {
            bytes_of(&mut self.into)[..bytes].copy_from_slice(&as_bytes(&self.out)[..bytes]);
        }
        self.batch(what, bytes, n_ranks)?;
        if !self.is_right(what, bytes) {
            let rank = self.comm.rank();
            return Err(CliError::Bench(format!(
                "rank {rank}: wrong result of {what} with {bytes} bytes"
            )));
        }
        let mut once = self.batch(what, bytes, n_ranks)? / n_ranks as f64;
        let mut count = 1;
        while once * (count as f64) < budget / BATCHES as f64 && count < 1_000_000 {
            let next = (budget / BATCHES as f64 / once) as u64 + 1;
            count = next.min(8 * count);
            once = self.batch(what, bytes, count)? / count as f64;
            if next <= count {
                break;
            }
        }
        let mut times = [0.0; BATCHES];
        for time in &mut times {
            *time = self.batch(what, bytes, count)? / count as f64;
        }
        times.sort_by(f64::total_cmp);
        if self.comm.rank() == 0 {
            let line = format!("{what} {bytes} {:.3}\n", times[BATCHES / 2] * 1e6);
            OutputArg::default().write(&line)?;
        }
        Ok(())
    }
}

fn as_bytes(numbers: &[f64]) -> &[u8] {
    bytemuck::cast_slice(numbers)
}

fn bytes_of(numbers: &mut [f64]) -> &mut [u8] {
    bytemuck::cast_slice_mut(numbers)
}
