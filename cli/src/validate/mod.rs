//! `hopbine validate`: compares predictions with measured times.

mod judge;
mod left_out;
mod plot;

use std::path::PathBuf;

use hopbine_torus::fit::{ErrorClass, Intervals};
use hopbine_torus::sim::{Api, Machine, tofu_d_intervals};
use serde_json::{Value, json};

use crate::cells::{Cell, Column};
use crate::error::{CliError, Outcome};
use crate::measured::cases::{MeasuredCase, MeasuredCases, predicted};
use crate::measured::{MeasuredArgs, MeasuredTime, accuracy_cells, accuracy_columns, percent};
use crate::report::{Format, Report, RowsArg};
use crate::simulate::{ProfileArg, file};
use judge::{Group, Judged, groups};
use left_out::leave_out;

/// Compare predictions of the network model with measured times
///
/// For all times, and by shape, collective, size and algorithm, the command shows the errors of predictions, how
/// many measured times lie in the predicted intervals, and the regret: what it costs to use the algorithm that is
/// predicted to be the fastest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine run allreduce --torus 8x8 --bytes 1KiB..64MiB:x4 --algorithm all --format csv -o ours.csv
  hopbine validate --measured ours.csv
  hopbine validate --measured timings.csv --leave-out --plot scatter.svg
  hopbine validate --measured aggregated_results_summary.csv --machine my-machine.toml

The file is what `hopbine run --format csv` prints, or PICO's aggregated_results_summary.csv, or has the \
columns shape, collective, bytes, api (utofu, mpi, fujitsu-mpi, hopbine), algorithm, segment_bytes, ports and \
median_us.")]
pub struct Args {
    #[command(flatten)]
    measured: MeasuredArgs,
    /// A machine: a name, also with changed values (tofu-d,network.hop=50), or a file as `hopbine machine NAME`
    /// writes it
    #[arg(long, value_name = "NAME|FILE", default_value = "tofu-d")]
    machine: String,
    /// Use only the times of this software; by default all
    #[arg(long, value_enum)]
    profile: Option<ProfileArg>,
    /// Predict each shape by parameters that are fitted to the times of the other shapes
    #[arg(long)]
    leave_out: bool,
    /// Also in a table, show each algorithm on each shape and for each class of sizes
    #[arg(long)]
    details: bool,
    /// Draw predicted against measured times, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    out: RowsArg,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    args.out.output.check([&args.plot])?;
    let machine = file::machine(&args.machine)?;
    let rows = args.measured.rows()?;
    let rows = of_profile(rows, args.profile)?;
    let cases = MeasuredCases::new(rows, &machine)?;
    let modelled: Vec<&MeasuredCase> = cases.modelled.iter().collect();
    let (judged, intervals) = if args.leave_out {
        leave_out(&modelled, &machine)?
    } else {
        // The intervals of the model's own calibration.
        let intervals = tofu_d_intervals();
        let times = modelled.iter().zip(predicted(&modelled, &machine));
        (times.map(|(case, us)| Judged::new(case, us, &intervals)).collect(), intervals)
    };
    let groups = groups(&judged, args.details || args.out.format != Format::Table);
    report(&machine, args.leave_out, &cases, &groups, &intervals).write(&args.out)?;
    if let Some(path) = &args.plot {
        plot::scatter(&title(&machine, args.leave_out), &judged, path)?;
    }
    Ok(Outcome::Well)
}

/// The rows measured with the software of a profile.
fn of_profile(
    rows: Vec<MeasuredTime>,
    profile: Option<ProfileArg>,
) -> Result<Vec<MeasuredTime>, CliError> {
    let Some(profile) = profile else { return Ok(rows) };
    let is_ours = profile == ProfileArg::Hopbine;
    let of_it: Vec<MeasuredTime> =
        rows.into_iter().filter(|row| (row.api == Api::Hopbine) == is_ours).collect();
    if of_it.is_empty() {
        let (has, other) = if is_ours { ("ours", "paper") } else { ("the papers'", "hopbine") };
        return Err(CliError::Usage(format!(
            "no measured time is of {has} software: leave out --profile, or give --profile {other}"
        )));
    }
    Ok(of_it)
}

fn title(machine: &Machine, leave_out: bool) -> String {
    match leave_out {
        true => format!("{}, each shape predicted by a fit to the others", machine.name),
        false => format!("predicted for {}, against measured", machine.name),
    }
}

fn report(
    machine: &Machine,
    leave_out: bool,
    cases: &MeasuredCases,
    groups: &[Group],
    intervals: &Intervals,
) -> Report {
    let row = |group: &Group| {
        let mut cells: Vec<Cell> = group.key.iter().map(Cell::text).collect();
        cells.extend(accuracy_cells(&group.accuracy));
        cells.push(percent(group.coverage));
        match &group.regrets {
            None => cells.extend([Cell::count(0u32), Cell::none(), Cell::none()]),
            Some(regrets) => cells.extend([
                Cell::count(regrets.n as u64),
                Cell::new(regrets.mean, format!("{:.3}", regrets.mean)),
                Cell::new(regrets.p90, format!("{:.3}", regrets.p90)),
            ]),
        }
        cells
    };
    let mut notes = vec![
        "median, p90: of |predicted / measured - 1|; bias: mean of ln(predicted / measured); covered: measured \
         times in the predicted 90 % interval; regret: measured time of the algorithm that is predicted to \
         be the fastest, over the best measured time, where several algorithms were measured."
            .to_owned(),
    ];
    if leave_out {
        notes.extend(ErrorClass::all().map(|class| remark(class, intervals)));
    }
    notes.extend(cases.notes());
    let of_class = |class: ErrorClass| {
        json!({
            "sizes": class.size.name(),
            "software": class.software.name(),
            "bounds": intervals.bounds(class),
        })
    };
    let mut columns = vec![
        Column::text("collective", "collective"),
        Column::text("algorithm", "algorithm").wraps(),
        Column::text("shape", "shape"),
        Column::text("sizes", "sizes"),
    ];
    columns.extend(accuracy_columns());
    columns.extend([
        Column::number("coverage", "covered"),
        Column::number("cells", "cells").yields(2),
        Column::number("regret_mean", "regret").yields(1),
        Column::number("regret_p90", "p90").yields(1),
    ]);
    let n = cases.modelled.len();
    Report {
        about: vec![
            ("machine", Value::from(machine.name.clone())),
            ("leave_out", Value::from(leave_out)),
            ("measured", Value::from(n)),
            ("left_out", Value::from(cases.n_left_out())),
            // Bounds of ln(predicted / measured), divided by the square root of log2 of the number of ranks.
            ("intervals", ErrorClass::all().map(of_class).collect()),
        ],
        heading: format!("{}: {n} measured times", title(machine, leave_out)),
        columns,
        rows: groups.iter().map(row).collect(),
        notes,
    }
}

/// A note on the interval of a class.
fn remark(class: ErrorClass, intervals: &Intervals) -> String {
    let of = |ranks| {
        let [low, high] = intervals.around(class, ranks, 1.0);
        format!("{low:.2} to {high:.2} times the prediction on {ranks} ranks")
    };
    let (sizes, software) = (class.size.name(), class.software.name());
    format!("90 % interval, {sizes}, {software}: {}, {}.", of(64), of(4096))
}
