//! Routed plans that follow one rank of each class of ranks that do the same.
//!
//! On rings of links a step that looks the same from every p-th coordinate of a dimension looks the same from all
//! ranks whose coordinates differ by multiples of p. These ranks are a class, and so are their links. One rank of
//! each class is followed, over one link of each class. If a message crosses m links of a class, each link of this
//! class carries m messages of the sender's class. All ranks of a class do the same at the same time, so the result
//! is that of following all ranks.

use smallvec::SmallVec;

use super::network::Network;
use super::routed::{ResourceId, RoutedPlan, RoutedStep, Transit};
use crate::geometry::{Coord, Shape, Vertex};
use crate::names::{LaneId, Rank, StepId};
use crate::plan::{Expansion, Flow, LineStep, Plan, StepView, n_positions};

/// The most classes that are followed.
const MOST_CLASSES: u32 = 64;
/// The most messages of all classes together.
const MOST_MESSAGES: u64 = 10_000;

/// Classes of coordinates.
struct Classes<'a> {
    shape: &'a Shape,
    /// By dimension, the number of coordinates after which classes repeat.
    periods: SmallVec<[u32; 8]>,
    /// Classes of the ranks on a node; `alike_on_node` ranks are of each class.
    on_node: u32,
    alike_on_node: f32,
}

impl RoutedPlan {
    /// Follows one rank of each class; `None` if some step has no such symmetry, or if there are too many classes.
    /// `place` is the vertex of a rank, `share` a position's share of n, by lane.
    pub(super) fn of_classes(
        flow: &Expansion,
        network: &Network,
        place: &dyn Fn(Rank) -> Vertex,
        share: impl Fn(LaneId) -> f64,
    ) -> Option<Self> {
        let classes = Classes::of(flow, network)?;
        let n_classes = classes.n();
        let mut routed = RoutedPlan::empty(flow, n_classes);
        let n_linked = network.n_linked();
        let n_nodes = classes.node(n_classes) as usize;
        let n_links = n_nodes * 2 * n_linked;
        routed.number(n_links, n_nodes, network.per_node() > 1);
        let mut rank_on = vec![Rank(0); flow.n_ranks() as usize];
        Rank::first(flow.n_ranks()).for_each(|rank| rank_on[place(rank).index()] = rank);
        // The messages of the first rank of each class, in the order in which it posts them.
        let starts: Vec<_> = (0..n_classes).map(|class| classes.coordinates(class)).collect();
        let plan = |&at: &Coord| flow.plan(rank_on[classes.shape.vertex(at).index()]);
        let plans: Vec<Plan> = starts.iter().map(plan).collect();
        for (lane, header) in LaneId::first(flow.lanes().len()).zip(flow.lanes()) {
            for step in StepId::first(header.n_steps) {
                let mut messages = Vec::new();
                for (from, plan) in (0..).zip(&plans) {
                    for send in &plan.lanes[lane.index()].steps[step.index()].sends {
                        let target = classes.shape.coord(place(send.peer));
                        let (links, hops) = classes.route(starts[from as usize], target, n_linked);
                        let start = routed.paths.len() as u32;
                        routed.paths.extend(links);
                        let to = classes.class(target);
                        let nodes = [from, to].map(|class| classes.node(class));
                        let (hops_of, alike) = ([hops, 0], classes.alike_on_node);
                        let ends = routed.at_ends(hops_of, nodes, [send.port; 2], alike);
                        routed.paths.extend(ends);
                        let path = start..routed.paths.len() as u32;
                        let share = n_positions(&send.runs) as f64 * share(lane);
                        let port = send.port;
                        messages.push(Transit { from, to, port, share, hops: [hops, 0], path });
                    }
                }
                routed.push(flow, lane, step, RoutedStep::new(messages, n_classes));
            }
        }
        Some(routed)
    }
}

impl<'a> Classes<'a> {
    fn of(flow: &Expansion, network: &'a Network) -> Option<Self> {
        let shape = network.rings()?;
        let mut periods: SmallVec<[u32; 8]> = SmallVec::from_elem(1, shape.n_dims());
        let mut n_messages = 0u64;
        for (lane, header) in LaneId::first(flow.lanes().len()).zip(flow.lanes()) {
            let mut last: Option<LineStep<'_>> = None;
            for step in StepId::first(header.n_steps) {
                match flow.view(lane, step) {
                    StepView::Lines(lines) if lines.is_everywhere() => {
                        n_messages += lines.positions.len() as u64;
                        if !last.as_ref().is_some_and(|before| before.has_hops_of(&lines)) {
                            periods[lines.dim] = period(&lines, periods[lines.dim]);
                        }
                        last = Some(lines);
                    }
                    StepView::Products(product) if product.is_everywhere() => {
                        n_messages += product.choices().len() as u64;
                        for lines in &product.lines {
                            periods[lines.dim] = period(lines, periods[lines.dim]);
                        }
                        last = None;
                    }
                    StepView::Shifts(shifts) => {
                        n_messages += shifts.shifts.len() as u64;
                        // A node axis that is cut in two has no coordinates here.
                        let is_cut = shifts.sizes.len() != shape.n_dims();
                        if is_cut && network.per_node() > 1 && *periods.last()? > 1 {
                            return None;
                        }
                    }
                    StepView::Lines(_) | StepView::Products(_) | StepView::Messages(_) => {
                        return None;
                    }
                }
            }
        }
        // A node axis is the last dimension.
        let on_node = if network.per_node() > 1 { *periods.last()? } else { 1 };
        let alike_on_node = network.per_node() as f32 / on_node as f32;
        let classes = Classes { shape, periods, on_node, alike_on_node };
        let n = u64::from(classes.n());
        (n <= u64::from(MOST_CLASSES) && n * n_messages <= MOST_MESSAGES).then_some(classes)
    }

    fn n(&self) -> u32 {
        self.periods.iter().product()
    }

    /// The class of coordinates.
    fn class(&self, at: Coord) -> u32 {
        let digits = self.periods.iter().zip(at.as_slice());
        digits.fold(0, |class, (period, at)| class * period + at % period)
    }

    /// The class of the node on which ranks of a class are.
    fn node(&self, class: u32) -> u32 {
        class / self.on_node
    }

    /// The first coordinates of a class.
    fn coordinates(&self, class: u32) -> Coord {
        let mut rest = class;
        let digit = |&period: &u32| {
            let digit = rest % period;
            rest /= period;
            digit
        };
        let mut at: SmallVec<[u32; 8]> = self.periods.iter().rev().map(digit).collect();
        at.reverse();
        Coord::new(&at)
    }

    /// The classes of links that a message crosses, each with a number of crossings, and the number of links in all.
    fn route(&self, from: Coord, to: Coord, n_linked: usize) -> (Vec<(ResourceId, f32)>, u32) {
        let (mut at, mut crossed, mut hops) = (from, Vec::new(), 0);
        for dim in 0..n_linked {
            let offset = self.shape.axes()[dim].offset(from[dim], to[dim]);
            let (period, start) = (i64::from(self.periods[dim]), i64::from(from[dim]));
            let mut times: SmallVec<[u32; 8]> = SmallVec::from_elem(0, period as usize);
            for hop in 0..offset.abs() {
                times[(start + hop * offset.signum()).rem_euclid(period) as usize] += 1;
            }
            for (digit, &times) in (0..).zip(&times).filter(|(_, times)| **times > 0) {
                // The ranks of a node share its links.
                let node = self.node(self.class(at.with(dim, digit))) as usize;
                let link = ((node * n_linked + dim) * 2 + usize::from(offset < 0)) as ResourceId;
                crossed.push((link, times as f32 * self.alike_on_node));
            }
            at = at.with(dim, to[dim]);
            hops += offset.unsigned_abs() as u32;
        }
        (crossed, hops)
    }
}

/// The least multiple of `of`, a divisor of a line's size, by which a shift maps the line's messages onto themselves.
fn period(step: &LineStep<'_>, of: u32) -> u32 {
    let size = step.size();
    // By sender, the distances and sizes of its messages, in the order in which it sends them.
    let mut sent: Vec<SmallVec<[(usize, u32, u64); 2]>> = vec![SmallVec::new(); size as usize];
    for hop in step.hops() {
        let far = (hop.to + size - hop.from) % size;
        sent[hop.from as usize].push((hop.target, far, hop.positions));
    }
    sent.iter_mut().for_each(|sent| sent.sort_unstable());
    let is_period = |period: &u32| {
        let next = |at: usize| (at + *period as usize) % sent.len();
        size.is_multiple_of(*period) && (0..sent.len()).all(|at| sent[at] == sent[next(at)])
    };
    (1..).map(|times| times * of).find(is_period).unwrap_or(size)
}
