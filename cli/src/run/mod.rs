//! `hopbine run`: collectives on the emulated torus, verified and timed.

mod data;
mod element;
mod limits;
mod measure;
mod ranks;
mod reference;
mod rows;
mod stats;
mod tasks;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use hopbine::reduce::{Dtype, Op, ReduceError};
use hopbine::{CallOptions, Drive, World};
use hopbine_torus::Collective;
use hopbine_torus::plan::Schedule;
use hopbine_torus::sizes::{self, SizeRange};
use serde_json::Value;

use super::args::{self, BackendArg, Place};
use super::counts::CountsArg;
use super::curves::{Curve, MeasuredPoint};
use super::error::{CliError, Outcome};
use super::numbers::Numbers;
use super::picture;
use super::progress;
use super::report::{RowsArg, Stream};
use measure::{Iterations, SimulationData};
use ranks::Ranks;
use stats::RowTimes;
use tasks::tasks;

pub(super) use data::Data;
pub(super) use limits::check_memory;
pub(super) use measure::{Call, Lists, typed};
pub(super) use ranks::join_world;
pub(super) use reference::{CollectiveCase, Reference};
pub(super) use stats::show_rate;
pub(super) use verify::verify;

/// Run a collective on the emulated torus: verify every element, measure time
///
/// Ranks are threads of this process. Where `mpirun`, `srun` or `hopbine launch` starts the command once for each
/// rank of the torus, ranks are processes. The command compares every element on every rank with a reference that
/// shares no code with the library. Integers, minima and maxima must be equal. In floating-point sums and products
/// every other element has an exact result in any order, and must be equal; the rest must be within a proved bound
/// of the rounding error. All ranks of an allreduce must hold the same bits. The exit status is 1 if an element is
/// wrong.
///
/// Times of threads are measured on this host and say nothing about a network.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine run allreduce --torus 4x4x4 --bytes 1MiB
  hopbine run allreduce --torus 2x4 --bytes 8..64KiB:x4 --algorithm all --iterations 5
  hopbine run gather --torus 3x5 --counts zipf --known-to root --algorithm knomial --bytes 60KiB
  hopbine run reduce --torus 3x5 --bytes 6kB --type i16 --op max --root 7 --format csv
  hopbine run allreduce --torus 2x2 --bytes 8..4KiB:x8 --algorithm all --iterations 5 --plot r.svg
  hopbine run barrier --torus 4x4
  hopbine run allreduce --torus 4x4x3 --bytes 64KiB --schedule found.txt
  mpirun -n 64 hopbine run allreduce --torus 4x4x4 --bytes 1MiB

Sizes: bytes of a rank's vector, or of all its blocks, rounded up to whole blocks. Until the run ends, the rows for -o FILE \
are in FILE.part.
Types: i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c32 c64 (complex, bits of one part).
Operators: sum prod min max land lor lxor band bor bxor.")]
pub struct Args {
    /// The collective
    collective: Collective,
    #[command(flatten)]
    place: Place,
    /// Size, or range of sizes: each is twice the one before, or F times with `:xF`. Not for a barrier, nor with a
    /// file of --counts
    #[arg(long, value_name = "SIZE|FROM..TO[:xF]", allow_negative_numbers = true)]
    bytes: Option<SizeRange>,
    /// Element type
    #[arg(long = "type", value_name = "TYPE", default_value = "f64")]
    dtype: Dtype,
    /// Operator of a reduction
    #[arg(long, value_name = "OP", default_value = "sum")]
    op: Op,
    /// The algorithm; `all` that serve the shape; `auto`, the library's choice; or `search`, the best schedule that a
    /// search finds under the network model of Tofu-D or of another built-in machine
    #[arg(long, value_name = "NAME|all|auto|search[:MACHINE]", default_value = "auto")]
    algorithm: String,
    /// Use the schedule in this file, for this collective and torus, as `search --format schedule` writes it. It is
    /// proved first on up to 1,024 ranks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["algorithm", "leaders", "group", "radix", "block_count"])]
    schedule: Option<PathBuf>,
    #[command(flatten)]
    numbers: Numbers,
    /// Number of ports; by default as many as the shape has directions, at most 6. Of these, `auto` uses as many as
    /// the library chooses
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ports: Option<u32>,
    /// Longest message; by default it depends on the size
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse_size)]
    segment: Option<u64>,
    /// Timed iterations; by default as many as fit into half a second, at least 5 and at most 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Blocks of different sizes, for allgather, gather, scatter, reduce-scatter and alltoall: a distribution, in
    /// which --bytes bounds a block, or a file with a number of elements for each rank (for alltoall also
    /// for each pair)
    #[arg(long, value_name = "uniform|normal:SD|power:E|zipf:S|sparse:P|FILE")]
    counts: Option<CountsArg>,
    /// Who knows the --counts of a gather or scatter: all ranks, or only the root. In the second case a rank learns
    /// the sizes of the blocks that it forwards from messages
    #[arg(long, value_name = "all|root", value_enum, default_value_t = KnownTo::All)]
    known_to: KnownTo,
    /// Seed of the data and of --counts
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The root of a rooted collective
    #[arg(long, value_name = "RANK", default_value_t = 0, allow_negative_numbers = true)]
    root: u32,
    /// Who drives the ports of a rank: the calling thread (inline), one worker thread (worker), a worker thread for
    /// each port (workers), or workers where cores are free for them (auto)
    #[arg(long, value_name = "inline|worker|workers|auto", value_parser = drive)]
    drive: Option<Drive>,
    /// What carries the ranks' messages; by default HOPBINE_BACKEND, else for threads the emulated device
    #[arg(long, value_enum)]
    backend: Option<BackendArg>,
    /// Draw the medians by size as SVG, a curve for each algorithm, with bars from the 10th to the 90th percentile
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    out: RowsArg,
}

/// Who knows how long the blocks of a gather or scatter are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum KnownTo {
    All,
    Root,
}

fn drive(text: &str) -> Result<Drive, &'static str> {
    // The library's own error would name an environment variable.
    text.parse().map_err(|_| "valid are: inline, worker, workers, auto")
}

/// Measured time of a row if the number of iterations is not given.
const BUDGET: Duration = Duration::from_millis(500);

/// Number of wrong results that are listed individually.
const LISTED: usize = 10;

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let (args, mut written) = checked(args)?;
    let mut ranks = Ranks::new(&args, &mut written)?;
    let outcome = rows(&args, &ranks, written);
    match ranks.world.take() {
        Some(world) => finish_world(world, outcome),
        None => outcome,
    }
}

/// Finishes a world and returns the outcome.
///
/// # Errors
/// The error of the outcome, or [`CliError::World`].
pub fn finish_world<T>(world: World, outcome: Result<T, CliError>) -> Result<T, CliError> {
    match &outcome {
        Ok(_) => world.finish().map_err(CliError::World)?,
        // All ranks know this error and finish together, since a rank that finishes at once ends what the other ranks
        // still do with its memory. The error of finishing, if any, says less than this error.
        Err(CliError::Agreed(_)) => drop(world.finish()),
        // Finishing properly would wait for the other ranks, which learn of the failure only when this process ends.
        Err(_) => std::mem::forget(world),
    }
    outcome
}

/// Runs the subcommand on the ranks of an existing world, and returns the world.
pub fn run_in(args: Args, world: World) -> Result<(Outcome, World), CliError> {
    let (args, written) = checked(args)?;
    let mut ranks = Ranks::joined(world);
    let outcome = rows(&args, &ranks, written);
    let world = ranks.world.take().expect("it was put there");
    match outcome {
        Ok(outcome) => Ok((outcome, world)),
        Err(error) => finish_world(world, Err(error)),
    }
}

/// The schedule of --schedule, or the error of reading it, which all ranks report together. Its file may be a pipe,
/// and is read once.
type Written = Option<Result<Schedule, CliError>>;

/// Checks that the arguments fit together; completes them, and reads the schedule.
fn checked(mut args: Args) -> Result<(Args, Written), CliError> {
    args.place.torus = args.numbers.shape(args.place.torus)?;
    let shape = &args.place.torus;
    args::existing_rank(args.root, shape)?;
    let written = args.schedule.as_ref().map(|path| args::read_schedule(path));
    let ports = written.as_ref().and_then(|read| Some(read.as_ref().ok()?.ports));
    args.ports = args.ports.or(ports);
    if args.collective.is_reduction() && !args.op.defined_for(args.dtype) {
        let undefined = ReduceError::Undefined { op: args.op, dtype: args.dtype };
        return Err(CliError::Usage(undefined.to_string()));
    }
    if let Some(counts) = args.counts {
        counts.check_for(args.collective, shape.n_ranks())?;
    }
    if args.known_to == KnownTo::Root {
        let is_rooted = matches!(args.collective, Collective::Gather | Collective::Scatter);
        if !is_rooted || args.counts.is_none() {
            return Err(CliError::Usage(
                "--known-to root is for a gather or scatter with --counts".to_owned(),
            ));
        }
    }
    Ok((args, written))
}

/// Runs and reports all rows.
fn rows(args: &Args, ranks: &Ranks, written: Written) -> Result<Outcome, CliError> {
    let config = &ranks.config;
    let (tasks, mut notes) = tasks(args, ranks, written)?;
    let cases = cases(args, &mut notes)?;
    notes.extend(ranks.unread());
    if ranks.simulation.is_some() {
        limits::check_simulated(config)?;
    } else if ranks.world.is_none() {
        limits::check_threads(config)?;
    } else if args.collective == Collective::Barrier {
        notes.push(
            "Ranks are processes: whether a rank leaves the barrier early is not checked."
                .to_owned(),
        );
    }
    // Other ranks that are processes may be on other hosts.
    let here = match &ranks.world {
        Some(_) => ranks.own()..ranks.own() + 1,
        None => 0..config.shape.n_ranks(),
    };
    for case in &cases {
        check_memory(case, here.clone())?;
    }
    let iterations = match (args.iterations, &ranks.simulation) {
        (Some(n), _) => Iterations::Fixed(n),
        (None, Some(_)) => Iterations::Fixed(1),
        (None, None) => Iterations::For(BUDGET),
    };
    // Chooses for all rows before the first one runs, so that an impossible row is reported at once.
    let mut chosen = vec![];
    for case in &cases {
        for task in &tasks {
            chosen.push(task.chosen(case, args, ranks)?);
        }
    }
    let bar = progress::bar(chosen.len() as u64, "running");
    if args.plot.is_some() && (ranks.simulation.is_some() || cases.len() < 2) {
        return Err(match ranks.simulation {
            Some(_) => {
                CliError::Usage("--plot draws times; simulated ranks have no times".to_owned())
            }
            None => picture::needs_sizes(),
        });
    }
    let start = || {
        args.out.output.check([&args.plot])?;
        Stream::start(&args.out, rows::head(args, ranks, &chosen), &[])
    };
    let mut stream = ranks.reports().then(start).transpose()?;
    let mut wrong = vec![];
    let mut has_workers = false;
    let mut curves: Vec<Curve> = Vec::new();
    let mut chosen = chosen.iter();
    for case in &cases {
        let reference = Reference::new(*case);
        for (task, chosen) in tasks.iter().zip(&mut chosen) {
            let bytes = case.total_bytes();
            bar.say(&format!("{} {}", sizes::show(bytes), chosen.algorithm));
            // The table lists plans, so the calls must not use barrier gates.
            let mut options = CallOptions::new().hardware(hopbine::Hardware::Never);
            options.algorithm = task.algorithm.as_deref().map(Into::into);
            options.ports = task.ports;
            options.segment_bytes = args.segment;
            let measured =
                measure::measure(&reference, ranks, &options, iterations).map_err(|source| {
                    CliError::Run { algorithm: chosen.algorithm.clone(), bytes, source }
                })?;
            if let Some(times) = RowTimes::of(measured.seconds.clone()) {
                let us = |seconds: f64| seconds * 1e6;
                let ends = [us(times.p10), us(times.p90)];
                let point = MeasuredPoint { bytes, value: us(times.median), ends };
                Curve::add(&mut curves, &chosen.algorithm, point);
            }
            let name = format!("{}, {}", chosen.algorithm, sizes::show(bytes));
            wrong.extend(measured.wrong.iter().map(|wrong| format!("{name}: {wrong}")));
            has_workers |= measured.has_workers;
            if let Some(run) = &measured.simulated {
                let SimulationData { trace, n_steps, elapsed, violations } = run;
                wrong.extend(violations.iter().map(|what| format!("{name}: {what}")));
                notes.push(format!(
                    "{name}: trace {trace:016x}, {n_steps} steps, {elapsed:?} of simulated time."
                ));
            }
            if let Some(stream) = &mut stream {
                bar.aside(|| stream.lasting_row(&rows::row(args, case, chosen, &measured)))?;
            }
            bar.advance(1);
        }
    }
    drop(bar);
    let is_well = wrong.is_empty();
    let where_measured = rows::where_measured(ranks, has_workers);
    notes.push(where_measured.clone());
    let n_more = wrong.len().saturating_sub(LISTED);
    notes.extend(wrong.into_iter().take(LISTED));
    if n_more > 0 {
        notes.push(format!("... and {n_more} more ranks, which --format json lists"));
    }
    if let Some(stream) = stream {
        stream.finish(vec![("verified", Value::from(is_well))], notes)?;
    }
    if let Some(path) = args.plot.as_ref().filter(|_| ranks.reports()) {
        rows::draw(args, curves, &where_measured, path)?;
    }
    Ok(if is_well { Outcome::Well } else { Outcome::Wrong })
}

/// The cases to run, one for each size.
fn cases(args: &Args, notes: &mut Vec<String>) -> Result<Vec<CollectiveCase>, CliError> {
    use Collective as C;
    let n_ranks = args.place.torus.n_ranks();
    let (collective, root) = (args.collective, args.root);
    let op = collective.is_reduction().then_some(args.op);
    let data = Data { dtype: args.dtype, op, n_ranks, seed: args.seed };
    let listed = args.counts.and_then(CountsArg::longest_listed);
    let sizes: Vec<u64> = match (collective, args.bytes) {
        (C::Barrier, None) => vec![0],
        (C::Barrier, Some(_)) => {
            return Err(CliError::Usage("a barrier moves no data; leave out --bytes".to_owned()));
        }
        (_, Some(_)) if listed.is_some() => {
            let twice = "the file of --counts gives the sizes of the blocks; leave out --bytes";
            return Err(CliError::Usage(twice.to_owned()));
        }
        (_, None) if listed.is_some() => vec![],
        (_, None) => {
            let example =
                "--bytes is missing; give a size, such as 1MiB, or a range, such as 8..64MiB";
            return Err(CliError::Usage(example.to_owned()));
        }
        (_, Some(range)) => range.sizes().collect(),
    };
    let size = args.dtype.size_bytes() as u64;
    let is_vector = matches!(
        collective,
        C::Allreduce | C::Bcast | C::Reduce | C::Scan | C::Exscan | C::Barrier
    );
    let unit = if is_vector { size } else { size * u64::from(n_ranks) };
    if let Some(bytes) = sizes.iter().find(|bytes| !bytes.is_multiple_of(size)) {
        return Err(CliError::Usage(format!(
            "--bytes: {bytes} is not a multiple of {size}, the bytes of an element of type {}; use {} or another \
             multiple of {size}",
            args.dtype,
            bytes.checked_next_multiple_of(size).unwrap_or(bytes / size * size)
        )));
    }
    if sizes.iter().any(|bytes| !bytes.is_multiple_of(unit)) {
        notes.push(format!(
            "Sizes are rounded up to {n_ranks} blocks of whole {} elements: multiples of {unit} \
             bytes.",
            args.dtype
        ));
    }
    let mut counts: Vec<u64> = sizes.iter().map(|bytes| bytes.div_ceil(unit)).collect();
    limits::check_counts(&counts, n_ranks, is_vector)?;
    counts.dedup();
    counts.extend(listed);
    let case = |count: u64| CollectiveCase {
        collective,
        data,
        root,
        count: count as usize,
        counts: args.counts,
        only_root_knows: args.known_to == KnownTo::Root,
        in_place: false,
    };
    Ok(counts.into_iter().map(case).collect())
}
