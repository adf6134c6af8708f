//! Measured times from files: those of `hopbine run`, of PICO, and those that the model was calibrated with.

pub mod cases;
mod columns;
mod pico;

use std::path::PathBuf;

use hopbine_torus::fit::Accuracy;
use hopbine_torus::sim::{Api, Timed};
use hopbine_torus::{Collective, Shape};

use crate::args;
use crate::cells::{Cell, Column};
use crate::error::CliError;
use columns::{Columns, FileFormat};

/// One measured time.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredTime {
    /// Line of the row in the file, from 1.
    pub line: u64,
    pub api: Api,
    pub shape: Shape,
    pub collective: Collective,
    /// Name of the algorithm in the file.
    pub algorithm: String,
    /// Bytes of a rank's vector, or of all its blocks.
    pub bytes: u64,
    /// Bytes of a segment; 0 for messages that are not cut.
    pub segment_bytes: u64,
    pub ports: u32,
    /// Median time in microseconds.
    pub us: f64,
}

impl MeasuredTime {
    /// The measured call, in the model's form.
    pub fn timed(&self) -> Timed<'_> {
        Timed {
            api: self.api,
            shape: &self.shape,
            collective: self.collective,
            algorithm: &self.algorithm,
            bytes: self.bytes,
            segment_bytes: self.segment_bytes,
            ports: self.ports,
        }
    }

    /// The software and the algorithm.
    pub fn family(&self) -> String {
        match self.api {
            Api::Hopbine => self.algorithm.clone(),
            api => format!("{} {}", api.name(), self.algorithm),
        }
    }
}

/// An error in a file of measured times.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The columns match no known format.
    #[error(
        "line 1: the columns are {found}; they must be those of `hopbine run --format csv` ({ours}), of \
         PICO's aggregated_results_summary.csv ({pico}), or {plain}",
        ours = FileFormat::Ours.needs().join(", "),
        pico = FileFormat::Pico.needs().join(", "),
        plain = FileFormat::Plain.needs().join(", "),
    )]
    Columns {
        /// The columns of the file.
        found: String,
    },
    /// A line with a wrong number of fields.
    #[error("line {line} has {found} fields; line 1 has {expected} columns")]
    Fields {
        /// The line.
        line: u64,
        /// Number of fields in the line.
        found: usize,
        /// Number of columns.
        expected: usize,
    },
    /// Invalid CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// An invalid value.
    #[error("line {line}: `{text}` in column {column} is not {expected}")]
    Value {
        /// The line.
        line: u64,
        /// The column.
        column: &'static str,
        /// The value.
        text: String,
        /// Description of the valid values.
        expected: &'static str,
    },
    /// An invalid value of a type whose parse errors describe the valid values.
    #[error("line {line}, column {column}: {message}")]
    Text {
        /// The line.
        line: u64,
        /// The column.
        column: &'static str,
        /// The parse error.
        message: String,
    },
    /// The file has no rows.
    #[error("there are no rows after line 1")]
    Empty,
}

/// A requested shape without measured times.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no measured time for the shape {shape}; the file has {found}")]
pub struct NoShape {
    /// The requested shape.
    shape: Shape,
    /// The shapes in the file.
    found: String,
}

/// Which measured times are meant.
#[derive(Debug, clap::Args)]
pub struct MeasuredArgs {
    /// CSV file of measured times, or several
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    measured: Vec<PathBuf>,
    /// Use only the times of these shapes
    #[arg(long, value_name = "SHAPE,...", value_delimiter = ',')]
    shapes: Vec<Shape>,
}

impl MeasuredArgs {
    /// The rows of the files.
    ///
    /// # Errors
    /// As [`read`].
    pub fn rows(&self) -> Result<Vec<MeasuredTime>, CliError> {
        read(&self.measured, &self.shapes)
    }
}

/// The columns for [`accuracy_cells`].
pub fn accuracy_columns() -> [Column; 4] {
    [
        Column::number("rows", "rows"),
        Column::number("median", "median"),
        Column::number("p90", "p90"),
        Column::number("bias", "bias"),
    ]
}

/// Prediction errors, as cells of a row.
pub fn accuracy_cells(accuracy: &Accuracy) -> [Cell; 4] {
    let Accuracy { n, median, p90, bias, .. } = *accuracy;
    [Cell::count(n as u64), percent(median), percent(p90), Cell::new(bias, format!("{bias:+.3}"))]
}

/// A fraction, shown in per cent.
pub fn percent(part: f64) -> Cell {
    Cell::new(part, format!("{:.1}%", 100.0 * part))
}

/// Reads files of measured times and keeps the rows with these shapes, or all rows if `shapes` is empty. Skips rows
/// without a time.
///
/// # Errors
/// [`CliError::Read`]; [`CliError::Text`] with the number of the wrong line; [`CliError::Usage`] for a shape without
/// measured times.
fn read(paths: &[PathBuf], shapes: &[Shape]) -> Result<Vec<MeasuredTime>, CliError> {
    let mut rows = Vec::new();
    for path in paths {
        rows.extend(parse(&args::read(path)?).map_err(|error| CliError::text(path, error))?);
    }
    of_shapes(rows, shapes).map_err(|error| CliError::Usage(error.to_string()))
}

fn parse(text: &str) -> Result<Vec<MeasuredTime>, RowError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers()?.clone();
    let columns = Columns::of(&header)?;
    let mut rows = Vec::new();
    // The line of a record, from 1, and its first byte.
    let (mut line, mut last) = (1, 0);
    for record in reader.records() {
        let record = record?;
        // The reader's own line number is that of the end of the previous record: the record follows empty lines.
        let start = record.position().map_or(0, |position| position.byte() as usize);
        let rest = text[start..].trim_start_matches(['\r', '\n']);
        let start = text.len() - rest.len();
        line += text[last..start].matches('\n').count() as u64;
        last = start;
        if record.len() != header.len() {
            return Err(RowError::Fields { line, found: record.len(), expected: header.len() });
        }
        rows.extend(columns.row(line, &record)?);
    }
    if rows.is_empty() { Err(RowError::Empty) } else { Ok(rows) }
}

fn of_shapes(rows: Vec<MeasuredTime>, shapes: &[Shape]) -> Result<Vec<MeasuredTime>, NoShape> {
    if let Some(missing) = shapes.iter().find(|shape| rows.iter().all(|row| row.shape != **shape)) {
        let found: Vec<String> = shapes_of(&rows).iter().map(Shape::to_string).collect();
        return Err(NoShape { shape: missing.clone(), found: found.join(", ") });
    }
    let counts = |row: &MeasuredTime| shapes.is_empty() || shapes.contains(&row.shape);
    Ok(rows.into_iter().filter(counts).collect())
}

/// The different shapes of the rows, smaller ones first.
pub fn shapes_of<'a>(rows: impl IntoIterator<Item = &'a MeasuredTime>) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = Vec::new();
    for row in rows {
        if !shapes.contains(&row.shape) {
            shapes.push(row.shape.clone());
        }
    }
    shapes.sort_by_key(|shape| (shape.n_ranks(), shape.to_string()));
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str =
        "shape,collective,bytes,api,algorithm,segment_bytes,ports,median_us,min_us\n";

    #[test]
    fn files_of_all_three_kinds_say_the_same() {
        let plain = format!("{PLAIN}4x4x4,reduce_scatter,1048576,utofu,bine-x-dec,0,6,12.5,11\n");
        let pico = "collective_type,array_dim,buffer_size,algo_name,datatype,mean,median,nnodes,tasks_per_node\n\
                    REDUCE_SCATTER,262144,1048576,BINE-X-UTOFU-0-6-DEC,int32,13000.0,12500.0,4x4x4,1\n";
        let ours = "collective,torus,segment_bytes,bytes,algorithm,ports,median_s,verified\n\
                    reduce-scatter,4x4x4,,1048576,bine-x-dec,6,0.0000125,true\n\
                    reduce-scatter,4x4x4,,1048576,bine-x-dec,6,,true\n";
        let [mut plain, mut pico, mut ours] =
            [plain.as_str(), pico, ours].map(|text| parse(text).unwrap());
        assert_eq!((ours.len(), ours[0].api, ours[0].segment_bytes), (1, Api::Hopbine, 1 << 20));
        (ours[0].api, ours[0].segment_bytes) = (Api::Utofu, 0);
        for rows in [&mut plain, &mut pico, &mut ours] {
            rows[0].us = (rows[0].us * 1e6).round() / 1e6;
        }
        assert_eq!(plain[0].us, 12.5);
        assert_eq!(plain, pico);
        assert_eq!(plain, ours);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let good = "2x2x2,allreduce,1024,utofu,bine-l,0,3,5.5,5";
        for (from, to, expected) in [
            (
                "1024",
                "99999999999999999999",
                "line 3: `99999999999999999999` in column bytes is not a whole number",
            ),
            ("1024", "-4", "is not a whole number of bytes"),
            ("5.5", "fast", "`fast` in column median_us is not a time above 0"),
            ("5.5", "0", "is not a time above 0"),
            ("5.5", "inf", "is not a time above 0"),
            ("2x2x2", "2xx", "line 3, column shape:"),
            (
                "allreduce",
                "allreduced",
                "line 3, column collective: `allreduced` is not a collective",
            ),
            ("utofu", "tofu", "column api"),
            (",3,", ",0,", "column ports is not a number of ports"),
            (",0,3", ",x,3", "column segment_bytes"),
            (",5.5,5", ",5.5", "line 3 has 8 fields; line 1 has 9 columns"),
        ] {
            let text = format!("{PLAIN}{good}\n{}\n", good.replacen(from, to, 1));
            let message = parse(&text).unwrap_err().to_string();
            assert!(message.contains(expected), "{to}: {message}");
        }
        let message = parse("a,b\n1,2\n").unwrap_err().to_string();
        assert!(message.contains("the columns are a, b; they must be"), "{message}");
        assert!(message.contains("median_us") && message.contains("algo_name"), "{message}");
        assert!(matches!(parse(PLAIN).unwrap_err(), RowError::Empty));
        assert!(parse("").unwrap_err().to_string().contains("the columns are"));
    }

    #[test]
    fn a_shape_that_was_not_measured_is_named() {
        let row = |shape| format!("{shape},bcast,64,fujitsu-mpi,binomial,,,5,5\n");
        let text = format!("{PLAIN}{}{}{}", row("4x4"), row("2x2"), row("4x4"));
        let shape = |text: &str| text.parse::<Shape>().unwrap();
        assert_eq!(shapes_of(&parse(&text).unwrap()), [shape("2x2"), shape("4x4")]);
        assert_eq!(of_shapes(parse(&text).unwrap(), &[shape("4x4")]).unwrap().len(), 2);
        let error = of_shapes(parse(&text).unwrap(), &[shape("8x8")]).unwrap_err().to_string();
        assert_eq!(error, "there is no measured time for the shape 8x8; the file has 2x2, 4x4");
    }
}
