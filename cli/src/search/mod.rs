//! `hopbine search`: the best schedule of a call under the network model, with a certificate.

mod driver;

use hopbine_torus::collectives::Payload;
use hopbine_torus::plan::{Recipe, Schedule, WalkRecipe};
use hopbine_torus::search::{Best, Cost, SearchRequest};
use hopbine_torus::sim::Machine;
use hopbine_torus::sizes::{self, parse_size};
use hopbine_torus::{Collective, Rank, Shape, registry};
use serde_json::Value;

use super::args::{self, Place, default_ports};
use super::cells::{Cell, Column, decimal};
use super::error::{CliError, Outcome};
use super::output::OutputArg;
use super::report::{self, Report, RowsArg};
use super::simulate::{file, network};
use super::tune::{Budget, SEGMENTS};
use super::{host, progress};
pub use driver::search;
use driver::{Searched, prove};

/// Find the best schedule of a call under the network model, and bound how much better another could be
///
/// The search is branch and bound over forms, a pattern for each dimension, orders of dimensions, lanes, segments
/// and leaders. Its certificate has a lower bound for any schedule, a lower bound for the schedules of the search
/// space, and whether the whole space was searched. Then the lanes of the best few get parts that differ, if that gains
/// over 1 %: a heuristic. Times are predictions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine search allreduce --torus 8x8x8 --bytes 1MiB
  hopbine search alltoall --torus 5x7 --bytes 64KiB --ports 2 --machine ideal-torus
  hopbine search bcast --torus 24x24x24 --bytes 4MiB --budget 1min --format schedule -o found.txt
  hopbine check --schedule found.txt

The search tries all patterns that serve a dimension's size; docs/model.md describes its space.")]
pub struct Args {
    /// The collective
    collective: Collective,
    #[command(flatten)]
    place: Place,
    /// The root of a rooted collective
    #[arg(long, value_name = "RANK", default_value_t = 0, allow_negative_numbers = true)]
    root: u32,
    /// Bytes of a rank's vector, or of all its blocks
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "0")]
    bytes: u64,
    /// Largest number of ports; by default as many as the shape has directions, at most 6
    #[arg(long, value_name = "N")]
    ports: Option<u32>,
    /// A machine: a name, also with changed values (tofu-d,network.hop=50), or a file as `hopbine machine NAME`
    /// writes it
    #[arg(long, value_name = "NAME|FILE", default_value = "tofu-d")]
    machine: String,
    /// Time for the search, such as 90s or 10min. When it is over, the result is the best schedule so far
    #[arg(long, value_name = "TIME", default_value = "8s")]
    budget: Budget,
    /// Prove the schedule also if it is for more than 2,048 ranks (alltoall: 512), which may take minutes
    #[arg(long)]
    prove: bool,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    output: OutputArg,
}

/// How what was found is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Aligned columns with units
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// One object
    Json,
    /// The schedule, as `--schedule FILE` reads it
    Schedule,
}

/// Maximum number of ranks for which the schedule is always proved. Lower for an alltoall, whose proof follows a block
/// for each pair of ranks.
fn most_proved(collective: Collective) -> u32 {
    if collective.payload() == Payload::Pairs { 512 } else { 2048 }
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    args.output.check([])?;
    let machine = file::machine(&args.machine)?;
    let shape = &args.place.torus;
    host::check_plans(shape, true)?;
    let request = SearchRequest {
        collective: args.collective,
        shape: shape.clone(),
        map: args.place.rank_map()?,
        root: match args.collective.is_rooted() {
            true => args::existing_rank(args.root, shape)?,
            false => Rank(0),
        },
        ports: args.ports.unwrap_or(default_ports(shape)),
        bytes: args.bytes as f64,
        segments: SEGMENTS.to_vec(),
    };
    let network = network(&machine, shape)?;
    let bar = progress::bar(0, "searching");
    let searched = search(&request, &network, &machine, args.budget, &bar)?;
    drop(bar);
    let is_proved = shape.n_ranks() <= most_proved(args.collective) || args.prove;
    if is_proved {
        prove(&searched.found.schedule)?;
    }
    let format = match args.format {
        Format::Schedule => {
            args.output.write(&searched.found.schedule.to_string())?;
            return Ok(Outcome::Well);
        }
        Format::Table => report::Format::Table,
        Format::Csv => report::Format::Csv,
        Format::Json => report::Format::Json,
    };
    report(&args, &machine, &searched, is_proved)
        .write(&RowsArg { format, output: args.output.clone() })?;
    Ok(Outcome::Well)
}

/// The name of a schedule in the registry, or `search`.
fn name(schedule: &Schedule) -> String {
    registry::name_of(schedule).unwrap_or_else(|| "search".to_owned())
}

fn line(what: &str, schedule: &Schedule, cost: Cost, bound_ns: f64) -> Vec<Cell> {
    let (patterns, order) = match &schedule.recipe {
        Recipe::Walk(WalkRecipe { patterns, interleave, .. }) => {
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            (Cell::text(patterns.join(" ")), Cell::text(interleave.to_string()))
        }
        _ => (Cell::none(), Cell::none()),
    };
    let about = if cost.is_exact { "" } else { "~" };
    let us = cost.ns / 1e3;
    let gap = match bound_ns > 0.0 {
        true => Cell::new(cost.ns / bound_ns, format!("{:.2}", cost.ns / bound_ns)),
        false => Cell::none(),
    };
    vec![
        Cell::text(what),
        Cell::text(name(schedule)),
        Cell::text(schedule.form()),
        patterns,
        order,
        Cell::count(schedule.ports),
        Cell::text(schedule.split.to_string()),
        Cell::count(cost.segment_bytes),
        Cell::new(us, format!("{about}{}", decimal(us, 2))),
        gap,
        Cell::new(cost.is_exact, cost.is_exact),
    ]
}

fn report(args: &Args, machine: &Machine, searched: &Searched, is_proved: bool) -> Report {
    let Searched { found, equal, named, certificate, elapsed } = searched;
    let shape: &Shape = &args.place.torus;
    let size = match args.collective.payload() {
        Payload::Token => String::new(),
        _ => format!(" of {}", sizes::show(args.bytes)),
    };
    let (kind, bound_ns) = certificate.bound;
    let mut rows = vec![line("found", &found.schedule, found.cost, bound_ns)];
    let of_equal = |equal: &Best| line("equal parts", &equal.schedule, equal.cost, bound_ns);
    rows.extend(equal.iter().map(of_equal));
    rows.extend(named.iter().map(|(schedule, cost)| line("registry", schedule, *cost, bound_ns)));
    let us = |ns: f64| decimal(ns / 1e3, 2);
    let searched = match certificate.is_exhaustive {
        true if equal.is_some() => {
            "the whole space was searched, in which lanes have equal parts: it has no better schedule than that with \
             equal parts"
                .to_owned()
        }
        true => "the whole space was searched: it has no better schedule".to_owned(),
        false => {
            format!(
                "not exhaustive: no schedule of the space takes less than {} us",
                us(certificate.space_ns)
            )
        }
    };
    let uncertain = match certificate.uncertain {
        0 => String::new(),
        n => format!(", {n} not taken because their predictions are not exact"),
    };
    let mut notes = vec![
        format!("Predicted for {}, not measured.", machine.name),
        format!(
            "Lower bound for any schedule: {} us ({}). In {:.1} s {searched}.",
            us(bound_ns),
            kind.name(),
            elapsed.as_secs_f64()
        ),
        format!(
            "Nodes: {} visited, {} pruned; schedules: {} predicted{uncertain}.",
            certificate.visited, certificate.pruned, certificate.predicted
        ),
    ];
    if equal.is_some() {
        notes.push(
            "Parts of lanes that differ are a heuristic beside the space: others may take less."
                .to_owned(),
        );
    }
    if !(found.cost.is_exact && named.as_ref().is_none_or(|(_, cost)| cost.is_exact)) {
        notes.push(
            "~: approximate, by the one rank with the longest route and the busiest link."
                .to_owned(),
        );
    }
    notes.push(match is_proved {
        true => "The schedule is proved; --format schedule writes it.".to_owned(),
        false => {
            "The schedule is not proved; --prove proves it, in minutes, and --format schedule writes it."
                .to_owned()
        }
    });
    Report {
        about: vec![
            ("predicted", Value::from(true)),
            ("collective", Value::from(args.collective.name())),
            ("torus", Value::from(shape.to_string())),
            ("bytes", Value::from(args.bytes)),
            ("machine", Value::from(machine.name.as_str())),
            ("predicted_us", Value::from(found.cost.ns / 1e3)),
            ("bound_us", Value::from(bound_ns / 1e3)),
            ("bound_is", Value::from(kind.name())),
            ("space_bound_us", Value::from(certificate.space_ns / 1e3)),
            ("is_exhaustive", Value::from(certificate.is_exhaustive)),
            ("visited", Value::from(certificate.visited)),
            ("pruned", Value::from(certificate.pruned)),
            ("predictions", Value::from(certificate.predicted)),
            ("uncertain", Value::from(certificate.uncertain)),
            ("seconds", Value::from(elapsed.as_secs_f64())),
            ("equal_us", Value::from(equal.as_ref().map(|equal| equal.cost.ns / 1e3))),
            ("is_proved", Value::from(is_proved)),
            ("schedule", Value::from(found.schedule.to_string())),
        ],
        heading: format!(
            "{}{size} on {shape}: {} us{}",
            args.collective,
            us(found.cost.ns),
            // The bound of a call that sends nothing may be 0.
            match bound_ns > 0.0 {
                true => format!(", {:.2} times the bound", found.cost.ns / bound_ns),
                false => String::new(),
            }
        ),
        columns: vec![
            Column::text("what", "what"),
            Column::text("algorithm", "algorithm").wraps(),
            Column::text("form", "form"),
            Column::text("patterns", "patterns").wraps(),
            Column::text("interleave", "order"),
            Column::number("ports", "ports"),
            Column::text("split", "split").wraps(),
            Column::number("segment_bytes", "messages up to"),
            Column::number("predicted_us", "predicted us"),
            Column::number("over_bound", "over bound"),
            Column::hidden("is_exact"),
        ],
        rows,
        notes,
    }
}
