//! SVG elements of the torus: links, nodes, arrows, labels.

use hopbine_torus::Rank;
use hopbine_torus::geometry::AxisLink;
use svg::node::element::path::Data;
use svg::node::element::{Circle, Group, Line, Path, Rectangle, Text, Title};

use super::arrows::{Arrow, FlowDirection, PeerExchange};
use super::curve::{Bezier, Point};
use super::labels::{self, StepLabel};
use super::layout::{NODE, ShapeDrawing};
use crate::plan::Subject;

/// Colour of the background.
pub const BACKGROUND: &str = "#ffffff";
/// Colour of text and of the rank's own node.
pub const INK: &str = "#1f2933";
/// Colour of secondary text.
pub const FAINT_INK: &str = "#616e7c";
/// Colour of links.
const LINK: &str = "#d5dbe1";

/// One colour per lane: the set of Okabe and Ito, which is distinguishable with red-green colour blindness, darkened
/// where white text is on it.
const LANES: [&str; 6] = ["#0072b2", "#d55e00", "#008a64", "#b0508c", "#b07d00", "#15a5c9"];

/// The colour of a lane.
pub fn lane_colour(lane: usize) -> &'static str {
    LANES[lane % LANES.len()]
}

/// A transformation that translates by a vector.
pub fn translate(by: Point) -> String {
    format!("translate({:.1} {:.1})", by.x, by.y)
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A text centred at a point.
pub fn text(content: &str, at: Point, size: f64, colour: &str) -> Text {
    Text::new(content)
        .set("x", rounded(at.x))
        // The middle of digits and capitals is above the middle of the line.
        .set("y", rounded(at.y + 0.36 * size))
        .set("font-size", size)
        .set("text-anchor", "middle")
        .set("fill", colour)
}

/// All links; wrap-around links are short stubs beyond the border.
pub fn links(layout: &ShapeDrawing) -> Group {
    let mut group = Group::new()
        .set("class", "links")
        .set("stroke", LINK)
        .set("stroke-width", 1.6)
        .set("fill", "none");
    let line = |a: Point, b: Point| {
        Line::new()
            .set("x1", rounded(a.x))
            .set("y1", rounded(a.y))
            .set("x2", rounded(b.x))
            .set("y2", rounded(b.y))
    };
    for at in layout.coordinates() {
        let here = layout.point(&at);
        for (k, axis) in layout.axes().iter().enumerate() {
            let mut next = at.clone();
            next[k] += 1;
            let is_last = next[k] == i64::from(axis.size);
            if !is_last {
                group = group.add(line(here, layout.point(&next)));
            } else if axis.link == AxisLink::Torus && layout.is_circle() {
                if axis.size > 2 {
                    group = group.add(line(here, layout.point(&next)));
                }
            } else if axis.link == AxisLink::Torus {
                let step = layout.step(k);
                let stub = step.unit() * (0.36 * step.length()).min(48.0);
                let mut first = at.clone();
                first[k] = 0;
                let first = layout.point(&first);
                let dashed = |a, b| line(a, b).set("stroke-dasharray", "3 3");
                group = group.add(dashed(here, here + stub)).add(dashed(first, first - stub));
            }
        }
    }
    group
}

/// All nodes with their ranks; the rank itself, the root and the peers are highlighted.
pub fn nodes(subject: &Subject, layout: &ShapeDrawing) -> Group {
    let (schedule, plan) = (&subject.schedule, &subject.plan);
    let is_peer = |rank| {
        let steps = plan.lanes.iter().flat_map(|lane| &lane.steps);
        steps.into_iter().any(|step| {
            step.sends.iter().any(|send| send.peer == rank)
                || step.recvs.iter().any(|recv| recv.peer == rank)
        })
    };
    let mut group = Group::new().set("class", "nodes");
    for rank in Rank::first(plan.n_ranks) {
        let coord = schedule.map.coord_of(&schedule.shape, rank);
        let at = layout.point(&layout.components(coord));
        let style = if rank == plan.rank {
            NodeStyle::Own
        } else if is_peer(rank) {
            NodeStyle::Peer
        } else {
            NodeStyle::Other
        };
        let is_root = plan.collective.is_rooted() && rank == plan.root;
        let shown = node(&rank.to_string(), at, style, is_root)
            .add(Title::new(format!("rank {rank} at {coord}")));
        group = group.add(shown);
    }
    group
}

/// Style of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStyle {
    Own,
    Peer,
    Other,
}

/// One node.
pub fn node(name: &str, at: Point, style: NodeStyle, is_root: bool) -> Group {
    let (fill, stroke, ink, width) = match style {
        NodeStyle::Own => (INK, INK, "#ffffff", 2.0),
        NodeStyle::Peer => ("#eaf0f6", "#52606d", INK, 1.6),
        NodeStyle::Other => ("#ffffff", "#c3ccd5", "#9aa5b1", 1.2),
    };
    let circle = |radius: f64| {
        Circle::new().set("cx", rounded(at.x)).set("cy", rounded(at.y)).set("r", radius)
    };
    let mut group = Group::new().set("class", "node");
    if is_root {
        let ring = circle(NODE + 4.0).set("fill", "none").set("stroke", INK);
        group = group.add(ring.set("stroke-width", 1.4));
    }
    let size = if name.len() > 2 { 11.0 } else { 12.5 };
    group
        .add(circle(NODE).set("fill", fill).set("stroke", stroke).set("stroke-width", width))
        .add(text(name, at, size, ink).set("font-weight", "bold"))
}

/// All arrows.
pub fn arrows(subject: &Subject, arrows: &[Arrow]) -> Group {
    let mut group = Group::new().set("class", "arrows");
    for arrow in arrows {
        let PeerExchange { lane, peer, flow, steps } = &arrow.exchange;
        let numbers: Vec<String> = steps.iter().map(usize::to_string).collect();
        let coord = subject.schedule.map.coord_of(&subject.schedule.shape, *peer);
        let what = match flow {
            FlowDirection::Both => "exchange with",
            FlowDirection::Send => "send to",
            FlowDirection::Recv => "receive from",
        };
        let title = format!(
            "lane {lane}, step{} {}: {what} rank {peer} at {coord}",
            if steps.len() == 1 { "" } else { "s" },
            numbers.join(", ")
        );
        let mut shown = Group::new()
            .set("class", "exchange")
            .set("data-lane", *lane)
            .set("data-peer", peer.0)
            .set("data-flow", flow.name())
            .set("data-steps", numbers.join(" "))
            .add(Title::new(title));
        let n = arrow.pieces.len();
        for (i, piece) in arrow.pieces.iter().enumerate() {
            let heads = (
                *flow != FlowDirection::Send && i == 0,
                *flow != FlowDirection::Recv && i == n - 1,
            );
            shown = shown.add(line(piece, heads, *flow, lane_colour(*lane)));
        }
        group = group.add(shown);
    }
    group
}

const HEAD: f64 = 8.5;

/// A piece of an arrow, with heads at its start, its end, both or neither.
pub fn line(curve: &Bezier, heads: (bool, bool), flow: FlowDirection, colour: &str) -> Group {
    let length = (curve.end - curve.start).length().max(1.0);
    let cut = (0.7 * HEAD / length).min(0.4);
    let from = if heads.0 { cut } else { 0.0 };
    let to = if heads.1 { 1.0 - cut } else { 1.0 };
    let shaft = curve.part(from, to);
    let pair = |point: Point| (rounded(point.x) as f32, rounded(point.y) as f32);
    let (control, end) = (pair(shaft.control), pair(shaft.end));
    let data = Data::new()
        .move_to(pair(shaft.start))
        .quadratic_curve_to((control.0, control.1, end.0, end.1));
    let mut path =
        Path::new().set("d", data).set("fill", "none").set("stroke", colour).set("stroke-width", 2);
    if flow == FlowDirection::Recv {
        path = path.set("stroke-dasharray", "6 3");
    }
    let mut group = Group::new().add(path);
    let head = |tip: Point, towards: Point| {
        let back = tip - towards * HEAD;
        let side = towards.normal() * (0.42 * HEAD);
        let data = Data::new()
            .move_to(pair(tip))
            .line_to(pair(back + side))
            .line_to(pair(back - side))
            .close();
        Path::new().set("d", data).set("fill", colour)
    };
    if heads.0 {
        group = group.add(head(curve.start, curve.direction(0.0) * -1.0));
    }
    if heads.1 {
        group = group.add(head(curve.end, curve.direction(1.0)));
    }
    group
}

/// The step labels, above everything else.
pub fn labels(labels: &[StepLabel]) -> Group {
    let group = Group::new().set("class", "labels");
    labels.iter().fold(group, |group, StepLabel { text, lane, at }| {
        group.add(label(text, *at, lane_colour(*lane)))
    })
}

/// A label: white text on the lane's colour.
pub fn label(content: &str, at: Point, colour: &str) -> Group {
    let (width, height) = labels::size(content);
    let pill = Rectangle::new()
        .set("x", rounded(at.x - width / 2.0))
        .set("y", rounded(at.y - height / 2.0))
        .set("width", rounded(width))
        .set("height", height)
        .set("rx", height / 2.0)
        .set("fill", colour)
        .set("stroke", BACKGROUND)
        .set("stroke-width", 1);
    Group::new().add(pill).add(text(content, at, 9.5, "#ffffff").set("font-weight", "bold"))
}
