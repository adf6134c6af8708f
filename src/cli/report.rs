//! Rows of results, shown as a table for people, as CSV or as JSON: the same data each time.

use std::fmt;
use std::io::IsTerminal;

use clap::ValueEnum;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use serde_json::{Map, Value};

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

/// One value: what programs get and what people see.
#[derive(Clone, Debug)]
pub struct Cell {
    value: Value,
    shown: String,
}

impl Cell {
    /// A value that people see otherwise than programs.
    pub fn new(value: impl Into<Value>, shown: impl fmt::Display) -> Self {
        Cell { value: value.into(), shown: shown.to_string() }
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        let shown = text.into();
        Cell { value: Value::String(shown.clone()), shown }
    }

    /// A whole number.
    pub fn count(count: impl Into<u64>) -> Self {
        let count = count.into();
        Cell::new(count, count)
    }

    /// No value.
    pub fn none() -> Self {
        Cell { value: Value::Null, shown: "-".to_owned() }
    }
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    key: &'static str,
    title: &'static str,
    alignment: CellAlignment,
    in_table: bool,
}

impl Column {
    /// A column of texts; `key` in CSV and JSON, `title` in tables.
    pub const fn text(key: &'static str, title: &'static str) -> Self {
        Column { key, title, alignment: CellAlignment::Left, in_table: true }
    }

    /// A column of numbers.
    pub const fn number(key: &'static str, title: &'static str) -> Self {
        Column { key, title, alignment: CellAlignment::Right, in_table: true }
    }

    /// A column that only programs get.
    pub const fn hidden(key: &'static str) -> Self {
        Column { key, title: "", alignment: CellAlignment::Left, in_table: false }
    }
}

/// Rows with what is to be said about all of them.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was asked, for JSON and for the line above a table.
    pub about: Vec<(&'static str, Value)>,
    /// The line above a table.
    pub heading: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Remarks below the table; `notes` in JSON.
    pub notes: Vec<String>,
}

impl Report {
    /// The report in a format, ending with a line break.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Table => self.table(),
            Format::Csv => self.csv(),
            Format::Json => self.json(),
        }
    }

    fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_style(TableComponent::HeaderLines, '\u{2500}');
        table.set_style(TableComponent::MiddleHeaderIntersections, '\u{2500}');
        if std::io::stdout().is_terminal() {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        let shown: Vec<usize> =
            (0..self.columns.len()).filter(|&i| self.columns[i].in_table).collect();
        table.set_header(shown.iter().map(|&i| self.columns[i].title));
        for row in &self.rows {
            table.add_row(shown.iter().map(|&i| row[i].shown.as_str()));
        }
        for (column, &i) in table.column_iter_mut().zip(&shown) {
            column.set_cell_alignment(self.columns[i].alignment);
        }
        let mut text = format!("{}\n", self.heading);
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for note in &self.notes {
            text.push_str(note);
            text.push('\n');
        }
        text
    }

    fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let header = self.columns.iter().map(|column| column.key);
        let mut written = writer.write_record(header);
        for row in &self.rows {
            let fields = row.iter().map(|cell| match &cell.value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            written = written.and_then(|()| writer.write_record(fields));
        }
        written.expect("rows have one cell per column, and memory takes all that is written");
        let bytes = writer.into_inner().expect("memory takes all that is written");
        String::from_utf8(bytes).expect("texts are UTF-8")
    }

    fn json(&self) -> String {
        let mut object = Map::new();
        for (key, value) in &self.about {
            object.insert((*key).to_owned(), value.clone());
        }
        object.insert("notes".to_owned(), Value::from(self.notes.clone()));
        let rows = self.rows.iter().map(|row| {
            let pairs = self.columns.iter().zip(row);
            Value::Object(pairs.map(|(c, cell)| (c.key.to_owned(), cell.value.clone())).collect())
        });
        object.insert("rows".to_owned(), rows.collect());
        format!("{:#}\n", Value::Object(object))
    }
}

/// A number with at most `digits` decimals and no trailing zeros.
pub fn decimal(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
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

    #[test]
    fn the_three_formats_hold_the_same_rows() {
        let json: Value = serde_json::from_str(&report().render(Format::Json)).unwrap();
        assert_eq!(json["torus"], "4x4");
        assert_eq!(json["rows"][0]["bytes"], 1024);
        assert_eq!(json["rows"][1]["list"], serde_json::json!([1, 2]));
        assert_eq!(json["notes"][0], "a remark");
        let csv = report().render(Format::Csv);
        assert_eq!(csv, "name,bytes,list\n\"a, \"\"b\"\"\",1024,\nc,7,\"[1,2]\"\n");
        let table = report().render(Format::Table);
        assert!(table.starts_with("two rows\n") && table.ends_with("a remark\n"), "{table}");
        assert!(table.contains("1 KiB") && !table.contains('\u{1b}'), "{table}");
    }

    #[test]
    fn decimals_are_short() {
        assert_eq!(decimal(1.96875, 4), "1.9688");
        assert_eq!(decimal(2.0, 4), "2");
        assert_eq!(decimal(100.0, 0), "100");
        assert_eq!(decimal(0.0, 3), "0");
    }
}
