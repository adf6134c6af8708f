//! `hopbine chaos`: random calls on a simulated wire with random faults, one run per seed.

mod judge;
mod memory;
mod program;
mod scenario;
mod shrink;

use std::ops::RangeInclusive;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hopbine::{SimulatedWire, Simulation, SimulationConfig, simulate};
use hopbine_meet::print_remark;
use hopbine_torus::Shape;
use serde_json::{Value, json};

use super::args::BackendArg;
use super::error::{CliError, Outcome};
use super::output::OutputArg;
use super::progress;
use judge::{Violations, judge};
use memory::RankResult;
use program::{AlgorithmCache, program};
use scenario::{FaultKind, Scenario, ScenarioLimits, StepForm};

/// Make random calls on a simulated wire, with random faults: each seed is a run
///
/// All ranks of a run are in one thread, and the seed decides everything: the torus, the calls (all collectives
/// and forms, on several communicators), which rank runs next, how long each message takes and by which protocol
/// it moves, and which fault hits one of the ranks. So a seed that fails always fails. The command then looks for
/// a smaller run that fails, and prints the command that repeats it, and what each rank did.
///
/// The command checks that every result is right, that every rank returns, that buffers change only during their
/// calls, that all other ranks name the rank that had the fault, and that nothing is left on the wire. The exit
/// status is 1 if anything is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine chaos --seeds 1..2000
  hopbine chaos --seeds 1..100000 --faults kill,stop
  hopbine chaos --seeds 17 --torus 3 --only 2,5 --most-elements 8 --story")]
pub struct Args {
    /// One seed, or a range of seeds
    #[arg(long, value_name = "N|FROM..TO", default_value = "1..1000")]
    seeds: Seeds,
    /// Faults that may hit a rank; `none` for no faults
    #[arg(
        long,
        value_name = "kill,stop,late,mismatch,memory|none",
        default_value = "kill,stop,late,mismatch,memory"
    )]
    faults: Faults,
    /// What carries the messages: the simulated wire itself, or uTofu's messages over the emulated device
    #[arg(long, value_name = "sim|sim-utofu", value_parser = wire, default_value = "sim")]
    backend: SimulatedWire,
    /// The torus of all runs; by default each seed chooses one, of 1 to 16 ranks
    #[arg(long, value_name = "SHAPE")]
    torus: Option<Shape>,
    /// Do only these steps of each run
    #[arg(long, value_name = "STEP,...", value_delimiter = ',')]
    only: Option<Vec<usize>>,
    /// Longest vector or block, in elements
    #[arg(long, value_name = "N")]
    most_elements: Option<usize>,
    /// Another seed for the wire alone
    #[arg(long, value_name = "N")]
    wire_seed: Option<u64>,
    /// Print all events of the runs
    #[arg(long)]
    story: bool,
    /// Plant a fault in the library, which is to be found
    #[cfg(planted)]
    #[arg(long, value_name = "NAME", value_parser = planted)]
    plant: Option<hopbine::planted::Planted>,
    /// Stop after N failed runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    failures: u32,
    /// Threads that share the runs; by default one for each core
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

#[cfg(planted)]
fn planted(text: &str) -> Result<hopbine::planted::Planted, String> {
    let all = hopbine::planted::Planted::ALL;
    let names = all.map(|fault| format!("{fault:?}"));
    let found = all.into_iter().find(|fault| format!("{fault:?}") == text);
    found.ok_or_else(|| format!("one of {}", names.join(", ")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Text,
    Json,
}

fn wire(text: &str) -> Result<SimulatedWire, &'static str> {
    let backend = <BackendArg as clap::ValueEnum>::from_str(text, false).ok();
    backend.and_then(BackendArg::simulated).ok_or("valid are: sim, sim-utofu")
}

#[derive(Clone, Debug)]
struct Seeds(RangeInclusive<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.parse::<u64>().ok();
        match (number(from), number(to)) {
            (Some(from), Some(to)) if from <= to && to < 1 << 48 => Ok(Seeds(from..=to)),
            _ => {
                Err("it must be a number below 2^48, or an increasing range such as 1..1000"
                    .to_owned())
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Faults(Vec<FaultKind>);

impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        use clap::ValueEnum;
        if text == "none" {
            return Ok(Faults(Vec::new()));
        }
        text.split(',')
            .map(|name| FaultKind::from_str(name, false))
            .collect::<Result<_, _>>()
            .map(Faults)
    }
}

/// A failed seed.
struct Failed {
    seed: u64,
    wrong: Violations,
}

/// Totals over all runs.
#[derive(Default)]
struct Totals {
    runs: AtomicU64,
    calls: AtomicU64,
    steps: AtomicU64,
    faults: AtomicU64,
    /// Combination of the hashes of all traces, independent of their order.
    trace: AtomicU64,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    #[cfg(planted)]
    if let Some(fault) = args.plant {
        hopbine::planted::plant(fault);
    }
    let limits = ScenarioLimits {
        shape: args.torus.clone(),
        only: args.only.clone(),
        most_elements: args.most_elements,
        wire_seed: args.wire_seed,
        faults: args.faults.0.clone(),
        wire: args.backend,
    };
    let seeds = args.seeds.0.clone();
    let bar = progress::bar_or_lines(seeds.end() - seeds.start() + 1, "chaos");
    let (next, totals) = (AtomicU64::new(*seeds.start()), Totals::default());
    let failed = Mutex::new(Vec::<Failed>::new());
    let n_threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let began = Instant::now();
    let in_progress = RunsInProgress::default();
    let work = || loop {
        // Relaxed: a counter.
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed > *seeds.end() || lock(&failed).len() >= args.failures as usize {
            return Ok(());
        }
        let scenario = Scenario::draw(seed, &limits);
        let under_way = in_progress.begin(seed);
        let (run, wrong) = run_scenario(&scenario, args.story);
        drop(under_way);
        totals.add(&scenario, &run);
        if args.story
            && let Ok(run) = &run
        {
            let printed = bar.aside(|| print(&story(&scenario, run)));
            // Relaxed: as above. No thread begins another run.
            printed.inspect_err(|_| next.store(*seeds.end() + 1, Ordering::Relaxed))?;
        }
        bar.advance(1);
        if !wrong.is_empty() {
            lock(&failed).push(Failed { seed, wrong });
        }
    };
    let printed: Result<(), CliError> = std::thread::scope(|threads| {
        let working: Vec<_> =
            (1..args.threads.unwrap_or(n_threads)).map(|_| threads.spawn(work)).collect();
        threads.spawn(|| in_progress.watch());
        // Also after a panic, here or in one of the threads.
        let _over = Over(&in_progress.is_over);
        let own = work();
        let others =
            working.into_iter().map(|thread| thread.join().unwrap_or_else(|p| resume_unwind(p)));
        others.fold(own, Result::and)
    });
    drop(bar);
    printed?;
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let reported = if args.format == Form::Text { &failed[..] } else { &[] };
    for (at, Failed { seed, wrong }) in reported.iter().enumerate() {
        print(&format!("seed {seed} is wrong:\n{}", listed(wrong)))?;
        if at == 0 && !args.story {
            print(&shrink::shrink(*seed, &limits))?;
        }
    }
    print(&totals.report(&args, &failed, began.elapsed()))?;
    Ok(if failed.is_empty() { Outcome::Well } else { Outcome::Wrong })
}

/// Writes to standard output.
fn print(text: &str) -> Result<(), CliError> {
    OutputArg::default().write(text)
}

/// A line for each fault.
fn listed(wrong: &Violations) -> String {
    wrong.iter().map(|line| format!("  {line}\n")).collect()
}

fn lock(failed: &Mutex<Vec<Failed>>) -> MutexGuard<'_, Vec<Failed>> {
    failed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs in progress, with their start times.
#[derive(Default)]
struct RunsInProgress {
    seeds: Mutex<Vec<(u64, Instant)>>,
    is_over: AtomicBool,
}

/// A run in progress. If it panics, its seed is printed.
struct UnderWay<'a>(&'a RunsInProgress, u64);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let UnderWay(in_progress, seed) = *self;
        in_progress.list().retain(|(of, _)| *of != seed);
        if std::thread::panicking() {
            print_remark(format_args!("seed {seed} is wrong: it panics"));
        }
    }
}

/// Sets the flag when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Timeout of a run, in real time: a run that loops without advancing the wire's clock never reaches its own timeout.
const LONGEST_RUN: Duration = Duration::from_secs(120);

impl RunsInProgress {
    fn list(&self) -> MutexGuard<'_, Vec<(u64, Instant)>> {
        self.seeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, seed: u64) -> UnderWay<'_> {
        self.list().push((seed, Instant::now()));
        UnderWay(self, seed)
    }

    /// Ends the process if a run exceeds [`LONGEST_RUN`].
    fn watch(&self) {
        // Relaxed: a late observation does no harm.
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
            let stuck =
                self.list().iter().find(|(_, since)| since.elapsed() > LONGEST_RUN).copied();
            if let Some((seed, _)) = stuck {
                let why = "it does not end, and no rank yields to others";
                // The exit status tells it too.
                let _ = print(&format!("seed {seed} is wrong:\n  {why}\n"));
                std::process::exit(1);
            }
        }
    }
}

type Run = Result<Simulation<RankResult>, hopbine::Error>;

/// Runs a scenario and checks it.
fn run_scenario(scenario: &Scenario, keeps_story: bool) -> (Run, Violations) {
    let mut config = SimulationConfig::new(scenario.shape.clone(), scenario.wire_seed);
    config.wire = scenario.wire;
    config.ports = Some(scenario.ports);
    config.timeout = scenario.timeout;
    config.unexpected_bytes = scenario.unexpected_bytes;
    config.on_timeout = scenario.on_timeout;
    config.keeps_story = keeps_story;
    let algorithms = AlgorithmCache::default();
    let run = simulate(&config, |comm, rank| program(scenario, &algorithms, comm, rank));
    let wrong = judge(scenario, &run);
    (run, wrong)
}

/// What each rank did in a run.
fn story(scenario: &Scenario, run: &Simulation<RankResult>) -> String {
    let entries: String = run.story.iter().map(|entry| format!("{entry}\n")).collect();
    let Simulation { trace, n_steps, elapsed, .. } = run;
    format!("{scenario}{entries}trace {trace:016x}, {n_steps} steps, {elapsed:?} simulated\n")
}

impl Totals {
    fn add(&self, scenario: &Scenario, run: &Run) {
        let calls = scenario.steps.iter().map(|(_, step)| {
            let times = if let StepForm::Persistent(n) = step.form { n as usize } else { 1 };
            times * step.calls.len()
        });
        // Relaxed: counters, read when all threads have ended.
        let add = |sum: &AtomicU64, n: u64| _ = sum.fetch_add(n, Ordering::Relaxed);
        add(&self.runs, 1);
        add(&self.calls, calls.sum::<usize>() as u64);
        add(&self.faults, u64::from(scenario.fault.is_some()));
        if let Ok(run) = run {
            add(&self.steps, run.n_steps);
            self.trace
                .fetch_xor(run.trace.rotate_left(scenario.seed as u32 % 64), Ordering::Relaxed);
        }
    }

    fn report(&self, args: &Args, failed: &[Failed], took: Duration) -> String {
        let get = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        let [runs, calls, steps, faults] =
            [&self.runs, &self.calls, &self.steps, &self.faults].map(get);
        let trace = format!("{:016x}", get(&self.trace));
        if args.format == Form::Json {
            let wrong = failed.iter().map(|one| json!({ "seed": one.seed, "wrong": one.wrong }));
            let value: Value = json!({
                "runs": runs, "collectives": calls, "steps": steps, "faults": faults,
                "wrong": wrong.collect::<Vec<_>>(), "trace": trace, "seconds": took.as_secs_f64(),
            });
            return format!("{value}\n");
        }
        format!(
            "{runs} runs, {calls} collectives, {faults} faults, {steps} steps of the wire in {:.1} s: {}; \
             trace {trace}\n",
            took.as_secs_f64(),
            match failed.len() {
                0 => "all well".to_owned(),
                1 => "1 run WRONG".to_owned(),
                n => format!("{n} runs WRONG"),
            },
        )
    }
}
