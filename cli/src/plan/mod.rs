//! `hopbine plan`: the plan of one rank, as text, JSON or a picture.

mod describe;
mod svg;

use clap::ValueEnum;
use hopbine_torus::plan::Flow;
use hopbine_torus::{Collective, Plan, Request, Schedule};

use super::args::{self, Place};
use super::error::{CliError, Outcome};
use super::host;
use super::numbers::Numbers;
use super::output::OutputArg;

/// Show what one rank does: step by step, port by port
///
/// `check --plans` reads the text form; lines that begin with `#` are comments. The picture shows the torus
/// (rings, 2-D and 3-D shapes) and the rank's exchanges, coloured by port and labelled by step.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine plan allreduce --torus 4x4 --rank 5
  hopbine plan bcast --torus 4x6x4 --rank 40 --root 3 --algorithm bine-tree --format json
  hopbine plan allreduce --torus 4x4x4 --rank 21 --algorithm bine --format svg -o plan.svg
  hopbine plan allgather --torus 4x4 --rank 0 --format schedule")]
pub struct Args {
    /// The collective
    collective: Collective,
    #[command(flatten)]
    place: Place,
    /// The rank whose plan to show
    #[arg(long, value_name = "RANK", allow_negative_numbers = true)]
    rank: u32,
    /// The algorithm; by default the first of `hopbine list` that serves the shape
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    #[command(flatten)]
    numbers: Numbers,
    /// Number of ports; by default two per dimension
    #[arg(long, value_name = "N")]
    ports: Option<u32>,
    /// The root of a rooted collective
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    format: PlanFormat,
    #[command(flatten)]
    output: OutputArg,
}

/// How a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlanFormat {
    /// The plan as text, with comments
    Text,
    /// The plan as one object, with coordinates and hops
    Json,
    /// A picture of the torus with the rank's exchanges
    Svg,
    /// The schedule, of which all ranks' plans are made, for `check --schedule`
    Schedule,
}

/// A plan with the schedule that it is derived from.
pub struct Subject {
    /// The algorithm's name.
    pub algorithm: String,
    /// The schedule, with shape and rank map.
    pub schedule: Schedule,
    /// The plan.
    pub plan: Plan,
}

/// Runs the subcommand.
pub fn run(mut args: Args) -> Result<Outcome, CliError> {
    args.place.torus = args.numbers.shape(args.place.torus)?;
    let shape = &args.place.torus;
    host::check_plans(shape, false)?;
    let request = Request {
        shape: shape.clone(),
        map: args.place.rank_map()?,
        root: args::existing_rank(args.root, shape)?,
        ports: args.ports,
    };
    let rank = args::existing_rank(args.rank, shape)?;
    let (algorithm, schedule) = {
        let candidates = args.numbers.algorithms(args.collective, args.algorithm.as_deref())?;
        args::first_served(args.collective, candidates, &request)?
    };
    let algorithm = algorithm.name.into_owned();
    let expansion = schedule
        .expand()
        .map_err(|error| args::unserved(args.collective, &algorithm, error, shape))?;
    let plan = expansion.plan(rank);
    let subject = Subject { algorithm, schedule, plan };
    let text = match args.format {
        PlanFormat::Text => describe::text(&subject),
        PlanFormat::Json => describe::json(&subject),
        PlanFormat::Svg => svg::draw(&subject)?,
        PlanFormat::Schedule => subject.schedule.to_string(),
    };
    args.output.write(&text)?;
    Ok(Outcome::Well)
}
