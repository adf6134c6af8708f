//! Pictures with time from left to right: rows of bars, coloured by step.

use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::cells::decimal;
use crate::error::CliError;
use crate::picture::{FAINT, GRID, Legend, MARGIN, Style, WIDTH, along, fill, picture, words};

const LEFT: i32 = 112;
/// Maximum number of steps in the legend.
const MOST_NAMED: u32 = 12;

/// A bar in a row.
pub struct RowBar {
    /// The row's number.
    pub row: usize,
    /// Start and end in ns.
    pub ns: [f64; 2],
    /// Vertical extent in the row: 0 is the top, 1 the bottom.
    pub part: Range<f64>,
    pub colour: RGBColor,
}

/// A picture of rows of bars.
pub struct Rows {
    pub title: String,
    /// Labels of the rows.
    pub labels: Vec<String>,
    /// The right end of the time axis in ns.
    pub until_ns: f64,
    pub n_steps: u32,
    /// Explanation of rows and colours.
    pub meaning: &'static str,
}

impl Rows {
    /// Draws the picture; later bars cover earlier ones.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn draw(&self, bars: &[RowBar], path: &Path) -> Result<(), CliError> {
        let n_rows = self.labels.len();
        let row_height = (480 / n_rows.max(1) as i32).clamp(9, 36);
        let legend = legend(self.n_steps);
        let rows = row_height * n_rows as i32;
        picture(path, &self.title, rows + 48 + 24 + legend.height(), |canvas, top| {
            let right = WIDTH - 2 * MARGIN;
            let x = |ns: f64| LEFT + (ns / self.until_ns * f64::from(right - LEFT)).round() as i32;
            let axis = top + rows;
            for us in ticks(self.until_ns / 1e3) {
                let x = x(us * 1e3);
                fill(canvas, x..x + 1, top..axis + 4, GRID)?;
                let style = Style { v: VPos::Top, ..Style::default() };
                words(canvas, &decimal(us, 3), (x, axis + 6), &style)?;
            }
            for RowBar { row, ns, part, colour } in bars {
                let y = top + *row as i32 * row_height;
                let at = |part: f64| y + (part * f64::from(row_height)).round() as i32;
                let [from, to] = ns.map(x);
                let (high, low) = (at(part.start), at(part.end));
                // Leaves one line of pixels free between rows.
                let high = if part.start == 0.0 { high + 1 } else { high };
                fill(canvas, from..to.max(from + 1), high..low.max(high + 1), *colour)?;
            }
            // If rows are low, only every few rows have a label.
            let every = (14 + row_height - 1) / row_height;
            for row in (0..n_rows).step_by(every as usize) {
                let y = top + row as i32 * row_height + row_height / 2;
                let style = Style { h: HPos::Right, ..Style::default() };
                words(canvas, &self.labels[row], (LEFT - 8, y), &style)?;
            }
            let style = Style { colour: FAINT, v: VPos::Top, ..Style::default() };
            words(canvas, "us", ((LEFT + right) / 2, axis + 26), &style)?;
            let style = Style { h: HPos::Left, ..style };
            words(canvas, self.meaning, (MARGIN, axis + 48), &style)?;
            legend.draw(canvas, axis + 48 + 24)
        })
    }
}

/// The colour of a step: a scale from blue over green and yellow to red.
pub fn step_colour(step: u32, n_steps: u32) -> RGBColor {
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

/// Five to ten round numbers from 0 up to `until`; 0 alone for a call that takes no time.
fn ticks(until: f64) -> Vec<f64> {
    if until <= 0.0 {
        return vec![0.0];
    }
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
        assert_eq!(ticks(0.0), [0.0]);
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
