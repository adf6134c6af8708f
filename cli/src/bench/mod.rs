//! `hopbine bench`: collectives on this host, of the library and of an MPI in turn.

mod drawn;
pub mod rank;
mod sides;

use std::collections::BTreeMap;
use std::path::PathBuf;

use hopbine_torus::fit::quantile;
use hopbine_torus::sizes::{self, SizeRange};
use serde_json::Value;

use crate::cells::{Cell, Column, decimal};
use crate::curves::{self, Chart, Curve, MeasuredPoint};
use crate::error::{CliError, Outcome};
use crate::host;
use crate::launch::signals;
use crate::picture;
use crate::progress;
use crate::report::{Report, RowsArg};
use crate::run::show_rate;
use sides::{Side, Sides};

/// Default compiler command of the MPI.
const MPICC: &str = "mpicc";

/// Time collectives on this host, in turn with an MPI where one is there
///
/// Each round runs every side once: hopbine with the library's choice of algorithm, hopbine with each algorithm of
/// --algorithms, the MPI of `mpicc`, and the MPI's program with hopbine preloaded; with --cc also hopbine's C interface.
/// In turn, they all meet the same load of the machine. A row has the median over the rounds, and the least and the
/// largest. Results are verified. Ranks are processes; hopbine's use shared memory unless HOPBINE_BACKEND says
/// otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine bench allreduce,bcast --ranks 2 --bytes 8..1MiB:x8
  hopbine bench allreduce --ranks 4 --algorithms bine,direct --mpicc none --plot times.svg
  hopbine bench alltoall --mpicc mpicc.mpich --mpiexec mpiexec.mpich --show ratio --plot ratio.svg

Collectives: allreduce reduce-scatter allgather bcast reduce alltoall barrier, and alltoallv-uniform, \
alltoallv-skewed, alltoallv-sparse. Sizes: bytes of a rank's vector, or of all its blocks; sizes that do not \
divide into blocks are left out.")]
pub struct Args {
    /// Collectives, separated by commas
    #[arg(value_delimiter = ',', value_parser = collective, default_value = "allreduce")]
    collectives: Vec<String>,
    /// Number of ranks
    #[arg(long, short = 'n', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    ranks: u32,
    /// Size, or range of sizes: each is twice the one before, or F times with `:xF`
    #[arg(long, value_name = "SIZE|FROM..TO[:xF]", default_value = "8..1MiB:x8")]
    bytes: SizeRange,
    /// Algorithms to measure beside the library's choice, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    algorithms: Vec<String>,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Milliseconds for each size in a round
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    budget: u32,
    /// Also time the C interface of the library that ./install.sh has installed with this command, with this C compiler
    #[arg(long, value_name = "COMMAND")]
    cc: Option<String>,
    /// Compiler command of the MPI to compare with, or `none`
    #[arg(long, value_name = "COMMAND", default_value = MPICC)]
    mpicc: String,
    /// Launcher of that MPI, with options. Without options, Open MPI's gets those that suit this host's cores
    #[arg(long, value_name = "COMMAND", default_value = "mpiexec")]
    mpiexec: String,
    /// The library to preload; by default that of the `hopbine-preload` beside this command
    #[arg(long, value_name = "FILE")]
    preload: Option<PathBuf>,
    /// Draw the result, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// What the picture shows
    #[arg(long, value_enum, default_value_t = Show::Time)]
    show: Show,
    /// Draw the CSV of benches/against-mpi.sh, and measure nothing
    #[arg(long, value_name = "FILE", requires = "plot", conflicts_with_all = [
        "collectives", "ranks", "bytes", "algorithms", "rounds", "budget", "cc", "mpicc", "mpiexec", "preload", "format",
        "file",
    ])]
    from: Option<PathBuf>,
    #[command(flatten)]
    out: RowsArg,
}

/// The collectives that are timed.
const COLLECTIVES: [&str; 10] = [
    "allreduce",
    "reduce-scatter",
    "allgather",
    "bcast",
    "reduce",
    "alltoall",
    "barrier",
    "alltoallv-uniform",
    "alltoallv-skewed",
    "alltoallv-sparse",
];

fn collective(name: &str) -> Result<String, String> {
    match COLLECTIVES.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("it must be one of {}", COLLECTIVES.join(", "))),
    }
}

/// What a picture shows, by size. In a ratio the MPI of a file is the best one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Show {
    /// The time of a call
    Time,
    /// Bytes of a call over its time
    Bandwidth,
    /// The time of the MPI over that of each side; without an MPI, the time of hopbine
    Ratio,
}

impl Show {
    /// What is shown of a time in us; `None` for a ratio without the MPI's time, `theirs`.
    fn point(self, time: MeasuredPoint, theirs: Option<f64>) -> Option<MeasuredPoint> {
        match self {
            Show::Time => Some(time),
            Show::Bandwidth => Some(time.map(|us| time.bytes as f64 / us / 1e3)),
            Show::Ratio => theirs.map(|theirs| time.map(|us| theirs / us)),
        }
    }

    /// The title of the vertical axis, and a level to be marked; `them` is the MPI.
    fn axis(self, them: &str) -> (String, Option<f64>) {
        match self {
            Show::Time => ("time, us".to_owned(), None),
            Show::Bandwidth => ("bandwidth, GB/s".to_owned(), None),
            Show::Ratio => (format!("time of {them} / time"), Some(1.0)),
        }
    }
}

/// Times in microseconds of a side, for one collective and size; sorted after the last round.
#[derive(Clone, Debug, Default)]
struct RowTimes(Vec<f64>);

impl RowTimes {
    fn median(&self) -> f64 {
        quantile(&self.0, 0.5)
    }

    fn ends(&self) -> [f64; 2] {
        [self.0[0], self.0[self.0.len() - 1]]
    }
}

/// The measured times, by collective (index in the arguments), bytes and side.
type Measured = BTreeMap<(usize, u64, usize), RowTimes>;

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    if let (Some(from), Some(picture)) = (&args.from, &args.plot) {
        drawn::draw(from, args.show, picture)?;
        return Ok(Outcome::Well);
    }
    args.out.output.check([&args.plot])?;
    let n_sizes = |what: &String| {
        let unit = rank::unit(what, args.ranks as usize) as u64;
        args.bytes.sizes().filter(|&bytes| bytes > 0 && bytes.is_multiple_of(unit)).count()
    };
    let is_range = |what: &&String| *what != "barrier" && n_sizes(what) > 1;
    if args.plot.is_some() && args.collectives.iter().find(is_range).is_none() {
        return Err(picture::needs_sizes());
    }
    check_memory(&args)?;
    let mut signals = signals::forwarded()
        .map_err(|error| CliError::Bench(format!("cannot handle signals: {error}")))?;
    let Sides { all: sides, mpi, mut notes, directory: _directory } = sides::sides(&args)?;
    if sides.iter().any(|side| !matches!(side, Side::Hopbine(_))) {
        check_counts(&args)?;
    }
    let sizes: Vec<String> = args.bytes.sizes().map(|bytes| bytes.to_string()).collect();
    let bar = progress::bar_or_lines(u64::from(args.rounds) * sides.len() as u64, "measuring");
    let mut measured = Measured::new();
    for round in 1..=args.rounds {
        for (number, side) in sides.iter().enumerate() {
            bar.say(&format!("round {round}: {}", side.name()));
            for time in sides::run(side, mpi.as_ref(), &args, &sizes.join(","), &mut signals)? {
                let place = args.collectives.iter().position(|name| *name == time.collective);
                let Some(place) = place else { continue };
                measured.entry((place, time.bytes, number)).or_default().0.push(time.us);
            }
            bar.advance(1);
        }
    }
    drop(bar);
    measured.values_mut().for_each(|RowTimes(us)| us.sort_by(f64::total_cmp));
    let reference = sides.iter().position(|side| *side == Side::Mpi).unwrap_or(0);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    notes.insert(
        0,
        format!(
            "{} ranks on {cores} cores of this host; the median of {} rounds in turn, the least and the largest. Ratio: \
             the median of {} over that of the row.",
            args.ranks,
            args.rounds,
            sides[reference].name()
        ),
    );
    notes.extend(mpi.as_ref().map(|mpi| format!("MPI: {}.", mpi.about)));
    report(&args, &sides, &measured, reference, notes).write(&args.out)?;
    if let Some(path) = &args.plot {
        draw(&args, &sides, &measured, reference, path)?;
    }
    Ok(Outcome::Well)
}

/// Refuses buffers of all ranks that exceed this host's memory.
fn check_memory(args: &Args) -> Result<(), CliError> {
    let longest = args.bytes.sizes().max().unwrap_or(0);
    let times = if args.collectives.iter().any(|what| rank::is_vector(what)) { 4 } else { 1 };
    let needed = longest.saturating_mul(2 * times * u64::from(args.ranks));
    let what = format!("{} on {} ranks", sizes::show(longest), args.ranks);
    host::check_memory(what, needed, "use smaller --bytes or fewer --ranks")
}

/// Refuses sizes that the C program, and MPI, cannot count with an int.
fn check_counts(args: &Args) -> Result<(), CliError> {
    let of_it =
        |what: &String| args.bytes.sizes().find(|&bytes| !has_count(what, bytes, args.ranks));
    match args.collectives.iter().find_map(|what| Some((what, of_it(what)?))) {
        None => Ok(()),
        Some((what, bytes)) => Err(CliError::Usage(format!(
            "--bytes: {what} of {} has more elements or bytes than an MPI counts, 2^31 - 1; use smaller --bytes, or \
             --mpicc none and no --cc",
            sizes::show(bytes)
        ))),
    }
}

/// Whether all counts and displacements of a call are ints.
fn has_count(what: &str, bytes: u64, ranks: u32) -> bool {
    let count = match what {
        "barrier" => 0,
        "bcast" => bytes,
        "allgather" | "alltoall" => bytes / u64::from(ranks),
        _ if rank::is_vector(what) => bytes.saturating_mul(4),
        _ => bytes / 8,
    };
    count <= i32::MAX as u64
}

fn report(
    args: &Args,
    sides: &[Side],
    measured: &Measured,
    reference: usize,
    notes: Vec<String>,
) -> Report {
    let rows = measured.iter().map(|(&(collective, bytes, side), times)| {
        let us = |us: f64| Cell::new(us, decimal(us, if us < 100.0 { 2 } else { 0 }));
        let (median, [least, largest]) = (times.median(), times.ends());
        let rate = bytes as f64 / median * 1e6;
        let theirs = measured.get(&(collective, bytes, reference));
        vec![
            Cell::text(&args.collectives[collective]),
            Cell::new(bytes, sizes::show(bytes)),
            Cell::text(sides[side].name()),
            us(median),
            us(least),
            us(largest),
            if bytes == 0 { Cell::none() } else { Cell::new(rate, show_rate(rate)) },
            theirs.map_or_else(Cell::none, |theirs| {
                let ratio = theirs.median() / median;
                Cell::new(ratio, format!("{ratio:.2}"))
            }),
        ]
    });
    Report {
        about: vec![
            ("ranks", Value::from(args.ranks)),
            ("rounds", Value::from(args.rounds)),
            ("reference", Value::from(sides[reference].name())),
        ],
        heading: format!("{} on {} ranks, us", args.collectives.join(", "), args.ranks),
        columns: vec![
            Column::text("collective", "collective"),
            Column::number("bytes", "bytes"),
            Column::text("side", "side"),
            Column::number("median_us", "median"),
            Column::number("least_us", "least").yields(2),
            Column::number("largest_us", "largest").yields(2),
            Column::number("bandwidth_bytes_per_s", "bandwidth").yields(1),
            Column::number("ratio", "ratio"),
        ],
        rows: rows.collect(),
        notes,
    }
}

fn draw(
    args: &Args,
    sides: &[Side],
    measured: &Measured,
    reference: usize,
    path: &std::path::Path,
) -> Result<(), CliError> {
    let point = |&(collective, bytes, _): &(usize, u64, usize), times: &RowTimes| {
        let point = MeasuredPoint { bytes, value: times.median(), ends: times.ends() };
        let theirs = measured.get(&(collective, bytes, reference)).map(RowTimes::median);
        args.show.point(point, theirs)
    };
    let chart = |(number, of): (usize, &String)| Chart {
        of: of.clone(),
        curves: sides
            .iter()
            .enumerate()
            .map(|(side, name)| Curve {
                name: name.name(),
                points: measured
                    .iter()
                    .filter(|((collective, _, of), _)| (*collective, *of) == (number, side))
                    .filter_map(|(key, times)| point(key, times))
                    .collect(),
            })
            .collect(),
    };
    let charts: Vec<Chart> = args.collectives.iter().enumerate().map(chart).collect();
    let (meaning, level) = args.show.axis(&sides[reference].name());
    let title = format!("{} on {} ranks of one host", args.collectives.join(", "), args.ranks);
    curves::draw(&title, &meaning, &charts, level, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_ints() {
        for (what, ranks, most) in [
            ("bcast", 2, i32::MAX as u64),
            ("allreduce", 2, 8 * i32::MAX as u64 + 7),
            ("alltoall", 4, 4 * i32::MAX as u64 + 3),
            ("alltoallv-sparse", 4, i32::MAX as u64 / 4),
        ] {
            assert!(has_count(what, most, ranks) && !has_count(what, most + 1, ranks), "{what}");
        }
    }

    #[test]
    fn a_row_is_the_median_between_the_least_and_the_largest_round() {
        let times = RowTimes(vec![1.0, 2.0, 4.0, 9.0]);
        assert_eq!((times.median(), times.ends()), (3.0, [1.0, 9.0]));
        assert_eq!(RowTimes(vec![1.0, 2.0, 4.0]).median(), 2.0);
        let point = MeasuredPoint { bytes: 8, value: 2.0, ends: [1.0, 4.0] };
        let rate = point.map(|us| 8.0 / us);
        assert_eq!((rate.value, rate.ends), (4.0, [2.0, 8.0]));
    }
}
