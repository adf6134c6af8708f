//! Picture: the best family by size and shape, as a letter and a colour, with its gain over the best other family.

use hopbine_torus::sizes;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::error::CliError;
use crate::picture::{
    FAINT, Legend, MARGIN, Style, WIDTH, between, colour, edge, fill, on, picture, width_of, words,
};
use crate::simulate::heatmap::{Heatmap, Named};

const ROW: i32 = 24;
const LEFT: i32 = 84;
/// Maximum number of columns that are wide enough for a letter.
const MOST_SHAPES: usize = 24;
/// Gain from which on a cell has the full colour of its family.
const FULL: f64 = 2.0;

/// Draws the map: shapes from left to right, sizes upwards.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if there are too many shapes.
pub fn draw(map: &Heatmap<'_>, path: &Path) -> Result<(), CliError> {
    let n_shapes = map.shapes.len();
    if n_shapes > MOST_SHAPES {
        return Err(CliError::Usage(format!(
            "a heatmap of {n_shapes} shapes is not legible: --plot draws {MOST_SHAPES} at most"
        )));
    }
    let width = ((WIDTH - LEFT - MARGIN) / n_shapes as i32).min(110);
    let right = LEFT + width * n_shapes as i32;
    let names: Vec<String> = map.shapes.iter().map(|shape| shape.shape.to_string()).collect();
    let widest = names.iter().map(|name| width_of(name)).max().unwrap_or(0);
    let is_turned = widest > width - 4;
    let below = if is_turned { widest + 12 } else { 22 };
    let name = |family: &Named<'_>| {
        let equals = family.equals.iter().map(|name| format!(" = {name}"));
        format!("{}: {}{}", family.letter, family.name, equals.collect::<String>())
    };
    let legend = map.families.iter().enumerate();
    let legend = Legend(legend.map(|(number, family)| (colour(number), name(family))).collect());
    let rows = ROW * map.sizes.len() as i32;
    let height = rows + below + 22 + 24 + legend.height();
    picture(path, &map.title(), height, |canvas, top| {
        let label = |h, v| Style { h, v, ..Style::default() };
        for (row, &bytes) in map.sizes.iter().rev().enumerate() {
            let y = top + row as i32 * ROW + ROW / 2;
            words(canvas, &sizes::show(bytes), (LEFT - 8, y), &label(HPos::Right, VPos::Center))?;
        }
        for (column, (name, cells)) in names.iter().zip(&map.cells).enumerate() {
            let x = LEFT + column as i32 * width;
            for (row, best) in cells.iter().rev().enumerate() {
                let y = top + row as i32 * ROW;
                let strength = 0.25 + 0.75 * (best.gain.gain.ln() / FULL.ln()).clamp(0.0, 1.0);
                let shade = between(WHITE, colour(best.family), strength);
                fill(canvas, x..x + width, y..y + ROW, shade)?;
                edge(canvas, x..x + width, y..y + ROW, WHITE)?;
                let letter = map.families[best.family].letter;
                let long = format!("{letter} {:.2}", best.gain.gain);
                let text = if width_of(&long) > width { letter.to_string() } else { long };
                let style = Style { colour: on(shade), ..Style::default() };
                words(canvas, &text, (x + width / 2, y + ROW / 2), &style)?;
            }
            let (y, mut style) = (top + rows + 6, label(HPos::Center, VPos::Top));
            if is_turned {
                // The text is rotated by 270 degrees, so its right end is at the top.
                style = Style { turned: true, ..label(HPos::Right, VPos::Center) };
            }
            words(canvas, name, (x + width / 2, y), &style)?;
        }
        let y = top + rows + below;
        let faint = |h| Style { colour: FAINT, h, v: VPos::Top, ..Style::default() };
        words(canvas, "shape of the torus", ((LEFT + right) / 2, y), &faint(HPos::Center))?;
        let turned = Style { colour: FAINT, turned: true, ..Style::default() };
        words(canvas, "bytes", (MARGIN - 4, top + rows / 2), &turned)?;
        let meaning = format!(
            "letter: the best family; number: time of the best other family / its time (full colour from {FULL})"
        );
        words(canvas, &meaning, (MARGIN, y + 22), &faint(HPos::Left))?;
        legend.draw(canvas, y + 22 + 24)
    })
}
