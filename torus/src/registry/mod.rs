//! The registry: every algorithm by name, with what it is made of and whom it serves.
//!
//! It drives selection, the command line's lists, the documentation's tables, the test
//! matrix and the benchmarks. No algorithm exists outside it: adding a row to `rows` is all
//! it takes to plan, check, run and draw one.
//!
//! A row is a collective, a family (which pattern in which dimension) and a way to use it. The
//! same name with other patterns in it is an algorithm too: `multiplying:4,4,2-l` is the row
//! `multiplying-l` with these radices, `bine/ring/direct-tree` is `mixed-tree` with a
//! pattern for each dimension. Alltoalls through leaders or groups take their number in the same
//! way, and `-nonblocking` or `-batched:B` behind it: `multi-leader:4-batched:8`.

mod rows;

use std::borrow::Cow;

use crate::collectives::{Collective, WalkForm, ceil_log};
use crate::geometry::{AxisLink, RankMap, Shape};
use crate::names::Rank;
use crate::patterns::PatternKind;
use crate::plan::{
    ExchangeRecipe, ExchangeStages, Expect, Interleave, NodeGroups, Placement, Recipe, Schedule,
    ScheduleError, WalkRecipe, max_ports,
};
pub use rows::family_of;
use rows::{ALIASES, ROWS};

/// Which pattern is used in which dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Patterns {
    /// One everywhere, but on a node axis.
    Only(PatternKind),
    /// The best for each size: see [`best_pattern`].
    Best,
    /// One for each dimension.
    Each(Vec<PatternKind>),
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
    /// A schedule's recipe; a walk gets its patterns from the family and the shape.
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
    /// The name that it is another name of, if it is an alias.
    pub alias_of: Option<String>,
    family: &'static Family,
    variant: &'static Variant,
    patterns: Patterns,
    recipe: Recipe,
}

/// What a caller wants performed.
#[derive(Clone, Debug)]
pub struct Request {
    /// The shape of the communicator.
    pub shape: Shape,
    /// Its rank map.
    pub map: RankMap,
    /// The root; 0 for collectives without one.
    pub root: Rank,
    /// Number of ports, or as many as the shape has directions.
    pub ports: Option<u32>,
}

/// Behind the name of an alltoall whose messages are all sent at once.
const NONBLOCKING: &str = "-nonblocking";
/// Behind the name of an alltoall, before how many messages are sent at a time.
const BATCHED: &str = "-batched:";

/// The default radix limit of the `multiplying` family: near 4 was best on every machine of
/// the generalized-radix paper (section VI).
pub const DEFAULT_MAX_RADIX: u32 = 4;

/// The pattern that `mixed` uses for a dimension: direct where all others are neighbours,
/// bine for even sizes, circulant for odd ones.
pub fn best_pattern(size: u32) -> PatternKind {
    match size {
        0..=3 => PatternKind::Direct,
        _ if size.is_multiple_of(2) => PatternKind::Bine,
        _ => PatternKind::Circulant,
    }
}

/// The same in the latency form, where groups must nest. Coordinates beyond the largest power of
/// two are folded onto the others.
fn best_nesting_pattern(size: u32) -> PatternKind {
    if size <= 3 { PatternKind::Direct } else { PatternKind::Bine }
}

/// The pattern for the ranks of one node, who all reach each other at once.
fn node_pattern(size: u32) -> PatternKind {
    if PatternKind::Direct.serves(size).is_ok() {
        PatternKind::Direct
    } else {
        PatternKind::Circulant
    }
}

/// The factor by which each step of a pattern's tree multiplies the ranks reached, if it is the
/// same for all steps.
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
    /// One line on what it does.
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

    /// Where it comes from.
    pub fn source(&self) -> &'static str {
        self.family.source
    }

    /// The name of its form in schedules.
    pub fn form(&self) -> &'static str {
        self.recipe.form()
    }

    /// True if every block goes straight from the rank that gives it to the rank that gets it,
    /// so that no other rank needs to know how long it is.
    pub fn is_straight(&self) -> bool {
        match &self.recipe {
            Recipe::Exchange(exchange) => exchange.is_straight(),
            recipe => *recipe == Recipe::Linear,
        }
    }

    /// The algorithm that carries the blocks' sizes before the blocks themselves, for an alltoall in
    /// which ranks pass blocks on. Lanes, positions and their order on every rank are the same. As
    /// sizes are short, all messages are sent at once, and all sizes for a rank in one message.
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
    /// [`ScheduleError`] saying which dimension it does not serve and which sizes it would.
    pub fn serves(&self, shape: &Shape) -> Result<(), ScheduleError> {
        self.on(shape).map(drop)
    }

    /// True if it serves the shape with no node folded onto another: see [`Schedule::is_folded`].
    pub fn serves_unfolded(&self, shape: &Shape) -> bool {
        self.on(shape).is_ok_and(|schedule| !schedule.is_folded())
    }

    fn on(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        let map = RankMap::RowMajor;
        self.schedule(&Request { shape: shape.clone(), map, root: Rank(0), ports: Some(1) })
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
                interleave: self.family.interleave,
                ..*walk
            }),
            recipe => recipe.clone(),
        };
        let schedule = Schedule {
            collective: self.collective,
            shape: shape.clone(),
            map: request.map.clone(),
            root: request.root,
            ports: request.ports.unwrap_or_else(|| max_ports(shape)),
            recipe,
        };
        schedule.validate()?;
        Ok(schedule)
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
            Patterns::Each(kinds) => kinds.clone(),
        }
    }

    /// What the algorithm promises beyond right results. Volume: on every port p - 1 positions for
    /// each pass over p blocks, where that is minimal for every rank; p - 1 at the root of a gather
    /// or scatter. Steps: see `tree_steps`.
    pub fn promises(&self, shape: &Shape) -> Expect {
        let others = u64::from(shape.n_ranks() - 1);
        let sent_per_rank = match (&self.recipe, self.collective) {
            (Recipe::Walk(WalkRecipe { form: WalkForm::TwoPhase, .. }), Collective::Allreduce) => {
                Some(2 * others)
            }
            (
                Recipe::Walk(WalkRecipe { form: WalkForm::Butterfly, positions, .. }),
                Collective::ReduceScatter | Collective::Allgather,
            ) if *positions != Placement::Resend => Some(others),
            _ => None,
        };
        let has_root = matches!(self.collective, Collective::Gather | Collective::Scatter);
        Expect { sent_per_rank, at_root: has_root.then_some(others), steps: self.tree_steps(shape) }
    }

    /// The fewest steps of a tree from or to one rank, added up over the dimensions; `None` if the
    /// algorithm is no tree, or has a dimension whose pattern promises nothing.
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
    rows(&ROWS, collective).cloned().collect()
}

/// Every row, by collective.
pub fn all() -> Vec<Algorithm> {
    ROWS.clone()
}

/// The algorithm of a collective by name: a row's, or a row's with other numbers or patterns in it.
///
/// # Errors
/// [`UnknownAlgorithm`] listing the names that exist.
pub fn find(collective: Collective, name: &str) -> Result<Algorithm, UnknownAlgorithm> {
    let plain = || rows(&ROWS, collective).find(|row| row.name == name).cloned();
    plain()
        .or_else(|| with_numbers(&ROWS, collective, name))
        .or_else(|| with_patterns(collective, name))
        .ok_or_else(|| UnknownAlgorithm {
            collective,
            name: name.to_owned(),
            known: rows(&ROWS, collective).map(|row| &*row.name).collect::<Vec<_>>().join(", "),
        })
}

fn rows(all: &[Algorithm], collective: Collective) -> impl Iterator<Item = &Algorithm> {
    all.iter().filter(move |row| row.collective == collective)
}

/// An alltoall with a number of leaders or ranks, or a radix, and a number of messages at a time:
/// `multi-leader:4-batched:8`.
fn with_numbers(all: &[Algorithm], collective: Collective, name: &str) -> Option<Algorithm> {
    let (rest, batch) = match (name.strip_suffix(NONBLOCKING), name.rsplit_once(BATCHED)) {
        (Some(rest), _) => (rest, None),
        (None, Some((rest, batch))) => (rest, Some(batch.parse().ok().filter(|&b| b > 0)?)),
        (None, None) => (name, Some(1)),
    };
    let alias = ALIASES.iter().find(|(alias, _)| *alias == rest);
    let meant = alias.map_or(rest, |(_, meant)| *meant);
    let (base, number) = match meant.split_once(':') {
        Some((base, number)) => (base, Some(number)),
        None => (meant, None),
    };
    // Rows with numbers in their names are no base for others.
    let mut rows = rows(all, collective);
    let row = rows.find(|row| row.name == base && row.recipe == row.variant.recipe)?;
    let Recipe::Exchange(mut exchange) = row.recipe else { return None };
    exchange.batch = batch;
    if let Some(number) = number {
        exchange = with_number(exchange, number)?;
    }
    Some(Algorithm {
        name: Cow::Owned(name.to_owned()),
        alias_of: alias.map(|_| format!("{meant}{}", &name[rest.len()..])),
        recipe: Recipe::Exchange(exchange),
        ..row.clone()
    })
}

/// An exchange with another number of leaders or of ranks in a group, or another radix, if it has
/// such a number; `node` are all ranks of a node.
fn with_number(exchange: ExchangeRecipe, number: &str) -> Option<ExchangeRecipe> {
    let parsed = number.parse();
    let (groups, stages) = match (exchange.groups, exchange.stages) {
        (NodeGroups::WithLeaders(_), stages) => (NodeGroups::WithLeaders(parsed.ok()?), stages),
        (groups, ExchangeStages::InsideFirst { staggered, .. }) => {
            let radix = parsed.ok().filter(|&radix| radix >= 2)?;
            (groups, ExchangeStages::InsideFirst { radix, staggered })
        }
        (_, ExchangeStages::NodesFirst) if number == "node" => {
            (NodeGroups::WholeNode, ExchangeStages::NodesFirst)
        }
        (_, ExchangeStages::NodesFirst) => {
            (NodeGroups::OfSize(parsed.ok()?), ExchangeStages::NodesFirst)
        }
        _ => return None,
    };
    Some(ExchangeRecipe { groups, stages, ..exchange })
}

/// A family with another parameter, or one pattern for each dimension: `multiplying:4,4,2-l`,
/// `bine/ring/direct-tree`.
fn with_patterns(collective: Collective, name: &str) -> Option<Algorithm> {
    let (patterns, suffix) = name.split_at(name.find('-').unwrap_or(name.len()));
    let kinds = patterns.split('/').map(|kind| kind.parse().ok());
    let kinds: Vec<PatternKind> = kinds.collect::<Option<_>>()?;
    let (family, patterns) = match &kinds[..] {
        [kind] => (patterns.split(':').next()?, Patterns::Only(kind.clone())),
        _ => ("mixed", Patterns::Each(kinds)),
    };
    let mut rows = rows(&ROWS, collective);
    let row = rows.find(|row| row.name.strip_prefix(family) == Some(suffix))?;
    Some(Algorithm { name: Cow::Owned(name.to_owned()), patterns, ..row.clone() })
}

/// A name that no algorithm of the collective has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an algorithm for {collective}; known are {known}{hint}", hint = hint(.name))]
pub struct UnknownAlgorithm {
    /// The collective.
    pub collective: Collective,
    /// The name asked for.
    pub name: String,
    /// The names that exist.
    pub known: String,
}

/// What names with parameters may hold.
fn hint(name: &str) -> &'static str {
    if name.contains([':', '/']) {
        ". Radices and groups behind a `:` are 2 or more, leaders and messages at a time 1 or more; \
         patterns with `/` between them are one for each dimension"
    } else {
        ""
    }
}
