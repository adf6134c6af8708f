//! A step as the network model reads it: its symmetry, if all lines along a dimension send the same, or only its
//! messages.

use smallvec::SmallVec;

use crate::geometry::Vertex;
use crate::names::{Rank, StepId};
use crate::patterns::{Pattern, Peers};

/// The symmetry of a step.
#[derive(Clone, Debug)]
pub enum StepView<'a> {
    /// Messages go along one dimension, and all lines along it send the same.
    Lines(LineStep<'a>),
    /// Messages go along several dimensions, and all lines along each of them send the same.
    Products(ProductStep<'a>),
    /// Every rank sends along the same displacements.
    Shifts(ShiftStep),
    /// No symmetry is known; see [`Flow::volumes`](crate::plan::Flow::volumes). Steps of a flow with the same key
    /// have the same messages.
    Messages(Option<MessagesKey>),
}

impl StepView<'_> {
    /// The key of the step's messages, if it has one.
    pub fn into_key(self) -> Option<MessagesKey> {
        match self {
            StepView::Messages(key) => key,
            StepView::Lines(_) | StepView::Products(_) | StepView::Shifts(_) => None,
        }
    }
}

/// A key that determines the messages of a step; see [`StepView::Messages`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessagesKey(pub(in crate::plan) SmallVec<[u32; 8]>);

/// The messages that every rank sends in a step of shifts.
#[derive(Clone, Debug)]
pub struct ShiftStep {
    /// Sizes of the axes along which ranks are displaced. The axes number the vertices in row-major order; they are
    /// the dimensions of the shape, but a node axis may be split into two.
    pub sizes: SmallVec<[u32; 8]>,
    /// The messages of a rank, in the order in which it sends them.
    pub shifts: SmallVec<[Shift; 1]>,
}

/// A message that every rank sends, at the same displacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shift {
    /// By axis, the distance, below the axis's size; coordinates wrap around.
    pub by: SmallVec<[u32; 8]>,
    /// The positions that it carries.
    pub positions: u64,
}

impl ShiftStep {
    /// The vertex that a shift from `from` leads to.
    pub fn target(&self, shift: &Shift, from: Vertex) -> Vertex {
        let (mut rest, mut stride, mut to) = (from.0, 1, 0);
        for (&size, &by) in self.sizes.iter().zip(&shift.by).rev() {
            to += (rest % size + by) % size * stride;
            (rest, stride) = (rest / size, stride * size);
        }
        Vertex(to)
    }
}

/// Messages along several dimensions. A rank sends to each rank whose coordinate in each dimension is its own or a
/// target of the dimension's line step.
#[derive(Clone, Debug)]
pub struct ProductStep<'a> {
    /// The line step of each dimension. A message has the same positions in all of them.
    pub lines: SmallVec<[LineStep<'a>; 2]>,
    /// The positions that each message carries.
    pub positions: u64,
}

impl ProductStep<'_> {
    /// True if all ranks send the same.
    pub fn is_everywhere(&self) -> bool {
        self.lines.iter().all(LineStep::is_everywhere)
    }

    /// All combinations of targets, by dimension, in the order in which a rank posts its messages.
    pub fn choices(&self) -> Vec<TargetChoice> {
        let mut choices = vec![TargetChoice::new()];
        for line in &self.lines {
            let with =
                |choice: &TargetChoice, target| choice.iter().copied().chain([target]).collect();
            let mut next: Vec<TargetChoice> =
                choices.iter().map(|choice| with(choice, None)).collect();
            for choice in &choices {
                next.extend((0..line.positions.len()).map(|target| with(choice, Some(target))));
            }
            choices = next;
        }
        // The combination without any move is not a message.
        choices.remove(0);
        choices
    }
}

/// By dimension of a [`ProductStep`], the target of its line step; `None` for no move along it.
pub type TargetChoice = SmallVec<[Option<usize>; 2]>;

/// The messages that the coordinates of a line along a dimension send each other in a step.
#[derive(Clone, Debug)]
pub struct LineStep<'a> {
    /// The dimension.
    pub dim: usize,
    /// By target of the pattern's step, the most positions that a message carries; 0 if none is sent.
    pub positions: SmallVec<[u64; 2]>,
    /// Nothing is sent to this rank, which has all data.
    pub except: Option<Rank>,
    /// By target, the senders and the positions that each sends, on the lines with the largest volume; other lines
    /// send less, or nothing. `None` if all coordinates of all lines send the same.
    pub(in crate::plan) senders: Option<Vec<Vec<(u32, u64)>>>,
    /// True if all lines, and so all ranks of a node, send about the same, even if the coordinates of a line do
    /// not.
    pub is_on_all_lines: bool,
    pub(in crate::plan) pattern: &'a Pattern,
    /// The pattern's steps that are taken, one after the other.
    pub(in crate::plan) steps: SmallVec<[u32; 2]>,
    pub(in crate::plan) is_backwards: bool,
}

/// A message on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineHop {
    /// The coordinate of the sender.
    pub from: u32,
    /// The coordinate of the receiver.
    pub to: u32,
    /// The target's number in the pattern's step.
    pub target: usize,
    /// The number of positions that the message carries.
    pub positions: u64,
}

impl LineStep<'_> {
    /// Number of coordinates of a line that take part: all, or the first ones.
    pub fn size(&self) -> u32 {
        self.pattern.size()
    }

    /// The coordinates that the steps lead to from coordinate `a`, by target.
    fn targets(&self, a: u32) -> Peers {
        self.pattern.targets_of(&self.steps, a)
    }

    /// True if all lines send the same, and all coordinates of a line the same amount.
    pub fn is_everywhere(&self) -> bool {
        self.senders.is_none()
    }

    /// True if one coordinate can stand for all, also where this step meets other steps of the pattern.
    pub fn is_transitive(&self) -> bool {
        self.is_everywhere() && self.pattern.is_transitive()
    }

    /// The messages on a line with the largest volume.
    pub fn hops(&self) -> impl Iterator<Item = LineHop> + '_ {
        let hop = move |a: u32, b: u32, target: usize, positions: u64| match self.is_backwards {
            true => LineHop { from: b, to: a, target, positions },
            false => LineHop { from: a, to: b, target, positions },
        };
        let n_all = if self.senders.is_none() { self.size() } else { 0 };
        let all = (0..n_all).flat_map(move |a| {
            let targets = self.targets(a);
            let hops =
                (0..).zip(targets).map(|(target, b)| hop(a, b, target, self.positions[target]));
            hops.collect::<SmallVec<[_; 2]>>()
        });
        let listed =
            self.senders.iter().flatten().enumerate().flat_map(move |(target, senders)| {
                let to = move |a| self.targets(a)[target];
                senders.iter().map(move |&(a, positions)| hop(a, to(a), target, positions))
            });
        all.chain(listed)
    }

    /// True if every line has the same senders and receivers in this step and in `other`, a step of the same lane.
    pub fn has_hops_of(&self, other: &LineStep<'_>) -> bool {
        let targets = |step: &LineStep<'_>| {
            let sent = step.targets(0).into_iter().zip(&step.positions);
            sent.map(|(to, &positions)| (to, positions > 0)).collect::<SmallVec<[_; 2]>>()
        };
        self.is_everywhere()
            && other.is_everywhere()
            && (self.dim, self.is_backwards) == (other.dim, other.is_backwards)
            && targets(self) == targets(other)
    }
}

/// The data that the sends of a step depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependsOn {
    /// Data that ranks have at the start.
    Nothing,
    /// Data that have arrived up to and including a step.
    Step(StepId),
}

impl DependsOn {
    /// The dependency on the step before `step`, if there is one.
    pub fn before(step: usize) -> Self {
        step.checked_sub(1).map_or(DependsOn::Nothing, |step| DependsOn::Step(StepId(step)))
    }
}
