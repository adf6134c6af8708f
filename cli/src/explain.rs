//! `hopbine explain`: the algorithm that the library chooses for a call, the row of the decision table that chooses
//! it, the alternatives, and lower bounds.

use std::path::PathBuf;

use hopbine::{Tuning, Wire};
use hopbine_torus::bounds::{BoundKind, Bounds};
use hopbine_torus::choose::{Choice, Features, Knowledge};
use hopbine_torus::collectives::Payload;
use hopbine_torus::plan::max_ports;
use hopbine_torus::sim::Machine;
use hopbine_torus::sizes::{self, parse_size};
use hopbine_torus::{Algorithm, Collective, Shape, registry};
use serde_json::Value;

use super::args::default_ports;
use super::cells::{Cell, Column, decimal};
use super::error::{CliError, Outcome};
use super::report::{Report, RowsArg};
use super::simulate::{file, network};
use super::tune::{case, read_table};
use super::{host, progress};

/// Show which algorithm the library chooses for a call, by which row of which decision table, and how the others
/// compare
///
/// Times are predictions of the network model. The command does not know which calls go by barrier gates or by the
/// flat buffer of a host; in a program, Communicator::explain does.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine explain allreduce --torus 8x8x8 --bytes 1MiB
  hopbine explain alltoall --torus 4x4x4+4 --bytes 4MiB --ports 2
  hopbine explain bcast --torus 4 --bytes 64KiB --wire memory")]
pub struct Args {
    /// The collective
    collective: Collective,
    /// Shape of the torus: sizes joined by `x`. `m` after a size: this dimension does not wrap. `+K` at the end: K
    /// ranks on each node
    #[arg(long, value_name = "SHAPE")]
    torus: Shape,
    /// Bytes of a rank's vector, or of all its blocks
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "0")]
    bytes: u64,
    /// Number of ports; by default as many as the shape has directions, at most 6
    #[arg(long, value_name = "N")]
    ports: Option<u32>,
    /// The built-in decision table: for Tofu-D, for another network, or for the memory of one host
    #[arg(long, value_parser = Tuning::BUILT_IN.map(|(name, _)| name), default_value = "tofu-d")]
    wire: String,
    /// File of a decision table to use instead of a built-in one
    #[arg(long, value_name = "FILE", conflicts_with = "wire")]
    table: Option<PathBuf>,
    /// A machine: a name, also with changed values (tofu-d,network.hop=50), or a file as `hopbine machine NAME`
    /// writes it
    #[arg(long, value_name = "NAME|FILE", default_value = "tofu-d")]
    machine: String,
    #[command(flatten)]
    out: RowsArg,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let shape = &args.torus;
    let machine = file::machine(&args.machine)?;
    host::check_plans(shape, true)?;
    let most = max_ports(shape);
    let ports = args.ports.unwrap_or(default_ports(shape));
    if !(1..=most).contains(&ports) {
        return Err(CliError::Usage(format!(
            "--ports is {ports}; on {shape} it must be 1 to {most}"
        )));
    }
    let tuning = match &args.table {
        Some(path) => read_table(path)?,
        None => Tuning::named(&args.wire).expect("clap takes the names of tables").clone(),
    };
    report(&args, &tuning, &machine, ports)?.write(&args.out)?;
    Ok(Outcome::Well)
}

fn report(args: &Args, tuning: &Tuning, machine: &Machine, ports: u32) -> Result<Report, CliError> {
    let &Args { collective, ref torus, bytes, .. } = args;
    let of = Features::of(torus);
    let blocks = u64::from(collective.n_blocks(torus.n_ranks()));
    let kind = (collective, Knowledge::Known);
    let found = tuning.find(kind, (torus, &of), bytes / blocks, ports);
    let choice = found.on(collective, torus, &of);
    // The model covers networks only, not the memory of a host.
    let is_modelled = tuning.table().wire() == Wire::Network;
    let mut others = registry::algorithms(collective);
    others.retain(|other| other.name != choice.algorithm.name);
    let mut rows = Vec::new();
    let mut refused = Vec::new();
    let network = is_modelled.then(|| network(machine, torus)).transpose()?;
    let bar = progress::bar(1 + others.len() as u64, "predicting");
    let predict = |algorithm: &Algorithm| -> Result<Option<f64>, CliError> {
        bar.say(&algorithm.name);
        bar.advance(1);
        let Some(network) = &network else { return Ok(None) };
        let case = case(network, torus, algorithm, choice.ports)?;
        Ok(Some(case.ns(machine, bytes, choice.segment_bytes)))
    };
    let bound = network
        .as_ref()
        .map(|network| Bounds::new(collective, ports, &machine.limits(network)).call(bytes as f64));
    let own = predict(&choice.algorithm)?;
    for other in others {
        match other.serves(torus) {
            Ok(()) => rows.push((predict(&other)?, other)),
            Err(reason) => refused.push((other, reason)),
        }
    }
    drop(bar);
    rows.sort_by(|a, b| a.0.unwrap_or(0.0).total_cmp(&b.0.unwrap_or(0.0)));
    let chosen = std::iter::once((own, choice.algorithm.clone()));
    let mut cells: Vec<Vec<Cell>> = chosen
        .chain(rows)
        .enumerate()
        .map(|(at, (ns, algorithm))| {
            let why = if at == 0 { found.to_string() } else { "serves, too".to_owned() };
            line(&algorithm, at == 0, ns, [own, bound.map(|(_, ns)| ns)], &why)
        })
        .collect();
    cells.extend(refused.iter().map(|(algorithm, reason)| {
        line(algorithm, false, None, [None; 2], &format!("does not serve: {reason}"))
    }));
    Ok(shown(args, machine, &choice, &found.to_string(), cells, bound))
}

fn line(
    algorithm: &Algorithm,
    is_chosen: bool,
    ns: Option<f64>,
    [own, bound]: [Option<f64>; 2],
    why: &str,
) -> Vec<Cell> {
    let time = ns.map_or_else(Cell::none, |ns| Cell::new(ns / 1e3, decimal(ns / 1e3, 2)));
    let over = |other: Option<f64>| {
        let ratio = ns.zip(other).filter(|(_, other)| *other > 0.0).map(|(ns, other)| ns / other);
        ratio.map_or_else(Cell::none, |ratio| Cell::new(ratio, format!("{ratio:.2}")))
    };
    let chosen = Cell::new(is_chosen, if is_chosen { "chosen" } else { "" });
    vec![Cell::text(&*algorithm.name), chosen, time, over(own), over(bound), Cell::text(why)]
}

fn shown(
    args: &Args,
    machine: &Machine,
    choice: &Choice,
    row: &str,
    rows: Vec<Vec<Cell>>,
    bound: Option<(BoundKind, f64)>,
) -> Report {
    let Args { collective, torus, bytes, .. } = args;
    let size = match collective.payload() {
        Payload::Token => String::new(),
        _ => format!(" of {}", sizes::show(*bytes)),
    };
    let how = choice.how();
    let name = &choice.algorithm.name;
    let is_modelled = bound.is_some();
    let mut notes = vec![];
    if let Some((kind, ns)) = bound {
        notes.push(format!(
            "Predicted for {}, not measured, all with {how}. After the chosen algorithm, the fastest is first. \
             Lower bound for any schedule: {} us ({}). `hopbine search` looks for faster schedules.",
            machine.name,
            decimal(ns / 1e3, 2),
            kind.name()
        ));
    } else {
        notes.push(
            "No predictions: the network model does not cover the memory of a host.".to_owned(),
        );
    }
    Report {
        about: vec![
            ("predicted", Value::from(is_modelled)),
            ("collective", Value::from(collective.name())),
            ("torus", Value::from(torus.to_string())),
            ("bytes", Value::from(*bytes)),
            ("chosen", Value::from(&**name)),
            ("ports", Value::from(choice.ports)),
            (
                "segment_bytes",
                match choice.segment_bytes {
                    u64::MAX => Value::Null,
                    segment => Value::from(segment),
                },
            ),
            ("row", Value::from(row)),
            ("bound_us", bound.map_or(Value::Null, |(_, ns)| Value::from(ns / 1e3))),
            ("bound_is", bound.map_or(Value::Null, |(kind, _)| Value::from(kind.name()))),
        ],
        heading: format!("{collective}{size} on {torus}: {name}, {how}: {row}"),
        columns: vec![
            Column::text("algorithm", "algorithm"),
            Column::text("is_chosen", ""),
            Column::number("predicted_us", "predicted us").only_if(is_modelled),
            Column::number("over_chosen", "over chosen").only_if(is_modelled),
            Column::number("over_bound", "over bound").only_if(is_modelled),
            Column::text("why", "why").wraps(),
        ],
        rows,
        notes,
    }
}
