//! `hopbine generate`: man pages, shell completions and the reference page, generated from clap's definition of the
//! command line.

use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;

use super::error::{CliError, Outcome};
use super::output::OutputArg;

/// Write man pages, completions for a shell, or the page of all options
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine generate man -o ~/.local/share/man/man1
  hopbine generate bash -o ~/.local/share/bash-completion/completions/hopbine")]
pub struct Args {
    /// What to write
    #[arg(value_enum)]
    what: What,
    /// The file to write instead of standard output; for man pages the directory, which must exist
    #[arg(short = 'o', long = "output", value_name = "PATH", required_if_eq("what", "man"))]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// hopbine.1, and a page for each command
    Man,
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
    /// The reference page docs/options.md
    Markdown,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let mut command = super::Cli::command();
    let output = || args.output.as_deref().map(OutputArg::to).unwrap_or_default();
    let shell = match args.what {
        What::Man => {
            let directory = args.output.expect("clap requires it");
            manual(command.disable_help_subcommand(true), &directory)?;
            return Ok(Outcome::Well);
        }
        What::Markdown => {
            output().write(&page(command))?;
            return Ok(Outcome::Well);
        }
        What::Bash => Shell::Bash,
        What::Zsh => Shell::Zsh,
        What::Fish => Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "hopbine", &mut text);
    output().write(&text)?;
    Ok(Outcome::Well)
}

/// Writes a page for the command and one for each subcommand.
fn manual(mut command: Command, directory: &Path) -> Result<(), CliError> {
    command.build();
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    for one in std::iter::once(&command).chain(shown) {
        let name = one.get_display_name().unwrap_or(one.get_name());
        let mut text = Vec::new();
        clap_mangen::Man::new(one.clone())
            .title(name)
            .render(&mut text)
            .expect("a vector takes everything");
        OutputArg::to(&directory.join(format!("{name}.1"))).write(&text)?;
    }
    Ok(())
}

/// An argument that at least this many subcommands share is described once, unless another argument has the same
/// name.
const COMMON: usize = 2;

/// The reference page: the arguments that subcommands share, then a section for each, with a table of its arguments.
fn page(mut command: Command) -> String {
    command.build();
    let commands: Vec<Section> = (command.get_subcommands())
        .filter(|one| one.get_name() != "help" && !one.is_hide_set())
        .map(Section::new)
        .collect();
    let is_frequent = |row: &ArgumentRow| {
        commands.iter().filter(|section| section.rows.contains(row)).count() >= COMMON
    };
    let mut common: Vec<&ArgumentRow> = Vec::new();
    for row in commands.iter().flat_map(|section| &section.rows) {
        if is_frequent(row) && !common.iter().any(|other| other.name == row.name) {
            common.push(row);
        }
    }
    let mut text = String::from(
        "# Commands and options\n\n\
         Written by `hopbine generate markdown` from the command's own help; do not edit. `hopbine COMMAND --help` shows the\n\
         same, with examples. [The command](guide/command.md) is the tour.\n\n\
         ## Options of several commands\n\n\
         Each command below names those that it takes.\n\n",
    );
    text += &table(&common);
    for section in &commands {
        let (shared, own): (Vec<&ArgumentRow>, _) =
            section.rows.iter().partition(|row| common.contains(row));
        text += &format!("\n## hopbine {}\n\n{}.\n\n", section.name, section.about);
        let usages: Vec<String> = section.usage.lines().map(|line| format!("`{line}`")).collect();
        text += &format!("Usage: {}\n", usages.join(", or "));
        if !shared.is_empty() {
            let names: Vec<&str> = (shared.iter())
                .map(|row| row.name.rsplit(", ").next().unwrap_or(&row.name))
                .collect();
            text += &format!("\nDescribed above: {}.\n", names.join(", "));
        }
        if !own.is_empty() {
            text += &format!("\n{}", table(&own));
        }
    }
    text
}

fn table(rows: &[&ArgumentRow]) -> String {
    let line = |row: &&ArgumentRow| {
        let cells = [&row.name, &row.meaning].map(|cell| cell.replace('|', "\\|"));
        format!("| {} | {} |\n", cells[0], cells[1])
    };
    let lines: String = rows.iter().map(line).collect();
    format!("| argument | meaning |\n| --- | --- |\n{lines}")
}

/// A subcommand's section of the page.
struct Section {
    name: String,
    about: String,
    usage: String,
    rows: Vec<ArgumentRow>,
}

impl Section {
    fn new(command: &Command) -> Self {
        let usage = command.clone().render_usage().to_string();
        Section {
            name: command.get_name().to_owned(),
            about: command.get_about().map(ToString::to_string).unwrap_or_default(),
            usage: usage.trim_start_matches("Usage: ").replace("\n       ", "\n"),
            rows: (command.get_arguments())
                .filter(|one| !one.is_hide_set() && one.get_id() != "help")
                .map(ArgumentRow::new)
                .collect(),
        }
    }
}

/// A line of a table: an argument as it is written on a command line, and its help with its values and its default.
#[derive(PartialEq, Eq)]
struct ArgumentRow {
    name: String,
    meaning: String,
}

impl ArgumentRow {
    fn new(argument: &Arg) -> Self {
        let takes_values = argument.get_action().takes_values();
        let values: Vec<&str> = (argument.get_value_names().unwrap_or_default().iter())
            .filter(|_| takes_values)
            .map(|value| value.as_str())
            .collect();
        let values = values.join(" ");
        let short = argument.get_short().map(|short| format!("`-{short}`"));
        let long =
            argument.get_long().map(|long| format!("`{}`", format!("--{long} {values}").trim()));
        let names: Vec<String> = short.into_iter().chain(long).collect();
        let name = if names.is_empty() { format!("`{values}`") } else { names.join(", ") };

        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let mut meaning = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let values: Vec<String> = (argument.get_possible_values().iter())
            .filter(|value| takes_values && !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !values.is_empty() {
            meaning += &format!("; one of {}", values.join(", "));
        }
        let defaults: Vec<_> = (argument.get_default_values().iter())
            .filter(|_| takes_values)
            .map(|value| value.to_string_lossy())
            .collect();
        if !defaults.is_empty() {
            meaning += &format!("; default `{}`", defaults.join(" "));
        }
        ArgumentRow { name, meaning }
    }
}
