//! The patterns of a frame's dimensions, in the order in which the search tries them.

use std::rc::Rc;

use smallvec::SmallVec;

use super::bound::{Judge, LaneSums};
use super::space::{Frame, SearchSpace};
use super::steps::AxisSteps;
use crate::patterns::PatternKind;
use crate::plan::{Recipe, Schedule, WalkRecipe};

/// By dimension of a frame, the index of the chosen pattern.
pub(super) type Chosen = SmallVec<[u16; 6]>;

/// A pattern of a dimension, with its estimate and its bounds in a frame.
pub(super) struct Judged {
    pub steps: Rc<AxisSteps>,
    estimate: f64,
    sums: LaneSums,
    /// The least sums of this pattern and of those after it.
    least: LaneSums,
}

/// The dimensions of a frame: for each the patterns in the order in which they are tried.
pub(super) struct Ordered {
    /// Time that all schedules of the frame have in common, and the part of it before the first step, ns.
    common: f64,
    start: f64,
    pub axes: Vec<Vec<Judged>>,
}

impl Ordered {
    pub fn new(judge: &Judge<'_>, frame: &Frame) -> Self {
        let of_axis = |axis: &Vec<Rc<AxisSteps>>| {
            let judged = axis.iter().map(|steps| Judged {
                steps: steps.clone(),
                estimate: judge.estimate(frame, steps),
                sums: judge.sums(frame, steps),
                least: LaneSums::MOST,
            });
            let mut judged: Vec<Judged> = judged.collect();
            judged.sort_by(|a, b| a.estimate.total_cmp(&b.estimate));
            let mut least = LaneSums::MOST;
            for of_pattern in judged.iter_mut().rev() {
                least = least.min(of_pattern.sums);
                of_pattern.least = least;
            }
            judged
        };
        let axes = frame.axes.iter().map(of_axis).collect();
        Ordered { common: judge.common(frame), start: judge.start(frame), axes }
    }

    /// Estimate and bound of a node, ns: some patterns are chosen, the next dimension has those from `from` on.
    pub fn part(&self, judge: &Judge<'_>, frame: &Frame, chosen: &[u16], from: u16) -> (f64, f64) {
        let (mut estimate, mut sums) = (self.start, LaneSums::default());
        for (dim, axis) in self.axes.iter().enumerate() {
            let at = chosen.get(dim).copied().unwrap_or(if dim == chosen.len() { from } else { 0 });
            let judged = &axis[usize::from(at)];
            estimate += judged.estimate;
            sums = sums + if dim < chosen.len() { judged.sums } else { judged.least };
        }
        (estimate, judge.partial(self.common, sums).max(judge.any(frame.ports)))
    }

    /// Estimate and bound of a whole choice, ns.
    pub fn whole(&self, judge: &Judge<'_>, frame: &Frame, chosen: &[u16]) -> (f64, f64) {
        let (estimate, bound) = self.part(judge, frame, chosen, 0);
        let steps = self.axes.iter().zip(chosen).map(|(axis, &at)| &*axis[usize::from(at)].steps);
        let steps: SmallVec<[&AxisSteps; 6]> = steps.collect();
        let bound = judge.whole(frame, &steps).max(bound);
        (estimate.max(bound), bound)
    }

    /// The choice that consists of these patterns.
    fn chosen(&self, patterns: &[PatternKind]) -> Option<Chosen> {
        let place = |(axis, kind): (&Vec<Judged>, &PatternKind)| {
            axis.iter().position(|judged| judged.steps.kind == *kind).map(|at| at as u16)
        };
        self.axes.iter().zip(patterns).map(place).collect()
    }
}

/// The frame and the choice that give a walk of the registry.
pub(super) fn find(
    space: &SearchSpace,
    ordered: &[Ordered],
    named: &Schedule,
) -> Option<(usize, Chosen)> {
    let Recipe::Walk(recipe) = &named.recipe else { return None };
    let plain = WalkRecipe { patterns: Vec::new(), ..recipe.clone() };
    let is_it = |frame: &Frame| frame.ports == named.ports && frame.recipe == plain;
    let frame = space.frames.iter().position(is_it)?;
    Some((frame, ordered[frame].chosen(&recipe.patterns)?))
}
