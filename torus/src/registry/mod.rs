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
mod through;

use std::borrow::Cow;

use crate::collectives::{Collective, Form, ceil_log};
use crate::geometry::{AxisLink, RankMap, Shape};
use crate::patterns::Kind;
use crate::plan::{
    Expect, Interleave, ParLinNa, Placement, PrefixSteps, Recipe, Schedule, ScheduleError,
    StepOrder, WalkRecipe, max_ports,
};
use rows::{Entry, ROWS};
use through::{Relay, Relayed};

/// Which pattern is used in which dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Patterns {
    /// One everywhere, but on a node axis.
    Only(Kind),
    /// The best for each size: see [`best_pattern`].
    Best,
    /// One for each dimension.
    Each(Vec<Kind>),
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
    way: Template,
    summary: &'static str,
}

/// What becomes a schedule's recipe.
#[derive(Clone, Copy, Debug)]
enum Template {
    /// With `leader` one rank of each node takes part, and the others of the node fold onto it.
    Walk {
        form: Form,
        positions: Placement,
        order: StepOrder,
        leader: bool,
    },
    Exchange(Relayed),
    ParLinNa(ParLinNa),
    Linear,
    Prefix(PrefixSteps),
    Trees,
}

/// One algorithm for one collective.
#[derive(Clone, Debug)]
pub struct Algorithm {
    /// The collective that it performs.
    pub collective: Collective,
    /// Its name: unique within the collective.
    pub name: Cow<'static, str>,
    row: &'static Entry,
    patterns: Patterns,
    way: Template,
}

/// What a caller wants performed.
#[derive(Clone, Debug)]
pub struct Request {
    /// The shape of the communicator.
    pub shape: Shape,
    /// Its rank map.
    pub map: RankMap,
    /// The root; 0 for collectives without one.
    pub root: u32,
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
pub fn best_pattern(size: u32) -> Kind {
    match size {
        0..=3 => Kind::Direct,
        _ if size.is_multiple_of(2) => Kind::Bine,
        _ => Kind::Circulant,
    }
}

/// The same in the latency form, where groups must nest. Coordinates beyond the largest power of
/// two are folded onto the others.
fn best_nesting_pattern(size: u32) -> Kind {
    if size <= 3 { Kind::Direct } else { Kind::Bine }
}

/// The pattern for the ranks of one node, who all reach each other at once.
fn node_pattern(size: u32) -> Kind {
    if Kind::Direct.serves(size).is_ok() { Kind::Direct } else { Kind::Circulant }
}

/// The factor by which each step of a pattern's tree multiplies the ranks reached, if it is the
/// same for all steps.
fn tree_radix(kind: &Kind, size: u32) -> Option<u32> {
    match kind {
        Kind::Bine | Kind::Doubling | Kind::Circulant => Some(2),
        Kind::Knomial { radix } => Some(*radix),
        Kind::Direct => Some(size),
        _ => None,
    }
}

impl Algorithm {
    fn new(row: &'static Entry) -> Self {
        Algorithm {
            collective: row.collective,
            name: Cow::Borrowed(&row.name),
            row,
            patterns: row.family.patterns.clone(),
            way: row.usage.way,
        }
    }

    /// One line on what it does.
    pub fn summary(&self) -> String {
        format!("{}: {}", self.row.family.summary, self.row.usage.summary)
    }

    /// Where it comes from.
    pub fn source(&self) -> &'static str {
        self.row.family.source
    }

    /// The name of its form in schedules.
    pub fn form(&self) -> &'static str {
        match self.way {
            Template::Walk { form, .. } => form.name(),
            Template::Exchange(_) => "exchange",
            Template::ParLinNa(_) => "parlinna",
            Template::Linear => "linear",
            Template::Prefix(PrefixSteps::Chain) => "chain",
            Template::Prefix(PrefixSteps::Sweeps) => "sweeps",
            Template::Trees => "trees",
        }
    }

    /// True if every block goes straight from the rank that gives it to the rank that gets it,
    /// so that no other rank needs to know how long it is.
    pub fn is_straight(&self) -> bool {
        matches!(
            self.way,
            Template::Linear | Template::Exchange(Relayed { through: Relay::Owners, .. })
        )
    }

    /// The algorithm that carries the blocks' sizes before the blocks themselves, for an alltoall in
    /// which ranks pass blocks on. Lanes, positions and their order on every rank are the same. As
    /// sizes are short, all messages are sent at once, and all sizes for a rank in one message.
    #[must_use]
    pub fn for_sizes(&self) -> Self {
        let way = match self.way {
            Template::Exchange(Relayed { through, .. }) => {
                Template::Exchange(Relayed { through, batch: None })
            }
            Template::ParLinNa(recipe) => {
                Template::ParLinNa(ParLinNa { batch: None, staggered: false, ..recipe })
            }
            other => other,
        };
        Algorithm { name: Cow::Owned(format!("{}, sizes", self.name)), way, ..self.clone() }
    }

    /// Checks that the algorithm exists for a shape.
    ///
    /// # Errors
    /// [`ScheduleError`] saying which dimension it does not serve and which sizes it would.
    pub fn serves(&self, shape: &Shape) -> Result<(), ScheduleError> {
        self.on(shape).map(drop)
    }

    /// True if it serves the shape with no rank folded onto another: see
    /// [`Schedule::is_folded`].
    pub fn serves_unfolded(&self, shape: &Shape) -> bool {
        self.on(shape).is_ok_and(|schedule| !schedule.is_folded())
    }

    fn on(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        let map = RankMap::RowMajor;
        self.schedule(&Request { shape: shape.clone(), map, root: 0, ports: Some(1) })
    }

    /// The schedule for a request.
    ///
    /// # Errors
    /// [`ScheduleError`] if the shape, the root or the number of ports does not fit.
    pub fn schedule(&self, request: &Request) -> Result<Schedule, ScheduleError> {
        let shape = &request.shape;
        let recipe = match self.way {
            Template::Exchange(blocks) => Recipe::Exchange(blocks.on(shape)),
            Template::ParLinNa(recipe) => Recipe::ParLinNa(recipe),
            Template::Linear => Recipe::Linear,
            Template::Prefix(how) => Recipe::Prefix(how),
            Template::Trees => Recipe::Trees,
            Template::Walk { leader: true, .. } if shape.node_dim().is_none() => {
                return Err(ScheduleError::NoNodes { shape: shape.to_string() });
            }
            Template::Walk { form, positions, order, leader } => Recipe::Walk(WalkRecipe {
                form,
                patterns: self.patterns_on(shape, form, leader),
                order,
                interleave: self.row.family.interleave,
                positions,
            }),
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

    fn patterns_on(&self, shape: &Shape, form: Form, leader: bool) -> Vec<Kind> {
        let on_axis = |kind: &dyn Fn(u32) -> Kind| {
            let axes = shape.axes().iter();
            let pattern = |axis: &crate::geometry::Axis| match axis.link {
                AxisLink::Node if leader => Kind::Leader,
                AxisLink::Node => node_pattern(axis.size),
                AxisLink::Torus | AxisLink::Mesh => kind(axis.size),
            };
            axes.map(pattern).collect()
        };
        match &self.patterns {
            Patterns::Only(kind) => on_axis(&|_| kind.clone()),
            Patterns::Best if form == Form::Latency => on_axis(&best_nesting_pattern),
            Patterns::Best => on_axis(&best_pattern),
            Patterns::Each(kinds) => kinds.clone(),
        }
    }

    /// What the algorithm promises beyond right results. Volume: on every port p - 1 positions for
    /// each pass over p blocks, where that is minimal for every rank; p - 1 at the root of a gather
    /// or scatter. Steps: see `tree_steps`.
    pub fn promises(&self, shape: &Shape) -> Expect {
        let others = u64::from(shape.n_ranks() - 1);
        let sent_per_rank = match (self.way, self.collective) {
            (Template::Walk { form: Form::TwoPhase, .. }, Collective::Allreduce) => {
                Some(2 * others)
            }
            (
                Template::Walk { form: Form::Butterfly, positions, .. },
                Collective::ReduceScatter | Collective::Allgather,
            ) if positions != Placement::Resend => Some(others),
            _ => None,
        };
        let has_root = matches!(self.collective, Collective::Gather | Collective::Scatter);
        Expect { sent_per_rank, at_root: has_root.then_some(others), steps: self.tree_steps(shape) }
    }

    /// The fewest steps of a tree from or to one rank, added up over the dimensions; `None` if the
    /// algorithm is no tree, or has a dimension whose pattern promises nothing.
    fn tree_steps(&self, shape: &Shape) -> Option<u32> {
        let Template::Walk { form: Form::Tree, leader: false, .. } = self.way else { return None };
        if !self.collective.is_rooted() {
            return None;
        }
        let kinds = self.patterns_on(shape, Form::Tree, false).into_iter().zip(shape.axes());
        kinds.map(|(kind, axis)| Some(ceil_log(axis.size, tree_radix(&kind, axis.size)?))).sum()
    }
}

/// The algorithms of a collective, in order of preference for large data on any shape.
pub fn algorithms(collective: Collective) -> Vec<Algorithm> {
    rows(collective).map(Algorithm::new).collect()
}

/// Every row, by collective.
pub fn all() -> Vec<Algorithm> {
    ROWS.iter().map(Algorithm::new).collect()
}

/// The algorithm of a collective by name: a row's, or a row's with other numbers or patterns in it.
///
/// # Errors
/// [`UnknownAlgorithm`] listing the names that exist.
pub fn find(collective: Collective, name: &str) -> Result<Algorithm, UnknownAlgorithm> {
    let plain = || Some(Algorithm::new(row(collective, |row| row.name == name)?));
    plain()
        .or_else(|| with_numbers(collective, name))
        .or_else(|| with_patterns(collective, name))
        .ok_or_else(|| UnknownAlgorithm {
            collective,
            name: name.to_owned(),
            known: rows(collective).map(|row| &*row.name).collect::<Vec<_>>().join(", "),
        })
}

fn rows(collective: Collective) -> impl Iterator<Item = &'static Entry> {
    ROWS.iter().filter(move |row| row.collective == collective)
}

fn row(collective: Collective, is_wanted: impl Fn(&Entry) -> bool) -> Option<&'static Entry> {
    rows(collective).find(|row| is_wanted(row))
}

/// An alltoall with a number of leaders or ranks, or a radix, and a number of messages at a time:
/// `multi-leader:4-batched:8`.
fn with_numbers(collective: Collective, name: &str) -> Option<Algorithm> {
    let (rest, batch) = match (name.strip_suffix(NONBLOCKING), name.rsplit_once(BATCHED)) {
        (Some(rest), _) => (rest, None),
        (None, Some((rest, batch))) => (rest, Some(batch.parse().ok().filter(|&b| b > 0)?)),
        (None, None) => (name, Some(1)),
    };
    let (base, number) = match rest.split_once(':') {
        Some((base, number)) => (base, Some(number.parse().ok()?)),
        None => (rest, None),
    };
    let row = row(collective, |row| row.name == base)?;
    let way = match row.usage.way {
        Template::Exchange(Relayed { through, .. }) => {
            let through = number.map_or(Some(through), |number| through.with(number))?;
            Template::Exchange(Relayed { through, batch })
        }
        Template::ParLinNa(recipe) => {
            let radix = number.unwrap_or(recipe.radix);
            Template::ParLinNa(ParLinNa { radix: (radix >= 2).then_some(radix)?, batch, ..recipe })
        }
        _ => return None,
    };
    Some(Algorithm { name: Cow::Owned(name.to_owned()), way, ..Algorithm::new(row) })
}

/// A family with another parameter, or one pattern for each dimension: `multiplying:4,4,2-l`,
/// `bine/ring/direct-tree`.
fn with_patterns(collective: Collective, name: &str) -> Option<Algorithm> {
    let (patterns, suffix) = name.split_at(name.find('-').unwrap_or(name.len()));
    let kinds = patterns.split('/').map(|kind| kind.parse().ok());
    let kinds: Vec<Kind> = kinds.collect::<Option<_>>()?;
    let (family, patterns) = match &kinds[..] {
        [kind] => (patterns.split(':').next()?, Patterns::Only(kind.clone())),
        _ => ("mixed", Patterns::Each(kinds)),
    };
    let row = row(collective, |row| row.name.strip_prefix(family) == Some(suffix))?;
    Some(Algorithm { name: Cow::Owned(name.to_owned()), patterns, ..Algorithm::new(row) })
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
