//! Columns and cells of reports.

use std::fmt;

use serde_json::Value;

/// Explanation of the column `in flight`.
pub const IN_FLIGHT: &str =
    "In flight: most messages that a rank has under way at a time; -: no limit but the data.";

/// One value, with its form for programs and its form for people.
#[derive(Clone, Debug)]
pub struct Cell {
    pub(super) value: Value,
    shown: String,
}

impl Cell {
    /// A value with one form for programs and another for people.
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

    /// The form for people.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// No value.
    pub fn none() -> Self {
        Cell { value: Value::Null, shown: "-".to_owned() }
    }
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) is_number: bool,
    pub(super) in_table: bool,
    pub(super) width: Width,
}

/// How much room a column takes in a table.
#[derive(Clone, Copy, Debug)]
pub struct Width {
    pub(super) wraps: bool,
    pub(super) expected: usize,
    pub(super) yields: u8,
}

impl Column {
    /// A column of texts; `key` in CSV and JSON, `title` in tables.
    pub const fn text(key: &'static str, title: &'static str) -> Self {
        let width = Width { wraps: false, expected: 0, yields: 0 };
        Column { key, title, is_number: false, in_table: true, width }
    }

    /// A column of numbers.
    pub const fn number(key: &'static str, title: &'static str) -> Self {
        Column { is_number: true, ..Column::text(key, title) }
    }

    /// A column that only CSV and JSON have.
    pub const fn hidden(key: &'static str) -> Self {
        Column { in_table: false, ..Column::text(key, "") }
    }

    /// Shows the column in tables only if `shown`; CSV and JSON always have it.
    pub const fn only_if(self, shown: bool) -> Self {
        Column { in_table: shown, ..self }
    }

    /// The column's texts may be wrapped if the table is too wide.
    pub const fn wraps(self) -> Self {
        Column { width: Width { wraps: true, ..self.width }, ..self }
    }

    /// The column must have room for this many characters, for rows that are printed later.
    pub const fn expects(self, expected: usize) -> Self {
        Column { width: Width { expected, ..self.width }, ..self }
    }

    /// The column is omitted if the table is too wide; columns with higher numbers are omitted first.
    pub const fn yields(self, yields: u8) -> Self {
        Column { width: Width { yields, ..self.width }, ..self }
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

    #[test]
    fn decimals_are_short() {
        assert_eq!(decimal(1.96875, 4), "1.9688");
        assert_eq!(decimal(2.0, 4), "2");
        assert_eq!(decimal(100.0, 0), "100");
        assert_eq!(decimal(0.0, 3), "0");
    }
}
