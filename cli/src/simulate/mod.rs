//! `hopbine simulate`: what collectives take on a machine that is not here, predicted by the network
//! model.

pub mod file;
pub mod machine;
mod plot;

use hopbine_torus::geometry::Vertex;
use hopbine_torus::plan::Schedule;
use hopbine_torus::sim::{
    Machine, Network, Outcome as Played, PaperCall, Part, Profile, Score, play,
};
use hopbine_torus::{Collective, Rank, Shape};
use rayon::prelude::*;
use serde_json::Value;

use crate::args::{PortsArg, Selection};
use crate::cells::{Cell, Column, decimal};
use crate::error::{CliError, Outcome};
use crate::output::OutputArg;
use crate::progress;
use crate::report::{Format, Report};
use crate::sizes::{self, SizeRange};

/// Predict what collectives take on a machine that is not here
///
/// Plans are played on a model of the network: nothing is run, and every figure is a prediction.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine simulate allreduce --torus 64x64 --machine ideal-torus --bytes 32..2GiB
  hopbine simulate allreduce --torus 24x24x24 --bytes 1MiB --explain-time
  hopbine simulate allreduce --torus 64x64 --bytes 32..512MiB --plot goodput.svg
  hopbine simulate alltoall --torus 4x4x4 --algorithm pairwise --bytes 1MiB --exact

Sizes: bytes of a rank's vector, or of all its blocks. `hopbine machine` lists the machines.")]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Number of ports: `max` (two per dimension), `all` from 1 to that, or a number
    #[arg(long, value_name = "N|max|all", default_value = "max")]
    ports: PortsArg,
    /// The root of a rooted collective
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// Bytes: a size, or a range such as 32..2GiB or 1KiB..1GiB:x4
    #[arg(long, value_name = "BYTES|RANGE", default_value = "32..512MiB:x4")]
    bytes: SizeRange,
    /// A machine by name, with changed values such as tofu-d,network.hop=50 if wanted, or a file as from
    /// `hopbine machine NAME`
    #[arg(long, value_name = "NAME|FILE", default_value = "tofu-d")]
    machine: String,
    /// Whose software performs them
    #[arg(long, value_enum, default_value_t = ProfileArg::Hopbine)]
    profile: ProfileArg,
    /// The longest message, 1 MiB if not given; of the papers' code, the longest piece of a reduction
    /// or of a tree, whole messages if not given
    #[arg(long, value_name = "BYTES", value_parser = sizes::parse_size)]
    segment: Option<u64>,
    /// Of the papers' code, a bcast over a tree through temporary memory
    #[arg(long)]
    via_temporary: bool,
    /// Follow all ranks one by one, with no use of symmetry
    #[arg(long)]
    exact: bool,
    /// Say what the time of each row is spent on
    #[arg(long)]
    explain_time: bool,
    /// Draw the goodput of each algorithm against the size, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<std::path::PathBuf>,
    /// How to write the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    output: OutputArg,
}

/// Whose software, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileArg {
    /// Ours, in a call like one before
    Hopbine,
    /// The code that the Bine paper was measured with
    Paper,
    /// MPI's, messages one after the other
    Mpi,
}

/// The predictions of a schedule, by size.
struct Series {
    algorithm: String,
    ports: u32,
    /// Whether the symmetry that is made use of is there.
    is_exact: bool,
    played: Vec<(u64, Played)>,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let machine = file::machine(&args.machine)?;
    if args.segment == Some(0) {
        return Err(CliError::Usage(
            "--segment is 0: the longest message has at least 1 byte".to_owned(),
        ));
    }
    let (collective, shape, schedules, mut notes) =
        args.selection.schedules(args.root, |shape| args.ports.counts(shape).map(Some))?;
    let network = Network::new(machine.network, &shape, machine.fold)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let sizes: Vec<u64> = match collective {
        Collective::Barrier => vec![0],
        _ => args.bytes.sizes().collect(),
    };
    let bar = progress::bar(schedules.len() as u64, "simulating");
    let play = |(name, schedule): &(String, Schedule)| {
        bar.say(name);
        let series = series(name, schedule, &network, &machine, &args, &sizes);
        bar.advance(1);
        series
    };
    let series: Vec<Series> = schedules.par_iter().map(play).collect::<Result<_, _>>()?;
    drop(bar);
    if let Some(fold) = &network.fold {
        notes.push(format!("Folded onto Tofu's axes as {fold}."));
    }
    if series.iter().any(|series| !series.is_exact) {
        notes.push(
            "~: not all ranks do the same, and the one that is followed has the longest way and the \
             busiest link; --exact follows all."
                .to_owned(),
        );
    }
    if let Some(path) = &args.plot {
        let title = format!("{collective} on {shape}, {}: predicted goodput", machine.name);
        plot::goodput(&title, &series, path)?;
    }
    report(collective, &shape, &machine, &series, args.explain_time, notes)
        .write(args.format, &args.output)?;
    Ok(Outcome::Well)
}

fn series(
    name: &str,
    schedule: &Schedule,
    network: &Network,
    machine: &Machine,
    args: &Args,
    sizes: &[u64],
) -> Result<Series, CliError> {
    let flow = schedule.expand().expect("the registry's schedules are valid");
    let place = |rank: Rank| -> Vertex { schedule.map.vertex_of(&schedule.shape, rank) };
    let score = match args.exact {
        true => Score::of_all(&flow, network, place)
            .map_err(|error| CliError::Usage(error.to_string()))?,
        false => Score::of_one(&flow, network, place),
    };
    let profile = match args.profile {
        ProfileArg::Hopbine => Profile::Hopbine { segment_bytes: args.segment.unwrap_or(1 << 20) },
        ProfileArg::Paper => Profile::Paper(PaperCall {
            segment_bytes: args.segment.unwrap_or(0),
            via_temporary: args.via_temporary,
        }),
        ProfileArg::Mpi => Profile::Mpi,
    };
    let speeds = machine.speeds();
    let played = sizes.iter().map(|&bytes| {
        let script = profile.script(schedule, &flow, &score, machine, bytes as f64);
        let script = script.map_err(|error| CliError::Usage(format!("{name}: {error}")))?;
        Ok((bytes, play(&score, &script, &speeds, bytes as f64, false)))
    });
    Ok(Series {
        algorithm: name.to_owned(),
        ports: schedule.ports,
        is_exact: score.is_exact(),
        played: played.collect::<Result<_, CliError>>()?,
    })
}

fn report(
    collective: Collective,
    shape: &Shape,
    machine: &Machine,
    all: &[Series],
    explains: bool,
    mut notes: Vec<String>,
) -> Report {
    let is_barrier = collective == Collective::Barrier;
    let mut columns = vec![
        Column::text("algorithm", "algorithm"),
        Column::number("ports", "ports").yields(1),
        Column::number("bytes", "bytes").only_if(!is_barrier),
        Column::number("predicted_us", "predicted us"),
        Column::number("goodput_gb_per_s", "GB/s").yields(2).only_if(!is_barrier),
        Column::number("over_best", "over best"),
        Column::text("symmetry", "").yields(4),
    ];
    columns.extend(
        Part::ALL.map(|part| Column::number(part.name(), part.name()).only_if(explains).yields(3)),
    );
    let n_sizes = all.first().map_or(0, |series| series.played.len());
    let mut rows = Vec::new();
    for index in 0..n_sizes {
        let mut of_size: Vec<(&Series, u64, &Played)> = all
            .iter()
            .map(|series| (series, series.played[index].0, &series.played[index].1))
            .collect();
        of_size.sort_by(|a, b| a.2.ns.total_cmp(&b.2.ns));
        let best = of_size.first().map_or(1.0, |(.., played)| played.ns);
        for (series, bytes, played) in of_size {
            let goodput = bytes as f64 / played.ns;
            let mut cells = vec![
                Cell::text(&series.algorithm),
                Cell::count(series.ports),
                Cell::new(bytes, sizes::show(bytes)),
                Cell::new(played.ns / 1e3, decimal(played.ns / 1e3, 2)),
                Cell::new(goodput, decimal(goodput, 3)),
                Cell::new(played.ns / best, format!("{:.2}", played.ns / best)),
                Cell::new(
                    if series.is_exact { "exact" } else { "approximate" },
                    if series.is_exact { "" } else { "~" },
                ),
            ];
            cells.extend(Part::ALL.map(|part| {
                let share = played.parts.of(part) / played.ns;
                Cell::new(played.parts.of(part) / 1e3, format!("{:.0}%", 100.0 * share))
            }));
            rows.push(cells);
        }
    }
    notes.insert(
        0,
        "Predicted by the network model, not measured; the fastest of each size first.".to_owned(),
    );
    Report {
        about: vec![
            ("predicted", Value::from(true)),
            ("collective", Value::from(collective.name())),
            ("torus", Value::from(shape.to_string())),
            ("machine", Value::from(machine.name.clone())),
        ],
        heading: format!("{collective} on {shape}, predicted for {}", machine.name),
        columns,
        rows,
        notes,
    }
}
