//! `hopbine list`: the registry of algorithms as a table.

use hopbine_torus::bounds::{LeastTraffic, Links};
use hopbine_torus::plan::Schedule;
use hopbine_torus::{Algorithm, Collective, Rank, RankMap, Request, Shape, registry};
use serde_json::Value;

use super::cells::{Cell, Column, decimal};
use super::error::{CliError, Outcome};
use super::host;
use super::report::{Report, RowsArg};

/// List the collectives and the algorithms that perform them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine list
  hopbine list allreduce
  hopbine list alltoall --torus 3x5 --format json")]
pub struct Args {
    /// Only this collective
    collective: Option<Collective>,
    /// Say which algorithms serve this shape, which are the same there, and why the others do not serve it
    #[arg(long, value_name = "SHAPE")]
    torus: Option<Shape>,
    #[command(flatten)]
    out: RowsArg,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    if let Some(shape) = &args.torus {
        host::check_plans(shape, false)?;
    }
    let algorithms = match args.collective {
        Some(collective) => registry::algorithms(collective),
        None => registry::all(),
    };
    report(&algorithms, args.torus.as_ref()).write(&args.out)?;
    Ok(Outcome::Well)
}

/// A note with the lower bounds for a collective on a shape; None if the algorithms are of several collectives.
fn bounds_note(algorithms: &[Algorithm], shape: &Shape) -> Option<String> {
    let collective = algorithms.first()?.collective;
    if algorithms.iter().any(|other| other.collective != collective) {
        return None;
    }
    let least = LeastTraffic::new(collective, &Links::of(shape));
    let (kind, load) = least.link();
    (load > 0.0).then(|| {
        format!(
            "Lower bounds for any {collective} on {shape}: the busiest rank sends {} n, and the most loaded link \
             carries {} n ({}). n is the bytes of a rank's vector or of all its blocks. `hopbine check` shows \
             the gap of each algorithm.",
            decimal(least.sent, 4),
            decimal(load, 4),
            kind.name()
        )
    })
}

fn report(algorithms: &[Algorithm], shape: Option<&Shape>) -> Report {
    let mut columns = vec![
        Column::text("collective", "collective"),
        Column::text("algorithm", "algorithm"),
        Column::text("form", "form").yields(2),
        Column::text("summary", "what it is").wraps().yields(1),
        Column::text("source", "source").wraps().yields(3),
        Column::hidden("baseline_of"),
    ];
    let mut about = vec![];
    let mut heading = format!("{} algorithms", algorithms.len());
    if let Some(shape) = shape {
        columns.push(Column::hidden("serves"));
        columns.push(Column::hidden("same_as"));
        columns.push(Column::text("why_not", "on this shape").wraps());
        about.push(("torus", Value::from(shape.to_string())));
        let served = algorithms.iter().filter(|algorithm| algorithm.serves(shape).is_ok()).count();
        heading = format!("{heading}, {served} of them serve {shape}");
    }
    let explained =
        "(B): few bytes, for long vectors; (L): few steps, for short ones (after the Swing paper).";
    let is_marked = |mark| algorithms.iter().any(|algorithm| algorithm.summary().contains(mark));
    let marks = is_marked("(B)") || is_marked("(L)");
    let mut notes: Vec<String> = marks.then(|| explained.to_owned()).into_iter().collect();
    notes.extend(shape.and_then(|shape| bounds_note(algorithms, shape)));
    let schedules: Vec<Option<Schedule>> = shape.map_or_else(Vec::new, |shape| {
        let request =
            Request { shape: shape.clone(), map: RankMap::default(), root: Rank(0), ports: None };
        algorithms.iter().map(|algorithm| algorithm.schedule(&request).ok()).collect()
    });
    let rows = algorithms.iter().enumerate().map(|(number, algorithm)| {
        let baseline_of = algorithm.baseline_of();
        let source = match baseline_of {
            Some(papers) => format!("{}; a baseline of {papers}", algorithm.source()),
            None => algorithm.source().to_owned(),
        };
        let mut row = vec![
            Cell::text(algorithm.collective.name()),
            Cell::text(&*algorithm.name),
            Cell::text(algorithm.form()),
            Cell::text(algorithm.summary()),
            Cell::new(algorithm.source(), source),
            baseline_of.map_or_else(Cell::none, Cell::text),
        ];
        if let Some(shape) = shape {
            let serves = algorithm.serves(shape);
            let same = schedules[..number].iter().position(|other| *other == schedules[number]);
            let same = same.filter(|_| serves.is_ok()).map(|same| &*algorithms[same].name);
            row.push(Cell::new(serves.is_ok(), ""));
            row.push(same.map_or_else(Cell::none, Cell::text));
            row.push(match serves {
                Ok(()) => Cell::new(
                    Value::Null,
                    same.map_or("serves it".to_owned(), |same| {
                        format!("serves it, the same as {same}")
                    }),
                ),
                Err(error) => Cell::text(error.to_string()),
            });
        }
        row
    });
    Report { about, heading, rows: rows.collect(), columns, notes }
}
