//! Pictures of times that `benches/against-mpi.sh` has measured, from its CSV.

use std::path::Path;

use csv::StringRecord;

use super::Show;
use crate::args;
use crate::curves::{self, Chart, Curve, MeasuredPoint};
use crate::error::CliError;

const COLUMNS: &str = "ranks, collective, bytes, best_us, and of each side NAME_us, NAME_low and NAME_high, as in the CSV of \
     benches/against-mpi.sh";

/// Draws a chart for each collective and number of ranks, with a curve for each side.
///
/// # Errors
/// [`CliError::Read`]; [`CliError::Text`] with the number of the wrong line; as [`curves::draw`].
pub fn draw(from: &Path, show: Show, picture: &Path) -> Result<(), CliError> {
    let charts = charts(&args::read(from)?, show).map_err(|error| CliError::text(from, error))?;
    let (meaning, level) = show.axis("the best MPI");
    let title = format!("Collectives on one host, {}", from.display());
    curves::draw(&title, &meaning, &charts, level, picture)
}

fn charts(text: &str, show: Show) -> Result<Vec<Chart>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let place = |name: &str| {
        let missing = || format!("line 1: there is no column {name}; there must be {COLUMNS}");
        header.iter().position(|found| found == name).ok_or_else(missing)
    };
    let [ranks, collective, bytes, best] = ["ranks", "collective", "bytes", "best_us"].map(place);
    let (ranks, collective, bytes, best) = (ranks?, collective?, bytes?, best?);
    let sides: Vec<(&str, [usize; 3])> = header
        .iter()
        .filter_map(|name| name.strip_suffix("_us"))
        .filter(|name| *name != "best")
        .map(|name| {
            let of = |end: &str| place(&format!("{name}_{end}"));
            Ok((name, [of("us")?, of("low")?, of("high")?]))
        })
        .collect::<Result<_, String>>()?;
    let mut charts: Vec<Chart> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let us = |at: usize| number(&record, &header, at);
        let bytes = number(&record, &header, bytes)? as u64;
        let best = us(best)?;
        let of = format!("{} on {} ranks", &record[collective], &record[ranks]);
        let at = charts.iter().position(|chart| chart.of == of).unwrap_or_else(|| {
            charts.push(Chart { of, curves: Vec::new() });
            charts.len() - 1
        });
        for (name, [median, low, high]) in &sides {
            let point = MeasuredPoint { bytes, value: us(*median)?, ends: [us(*low)?, us(*high)?] };
            if let Some(point) = show.point(point, Some(best)) {
                Curve::add(&mut charts[at].curves, name, point);
            }
        }
    }
    Ok(charts)
}

fn number(record: &StringRecord, header: &StringRecord, at: usize) -> Result<f64, String> {
    let value = record[at].parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| {
        let line = record.position().map_or(0, csv::Position::line);
        format!("line {line}: `{}` in column {} is not a number from 0", &record[at], &header[at])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ranks,collective,bytes,openmpi_us,openmpi_low,openmpi_high,openmpi+_us,openmpi+_low,openmpi+_high,\
                        best_mpi,best_us,openmpi+_ratio\n\
                        2,bcast,8,1.5,1,2,0.5,0.25,1,openmpi,1.5,3.000\n\
                        2,bcast,64,3,3,3,1,1,1,openmpi,3,3.000\n\
                        4,bcast,8,6,6,6,2,2,2,openmpi,6,3.000\n";

    #[test]
    fn each_side_is_a_curve_of_each_collective_and_number_of_ranks() {
        let of = |show| charts(TEXT, show).unwrap();
        let times = of(Show::Time);
        let headings: Vec<&str> = times.iter().map(|chart| &*chart.of).collect();
        assert_eq!(headings, ["bcast on 2 ranks", "bcast on 4 ranks"]);
        let curve = &times[0].curves[1];
        assert_eq!((&*curve.name, curve.points.len()), ("openmpi+", 2));
        assert_eq!(curve.points[0], MeasuredPoint { bytes: 8, value: 0.5, ends: [0.25, 1.0] });
        assert_eq!(of(Show::Ratio)[0].curves[1].points[0].value, 3.0);
        assert_eq!(of(Show::Ratio)[0].curves[1].points[0].ends, [1.5, 6.0]);
        assert_eq!(of(Show::Bandwidth)[1].curves[0].points[0].value, 8.0 / 6.0 / 1e3);
    }

    #[test]
    fn the_wrong_column_or_line_is_named() {
        for (from, to, said) in [
            ("best_us", "best", "line 1: there is no column best_us; there must be ranks, "),
            ("openmpi+_low", "low", "line 1: there is no column openmpi+_low; there must be"),
            ("64,3,3,3", "64,3,x,3", "line 3: `x` in column openmpi_low is not a number from 0"),
            ("4,bcast,8", "4,bcast,-8", "line 4: `-8` in column bytes is not a number from 0"),
        ] {
            let error = charts(&TEXT.replace(from, to), Show::Time).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
