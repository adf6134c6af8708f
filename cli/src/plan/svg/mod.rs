//! The picture of a plan: the torus, the rank and its exchanges, coloured by lane and labelled by step.
//!
//! Every exchange is a group of class `exchange` with the attributes `data-lane`, `data-peer`, `data-flow` and
//! `data-steps`, so that programs can read the picture.

mod arrows;
mod curve;
mod labels;
mod layout;
mod paint;
mod panels;

use svg::Document;
use svg::node::element::{Group, Rectangle};

use super::Subject;
use crate::error::CliError;
use arrows::Arrow;
use curve::Point;
use layout::{NODE, ShapeDrawing};

/// Space around the torus for wrap-around arrows.
const MARGIN: f64 = 92.0;

/// Height of the heading.
const HEADING: f64 = 66.0;

/// Draws a plan.
///
/// # Errors
/// [`CliError::NotDrawn`] if the shape cannot be drawn legibly.
pub fn draw(subject: &Subject) -> Result<String, CliError> {
    let exchanges = arrows::exchanges(subject);
    let layout = ShapeDrawing::new(&subject.schedule.shape, arrows::largest_bundle(&exchanges))?;
    let arrows = arrows::arrows(subject, &layout, exchanges);
    let (low, high) = extent(&layout, &arrows);
    let legend = panels::legend(subject, &layout, &arrows);
    let timeline = panels::timeline(subject);

    let torus_width = high.x - low.x;
    let body_height = (high.y - low.y).max(legend.height);
    let width = (torus_width + legend.width).max(timeline.width).max(720.0);
    let height = HEADING + body_height + timeline.height;
    // The torus is centred in the space left of the legend.
    let left = (width - legend.width - torus_width) / 2.0;
    let top = HEADING + (body_height - (high.y - low.y)) / 2.0;

    let torus = Group::new()
        .set("transform", paint::translate(Point::new(left - low.x, top - low.y)))
        .add(paint::links(&layout))
        .add(paint::arrows(subject, &arrows))
        .add(paint::nodes(subject, &layout))
        .add(paint::labels(&labels::place(&arrows, &layout)));
    let at =
        |x: f64, y: f64, group: Group| group.set("transform", paint::translate(Point::new(x, y)));
    let document = Document::new()
        .set("viewBox", format!("0 0 {width:.0} {height:.0}"))
        .set("width", format!("{width:.0}"))
        .set("height", format!("{height:.0}"))
        .set("font-family", "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif")
        .add(
            Rectangle::new()
                .set("width", "100%")
                .set("height", "100%")
                .set("fill", paint::BACKGROUND),
        )
        .add(panels::heading(subject))
        .add(torus)
        .add(at(width - legend.width, HEADING + 26.0, legend.group))
        .add(at(0.0, HEADING + body_height, timeline.group));
    Ok(format!("{document}\n"))
}

/// The two corners of the box around the torus and its arrows.
fn extent(layout: &ShapeDrawing, arrows: &[Arrow]) -> (Point, Point) {
    let (mut low, mut high) = layout.bounds();
    let around = if layout.is_circle() { NODE + 34.0 } else { MARGIN };
    (low, high) = (low - Point::new(around, around), high + Point::new(around, around));
    for piece in arrows.iter().flat_map(|arrow| &arrow.pieces) {
        for i in 0..=8 {
            let point = piece.at(f64::from(i) / 8.0);
            low = Point::new(low.x.min(point.x - 24.0), low.y.min(point.y - 24.0));
            high = Point::new(high.x.max(point.x + 24.0), high.y.max(point.y + 24.0));
        }
    }
    (low, high)
}
