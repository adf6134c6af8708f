//! `hopbine env`: the environment variables, with their present values.

use std::fmt::Write;

use hopbine_meet::variables::{ALL, Reader, Variable, from_environment};

use super::cells::{Cell, Column};
use super::error::{CliError, Outcome};
use super::output::OutputArg;
use super::report::{self, Report, RowsArg};

/// List the environment variables that hopbine reads
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine env
  hopbine env HOPBINE_TORUS HOPBINE_RANK_MAP
  hopbine env --format json")]
pub struct Args {
    /// Only these variables
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Aligned columns
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// One object with a list `rows`
    Json,
    /// The reference page docs/environment.md
    Markdown,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let unknown =
        args.names.iter().find(|name| ALL.iter().all(|known| known.name != name.as_str()));
    if let Some(name) = unknown {
        return Err(CliError::Usage(format!(
            "hopbine reads no variable {name}; `hopbine env` lists those that it reads"
        )));
    }
    let is_wanted = |variable: &Variable| {
        args.names.is_empty() || args.names.iter().any(|name| name == variable.name)
    };
    let variables: Vec<&Variable> = ALL.iter().copied().filter(|one| is_wanted(one)).collect();
    let format = match args.format {
        Format::Table => report::Format::Table,
        Format::Csv => report::Format::Csv,
        Format::Json => report::Format::Json,
        Format::Markdown => {
            args.output.write(&page(&variables))?;
            return Ok(Outcome::Well);
        }
    };
    table(&variables).write(&RowsArg { format, output: args.output })?;
    Ok(Outcome::Well)
}

fn table(variables: &[&Variable]) -> Report {
    let columns = vec![
        Column::text("name", "variable"),
        Column::text("set", "set to").wraps(),
        Column::text("values", "values").wraps(),
        Column::text("default", "default").wraps(),
        Column::text("reader", "read by").wraps().yields(1),
        Column::text("example", "example").yields(2),
        Column::text("meaning", "meaning").wraps(),
    ];
    let rows = variables.iter().map(|variable| {
        vec![
            Cell::text(variable.name),
            variable.get(&from_environment).map_or_else(Cell::none, Cell::text),
            Cell::text(variable.values.to_string()),
            Cell::text(variable.default),
            Cell::text(variable.reader.to_string()),
            Cell::text(variable.example),
            Cell::text(variable.meaning),
        ]
    });
    let heading = format!("{} environment variables", variables.len());
    Report { heading, columns, rows: rows.collect(), ..Report::default() }
}

/// The reference page of the documentation.
fn page(variables: &[&Variable]) -> String {
    let mut page = "\
# Environment variables

This page is written by `hopbine env --format markdown`, from the table that the library reads its variables by.
`hopbine env` shows the same, with the values that are set. An empty variable counts as unset.
"
    .to_owned();
    for reader in Reader::ALL {
        let rows = variables.iter().filter(|variable| variable.reader == reader);
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            continue;
        }
        // Writing to a string succeeds.
        _ = write!(
            page,
            "\n## Read by {reader}\n\n| variable | values | default | meaning | example |\n\
             | --- | --- | --- | --- | --- |\n"
        );
        for Variable { name, values, default, meaning, example, .. } in rows {
            _ = writeln!(page, "| `{name}` | {values} | {default} | {meaning} | `{example}` |");
        }
    }
    page
}
