//! The schedule: a collective on a torus as a compact global description.
//!
//! A schedule is a few lines of text at any scale (only an explicit rank map makes it longer). It names no buffers
//! and no bytes; one schedule serves every count.

use super::walk::Interleave;
use crate::collectives::{Collective, Routing, WalkForm};
use crate::geometry::{AxisLink, Cycles, RankMap, Shape};
use crate::names::Rank;
use crate::patterns::{Pattern, PatternKind, UnsupportedSize};
use crate::plan::exchange::{ExchangeRecipe, ExchangeStages};
use crate::plan::ir::split::Split;

crate::named! {
    /// The order of the blocks of a butterfly (Bine, section 4.3.1).
    pub enum Placement {
        /// Path order: messages are one run, or a few. The user's blocks are permuted by a local copy before or
        /// after ("permute").
        Path = "path",
        /// Rank order: nothing is permuted, but messages are many runs ("block by block"; with far-first steps on a
        /// single ring at most two runs, "two transmissions").
        Rank = "rank",
        /// Path order without the permutation: block i has position i, and one more exchange moves it to its rank
        /// ("send"); for allgathers and reduce-scatters.
        Resend = "resend",
        /// Rank order, and each lane moves whole blocks instead of its part of every block: for allgathers and
        /// reduce-scatters.
        Dealt = "dealt",
    }
}

crate::named! {
    /// The order of a pattern's 1-D steps.
    pub enum StepOrder {
        /// Short distances first (distance doubling).
        NearFirst = "near-first",
        /// Long distances first (distance halving).
        FarFirst = "far-first",
    }
}

/// The steps of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrefixSteps {
    /// Rank after rank.
    Chain,
    /// Up and down a binomial tree of ranks.
    Sweeps,
}

crate::named! {
    /// The routes of edge-disjoint spanning trees.
    pub enum TreeWays {
        /// Along the lines of the dimensions: shallow trees, but some nodes send to several others.
        Lines = "trees",
        /// Around Hamiltonian cycles: each node sends to one other node, but the last of n nodes is n - 1 hops
        /// away.
        Cycles = "cycles",
    }
}

/// A collective on a torus, described for all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The collective that is performed.
    pub collective: Collective,
    /// The shape of the torus.
    pub shape: Shape,
    /// The rank map: the rank at each vertex.
    pub map: RankMap,
    /// The root, for rooted collectives; 0 otherwise.
    pub root: Rank,
    /// Number of ports, `1 ..= max(1, 2 * D)` for D dimensions with links.
    pub ports: u32,
    /// The split of the vector, or of every block, over the lanes.
    pub split: Split,
    /// The recipe: how the collective is performed.
    pub recipe: Recipe,
}

/// How a collective is performed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Recipe {
    /// Over walks: 1-D patterns, interleaved.
    Walk(WalkRecipe),
    /// Exchanges between all pairs of ranks, along one set of axes after another.
    Exchange(ExchangeRecipe),
    /// Every rank sends to the root directly, or the root to every rank.
    Linear,
    /// Scans: prefixes of the ranks' vectors, combined in the order of ranks.
    Prefix(PrefixSteps),
    /// Along edge-disjoint spanning trees of the torus, one per lane.
    Trees(TreeWays),
}

/// The names of the forms without a walk.
pub(in crate::plan) const EXCHANGE: &str = "exchange";
pub(in crate::plan) const PARLINNA: &str = "parlinna";
pub(in crate::plan) const LINEAR: &str = "linear";
pub(in crate::plan) const CHAIN: &str = "chain";
pub(in crate::plan) const SWEEPS: &str = "sweeps";
pub(in crate::plan) const TREES: &str = TreeWays::Lines.name();
pub(in crate::plan) const CYCLES: &str = TreeWays::Cycles.name();

impl Recipe {
    /// The name of the recipe's form.
    pub(crate) fn form(&self) -> &'static str {
        match self {
            Recipe::Walk(recipe) => recipe.form.name(),
            Recipe::Exchange(ExchangeRecipe {
                stages: ExchangeStages::InsideFirst { .. }, ..
            }) => PARLINNA,
            Recipe::Exchange(_) => EXCHANGE,
            Recipe::Linear => LINEAR,
            Recipe::Prefix(PrefixSteps::Chain) => CHAIN,
            Recipe::Prefix(PrefixSteps::Sweeps) => SWEEPS,
            Recipe::Trees(ways) => ways.name(),
        }
    }
}

/// The walks of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WalkRecipe {
    /// The passes over the walk.
    pub form: WalkForm,
    /// One pattern per dimension.
    pub patterns: Vec<PatternKind>,
    /// Order of the steps within each dimension.
    pub order: StepOrder,
    /// Order of the steps between dimensions.
    pub interleave: Interleave,
    /// Order of the blocks, for butterflies and two-phase forms.
    pub positions: Placement,
}

impl WalkRecipe {
    /// True if lanes move whole blocks: see [`Placement::Dealt`].
    pub(crate) fn is_dealt(&self) -> bool {
        self.positions == Placement::Dealt
    }
}

/// Why a schedule cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A pattern does not serve the size of a dimension.
    #[error("on shape {shape}, {unserved}")]
    Unserved {
        /// The shape.
        shape: String,
        /// The pattern, the size, and the sizes that the pattern serves.
        unserved: UnsupportedSize,
    },
    /// The number of patterns is not the number of dimensions.
    #[error("{found} patterns for the {expected} dimensions of the shape; give one for each")]
    Patterns {
        /// Patterns given.
        found: usize,
        /// Dimensions.
        expected: usize,
    },
    /// More ports than the shape has directions, or 0.
    #[error("{ports} ports on shape {shape}: use 1 to {max}, two per dimension of size above 1")]
    Ports {
        /// Number of ports in the schedule.
        ports: u32,
        /// The most ports that the shape allows.
        max: u32,
        /// The shape.
        shape: String,
    },
    /// The root is not a rank of the shape.
    #[error("root {root} is not a rank: the shape {shape} has ranks 0 to {last}")]
    Root {
        /// The root in the schedule.
        root: Rank,
        /// The highest rank.
        last: Rank,
        /// The shape.
        shape: String,
    },
    /// The collective has no such form.
    #[error("{collective} has no {form} form")]
    Form {
        /// The collective.
        collective: Collective,
        /// The name of the form.
        form: &'static str,
    },
    /// The algorithm needs ranks that share nodes, and the shape has none.
    #[error("on shape {shape} no ranks share a node; give it a node axis, as in 4x4+4")]
    NoNodes {
        /// The shape.
        shape: String,
    },
    /// The ranks of a node do not fall into equal groups.
    #[error(
        "the {per_node} ranks on each node of {shape} cannot be divided into groups of {group}; group sizes are \
         {sizes}"
    )]
    Groups {
        /// Ranks of a group.
        group: u32,
        /// Ranks on a node.
        per_node: u32,
        /// The shape.
        shape: String,
        /// The sizes that are possible.
        sizes: String,
    },
    /// More leaders than ranks on a node, or 0.
    #[error(
        "the {per_node} ranks on each node of {shape} cannot be shared by {leaders} leaders; there \
         may be 1 to {per_node}"
    )]
    Leaders {
        /// Leaders on a node.
        leaders: u32,
        /// Ranks on a node.
        per_node: u32,
        /// The shape.
        shape: String,
    },
    /// A leader would handle more blocks than there can be positions.
    #[error("leaders would handle {n_positions} blocks, more than 2^32; use more leaders")]
    Blocks {
        /// Number of these blocks.
        n_positions: u64,
    },
    /// Fused steps in a form other than the latency form, whose groups need not nest.
    #[error("the {form} form has no fused steps; use the latency form, or another interleaving")]
    Fused {
        /// The name of the form.
        form: &'static str,
    },
    /// The number of weights is not the number of parts.
    #[error(
        "a split into {found} parts, but {collective} in {form} form on these ports has {expected}; give a weight \
         for each of several parts, or none: then they are equal"
    )]
    Split {
        /// Number of weights given.
        found: u32,
        /// Number of parts that the lanes move.
        expected: u32,
        /// The collective.
        collective: Collective,
        /// The name of the form.
        form: &'static str,
    },
    /// The weights of dealt blocks have too large a sum.
    #[error(
        "whole blocks are dealt in {turns} turns; weights of the split may add up to {most} at most"
    )]
    Turns {
        /// The sum of the weights.
        turns: u32,
        /// The largest sum.
        most: u32,
    },
    /// An order of blocks that the form does not have.
    #[error(
        "{collective} in {form} form has no positions {positions}; an allgather's or a reduce-scatter's butterfly has"
    )]
    Placement {
        /// The collective.
        collective: Collective,
        /// The name of the form.
        form: &'static str,
        /// The order of the blocks.
        positions: Placement,
    },
    /// No Hamiltonian cycles of the shape are known.
    #[error(
        "on shape {shape} no Hamiltonian cycles are known: they need at least two dimensions, one of 3 or more, no \
         mesh, and at most {most} nodes, or {in_many} in more than three dimensions that do not end with 2x3x2; the \
         algorithm trees serves every shape",
        most = Cycles::MOST_NODES,
        in_many = Cycles::MOST_NODES_IN_MANY_DIMS
    )]
    NoCycles {
        /// The shape.
        shape: String,
    },
    /// The latency form would compute different bits on different ranks.
    #[error(
        "the latency form needs groups that nest, and {kind} has none in {order} order on a dimension of size \
         {size}; use the bandwidth form, or doubling, multiplying or direct"
    )]
    NotNested {
        /// The pattern.
        kind: PatternKind,
        /// The order of its steps.
        order: StepOrder,
        /// The size of the dimension.
        size: u32,
    },
}

/// The most ports that a shape can use: two per dimension of size above 1 that has links, at least 1.
pub fn max_ports(shape: &Shape) -> u32 {
    (2 * shape.active_dims().len() as u32).max(1)
}

impl Schedule {
    /// The name of the schedule's form.
    pub fn form(&self) -> &'static str {
        self.recipe.form()
    }

    /// True if some nodes are outside the core of a latency form: they send their vectors to the core before its
    /// steps, and receive the result after them. Ranks of a node that fold onto their leader do not count.
    pub fn is_folded(&self) -> bool {
        let Recipe::Walk(WalkRecipe { form: WalkForm::Latency, patterns, .. }) = &self.recipe
        else {
            return false;
        };
        let all = patterns.iter().zip(self.shape.sizes());
        let mut linked = all.filter(|(kind, _)| **kind != PatternKind::Leader);
        linked.any(|(kind, size)| kind.core(size) < size)
    }

    /// The patterns of the dimensions, mirrored if `mirrored`; opposed instead on rings if all blocks go from all ranks
    /// to all. (On a mesh, a group that is shifted over the end loads all links.) In the latency form, the patterns of
    /// the core, onto which the other ranks fold.
    pub(crate) fn ring_patterns(
        &self,
        recipe: &WalkRecipe,
        mirrored: bool,
    ) -> Result<Vec<Pattern>, ScheduleError> {
        let phases = self.collective.phases(recipe.form).unwrap_or_default();
        let from_all_to_all = phases.iter().all(|phase| phase.routing == Routing::Toward);
        let pattern = |(dim, kind): (usize, &PatternKind)| {
            let size = self.shape.size(dim);
            let size = if recipe.form == WalkForm::Latency { kind.core(size) } else { size };
            let pattern = Pattern::new(kind.clone(), size).map_err(|unserved| {
                ScheduleError::Unserved { shape: self.shape.to_string(), unserved }
            })?;
            let pattern = pattern.far_first(recipe.order == StepOrder::FarFirst);
            let is_ring = self.shape.axes()[dim].link == AxisLink::Torus;
            Ok(match mirrored && from_all_to_all && is_ring {
                true => pattern.opposed(),
                false => pattern.mirrored(mirrored),
            })
        };
        recipe.patterns.iter().enumerate().map(pattern).collect()
    }
}
