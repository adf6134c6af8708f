//! The patterns of a template's dimensions, in the order in which the search tries them.

use std::rc::Rc;

use smallvec::SmallVec;

use super::bound::{BoundModel, LaneSums};
use super::space::{ScheduleTemplate, SearchSpace};
use super::steps::AxisSteps;
use crate::patterns::PatternKind;
use crate::plan::{Recipe, Schedule, WalkRecipe};

/// By dimension of a template, the index of the chosen pattern.
pub(super) type Chosen = SmallVec<[u16; 6]>;

/// A pattern of a dimension, with its estimate and its bounds in a template.
pub(super) struct BoundedPattern {
    pub steps: Rc<AxisSteps>,
    estimate: f64,
    sums: LaneSums,
    /// The least sums of this pattern and of those after it.
    least: LaneSums,
}

/// The dimensions of a template: for each the patterns in the order in which they are tried.
pub(super) struct Ordered {
    /// Time that all schedules of the template have in common, and the part of it before the first step, ns.
    common: f64,
    start: f64,
    pub axes: Vec<Vec<BoundedPattern>>,
}

impl Ordered {
    pub fn new(model: &BoundModel<'_>, template: &ScheduleTemplate) -> Self {
        let of_axis = |axis: &Vec<Rc<AxisSteps>>| {
            let bounded = axis.iter().map(|steps| BoundedPattern {
                steps: steps.clone(),
                estimate: model.estimate(template, steps),
                sums: model.sums(template, steps),
                least: LaneSums::MOST,
            });
            let mut bounded: Vec<BoundedPattern> = bounded.collect();
            bounded.sort_by(|a, b| a.estimate.total_cmp(&b.estimate));
            let mut least = LaneSums::MOST;
            for of_pattern in bounded.iter_mut().rev() {
                least = least.min(of_pattern.sums);
                of_pattern.least = least;
            }
            bounded
        };
        let axes = template.axes.iter().map(of_axis).collect();
        Ordered { common: model.common(template), start: model.start(template), axes }
    }

    /// Estimate and bound of a node, ns: some patterns are chosen, the next dimension has those from `from` on.
    pub fn part(
        &self,
        model: &BoundModel<'_>,
        template: &ScheduleTemplate,
        chosen: &[u16],
        from: u16,
    ) -> (f64, f64) {
        let (mut estimate, mut sums) = (self.start, LaneSums::default());
        for (dim, axis) in self.axes.iter().enumerate() {
            let at = chosen.get(dim).copied().unwrap_or(if dim == chosen.len() { from } else { 0 });
            let bounded = &axis[usize::from(at)];
            estimate += bounded.estimate;
            sums = sums + if dim < chosen.len() { bounded.sums } else { bounded.least };
        }
        (estimate, model.partial(self.common, sums).max(model.any(template.ports)))
    }

    /// Estimate and bound of a whole choice, ns.
    pub fn whole(
        &self,
        model: &BoundModel<'_>,
        template: &ScheduleTemplate,
        chosen: &[u16],
    ) -> (f64, f64) {
        let (estimate, bound) = self.part(model, template, chosen, 0);
        let steps = self.axes.iter().zip(chosen).map(|(axis, &at)| &*axis[usize::from(at)].steps);
        let steps: SmallVec<[&AxisSteps; 6]> = steps.collect();
        let bound = model.whole(template, &steps).max(bound);
        (estimate.max(bound), bound)
    }

    /// The choice that consists of these patterns.
    fn chosen(&self, patterns: &[PatternKind]) -> Option<Chosen> {
        let place = |(axis, kind): (&Vec<BoundedPattern>, &PatternKind)| {
            axis.iter().position(|bounded| bounded.steps.kind == *kind).map(|at| at as u16)
        };
        self.axes.iter().zip(patterns).map(place).collect()
    }
}

/// The template and the choice that give a walk of the registry.
pub(super) fn find(
    space: &SearchSpace,
    ordered: &[Ordered],
    named: &Schedule,
) -> Option<(usize, Chosen)> {
    let Recipe::Walk(recipe) = &named.recipe else { return None };
    let plain = WalkRecipe { patterns: Vec::new(), ..recipe.clone() };
    let is_it =
        |template: &ScheduleTemplate| template.ports == named.ports && template.recipe == plain;
    let template = space.templates.iter().position(is_it)?;
    Some((template, ordered[template].chosen(&recipe.patterns)?))
}
