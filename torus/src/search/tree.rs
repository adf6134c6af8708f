//! The tree of a search: its nodes, and the order in which they are visited.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::bound::Judge;
use super::ordered::{Chosen, Judged, Ordered, find};
use super::question::{Best, Certificate, Cost, Point, Question, QuestionError};
use super::space::SearchSpace;
use crate::bounds::{BoundKind, Bounds};
use crate::collectives::WalkForm;
use crate::plan::{Recipe, Schedule, WalkRecipe};
use crate::sim::{Machine, Network};

/// The factor that puts the registry's rows on all ports before all other nodes, in the order of their estimates.
const EARLY: f64 = 1e-6;

/// The number of best schedules that are kept: a split may gain more for the next best, if its lanes end further
/// apart.
const KEPT: usize = 4;

/// A node of the tree.
#[derive(Clone, Debug)]
struct Node {
    /// The node with the least key comes first: the estimate, times the ratio of predicted to estimated time of its
    /// kind.
    key: f64,
    estimate: f64,
    bound: f64,
    kind: u32,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// Patterns of a frame's first dimensions, and all patterns of the next dimension from an index on.
    Part { frame: u32, chosen: Chosen, from: u16 },
    /// Patterns of all dimensions.
    Whole { frame: u32, chosen: Chosen },
    /// A walk of the registry.
    Named(u32),
    /// Another schedule of the registry.
    Other(u32),
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.total_cmp(&other.key)
    }
}

/// A search in progress; see the [module documentation](super).
pub struct Search<'a> {
    question: &'a Question,
    judge: Judge<'a>,
    space: SearchSpace,
    ordered: Vec<Ordered>,
    open: BinaryHeap<Reverse<Node>>,
    /// By kind, the ratio of predicted to estimated time.
    ratios: Vec<Option<f64>>,
    /// Bounds of the schedules that were returned and whose costs are not yet known.
    handed_out: Vec<f64>,
    /// The best schedules known so far, the best first.
    found: Vec<Best>,
    universal: (BoundKind, f64),
    /// Nodes visited, nodes pruned, schedules predicted, and uncertain ones among the predicted.
    counts: [u64; 4],
}

impl<'a> Search<'a> {
    /// Starts a search.
    ///
    /// # Errors
    /// [`QuestionError`].
    pub fn new(
        question: &'a Question,
        network: &'a Network,
        machine: &'a Machine,
    ) -> Result<Self, QuestionError> {
        question.validate()?;
        let limits = machine.limits(network);
        let bounds = Bounds::new(question.collective, question.ports, &limits);
        let judge = Judge::new(question, network, machine);
        let space = SearchSpace::new(question, network, machine);
        let ordered: Vec<Ordered> =
            space.frames.iter().map(|frame| Ordered::new(&judge, frame)).collect();
        let mut open = BinaryHeap::new();
        for (frame, (of_frame, ordered)) in (0..).zip(space.frames.iter().zip(&ordered)) {
            let (estimate, bound) = ordered.part(&judge, of_frame, &[], 0);
            let what = What::Part { frame, chosen: Chosen::new(), from: 0 };
            open.push(Reverse(Node { key: estimate, estimate, bound, kind: of_frame.kind, what }));
        }
        let n_kinds = space.frames.last().map_or(0, |frame| frame.kind + 1);
        let early = |row: &Schedule| if row.ports == question.ports { EARLY } else { 1.0 };
        for (number, named) in (0..).zip(&space.named) {
            let found = find(&space, &ordered, named);
            let of_frame = |(frame, chosen): (usize, Chosen)| {
                let of_frame = &space.frames[frame];
                let (estimate, bound) = ordered[frame].whole(&judge, of_frame, &chosen);
                (of_frame.kind, estimate, bound)
            };
            let any = judge.any(named.ports);
            let (kind, estimate, bound) = found.map_or((n_kinds, any, any), of_frame);
            let (key, what) = (early(named) * estimate, What::Named(number));
            open.push(Reverse(Node { key, estimate, bound, kind, what }));
        }
        for (number, other) in (0..).zip(&space.others) {
            let (bound, what) = (judge.other(other), What::Other(number));
            let key = early(other) * bound;
            let node = Node { key, estimate: bound, bound, kind: n_kinds, what };
            open.push(Reverse(node));
        }
        let ratios = vec![None; n_kinds as usize];
        Ok(Search {
            question,
            judge,
            space,
            ordered,
            open,
            ratios,
            handed_out: Vec::new(),
            found: Vec::new(),
            universal: bounds.call(question.bytes),
            counts: [0; 4],
        })
    }

    /// Returns the next schedule to predict; `None` if none is left, or after `most_nodes` nodes.
    pub fn next(&mut self, most_nodes: u64) -> Option<Point> {
        let most = self.counts[0].saturating_add(most_nodes);
        while self.counts[0] < most {
            let Reverse(node) = self.open.pop()?;
            let key = self.key(&node);
            if key > node.key {
                // Schedules of this kind have taken longer than estimated.
                self.open.push(Reverse(Node { key, ..node }));
                continue;
            }
            self.counts[0] += 1;
            if node.bound >= self.best_ns() {
                self.counts[1] += 1;
                continue;
            }
            let schedule = match node.what {
                What::Part { frame, chosen, from } => {
                    self.branch(frame, chosen, from);
                    continue;
                }
                What::Other(number) => Some(self.space.others[number as usize].clone()),
                What::Named(number) => Some(self.space.named[number as usize].clone()),
                // Walks of the registry have nodes of their own.
                What::Whole { frame, ref chosen } => {
                    self.schedule(frame, chosen).filter(|found| !self.space.named.contains(found))
                }
            };
            if let Some(schedule) = schedule {
                self.handed_out.push(node.bound);
                let is_named = !matches!(node.what, What::Whole { .. });
                let is_trusted = is_named || self.is_alike(&schedule);
                let Node { estimate: estimate_ns, bound: bound_ns, kind, .. } = node;
                return Some(Point { schedule, bound_ns, is_named, is_trusted, estimate_ns, kind });
            }
        }
        None
    }

    /// Records the cost of a schedule that [`Search::next`] returned.
    pub fn learn(&mut self, point: Point, cost: Cost) {
        let known = self.handed_out.iter().position(|bound| *bound == point.bound_ns);
        known.map(|at| self.handed_out.swap_remove(at));
        self.counts[2] += 1;
        let (ratio, counts) = (cost.ns / point.estimate_ns, point.counts(&cost));
        if let Some(known) = self.ratios.get_mut(point.kind as usize) {
            // Kinds whose predictions do not count come later each time.
            let ratio = known.map_or(ratio, |known| known.min(ratio));
            *known = Some(if counts { ratio } else { 2.0 * known.unwrap_or(ratio) });
        }
        if counts {
            let place = self.found.partition_point(|found| found.cost.ns <= cost.ns);
            self.found.insert(place, Best { schedule: point.schedule, cost });
            self.found.truncate(KEPT);
        } else if cost.ns < self.best_ns() {
            self.counts[3] += 1;
        }
    }

    /// Whether no node and no prediction is left.
    pub fn is_over(&self) -> bool {
        self.open.is_empty() && self.handed_out.is_empty()
    }

    /// Whether there are rows of the registry, on all ports, that have not been visited.
    pub fn has_rows(&self) -> bool {
        self.open.peek().is_some_and(|Reverse(node)| node.key < node.estimate)
    }

    /// The best schedule so far.
    pub fn best(&self) -> Option<&Best> {
        self.found.first()
    }

    /// The best schedules so far, by ascending time.
    pub fn found(&self) -> &[Best] {
        &self.found
    }

    /// The time of the best schedule so far, ns.
    pub fn best_ns(&self) -> f64 {
        self.best().map_or(f64::INFINITY, |found| found.cost.ns)
    }

    /// The certificate of the best schedule so far.
    pub fn certificate(&self) -> Certificate {
        let open = self.open.iter().map(|Reverse(node)| node.bound);
        let left = open.chain(self.handed_out.iter().copied()).fold(f64::INFINITY, f64::min);
        let [visited, pruned, predicted, uncertain] = self.counts;
        Certificate {
            bound: self.universal,
            space_ns: left.min(self.best_ns()),
            is_exhaustive: left >= self.best_ns() && self.best().is_some(),
            visited,
            pruned,
            predicted,
            uncertain,
        }
    }

    /// Every schedule of the space, regardless of bounds: for small spaces.
    pub fn all(&self) -> impl Iterator<Item = Point> {
        let walks = (0u32..).zip(&self.space.frames).flat_map(move |(number, frame)| {
            let ordered = &self.ordered[number as usize];
            let sizes = ordered.axes.iter().map(Vec::len);
            let choices = sizes.fold(vec![Chosen::new()], |all, n| {
                let with = |chosen: Chosen| {
                    (0..n as u16).map(move |at| chosen.iter().copied().chain([at]).collect())
                };
                all.into_iter().flat_map(with).collect()
            });
            choices.into_iter().filter_map(move |chosen: Chosen| {
                let (estimate_ns, bound_ns) = ordered.whole(&self.judge, frame, &chosen);
                let schedule = self.schedule(number, &chosen)?;
                let is_named = self.space.named.contains(&schedule);
                let is_trusted = is_named || self.is_alike(&schedule);
                let kind = frame.kind;
                Some(Point { schedule, bound_ns, is_named, is_trusted, estimate_ns, kind })
            })
        });
        let named = self.space.named.iter().chain(&self.space.others);
        walks.chain(named.map(|schedule| Point {
            bound_ns: self.judge.other(schedule),
            ..Point::of_schedule(schedule.clone())
        }))
    }

    fn key(&self, node: &Node) -> f64 {
        let ratio = self.ratios.get(node.kind as usize).copied().flatten().unwrap_or(1.0);
        match node.what {
            What::Named(_) | What::Other(_) => node.key,
            What::Part { .. } | What::Whole { .. } => node.estimate * ratio,
        }
    }

    /// Whether all ranks do the same in a schedule.
    fn is_alike(&self, schedule: &Schedule) -> bool {
        let differs = |recipe: &WalkRecipe| recipe.form == WalkForm::Tree || recipe.is_dealt();
        let is_alike = !matches!(&schedule.recipe, Recipe::Walk(recipe) if differs(recipe));
        is_alike && !self.question.collective.is_rooted()
    }

    fn schedule(&self, frame: u32, chosen: &[u16]) -> Option<Schedule> {
        let axes = &self.ordered[frame as usize].axes;
        let kind = |(axis, &at): (&Vec<Judged>, &u16)| axis[usize::from(at)].steps.kind.clone();
        let kinds = axes.iter().zip(chosen).map(kind).collect();
        self.space.frames[frame as usize].schedule(self.question, kinds)
    }

    /// Opens two nodes: the remaining patterns of a node's next dimension, and the node with its first pattern
    /// chosen.
    fn branch(&mut self, number: u32, mut chosen: Chosen, from: u16) {
        let (frame, ordered) =
            (&self.space.frames[number as usize], &self.ordered[number as usize]);
        let mut open = Vec::with_capacity(2);
        if usize::from(from) + 1 < ordered.axes[chosen.len()].len() {
            let judged = ordered.part(&self.judge, frame, &chosen, from + 1);
            open.push((
                judged,
                What::Part { frame: number, chosen: chosen.clone(), from: from + 1 },
            ));
        }
        chosen.push(from);
        open.push(match chosen.len() < ordered.axes.len() {
            true => {
                let judged = ordered.part(&self.judge, frame, &chosen, 0);
                (judged, What::Part { frame: number, chosen, from: 0 })
            }
            false => {
                let judged = ordered.whole(&self.judge, frame, &chosen);
                (judged, What::Whole { frame: number, chosen })
            }
        });
        let kind = frame.kind;
        for ((estimate, bound), what) in open {
            if bound >= self.best_ns() {
                self.counts[1] += 1;
                continue;
            }
            let node = Node { key: 0.0, estimate, bound, kind, what };
            self.open.push(Reverse(Node { key: self.key(&node), ..node }));
        }
    }
}
