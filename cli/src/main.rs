//! The `hopbine` command: list, plan, check and run collectives from a shell.
//!
//! The command parses arguments, calls the other crates and shows their results. It contains no algorithm and no
//! engine logic. Results go to standard output (or `-o FILE`), remarks and progress to standard error.
//!
//! Exit status: 0 for success, 1 if a check failed or the output could not be written, 2 for an invalid request;
//! `launch` returns the status of its program.

// They panic if the stream cannot be written.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod bench;
mod calibrate;
mod cells;
mod chaos;
mod check;
mod counts;
mod curves;
mod doctor;
mod env;
mod error;
mod explain;
mod generate;
mod host;
mod info;
mod installed;
mod launch;
mod list;
mod measured;
mod numbers;
mod output;
mod picture;
mod plan;
mod progress;
mod report;
mod rows;
mod run;
mod search;
mod selection;
mod simulate;
mod table;
mod trace;
mod traffic;
mod tune;
mod validate;
mod volumes;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::{CliError, Outcome};

/// Collectives along the links of a torus.
#[derive(Debug, Parser)]
#[command(name = "hopbine", version = hopbine::VERSION, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  hopbine list allreduce --torus 4x6x4
  hopbine plan allreduce --torus 4x4x4 --rank 21 --format svg -o plan.svg
  hopbine check allreduce --torus 16x16x16 --algorithm bine
  hopbine traffic allreduce --torus 16x24x16 --algorithm mixed --tofu
  hopbine simulate allreduce --torus 24x24x24 --bytes 32..512MiB
  hopbine search allreduce --torus 24x24x24 --bytes 1MiB -o found.txt --format schedule
  hopbine run allreduce --torus 4x4x4 --bytes 1MiB
  hopbine launch -n 8 --torus 2x2x2 ./program

Shapes are written 4x6x4; an `m` behind a size (4x6x4m) is a dimension that does not wrap.
`hopbine env` lists the environment variables.";

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Plan(plan::Args),
    Check(check::Args),
    Traffic(traffic::Args),
    Explain(explain::Args),
    Search(search::Args),
    Simulate(simulate::Args),
    Machine(simulate::machine::Args),
    Calibrate(calibrate::Args),
    Validate(validate::Args),
    Tune(tune::Args),
    Run(run::Args),
    Trace(trace::Args),
    Bench(bench::Args),
    #[command(hide = true)]
    BenchRank(bench::rank::Args),
    Chaos(chaos::Args),
    Launch(launch::Args),
    Info(info::Args),
    Doctor(doctor::Args),
    Env(env::Args),
    Generate(generate::Args),
}

/// Parses the command line, runs the subcommand and converts its outcome to an exit status.
fn main() -> ExitCode {
    launch::signals::keep_ended_children();
    #[cfg(feature = "mpi")]
    hopbine_mpi::provide();
    let outcome = match Cli::parse().command {
        Command::List(args) => list::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Check(args) => check::run(args),
        Command::Traffic(args) => traffic::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Search(args) => search::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Machine(args) => simulate::machine::run(args),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Validate(args) => validate::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Run(args) => run::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Bench(args) => bench::run(args),
        Command::BenchRank(args) => bench::rank::run(args),
        Command::Chaos(args) => chaos::run(args),
        Command::Launch(args) => launch::run(args),
        Command::Info(args) => info::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Env(args) => env::run(args),
        Command::Generate(args) => generate::run(args),
    };
    match outcome {
        Ok(Outcome::Well) => ExitCode::SUCCESS,
        Ok(Outcome::Wrong) => ExitCode::from(1),
        Ok(Outcome::Status(status)) => ExitCode::from(status),
        // The reader of the output has closed it, as in `| head`.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            hopbine_meet::print_remark(format_args!("error: {error}"));
            ExitCode::from(error.exit_status())
        }
    }
}
