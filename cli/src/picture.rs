//! Common style of pictures: SVG as wide as a page, with an opaque background.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::combinators::LogCoord;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::CliError;
use crate::output::OutputArg;
use hopbine_torus::sizes;

/// Width of a picture and other lengths in pixels.
pub const WIDTH: i32 = 800;
pub const MARGIN: i32 = 16;
const TITLE_LINE: i32 = 20;
const LEGEND_LINE: i32 = 18;
/// Upper bound of the mean width of a letter in common fonts, as a fraction of the font size.
const LETTER: f64 = 0.52;
/// Font sizes of texts and of titles in pixels.
pub const FONT: i32 = 13;
const TITLE: i32 = 16;

pub const INK: RGBColor = RGBColor(31, 41, 51);
pub const FAINT: RGBColor = RGBColor(97, 110, 124);
pub const GRID: RGBColor = RGBColor(221, 226, 231);

/// Colours that are easy to distinguish (after the sets of Paul Tol and of Okabe and Ito).
const COLOURS: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 138, 100),
    RGBColor(176, 80, 140),
    RGBColor(176, 125, 0),
    RGBColor(21, 165, 201),
    RGBColor(136, 34, 85),
    RGBColor(102, 102, 102),
    RGBColor(51, 34, 136),
    RGBColor(153, 153, 51),
    RGBColor(204, 102, 119),
    RGBColor(17, 119, 51),
];

/// The colour of curve `number`.
pub fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

/// Interpolates two colours: `a` at 0, `b` at 1.
pub fn between(a: RGBColor, b: RGBColor, at: f64) -> RGBColor {
    let mix =
        |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * at.clamp(0.0, 1.0)) as u8;
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Interpolates a scale of colours: the first at 0, the last at 1.
pub fn along(stops: &[RGBColor], at: f64) -> RGBColor {
    let at = at.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let low = (at as usize).min(stops.len() - 2);
    between(stops[low], stops[low + 1], at - low as f64)
}

/// The text colour, dark or white, that is more legible on a colour.
pub fn on(RGBColor(r, g, b): RGBColor) -> RGBColor {
    let light = 0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b);
    if light > 150.0 { INK } else { WHITE }
}

pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub type Drawn = Result<(), Box<dyn Error>>;

/// Writes a picture with a title and an area of `height` pixels below it, which `draw` fills; `draw` gets the first
/// pixel row of the area.
///
/// # Errors
/// [`CliError::Write`], or the [`CliError`] of `draw`.
pub fn picture(
    path: &Path,
    title: &str,
    height: i32,
    draw: impl FnOnce(&Canvas<'_>, i32) -> Drawn,
) -> Result<(), CliError> {
    let lines =
        balanced(title, ((WIDTH - 2 * MARGIN) as f64 / (f64::from(TITLE) * LETTER)) as usize);
    let top = MARGIN + lines.len() as i32 * TITLE_LINE + 6;
    let size = (WIDTH as u32, (top + height + MARGIN) as u32);
    let mut text = String::new();
    let drawn = || -> Drawn {
        let canvas = SVGBackend::with_string(&mut text, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        for (row, line) in lines.iter().enumerate() {
            let at = (WIDTH / 2, MARGIN + row as i32 * TITLE_LINE);
            words(&canvas, line, at, &Style { size: TITLE, v: VPos::Top, ..Style::default() })?;
        }
        draw(&canvas, top)?;
        Ok(canvas.present()?)
    };
    drawn()
        .map_err(|error| *error.downcast::<CliError>().expect("a picture in memory cannot fail"))?;
    OutputArg::to(path).write(&text)
}

/// Breaks a text below a picture into lines that fit its width.
pub fn note_lines(text: &str) -> Vec<String> {
    wrapped(text, (f64::from(WIDTH - 2 * MARGIN) / (f64::from(FONT) * LETTER)) as usize)
}

/// Breaks a text into the smallest possible number of lines of at most `letters` letters, with the lines as equal as
/// possible.
fn balanced(text: &str, letters: usize) -> Vec<String> {
    let fewest = wrapped(text, letters).len();
    let mut narrower = (1..=letters).map(|letters| wrapped(text, letters));
    narrower.find(|lines| lines.len() <= fewest).unwrap_or_default()
}

/// Breaks a text into lines of at most `letters` letters; only words longer than this exceed the limit.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("a line");
        if !line.is_empty() && line.len() + 1 + word.len() > letters {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines
}

/// Style and alignment of a text.
pub struct Style {
    pub size: i32,
    pub colour: RGBColor,
    pub h: HPos,
    pub v: VPos,
    /// Rotated, so that it reads upwards.
    pub turned: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style { size: FONT, colour: INK, h: HPos::Center, v: VPos::Center, turned: false }
    }
}

/// Writes a text.
pub fn words(canvas: &Canvas<'_>, text: &str, at: (i32, i32), style: &Style) -> Drawn {
    let turn = if style.turned { FontTransform::Rotate270 } else { FontTransform::None };
    let font = ("sans-serif", style.size).into_font().transform(turn).color(&style.colour);
    Ok(canvas.draw(&Text::new(text.to_owned(), at, font.pos(Pos::new(style.h, style.v))))?)
}

/// Upper bound of the width of a text in pixels.
pub fn width_of(text: &str) -> i32 {
    (text.chars().count() as f64 * f64::from(FONT) * LETTER).ceil() as i32
}

/// The text, cut if it is wider than `room` pixels.
pub fn cut(text: &str, room: i32) -> String {
    let most = (f64::from(room) / (f64::from(FONT) * LETTER)) as usize;
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(3)).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

/// A filled rectangle.
pub fn fill(canvas: &Canvas<'_>, x: Range<i32>, y: Range<i32>, colour: RGBColor) -> Drawn {
    Ok(canvas.draw(&Rectangle::new([(x.start, y.start), (x.end, y.end)], colour.filled()))?)
}

/// The outline of a rectangle.
pub fn edge(canvas: &Canvas<'_>, x: Range<i32>, y: Range<i32>, colour: RGBColor) -> Drawn {
    Ok(canvas.draw(&Rectangle::new([(x.start, y.start), (x.end, y.end)], colour))?)
}

/// A legend: colours with their names, in columns.
pub struct Legend(pub Vec<(RGBColor, String)>);

impl Legend {
    fn columns(&self) -> i32 {
        let widest = self.0.iter().map(|(_, name)| width_of(name)).max().unwrap_or(0);
        ((WIDTH - 2 * MARGIN) / (widest + 36)).clamp(1, self.0.len().max(1) as i32)
    }

    /// Height in pixels.
    pub fn height(&self) -> i32 {
        (self.0.len() as i32 + self.columns() - 1) / self.columns() * LEGEND_LINE
    }

    /// Draws the legend from pixel row `top` on. Names that are too long are cut.
    pub fn draw(&self, canvas: &Canvas<'_>, top: i32) -> Drawn {
        let columns = self.columns();
        let width = (WIDTH - 2 * MARGIN) / columns;
        for (number, (colour, name)) in self.0.iter().enumerate() {
            let (column, row) = (number as i32 % columns, number as i32 / columns);
            let (x, y) = (MARGIN + column * width, top + row * LEGEND_LINE + LEGEND_LINE / 2);
            fill(canvas, x..x + 18, y - 5..y + 5, *colour)?;
            let style = Style { h: HPos::Left, ..Style::default() };
            words(canvas, &cut(name, width - 28), (x + 24, y), &style)?;
        }
        Ok(())
    }
}

/// Draws a bar of colours from 0 to 1, with labels at both ends.
pub fn colour_bar(
    canvas: &Canvas<'_>,
    top: i32,
    meaning: &str,
    [low, high]: [&str; 2],
    colour: impl Fn(f64) -> RGBColor,
) -> Drawn {
    let right = WIDTH - MARGIN - width_of(high) - 6;
    let left = right - 160;
    for x in 0..80 {
        fill(
            canvas,
            left + 2 * x..left + 2 * x + 2,
            top + 3..top + 15,
            colour(f64::from(x) / 79.0),
        )?;
    }
    let text = format!("{meaning}: {low}");
    let style = |h| Style { h, ..Style::default() };
    words(canvas, &text, (left - 6, top + 9), &style(HPos::Right))?;
    words(canvas, high, (right + 6, top + 9), &style(HPos::Left))
}

/// Whether a logarithmic axis has a place for the value. The time of a call that sends nothing may be 0, and its
/// goodput infinite.
pub fn has_place(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// The range of a logarithmic axis for the values that have a place on it, extended by the factors `low` and `high`.
///
/// # Errors
/// [`CliError::Usage`] if there are none.
pub fn log_range(
    values: impl Iterator<Item = f64>,
    low: f64,
    high: f64,
) -> Result<Range<f64>, CliError> {
    let ends = values.filter(|&value| has_place(value)).map(|value| (value, value));
    let ends = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).ok_or_else(|| {
        CliError::Usage("--plot: nothing to draw, no value is finite and above 0".to_owned())
    })?;
    Ok(ends.0 * low..ends.1 * high)
}

/// Height of a chart in pixels.
pub const CHART: i32 = 420;

/// A chart with two logarithmic axes.
pub type Chart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<LogCoord<f64>, LogCoord<f64>>>;

/// A logarithmic axis.
pub struct LogAxis<'a> {
    /// Smallest and largest value.
    pub range: Range<f64>,
    /// Label of the axis.
    pub meaning: &'a str,
    /// Grid lines are at integer powers of this base.
    pub base: f64,
    /// Formats a number; `None` for neither grid lines nor numbers.
    pub number: Option<&'a dyn Fn(&f64) -> String>,
}

/// Draws two logarithmic axes, `height` pixels high, from pixel row `top` on.
///
/// # Errors
/// The errors of the drawing library.
pub fn log_log<'a, 'b>(
    canvas: &Canvas<'b>,
    (top, height): (i32, i32),
    x: LogAxis<'_>,
    y: LogAxis<'_>,
) -> Result<Chart<'a, 'b>, Box<dyn Error>>
where
    'b: 'a,
{
    let area = canvas.clone().shrink((0, top), (WIDTH as u32, height as u32));
    let scale = |axis: &LogAxis<'_>| axis.range.clone().log_scale().base(axis.base);
    let mut chart = ChartBuilder::on(&area)
        .margin_left(MARGIN)
        .margin_right(2 * MARGIN)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(scale(&x), scale(&y))?;
    let mut mesh = chart.configure_mesh();
    mesh.label_style(("sans-serif", FONT))
        .light_line_style(WHITE)
        .bold_line_style(GRID)
        .x_desc(x.meaning)
        .y_desc(y.meaning)
        .x_labels(10);
    if y.number.is_none() {
        mesh.disable_y_mesh().y_labels(0);
    }
    let none = |_: &f64| String::new();
    mesh.x_label_formatter(x.number.unwrap_or(&none))
        .y_label_formatter(y.number.unwrap_or(&none))
        .draw()?;
    Ok(chart)
}

/// Draws axes for values against sizes, from pixel row `top` on. With `has_rows`, the value axis has grid lines and
/// numbers at integer powers of ten.
///
/// # Errors
/// The errors of the drawing library.
pub fn against_size<'a, 'b>(
    canvas: &Canvas<'b>,
    top: i32,
    [x, y]: [Range<f64>; 2],
    meaning: &str,
    has_rows: bool,
) -> Result<Chart<'a, 'b>, Box<dyn Error>>
where
    'b: 'a,
{
    let bytes = |bytes: &f64| sizes::show(bytes.round() as u64);
    let x = LogAxis { range: x, meaning: "bytes", base: 2.0, number: Some(&bytes) };
    let number = has_rows.then_some(&axis_number as &dyn Fn(&f64) -> String);
    log_log(canvas, (top, CHART), x, LogAxis { range: y, meaning, base: 10.0, number })
}

/// Formats a number of an axis with few digits and no trailing zeros.
pub fn axis_number(value: &f64) -> String {
    crate::cells::decimal(*value, if *value < 0.1 { 6 } else { 2 })
}

/// The error of a picture that needs a range of sizes.
pub fn needs_sizes() -> CliError {
    CliError::Usage("--plot needs a range of sizes above 0, such as --bytes 32..512MiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("seventeen letters", 4), ["seventeen", "letters"]);
        assert_eq!(balanced("one two three four", 17), ["one two", "three four"]);
        assert_eq!(balanced("one two", 17), ["one two"]);
        assert_eq!(balanced("seventeen letters", 4), ["seventeen", "letters"]);
    }

    #[test]
    fn text_is_read_on_every_colour() {
        assert_eq!(on(RGBColor(0, 0, 60)), WHITE);
        assert_eq!(on(RGBColor(250, 240, 200)), INK);
        assert_eq!(between(BLACK, WHITE, 2.0), WHITE);
    }
}
