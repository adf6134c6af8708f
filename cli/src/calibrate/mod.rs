//! `hopbine calibrate`: the parameters of a machine, from measured times.

pub mod fit;

use std::path::PathBuf;

use hopbine_torus::fit::Accuracy;
use hopbine_torus::sim::Parameter;
use serde_json::{Value, json};

use crate::cells::{Cell, Column, decimal};
use crate::error::{CliError, Outcome};
use crate::measured::cases::{MeasuredCase, MeasuredCases, predicted};
use crate::measured::{MeasuredArgs, accuracy_cells, accuracy_columns};
use crate::output::OutputArg;
use crate::progress;
use crate::report::{Format, Report, RowsArg};
use crate::simulate::file;
use fit::{Calibration, FittedQuantity, calibrate, most_evaluations};

/// Fit the parameters of the network model to measured times
///
/// The command fits the parameters of the network, of a node and of the papers' software; no parameter is for one
/// shape or one algorithm alone. A parameter that the times do not determine is named, and keeps the value of its
/// source.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine calibrate --measured timings.csv -o my-machine.toml
  hopbine calibrate --measured timings.csv --shapes 2x2x2,4x4x4

The file has the columns shape, collective, bytes, api (utofu, mpi, fujitsu-mpi), algorithm, segment_bytes, \
ports and median_us, or is PICO's aggregated_results_summary.csv.")]
pub struct Args {
    #[command(flatten)]
    measured: MeasuredArgs,
    /// The machine whose parameters the fit starts from: a name or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "tofu-d")]
    machine: String,
    /// Write the fitted machine to this file, for --machine
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    OutputArg::default().check([&args.output])?;
    let start = file::machine(&args.machine)?;
    let rows = args.measured.rows()?;
    let cases = MeasuredCases::new(rows, &start)?;
    let modelled: Vec<&MeasuredCase> = cases.modelled.iter().collect();
    let bar = progress::bar(most_evaluations(), "fitting");
    let calibration =
        calibrate(&modelled, &start, &bar).map_err(|error| CliError::Usage(error.to_string()))?;
    drop(bar);
    if let Some(path) = &args.output {
        let source =
            |parameter: &Parameter| calibration.found(parameter).map(FittedQuantity::remark);
        OutputArg::to(path).write(&file::show(&calibration.machine, source))?;
    }
    let residuals = residuals(&modelled, &calibration);
    let stdout = RowsArg { format: args.format, output: OutputArg::default() };
    let is_table = args.format == Format::Table;
    parameters(&cases, &calibration, &residuals, is_table).write(&stdout)?;
    if is_table {
        of_residuals(&residuals).write(&stdout)?;
    }
    Ok(Outcome::Well)
}

/// Residual errors of one algorithm of a collective on one shape, or of all measured times.
struct Residual {
    collective: String,
    family: String,
    shape: String,
    accuracy: Accuracy,
}

fn residuals(cases: &[&MeasuredCase], calibration: &Calibration) -> Vec<Residual> {
    let predictions = predicted(cases, &calibration.machine);
    let errors: Vec<f64> =
        cases.iter().zip(&predictions).map(|(case, us)| (us / case.row.us).ln()).collect();
    let mut groups: std::collections::BTreeMap<_, Vec<f64>> = Default::default();
    for (case, error) in cases.iter().zip(&errors) {
        let row = &case.row;
        let shape = (row.shape.n_ranks(), row.shape.to_string());
        groups.entry((row.collective.name(), row.family(), shape)).or_default().push(*error);
    }
    let all = ("all".to_owned(), "all".to_owned(), "all".to_owned(), errors);
    let each = groups.into_iter().map(|((collective, family, (_, shape)), errors)| {
        (collective.to_owned(), family, shape, errors)
    });
    std::iter::once(all)
        .chain(each)
        .filter_map(|(collective, family, shape, errors)| {
            Some(Residual { collective, family, shape, accuracy: Accuracy::of(&errors)? })
        })
        .collect()
}

fn parameters(
    cases: &MeasuredCases,
    calibration: &Calibration,
    residuals: &[Residual],
    is_table: bool,
) -> Report {
    let rows = calibration.found.iter().map(|found| {
        let error = found
            .error
            .map_or_else(Cell::none, |error| Cell::new(error, format!("{:.0}%", 100.0 * error)));
        vec![
            Cell::text(found.quantity.name()),
            Cell::new(found.value, significant(found.value)),
            Cell::text(found.quantity.unit()),
            error,
            Cell::text(&found.source),
        ]
    });
    let mut notes = vec![
        "Standard errors are of the logarithm. Errors of one algorithm on one shape and number of ports are correlated."
            .to_owned(),
    ];
    notes.extend(cases.notes());
    let all: Vec<Value> = residuals
        .iter()
        .map(|residual| {
            json!({
                "collective": residual.collective,
                "family": residual.family,
                "shape": residual.shape,
                "rows": residual.accuracy.n,
                "median": residual.accuracy.median,
                "p90": residual.accuracy.p90,
                "bias": residual.accuracy.bias,
            })
        })
        .collect();
    let n = cases.modelled.len();
    let mut about = vec![
        ("machine", Value::from(calibration.machine.name.clone())),
        ("measured", Value::from(n)),
        ("left_out", Value::from(cases.n_left_out())),
        ("steps", Value::from(calibration.steps)),
    ];
    if !is_table {
        about.push(("residuals", Value::from(all)));
    }
    Report {
        about,
        heading: format!("{} fitted to {n} measured times", calibration.machine.name),
        columns: vec![
            Column::text("parameter", "parameter"),
            Column::number("value", "value"),
            Column::text("unit", "unit"),
            Column::number("standard_error", "error"),
            Column::text("source", "source").wraps(),
        ],
        rows: rows.collect(),
        notes,
    }
}

fn of_residuals(residuals: &[Residual]) -> Report {
    let row = |residual: &Residual| {
        let Residual { collective, family, shape, accuracy } = residual;
        let mut cells = vec![Cell::text(collective), Cell::text(family), Cell::text(shape)];
        cells.extend(accuracy_cells(accuracy));
        cells
    };
    let mut columns = vec![
        Column::text("collective", "collective"),
        Column::text("family", "algorithm").wraps(),
        Column::text("shape", "shape"),
    ];
    columns.extend(accuracy_columns());
    Report {
        heading:
            "\nResiduals: |predicted / measured - 1|, and the mean of ln(predicted / measured)"
                .to_owned(),
        columns,
        rows: residuals.iter().map(row).collect(),
        ..Report::default()
    }
}

/// The value with four significant digits.
fn significant(value: f64) -> String {
    let before = value.abs().log10().floor() as i32 + 1;
    decimal(value, (4 - before).clamp(0, 6) as usize)
}
