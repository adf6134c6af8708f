//! `hopbine doctor`: one page about a job: device, kernel, pages, cores, placement, and a verified allreduce.

mod bundle;
mod findings;
mod pages;
mod places;
mod trial;

use std::path::PathBuf;

use serde_json::Value;

use crate::cells::{Cell, Column};
use crate::error::{CliError, Outcome};
use crate::output::OutputArg;
use crate::report::{Format, Report, RowsArg};
use findings::{Finding, Verdict};
use places::Places;
use trial::Trial;

/// Examine a job: device, kernel, pages, cores, torus, and a verified allreduce
///
/// Run it as every rank of the job; rank 0 writes the page. A rank alone runs the allreduce on four emulated ranks.
/// The exit status is 1 if a row says WRONG, else 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine doctor
  hopbine launch -n 4 --torus 2x2 hopbine doctor
  mpiexec -n 48 hopbine doctor -o report.tar.gz")]
pub struct Args {
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write an archive for a problem report: the page, the output of `hopbine info`, the times, and the
    /// environment variables HOPBINE_*, OMP_*, PJM_*, FLIB_* and XOS_*
    #[arg(short = 'o', long = "output", value_name = "FILE.tar.gz")]
    output: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let world = hopbine::init()?;
    let info = world.info();
    let is_first = info.rank == 0;
    if is_first {
        OutputArg::default().check([&args.output])?;
    }
    let places = Places::of_all(&world)?;
    let (trial, world) = Trial::run(world)?;
    let mut outcome = Outcome::Well;
    if is_first {
        let mut found = findings::of_world(&info);
        found.extend(findings::queues(&world.free_queues(), info.ports));
        found.extend(findings::of_variables());
        found.extend(pages::findings());
        found.extend(places.findings(&info));
        found.extend(trial.findings());
        let is_wrong = found.iter().any(|finding| finding.verdict == Verdict::Wrong);
        outcome = if is_wrong { Outcome::Wrong } else { Outcome::Well };
        let page = page(&found, trial.notes());
        let output = OutputArg::default().page();
        page.clone().write(&RowsArg { format: args.format, output })?;
        if let Some(path) = &args.output {
            bundle::write(path, &page, &info, &trial)?;
        }
    }
    world.finish()?;
    Ok(outcome)
}

/// The findings as a table.
fn page(found: &[Finding], notes: Vec<String>) -> Report {
    let count = |verdict| found.iter().filter(|finding| finding.verdict == verdict).count();
    let (wrong, slow) = (count(Verdict::Wrong), count(Verdict::Slow));
    let row = |finding: &Finding| {
        vec![
            Cell::text(finding.what),
            Cell::text(finding.verdict.name()),
            Cell::text(&finding.found),
            Cell::text(&finding.advice),
        ]
    };
    Report {
        about: vec![("wrong", Value::from(wrong)), ("slow", Value::from(slow))],
        heading: format!(
            "hopbine {}: {} checks, {wrong} wrong, {slow} slower than possible",
            hopbine::VERSION,
            found.len()
        ),
        columns: vec![
            Column::text("what", "what"),
            Column::text("verdict", "verdict"),
            Column::text("found", "found").wraps(),
            Column::text("advice", "advice").wraps(),
        ],
        rows: found.iter().map(row).collect(),
        notes,
    }
}
