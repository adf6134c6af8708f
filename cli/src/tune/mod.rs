//! `hopbine tune`: decision tables from the network model, or from measurements.

mod budget;
mod cases;
mod compare;
mod cover;
mod gains;
mod measure;
mod merge;
mod text;
mod winners;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ArgAction;
use hopbine::Tuning;
use hopbine_meet::print_remark;
use hopbine_torus::choose::{Features, TableError, is_predicted};
use hopbine_torus::collectives::Payload;
use hopbine_torus::plan::{Flow, max_ports};
use hopbine_torus::sim::{Machine, Network};
use hopbine_torus::sizes::SizeRange;
use hopbine_torus::{Algorithm, Collective, Rank, RankMap, Request, Shape, registry};

use super::args::BackendArg;
use super::error::{CliError, Outcome};
use super::output::OutputArg;
use super::progress::{self, Bar};
use super::report::{Format, RowsArg};
use super::simulate::{file, network};
use super::{args, host};
pub use budget::Budget;
use cases::SimulatedCases;
pub use cases::{SEGMENTS, case};
use compare::Compared;
use cover::{SizeInterval, cover};
use winners::winners;

/// Write a decision table: from the network model's predictions, or from runs on this machine
///
/// For each shape, collective and number of ports, the command compares all algorithms that serve, size by size.
/// Without --measure it runs no collective, and every figure is a prediction. A program uses the table with
/// HOPBINE_TUNING=FILE.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine tune -o tofu-d.toml
  hopbine tune allreduce bcast --machine my-machine.toml --torus 8x8x8,16x16x16 -o mine.toml
  hopbine tune --torus 24x24x24 --bytes 8..64MiB:x8 --ports 6 --budget 10min
  hopbine tune --judge --against network --torus 8x8x8
  hopbine tune reduce-scatter --search --torus 4x4x3 --bytes 8..8KiB:x8 -o found.toml
  hopbine tune --measure --torus 4 --budget 10min -o this-host.toml
  mpirun -n 8 hopbine tune --measure --torus 8 -o cluster.toml

For a shape that the table does not name, a program uses the rows of the nearest shape in a predicted table. Sizes: \
bytes of a rank's vector, or of all its blocks. Where no registrations of memory can be kept, --measure also finds \
stage_bytes, up to which calls copy instead (HOPBINE_STAGE_BYTES). The model knows no cost of a registration, so \
predicted tables do not say it.")]
pub struct Args {
    /// Only these collectives
    collective: Vec<Collective>,
    /// A machine: a name, also with changed values (tofu-d,network.hop=50), or a file as `hopbine machine NAME`
    /// writes it
    #[arg(long, value_name = "NAME|FILE", default_value = "tofu-d")]
    machine: String,
    /// Shapes to tune for
    #[arg(
        long,
        value_name = "SHAPE",
        value_delimiter = ',',
        default_value = "8x8x8,64x64,32x256,24x24x24,5x7x11,48x69x48,8x8x8+4"
    )]
    torus: Vec<Shape>,
    /// A size, or a range of sizes; by default 8..512MiB:x4, with --measure 8..16MiB:x4
    #[arg(long, value_name = "BYTES|RANGE")]
    bytes: Option<SizeRange>,
    /// Numbers of ports of a call; numbers above the shape's number of directions are left out
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,6")]
    ports: Vec<u32>,
    /// Time for all, such as 90s or 10min; by default no limit, with --measure 10min. What is not tuned by then is
    /// left out. With --measure, the same command continues where the last one stopped
    #[arg(long, value_name = "TIME")]
    budget: Option<Budget>,
    /// Name of the table; by default that of the machine, with --measure `measured`
    #[arg(long)]
    name: Option<String>,
    /// The table to compare with: a built-in one by name, or a file; by default tofu-d, with --measure the table that
    /// the ranks use
    #[arg(long, value_name = "NAME|FILE")]
    against: Option<PathBuf>,
    /// Write how far the choices of the table of --against are from the best algorithm, and no table
    #[arg(long, action = ArgAction::SetTrue, conflicts_with = "name")]
    judge: bool,
    /// Also search for schedules that the registry does not have, and use those that are predicted over 3 % faster
    /// than every algorithm of the registry; with --judge, show which are over 10 % faster
    #[arg(long, action = ArgAction::SetTrue, conflicts_with = "measure")]
    search: bool,
    /// Measure instead of predicting, on the one shape of --torus: with the ranks of this job, or, outside a job, with
    /// ranks that the command starts on this host
    #[arg(long, action = ArgAction::SetTrue, conflicts_with_all = ["machine", "judge"])]
    measure: bool,
    /// What carries the ranks' messages; by default HOPBINE_BACKEND, else shared memory where the command starts the
    /// ranks
    #[arg(long, value_enum, requires = "measure")]
    backend: Option<BackendArg>,
    /// Write every measured median with its 95 % interval as CSV
    #[arg(long, value_name = "FILE", requires = "measure")]
    log: Option<PathBuf>,
    /// Format of the result of --judge
    #[arg(long, value_enum, default_value_t = Format::Table, requires = "judge")]
    format: Format,
    /// Do not write the comparison with the table of --against to standard error
    #[arg(long, action = ArgAction::SetTrue)]
    quiet: bool,
    #[command(flatten)]
    output: OutputArg,
}

/// The choices for a collective on a shape.
struct Tuned {
    collective: Collective,
    shape: Shape,
    /// By number of ports of calls, ascending; `None` if the rows of the fallback table apply ([`fallback_table`]).
    by_ports: Vec<(u32, Option<Vec<SizeInterval>>)>,
}

/// Maximum number of messages that a rank sends in a call: each peer costs an endpoint 6 to 40 KiB, which the model
/// ignores.
const MOST_SENDS: usize = 1024;

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    if args.ports.is_empty() || args.ports.contains(&0) {
        return Err(CliError::Usage("--ports: a call has at least 1 port".to_owned()));
    }
    for shape in &args.torus {
        host::check_plans(shape, true)?;
    }
    if args.measure {
        return measure::run(&args);
    }
    args.output.check([])?;
    check_classes(&args)?;
    let machine = file::machine(&args.machine)?;
    let reference_table = match &args.against {
        None => Tuning::tofu_d().clone(),
        Some(path) => named_or_read(path)?,
    };
    let collectives = collectives(&args);
    let bar = progress::bar_or_lines(0, "tuning");
    let start = Instant::now();
    let (mut tuned, mut left_out, mut compared) = (Vec::new(), Vec::new(), Vec::new());
    for shape in &args.torus {
        let network = match network(&machine, shape) {
            Ok(network) => network,
            Err(error) => {
                left_out.push(format!("{shape}: {error}"));
                continue;
            }
        };
        for &collective in &collectives {
            if args.budget.is_some_and(|budget| budget.is_over(start)) {
                left_out.push(format!("{collective} on {shape}: the time of --budget is over"));
                continue;
            }
            if !is_predicted(collective, shape.ranks_per_node()) {
                left_out.push(format!(
                    "{collective} on {shape}: the model is not accurate with several ranks on a node; the rows are those of \
                     table {}",
                    fallback_table().table().name()
                ));
                let by_ports = counts(&args.ports, max_ports(shape)).into_iter();
                let by_ports = by_ports.map(|ports| (ports, None)).collect();
                tuned.push(Tuned { collective, shape: shape.clone(), by_ports });
                continue;
            }
            bar.say(&format!("{collective} on {shape}"));
            let place = (&machine, &network);
            let counts = counts(&args.ports, max_ports(shape));
            let cases = cases(&args, place, (collective, shape), &counts, &bar)?;
            let intervals = |&ports: &u32| (ports, (!args.judge).then(|| cover(&cases, ports)));
            let intervals: Vec<(u32, Option<Vec<SizeInterval>>)> =
                counts.iter().map(intervals).collect();
            let by_ports: Vec<_> =
                intervals.iter().map(|(ports, intervals)| (*ports, intervals.as_deref())).collect();
            compared.push(Compared::new(
                place,
                (collective, shape),
                &cases,
                &by_ports,
                &reference_table,
            )?);
            tuned.push(Tuned { collective, shape: shape.clone(), by_ports: intervals });
        }
    }
    drop(bar);
    if compared.is_empty() {
        return Err(CliError::Usage(format!("nothing was tuned; {}", left_out.join("; "))));
    }
    let reference_table = reference_table.table().name();
    let left_out: Vec<String> = left_out.iter().map(|what| format!("Not tuned: {what}.")).collect();
    if args.judge {
        let mut report = match args.search {
            true => gains::report(&machine, &compared),
            false => compare::report(&machine, reference_table, &compared),
        };
        report.notes.extend(left_out);
        report.write(&RowsArg { format: args.format, output: args.output })?;
        return Ok(Outcome::Well);
    }
    let name = args.name.clone().unwrap_or_else(|| machine.name.clone());
    let summary = compare::summary(reference_table, &compared) + &left_out.join("\n");
    let text = text::table(&name, &args, &machine, &tuned, &summary);
    check_table(&text)?;
    args.output.write(&text)?;
    if !args.quiet {
        print_remark(summary.trim_end());
    }
    Ok(Outcome::Well)
}

/// Checks that no rule of the table would cover that of another shape: rules tell shapes by their features alone.
fn check_classes(args: &Args) -> Result<(), CliError> {
    let mut known: Vec<(Features, &Shape)> = Vec::new();
    for shape in args.torus.iter().filter(|_| !args.judge) {
        let of = Features::of(shape);
        if let Some((_, other)) = known.iter().find(|(known, _)| *known == of) {
            return Err(CliError::Usage(format!(
                "--torus: a table has the same rules for {other} and {shape}; leave one of them out"
            )));
        }
        known.push((of, shape));
    }
    Ok(())
}

/// Parses a new table like a user's table. One that is not valid goes to standard output, since it may have taken
/// hours to compute.
fn check_table(text: &str) -> Result<(), CliError> {
    let Err(error) = text.parse::<Tuning>() else { return Ok(()) };
    OutputArg::default().write(text)?;
    Err(CliError::Usage(format!("the new table is not valid ({error}); please report it")))
}

/// The fallback table for calls that a table does not cover.
fn fallback_table() -> &'static Tuning {
    Tuning::built_in(hopbine::Wire::Network)
}

/// The built-in table of this name, or else the table in this file.
///
/// # Errors
/// As [`read_table`].
fn named_or_read(path: &Path) -> Result<Tuning, CliError> {
    let named = path.to_str().and_then(Tuning::named);
    named.map_or_else(|| read_table(path), |built_in| Ok(built_in.clone()))
}

/// Reads the decision table in a file.
///
/// # Errors
/// [`CliError::Read`], or [`CliError::Text`] with the line of the error.
pub fn read_table(path: &Path) -> Result<Tuning, CliError> {
    args::read(path)?.parse().map_err(|error: TableError| CliError::text(path, error))
}

/// The sizes of a collective on a shape in bytes: at least one byte in each block.
fn sizes(args: &Args, collective: Collective, shape: &Shape) -> Vec<u64> {
    if collective.payload() == Payload::Token {
        return vec![0];
    }
    let least = u64::from(collective.n_blocks(shape.n_ranks()));
    let sizes: Vec<u64> = all_sizes(args).filter(|&bytes| bytes >= least).collect();
    if sizes.is_empty() { vec![least] } else { sizes }
}

/// The sizes to tune for, in bytes.
fn all_sizes(args: &Args) -> impl Iterator<Item = u64> + use<> {
    let default = if args.measure { "8..16MiB:x4" } else { "8..512MiB:x4" };
    let range = args.bytes.unwrap_or_else(|| default.parse().expect("a range of sizes"));
    range.sizes().collect::<Vec<u64>>().into_iter()
}

/// The collectives to tune for.
fn collectives(args: &Args) -> Vec<Collective> {
    if args.collective.is_empty() { Collective::ALL.to_vec() } else { args.collective.clone() }
}

/// The wanted numbers of ports that do not exceed `most`, ascending; `most` if there are none.
fn counts(wanted: &[u32], most: u32) -> Vec<u32> {
    let mut counts: Vec<u32> = wanted.iter().copied().filter(|&ports| ports <= most).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.is_empty() {
        counts.push(most);
    }
    counts
}

/// All candidates for a collective on a shape, with their predicted times.
fn cases<'a>(
    args: &Args,
    place: (&'a Machine, &Network),
    (collective, shape): (Collective, &Shape),
    counts: &[u32],
    bar: &Bar,
) -> Result<SimulatedCases<'a>, CliError> {
    let algorithms = candidates(collective, shape);
    let used = if collective == Collective::Barrier { &[1] } else { counts };
    let sizes = sizes(args, collective, shape);
    let mut cases = SimulatedCases::play(place, shape, &algorithms, used, sizes, bar)?;
    if args.search {
        let winners = winners(place, (collective, shape), &cases, used, bar)?;
        cases.add(place.1, shape, &winners, bar)?;
    }
    Ok(cases)
}

/// The algorithms that may serve a collective on a shape.
fn candidates(collective: Collective, shape: &Shape) -> Vec<Algorithm> {
    let is_small = shape.n_ranks() as usize <= MOST_SENDS;
    let serves = |algorithm: &Algorithm| {
        algorithm.serves(shape).is_ok() && (is_small || !sends_to_all(algorithm, shape))
    };
    registry::algorithms(collective).into_iter().filter(serves).collect()
}

/// Whether a rank sends more than [`MOST_SENDS`] messages. Checks rank 0: the root, or a rank like all others.
fn sends_to_all(algorithm: &Algorithm, shape: &Shape) -> bool {
    if algorithm.is_direct() {
        return true;
    }
    let (map, ports) = (RankMap::default(), Some(1));
    let request = Request { shape: shape.clone(), map, root: Rank(0), ports };
    let flow = algorithm.schedule(&request).and_then(|schedule| schedule.expand());
    flow.is_ok_and(|flow| {
        let steps = flow.plan(Rank(0)).lanes.into_iter().flat_map(|lane| lane.steps);
        steps.map(|step| step.sends.len()).sum::<usize>() > MOST_SENDS
    })
}

/// The segment length of an interval in bytes.
fn segment(interval: &SizeInterval) -> u64 {
    SEGMENTS[interval.segment]
}
