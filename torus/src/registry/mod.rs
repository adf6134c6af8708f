//! The registry: every algorithm by name, with its parts and the shapes that it serves.
//!
//! Selection, the command line's lists, the documentation's tables, the test matrix and the benchmarks use the
//! registry. No algorithm exists outside it: a new row in `rows` is enough to plan, check, run and draw an algorithm.
//!
//! A row is a collective, a family (a pattern for each dimension) and a variant (a way to use the family). The same
//! name with other patterns in it is an algorithm too: `multiplying:4,4,2-l` is the row `multiplying-l` with these
//! radices, `bine/ring/direct-tree` is `mixed-tree` with a pattern for each dimension, and
//! `bine/ring/direct@sequential-tree` the same with another order of the dimensions, in the syntax of schedules. A
//! schedule is an algorithm, too ([`Algorithm::of_schedule`]). Names of alltoalls through leaders or groups contain
//! their number in the same way, and may end with `-nonblocking` or `-batched:B`: `multi-leader:4-batched:8`. Any
//! name may end with the weights by which the data are split over the lanes: `mixed-split:3,2,2,3`.

mod fewest;
mod find;
mod numbers;
mod rows;

use std::borrow::Cow;

use crate::collectives::{Collective, WalkForm, ceil_log};
use crate::geometry::{AxisLink, RankMap, Shape};
use crate::names::Rank;
use crate::patterns::PatternKind;
use crate::plan::{
    ExchangeRecipe, ExchangeStages, Expect, Interleave, Placement, Recipe, Schedule, ScheduleError,
    Split, WalkRecipe, max_ports,
};
pub use find::{UnknownAlgorithm, find, name_of};
use rows::ROWS;
pub use rows::family_of;

/// The patterns of the dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Patterns {
    /// One pattern for all dimensions but a node axis.
    Only(PatternKind),
    /// The best for each size: see [`best_pattern`].
    Best,
    /// One for each dimension, and the order in which their steps alternate.
    Each(Vec<PatternKind>, Interleave),
    /// The patterns with which fused steps need the fewest rounds: see [`fewest`].
    Fewest {
        /// The most messages of a rank in a round.
        messages: u32,
    },
}

/// A family of algorithms.
#[derive(Debug)]
struct Family {
    patterns: Patterns,
    interleave: Interleave,
    summary: &'static str,
    source: &'static str,
}

/// How a family is used.
#[derive(Debug)]
struct Variant {
    /// The recipe of its schedules; the patterns of a walk follow from the family and the shape.
    recipe: Recipe,
    /// One rank of each node takes part, and the others of the node fold onto it.
    leader: bool,
    summary: &'static str,
}

/// One algorithm for one collective.
#[derive(Clone, Debug)]
pub struct Algorithm {
    /// The collective that it performs.
    pub collective: Collective,
    /// Its name: unique within the collective.
    pub name: Cow<'static, str>,
    /// The name of which this name is an alias, if it is one.
    pub alias_of: Option<String>,
    family: &'static Family,
    variant: &'static Variant,
    patterns: Patterns,
    recipe: Recipe,
    split: Split,
}

/// The parameters of a schedule, besides its algorithm.
#[derive(Clone, Debug)]
pub struct Request {
    /// The shape of the communicator.
    pub shape: Shape,
    /// Its rank map.
    pub map: RankMap,
    /// The root; 0 for collectives without one.
    pub root: Rank,
    /// Number of ports; `None`: as many as the algorithm's split has parts, or the shape has directions.
    pub ports: Option<u32>,
}

/// Suffix of a name, followed by the weights of the lanes' parts, if these differ.
const SPLIT: &str = "-split:";
/// Suffix of the name of an alltoall whose messages are all sent at once.
const NONBLOCKING: &str = "-nonblocking";
/// Suffix of the name of an alltoall, followed by the number of messages that are sent at a time.
const BATCHED: &str = "-batched:";

/// Separates the patterns of all dimensions in a name from the order in which their steps alternate.
const IN_ORDER: char = '@';

/// The family of latency forms whose steps are fused.
const FUSED: &str = "fused";

/// The default number of messages of a rank in a round of fused steps: Fugaku's six network interfaces.
const DEFAULT_MESSAGES: u32 = 6;

/// The default radix limit of the `multiplying` family: near 4 was best on every machine of
/// the generalized-radix paper (section VI).
pub const DEFAULT_MAX_RADIX: u32 = 4;

/// The pattern that `mixed` uses for a dimension: direct where all other coordinates are neighbours, bine for even
/// sizes, circulant for odd ones.
pub fn best_pattern(size: u32) -> PatternKind {
    match size {
        0..=3 => PatternKind::Direct,
        _ if size.is_multiple_of(2) => PatternKind::Bine,
        _ => PatternKind::Circulant,
    }
}

/// The pattern that `mixed` uses in the latency form, where groups must nest. Coordinates beyond the largest power of
/// two are folded onto the others.
fn best_nesting_pattern(size: u32) -> PatternKind {
    if size <= 3 { PatternKind::Direct } else { PatternKind::Bine }
}

/// The pattern for the ranks of one node, which are all one hop from each other.
fn node_pattern(size: u32) -> PatternKind {
    if PatternKind::Direct.serves(size).is_ok() {
        PatternKind::Direct
    } else {
        PatternKind::Circulant
    }
}

/// The factor by which each step of a pattern's tree multiplies the number of ranks reached, if it is the same for
/// all steps.
fn tree_radix(kind: &PatternKind, size: u32) -> Option<u32> {
    match kind {
        PatternKind::Bine | PatternKind::Doubling | PatternKind::Circulant => Some(2),
        PatternKind::Balanced => Some(3),
        PatternKind::Knomial { radix } => Some(*radix),
        PatternKind::Direct => Some(size),
        _ => None,
    }
}

impl Algorithm {
    /// The algorithm of a schedule, for any shape that it serves: the algorithm whose name the schedule has, or one
    /// named after a hash of the schedule.
    pub fn of_schedule(schedule: &Schedule) -> Self {
        let collective = schedule.collective;
        let equal = Schedule { split: Split::default(), ..schedule.clone() };
        let named = name_of(&equal).and_then(|name| find(collective, &name).ok());
        named.unwrap_or_else(|| rows::unnamed(&equal)).with_split(schedule.split.clone())
    }

    /// The same algorithm with other weights of the parts.
    fn with_split(self, split: Split) -> Self {
        if split.is_equal() {
            return self;
        }
        let named = |name: &str| format!("{name}{SPLIT}{split}");
        let alias_of = self.alias_of.as_deref().map(named);
        Algorithm { name: Cow::Owned(named(&self.name)), alias_of, split, ..self }
    }

    /// Whether it may have this number of ports: its split, if it has one, has as many parts.
    pub fn is_for(&self, ports: u32) -> bool {
        self.ports().is_none_or(|parts| parts == ports)
    }

    /// The same algorithm, with equal parts if its split is for another number of ports.
    #[must_use]
    pub fn on_ports(self, ports: u32) -> Self {
        if self.is_for(ports) {
            return self;
        }
        let named = |name: &str| name.rsplit_once(SPLIT).map_or(name, |(of, _)| of).to_owned();
        let (name, alias_of) = (Cow::Owned(named(&self.name)), self.alias_of.as_deref().map(named));
        Algorithm { name, alias_of, split: Split::default(), ..self }
    }

    /// A one-line description.
    pub fn summary(&self) -> String {
        let used = match &self.recipe {
            Recipe::Exchange(ExchangeRecipe { batch: None, .. }) => "all at once",
            _ => self.variant.summary,
        };
        match &self.alias_of {
            Some(name) => format!("another name of {name}"),
            None => format!("{}: {used}", self.family.summary),
        }
    }

    /// The source: a paper or a section of the documentation.
    pub fn source(&self) -> &'static str {
        self.family.source
    }

    /// The papers that use it as a baseline, if any.
    pub fn baseline_of(&self) -> Option<&'static str> {
        rows::baseline_of(self)
    }

    /// The name of its form in schedules.
    pub fn form(&self) -> &'static str {
        self.recipe.form()
    }

    /// The only number of ports that it serves, if its split has a number of parts; `None` if it serves any number.
    pub fn ports(&self) -> Option<u32> {
        self.split.parts()
    }

    /// True if every block goes straight from the rank that gives it to the rank that gets it, so that no other rank
    /// needs to know its length.
    pub fn is_direct(&self) -> bool {
        match &self.recipe {
            Recipe::Exchange(exchange) => exchange.is_direct(),
            recipe => *recipe == Recipe::Linear,
        }
    }

    /// The algorithm that carries the sizes of blocks before the blocks themselves, for an alltoall in which ranks
    /// forward blocks. It has the same lanes and positions in the same order on every rank. As sizes are short, all
    /// messages are sent at once, and all sizes for a rank are in one message.
    #[must_use]
    pub fn for_sizes(&self) -> Self {
        let mut algorithm = self.clone();
        algorithm.name = Cow::Owned(format!("{}, sizes", self.name));
        if let Recipe::Exchange(exchange) = &mut algorithm.recipe {
            exchange.batch = None;
            if let ExchangeStages::InsideFirst { staggered, .. } = &mut exchange.stages {
                *staggered = false;
            }
        }
        algorithm
    }

    /// Checks that the algorithm exists for a shape.
    ///
    /// # Errors
    /// [`ScheduleError`] with the dimension that the algorithm does not serve and the sizes that it would serve.
    pub fn serves(&self, shape: &Shape) -> Result<(), ScheduleError> {
        self.on(shape).map(drop)
    }

    /// True if it serves the shape with no node folded onto another: see [`Schedule::is_folded`].
    pub fn serves_unfolded(&self, shape: &Shape) -> bool {
        self.on(shape).is_ok_and(|schedule| !schedule.is_folded())
    }

    fn on(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        let map = RankMap::RowMajor;
        let ports = Some(self.ports().unwrap_or(1));
        self.schedule(&Request { shape: shape.clone(), map, root: Rank(0), ports })
    }

    /// The schedule for a request.
    ///
    /// # Errors
    /// [`ScheduleError`] if the shape, the root or the number of ports does not fit.
    pub fn schedule(&self, request: &Request) -> Result<Schedule, ScheduleError> {
        let shape = &request.shape;
        let recipe = match &self.recipe {
            Recipe::Walk(_) if self.variant.leader && shape.node_dim().is_none() => {
                return Err(ScheduleError::NoNodes { shape: shape.to_string() });
            }
            Recipe::Walk(walk) => Recipe::Walk(WalkRecipe {
                patterns: self.patterns_on(shape, walk.form),
                interleave: self.interleave(),
                ..*walk
            }),
            recipe => recipe.clone(),
        };
        let schedule = Schedule {
            collective: self.collective,
            shape: shape.clone(),
            map: request.map.clone(),
            root: request.root,
            ports: request.ports.or(self.ports()).unwrap_or_else(|| max_ports(shape)),
            split: self.split.clone(),
            recipe,
        };
        schedule.validate()?;
        Ok(schedule)
    }

    fn interleave(&self) -> Interleave {
        match self.patterns {
            Patterns::Fewest { messages } => Interleave::Fused { messages },
            Patterns::Each(_, interleave) => interleave,
            _ => self.family.interleave,
        }
    }

    fn patterns_on(&self, shape: &Shape, form: WalkForm) -> Vec<PatternKind> {
        let on_axis = |kind: &dyn Fn(u32) -> PatternKind| {
            let axes = shape.axes().iter();
            let pattern = |axis: &crate::geometry::Axis| match axis.link {
                AxisLink::Node if self.variant.leader => PatternKind::Leader,
                AxisLink::Node => node_pattern(axis.size),
                AxisLink::Torus | AxisLink::Mesh => kind(axis.size),
            };
            axes.map(pattern).collect()
        };
        match &self.patterns {
            Patterns::Only(kind) => on_axis(&|_| kind.clone()),
            Patterns::Best if form == WalkForm::Latency => on_axis(&best_nesting_pattern),
            Patterns::Best => on_axis(&best_pattern),
            Patterns::Each(kinds, _) => kinds.clone(),
            Patterns::Fewest { messages } => fewest::patterns(shape, *messages),
        }
    }

    /// The guarantees beyond right results. Volume: on every port p - 1 positions for each pass over p blocks, in
    /// forms in which that is minimal for every rank; p - 1 at the root of a gather or scatter. Steps: see
    /// `tree_steps`.
    pub fn promises(&self, shape: &Shape) -> Expect {
        let others = u64::from(shape.n_ranks() - 1);
        let sent_per_rank = match (&self.recipe, self.collective) {
            (Recipe::Walk(WalkRecipe { form: WalkForm::TwoPhase, .. }), Collective::Allreduce) => {
                Some(2 * others)
            }
            (
                Recipe::Walk(WalkRecipe { form: WalkForm::Butterfly, positions, .. }),
                Collective::ReduceScatter | Collective::Allgather,
            ) if !matches!(positions, Placement::Resend | Placement::Dealt) => Some(others),
            _ => None,
        };
        let has_root = matches!(self.collective, Collective::Gather | Collective::Scatter);
        Expect { sent_per_rank, at_root: has_root.then_some(others), steps: self.tree_steps(shape) }
    }

    /// The fewest steps of a tree from or to one rank, added up over the dimensions; `None` if the algorithm is not a
    /// tree, or if a dimension's pattern has no [`tree_radix`].
    fn tree_steps(&self, shape: &Shape) -> Option<u32> {
        let is_tree = matches!(&self.recipe, Recipe::Walk(WalkRecipe { form: WalkForm::Tree, .. }));
        if !is_tree || !self.collective.is_rooted() {
            return None;
        }
        let kinds = self.patterns_on(shape, WalkForm::Tree).into_iter().zip(shape.axes());
        kinds.map(|(kind, axis)| Some(ceil_log(axis.size, tree_radix(&kind, axis.size)?))).sum()
    }
}

/// The algorithms of a collective, in order of preference for large data on any shape.
pub fn algorithms(collective: Collective) -> Vec<Algorithm> {
    rows_of(&ROWS, collective).cloned().collect()
}

/// Every row, by collective.
pub fn all() -> Vec<Algorithm> {
    ROWS.clone()
}

fn rows_of(all: &[Algorithm], collective: Collective) -> impl Iterator<Item = &Algorithm> {
    all.iter().filter(move |row| row.collective == collective)
}
