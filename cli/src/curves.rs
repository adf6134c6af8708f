//! Curves of measurements against size, on logarithmic axes, with one chart for each collective.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::error::CliError;
use crate::picture::{
    CHART, Canvas, Drawn, INK, Legend, MARGIN, Style, against_size, colour, has_place, log_range,
    needs_sizes, picture, words,
};

/// Height in pixels of the heading of a chart.
const HEAD: i32 = 24;

/// A measurement with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredPoint {
    pub bytes: u64,
    pub value: f64,
    pub ends: [f64; 2],
}

impl MeasuredPoint {
    /// Applies a conversion to the value and its range. The conversion may be decreasing.
    pub fn map(self, figure: impl Fn(f64) -> f64) -> Self {
        let ends = self.ends.map(&figure);
        let ends = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        MeasuredPoint { value: figure(self.value), ends, ..self }
    }
}

/// The measurements of one side, by size.
#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    pub points: Vec<MeasuredPoint>,
}

impl Curve {
    /// Adds a point to the curve of this name.
    pub fn add(curves: &mut Vec<Curve>, name: &str, point: MeasuredPoint) {
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name: name.to_owned(), points: vec![point] }),
        }
    }
}

/// Maximum number of curves, so that their colours can be distinguished.
const MOST: usize = 12;

/// Keeps the `MOST` curves with the smallest geometric means. Returns the original number of curves if some are
/// dropped.
pub fn smallest(curves: &mut Vec<Curve>) -> Option<usize> {
    let all = curves.len();
    let mean = |curve: &Curve| {
        let logs = curve.points.iter().map(|point| point.value.ln());
        logs.sum::<f64>() / curve.points.len().max(1) as f64
    };
    curves.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    curves.truncate(MOST);
    (all > MOST).then_some(all)
}

/// The curves on one pair of axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Heading of the chart.
    pub of: String,
    pub curves: Vec<Curve>,
}

/// Draws charts one below the other with one legend. Curves with the same name have the same colour. `level` adds a
/// horizontal line at this value.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if no chart has two sizes above 0.
pub fn draw(
    title: &str,
    meaning: &str,
    charts: &[Chart],
    level: Option<f64>,
    path: &Path,
) -> Result<(), CliError> {
    let charts: Vec<&Chart> = charts.iter().filter(|chart| has_range(chart)).collect();
    if charts.is_empty() {
        return Err(needs_sizes());
    }
    let mut names: Vec<&str> = Vec::new();
    for curve in charts.iter().flat_map(|chart| &chart.curves) {
        if !names.contains(&&*curve.name) {
            names.push(&curve.name);
        }
    }
    let legend = names.iter().enumerate();
    let legend =
        Legend(legend.map(|(number, name)| (colour(number), (*name).to_owned())).collect());
    // A single chart needs no heading: the title names its collective.
    let head = if charts.len() > 1 { HEAD } else { 0 };
    let height = charts.len() as i32 * (head + CHART) + 8 + legend.height();
    picture(path, title, height, |canvas, top| {
        let mut at = top;
        for chart in charts {
            if head > 0 {
                let style = Style { h: HPos::Left, v: VPos::Top, ..Style::default() };
                words(canvas, &chart.of, (MARGIN, at + 4), &style)?;
            }
            one(canvas, at + head, chart, (&names, meaning, level))?;
            at += head + CHART;
        }
        legend.draw(canvas, at + 8)
    })
}

/// Whether the chart has two different sizes above 0, which a logarithmic axis needs.
fn has_range(chart: &Chart) -> bool {
    let mut sizes = chart.curves.iter().flat_map(|curve| &curve.points).map(|point| point.bytes);
    let first = sizes.find(|&bytes| bytes > 0);
    first.is_some_and(|first| sizes.any(|bytes| bytes > 0 && bytes != first))
}

fn one(
    canvas: &Canvas<'_>,
    top: i32,
    chart: &Chart,
    (names, meaning, level): (&[&str], &str, Option<f64>),
) -> Drawn {
    let points = |curve: &Curve| {
        let drawn =
            |point: &&MeasuredPoint| point.bytes > 0 && point.ends.into_iter().all(has_place);
        curve.points.iter().filter(drawn).copied().collect::<Vec<MeasuredPoint>>()
    };
    let all: Vec<MeasuredPoint> = chart.curves.iter().flat_map(points).collect();
    let x = log_range(all.iter().map(|point| point.bytes as f64), 1.0 / 1.2, 1.2)?;
    let y = log_range(all.iter().flat_map(|point| point.ends).chain(level), 1.0 / 1.2, 1.2)?;
    let mut axes = against_size(canvas, top, [x.clone(), y], meaning, true)?;
    if let Some(level) = level {
        let line = [(x.start, level), (x.end, level)];
        axes.draw_series(DashedLineSeries::new(line, 4, 4, INK.mix(0.6).stroke_width(1)))?;
    }
    // In reverse order, so that the first curve is on top.
    for curve in chart.curves.iter().rev() {
        let number = names.iter().position(|name| *name == curve.name).unwrap_or(0);
        let points = points(curve);
        let ends = points.iter().map(|point| {
            let at = |value| (point.bytes as f64, value);
            PathElement::new(point.ends.map(at), colour(number).mix(0.5).stroke_width(2))
        });
        axes.draw_series(ends)?;
        let line = points.iter().map(|point| (point.bytes as f64, point.value));
        let style = colour(number).filled().stroke_width(2);
        axes.draw_series(LineSeries::new(line, style).point_size(2))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, values: &[(u64, f64)]) -> Curve {
        let point = |&(bytes, value)| MeasuredPoint { bytes, value, ends: [value; 2] };
        Curve { name: name.to_owned(), points: values.iter().map(point).collect() }
    }

    #[test]
    fn of_many_curves_the_quickest_are_drawn() {
        let many = |n: u32| (0..n).map(|i| curve(&i.to_string(), &[(8, f64::from(100 - i))]));
        let mut few: Vec<Curve> = many(12).collect();
        assert_eq!((smallest(&mut few), few.len(), &few[0].name[..]), (None, 12, "11"));
        let mut more: Vec<Curve> = many(20).collect();
        assert_eq!((smallest(&mut more), more.len(), &more[11].name[..]), (Some(20), 12, "8"));
    }

    #[test]
    fn a_chart_needs_two_sizes() {
        let chart = |values: &[(u64, f64)]| Chart {
            of: "allreduce".to_owned(),
            curves: vec![curve("a", values)],
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.svg");
        let drawn = |values: &[(u64, f64)]| draw("t", "us", &[chart(values)], None, &path).is_ok();
        assert!(!drawn(&[(0, 1.0), (8, 2.0)]) && !drawn(&[(8, 1.0), (8, 2.0)]));
        assert!(drawn(&[(8, 1.0), (16, 2.0)]));
    }
}
