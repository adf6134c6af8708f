//! A step as the network model reads it: what all lines along a dimension do alike, or no more
//! than its messages.

use smallvec::SmallVec;

use crate::geometry::Vertex;
use crate::names::{Rank, StepId};
use crate::patterns::{Pattern, Peers};

/// The symmetry of a step.
#[derive(Clone, Debug)]
pub enum StepView<'a> {
    /// Messages go along one dimension, and lines along it do the same.
    Lines(LineStep<'a>),
    /// Messages go along several dimensions, and lines along each of them do the same.
    Products(ProductStep<'a>),
    /// Every rank sends to the ranks at the same displacements.
    Shifts(ShiftStep),
    /// No symmetry is known: see [`Flow::volumes`](crate::plan::Flow::volumes). Steps of a flow that have one
    /// key have the same messages.
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

/// What the messages of a step follow from: see [`StepView::Messages`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessagesKey(pub(in crate::plan) SmallVec<[u32; 8]>);

/// What every rank sends in a step of shifts.
#[derive(Clone, Debug)]
pub struct ShiftStep {
    /// Sizes of the axes along which ranks are displaced, which number the vertices in row-major order:
    /// the dimensions of the shape, of which a node axis may be two here.
    pub sizes: SmallVec<[u32; 8]>,
    /// The messages of a rank, in the order in which it sends them.
    pub shifts: SmallVec<[Shift; 1]>,
}

/// A message that every rank sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shift {
    /// By axis, how far it goes, below the size; past the last coordinate comes the first.
    pub by: SmallVec<[u32; 8]>,
    /// The positions that it carries.
    pub positions: u64,
}

impl ShiftStep {
    /// Where a shift leads.
    pub fn target(&self, shift: &Shift, from: Vertex) -> Vertex {
        let (mut rest, mut stride, mut to) = (from.0, 1, 0);
        for (&size, &by) in self.sizes.iter().zip(&shift.by).rev() {
            to += (rest % size + by) % size * stride;
            (rest, stride) = (rest / size, stride * size);
        }
        Vertex(to)
    }
}

/// Messages along several dimensions: to everyone who is where a line step leads, or as far as before, in each
/// of them.
#[derive(Clone, Debug)]
pub struct ProductStep<'a> {
    /// By dimension, what lines do; all positions are those of a message.
    pub lines: SmallVec<[LineStep<'a>; 2]>,
    /// The positions that each message carries.
    pub positions: u64,
}

impl ProductStep<'_> {
    /// Whether all ranks do the same.
    pub fn is_everywhere(&self) -> bool {
        self.lines.iter().all(LineStep::is_everywhere)
    }

    /// By dimension which target of its line step, if it moves there: in the order in which a rank posts
    /// its messages.
    pub fn choices(&self) -> Vec<Choice> {
        let mut choices = vec![Choice::new()];
        for line in &self.lines {
            let with = |choice: &Choice, target| choice.iter().copied().chain([target]).collect();
            let mut next: Vec<Choice> = choices.iter().map(|choice| with(choice, None)).collect();
            for choice in &choices {
                next.extend((0..line.positions.len()).map(|target| with(choice, Some(target))));
            }
            choices = next;
        }
        // Who moves nowhere sends nothing.
        choices.remove(0);
        choices
    }
}

/// By dimension of a [`ProductStep`], the target of its line step; `None` where nothing moves.
pub type Choice = SmallVec<[Option<usize>; 2]>;

/// What the coordinates of a line along a dimension send each other in a step.
#[derive(Clone, Debug)]
pub struct LineStep<'a> {
    /// The dimension.
    pub dim: usize,
    /// The most positions that a message carries, by target of the pattern's step; 0 where nothing is sent.
    pub positions: SmallVec<[u64; 2]>,
    /// Nothing is sent to this rank: it has everything.
    pub except: Option<Rank>,
    /// The senders of each target with the positions that they send, on the lines on which most is sent:
    /// elsewhere it is less, or nothing. `None` if all coordinates of all lines do the same.
    pub(in crate::plan) senders: Option<Vec<Vec<(u32, u64)>>>,
    /// Whether all lines do much the same, and so all ranks of a node, even if coordinates of a line do not.
    pub is_on_all_lines: bool,
    pub(in crate::plan) pattern: &'a Pattern,
    /// The steps of the pattern that are taken, one after the other.
    pub(in crate::plan) steps: SmallVec<[u32; 2]>,
    pub(in crate::plan) is_backwards: bool,
}

/// A message on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineHop {
    /// The coordinate of the sender.
    pub from: u32,
    /// That of the receiver.
    pub to: u32,
    /// Which target of the pattern's step it is.
    pub target: usize,
    /// What it carries.
    pub positions: u64,
}

impl LineStep<'_> {
    /// Coordinates on a line that take part: all, or the first so many.
    pub fn size(&self) -> u32 {
        self.pattern.size()
    }

    /// Where the steps lead from a coordinate, by target.
    fn targets(&self, a: u32) -> Peers {
        self.pattern.targets_of(&self.steps, a)
    }

    /// Whether all lines do the same, and all coordinates of a line send as much.
    pub fn is_everywhere(&self) -> bool {
        self.senders.is_none()
    }

    /// The messages on a line on which most is sent.
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

    /// Whether every line has the same senders and receivers as in another step; for steps of one lane.
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
