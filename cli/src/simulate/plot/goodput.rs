//! Picture: goodput against size, with the sizes at which the best algorithm changes (after Fig. 6 of the Swing
//! paper).

use std::path::Path;

use plotters::prelude::*;

use crate::error::CliError;
use crate::picture::{
    CHART, Canvas, Drawn, FAINT, INK, Legend, MARGIN, Style, WIDTH, against_size, between, colour,
    cut, has_place, log_range, needs_sizes, picture, width_of, words,
};
use crate::simulate::families::EQUAL;
use crate::simulate::predict::{Predicted, Series};

const LABEL_LINE: i32 = 16;
/// Free pixels beside a label.
const LABEL_EDGE: i32 = 4;
/// Approximate positions of the smallest and the largest size in pixels.
const LEFT: i32 = MARGIN + 70;
const RIGHT: i32 = WIDTH - 2 * MARGIN - 8;
/// Maximum number of lines, so that they can be distinguished. If there are more, those that are the best at some
/// size take precedence.
const MOST_LINES: usize = 12;

/// Draws goodput (bytes of a call divided by its time) against size, one line for each schedule, on logarithmic axes.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if there is nothing to draw.
pub fn draw(predicted: &Predicted, path: &Path) -> Result<(), CliError> {
    let sizes = &predicted.sizes;
    if sizes.len() < 2 || sizes.contains(&0) {
        return Err(needs_sizes());
    }
    let lines = chosen(&predicted.series);
    let best_ranges = best_ranges(&lines, sizes);
    let legend = Legend(
        lines
            .iter()
            .enumerate()
            .map(|(index, line)| (colour(index), line.names.join(", ")))
            .collect(),
    );
    let title = format!("{}: predicted goodput, and the best algorithm", predicted.subject());
    let labels = labels(&lines, &best_ranges, sizes);
    let rows = labels.iter().map(|label| label.row + 1).max().unwrap_or(0) * LABEL_LINE + 4;
    picture(path, &title, rows + CHART + 8 + legend.height(), |canvas, top| {
        let above = top + rows;
        chart(canvas, above, sizes, &lines, &best_ranges)?;
        let last = above - LABEL_LINE / 2 - 2;
        words(canvas, "best:", (MARGIN + 32, last), &Style { colour: FAINT, ..Style::default() })?;
        for Label { line, middle, row } in labels {
            let colour = between(colour(line), INK, 0.25);
            let at = (middle, last - row * LABEL_LINE);
            words(canvas, &lines[line].label(), at, &Style { colour, ..Style::default() })?;
        }
        legend.draw(canvas, above + CHART + 8)
    })
}

/// A line of the picture: schedules with equal times at every size.
struct Line<'a> {
    series: &'a Series,
    names: Vec<String>,
}

impl Line<'_> {
    /// Whether a schedule has equal times.
    fn is_like(&self, other: &Series) -> bool {
        (0..other.played.len())
            .all(|size| (self.series.ns(size) / other.ns(size) - 1.0).abs() < EQUAL)
    }

    fn points(&self, sizes: &[u64]) -> Vec<(f64, f64)> {
        let points = sizes.iter().zip(&self.series.played);
        let points = points.map(|(&bytes, played)| (bytes as f64, bytes as f64 / played.ns));
        points.filter(|point| has_place(point.1)).collect()
    }

    /// The first name, as wide as the chart at most.
    fn label(&self) -> String {
        cut(&self.names[0], WIDTH - MARGIN - LEFT - 2 * LABEL_EDGE)
    }
}

/// The lines to draw: all, or those that are the best at some size, then the best of the others.
fn chosen(all: &[Series]) -> Vec<Line<'_>> {
    let has_ports = all.iter().any(|series| series.ports != all[0].ports);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for series in all {
        let name = match has_ports {
            true => format!("{} ({} ports)", series.algorithm, series.ports),
            false => series.algorithm.clone(),
        };
        match lines.iter_mut().find(|line| line.is_like(series)) {
            Some(line) => line.names.push(name),
            None => lines.push(Line { series, names: vec![name] }),
        }
    }
    let n_sizes = all.first().map_or(0, |series| series.played.len());
    let best_of = |size| all.iter().map(|series| series.ns(size)).fold(f64::INFINITY, f64::min);
    let best: Vec<f64> = (0..n_sizes).map(best_of).collect();
    // Number of sizes at which the line is the best, and its total logarithmic distance from the best.
    let score = |line: &Line<'_>| {
        let over = best.iter().enumerate().map(|(size, best)| line.series.ns(size) / best);
        (over.clone().filter(|over| *over <= 1.0).count(), over.map(f64::ln).sum::<f64>())
    };
    lines.sort_by(|a, b| {
        let (a, b) = (score(a), score(b));
        b.0.cmp(&a.0).then(a.1.total_cmp(&b.1))
    });
    lines.truncate(MOST_LINES);
    lines
}

/// A line that is the best, and the size from which on it is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BestRange {
    line: usize,
    from: f64,
}

/// The best lines with the sizes at which they become the best. Between sizes, lines are straight on logarithmic
/// axes.
fn best_ranges(lines: &[Line<'_>], sizes: &[u64]) -> Vec<BestRange> {
    let ns = |line: usize, size: usize| lines[line].series.ns(size);
    let mut found: Vec<BestRange> = Vec::new();
    for (size, &bytes) in sizes.iter().enumerate() {
        let best = (0..lines.len()).min_by(|&a, &b| ns(a, size).total_cmp(&ns(b, size)));
        let Some(best) = best else { continue };
        let Some(&BestRange { line: last, .. }) = found.last() else {
            found.push(BestRange { line: best, from: bytes as f64 });
            continue;
        };
        if ns(last, size) <= ns(best, size) * (1.0 + EQUAL) {
            continue;
        }
        let behind = |size| (ns(last, size) / ns(best, size)).ln();
        let (before, after) = (behind(size - 1), behind(size));
        let part = (before / (before - after)).clamp(0.0, 1.0);
        let [low, high] = [sizes[size - 1], bytes].map(|bytes| (bytes as f64).ln());
        found.push(BestRange { line: best, from: (low + part * (high - low)).exp() });
    }
    found
}

/// A label with the best line's name, above the sizes at which it is the best.
struct Label {
    line: usize,
    /// Horizontal position of its middle in pixels.
    middle: i32,
    /// Row, counted upwards.
    row: i32,
}

/// Places the labels from left to right, each in the lowest row with enough room.
fn labels(lines: &[Line<'_>], best_ranges: &[BestRange], sizes: &[u64]) -> Vec<Label> {
    let [first, last] = [sizes[0], sizes[sizes.len() - 1]].map(|bytes| (bytes as f64).ln());
    let x = |bytes: f64| {
        let part = (bytes.ln() - first) / (last - first);
        f64::from(LEFT) + part * f64::from(RIGHT - LEFT)
    };
    let mut taken: Vec<i32> = Vec::new();
    let mut found = Vec::new();
    for (number, &BestRange { line, from }) in best_ranges.iter().enumerate() {
        let until =
            best_ranges.get(number + 1).map_or(sizes[sizes.len() - 1] as f64, |next| next.from);
        let half = width_of(&lines[line].label()) / 2 + LABEL_EDGE;
        let middle =
            (((x(from) + x(until)) / 2.0) as i32).clamp(LEFT + half, WIDTH - MARGIN - half);
        let row = taken.iter().position(|end| *end < middle - half).unwrap_or(taken.len());
        taken.resize(taken.len().max(row + 1), 0);
        taken[row] = middle + half;
        found.push(Label { line, middle, row: row as i32 });
    }
    found
}

fn chart(
    canvas: &Canvas<'_>,
    top: i32,
    sizes: &[u64],
    lines: &[Line<'_>],
    best_ranges: &[BestRange],
) -> Drawn {
    let every = || lines.iter().flat_map(|line| line.points(sizes));
    let x = log_range(every().map(|point| point.0), 1.0 / 1.2, 1.2)?;
    let y = log_range(every().map(|point| point.1), 1.0 / 1.2, 1.4)?;
    let mut chart = against_size(canvas, top, [x, y.clone()], "goodput, GB/s", true)?;
    // The first line is the best from the smallest size on and needs no mark.
    for best_range in best_ranges.iter().skip(1) {
        let ends = [(best_range.from, y.start), (best_range.from, y.end)];
        chart.draw_series(DashedLineSeries::new(ends, 4, 4, FAINT.stroke_width(1)))?;
    }
    // In reverse order, so that the best line is on top.
    for (index, line) in lines.iter().enumerate().rev() {
        let style = colour(index).filled().stroke_width(2);
        chart.draw_series(LineSeries::new(line.points(sizes), style).point_size(2))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::families::tests::predicted;

    #[test]
    fn switch_points_lie_where_lines_cross() {
        let times: [(&str, &[f64]); 3] = [
            ("bine", &[1.0, 2.0, 8.0]),
            ("bine-two", &[1.0, 2.0, 8.0]),
            ("bucket", &[4.0, 4.0, 4.0]),
        ];
        let sizes = [1 << 10, 1 << 12, 1 << 14];
        let predicted = predicted("4x4", &sizes, &times);
        let lines = chosen(&predicted.series);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].names, ["bine", "bine-two"]);
        let found = best_ranges(&lines, &sizes);
        assert_eq!(found[0], BestRange { line: 0, from: 1024.0 });
        // The old line is ahead by a factor of 2 at the size before, and behind by a factor of 2 at the size after.
        assert_eq!((found[1].line, found[1].from.round()), (1, 8192.0));
        assert_eq!(found.len(), 2);
        let labels = labels(&lines, &found, &sizes);
        assert!(labels[0].middle < labels[1].middle && labels.iter().all(|label| label.row == 0));
        // Names that do not fit side by side are stacked.
        let many: Vec<BestRange> = (0..6)
            .map(|number| BestRange { line: number % 2, from: 1024.0 + f64::from(number as u32) })
            .collect();
        assert_eq!(
            super::labels(&lines, &many, &sizes).iter().map(|label| label.row).max(),
            Some(4)
        );
    }
}
