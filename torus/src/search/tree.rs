//! The tree of a search: its nodes, and the order in which they are visited.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::bound::BoundModel;
use super::ordered::{BoundedPattern, Chosen, Ordered, find};
use super::request::{Best, Candidate, Certificate, Cost, SearchError, SearchRequest};
use super::space::SearchSpace;
use crate::bounds::{BoundKind, Bounds};
use crate::collectives::WalkForm;
use crate::plan::{Recipe, Schedule, WalkRecipe};
use crate::sim::{Machine, Network};

/// The number of best schedules that are kept: a split may gain more for the next best, if its lanes end further
/// apart.
const KEPT: usize = 4;

/// A node of the tree.
#[derive(Clone, Debug)]
struct Node {
    /// Whether it is a row of the registry on all ports. These come before all other nodes.
    is_full_row: bool,
    /// Among these, and among the others, the node with the least key comes first: the estimate, for schedules that
    /// are not in the registry times the ratio of predicted to estimated time of their kind.
    key: f64,
    estimate: f64,
    bound: f64,
    kind: u32,
    content: NodeContent,
}

#[derive(Clone, Debug)]
enum NodeContent {
    /// Patterns of a template's first dimensions, and all patterns of the next dimension from an index on.
    Partial { template: u32, chosen: Chosen, from: u16 },
    /// Patterns of all dimensions.
    Complete { template: u32, chosen: Chosen },
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
        other.is_full_row.cmp(&self.is_full_row).then(self.key.total_cmp(&other.key))
    }
}

/// A search in progress; see the [module documentation](super).
pub struct Search<'a> {
    request: &'a SearchRequest,
    model: BoundModel<'a>,
    space: SearchSpace,
    ordered: Vec<Ordered>,
    open: BinaryHeap<Reverse<Node>>,
    /// By kind, the ratio of predicted to estimated time.
    ratios: Vec<Option<f64>>,
    /// Bounds of the schedules that were returned and whose costs are not yet known.
    pending: Vec<f64>,
    /// The least bound of the schedules that may take less than their costs, ns.
    uncertain_ns: f64,
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
    /// [`SearchError`].
    pub fn new(
        request: &'a SearchRequest,
        network: &'a Network,
        machine: &'a Machine,
    ) -> Result<Self, SearchError> {
        request.validate()?;
        let limits = machine.limits(network);
        let bounds = Bounds::new(request.collective, request.ports, &limits);
        let model = BoundModel::new(request, network, machine);
        let space = SearchSpace::new(request, network, machine);
        let ordered: Vec<Ordered> =
            space.templates.iter().map(|template| Ordered::new(&model, template)).collect();
        let mut open = BinaryHeap::new();
        for (template, (of_template, ordered)) in (0..).zip(space.templates.iter().zip(&ordered)) {
            let (estimate, bound) = ordered.part(&model, of_template, &[], 0);
            let content = NodeContent::Partial { template, chosen: Chosen::new(), from: 0 };
            open.push(Reverse(Node {
                is_full_row: false,
                key: estimate,
                estimate,
                bound,
                kind: of_template.kind,
                content,
            }));
        }
        let n_kinds = space.templates.last().map_or(0, |template| template.kind + 1);
        let is_full = |row: &Schedule| row.ports == request.ports;
        for (number, named) in (0..).zip(&space.named) {
            let found = find(&space, &ordered, named);
            let of_template = |(template, chosen): (usize, Chosen)| {
                let of_template = &space.templates[template];
                let (estimate, bound) = ordered[template].whole(&model, of_template, &chosen);
                (of_template.kind, estimate, bound)
            };
            let any = model.any(named.ports);
            let (kind, estimate, bound) = found.map_or((n_kinds, any, any), of_template);
            let (is_full_row, content) = (is_full(named), NodeContent::Named(number));
            open.push(Reverse(Node { is_full_row, key: estimate, estimate, bound, kind, content }));
        }
        for (number, other) in (0..).zip(&space.others) {
            let (bound, content) = (model.other(other), NodeContent::Other(number));
            let (is_full_row, kind) = (is_full(other), n_kinds);
            let node = Node { is_full_row, key: bound, estimate: bound, bound, kind, content };
            open.push(Reverse(node));
        }
        let ratios = vec![None; n_kinds as usize];
        Ok(Search {
            request,
            model,
            space,
            ordered,
            open,
            ratios,
            pending: Vec::new(),
            uncertain_ns: f64::INFINITY,
            found: Vec::new(),
            universal: bounds.call(request.bytes),
            counts: [0; 4],
        })
    }

    /// Returns the next schedule to predict; `None` if none is left, or after `most_nodes` nodes.
    pub fn next(&mut self, most_nodes: u64) -> Option<Candidate> {
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
            let schedule = match node.content {
                NodeContent::Partial { template, chosen, from } => {
                    self.branch(template, chosen, from);
                    continue;
                }
                NodeContent::Other(number) => Some(self.space.others[number as usize].clone()),
                NodeContent::Named(number) => Some(self.space.named[number as usize].clone()),
                // Walks of the registry have nodes of their own.
                NodeContent::Complete { template, ref chosen } => self
                    .schedule(template, chosen)
                    .filter(|found| !self.space.named.contains(found)),
            };
            if let Some(schedule) = schedule {
                self.pending.push(node.bound);
                let is_registry_row = !matches!(node.content, NodeContent::Complete { .. });
                let times = (node.estimate, node.bound);
                return Some(self.candidate(schedule, times, node.kind, is_registry_row));
            }
        }
        None
    }

    /// Records the cost of a schedule that [`Search::next`] returned.
    pub fn learn(&mut self, candidate: Candidate, cost: Cost) {
        let known = self.pending.iter().position(|bound| *bound == candidate.bound_ns);
        known.map(|at| self.pending.swap_remove(at));
        self.counts[2] += 1;
        if !cost.is_least {
            self.uncertain_ns = self.uncertain_ns.min(candidate.bound_ns);
        }
        let (ratio, counts) = (cost.ns / candidate.estimate_ns, candidate.counts(&cost));
        if let Some(known) = self.ratios.get_mut(candidate.kind as usize) {
            // Kinds whose predictions do not count come later each time.
            let ratio = known.map_or(ratio, |known| known.min(ratio));
            *known = Some(if counts { ratio } else { 2.0 * known.unwrap_or(ratio) });
        }
        if counts {
            let place = self.found.partition_point(|found| found.cost.ns <= cost.ns);
            self.found.insert(place, Best { schedule: candidate.schedule, cost });
            self.found.truncate(KEPT);
        } else if cost.ns < self.best_ns() {
            self.counts[3] += 1;
        }
    }

    /// Whether no node and no prediction is left.
    pub fn is_over(&self) -> bool {
        self.open.is_empty() && self.pending.is_empty()
    }

    /// Whether there are rows of the registry, on all ports, that have not been visited.
    pub fn has_rows(&self) -> bool {
        self.open.peek().is_some_and(|Reverse(node)| node.is_full_row)
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
        let left = open.chain(self.pending.iter().copied()).fold(self.uncertain_ns, f64::min);
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
    pub fn all(&self) -> impl Iterator<Item = Candidate> {
        let walks = (0u32..).zip(&self.space.templates).flat_map(move |(number, template)| {
            let ordered = &self.ordered[number as usize];
            let sizes = ordered.axes.iter().map(Vec::len);
            let choices = sizes.fold(vec![Chosen::new()], |all, n| {
                let with = |chosen: Chosen| {
                    (0..n as u16).map(move |at| chosen.iter().copied().chain([at]).collect())
                };
                all.into_iter().flat_map(with).collect()
            });
            choices.into_iter().filter_map(move |chosen: Chosen| {
                let times = ordered.whole(&self.model, template, &chosen);
                let schedule = self.schedule(number, &chosen)?;
                let is_registry_row = self.space.named.contains(&schedule);
                Some(self.candidate(schedule, times, template.kind, is_registry_row))
            })
        });
        let named = self.space.named.iter().chain(&self.space.others);
        walks.chain(named.map(|schedule| Candidate {
            bound_ns: self.model.other(schedule),
            ..Candidate::of_schedule(schedule.clone())
        }))
    }

    fn key(&self, node: &Node) -> f64 {
        let ratio = self.ratios.get(node.kind as usize).copied().flatten().unwrap_or(1.0);
        match node.content {
            NodeContent::Named(_) | NodeContent::Other(_) => node.key,
            NodeContent::Partial { .. } | NodeContent::Complete { .. } => node.estimate * ratio,
        }
    }

    fn candidate(
        &self,
        schedule: Schedule,
        (estimate_ns, bound_ns): (f64, f64),
        kind: u32,
        is_registry_row: bool,
    ) -> Candidate {
        let is_trusted = is_registry_row || self.is_symmetric(&schedule);
        Candidate { schedule, bound_ns, is_registry_row, is_trusted, estimate_ns, kind }
    }

    /// Whether all ranks do the same in a schedule.
    fn is_symmetric(&self, schedule: &Schedule) -> bool {
        let differs = |recipe: &WalkRecipe| recipe.form == WalkForm::Tree || recipe.is_dealt();
        let is_symmetric = !matches!(&schedule.recipe, Recipe::Walk(recipe) if differs(recipe));
        is_symmetric && !self.request.collective.is_rooted()
    }

    fn schedule(&self, template: u32, chosen: &[u16]) -> Option<Schedule> {
        let axes = &self.ordered[template as usize].axes;
        let kind =
            |(axis, &at): (&Vec<BoundedPattern>, &u16)| axis[usize::from(at)].steps.kind.clone();
        let kinds = axes.iter().zip(chosen).map(kind).collect();
        self.space.templates[template as usize].schedule(self.request, kinds)
    }

    /// Opens two nodes: the remaining patterns of a node's next dimension, and the node with its first pattern
    /// chosen.
    fn branch(&mut self, number: u32, mut chosen: Chosen, from: u16) {
        let (template, ordered) =
            (&self.space.templates[number as usize], &self.ordered[number as usize]);
        let mut open = Vec::with_capacity(2);
        if usize::from(from) + 1 < ordered.axes[chosen.len()].len() {
            let bounded = ordered.part(&self.model, template, &chosen, from + 1);
            open.push((
                bounded,
                NodeContent::Partial { template: number, chosen: chosen.clone(), from: from + 1 },
            ));
        }
        chosen.push(from);
        open.push(match chosen.len() < ordered.axes.len() {
            true => {
                let bounded = ordered.part(&self.model, template, &chosen, 0);
                (bounded, NodeContent::Partial { template: number, chosen, from: 0 })
            }
            false => {
                let bounded = ordered.whole(&self.model, template, &chosen);
                (bounded, NodeContent::Complete { template: number, chosen })
            }
        });
        let kind = template.kind;
        for ((estimate, bound), content) in open {
            if bound >= self.best_ns() {
                self.counts[1] += 1;
                continue;
            }
            let node = Node { is_full_row: false, key: 0.0, estimate, bound, kind, content };
            self.open.push(Reverse(Node { key: self.key(&node), ..node }));
        }
    }
}
