//! The prediction of a call whose lanes are trees: its time, breakdown and spans.

use super::times::{CriticalPath, Run, Tree};
use crate::names::LaneId;
use crate::plan::Flow;
use crate::sim::engine::{Costs, OfCall, setup};
use crate::sim::outcome::{Outcome, Span, SpanKind, TimeBreakdown, TimeCategory};
use crate::sim::routed::RoutedPlan;
use crate::sim::speeds::Speeds;
use crate::sim::subtrees::TreesOfLanes;

/// A lane's part of a call; times in ns.
struct LaneRun<'a> {
    tree: Tree<'a>,
    run: Run,
    /// Time before the call's first message, and until the lane's thread has woken up.
    setup: f64,
    wake: f64,
    /// Time for the copies after the last message.
    closing: f64,
}

impl LaneRun<'_> {
    fn end(&self) -> f64 {
        self.run.end + self.closing
    }

    fn later(self, other: Self) -> Self {
        if other.end() >= self.end() { other } else { self }
    }

    /// The slowest path through the lane.
    fn path(&self) -> CriticalPath {
        let mut path =
            vec![(TimeCategory::Setup, self.setup, None), (TimeCategory::Threads, self.wake, None)];
        self.tree.trace(&self.run, &mut path);
        path.push((TimeCategory::Copy, self.closing, None));
        path
    }
}

/// Predicts a call whose lanes are all trees.
pub fn play(
    flow: &dyn Flow,
    routed: &RoutedPlan,
    trees: &TreesOfLanes,
    of_call: OfCall<'_>,
    with_spans: bool,
) -> Outcome {
    let machine = of_call.0;
    let before = setup(flow, routed, of_call);
    let runs = LaneId::first(trees.lanes.len()).zip(&trees.lanes).map(|(lane, trees)| {
        let wake = machine.wake_ns * f64::from(flow.lanes()[lane.index()].port.0);
        let share = routed.whole()[lane.index()].expect("trees are of whole vectors");
        let costs = Costs::of(flow, routed, of_call, lane);
        let tree = Tree::new(costs, machine.speeds(), share, trees);
        let run = tree.run(before + wake);
        let closing = tree.costs.copy_time(routed.work()[lane.index()].closing.copies(of_call.1));
        LaneRun { tree, run, setup: before, wake, closing }
    });
    // A path has a part for each rank on it: only the last lane's is traced, unless spans are requested.
    let mut lanes: Vec<CriticalPath> = match with_spans {
        true => runs.map(|run| run.path()).collect(),
        false => runs.reduce(LaneRun::later).iter().map(LaneRun::path).collect(),
    };
    let ns = |path: &CriticalPath| path.iter().map(|(_, ns, _)| ns).sum::<f64>();
    // The busiest link needs the time for all that it carries, whenever the messages come.
    let busiest = busiest_ns(flow, routed, trees, &machine.speeds()) * of_call.1;
    let last = lanes.iter_mut().max_by(|a, b| ns(a).total_cmp(&ns(b)));
    if let Some(last) = last {
        let (rest, step) = (before + busiest - ns(last), last.last().and_then(|last| last.2));
        last.push((TimeCategory::Congestion, rest.max(0.0), step));
    }
    let last = lanes.iter().max_by(|a, b| ns(a).total_cmp(&ns(b)));
    let mut breakdown = TimeBreakdown::default();
    last.into_iter().flatten().for_each(|&(category, ns, _)| breakdown.add(category, ns));
    let spans = if with_spans { spans(&lanes) } else { Vec::new() };
    Outcome { ns: last.map_or(0.0, ns), breakdown, spans }
}

/// Time of the busiest link for each byte of a call, ns.
pub fn busiest_ns(
    flow: &dyn Flow,
    routed: &RoutedPlan,
    trees: &TreesOfLanes,
    speeds: &Speeds,
) -> f64 {
    let share = routed.whole().first().copied().flatten().unwrap_or(0.0);
    let of_unit = share / f64::from(flow.lanes().first().map_or(1, |lane| lane.part.weight()));
    f64::from(trees.busiest) * of_unit / speeds.link
}

/// The spans of the ports on the slowest path of each lane, as if they were one port.
fn spans(lanes: &[CriticalPath]) -> Vec<Span> {
    let of_lane = |(lane, path): (u32, &CriticalPath)| {
        let mut at = 0.0;
        let span = |&(category, ns, step): &(TimeCategory, f64, Option<u32>)| {
            let (start_ns, end_ns) = (at, at + ns);
            at = end_ns;
            let kind = SpanKind::of(category);
            (ns > 0.0).then_some(Span { rank: 0, lane, step, kind, start_ns, end_ns })
        };
        path.iter().filter_map(span).collect::<Vec<_>>()
    };
    (0..).zip(lanes).flat_map(of_lane).collect()
}
