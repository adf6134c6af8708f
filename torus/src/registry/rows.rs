//! The rows of the registry.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use super::numbers::with_numbers;
use super::{Algorithm, DEFAULT_MAX_RADIX, DEFAULT_MESSAGES, FUSED, Family, Patterns, Variant};
use crate::collectives::Collective::{
    self, Allgather, Allreduce, Alltoall, Barrier, Bcast, Exscan, Gather, Reduce, ReduceScatter,
    Scan, Scatter,
};
use crate::collectives::WalkForm::{self, Butterfly, Latency, Tree, TwoPhase};
use crate::patterns::PatternKind;
use crate::plan::Interleave::{self, RoundRobin, Sequential};
use crate::plan::Placement::{self, Dealt, Path, Rank, Resend};
use crate::plan::StepOrder::{self, FarFirst, NearFirst};
use crate::plan::{
    ExchangeRecipe, ExchangeStages, NodeGroups, PrefixSteps, Recipe, Schedule, Split, TreeWays,
    WalkRecipe,
};

const fn family(
    patterns: Patterns,
    interleave: Interleave,
    summary: &'static str,
    source: &'static str,
) -> Family {
    Family { patterns, interleave, summary, source }
}

const fn best(summary: &'static str, source: &'static str) -> Family {
    family(Patterns::Best, RoundRobin, summary, source)
}

const fn only(kind: PatternKind, summary: &'static str, source: &'static str) -> Family {
    family(Patterns::Only(kind), RoundRobin, summary, source)
}

const BINE_PAPER: &str = "Bine trees, sections 3-4 and appendix D";
const SWING_PAPER: &str = "Swing, sections 3-4";
const BUCKET_PAPER: &str = "Swing, section 2.3.4 (bucket)";
const RABENSEIFNER: &str = "Rabenseifner; Thakur et al. 2005";
const RADIX_PAPER: &str = "generalized radix, section IV";
const KNOMIAL_PAPER: &str = "generalized radix, section III";
const KRING_PAPER: &str = "generalized radix, section V";
const BRUCK_PAPER: &str = "Bruck et al. 1997; Fan et al. 2025 (ParLogNa)";
const DECOMPOSITIONS: &str = "Kotzig 1973, Foregger 1978; docs/algorithms.md";
const TRINARYX: &str = "after Fujitsu's trinaryx; docs/algorithms.md";
const PREFIX_PAPERS: &str = "Brent and Kung 1982; Blelloch 1990";
const NODE_PAPER: &str = "many-core alltoall, section 3";
const PARLINNA_PAPER: &str = "Fan et al. 2025, section 4 (ParLinNa)";
const TRIVANCE: &str = "Trivance (arXiv 2602.17254); every size: docs/algorithms.md";
const OURS: &str = "algorithms.md, section 1";
const RADIX: PatternKind = PatternKind::Multiplying { max_radix: DEFAULT_MAX_RADIX };

static MIXED: Family = best("best pattern per dimension", OURS);
static BINE: Family = only(PatternKind::Bine, "bine steps", BINE_PAPER);
static SWING: Family = only(PatternKind::Bine, "bine steps, block by block", SWING_PAPER);
static DOUBLING: Family = only(PatternKind::Doubling, "XOR steps", RABENSEIFNER);
static CIRCULANT: Family = only(PatternKind::Circulant, "one-way steps", OURS);
static BALANCED: Family = only(PatternKind::Balanced, "steps both ways at once", TRIVANCE);
static MULTIPLYING: Family = only(RADIX, "groups of up to 4", RADIX_PAPER);
static KNOMIAL: Family =
    only(PatternKind::Knomial { radix: DEFAULT_MAX_RADIX }, "k-nomial trees, k = 4", KNOMIAL_PAPER);
static BRUCK: Family = only(
    PatternKind::Bruck { radix: DEFAULT_MAX_RADIX },
    "one way by digits, radix 4",
    BRUCK_PAPER,
);
static KRING: Family = family(
    Patterns::Only(PatternKind::KRing { group: DEFAULT_MAX_RADIX }),
    Sequential,
    "rings in groups of 4, steps between groups",
    KRING_PAPER,
);
static DIRECT: Family = only(PatternKind::Direct, "one step per dimension", OURS);
static BUCKET: Family = family(
    Patterns::Only(PatternKind::Ring),
    Sequential,
    "rings, one dimension at a time",
    BUCKET_PAPER,
);
static FUSED_STEPS: Family = family(
    Patterns::Fewest { messages: DEFAULT_MESSAGES },
    RoundRobin,
    "steps together, up to 6 messages a rank",
    OURS,
);
static TREES: Family = best("edge-disjoint spanning trees", TRINARYX);
static CYCLES: Family = best("edge-disjoint Hamiltonian cycles", DECOMPOSITIONS);
static PREFIX: Family = best("prefixes in rank order", PREFIX_PAPERS);
static LEADERS_OF_NODE: Family = best("2 leaders per node for all blocks", NODE_PAPER);
static GROUPS: Family = best("between groups of 2, then inside", NODE_PAPER);
static LEADERS_AND_NODES: Family =
    best("2 leaders per node, between nodes, then inside", NODE_PAPER);
static INSIDE_FIRST: Family =
    best("inside nodes by digits of radix 4, then between nodes", PARLINNA_PAPER);
static ALL: Family = best("every block straight to its owner", OURS);
static UNNAMED: Family = best("a schedule", "the user's");

const fn usage(
    form: WalkForm,
    positions: Placement,
    order: StepOrder,
    summary: &'static str,
) -> Variant {
    Variant { recipe: walk(form, positions, order), leader: false, summary }
}

const fn between_leaders(summary: &'static str) -> Variant {
    Variant { recipe: walk(Latency, Path, FarFirst), leader: true, summary }
}

const fn walk(form: WalkForm, positions: Placement, order: StepOrder) -> Recipe {
    // The family and the shape determine the patterns and the interleaving later.
    let patterns = Vec::new();
    Recipe::Walk(WalkRecipe { form, patterns, order, interleave: RoundRobin, positions })
}

static B: Variant = usage(TwoPhase, Path, NearFirst, "reduce-scatter, then allgather (B)");
static B_BLOCK: Variant = usage(TwoPhase, Rank, NearFirst, "as B, in rank order");
static L: Variant = usage(Latency, Path, FarFirst, "whole vector at every step (L)");
static L_BARRIER: Variant = usage(Latency, Path, FarFirst, "groups that nest");
static LEADER_L: Variant =
    between_leaders("a node folds onto its leader; leaders, whole vector at every step (L)");
static LEADER_BARRIER: Variant =
    between_leaders("a node reports to its leader; leaders by dissemination");
static TREE_AND_BACK: Variant = usage(Tree, Path, NearFirst, "tree to rank 0 and back");
static PERMUTE: Variant = usage(Butterfly, Path, NearFirst, "contiguous, blocks permuted locally");
static BLOCK: Variant = usage(Butterfly, Rank, NearFirst, "rank order, block by block");
static SEND: Variant =
    usage(Butterfly, Resend, NearFirst, "contiguous, blocks put right by one more exchange");
static DEALT: Variant =
    usage(Butterfly, Dealt, NearFirst, "rank order, whole blocks dealt to lanes");
static TWO: Variant = usage(Butterfly, Rank, FarFirst, "rank order, long distances first");
static SCATTER_ALLGATHER: Variant = usage(TwoPhase, Path, NearFirst, "scatter, then allgather");
static REDUCE_SCATTER_GATHER: Variant =
    usage(TwoPhase, Path, NearFirst, "reduce-scatter, then gather");
// A tree from the root takes the steps of the tree to the root backwards.
static TREE_FROM_FAR: Variant = usage(Tree, Path, NearFirst, "tree, long distances first");
static TREE_FROM_NEAR: Variant = usage(Tree, Path, FarFirst, "tree, short distances first");
static TREE_TO_NEAR: Variant = usage(Tree, Path, NearFirst, "tree, short distances first");
static TREE_TO_FAR: Variant = usage(Tree, Path, FarFirst, "tree, long distances first");
static LOGARITHMIC: Variant = usage(Butterfly, Path, NearFirst, "blocks sharing a path together");
static DISSEMINATION: Variant = usage(Butterfly, Path, NearFirst, "dissemination");

const fn without_walk(recipe: Recipe, summary: &'static str) -> Variant {
    Variant { recipe, leader: false, summary }
}

const fn exchange(groups: NodeGroups, stages: ExchangeStages, summary: &'static str) -> Variant {
    without_walk(Recipe::Exchange(ExchangeRecipe { groups, stages, batch: Some(1) }), summary)
}

const fn inside_first(staggered: bool, summary: &'static str) -> Variant {
    let stages = ExchangeStages::InsideFirst { radix: DEFAULT_MAX_RADIX, staggered };
    exchange(NodeGroups::WholeNode, stages, summary)
}

static PAIRWISE: Variant =
    exchange(NodeGroups::OfSize(1), ExchangeStages::Together, "rounds over different links");
static BY_DIMENSION: Variant =
    exchange(NodeGroups::WholeNode, ExchangeStages::Dimensions, "one dimension after the other");
static TO_LEADERS: Variant =
    exchange(NodeGroups::WithLeaders(2), ExchangeStages::Together, "pairwise");
static GROUPS_FIRST: Variant =
    exchange(NodeGroups::OfSize(2), ExchangeStages::NodesFirst, "pairwise");
static LEADERS_FIRST: Variant =
    exchange(NodeGroups::WithLeaders(2), ExchangeStages::NodesFirst, "pairwise");
static COALESCED: Variant = inside_first(false, "all blocks for a rank in one message");
static STAGGERED: Variant = inside_first(true, "a message for each block");
static TO_ROOT: Variant = without_walk(Recipe::Linear, "all to the root directly");
static FROM_ROOT: Variant = without_walk(Recipe::Linear, "the root to all directly");
static CHAIN: Variant =
    without_walk(Recipe::Prefix(PrefixSteps::Chain), "rank after rank, pipelined");
static SWEEPS: Variant =
    without_walk(Recipe::Prefix(PrefixSteps::Sweeps), "up and down a binomial tree");
static ALONG_TREES: Variant =
    without_walk(Recipe::Trees(TreeWays::Lines), "one tree per port, pipelined");
static AROUND_CYCLES: Variant =
    without_walk(Recipe::Trees(TreeWays::Cycles), "one way around a cycle per port, pipelined");

static AS_WRITTEN: Variant = without_walk(Recipe::Linear, "as it is written");

/// The algorithm of a schedule for which no row has a name.
pub(super) fn unnamed(schedule: &Schedule) -> Algorithm {
    let mut hasher = DefaultHasher::new();
    schedule.recipe.hash(&mut hasher);
    let patterns = match &schedule.recipe {
        Recipe::Walk(walk) => Patterns::Each(walk.patterns.clone(), walk.interleave),
        _ => UNNAMED.patterns.clone(),
    };
    Algorithm {
        collective: schedule.collective,
        name: Cow::Owned(format!("schedule:{:016x}", hasher.finish())),
        alias_of: None,
        family: &UNNAMED,
        variant: &AS_WRITTEN,
        patterns,
        recipe: schedule.recipe.clone(),
        split: Split::default(),
    }
}

/// Names of alltoalls that are listed, too, though they are other rows with certain numbers.
static LISTED: [&str; 8] = [
    "pairwise-nonblocking",
    "hierarchical",
    "hierarchical-nonblocking",
    "multi-leader-nonblocking",
    "node-aware",
    "node-aware-nonblocking",
    "locality-aware-nonblocking",
    "multi-leader-node-aware-nonblocking",
];

/// The families over patterns, in the order of the lists, with the prefixes of their algorithms' names.
static OVER_PATTERNS: [(&str, &Family); 13] = [
    ("mixed", &MIXED),
    ("bine", &BINE),
    ("swing", &SWING),
    ("doubling", &DOUBLING),
    ("circulant", &CIRCULANT),
    ("balanced", &BALANCED),
    ("multiplying", &MULTIPLYING),
    (FUSED, &FUSED_STEPS),
    ("knomial", &KNOMIAL),
    ("bruck", &BRUCK),
    ("direct", &DIRECT),
    ("bucket", &BUCKET),
    ("kring", &KRING),
];

/// The papers that use this algorithm as a baseline, if any.
pub(super) fn baseline_of(algorithm: &Algorithm) -> Option<&'static str> {
    Some(match (family_of(&algorithm.name), algorithm.collective) {
        ("doubling" | "bucket", Allreduce) => "Bine, Swing",
        ("doubling", Alltoall | Barrier) => return None,
        ("swing" | "doubling", _)
        | ("bucket", ReduceScatter | Allgather | Bcast)
        | ("bruck", Allgather)
        | ("linear", Gather | Scatter) => "Bine",
        ("bruck", Alltoall) => "Bine, ParLogNa",
        ("pairwise", Alltoall) => "many-core alltoall, ParLinNa",
        ("multi-leader" | "hierarchical" | "node-aware", Alltoall) => "many-core alltoall",
        _ => return None,
    })
}

/// The family of an algorithm's name: `bine` for `bine-l`, `multiplying` for `multiplying:8-two`, `multi-leader` for
/// `multi-leader:4-batched:8`; `mixed` for one pattern for each dimension; `schedule` for a schedule without a name.
pub fn family_of(algorithm: &str) -> &str {
    if algorithm.contains(['/', super::IN_ORDER]) {
        return OVER_PATTERNS[0].0;
    }
    let pattern = algorithm.split(['-', ':']).next().unwrap_or(algorithm);
    if OVER_PATTERNS.iter().any(|(name, _)| *name == pattern) {
        return pattern;
    }
    let options = [":", super::NONBLOCKING, super::BATCHED, super::SPLIT];
    let end = options.iter().filter_map(|option| algorithm.find(option)).min();
    &algorithm[..end.unwrap_or(algorithm.len())]
}

/// A collective, the suffix of its algorithms' names, the variant that they use, the families.
type RowGroup = (Collective, &'static str, &'static Variant, &'static [&'static Family]);

/// Every algorithm, grouped by variant.
#[rustfmt::skip]
static BY_USE: &[RowGroup] = &[
    (Allreduce, "", &B, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET, &KRING]),
    (Allreduce, "-block", &B_BLOCK, &[&MIXED, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (Allreduce, "-l", &L, &[&MIXED, &BINE, &DOUBLING, &BALANCED, &MULTIPLYING, &FUSED_STEPS, &DIRECT]),
    (Allreduce, "-leader-l", &LEADER_L, &[&MIXED, &MULTIPLYING]),
    (Allreduce, "", &B_BLOCK, &[&SWING]),
    (Allreduce, "-tree", &TREE_AND_BACK, &[&KNOMIAL]),
    (ReduceScatter, "", &PERMUTE, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET, &KRING]),
    (ReduceScatter, "-block", &BLOCK, &[&MIXED, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (ReduceScatter, "-send", &SEND, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (ReduceScatter, "-two", &TWO, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (ReduceScatter, "", &BLOCK, &[&SWING]),
    (ReduceScatter, "-dealt", &DEALT, &[&MIXED, &CIRCULANT, &BALANCED, &BUCKET]),
    (Allgather, "", &PERMUTE, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET, &KRING]),
    (Allgather, "-block", &BLOCK, &[&MIXED, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (Allgather, "-send", &SEND, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (Allgather, "-two", &TWO, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (Allgather, "", &BLOCK, &[&SWING]),
    (Allgather, "-dealt", &DEALT, &[&MIXED, &CIRCULANT, &BALANCED, &BUCKET]),
    (Allgather, "-tree", &TREE_AND_BACK, &[&KNOMIAL]),
    (Bcast, "", &SCATTER_ALLGATHER, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &DIRECT, &BUCKET, &KRING]),
    (Bcast, "-tree", &TREE_FROM_FAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &KNOMIAL, &DIRECT, &BUCKET]),
    (Bcast, "-tree-near", &TREE_FROM_NEAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &KNOMIAL]),
    (Bcast, "trees", &ALONG_TREES, &[&TREES]),
    (Bcast, "cycles", &AROUND_CYCLES, &[&CYCLES]),
    (Reduce, "", &REDUCE_SCATTER_GATHER, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &DIRECT, &BUCKET]),
    (Reduce, "-tree", &TREE_TO_NEAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &KNOMIAL, &DIRECT, &BUCKET]),
    (Reduce, "-tree-far", &TREE_TO_FAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &KNOMIAL]),
    (Reduce, "trees", &ALONG_TREES, &[&TREES]),
    (Reduce, "cycles", &AROUND_CYCLES, &[&CYCLES]),
    (Gather, "", &TREE_TO_NEAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &KNOMIAL, &DIRECT, &BUCKET]),
    (Gather, "-far", &TREE_TO_FAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &KNOMIAL]),
    (Gather, "linear", &TO_ROOT, &[&ALL]),
    (Scatter, "", &TREE_FROM_FAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &KNOMIAL, &DIRECT, &BUCKET]),
    (Scatter, "-near", &TREE_FROM_NEAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &KNOMIAL]),
    (Scatter, "linear", &FROM_ROOT, &[&ALL]),
    (Alltoall, "", &LOGARITHMIC, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET]),
    (Alltoall, "pairwise", &PAIRWISE, &[&ALL]),
    (Alltoall, "dimensions", &BY_DIMENSION, &[&ALL]),
    (Alltoall, "multi-leader", &TO_LEADERS, &[&LEADERS_OF_NODE]),
    (Alltoall, "locality-aware", &GROUPS_FIRST, &[&GROUPS]),
    (Alltoall, "multi-leader-node-aware", &LEADERS_FIRST, &[&LEADERS_AND_NODES]),
    (Alltoall, "parlinna", &COALESCED, &[&INSIDE_FIRST]),
    (Alltoall, "parlinna-staggered", &STAGGERED, &[&INSIDE_FIRST]),
    (Scan, "sweeps", &SWEEPS, &[&PREFIX]),
    (Scan, "chain", &CHAIN, &[&PREFIX]),
    (Exscan, "sweeps", &SWEEPS, &[&PREFIX]),
    (Exscan, "chain", &CHAIN, &[&PREFIX]),
    (Barrier, "", &DISSEMINATION, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &BALANCED, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET]),
    (Barrier, "-l", &L_BARRIER, &[&FUSED_STEPS]),
    (Barrier, "-leader", &LEADER_BARRIER, &[&MIXED]),
];

/// Every algorithm, by collective and in order of preference.
pub(super) static ROWS: LazyLock<Vec<Algorithm>> = LazyLock::new(|| {
    let rows = BY_USE.iter().flat_map(|&(collective, suffix, variant, families)| {
        families.iter().map(move |&family| {
            let known = |&(_, known): &(&str, &Family)| std::ptr::eq(known, family);
            let place = OVER_PATTERNS.iter().position(known);
            let name = format!("{}{suffix}", place.map_or("", |at| OVER_PATTERNS[at].0));
            let row = Algorithm {
                collective,
                name: Cow::Owned(name),
                alias_of: None,
                family,
                variant,
                patterns: family.patterns.clone(),
                recipe: variant.recipe.clone(),
                split: Split::default(),
            };
            (place.unwrap_or(usize::MAX), row)
        })
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(place, row)| (row.collective, *place));
    let mut rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    let listed =
        LISTED.map(|name| with_numbers(&rows, Alltoall, name).expect("a row with numbers"));
    rows.extend(listed);
    rows.sort_by_key(|row| row.collective);
    rows
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;

    #[test]
    fn algorithms_belong_to_families() {
        for (algorithm, family) in [
            ("bine", "bine"),
            ("bine-l", "bine"),
            ("knomial:8-tree-near", "knomial"),
            ("bine/ring/direct-tree", "mixed"),
            ("knomial:3@sequential-tree", "mixed"),
            ("multi-leader:4-batched:8", "multi-leader"),
            ("multi-leader-node-aware-nonblocking", "multi-leader-node-aware"),
            ("pairwise-nonblocking", "pairwise"),
            ("pairwise-batched:8", "pairwise"),
            ("trees", "trees"),
            ("trees-split:1,2", "trees"),
            ("mixed-tree-split:3,2,2", "mixed"),
            ("mine.txt", "mine.txt"),
        ] {
            assert_eq!(family_of(algorithm), family);
        }
        // Options in a name do not change the family.
        let mut n_names = 0;
        for row in ROWS.iter() {
            for option in [
                ":3",
                ":node",
                "-nonblocking",
                "-batched:8",
                "-split:1,2",
                ":3-batched:8-split:1,2",
            ] {
                let name = format!("{}{option}", row.name);
                if find(row.collective, &name).is_ok() {
                    assert_eq!(family_of(&name), family_of(&row.name), "{name}");
                    n_names += 1;
                }
            }
        }
        assert!(n_names > ROWS.len(), "{n_names}");
        // No two families of a collective have the same name.
        for a in ROWS.iter() {
            for b in ROWS.iter().filter(|b| family_of(&b.name) == family_of(&a.name)) {
                let is_pattern = OVER_PATTERNS.iter().any(|(name, _)| *name == family_of(&a.name));
                assert!(
                    !is_pattern || std::ptr::eq(a.family, b.family),
                    "{} and {}",
                    a.name,
                    b.name
                );
            }
        }
    }
}
