//! Picture: gain over the best other family against size.

use hopbine_torus::sizes;
use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::error::CliError;
use crate::picture::{
    CHART, GRID, INK, Legend, MARGIN, Style, WIDTH, against_size, axis_number, between, colour,
    has_place, log_range, needs_sizes, picture, width_of, words,
};
use crate::simulate::families::{EQUAL, Gain};
use crate::simulate::gain::Gains;
use crate::simulate::predict::Predicted;

/// Maximum number of lines, so that they can be distinguished; families that are the best at most sizes come first.
const MOST_LINES: usize = 8;

/// A line of the picture: families with equal times at every size.
struct Line<'a> {
    names: Vec<&'a str>,
    gains: &'a [Gain<'a>],
}

/// Draws the gain of each family over the best other family against size, on logarithmic axes. Above 1 the family is
/// the best.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if there is nothing to draw.
pub fn draw(predicted: &Predicted, gains: &Gains<'_>, path: &Path) -> Result<(), CliError> {
    let bytes = &predicted.sizes;
    if bytes.len() < 2 {
        return Err(needs_sizes());
    }
    let lines = chosen(gains);
    let name = |line: &Line<'_>| line.names.join(", ");
    let legend =
        Legend(lines.iter().enumerate().map(|(index, line)| (colour(index), name(line))).collect());
    let title = format!("{}: predicted gain over the best other family", predicted.subject());
    picture(path, &title, CHART + 8 + legend.height(), |canvas, top| {
        let points = |line: &Line<'_>| -> Vec<(f64, f64)> {
            let points = bytes.iter().zip(line.gains);
            let points = points.map(|(&bytes, gain)| (bytes as f64, gain.gain));
            points.filter(|point| has_place(point.0) && has_place(point.1)).collect()
        };
        let every = || lines.iter().flat_map(points);
        let x = log_range(every().map(|point| point.0), 1.0 / 1.2, 1.2)?;
        // Leaves room above for the labels at the peaks.
        let y = log_range(every().map(|point| point.1).chain([1.0]), 1.0 / 1.1, 1.3)?;
        let meaning = "time of the best other / own time";
        let mut chart = against_size(canvas, top, [x.clone(), y.clone()], meaning, false)?;
        // Gains are near 1, where a logarithmic axis has no numbers by default.
        let mut last = i32::MAX;
        for gain in ticks(&y) {
            let (left, at) = chart.backend_coord(&(x.start, gain));
            if last - at >= 22 {
                chart.draw_series(LineSeries::new([(x.start, gain), (x.end, gain)], GRID))?;
                let style = Style { h: HPos::Right, ..Style::default() };
                words(canvas, &axis_number(&gain), (left - 8, at), &style)?;
                last = at;
            }
        }
        chart.draw_series(LineSeries::new([(x.start, 1.0), (x.end, 1.0)], INK.stroke_width(1)))?;
        for (index, line) in lines.iter().enumerate().rev() {
            let style = colour(index).filled().stroke_width(2);
            chart.draw_series(LineSeries::new(points(line), style).point_size(2))?;
        }
        let mut taken: Vec<(i32, i32)> = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let peak = points(line).into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
            let Some(peak) = peak.filter(|(_, gain)| *gain >= 1.005) else { continue };
            let text = format!("{:.2} at {}", peak.1, sizes::show(peak.0 as u64));
            let (x, y) = chart.backend_coord(&peak);
            let half = width_of(&text) / 2;
            let x = x.clamp(MARGIN + 64 + half, WIDTH - MARGIN - half);
            let is_near =
                |other: &(i32, i32)| (other.0 - x).abs() < 2 * half + 8 && (other.1 - y).abs() < 14;
            if !taken.iter().any(is_near) {
                let colour = between(colour(index), INK, 0.25);
                words(
                    canvas,
                    &text,
                    (x, y - 6),
                    &Style { colour, v: VPos::Bottom, ..Style::default() },
                )?;
                taken.push((x, y));
            }
        }
        legend.draw(canvas, top + CHART + 8)
    })
}

/// Round numbers in a range, ascending; 1 is one of them if the range contains it.
fn ticks(range: &Range<f64>) -> Vec<f64> {
    const ROUND: [f64; 14] = [1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];
    let decades = (-6..=6).map(|decade| 10f64.powi(decade));
    let all = decades.flat_map(|decade| ROUND.map(|round| round * decade));
    all.filter(|gain| range.contains(gain)).collect()
}

/// The lines to draw: families that are the best at some size, then the nearest of the others.
fn chosen<'a>(gains: &'a Gains<'a>) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (name, of_family) in &gains.of {
        let is_like = |line: &Line<'_>| {
            line.gains.iter().zip(of_family).all(|(a, b)| (a.ns / b.ns - 1.0).abs() < EQUAL)
        };
        match lines.iter().position(is_like) {
            Some(line) => lines[line].names.push(name),
            None => lines.push(Line { names: vec![name], gains: of_family }),
        }
    }
    let score = |line: &Line<'_>| {
        let won = line.gains.iter().filter(|gain| gain.gain > 1.0 + EQUAL).count();
        (won, line.gains.iter().map(|gain| gain.gain.ln()).sum::<f64>())
    };
    lines.sort_by(|a, b| {
        let (a, b) = (score(a), score(b));
        b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    lines.truncate(MOST_LINES);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_range_has_ticks() {
        assert_eq!(ticks(&(0.75..1.15)), [0.8, 1.0, 1.1]);
    }
}
