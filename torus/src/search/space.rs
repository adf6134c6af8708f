//! The search space: templates (schedules without patterns) and, for each template, the patterns of its dimensions.

use std::collections::HashMap;
use std::rc::Rc;

use smallvec::SmallVec;

use super::request::SearchRequest;
use super::steps::AxisSteps;
use crate::collectives::WalkForm;
use crate::geometry::{AxisLink, Shape};
use crate::patterns::PatternKind;
use crate::plan::{Flow, Interleave, Recipe, Schedule, Split, StepOrder, WalkRecipe};
use crate::registry::{self, Request};
use crate::sim::{Machine, Network};

/// The limits that are tried for the messages of a rank in a round of fused steps.
const FUSED_MESSAGES: [u32; 7] = [2, 3, 5, 6, 7, 8, 11];
/// The largest radix of a pattern.
const MOST_RADIX: u32 = 8;
/// The most lists of radices that are tried for a dimension.
const MOST_RADICES: usize = 48;
/// Dimensions larger than this have no k-rings.
const MOST_KRING: u32 = 256;
/// The most messages of a rank in a call. More peers cost an endpoint much memory, which the model does not include.
pub(super) const MOST_SENDS: usize = 1024;

/// A schedule without its patterns: the form, the order of steps and of blocks, the number of lanes.
#[derive(Clone, Debug)]
pub(super) struct ScheduleTemplate {
    /// The recipe, without patterns.
    pub recipe: WalkRecipe,
    /// Templates that differ only in ports are of one kind.
    pub kind: u32,
    pub ports: u32,
    /// By dimension, the patterns that are tried.
    pub axes: Rc<Vec<Vec<Rc<AxisSteps>>>>,
}

/// All templates, and schedules that are tried beside them.
pub(super) struct SearchSpace {
    pub templates: Vec<ScheduleTemplate>,
    /// Schedules of the registry that are not over walks.
    pub others: Vec<Schedule>,
    /// Walks of the registry, on each number of ports up to the request's.
    pub named: Vec<Schedule>,
}

/// Key of the patterns by dimension: whether the form is a latency form, and the order of steps.
type AxesKey = (bool, StepOrder);

fn key(recipe: &WalkRecipe) -> AxesKey {
    (recipe.form == WalkForm::Latency, recipe.order)
}

impl SearchSpace {
    pub fn new(request: &SearchRequest, network: &Network, machine: &Machine) -> Self {
        let shape = &request.shape;
        let (mut templates, mut others) = (Vec::<WalkRecipe>::new(), Vec::new());
        let mut named: Vec<WalkRecipe> = Vec::new();
        for algorithm in registry::algorithms(request.collective) {
            let registry_request = |ports| Request {
                shape: shape.clone(),
                map: request.map.clone(),
                root: request.root,
                ports: Some(ports),
            };
            let Ok(schedule) = algorithm.schedule(&registry_request(1)) else { continue };
            let Recipe::Walk(recipe) = schedule.recipe else {
                if !sends_to_many(&schedule) {
                    let of = |ports| algorithm.schedule(&registry_request(ports)).ok();
                    others.extend((1..=request.ports).filter_map(of));
                }
                continue;
            };
            let template = WalkRecipe { patterns: Vec::new(), ..recipe };
            named.push(recipe);
            for interleave in interleaves(&template, shape) {
                let template = WalkRecipe { interleave, ..template.clone() };
                if !templates.contains(&template) {
                    templates.push(template);
                }
            }
        }
        let mut known: HashMap<AxesKey, Rc<Vec<Vec<Rc<AxisSteps>>>>> = HashMap::new();
        let mut all = Vec::new();
        for (kind, recipe) in (0..).zip(templates) {
            let key = key(&recipe);
            let axes = known.entry(key).or_insert_with(|| {
                let of_dim = |dim| {
                    let named = named.iter().filter(|other| self::key(other) == key);
                    let named = named.map(|other| &other.patterns[dim]);
                    axis(request, (network, machine), dim, key, named)
                };
                Rc::new((0..shape.n_dims()).map(of_dim).collect())
            });
            let of = |ports| ScheduleTemplate {
                recipe: recipe.clone(),
                kind,
                ports,
                axes: axes.clone(),
            };
            all.extend((1..=request.ports).map(of));
        }
        let schedule = |(recipe, ports): (WalkRecipe, u32)| Schedule {
            collective: request.collective,
            shape: shape.clone(),
            map: request.map.clone(),
            root: request.root,
            ports,
            split: Split::default(),
            recipe: Recipe::Walk(recipe),
        };
        let on_ports = |recipe: WalkRecipe| (1..=request.ports).map(move |p| (recipe.clone(), p));
        let named = named.into_iter().flat_map(on_ports).map(schedule).collect();
        SearchSpace { templates: all, others, named }
    }
}

/// The orders of dimensions that are tried with a template: all orders if blocks are forwarded, as the order then
/// matters; in a latency form also fused steps.
fn interleaves(template: &WalkRecipe, shape: &Shape) -> Vec<Interleave> {
    let mut all = vec![template.interleave];
    match template.form {
        WalkForm::Butterfly | WalkForm::TwoPhase if shape.active_dims().len() > 1 => all.extend([
            Interleave::RoundRobin,
            Interleave::RoundRobinBackwards,
            Interleave::Sequential,
        ]),
        WalkForm::Latency if matches!(template.interleave, Interleave::Fused { .. }) => {
            all.extend(FUSED_MESSAGES.map(|messages| Interleave::Fused { messages }));
        }
        _ => {}
    }
    all
}

/// Whether some rank sends more than [`MOST_SENDS`] messages.
fn sends_to_many(schedule: &Schedule) -> bool {
    if schedule.shape.n_ranks() as usize <= MOST_SENDS
        || !matches!(schedule.recipe, Recipe::Exchange(_) | Recipe::Linear)
    {
        return false;
    }
    schedule.expand().is_ok_and(|flow| {
        let steps = flow.plan(schedule.root).lanes.into_iter().flat_map(|lane| lane.steps);
        steps.map(|step| step.sends.len() + step.recvs.len()).sum::<usize>() > 2 * MOST_SENDS
    })
}

/// The patterns of a dimension: those that serve its size, and those that the registry uses for it.
fn axis<'a>(
    request: &SearchRequest,
    (network, machine): (&Network, &Machine),
    dim: usize,
    (has_cores, order): AxesKey,
    named: impl Iterator<Item = &'a PatternKind>,
) -> Vec<Rc<AxisSteps>> {
    let axis = request.shape.axes()[dim];
    let is_node = axis.link == AxisLink::Node;
    let own = patterns(axis.size, is_node && has_cores, has_cores);
    let place = (&request.shape, dim);
    let mut found: Vec<Rc<AxisSteps>> = Vec::new();
    let named = named.cloned().zip(std::iter::repeat(true));
    for (kind, is_registry_row) in named.chain(own.into_iter().zip(std::iter::repeat(false))) {
        if found.iter().any(|known| known.kind == kind) {
            continue;
        }
        let steps = AxisSteps::new((network, machine), place, &kind, order, has_cores);
        let Some(steps) = steps else { continue };
        // Patterns of registry rows stay even if their steps are known, as blocks may be in another order.
        let is_known = || found.iter().any(|known| known.signature == steps.signature);
        if is_registry_row && !has_cores || !is_known() {
            found.push(Rc::new(steps));
        }
    }
    debug_assert!(!found.is_empty(), "some pattern serves every size");
    found
}

/// The patterns of a dimension of `size` coordinates; with `has_cores` also patterns of smaller cores.
fn patterns(size: u32, has_leader: bool, has_cores: bool) -> Vec<PatternKind> {
    if size == 1 {
        return vec![PatternKind::Direct];
    }
    let mut all = vec![
        PatternKind::Direct,
        PatternKind::Bine,
        PatternKind::Doubling,
        PatternKind::Circulant,
        PatternKind::Balanced,
        PatternKind::Ring,
    ];
    if has_leader {
        all.push(PatternKind::Leader);
    }
    let radices = 2..=MOST_RADIX.min(size);
    all.extend(radices.clone().map(|radix| PatternKind::Knomial { radix }));
    all.extend(radices.map(|radix| PatternKind::Bruck { radix }));
    let groups = (2..size).filter(|group| size <= MOST_KRING && size.is_multiple_of(*group));
    all.extend(groups.map(|group| PatternKind::KRing { group }));
    let cores = if has_cores { size.div_ceil(2)..=size } else { size..=size };
    let mut lists: Vec<SmallVec<[u32; 8]>> = Vec::new();
    for core in cores.rev() {
        let of_core = factorizations(core, &mut SmallVec::new());
        lists.extend(of_core.into_iter().filter(|list| core == size || list.is_sorted()));
    }
    // The fewest steps first, of these the fewest messages.
    lists.sort_by_key(|list| (list.len(), list.iter().sum::<u32>()));
    lists.truncate(MOST_RADICES);
    let several = lists.into_iter().filter(|list| list.len() > 1);
    all.extend(several.map(|list| PatternKind::Radices(list.to_vec().into())));
    all
}

/// The ways to write a number as a product of radices, in every order, each after the radices `before`.
fn factorizations(rest: u32, before: &mut SmallVec<[u32; 8]>) -> Vec<SmallVec<[u32; 8]>> {
    if rest == 1 {
        return vec![before.clone()];
    }
    let mut found = Vec::new();
    for radix in (2..=MOST_RADIX.min(rest)).filter(|radix| rest.is_multiple_of(*radix)) {
        before.push(radix);
        found.extend(factorizations(rest / radix, before));
        before.pop();
    }
    found
}

impl ScheduleTemplate {
    /// Whether lanes have whole blocks. Some ranks then send nothing in early steps and wait for nothing, so chains
    /// of steps are not bounds.
    pub fn is_dealt(&self) -> bool {
        self.recipe.is_dealt()
    }

    /// The schedule with these patterns; `None` if it is not valid.
    pub fn schedule(
        &self,
        request: &SearchRequest,
        patterns: Vec<PatternKind>,
    ) -> Option<Schedule> {
        let recipe = WalkRecipe { patterns, ..self.recipe.clone() };
        let schedule = Schedule {
            collective: request.collective,
            shape: request.shape.clone(),
            map: request.map.clone(),
            root: request.root,
            ports: self.ports,
            split: Split::default(),
            recipe: Recipe::Walk(recipe),
        };
        schedule.validate().is_ok().then_some(schedule)
    }
}
