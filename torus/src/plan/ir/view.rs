//! A step as the network model reads it: what all lines along a dimension do alike, or no more
//! than its messages.

use smallvec::SmallVec;

use crate::names::{Rank, StepId};
use crate::patterns::Pattern;

/// The symmetry of a step.
#[derive(Clone, Debug)]
pub enum StepView<'a> {
    /// All lines along one dimension do the same.
    Lines(LineStep<'a>),
    /// No symmetry is known: see [`Flow::volumes`](crate::plan::Flow::volumes).
    Messages,
}

/// What the coordinates of every line along a dimension send each other in a step.
#[derive(Clone, Debug)]
pub struct LineStep<'a> {
    /// The dimension.
    pub dim: usize,
    /// Positions that each message carries, by target of the pattern's step.
    pub positions: SmallVec<[u64; 2]>,
    /// Nothing is sent to this rank: it has everything.
    pub except: Option<Rank>,
    pub(in crate::plan) pattern: &'a Pattern,
    pub(in crate::plan) t: u32,
    pub(in crate::plan) is_backwards: bool,
}

impl LineStep<'_> {
    /// Coordinates on a line.
    pub fn size(&self) -> u32 {
        self.pattern.size()
    }

    /// The messages on a line: sender, receiver, and the target that it is.
    pub fn hops(&self) -> impl Iterator<Item = (u32, u32, usize)> + '_ {
        (0..self.size()).flat_map(move |a| {
            let targets = self.pattern.targets(self.t, a);
            let hop = move |(target, b): (usize, u32)| match self.is_backwards {
                true => (b, a, target),
                false => (a, b, target),
            };
            targets.into_iter().enumerate().map(hop).collect::<SmallVec<[_; 2]>>()
        })
    }

    /// Whether every line has the same senders and receivers as in another step; for steps of one
    /// lane.
    pub fn has_hops_of(&self, other: &LineStep<'_>) -> bool {
        let targets = |step: &LineStep<'_>| step.pattern.targets(step.t, 0);
        (self.dim, self.is_backwards) == (other.dim, other.is_backwards)
            && targets(self) == targets(other)
    }
}

/// What the sends of a step carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependsOn {
    /// What ranks have from the start.
    Nothing,
    /// What has arrived up to a step.
    Step(StepId),
}

impl DependsOn {
    /// On the step before this one, if there is one.
    pub fn before(step: usize) -> Self {
        step.checked_sub(1).map_or(DependsOn::Nothing, |step| DependsOn::Step(StepId(step)))
    }
}
