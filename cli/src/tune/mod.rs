//! `hopbine tune`: decision tables from the network model.

mod budget;
mod case;
mod compare;
mod cover;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ArgAction;
use hopbine::Tuning;
use hopbine_torus::choose::TableError;
use hopbine_torus::collectives::Payload;
use hopbine_torus::plan::{Flow, max_ports};
use hopbine_torus::sim::{Machine, Network};
use hopbine_torus::sizes::SizeRange;
use hopbine_torus::{Algorithm, Collective, Rank, RankMap, Request, Shape, registry};

use super::error::{CliError, Outcome};
use super::output::OutputArg;
use super::progress::{self, Bar};
use super::simulate::{file, network};
use super::{args, host};
use budget::Budget;
pub use case::Case;
use case::{Cases, SEGMENTS};
use compare::Comparison;
use cover::{Run, cover};

/// Write a decision table from the network model's predictions
///
/// For each shape, collective and number of ports the predictions of all algorithms that serve are compared, size by
/// size. Nothing is run, and every figure is a prediction. HOPBINE_TUNING=FILE takes the table.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine tune -o tofu-d.toml
  hopbine tune allreduce bcast --machine my-machine.toml --torus 8x8x8,16x16x16 -o mine.toml
  hopbine tune --torus 24x24x24 --bytes 8..64MiB:x8 --ports 6 --budget 10min

Shapes that are not tuned for go by the nearest that is. Sizes: bytes of a rank's vector, or of all its
blocks.")]
pub struct Args {
    /// Only these collectives
    collective: Vec<Collective>,
    /// A machine by name, with changed values such as tofu-d,network.hop=50 if wanted, or a file as from
    /// `hopbine machine NAME`
    #[arg(long, value_name = "NAME|FILE", default_value = "tofu-d")]
    machine: String,
    /// Shapes to tune for
    #[arg(
        long,
        value_name = "SHAPE",
        value_delimiter = ',',
        default_value = "8x8x8,64x64,32x256,24x24x24,5x7x11,48x69x48,8x8x8+4"
    )]
    torus: Vec<Shape>,
    /// Sizes to predict; between two of them the choice changes half-way
    #[arg(long, value_name = "BYTES|RANGE", default_value = "8..512MiB:x4")]
    bytes: SizeRange,
    /// Numbers of ports that calls have; more than a shape has directions are left out
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,6")]
    ports: Vec<u32>,
    /// How long it may take, such as 90s or 10min: what is not done by then is left out
    #[arg(long, value_name = "TIME")]
    budget: Option<Budget>,
    /// The table's name; without it that of the machine
    #[arg(long)]
    name: Option<String>,
    /// The table to compare with; without it the one that is built in for networks
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Do not say on standard error how much faster the predictions are
    #[arg(long, action = ArgAction::SetTrue)]
    quiet: bool,
    #[command(flatten)]
    output: OutputArg,
}

/// What a table says for a collective on a shape.
struct Tuned {
    collective: Collective,
    shape: Shape,
    /// By number of ports that calls have, ascending.
    by_ports: Vec<(u32, Vec<Run>)>,
}

/// Messages that a rank sends in a call at most: each peer costs an endpoint 6 to 40 KiB, which the model does not see.
const MOST_SENDS: usize = 1024;

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let machine = file::machine(&args.machine)?;
    let before = match &args.against {
        None => Tuning::built_in(hopbine::Wire::Network).clone(),
        Some(path) => read_table(path)?,
    };
    if args.ports.is_empty() || args.ports.contains(&0) {
        return Err(CliError::Usage("--ports: calls have at least 1 port".to_owned()));
    }
    for shape in &args.torus {
        host::check_plans(shape, true)?;
    }
    let collectives = match &args.collective[..] {
        [] => Collective::ALL.to_vec(),
        some => some.to_vec(),
    };
    let bar = progress::bar(0, "tuning");
    let start = Instant::now();
    let (mut tuned, mut left_out) = (Vec::new(), Vec::new());
    let mut compared: BTreeMap<Collective, Comparison> = BTreeMap::new();
    for shape in &args.torus {
        let network = match network(&machine, shape) {
            Ok(network) => network,
            Err(error) => {
                left_out.push(format!("{shape}: {error}"));
                continue;
            }
        };
        for &collective in &collectives {
            if args.budget.is_some_and(|budget| budget.is_over(start)) {
                left_out.push(format!("{collective} on {shape}: --budget is over"));
                continue;
            }
            bar.say(&format!("{collective} on {shape}"));
            let place = (&machine, &network);
            let sizes = sizes(&args, collective, shape);
            let found = tune(&args, place, (collective, shape), &sizes, &bar)?;
            compared.entry(collective).or_default().add(place, &found, &before, &sizes)?;
            tuned.push(found.0);
        }
    }
    drop(bar);
    if tuned.is_empty() {
        return Err(CliError::Usage(format!("nothing was tuned; {}", left_out.join("; "))));
    }
    let name = args.name.clone().unwrap_or_else(|| machine.name.clone());
    let text = text::table(&name, &args, &machine, &before, (&tuned, &left_out), &compared);
    // What is written here is read as a user's table is.
    text.parse::<Tuning>().map_err(|error| {
        CliError::Usage(format!("the table that was made is none ({error}); please report it"))
    })?;
    args.output.write(&text)?;
    if !args.quiet {
        eprint!("{}", compare::summary(before.table().name(), &compared));
        for what in &left_out {
            eprintln!("Not tuned: {what}.");
        }
    }
    Ok(Outcome::Well)
}

/// The decision table in a file.
///
/// # Errors
/// [`CliError::Read`], or [`CliError::Text`] with the line of what is wrong.
pub fn read_table(path: &Path) -> Result<Tuning, CliError> {
    args::read(path)?.parse().map_err(|error: TableError| CliError::Text {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

/// The sizes of a collective on a shape, bytes: at least one in each block.
fn sizes(args: &Args, collective: Collective, shape: &Shape) -> Vec<u64> {
    if collective.payload() == Payload::Token {
        return vec![0];
    }
    let least = u64::from(collective.n_blocks(shape.n_ranks()));
    let sizes: Vec<u64> = args.bytes.sizes().filter(|&bytes| bytes >= least).collect();
    if sizes.is_empty() { vec![least] } else { sizes }
}

/// What is best for a collective on a shape, by ports and sizes; with what has been predicted for it.
fn tune<'a>(
    args: &Args,
    (machine, network): (&'a Machine, &Network),
    (collective, shape): (Collective, &Shape),
    sizes: &[u64],
    bar: &Bar,
) -> Result<(Tuned, Cases<'a>), CliError> {
    let most = max_ports(shape);
    let mut counts: Vec<u32> = args.ports.iter().copied().filter(|&ports| ports <= most).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.is_empty() {
        counts.push(most);
    }
    let is_small = shape.n_ranks() as usize <= MOST_SENDS;
    let serves = |algorithm: &Algorithm| {
        algorithm.serves(shape).is_ok() && (is_small || !sends_to_all(algorithm, shape))
    };
    let algorithms: Vec<Algorithm> =
        registry::algorithms(collective).into_iter().filter(serves).collect();
    let used: Vec<u32> = if collective == Collective::Barrier { vec![1] } else { counts.clone() };
    let cases = Cases::new((machine, network), shape, &algorithms, &used, bar)?;
    let times = cases.times(sizes, bar);
    let by_ports = counts.iter().map(|&ports| (ports, cover(&cases, &times, sizes, ports)));
    let tuned = Tuned { collective, shape: shape.clone(), by_ports: by_ports.collect() };
    Ok((tuned, cases))
}

/// Whether some rank sends more than [`MOST_SENDS`] messages: the root, or one like all others.
fn sends_to_all(algorithm: &Algorithm, shape: &Shape) -> bool {
    if algorithm.is_straight() {
        return true;
    }
    let (map, ports) = (RankMap::default(), Some(1));
    let request = Request { shape: shape.clone(), map, root: Rank(0), ports };
    let flow = algorithm.schedule(&request).and_then(|schedule| schedule.expand());
    flow.is_ok_and(|flow| {
        let steps = flow.plan(Rank(0)).lanes.into_iter().flat_map(|lane| lane.steps);
        steps.map(|step| step.sends.len()).sum::<usize>() > MOST_SENDS
    })
}

/// Bytes of what is longest among the messages of a run, if any is cut.
fn segment(run: &Run) -> u64 {
    SEGMENTS[run.segment]
}
