//! Predictions as pictures.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::Series;
use crate::error::CliError;
use crate::output::OutputArg;
use crate::sizes;

const SIZE: (u32, u32) = (960, 600);
/// Lines that can be told apart; of more, only the best of some size are drawn.
const MOST_LINES: usize = 12;

/// Draws goodput (bytes of a call over its time) against size, one line for each schedule, on logarithmic
/// axes.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if there is nothing to draw.
pub fn goodput(title: &str, all: &[Series], path: &Path) -> Result<(), CliError> {
    let lines = chosen(all);
    let points = |series: &Series| -> Vec<(f64, f64)> {
        series
            .played
            .iter()
            .map(|(bytes, played)| (*bytes as f64, *bytes as f64 / played.ns))
            .collect()
    };
    let every: Vec<(f64, f64)> = lines.iter().flat_map(|line| points(line.series)).collect();
    let range = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let (low, high) = every
            .iter()
            .map(of)
            .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        low / 1.2..high * 1.4
    };
    if every.iter().any(|&(x, y)| x <= 0.0 || y <= 0.0)
        || all.iter().all(|series| series.played.len() < 2)
    {
        return Err(CliError::Usage(
            "--plot needs a range of sizes above 0, such as 32..512MiB".to_owned(),
        ));
    }
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&root, title, &lines, range(&|point| point.0), range(&|point| point.1), &points)
            .expect("a picture in memory cannot fail");
    }
    OutputArg::to(path).write(&text)
}

/// A line of the picture: schedules that take as long as each other at every size.
struct Line<'a> {
    series: &'a Series,
    names: Vec<String>,
}

impl Line<'_> {
    /// Whether a schedule takes as long.
    fn is_like(&self, other: &Series) -> bool {
        let mut pairs = self.series.played.iter().zip(&other.played);
        pairs.all(|(a, b)| (a.1.ns / b.1.ns - 1.0).abs() < 1e-3)
    }
}

/// The lines that are drawn: all, or those that are the best of some size, and the best of the others.
fn chosen(all: &[Series]) -> Vec<Line<'_>> {
    let has_ports = all.iter().any(|series| series.ports != all[0].ports);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for series in all {
        let name = match has_ports {
            true => format!("{}, {} ports", series.algorithm, series.ports),
            false => series.algorithm.clone(),
        };
        match lines.iter_mut().find(|line| line.is_like(series)) {
            Some(line) => line.names.push(name),
            None => lines.push(Line { series, names: vec![name] }),
        }
    }
    let best_of = |index: usize| {
        all.iter().map(|series| series.played[index].1.ns).fold(f64::INFINITY, f64::min)
    };
    let n_sizes = all.first().map_or(0, |series| series.played.len());
    let best: Vec<f64> = (0..n_sizes).map(best_of).collect();
    // How often it is the best, and how far it is behind.
    let score = |line: &Line<'_>| {
        let over = line.series.played.iter().zip(&best).map(|((_, played), best)| played.ns / best);
        (over.clone().filter(|over| *over <= 1.0).count(), over.map(f64::ln).sum::<f64>())
    };
    lines.sort_by(|a, b| {
        let (a, b) = (score(a), score(b));
        b.0.cmp(&a.0).then(a.1.total_cmp(&b.1))
    });
    lines.truncate(MOST_LINES);
    lines
}

fn draw(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    lines: &[Line<'_>],
    x: std::ops::Range<f64>,
    y: std::ops::Range<f64>,
    points: &dyn Fn(&Series) -> Vec<(f64, f64)>,
) -> Result<(), Box<dyn std::error::Error>> {
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(root)
        .caption(title, ("sans-serif", 18))
        .margin(16)
        .margin_right(32)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(x.log_scale().base(2.0), y.log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("bytes")
        .y_desc("goodput, GB/s")
        .x_labels(14)
        .x_label_formatter(&|bytes| sizes::show(bytes.round() as u64))
        .y_label_formatter(&|rate| format!("{rate}"))
        .draw()?;
    let n_lines = lines.len();
    for (index, line) in lines.iter().enumerate() {
        let lightness = if index % 2 == 0 { 0.38 } else { 0.55 };
        let color = HSLColor(index as f64 / n_lines as f64, 0.75, lightness);
        chart
            .draw_series(LineSeries::new(points(line.series), color.stroke_width(2)).point_size(3))?
            .label(line.names.join(", "))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}
