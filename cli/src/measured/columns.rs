//! The columns of files of measured times.

use std::str::FromStr;

use csv::StringRecord;
use hopbine_torus::sim::{Api, Profile};

use super::pico;
use super::{MeasuredTime, RowError};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// The output of `hopbine run --format csv`. Times in seconds.
    Ours,
    /// The output of PICO (repository HLC-Lab/pico, plot/summarize_data.py). Times in nanoseconds.
    Pico,
    /// One row for each time, with a column that names the software. Times in microseconds.
    Plain,
}

impl FileFormat {
    const ALL: [FileFormat; 3] = [FileFormat::Ours, FileFormat::Pico, FileFormat::Plain];

    /// The required columns: shape, collective, bytes, algorithm, median; then others.
    pub fn needs(self) -> &'static [&'static str] {
        match self {
            FileFormat::Ours => &["torus", "collective", "bytes", "algorithm", "median_s", "ports"],
            FileFormat::Pico => {
                &["nnodes", "collective_type", "buffer_size", "algo_name", "median"]
            }
            FileFormat::Plain => &[
                "shape",
                "collective",
                "bytes",
                "algorithm",
                "median_us",
                "api",
                "segment_bytes",
                "ports",
            ],
        }
    }

    /// The optional columns.
    fn knows(self) -> &'static [&'static str] {
        match self {
            FileFormat::Ours => &["segment_bytes", "verified"],
            FileFormat::Pico => &["tasks_per_node"],
            FileFormat::Plain => &[],
        }
    }

    /// The format's unit of time in microseconds.
    fn unit_us(self) -> f64 {
        match self {
            FileFormat::Ours => 1e6,
            FileFormat::Pico => 1e-3,
            FileFormat::Plain => 1.0,
        }
    }
}

/// Positions of the columns in a file.
#[derive(Debug)]
pub struct Columns {
    layout: FileFormat,
    /// Name and index of each column.
    places: Vec<(&'static str, usize)>,
}

impl Columns {
    /// Detects the format of a file from its header line.
    pub fn of(header: &StringRecord) -> Result<Self, RowError> {
        let place = |name: &'static str| {
            let place = header.iter().position(|found| found.trim() == name);
            place.map(|place| (name, place))
        };
        for layout in FileFormat::ALL {
            let needed: Option<Vec<_>> = layout.needs().iter().map(|name| place(name)).collect();
            if let Some(mut places) = needed {
                places.extend(layout.knows().iter().filter_map(|name| place(name)));
                return Ok(Columns { layout, places });
            }
        }
        let found: Vec<&str> = header.iter().collect();
        let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
        Err(RowError::Columns { found })
    }

    /// Parses a row; `None` if it has no time, or a time whose result was wrong.
    pub fn row(&self, line: u64, record: &StringRecord) -> Result<Option<MeasuredTime>, RowError> {
        let fields = Fields { columns: self, line, record };
        let [shape, collective, bytes, algorithm, median] =
            [0, 1, 2, 3, 4].map(|k| self.layout.needs()[k]);
        let time = fields.text(median);
        let is_wrong = fields.text("verified") == "false";
        if self.layout == FileFormat::Ours && time.is_empty() || is_wrong {
            return Ok(None);
        }
        let us = fields
            .checked(median, time, "a time above 0", |us: &f64| us.is_finite() && *us > 0.0)?;
        let (api, algorithm, segment_bytes, ports) = match self.layout {
            FileFormat::Pico => {
                let many = fields.text("tasks_per_node");
                if !matches!(many, "" | "1") {
                    let message =
                        format!("{many} ranks share a node; the model has one rank per node");
                    return Err(RowError::Text { line, column: "tasks_per_node", message });
                }
                let Some(name) = pico::parse(fields.text(algorithm)) else {
                    let text = fields.text(algorithm).to_owned();
                    let expected = "a name as PICO has on Fugaku, such as BINE-B_CONT-UTOFU-0-6 or default-ring";
                    return Err(RowError::Value { line, column: algorithm, text, expected });
                };
                (name.api, name.algorithm, name.segment_bytes, name.ports)
            }
            FileFormat::Plain | FileFormat::Ours => {
                let api = match self.layout {
                    FileFormat::Ours => Api::Hopbine,
                    _ => fields.parsed("api", fields.text("api"))?,
                };
                let segment = match fields.text("segment_bytes") {
                    "" if api == Api::Hopbine => Profile::SEGMENT_BYTES,
                    "" => 0,
                    text => {
                        fields
                            .checked("segment_bytes", text, "a whole number of bytes", |_| true)?
                    }
                };
                let ports = match fields.text("ports") {
                    "" => 1,
                    text => {
                        fields.checked("ports", text, "a number of ports", |ports| *ports > 0)?
                    }
                };
                (api, fields.text(algorithm).to_owned(), segment, ports)
            }
        };
        Ok(Some(MeasuredTime {
            line,
            api,
            shape: fields.parsed(shape, fields.text(shape))?,
            collective: fields.parsed(collective, &fields.text(collective).to_lowercase())?,
            algorithm,
            bytes: fields.checked(
                bytes,
                fields.text(bytes),
                "a whole number of bytes below 2^64",
                |_| true,
            )?,
            segment_bytes,
            ports,
            us: us * self.layout.unit_us(),
        }))
    }
}

/// The fields of a line.
struct Fields<'a> {
    columns: &'a Columns,
    line: u64,
    record: &'a StringRecord,
}

impl<'a> Fields<'a> {
    /// The text of a column; empty if the file does not have the column.
    fn text(&self, column: &str) -> &'a str {
        let place = self.columns.places.iter().find(|(name, _)| *name == column);
        place.and_then(|(_, place)| self.record.get(*place)).map_or("", str::trim)
    }

    fn checked<T: FromStr>(
        &self,
        column: &'static str,
        text: &str,
        expected: &'static str,
        is_well: impl Fn(&T) -> bool,
    ) -> Result<T, RowError> {
        let value = text.parse().ok().filter(is_well);
        value.ok_or_else(|| RowError::Value {
            line: self.line,
            column,
            text: text.to_owned(),
            expected,
        })
    }

    /// A value of a type whose parse errors describe the valid values.
    fn parsed<T: FromStr<Err: std::fmt::Display>>(
        &self,
        column: &'static str,
        text: &str,
    ) -> Result<T, RowError> {
        let wrong =
            |error: T::Err| RowError::Text { line: self.line, column, message: error.to_string() };
        text.parse().map_err(wrong)
    }
}
