//! `hopbine trace`: merges measured, simulated and predicted timelines of ranks into one file and one picture.

pub mod event;
mod merged;
pub mod picture;
pub mod sources;
mod waits;

use std::path::PathBuf;

use hopbine_meet::print_remark;
use hopbine_torus::sizes;

use crate::error::{CliError, Outcome};
use crate::output::OutputArg;
use event::{File, TraceEvent};
use sources::{Together, TraceSource, together};

/// Merge timelines of ranks into one file, and draw them
///
/// If HOPBINE_TRACE names a file, each rank writes its timeline there when it ends; with HOPBINE_BACKEND=sim the
/// times are simulated. `hopbine simulate --show timeline --trace FILE` writes a predicted timeline. Measured,
/// simulated and predicted runs are aligned at the last call that they have in common. The result is Chrome trace
/// JSON, which Perfetto (ui.perfetto.dev) opens.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  HOPBINE_TRACE=real.json hopbine launch -n 4 ./program
  hopbine trace real.*.json -o all.json
  hopbine trace real.*.json --call allreduce --last 1 --svg allreduce.svg
  hopbine simulate allreduce --torus 4 --bytes 64KiB --algorithm mixed --show timeline --trace predicted.json
  hopbine trace real.*.json predicted.json --last 1 --svg both.svg -o both.json")]
pub struct Args {
    /// Files with the timeline of one rank or of several
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Keep only the time of calls with this name, such as allreduce or iallreduce
    #[arg(long, value_name = "NAME")]
    call: Option<String>,
    /// Keep only the time of the last N calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    last: Option<u64>,
    /// Keep only these ranks
    #[arg(long, value_name = "RANK", value_delimiter = ',')]
    ranks: Vec<u32>,
    /// Draw the timelines, as SVG; the JSON is then written only with --output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArg,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let files: Vec<File> =
        args.files.iter().map(|path| File::read(path)).collect::<Result<_, _>>()?;
    let Together { mut sources, notes } = together(files);
    let window = window(&args, &sources)?;
    for source in &mut sources {
        waits::complete(&mut source.events);
        merged::part(source, window, |rank| args.ranks.is_empty() || args.ranks.contains(&rank));
    }
    notes.iter().for_each(print_remark);
    if let Some(path) = &args.svg {
        let fewer = "give --ranks, or fewer files";
        picture::draw(title(&args, &sources), &sources, window, fewer, path)?;
    }
    if args.svg.is_none() || args.output.is_file() {
        args.output.write(&merged::json(&sources, &notes))?;
    }
    Ok(Outcome::Well)
}

/// The selected time interval in ns.
fn window(args: &Args, sources: &[TraceSource]) -> Result<[i64; 2], CliError> {
    if args.call.is_none() && args.last.is_none() {
        return Ok(picture::ALWAYS);
    }
    let mut window = [i64::MAX, i64::MIN];
    for source in sources {
        let calls: Vec<&TraceEvent> = source.calls().filter(|call| args.wants(call)).collect();
        let mut ranks: Vec<u32> = calls.iter().map(|call| call.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        for rank in ranks {
            let of_rank = calls.iter().rev().filter(|call| call.rank == rank);
            let last = of_rank.take(args.last.unwrap_or(u64::MAX) as usize);
            window =
                last.fold(window, |[from, to], call| [from.min(call.ns[0]), to.max(call.ns[1])]);
        }
    }
    if window[0] > window[1] {
        let name = args.call.as_deref().unwrap_or("any name");
        let there = names(sources.iter().flat_map(TraceSource::calls)).join(", ");
        return Err(CliError::Usage(format!(
            "the timelines have no call of {name}; they have {there}"
        )));
    }
    Ok(window)
}

impl Args {
    /// Whether the call's name is selected.
    fn wants(&self, call: &TraceEvent) -> bool {
        self.call.as_ref().is_none_or(|name| *name == call.name)
    }
}

/// The different names and sizes of calls.
fn names<'a>(calls: impl Iterator<Item = &'a TraceEvent>) -> Vec<String> {
    let mut names = Vec::new();
    for call in calls {
        let of = match call.number("bytes") {
            None | Some(0) => String::new(),
            Some(bytes) => format!(" of {}", sizes::show(bytes)),
        };
        let name = format!("{}{of}", call.name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Maximum number of calls that a title names.
const MOST_NAMED: usize = 4;

fn title(args: &Args, sources: &[TraceSource]) -> String {
    let calls = sources.iter().flat_map(TraceSource::calls).filter(|call| args.wants(call));
    let mut names = names(calls);
    if names.len() > MOST_NAMED {
        names.truncate(MOST_NAMED);
        names.push("...".to_owned());
    }
    let kinds: Vec<&str> = sources.iter().map(|source| source.clock.name()).collect();
    format!("{}: {}", names.join(", "), kinds.join(" above "))
}
