//! `hopbine simulate`: predicts the times of collectives on a machine by the network model.

mod conditions;
mod families;
pub mod file;
mod gain;
mod goodput;
mod heatmap;
mod link_times;
mod links;
pub mod machine;
mod messages;
mod one;
mod plot;
mod predict;
mod timeline;

use std::path::PathBuf;

use clap::ValueEnum;
use hopbine_torus::Collective;
use hopbine_torus::sim::{CallForm, Machine};
use hopbine_torus::sizes::{self, SizeRange};

use crate::args::PortsArg;
use crate::error::{CliError, Outcome};
use crate::output::OutputArg;
use crate::progress;
use crate::report::{Report, RowsArg};
use crate::selection::{Schedules, Selection};
use crate::trace::event;
use conditions::{BlocksArg, FaultArg};
use one::OneCall;
use predict::Predicted;
pub use predict::network;

/// Predict how long collectives take on a machine, by the network model
///
/// The command plays plans on a model of the network. Nothing is run, and every figure is a prediction.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine simulate allreduce --torus 64x64 --machine ideal-torus --bytes 32..2GiB
  hopbine simulate allreduce --torus 24x24x24 --bytes 1MiB --explain-time
  hopbine simulate allreduce --torus 64x64 --bytes 32..512MiB --plot goodput.svg
  hopbine simulate allreduce --torus 8x8,16x16,32x32 --show heatmap --plot best.svg
  hopbine simulate bcast --torus 4x4 --algorithm bine-tree --bytes 1MiB --show timeline --plot t.svg
  hopbine simulate bcast --torus 4x4 --algorithm bine-tree --bytes 1MiB --show timeline --trace t.json
  hopbine simulate alltoall --torus 4x4x4 --algorithm pairwise --bytes 1MiB --exact
  hopbine simulate allreduce --torus 4x4x4 --bytes 1MiB --fault tni:3.1=0
  hopbine simulate allgather --torus 4 --bytes 1MiB --blocks 1,1,1,5

Sizes: bytes of a rank's vector, or of all its blocks. `hopbine machine` lists the machines.
A heatmap takes several shapes, separated by commas; timelines, links and messages show one call.")]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Number of ports: a number, `max` (two per dimension), or `all` numbers from 1 to that
    #[arg(long, value_name = "N|max|all", default_value = "max")]
    ports: PortsArg,
    /// The root of a rooted collective
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// A size, or a range of sizes such as 32..2GiB or 1KiB..1GiB:x4
    #[arg(long, value_name = "BYTES|RANGE", default_value = "32..512MiB:x4")]
    bytes: SizeRange,
    /// A machine: a name, also with changed values (tofu-d,network.hop=50), or a file as `hopbine machine NAME`
    /// writes it
    #[arg(long, value_name = "NAME|FILE", default_value = "tofu-d")]
    machine: String,
    /// The software that performs the collectives
    #[arg(long, value_enum, default_value_t = ProfileArg::Hopbine)]
    profile: ProfileArg,
    /// With --profile hopbine: a first call, which makes plans, registers memory and connects to peers, or a
    /// repeated one
    #[arg(long, value_enum, default_value_t = CallArg::Repeated)]
    call: CallArg,
    /// Longest message, by default 1 MiB; with --profile paper longest segment of a reduction or a tree, by
    /// default whole messages
    #[arg(long, value_name = "BYTES", value_parser = sizes::parse_size)]
    segment: Option<u64>,
    /// With --profile paper: a bcast over a tree goes through temporary memory
    #[arg(long)]
    via_temporary: bool,
    /// Simulate every rank, without use of symmetry
    #[arg(long)]
    exact: bool,
    /// Slow a link, named as in --show links, or a node's network interface down to this part of its speed; 0 is
    /// dead. Every rank is simulated
    #[arg(long, value_name = "LINK=SPEED|tni:NODE.PORT=SPEED", value_parser = conditions::parse_fault)]
    fault: Vec<FaultArg>,
    /// Relative sizes of the blocks: a number for each rank; an alltoall also takes one for each pair. Every rank
    /// is simulated
    #[arg(long, value_name = "LIST|@FILE", value_parser = conditions::parse_blocks)]
    blocks: Option<BlocksArg>,
    /// Show what each row's time is spent on
    #[arg(long)]
    explain_time: bool,
    /// What to show
    #[arg(long, value_enum, default_value_t = Show::Goodput)]
    show: Show,
    /// Draw what is shown, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write a timeline of all ranks as Chrome trace JSON, for `hopbine trace` and Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    out: RowsArg,
}

/// Whose software, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileArg {
    /// hopbine
    Hopbine,
    /// The code that was measured for the Bine paper
    Paper,
    /// An MPI that sends messages one after the other
    Mpi,
}

/// Which call, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CallArg {
    /// It makes plans, registers memory and connects to peers
    First,
    /// It uses what an earlier call has kept
    Repeated,
}

impl CallArg {
    fn form(self) -> CallForm {
        match self {
            CallArg::First => CallForm::First,
            CallArg::Repeated => CallForm::Repeated,
        }
    }
}

/// What is shown, as rows and as a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Show {
    /// Time and goodput of each schedule, by size
    Goodput,
    /// How much faster each family of algorithms is than the best of the others, by size
    Gain,
    /// The best family and its gain, by size and shape
    Heatmap,
    /// What the ports of ranks do in one call, and when
    Timeline,
    /// What each link carries in one call
    Links,
    /// What each link carries in one call, and when
    LinkTimeline,
    /// All messages of one call, for other simulators; JSON has the links, too
    Messages,
}

impl Show {
    /// The value's name on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value().expect("all have names");
        value.get_name().to_owned()
    }
}

impl Args {
    /// The sizes of a collective in bytes.
    fn sizes(&self, collective: Collective) -> Vec<u64> {
        match collective {
            Collective::Barrier => vec![0],
            _ => self.bytes.sizes().collect(),
        }
    }

    /// Refuses contradictory arguments.
    fn check(&self) -> Result<(), CliError> {
        let refuse = |message: &str| Err(CliError::Usage(message.to_owned()));
        if self.segment == Some(0) {
            return refuse("--segment is 0: the longest message has at least 1 byte");
        }
        if self.explain_time && self.show != Show::Goodput {
            return refuse("--explain-time needs --show goodput");
        }
        if self.plot.is_some() && self.show == Show::Messages {
            return refuse("--show messages has no picture: leave out --plot, or show a timeline");
        }
        if self.trace.is_some() && self.show != Show::Timeline {
            return refuse("--trace needs --show timeline");
        }
        if self.selection.torus.len() > 1 && self.show != Show::Heatmap {
            let name = self.show.name();
            return refuse(&format!(
                "--show {name} takes one --torus; --show heatmap takes several"
            ));
        }
        if self.profile != ProfileArg::Hopbine && self.show == Show::Messages {
            return refuse("--show messages needs --profile hopbine, the default");
        }
        Ok(())
    }
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    args.check()?;
    args.out.output.check([&args.plot, &args.trace])?;
    let machine = file::machine(&args.machine)?;
    let ports = |shape: &_| args.ports.counts(shape).map(Some);
    let schedules = args.selection.schedules_of_all(args.root, ports)?;
    match args.show {
        Show::Goodput | Show::Gain | Show::Heatmap => of_sizes(&args, &machine, schedules)?,
        Show::Timeline | Show::Links | Show::LinkTimeline | Show::Messages => {
            of_one_call(&args, &machine, &schedules[0])?
        }
    }
    Ok(Outcome::Well)
}

/// The report on several schedules or sizes, then the picture.
fn of_sizes(args: &Args, machine: &Machine, all: Vec<Schedules>) -> Result<(), CliError> {
    let is_barrier = all.iter().any(|(collective, ..)| *collective == Collective::Barrier);
    if is_barrier && args.show != Show::Goodput {
        return Err(CliError::Usage(
            "a barrier has no sizes: --show goodput shows the time of each algorithm".to_owned(),
        ));
    }
    let n_schedules: usize = all.iter().map(|(_, _, schedules, _)| schedules.len()).sum();
    let bar = progress::bar(n_schedules as u64, "simulating");
    let predict = |schedules| predict::predict(args, machine, schedules, &bar);
    let all: Vec<Predicted> = all.into_iter().map(predict).collect::<Result<_, _>>()?;
    drop(bar);
    let first = &all[0];
    let plot = args.plot.as_deref();
    match args.show {
        Show::Gain => {
            let gains = gain::Gains::of(first)?;
            gains.report(first).write(&args.out)?;
            plot.map_or(Ok(()), |path| plot::gain::draw(first, &gains, path))
        }
        Show::Heatmap => {
            let map = heatmap::Heatmap::of(&all)?;
            map.report().write(&args.out)?;
            plot.map_or(Ok(()), |path| plot::heatmap::draw(&map, path))
        }
        _ => {
            goodput::report(first, args.explain_time).write(&args.out)?;
            plot.map_or(Ok(()), |path| plot::goodput::draw(first, path))
        }
    }
}

/// The report on one call, then the picture and the timeline.
fn of_one_call(args: &Args, machine: &Machine, schedules: &Schedules) -> Result<(), CliError> {
    let network = predict::network(machine, &schedules.1)?;
    let call = OneCall::new(args, machine, &network, schedules)?;
    let plot = args.plot.as_deref();
    let write = |mut report: Report| {
        report.notes.insert(0, "Predicted by the network model, not measured.".to_owned());
        report.notes.extend(predict::fold_note(&network));
        report.write(&args.out)
    };
    match args.show {
        Show::Timeline => {
            write(timeline::report(&call, machine))?;
            if let Some(path) = &args.trace {
                OutputArg::to(path).write(&event::predicted(&timeline::events(&call)))?;
            }
            plot.map_or(Ok(()), |path| plot::timeline::draw(&call, path))
        }
        Show::Links => {
            let loads = links::Loads::of(&call, &network);
            write(loads.report(&call, machine))?;
            plot.map_or(Ok(()), |path| plot::links::draw(&call, &loads, path))
        }
        Show::LinkTimeline => {
            let times = link_times::LinkTimes::of(&call, &network);
            write(times.report(&call, machine))?;
            plot.map_or(Ok(()), |path| plot::timeline::draw_links(&call, &times, path))
        }
        _ => write(messages::report(&call, machine, &network)),
    }
}
