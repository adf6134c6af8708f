//! Rows of results, written as a table, as CSV or as JSON with the same data.

use clap::ValueEnum;
use serde_json::{Map, Value};

use super::cells::{Cell, Column};
use super::error::CliError;
use super::output::{OutputArg, OutputSink};
use super::table::{self, TableLayout};

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns with units.
    Table,
    /// Comma-separated values with a header line; plain numbers in base units.
    Csv,
    /// One object: what was asked, and a list `rows`.
    Json,
}

/// How rows are written, and where.
#[derive(Clone, Debug, clap::Args)]
pub struct RowsArg {
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    #[command(flatten)]
    pub output: OutputArg,
}

/// A table of results with its heading and notes.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The parameters of the request, for JSON.
    pub about: Vec<(&'static str, Value)>,
    /// The heading above a table.
    pub heading: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Notes below the table; `notes` in JSON.
    pub notes: Vec<String>,
}

impl Report {
    /// Writes the report.
    ///
    /// # Errors
    /// As [`Stream::start`].
    pub fn write(self, out: &RowsArg) -> Result<(), CliError> {
        let head = ReportHead { about: self.about, heading: self.heading, columns: self.columns };
        let mut stream = Stream::start(out, head, &self.rows)?;
        for row in &self.rows {
            stream.row(row)?;
        }
        stream.finish(Vec::new(), self.notes)
    }
}

/// The parts of a report that precede the rows.
#[derive(Clone, Debug)]
pub struct ReportHead {
    /// As in [`Report`].
    pub about: Vec<(&'static str, Value)>,
    /// As in [`Report`].
    pub heading: String,
    /// As in [`Report`].
    pub columns: Vec<Column>,
}

/// A report whose rows are written one by one.
pub struct Stream {
    sink: OutputSink,
    format: Format,
    columns: Vec<Column>,
    layout: TableLayout,
    width: Option<usize>,
    n_rows: usize,
}

impl Stream {
    /// Writes the parts before the rows. A table is laid out for the `known` rows and the expected widths.
    ///
    /// # Errors
    /// [`CliError::Write`] or [`CliError::Output`].
    pub fn start(out: &RowsArg, head: ReportHead, known: &[Vec<Cell>]) -> Result<Self, CliError> {
        let RowsArg { format, ref output } = *out;
        let width = output.width();
        let layout = TableLayout::new(&head.columns, known, width);
        let mut sink = output.open()?;
        let text = match format {
            Format::Table => wrapped(&head.heading, width) + &layout.header(&head.columns),
            Format::Csv => csv_line(head.columns.iter().map(|column| column.key.to_owned())),
            Format::Json => {
                let pairs = head.about.iter().map(|(key, value)| json_pair(key, value));
                format!("{{\n{}  \"rows\": [", pairs.collect::<String>())
            }
        };
        sink.write(&text)?;
        Ok(Stream { sink, format, columns: head.columns, layout, width, n_rows: 0 })
    }

    /// Writes a row with one cell per column.
    ///
    /// # Errors
    /// As [`Stream::start`].
    pub fn row(&mut self, cells: &[Cell]) -> Result<(), CliError> {
        let text = match self.format {
            Format::Table => self.layout.row(&self.columns, cells),
            Format::Csv => csv_line(cells.iter().map(|cell| match &cell.value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })),
            Format::Json => {
                let pairs = self.columns.iter().zip(cells);
                let row: Map<String, Value> =
                    pairs.map(|(c, cell)| (c.key.to_owned(), cell.value.clone())).collect();
                let comma = if self.n_rows == 0 { "" } else { "," };
                format!("{comma}\n    {}", indented(&Value::Object(row), 4))
            }
        };
        self.n_rows += 1;
        self.sink.write(&text)
    }

    /// Writes a row that may have taken long: a command that does not come to its end leaves it ([`OutputSink::keep`]).
    ///
    /// # Errors
    /// As [`Stream::start`].
    pub fn lasting_row(&mut self, cells: &[Cell]) -> Result<(), CliError> {
        self.row(cells)?;
        self.sink.keep()
    }

    /// Writes the parts after the rows: `found` in JSON, `notes` also in tables. Completes the output file.
    ///
    /// # Errors
    /// As [`Stream::start`].
    pub fn finish(
        mut self,
        found: Vec<(&'static str, Value)>,
        notes: Vec<String>,
    ) -> Result<(), CliError> {
        let text = match self.format {
            Format::Table => {
                let left_out = &self.layout.left_out;
                let left_out = (!left_out.is_empty()).then(|| {
                    format!("Columns left out to fit the width: {}.", left_out.join(", "))
                });
                notes.iter().chain(&left_out).map(|note| wrapped(note, self.width)).collect()
            }
            Format::Csv => String::new(),
            Format::Json => {
                let end = if self.n_rows == 0 { "]" } else { "\n  ]" };
                let found = found.iter().map(|(key, value)| json_pair(key, value));
                let notes = indented(&Value::from(notes), 2);
                format!("{end},\n{}  \"notes\": {notes}\n}}\n", found.collect::<String>())
            }
        };
        self.sink.write(&text)?;
        self.sink.finish()
    }
}

/// Breaks a text into lines of at most `width` characters.
fn wrapped(text: &str, width: Option<usize>) -> String {
    match width {
        Some(width) => table::wrap(text, width).join("\n") + "\n",
        None => format!("{text}\n"),
    }
}

fn csv_line(fields: impl Iterator<Item = String>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(fields)
        .expect("rows have one cell per column, and memory takes all that is written");
    let bytes = writer.into_inner().expect("memory takes all that is written");
    String::from_utf8(bytes).expect("texts are UTF-8")
}

/// One member of the outermost JSON object, with a comma and a newline.
fn json_pair(key: &str, value: &Value) -> String {
    format!("  {}: {},\n", Value::from(key), indented(value, 2))
}

/// A JSON value whose second and later lines are indented.
fn indented(value: &Value, by: usize) -> String {
    format!("{value:#}").replace('\n', &format!("\n{}", " ".repeat(by)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            about: vec![("torus", Value::from("4x4"))],
            heading: "two rows".to_owned(),
            columns: vec![
                Column::text("name", "name"),
                Column::number("bytes", "size"),
                Column::hidden("list"),
            ],
            rows: vec![
                vec![Cell::text("a, \"b\""), Cell::new(1024, "1 KiB"), Cell::none()],
                vec![Cell::text("c"), Cell::count(7u32), Cell::new(vec![1, 2], "")],
            ],
            notes: vec!["a remark".to_owned()],
        }
    }

    fn rendered(format: Format) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        report().write(&RowsArg { format, output: OutputArg::to(&path) }).unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn the_three_formats_hold_the_same_rows() {
        let text = rendered(Format::Json);
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!(json["torus"], "4x4");
        assert_eq!(json["rows"][0]["bytes"], 1024);
        assert_eq!(json["rows"][1]["list"], serde_json::json!([1, 2]));
        assert_eq!(json["notes"][0], "a remark");
        let csv = rendered(Format::Csv);
        assert_eq!(csv, "name,bytes,list\n\"a, \"\"b\"\"\",1024,\nc,7,\"[1,2]\"\n");
        let table = rendered(Format::Table);
        assert!(table.starts_with("two rows\n") && table.ends_with("a remark\n"), "{table}");
        assert!(table.contains("1 KiB") && !table.contains('\u{1b}'), "{table}");
    }

    #[test]
    fn no_rows_are_valid_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        let out = RowsArg { format: Format::Json, output: OutputArg::to(&path) };
        Report { rows: vec![], ..report() }.write(&out).unwrap();
        let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(json["rows"], serde_json::json!([]));
    }
}
