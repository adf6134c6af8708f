//! The rows of the registry.

use std::sync::LazyLock;

use super::through::{Relay, Relayed};
use super::{DEFAULT_MAX_RADIX, Family, Patterns, Template, Variant};
use crate::collectives::Collective::{
    self, Allgather, Allreduce, Alltoall, Barrier, Bcast, Exscan, Gather, Reduce, ReduceScatter,
    Scan, Scatter,
};
use crate::collectives::Form::{self, Butterfly, Latency, Tree, TwoPhase};
use crate::patterns::Kind;
use crate::plan::Interleave::{self, RoundRobin, Sequential};
use crate::plan::Placement::{self, Path, Rank, Resend};
use crate::plan::StepOrder::{self, FarFirst, NearFirst};
use crate::plan::{ParLinNa, PrefixSteps};

/// One algorithm.
#[derive(Debug)]
pub(super) struct Entry {
    pub collective: Collective,
    pub name: String,
    pub family: &'static Family,
    pub usage: &'static Variant,
}

const fn family(
    patterns: Patterns,
    interleave: Interleave,
    summary: &'static str,
    source: &'static str,
) -> Family {
    Family { patterns, interleave, summary, source }
}

const fn through(summary: &'static str, source: &'static str) -> Family {
    family(Patterns::Best, RoundRobin, summary, source)
}

const fn only(kind: Kind, summary: &'static str, source: &'static str) -> Family {
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
const TRINARYX: &str = "after Fujitsu's trinaryx; docs/algorithms.md";
const PREFIX_PAPERS: &str = "Brent and Kung 1982; Blelloch 1990";
const NODE_PAPER: &str = "many-core alltoall, section 3";
const PARLINNA_PAPER: &str = "Fan et al. 2025, section 4 (ParLinNa)";
const OURS: &str = "algorithms.md, section 1";
const RADIX: Kind = Kind::Multiplying { max_radix: DEFAULT_MAX_RADIX };

static MIXED: Family = family(Patterns::Best, RoundRobin, "best pattern per dimension", OURS);
static BINE: Family = only(Kind::Bine, "bine steps", BINE_PAPER);
static SWING: Family = only(Kind::Bine, "bine steps, block by block", SWING_PAPER);
static DOUBLING: Family = only(Kind::Doubling, "XOR steps", RABENSEIFNER);
static CIRCULANT: Family = only(Kind::Circulant, "one-way steps", OURS);
static MULTIPLYING: Family = only(RADIX, "groups of up to 4", RADIX_PAPER);
static KNOMIAL: Family =
    only(Kind::Knomial { radix: DEFAULT_MAX_RADIX }, "k-nomial trees, k = 4", KNOMIAL_PAPER);
static BRUCK: Family =
    only(Kind::Bruck { radix: DEFAULT_MAX_RADIX }, "one way by digits, radix 4", BRUCK_PAPER);
static KRING: Family = family(
    Patterns::Only(Kind::KRing { group: DEFAULT_MAX_RADIX }),
    Sequential,
    "rings in groups of 4, steps between groups",
    KRING_PAPER,
);
static DIRECT: Family = only(Kind::Direct, "one step per dimension", OURS);
static BUCKET: Family =
    family(Patterns::Only(Kind::Ring), Sequential, "rings, one dimension at a time", BUCKET_PAPER);
static TREES: Family = family(Patterns::Best, RoundRobin, "edge-disjoint spanning trees", TRINARYX);
static PREFIX: Family = family(Patterns::Best, RoundRobin, "prefixes in rank order", PREFIX_PAPERS);
static LEADER_OF_NODE: Family = through("one leader per node for all blocks", NODE_PAPER);
static LEADERS_OF_NODE: Family = through("2 leaders per node for all blocks", NODE_PAPER);
static NODES: Family = through("between nodes, then inside", NODE_PAPER);
static GROUPS: Family = through("between groups of 2, then inside", NODE_PAPER);
static LEADERS_AND_NODES: Family =
    through("2 leaders per node, between nodes, then inside", NODE_PAPER);
static INSIDE_FIRST: Family = family(
    Patterns::Best,
    RoundRobin,
    "inside nodes by digits of radix 4, then between nodes",
    PARLINNA_PAPER,
);
static ALL: Family = family(Patterns::Best, RoundRobin, "every block straight to its owner", OURS);

const fn usage(
    form: Form,
    positions: Placement,
    order: StepOrder,
    summary: &'static str,
) -> Variant {
    Variant { way: Template::Walk { form, positions, order, leader: false }, summary }
}

const fn led(form: Form, summary: &'static str) -> Variant {
    let way = Template::Walk { form, positions: Path, order: FarFirst, leader: true };
    Variant { way, summary }
}

static B: Variant = usage(TwoPhase, Path, NearFirst, "reduce-scatter, then allgather (B)");
static B_BLOCK: Variant = usage(TwoPhase, Rank, NearFirst, "as B, in rank order");
static L: Variant = usage(Latency, Path, FarFirst, "whole vector at every step (L)");
static LEADER_L: Variant =
    led(Latency, "a node folds onto its leader; leaders, whole vector at every step (L)");
static LEADER_BARRIER: Variant =
    led(Latency, "a node reports to its leader; leaders by dissemination");
static TREE_AND_BACK: Variant = usage(Tree, Path, NearFirst, "tree to rank 0 and back");
static PERMUTE: Variant = usage(Butterfly, Path, NearFirst, "contiguous, blocks permuted locally");
static BLOCK: Variant = usage(Butterfly, Rank, NearFirst, "rank order, block by block");
static SEND: Variant =
    usage(Butterfly, Resend, NearFirst, "contiguous, blocks put right by one more exchange");
static TWO: Variant = usage(Butterfly, Rank, FarFirst, "rank order, long distances first");
static SCATTER_ALLGATHER: Variant = usage(TwoPhase, Path, NearFirst, "scatter, then allgather");
static REDUCE_SCATTER_GATHER: Variant =
    usage(TwoPhase, Path, NearFirst, "reduce-scatter, then gather");
// A tree from the root takes the steps of the one towards it backwards.
static TREE_FROM_FAR: Variant = usage(Tree, Path, NearFirst, "tree, long distances first");
static TREE_FROM_NEAR: Variant = usage(Tree, Path, FarFirst, "tree, short distances first");
static TREE_TO_NEAR: Variant = usage(Tree, Path, NearFirst, "tree, short distances first");
static TREE_TO_FAR: Variant = usage(Tree, Path, FarFirst, "tree, long distances first");
static LOGARITHMIC: Variant = usage(Butterfly, Path, NearFirst, "blocks sharing a path together");
static DISSEMINATION: Variant = usage(Butterfly, Path, NearFirst, "dissemination");

const fn exchange(through: Relay, batch: Option<u32>, summary: &'static str) -> Variant {
    Variant { way: Template::Exchange(Relayed { through, batch }), summary }
}

const ONE: Option<u32> = Some(1);
const MULTI_LEADER: Relay = Relay::Leaders { per_node: 2, node_aware: false };
const LEADER: Relay = Relay::Leaders { per_node: 1, node_aware: false };
const MULTI_LEADER_NODE_AWARE: Relay = Relay::Leaders { per_node: 2, node_aware: true };
static PAIRWISE: Variant = exchange(Relay::Owners, ONE, "rounds over different links");
static AT_ONCE: Variant = exchange(Relay::Owners, None, "all at once");
static BY_DIMENSION: Variant = exchange(Relay::Dimensions, ONE, "one dimension after the other");
static TO_LEADER: Variant = exchange(LEADER, ONE, "pairwise");
static TO_LEADER_AT_ONCE: Variant = exchange(LEADER, None, "all at once");
static TO_LEADERS: Variant = exchange(MULTI_LEADER, ONE, "pairwise");
static TO_LEADERS_AT_ONCE: Variant = exchange(MULTI_LEADER, None, "all at once");
static NODES_FIRST: Variant = exchange(Relay::Nodes, ONE, "pairwise");
static NODES_FIRST_AT_ONCE: Variant = exchange(Relay::Nodes, None, "all at once");
static GROUPS_FIRST: Variant = exchange(Relay::Groups(2), ONE, "pairwise");
static GROUPS_FIRST_AT_ONCE: Variant = exchange(Relay::Groups(2), None, "all at once");
static LEADERS_FIRST: Variant = exchange(MULTI_LEADER_NODE_AWARE, ONE, "pairwise");
static LEADERS_FIRST_AT_ONCE: Variant = exchange(MULTI_LEADER_NODE_AWARE, None, "all at once");

const PARLINNA: ParLinNa = ParLinNa { radix: DEFAULT_MAX_RADIX, batch: Some(1), staggered: false };
static COALESCED: Variant =
    Variant { way: Template::ParLinNa(PARLINNA), summary: "all blocks for a rank in one message" };
static STAGGERED: Variant = Variant {
    way: Template::ParLinNa(ParLinNa { staggered: true, ..PARLINNA }),
    summary: "a message for each block",
};
static TO_ROOT: Variant = Variant { way: Template::Linear, summary: "all to the root directly" };
static FROM_ROOT: Variant = Variant { way: Template::Linear, summary: "the root to all directly" };
static CHAIN: Variant =
    Variant { way: Template::Prefix(PrefixSteps::Chain), summary: "rank after rank, pipelined" };
static SWEEPS: Variant =
    Variant { way: Template::Prefix(PrefixSteps::Sweeps), summary: "up and down a binomial tree" };
static ALONG_TREES: Variant =
    Variant { way: Template::Trees, summary: "one tree per port, pipelined" };

/// The families over patterns, in the order of the lists, with what their algorithms' names begin
/// with.
static OVER_PATTERNS: [(&str, &Family); 11] = [
    ("mixed", &MIXED),
    ("bine", &BINE),
    ("swing", &SWING),
    ("doubling", &DOUBLING),
    ("circulant", &CIRCULANT),
    ("multiplying", &MULTIPLYING),
    ("knomial", &KNOMIAL),
    ("bruck", &BRUCK),
    ("direct", &DIRECT),
    ("bucket", &BUCKET),
    ("kring", &KRING),
];

/// A collective, what its algorithms' names end with, how they use their families, the families.
type Group = (Collective, &'static str, &'static Variant, &'static [&'static Family]);

/// Every algorithm, in groups of equal use.
#[rustfmt::skip]
static BY_USE: &[Group] = &[
    (Allreduce, "", &B, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET, &KRING]),
    (Allreduce, "-block", &B_BLOCK, &[&MIXED, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (Allreduce, "-l", &L, &[&MIXED, &BINE, &DOUBLING, &MULTIPLYING, &DIRECT]),
    (Allreduce, "-leader-l", &LEADER_L, &[&MIXED, &MULTIPLYING]),
    (Allreduce, "", &B_BLOCK, &[&SWING]),
    (Allreduce, "-tree", &TREE_AND_BACK, &[&KNOMIAL]),
    (ReduceScatter, "", &PERMUTE, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET, &KRING]),
    (ReduceScatter, "-block", &BLOCK, &[&MIXED, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (ReduceScatter, "-send", &SEND, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (ReduceScatter, "-two", &TWO, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (ReduceScatter, "", &BLOCK, &[&SWING]),
    (Allgather, "", &PERMUTE, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET, &KRING]),
    (Allgather, "-block", &BLOCK, &[&MIXED, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (Allgather, "-send", &SEND, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (Allgather, "-two", &TWO, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING]),
    (Allgather, "", &BLOCK, &[&SWING]),
    (Allgather, "-tree", &TREE_AND_BACK, &[&KNOMIAL]),
    (Bcast, "", &SCATTER_ALLGATHER, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &DIRECT, &BUCKET, &KRING]),
    (Bcast, "-tree", &TREE_FROM_FAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &KNOMIAL, &DIRECT, &BUCKET]),
    (Bcast, "-tree-near", &TREE_FROM_NEAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &KNOMIAL]),
    (Bcast, "trees", &ALONG_TREES, &[&TREES]),
    (Reduce, "", &REDUCE_SCATTER_GATHER, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &DIRECT, &BUCKET]),
    (Reduce, "-tree", &TREE_TO_NEAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &KNOMIAL, &DIRECT, &BUCKET]),
    (Reduce, "-tree-far", &TREE_TO_FAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &KNOMIAL]),
    (Reduce, "trees", &ALONG_TREES, &[&TREES]),
    (Gather, "", &TREE_TO_NEAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &KNOMIAL, &DIRECT, &BUCKET]),
    (Gather, "-far", &TREE_TO_FAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &KNOMIAL]),
    (Gather, "linear", &TO_ROOT, &[&ALL]),
    (Scatter, "", &TREE_FROM_FAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &KNOMIAL, &DIRECT, &BUCKET]),
    (Scatter, "-near", &TREE_FROM_NEAR, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &KNOMIAL]),
    (Scatter, "linear", &FROM_ROOT, &[&ALL]),
    (Alltoall, "", &LOGARITHMIC, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET]),
    (Alltoall, "pairwise", &PAIRWISE, &[&ALL]),
    (Alltoall, "pairwise-nonblocking", &AT_ONCE, &[&ALL]),
    (Alltoall, "dimensions", &BY_DIMENSION, &[&ALL]),
    (Alltoall, "hierarchical", &TO_LEADER, &[&LEADER_OF_NODE]),
    (Alltoall, "hierarchical-nonblocking", &TO_LEADER_AT_ONCE, &[&LEADER_OF_NODE]),
    (Alltoall, "multi-leader", &TO_LEADERS, &[&LEADERS_OF_NODE]),
    (Alltoall, "multi-leader-nonblocking", &TO_LEADERS_AT_ONCE, &[&LEADERS_OF_NODE]),
    (Alltoall, "node-aware", &NODES_FIRST, &[&NODES]),
    (Alltoall, "node-aware-nonblocking", &NODES_FIRST_AT_ONCE, &[&NODES]),
    (Alltoall, "locality-aware", &GROUPS_FIRST, &[&GROUPS]),
    (Alltoall, "locality-aware-nonblocking", &GROUPS_FIRST_AT_ONCE, &[&GROUPS]),
    (Alltoall, "multi-leader-node-aware", &LEADERS_FIRST, &[&LEADERS_AND_NODES]),
    (Alltoall, "multi-leader-node-aware-nonblocking", &LEADERS_FIRST_AT_ONCE, &[&LEADERS_AND_NODES]),
    (Alltoall, "parlinna", &COALESCED, &[&INSIDE_FIRST]),
    (Alltoall, "parlinna-staggered", &STAGGERED, &[&INSIDE_FIRST]),
    (Scan, "sweeps", &SWEEPS, &[&PREFIX]),
    (Scan, "chain", &CHAIN, &[&PREFIX]),
    (Exscan, "sweeps", &SWEEPS, &[&PREFIX]),
    (Exscan, "chain", &CHAIN, &[&PREFIX]),
    (Barrier, "", &DISSEMINATION, &[&MIXED, &BINE, &DOUBLING, &CIRCULANT, &MULTIPLYING, &BRUCK, &DIRECT, &BUCKET]),
    (Barrier, "-leader", &LEADER_BARRIER, &[&MIXED]),
];

/// Every algorithm, by collective and in order of preference.
pub(super) static ROWS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let rows = BY_USE.iter().flat_map(|&(collective, suffix, usage, families)| {
        families.iter().map(move |&family| {
            let known = |&(_, known): &(&str, &Family)| std::ptr::eq(known, family);
            let place = OVER_PATTERNS.iter().position(known);
            let name = format!("{}{suffix}", place.map_or("", |at| OVER_PATTERNS[at].0));
            (place.unwrap_or(usize::MAX), Entry { collective, name, family, usage })
        })
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(place, row)| (row.collective, *place));
    rows.into_iter().map(|(_, row)| row).collect()
});
