//! Converts the exchanges of a plan to arrows that do not hide one another.

use std::collections::BTreeMap;

use hopbine_torus::Rank;

use super::curve::{Bezier, Point};
use super::layout::{NODE, ShapeDrawing};
use crate::plan::Subject;

/// Direction of the data between the rank and a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowDirection {
    Both,
    Send,
    Recv,
}

impl FlowDirection {
    /// Name of the direction in the picture's data attributes.
    pub fn name(self) -> &'static str {
        match self {
            FlowDirection::Both => "both",
            FlowDirection::Send => "send",
            FlowDirection::Recv => "recv",
        }
    }
}

/// All steps in which a lane exchanges with one peer in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerExchange {
    pub lane: usize,
    pub peer: Rank,
    pub flow: FlowDirection,
    pub steps: Vec<usize>,
}

/// An exchange with its curve from the rank to the peer. A curve that leaves the picture on one side and returns on
/// the other has several pieces.
pub struct Arrow {
    pub exchange: PeerExchange,
    pub pieces: Vec<Bezier>,
}

/// The exchanges of a plan, by lane and peer.
pub fn exchanges(subject: &Subject) -> Vec<PeerExchange> {
    let mut steps: BTreeMap<(usize, Rank, FlowDirection), Vec<usize>> = BTreeMap::new();
    for (lane, lane_plan) in subject.plan.lanes.iter().enumerate() {
        for (number, step) in lane_plan.steps.iter().enumerate() {
            let mut note = |peer, flow| steps.entry((lane, peer, flow)).or_default().push(number);
            for send in &step.sends {
                let is_both = step.recvs.iter().any(|recv| recv.peer == send.peer);
                note(send.peer, if is_both { FlowDirection::Both } else { FlowDirection::Send });
            }
            for recv in &step.recvs {
                if !step.sends.iter().any(|send| send.peer == recv.peer) {
                    note(recv.peer, FlowDirection::Recv);
                }
            }
        }
    }
    steps
        .into_iter()
        .map(|((lane, peer, flow), steps)| PeerExchange { lane, peer, flow, steps })
        .collect()
}

/// The largest number of exchanges with one peer.
pub fn largest_bundle(exchanges: &[PeerExchange]) -> usize {
    let mut counts: BTreeMap<Rank, usize> = BTreeMap::new();
    exchanges.iter().for_each(|exchange| *counts.entry(exchange.peer).or_default() += 1);
    counts.into_values().max().unwrap_or(0)
}

/// Formats step numbers compactly: `0 3-5`.
pub fn step_label(steps: &[usize]) -> String {
    let runs = steps.chunk_by(|a, b| a + 1 == *b);
    let texts = runs.map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] if last - first == 1 => format!("{first} {last}"),
        [first, .., last] => format!("{first}\u{2013}{last}"),
        [] => String::new(),
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// Largest distance between the middles of neighbouring arrows.
const LANE: f64 = 15.0;

/// Distance beyond the border at which an arrow that leaves the picture ends.
const BEYOND: f64 = 92.0;

/// The arrows of a plan.
pub fn arrows(
    subject: &Subject,
    layout: &ShapeDrawing,
    exchanges: Vec<PeerExchange>,
) -> Vec<Arrow> {
    let (shape, map) = (&subject.schedule.shape, &subject.schedule.map);
    let here = layout.components(map.coord_of(shape, subject.plan.rank));
    // A bundle consists of all exchanges with the same displacement.
    let mut bundles: BTreeMap<Vec<i64>, Vec<PeerExchange>> = BTreeMap::new();
    for exchange in exchanges {
        let there = layout.components(map.coord_of(shape, exchange.peer));
        let by = (0..here.len()).map(|k| layout.offset(k, here[k], there[k])).collect();
        bundles.entry(by).or_default().push(exchange);
    }
    // Short bundles first: longer ones in the same direction go around them.
    let mut bundles: Vec<_> = bundles.into_iter().collect();
    bundles.sort_by_key(|(by, _)| by.iter().map(|b| b.unsigned_abs()).sum::<u64>());
    let mut reach: BTreeMap<Vec<i64>, f64> = BTreeMap::new();
    let mut arrows = Vec::new();
    for (by, bundle) in bundles {
        let hops = by.iter().fold(0, |divisor, b| gcd(divisor, b.unsigned_abs())).max(1);
        let direction: Vec<i64> = by.iter().map(|b| b / hops as i64).collect();
        let chord = layout.point(&by) - layout.point(&vec![0; by.len()]);
        let hop = chord.length() / hops as f64;
        let lane = layout.widest_lane(bundle.len(), hop).min(LANE);
        let inner = reach.get(&direction).copied();
        let bulges = if layout.is_circle() || hops == 1 {
            centred(bundle.len(), lane)
        } else {
            beside(bundle.len(), lane, clearance(hops).max(inner.map_or(0.0, |r| r + LANE)))
        };
        let outermost = bulges.iter().fold(0.0, |most: f64, b| most.max(b.abs()));
        reach.insert(direction, inner.map_or(outermost, |r| r.max(outermost)));
        for (exchange, bulge) in bundle.into_iter().zip(bulges) {
            arrows.push(arrow(exchange, layout, &here, &by, bulge));
        }
    }
    arrows
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Bulges on both sides of the chord, the middle one on it.
fn centred(count: usize, lane: f64) -> Vec<f64> {
    (0..count).map(|i| (i as f64 - (count - 1) as f64 / 2.0) * lane).collect()
}

/// Bulges on both sides of the chord, at a distance of at least `clear`.
fn beside(count: usize, lane: f64, clear: f64) -> Vec<f64> {
    let side = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
    (0..count).map(|i| side(i) * (clear + (i / 2) as f64 * lane)).collect()
}

/// The bulge with which an arrow over `hops` hops passes the first node on its way.
fn clearance(hops: u64) -> f64 {
    let t = 1.0 / hops as f64;
    ((NODE + 9.0) / (4.0 * t * (1.0 - t))).min(90.0)
}

fn arrow(
    exchange: PeerExchange,
    layout: &ShapeDrawing,
    here: &[i64],
    by: &[i64],
    bulge: f64,
) -> Arrow {
    let there: Vec<i64> = here.iter().zip(by).map(|(a, b)| a + b).collect();
    let is_inside = |k: usize| (0..i64::from(layout.axes()[k].size)).contains(&there[k]);
    let leaves = !layout.is_circle() && !(0..by.len()).all(is_inside);
    let (start, end) = (layout.point(here), layout.point(&there));
    if leaves && by.iter().map(|b| b.unsigned_abs()).sum::<u64>() == 1 {
        return around(exchange, layout, (start, end), &there, bulge);
    }
    let whole = Bezier::bulging(start, end, bulge);
    // Leaves room for the arrow heads.
    let gap = NODE + 3.0;
    let (first, last) = (whole.leaves(gap), 1.0 - whole.reversed().leaves(gap));
    // For each crossing of a border: the parameters at which the curve leaves and returns, and the displacement
    // between.
    let mut crossings: Vec<(f64, f64, Point)> = Vec::new();
    if leaves {
        for (k, axis) in layout.axes().iter().enumerate() {
            let size = i64::from(axis.size);
            if is_inside(k) {
                continue;
            }
            let beyond = (BEYOND * layout.scale / layout.step(k).length()).min(0.8);
            // The last coordinate before the border, and the sign of the direction outwards.
            let (last, way) = if there[k] < 0 { (0.0, -1.0) } else { (size as f64 - 1.0, 1.0) };
            let parameter = |at: f64| (at - here[k] as f64) / by[k] as f64;
            let (out, back) = (last + way * beyond, last + way * (1.0 - beyond));
            let jump = layout.step(k) * (-way * size as f64);
            crossings.push((parameter(out), parameter(back), jump));
        }
        crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let mut pieces = Vec::new();
    let mut shift = Point::new(0.0, 0.0);
    let mut from = first;
    for (out, back, jump) in crossings {
        if out > from {
            pieces.push(whole.part(from, out).shifted(shift));
        }
        from = from.max(back);
        shift = shift + jump;
    }
    pieces.push(whole.part(from, last.max(from)).shifted(shift));
    Arrow { exchange, pieces }
}

/// The arrow to the neighbour across the border: two stubs whose length does not depend on the distance between
/// neighbours, so that the arrows of a bundle can be distinguished.
fn around(
    exchange: PeerExchange,
    layout: &ShapeDrawing,
    (start, end): (Point, Point),
    there: &[i64],
    bulge: f64,
) -> Arrow {
    let inside: Vec<i64> = there
        .iter()
        .zip(layout.axes())
        .map(|(&at, axis)| at.rem_euclid(i64::from(axis.size)))
        .collect();
    let way = (end - start).unit() * (2.0 * BEYOND * layout.scale);
    let whole = Bezier::bulging(start, start + way, bulge);
    let gap = NODE + 3.0;
    let (first, last) = (whole.leaves(gap), 1.0 - whole.reversed().leaves(gap));
    let jump = layout.point(&inside) - (start + way);
    Arrow { exchange, pieces: vec![whole.part(first, 0.5), whole.part(0.5, last).shifted(jump)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_labels_are_short() {
        for (steps, expected) in [
            (vec![3], "3"),
            (vec![0, 11], "0 11"),
            (vec![2, 3], "2 3"),
            (vec![0, 1, 2, 3, 7], "0\u{2013}3 7"),
        ] {
            assert_eq!(step_label(&steps), expected);
        }
    }

    #[test]
    fn arrows_of_a_bundle_are_apart() {
        for bulges in [centred(6, LANE), beside(5, LANE, 30.0)] {
            for (i, a) in bulges.iter().enumerate() {
                assert!(bulges[..i].iter().all(|b| (a - b).abs() >= LANE - 1e-9), "{bulges:?}");
            }
        }
    }
}
