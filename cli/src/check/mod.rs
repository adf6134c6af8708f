//! `hopbine check`: proves the plans of all ranks and counts the bytes that they send over links.

pub mod judge;
mod rows;

use std::path::PathBuf;

use hopbine_torus::plan::{Expect, Plan, Schedule};
use hopbine_torus::{Algorithm, Rank, RankMap, Request, Shape};
use rayon::prelude::*;

use super::args::{self, AllOr, PortsArg};
use super::counts::CountsArg;
use super::error::{CliError, Outcome};
use super::progress;
use super::report::RowsArg;
use super::selection::Selection;
use rows::{CheckRow, report};

/// Prove the plans of all ranks, and count the bytes that they send over links
///
/// The command executes the plans of all ranks symbolically: every message must match a receive, no contribution
/// may be lost or counted twice, and every rank must end with the collective's result. The exit status is 1 if
/// anything is wrong.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("collective", |arg| arg.required_unless_present("plans")),
    override_usage = "\
hopbine check --torus <SHAPE> [OPTIONS] <COLLECTIVE>
       hopbine check --schedule <FILE> [OPTIONS]
       hopbine check --torus <SHAPE> [OPTIONS] --plans <FILE>...",
    after_help = "\
Examples:
  hopbine check allreduce --torus 4x6x4
  hopbine check allreduce --torus 16x16x16 --algorithm bine
  hopbine check bcast --torus 5x7 --ports all --root all --format json
  hopbine plan allgather --torus 4x4 --rank 0 --format schedule -o mine.txt
  hopbine check --schedule mine.txt"
)]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Number of ports: a number, `max` (two per dimension), or `all` numbers from 1 to that
    #[arg(long, value_name = "N|max|all", default_value = "max")]
    ports: PortsArg,
    /// The root of a rooted collective; `all` checks every rank as the root
    #[arg(long, value_name = "RANK|all", default_value = "0")]
    root: AllOr<u32>,
    /// Count volumes for blocks of different sizes, as `hopbine run` describes them; the proof holds for all sizes
    #[arg(long, value_name = "uniform|normal:SD|power:E|zipf:S|sparse:P|FILE",
          conflicts_with_all = ["schedule", "plans"])]
    counts: Option<CountsArg>,
    /// Seed of --counts
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Check the plans in these files instead: one file per rank, as `plan --format text` writes it
    #[arg(long, value_name = "FILE", num_args = 1..,
          conflicts_with_all = ["collective", "algorithm", "ports", "root", "schedule"])]
    plans: Vec<PathBuf>,
    /// Most violations that a table lists per row; CSV has their number, JSON lists all
    #[arg(long, value_name = "N", default_value_t = 10)]
    violations: usize,
    #[command(flatten)]
    out: RowsArg,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    args.out.output.check([])?;
    let (shape, rows, notes) = if let Some(path) = &args.selection.schedule {
        from_schedule(path)?
    } else {
        let (shape, map) = args.selection.place()?;
        if args.plans.is_empty() {
            let (rows, notes) = from_registry(&args, &shape, &map)?;
            (shape, rows, notes)
        } else {
            (shape.clone(), vec![from_plans(&args.plans, &shape, &map)?], vec![])
        }
    };
    let wrong = rows.iter().any(|row| !row.verdict.violations.is_empty());
    report(&shape, &rows, notes, args.violations).write(&args.out)?;
    Ok(if wrong { Outcome::Wrong } else { Outcome::Well })
}

fn from_schedule(path: &std::path::Path) -> Result<(Shape, Vec<CheckRow>, Vec<String>), CliError> {
    let schedule = args::read_schedule(path)?;
    let bar = progress::bar(0, "checking");
    let verdict = judge::schedule(&schedule, &[schedule.root], Expect::default(), None, &bar);
    let row = CheckRow {
        collective: schedule.collective,
        algorithm: format!("schedule ({})", path.display()),
        ports: schedule.ports as usize,
        root: schedule.root.to_string(),
        verdict,
    };
    Ok((schedule.shape, vec![row], vec![]))
}

fn from_plans(paths: &[PathBuf], shape: &Shape, map: &RankMap) -> Result<CheckRow, CliError> {
    let mut plans = paths
        .iter()
        .map(|path| {
            let text = args::read(path)?;
            text.parse::<Plan>().map_err(|error| CliError::text(path, error))
        })
        .collect::<Result<Vec<_>, _>>()?;
    if plans.len() != shape.n_ranks() as usize {
        return Err(CliError::Usage(format!(
            "{} plans for the {} ranks of {shape}; give one file per rank",
            plans.len(),
            shape.n_ranks()
        )));
    }
    plans.sort_by_key(|plan| plan.rank);
    let (collective, root) = (plans[0].collective, plans[0].root);
    let ports = plans[0].n_ports() as usize;
    let bar = progress::bar(0, "checking");
    let verdict = judge::plans(plans, shape, map, Expect::default(), &bar);
    Ok(CheckRow {
        collective,
        algorithm: "from files".to_owned(),
        ports,
        root: root.to_string(),
        verdict,
    })
}

fn from_registry(
    args: &Args,
    shape: &Shape,
    map: &RankMap,
) -> Result<(Vec<CheckRow>, Vec<String>), CliError> {
    let mut notes = vec![];
    let (collective, algorithms) = args.selection.algorithms(shape, &mut notes)?;
    if let Some(counts) = args.counts {
        counts.check_for(collective, shape.n_ranks())?;
        notes.insert(
            0,
            "n is the sum of all blocks; for an alltoall, the mean of what each rank sends."
                .to_owned(),
        );
    }
    let (roots, root) = match args.root {
        AllOr::One(root) => (vec![args::existing_rank(root, shape)?], root.to_string()),
        AllOr::All if collective.is_rooted() => {
            (Rank::first(shape.n_ranks()).collect(), format!("all {}", shape.n_ranks()))
        }
        AllOr::All => (vec![Rank(0)], "0".to_owned()),
    };
    let mut tasks = vec![];
    for algorithm in &algorithms {
        for ports in args.ports.counts(shape) {
            let request = Request {
                shape: shape.clone(),
                map: map.clone(),
                root: roots[0],
                ports: Some(ports),
            };
            tasks.push((algorithm, args::scheduled(algorithm, &request)?));
        }
    }
    let bar = progress::bar(0, "checking");
    let judge = |(algorithm, schedule): &(&Algorithm, Schedule)| {
        bar.say(&algorithm.name);
        let expect = algorithm.promises(shape);
        CheckRow {
            collective,
            algorithm: algorithm.name.to_string(),
            ports: schedule.ports as usize,
            root: root.clone(),
            verdict: judge::schedule(
                schedule,
                &roots,
                expect,
                args.counts.map(|counts| (counts, args.seed)),
                &bar,
            ),
        }
    };
    let rows = tasks.par_iter().map(judge).collect();
    Ok((rows, notes))
}
