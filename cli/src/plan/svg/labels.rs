//! Placement of step labels: on their arrows, clear of other labels and of nodes.

use super::arrows::{Arrow, step_label};
use super::curve::Point;
use super::layout::{NODE, ShapeDrawing};

/// A placed step label.
pub struct StepLabel {
    pub text: String,
    pub lane: usize,
    pub at: Point,
}

/// Width and height of a label.
pub fn size(text: &str) -> (f64, f64) {
    (6.2 * text.chars().count() as f64 + 6.0, 12.6)
}

/// Finds a place for each arrow's label, as near to the arrow's middle as other labels and nodes allow.
///
/// Both ends of an arrow that leaves the picture get a label, since they are far apart.
pub fn place(arrows: &[Arrow], layout: &ShapeDrawing) -> Vec<StepLabel> {
    let nodes: Vec<Point> = layout.coordinates().iter().map(|at| layout.point(at)).collect();
    let mut placed: Vec<StepLabel> = Vec::new();
    for arrow in arrows {
        let text = step_label(&arrow.exchange.steps);
        let last = arrow.pieces.len() - 1;
        for (i, piece) in arrow.pieces.iter().enumerate() {
            if i != 0 && i != last {
                continue; // a piece between two borders needs no label
            }
            let middle = if last > 0 && i == 0 { 0.6 } else { 0.5 };
            let candidates = (0..=40).map(|n| {
                let away = f64::from((n + 1) / 2) * 0.018;
                middle + if n % 2 == 0 { away } else { -away }
            });
            let best = candidates
                .map(|t| {
                    let at = piece.at(t);
                    (at, hidden(&text, at, &placed, &nodes))
                })
                // Of equal candidates the first, which is the nearest to the middle.
                .min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((at, _)) = best {
                placed.push(StepLabel { text: text.clone(), lane: arrow.exchange.lane, at });
            }
        }
    }
    placed
}

/// Area of a label at `at` that overlaps other labels and nodes.
fn hidden(text: &str, at: Point, placed: &[StepLabel], nodes: &[Point]) -> f64 {
    let own = size(text);
    let shared = |other: Point, (width, height): (f64, f64)| {
        let x = (own.0 + width) / 2.0 - (at.x - other.x).abs();
        let y = (own.1 + height) / 2.0 - (at.y - other.y).abs();
        x.max(0.0) * y.max(0.0)
    };
    let labels: f64 = placed.iter().map(|label| shared(label.at, size(&label.text))).sum();
    let nodes: f64 = nodes.iter().map(|&node| shared(node, (2.0 * NODE, 2.0 * NODE))).sum();
    labels + nodes
}
