//! Panels around the torus: heading, legend and the table of steps.

use hopbine_torus::collectives::Action;
use hopbine_torus::plan::Step;
use svg::node::element::{Group, Rectangle, Title};

use super::arrows::{Arrow, FlowDirection};
use super::curve::{Bezier, Point};
use super::layout::ShapeDrawing;
use super::paint::{self, FAINT_INK, INK, NodeStyle, lane_colour};
use crate::plan::Subject;

/// A part of the picture with its size.
pub struct Panel {
    pub group: Group,
    pub width: f64,
    pub height: f64,
}

fn left_text(content: &str, at: Point, size: f64, colour: &str) -> svg::node::element::Text {
    paint::text(content, at, size, colour).set("text-anchor", "start")
}

/// The heading: collective, algorithm, shape, rank and number of steps.
pub fn heading(subject: &Subject) -> Group {
    let (schedule, plan) = (&subject.schedule, &subject.plan);
    let coord = schedule.map.coord_of(&schedule.shape, plan.rank);
    let root = match plan.collective.is_rooted() {
        true => format!(", root {}", plan.root),
        false => String::new(),
    };
    let title = format!("{} by {} on {}", plan.collective, subject.algorithm, schedule.shape);
    let lanes = match plan.lanes.len() {
        1 => "1 lane".to_owned(),
        n => format!("{n} lanes"),
    };
    let subtitle =
        format!("rank {} at {coord}{root}: {lanes}, {} steps", plan.rank, plan.n_steps());
    Group::new()
        .set("class", "heading")
        .add(left_text(&title, Point::new(32.0, 32.0), 20.0, INK).set("font-weight", "bold"))
        .add(left_text(&subtitle, Point::new(32.0, 55.0), 13.0, FAINT_INK))
}

/// Rows of the legend, each a sign and its meaning, from top to bottom.
struct Rows {
    group: Group,
    y: f64,
}

impl Rows {
    fn add(self, sign: Group, meaning: &str, height: f64) -> Self {
        let middle = self.y + height / 2.0;
        let group = self
            .group
            .add(sign.set("transform", paint::translate(Point::new(20.0, middle))))
            .add(left_text(meaning, Point::new(48.0, middle), 12.0, INK));
        Rows { group, y: self.y + height }
    }

    fn remark(self, text: &str) -> Self {
        let at = Point::new(2.0, self.y + 8.0);
        Rows { group: self.group.add(left_text(text, at, 11.0, FAINT_INK)), y: self.y + 16.0 }
    }
}

/// The legend: lanes by colour, and the signs in use. Signs are drawn around the origin.
pub fn legend(subject: &Subject, layout: &ShapeDrawing, arrows: &[Arrow]) -> Panel {
    let centre = Point::new(0.0, 0.0);
    let mut rows = Rows { group: Group::new().set("class", "legend"), y: 0.0 };
    for (lane, lane_plan) in subject.plan.lanes.iter().enumerate() {
        let bar = Rectangle::new()
            .set("x", -17)
            .set("y", -6)
            .set("width", 34)
            .set("height", 12)
            .set("rx", 6)
            .set("fill", lane_colour(lane));
        let n_steps = lane_plan.steps.len();
        rows = rows.add(Group::new().add(bar), &format!("lane {lane}, {n_steps} steps"), 21.0);
    }
    rows.y += 12.0;
    let flows = [
        (FlowDirection::Both, (true, true), "sends and receives"),
        (FlowDirection::Send, (false, true), "sends"),
        (FlowDirection::Recv, (true, false), "receives"),
    ];
    for (flow, heads, meaning) in flows {
        if arrows.iter().any(|arrow| arrow.exchange.flow == flow) {
            let curve = Bezier::bulging(Point::new(-18.0, 0.0), Point::new(18.0, 0.0), 0.0);
            let sign = Group::new().add(paint::line(&curve, heads, flow, FAINT_INK));
            rows = rows.add(sign, meaning, 21.0);
        }
    }
    if !arrows.is_empty() {
        let sign = Group::new().add(paint::label("0 3", centre, FAINT_INK));
        rows = rows.add(sign, "in steps 0 and 3", 21.0);
    }
    rows.y += 8.0;
    rows = rows.add(paint::node("r", centre, NodeStyle::Own, false), "this rank", 38.0);
    if !arrows.is_empty() {
        rows = rows.add(paint::node("r", centre, NodeStyle::Peer, false), "a peer", 38.0);
    }
    if subject.plan.collective.is_rooted() {
        let sign = paint::node("r", centre, NodeStyle::Other, true);
        rows = rows.add(sign, "the root", 42.0);
    }
    rows.y += 8.0;
    for remark in dimension_remarks(layout) {
        rows = rows.remark(&remark);
    }
    if arrows.iter().any(|arrow| arrow.pieces.len() > 1) {
        rows = rows.remark("Arrows that leave at a border");
        rows = rows.remark("return at the opposite one.");
    }
    Panel { group: rows.group, width: 226.0, height: rows.y + 50.0 }
}

/// Direction of each dimension in the picture.
fn dimension_remarks(layout: &ShapeDrawing) -> Vec<String> {
    let ways: &[&str] = match (layout.is_circle(), layout.dims.len()) {
        (true, 0) => &[],
        (true, _) => &["clockwise"],
        (false, 2) => &["downwards", "to the right"],
        (false, _) => &["from plane to plane", "to the front", "to the right"],
    };
    let dims = layout.dims.iter().zip(ways);
    dims.map(|(dim, way)| format!("Dimension {dim} runs {way}.")).collect()
}

/// Maximum number of steps in the table; for longer plans only the text form lists them.
const MAX_TABULATED: usize = 40;

/// The table of steps: a row for each lane, a column for each step, the peer in each cell.
pub fn timeline(subject: &Subject) -> Panel {
    let plan = &subject.plan;
    let n_steps = plan.n_steps();
    let group = Group::new().set("class", "timeline");
    if n_steps == 0 || n_steps > MAX_TABULATED {
        return Panel { group, width: 0.0, height: 24.0 };
    }
    let steps = plan.lanes.iter().flat_map(|lane| &lane.steps);
    let longest = steps.map(|step| cell(step).0.len()).max().unwrap_or(0);
    let (cell_height, left) = (20.0, 92.0);
    let cell_width = (7.0 * longest as f64 + 10.0).max(37.0);
    let middle = |column: usize, row: usize| {
        Point::new(
            left + (column as f64 + 0.5) * (cell_width + 3.0),
            34.0 + (row as f64 + 0.5) * (cell_height + 3.0),
        )
    };
    let heading = Point::new(32.0, 20.0);
    let mut group = group.add(left_text("step", heading, 11.0, FAINT_INK));
    for step in 0..n_steps {
        let at = Point::new(middle(step, 0).x, 20.0);
        group = group.add(paint::text(&step.to_string(), at, 11.0, FAINT_INK));
    }
    for (row, lane) in plan.lanes.iter().enumerate() {
        let at = Point::new(32.0, middle(0, row).y);
        group = group.add(left_text(&format!("lane {row}"), at, 12.0, lane_colour(row)));
        for (column, step) in lane.steps.iter().enumerate() {
            let at = middle(column, row);
            let (content, reduces) = cell(step);
            let colour = lane_colour(row);
            let (fill, ink) = match (content.is_empty(), reduces) {
                (true, _) => (paint::BACKGROUND, INK),
                (false, true) => (colour, "#ffffff"),
                (false, false) => (paint::BACKGROUND, colour),
            };
            let mut rect = Rectangle::new()
                .set("x", at.x - cell_width / 2.0)
                .set("y", at.y - cell_height / 2.0)
                .set("width", cell_width)
                .set("height", cell_height)
                .set("rx", 4)
                .set("fill", fill)
                .set("stroke", colour)
                .set("stroke-width", 1.4);
            if content.is_empty() {
                rect = rect.set("stroke-opacity", 0.25);
            }
            let title = Title::new(format!("lane {row}, step {column}"));
            let shown = paint::text(&content, at, 11.0, ink);
            group = group.add(Group::new().add(rect).add(shown).add(title));
        }
    }
    let y = 34.0 + plan.lanes.len() as f64 * (cell_height + 3.0) + 16.0;
    let remark = "A cell has the peer (from>to for two peers, xN for N). Filled: received data are combined. Outlined: they are stored, or none are received.";
    group = group.add(left_text(remark, Point::new(32.0, y), 10.5, FAINT_INK));
    let width = (left + n_steps as f64 * (cell_width + 3.0) + 32.0).max(860.0);
    Panel { group, width, height: y + 24.0 }
}

/// The peers of a step in a few characters, and whether received data are combined.
fn cell(step: &Step) -> (String, bool) {
    let reduces = !step.recvs.is_empty() && step.action == Action::Reduce;
    let content = match (&step.sends[..], &step.recvs[..]) {
        ([], []) => String::new(),
        ([send], []) => format!(">{}", send.peer),
        ([], [recv]) => format!("{}>", recv.peer),
        ([send], [recv]) if send.peer == recv.peer => send.peer.to_string(),
        ([send], [recv]) => format!("{}>{}", recv.peer, send.peer),
        (sends, recvs) => format!("x{}", sends.len().max(recvs.len())),
    };
    (content, reduces)
}
