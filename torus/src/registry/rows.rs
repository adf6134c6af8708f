//! The rows of the registry.

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
    pub name: &'static str,
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

const fn row(
    collective: Collective,
    name: &'static str,
    family: &'static Family,
    usage: &'static Variant,
) -> Entry {
    Entry { collective, name, family, usage }
}

/// Every algorithm, by collective and in order of preference.
#[rustfmt::skip]
pub(super) static ROWS: &[Entry] = &[
    // allreduce
    row(Allreduce, "mixed", &MIXED, &B),
    row(Allreduce, "mixed-block", &MIXED, &B_BLOCK),
    row(Allreduce, "mixed-l", &MIXED, &L),
    row(Allreduce, "mixed-leader-l", &MIXED, &LEADER_L),
    row(Allreduce, "bine", &BINE, &B),
    row(Allreduce, "bine-l", &BINE, &L),
    row(Allreduce, "swing", &SWING, &B_BLOCK),
    row(Allreduce, "doubling", &DOUBLING, &B),
    row(Allreduce, "doubling-block", &DOUBLING, &B_BLOCK),
    row(Allreduce, "doubling-l", &DOUBLING, &L),
    row(Allreduce, "circulant", &CIRCULANT, &B),
    row(Allreduce, "circulant-block", &CIRCULANT, &B_BLOCK),
    row(Allreduce, "multiplying", &MULTIPLYING, &B),
    row(Allreduce, "multiplying-block", &MULTIPLYING, &B_BLOCK),
    row(Allreduce, "multiplying-l", &MULTIPLYING, &L),
    row(Allreduce, "multiplying-leader-l", &MULTIPLYING, &LEADER_L),
    row(Allreduce, "knomial-tree", &KNOMIAL, &TREE_AND_BACK),
    row(Allreduce, "bruck", &BRUCK, &B),
    row(Allreduce, "direct", &DIRECT, &B),
    row(Allreduce, "direct-l", &DIRECT, &L),
    row(Allreduce, "bucket", &BUCKET, &B),
    row(Allreduce, "kring", &KRING, &B),
    // reduce-scatter
    row(ReduceScatter, "mixed", &MIXED, &PERMUTE),
    row(ReduceScatter, "mixed-block", &MIXED, &BLOCK),
    row(ReduceScatter, "mixed-send", &MIXED, &SEND),
    row(ReduceScatter, "mixed-two", &MIXED, &TWO),
    row(ReduceScatter, "bine", &BINE, &PERMUTE),
    row(ReduceScatter, "bine-send", &BINE, &SEND),
    row(ReduceScatter, "bine-two", &BINE, &TWO),
    row(ReduceScatter, "swing", &SWING, &BLOCK),
    row(ReduceScatter, "doubling", &DOUBLING, &PERMUTE),
    row(ReduceScatter, "doubling-block", &DOUBLING, &BLOCK),
    row(ReduceScatter, "doubling-send", &DOUBLING, &SEND),
    row(ReduceScatter, "doubling-two", &DOUBLING, &TWO),
    row(ReduceScatter, "circulant", &CIRCULANT, &PERMUTE),
    row(ReduceScatter, "circulant-block", &CIRCULANT, &BLOCK),
    row(ReduceScatter, "circulant-send", &CIRCULANT, &SEND),
    row(ReduceScatter, "circulant-two", &CIRCULANT, &TWO),
    row(ReduceScatter, "multiplying", &MULTIPLYING, &PERMUTE),
    row(ReduceScatter, "multiplying-block", &MULTIPLYING, &BLOCK),
    row(ReduceScatter, "multiplying-send", &MULTIPLYING, &SEND),
    row(ReduceScatter, "multiplying-two", &MULTIPLYING, &TWO),
    row(ReduceScatter, "bruck", &BRUCK, &PERMUTE),
    row(ReduceScatter, "direct", &DIRECT, &PERMUTE),
    row(ReduceScatter, "bucket", &BUCKET, &PERMUTE),
    row(ReduceScatter, "kring", &KRING, &PERMUTE),
    // allgather
    row(Allgather, "mixed", &MIXED, &PERMUTE),
    row(Allgather, "mixed-block", &MIXED, &BLOCK),
    row(Allgather, "mixed-send", &MIXED, &SEND),
    row(Allgather, "mixed-two", &MIXED, &TWO),
    row(Allgather, "bine", &BINE, &PERMUTE),
    row(Allgather, "bine-send", &BINE, &SEND),
    row(Allgather, "bine-two", &BINE, &TWO),
    row(Allgather, "swing", &SWING, &BLOCK),
    row(Allgather, "doubling", &DOUBLING, &PERMUTE),
    row(Allgather, "doubling-block", &DOUBLING, &BLOCK),
    row(Allgather, "doubling-send", &DOUBLING, &SEND),
    row(Allgather, "doubling-two", &DOUBLING, &TWO),
    row(Allgather, "circulant", &CIRCULANT, &PERMUTE),
    row(Allgather, "circulant-block", &CIRCULANT, &BLOCK),
    row(Allgather, "circulant-send", &CIRCULANT, &SEND),
    row(Allgather, "circulant-two", &CIRCULANT, &TWO),
    row(Allgather, "multiplying", &MULTIPLYING, &PERMUTE),
    row(Allgather, "multiplying-block", &MULTIPLYING, &BLOCK),
    row(Allgather, "multiplying-send", &MULTIPLYING, &SEND),
    row(Allgather, "multiplying-two", &MULTIPLYING, &TWO),
    row(Allgather, "knomial-tree", &KNOMIAL, &TREE_AND_BACK),
    row(Allgather, "bruck", &BRUCK, &PERMUTE),
    row(Allgather, "direct", &DIRECT, &PERMUTE),
    row(Allgather, "bucket", &BUCKET, &PERMUTE),
    row(Allgather, "kring", &KRING, &PERMUTE),
    // bcast
    row(Bcast, "mixed", &MIXED, &SCATTER_ALLGATHER),
    row(Bcast, "mixed-tree", &MIXED, &TREE_FROM_FAR),
    row(Bcast, "mixed-tree-near", &MIXED, &TREE_FROM_NEAR),
    row(Bcast, "bine", &BINE, &SCATTER_ALLGATHER),
    row(Bcast, "bine-tree", &BINE, &TREE_FROM_FAR),
    row(Bcast, "bine-tree-near", &BINE, &TREE_FROM_NEAR),
    row(Bcast, "doubling", &DOUBLING, &SCATTER_ALLGATHER),
    row(Bcast, "doubling-tree", &DOUBLING, &TREE_FROM_FAR),
    row(Bcast, "doubling-tree-near", &DOUBLING, &TREE_FROM_NEAR),
    row(Bcast, "circulant", &CIRCULANT, &SCATTER_ALLGATHER),
    row(Bcast, "circulant-tree", &CIRCULANT, &TREE_FROM_FAR),
    row(Bcast, "circulant-tree-near", &CIRCULANT, &TREE_FROM_NEAR),
    row(Bcast, "multiplying", &MULTIPLYING, &SCATTER_ALLGATHER),
    row(Bcast, "multiplying-tree", &MULTIPLYING, &TREE_FROM_FAR),
    row(Bcast, "multiplying-tree-near", &MULTIPLYING, &TREE_FROM_NEAR),
    row(Bcast, "knomial-tree", &KNOMIAL, &TREE_FROM_FAR),
    row(Bcast, "knomial-tree-near", &KNOMIAL, &TREE_FROM_NEAR),
    row(Bcast, "direct", &DIRECT, &SCATTER_ALLGATHER),
    row(Bcast, "direct-tree", &DIRECT, &TREE_FROM_FAR),
    row(Bcast, "bucket", &BUCKET, &SCATTER_ALLGATHER),
    row(Bcast, "bucket-tree", &BUCKET, &TREE_FROM_FAR),
    row(Bcast, "kring", &KRING, &SCATTER_ALLGATHER),
    row(Bcast, "trees", &TREES, &ALONG_TREES),
    // reduce
    row(Reduce, "mixed", &MIXED, &REDUCE_SCATTER_GATHER),
    row(Reduce, "mixed-tree", &MIXED, &TREE_TO_NEAR),
    row(Reduce, "mixed-tree-far", &MIXED, &TREE_TO_FAR),
    row(Reduce, "bine", &BINE, &REDUCE_SCATTER_GATHER),
    row(Reduce, "bine-tree", &BINE, &TREE_TO_NEAR),
    row(Reduce, "bine-tree-far", &BINE, &TREE_TO_FAR),
    row(Reduce, "doubling", &DOUBLING, &REDUCE_SCATTER_GATHER),
    row(Reduce, "doubling-tree", &DOUBLING, &TREE_TO_NEAR),
    row(Reduce, "doubling-tree-far", &DOUBLING, &TREE_TO_FAR),
    row(Reduce, "circulant", &CIRCULANT, &REDUCE_SCATTER_GATHER),
    row(Reduce, "circulant-tree", &CIRCULANT, &TREE_TO_NEAR),
    row(Reduce, "circulant-tree-far", &CIRCULANT, &TREE_TO_FAR),
    row(Reduce, "multiplying", &MULTIPLYING, &REDUCE_SCATTER_GATHER),
    row(Reduce, "multiplying-tree", &MULTIPLYING, &TREE_TO_NEAR),
    row(Reduce, "multiplying-tree-far", &MULTIPLYING, &TREE_TO_FAR),
    row(Reduce, "knomial-tree", &KNOMIAL, &TREE_TO_NEAR),
    row(Reduce, "knomial-tree-far", &KNOMIAL, &TREE_TO_FAR),
    row(Reduce, "direct", &DIRECT, &REDUCE_SCATTER_GATHER),
    row(Reduce, "direct-tree", &DIRECT, &TREE_TO_NEAR),
    row(Reduce, "bucket", &BUCKET, &REDUCE_SCATTER_GATHER),
    row(Reduce, "bucket-tree", &BUCKET, &TREE_TO_NEAR),
    row(Reduce, "trees", &TREES, &ALONG_TREES),
    // gather
    row(Gather, "mixed", &MIXED, &TREE_TO_NEAR),
    row(Gather, "mixed-far", &MIXED, &TREE_TO_FAR),
    row(Gather, "bine", &BINE, &TREE_TO_NEAR),
    row(Gather, "bine-far", &BINE, &TREE_TO_FAR),
    row(Gather, "doubling", &DOUBLING, &TREE_TO_NEAR),
    row(Gather, "doubling-far", &DOUBLING, &TREE_TO_FAR),
    row(Gather, "circulant", &CIRCULANT, &TREE_TO_NEAR),
    row(Gather, "circulant-far", &CIRCULANT, &TREE_TO_FAR),
    row(Gather, "multiplying", &MULTIPLYING, &TREE_TO_NEAR),
    row(Gather, "multiplying-far", &MULTIPLYING, &TREE_TO_FAR),
    row(Gather, "knomial", &KNOMIAL, &TREE_TO_NEAR),
    row(Gather, "knomial-far", &KNOMIAL, &TREE_TO_FAR),
    row(Gather, "direct", &DIRECT, &TREE_TO_NEAR),
    row(Gather, "bucket", &BUCKET, &TREE_TO_NEAR),
    row(Gather, "linear", &ALL, &TO_ROOT),
    // scatter
    row(Scatter, "mixed", &MIXED, &TREE_FROM_FAR),
    row(Scatter, "mixed-near", &MIXED, &TREE_FROM_NEAR),
    row(Scatter, "bine", &BINE, &TREE_FROM_FAR),
    row(Scatter, "bine-near", &BINE, &TREE_FROM_NEAR),
    row(Scatter, "doubling", &DOUBLING, &TREE_FROM_FAR),
    row(Scatter, "doubling-near", &DOUBLING, &TREE_FROM_NEAR),
    row(Scatter, "circulant", &CIRCULANT, &TREE_FROM_FAR),
    row(Scatter, "circulant-near", &CIRCULANT, &TREE_FROM_NEAR),
    row(Scatter, "multiplying", &MULTIPLYING, &TREE_FROM_FAR),
    row(Scatter, "multiplying-near", &MULTIPLYING, &TREE_FROM_NEAR),
    row(Scatter, "knomial", &KNOMIAL, &TREE_FROM_FAR),
    row(Scatter, "knomial-near", &KNOMIAL, &TREE_FROM_NEAR),
    row(Scatter, "direct", &DIRECT, &TREE_FROM_FAR),
    row(Scatter, "bucket", &BUCKET, &TREE_FROM_FAR),
    row(Scatter, "linear", &ALL, &FROM_ROOT),
    // alltoall
    row(Alltoall, "mixed", &MIXED, &LOGARITHMIC),
    row(Alltoall, "bine", &BINE, &LOGARITHMIC),
    row(Alltoall, "doubling", &DOUBLING, &LOGARITHMIC),
    row(Alltoall, "circulant", &CIRCULANT, &LOGARITHMIC),
    row(Alltoall, "multiplying", &MULTIPLYING, &LOGARITHMIC),
    row(Alltoall, "bruck", &BRUCK, &LOGARITHMIC),
    row(Alltoall, "direct", &DIRECT, &LOGARITHMIC),
    row(Alltoall, "bucket", &BUCKET, &LOGARITHMIC),
    row(Alltoall, "pairwise", &ALL, &PAIRWISE),
    row(Alltoall, "pairwise-nonblocking", &ALL, &AT_ONCE),
    row(Alltoall, "dimensions", &ALL, &BY_DIMENSION),
    row(Alltoall, "hierarchical", &LEADER_OF_NODE, &TO_LEADER),
    row(Alltoall, "hierarchical-nonblocking", &LEADER_OF_NODE, &TO_LEADER_AT_ONCE),
    row(Alltoall, "multi-leader", &LEADERS_OF_NODE, &TO_LEADERS),
    row(Alltoall, "multi-leader-nonblocking", &LEADERS_OF_NODE, &TO_LEADERS_AT_ONCE),
    row(Alltoall, "node-aware", &NODES, &NODES_FIRST),
    row(Alltoall, "node-aware-nonblocking", &NODES, &NODES_FIRST_AT_ONCE),
    row(Alltoall, "locality-aware", &GROUPS, &GROUPS_FIRST),
    row(Alltoall, "locality-aware-nonblocking", &GROUPS, &GROUPS_FIRST_AT_ONCE),
    row(Alltoall, "multi-leader-node-aware", &LEADERS_AND_NODES, &LEADERS_FIRST),
    row(Alltoall, "multi-leader-node-aware-nonblocking", &LEADERS_AND_NODES, &LEADERS_FIRST_AT_ONCE),
    row(Alltoall, "parlinna", &INSIDE_FIRST, &COALESCED),
    row(Alltoall, "parlinna-staggered", &INSIDE_FIRST, &STAGGERED),
    // scan
    row(Scan, "sweeps", &PREFIX, &SWEEPS),
    row(Scan, "chain", &PREFIX, &CHAIN),
    // exscan
    row(Exscan, "sweeps", &PREFIX, &SWEEPS),
    row(Exscan, "chain", &PREFIX, &CHAIN),
    // barrier
    row(Barrier, "mixed", &MIXED, &DISSEMINATION),
    row(Barrier, "mixed-leader", &MIXED, &LEADER_BARRIER),
    row(Barrier, "bine", &BINE, &DISSEMINATION),
    row(Barrier, "doubling", &DOUBLING, &DISSEMINATION),
    row(Barrier, "circulant", &CIRCULANT, &DISSEMINATION),
    row(Barrier, "multiplying", &MULTIPLYING, &DISSEMINATION),
    row(Barrier, "bruck", &BRUCK, &DISSEMINATION),
    row(Barrier, "direct", &DIRECT, &DISSEMINATION),
    row(Barrier, "bucket", &BUCKET, &DISSEMINATION),
];
