//! `hopbine machine`: prints the parameters of a machine as a file that can be edited.

use hopbine_torus::sim::Machine;

use super::file;
use crate::error::{CliError, Outcome};
use crate::output::OutputArg;

/// Print the parameters of a machine of the network model
///
/// `simulate --machine FILE` reads what the command prints.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine machine
  hopbine machine tofu-d -o my-machine.toml
  hopbine machine tofu-d,network.hop=50,node.post=100")]
pub struct Args {
    /// The machine: a name, also with changed values, or a file. Without it, print the names of the built-in
    /// machines
    machine: Option<String>,
    #[command(flatten)]
    output: OutputArg,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let text = match &args.machine {
        Some(name) => {
            let machine = file::machine(name)?;
            file::show(&machine, file::built_in_source(&machine))
        }
        None => Machine::NAMES.map(|name| format!("{name}\n")).concat(),
    };
    args.output.write(&text)?;
    Ok(Outcome::Well)
}
