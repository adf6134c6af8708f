//! What ports do in one call: a row for each, time from left to right, coloured by step.

use std::path::Path;

use hopbine_torus::plan::Flow;
use hopbine_torus::sim::SpanKind;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{FAINT, GRID, Legend, MARGIN, Style, WIDTH, along, between, fill, picture, words};
use crate::cells::decimal;
use crate::error::CliError;
use crate::simulate::one::OneCall;
use crate::simulate::timeline::spans;

/// Rows that fit a page.
const MOST_ROWS: usize = 96;
const LEFT: i32 = 112;
/// Steps that the legend names.
const MOST_NAMED: u32 = 12;
const BUSY: RGBColor = RGBColor(70, 78, 88);

/// Draws it. The upper half of a row is the port's interface, the lower its thread.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if there are too many ports.
pub fn draw(call: &OneCall<'_>, path: &Path) -> Result<(), CliError> {
    let lanes = call.call.flow.lanes();
    let n_agents = call.call.score.n_agents() as usize;
    let n_rows = n_agents * lanes.len();
    if n_rows > MOST_ROWS {
        return Err(CliError::Usage(format!(
            "a timeline of {n_rows} ports is not legible: --plot draws {MOST_ROWS} at most; give fewer \
             --ports, a smaller --torus, or leave out --exact"
        )));
    }
    let row_height = (480 / n_rows.max(1) as i32).clamp(9, 36);
    let n_steps = lanes.iter().map(|lane| lane.n_steps).max().unwrap_or(0) as u32;
    let legend = legend(n_steps);
    let rows = row_height * n_rows as i32;
    let title = call.title("timeline");
    picture(path, &title, rows + 48 + 24 + legend.height(), |canvas, top| {
        let right = WIDTH - 2 * MARGIN;
        let x = |ns: f64| LEFT + (ns / call.played.ns * f64::from(right - LEFT)).round() as i32;
        let axis = top + rows;
        for us in ticks(call.played.ns / 1e3) {
            let x = x(us * 1e3);
            fill(canvas, x..x + 1, top..axis + 4, GRID)?;
            let style = Style { v: VPos::Top, ..Style::default() };
            words(canvas, &decimal(us, 3), (x, axis + 6), &style)?;
        }
        for span in spans(call) {
            let row = (span.rank as usize * lanes.len() + span.lane as usize) as i32;
            let (y, half) = (top + row * row_height, row_height / 2);
            let of_step = span.step.map_or(BUSY, |step| step_colour(step, n_steps));
            let (colour, rows) = match span.kind {
                SpanKind::Sends => (of_step, y + 1..y + half),
                SpanKind::Waits => (between(of_step, WHITE, 0.7), y + half..y + row_height - 1),
                SpanKind::Busy(_) => (BUSY, y + half..y + row_height - 1),
            };
            let (from, to) = (x(span.start_ns), x(span.end_ns));
            fill(canvas, from..to.max(from + 1), rows, colour)?;
        }
        // Where rows are low, not all have a label.
        let every = (14 + row_height - 1) / row_height;
        for row in (0..n_rows).step_by(every as usize) {
            let port = lanes[row % lanes.len()].port;
            let label = match n_agents {
                1 => format!("port {port}"),
                _ => format!("rank {}, port {port}", row / lanes.len()),
            };
            let y = top + row as i32 * row_height + row_height / 2;
            words(canvas, &label, (LEFT - 8, y), &Style { h: HPos::Right, ..Style::default() })?;
        }
        let style = Style { colour: FAINT, v: VPos::Top, ..Style::default() };
        words(canvas, "us", ((LEFT + right) / 2, axis + 26), &style)?;
        let style = Style { h: HPos::Left, ..style };
        let meaning =
            "above: its interface sends; below: its thread waits (pale) or computes (grey)";
        words(canvas, meaning, (MARGIN, axis + 48), &style)?;
        legend.draw(canvas, axis + 48 + 24)
    })
}

/// The colour of a step: from blue over green and yellow to red.
fn step_colour(step: u32, n_steps: u32) -> RGBColor {
    const STOPS: [RGBColor; 5] = [
        RGBColor(51, 34, 136),
        RGBColor(0, 114, 178),
        RGBColor(0, 138, 100),
        RGBColor(221, 170, 51),
        RGBColor(204, 51, 17),
    ];
    along(&STOPS, f64::from(step) / f64::from(n_steps.saturating_sub(1).max(1)))
}

fn legend(n_steps: u32) -> Legend {
    let by = n_steps.div_ceil(MOST_NAMED).max(1);
    let named = (0..n_steps).step_by(by as usize);
    Legend(named.map(|step| (step_colour(step, n_steps), format!("step {step}"))).collect())
}

/// Four to ten round numbers from 0 to a time.
fn ticks(until: f64) -> Vec<f64> {
    let mut by = 10f64.powf((until / 4.0).log10().floor());
    by *= [5.0, 2.0, 1.0].into_iter().find(|factor| until / (by * factor) >= 4.0).unwrap_or(1.0);
    (0..).map(|tick| f64::from(tick) * by).take_while(|at| *at <= until).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(ticks(10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(4.1), [0.0, 1.0, 2.0, 3.0, 4.0]);
        for until in [0.013, 0.9, 1.0, 77.0, 12_345.0] {
            assert!((5..=11).contains(&ticks(until).len()), "{until}: {:?}", ticks(until));
        }
    }

    #[test]
    fn every_step_has_a_colour_of_its_own() {
        let colours: std::collections::HashSet<_> =
            (0..40).map(|step| step_colour(step, 40)).map(|RGBColor(r, g, b)| (r, g, b)).collect();
        assert_eq!(colours.len(), 40);
        assert_eq!(step_colour(0, 1), step_colour(0, 9));
        assert!(legend(100).0.len() <= MOST_NAMED as usize);
    }
}
