//! Which algorithm a call uses when it does not say: one rule, the same on all ranks.
//!
//! It depends only on what all ranks of a call share: collective, sizes, shape, number of
//! ports. The thresholds are round numbers between the regimes that the cost model of
//! algorithms.md (section 6) describes, not measurements of a particular machine:
//!
//! | collective | short | long |
//! | --- | --- | --- |
//! | allreduce | a latency form, on nodes of their leaders | `mixed` |
//! | bcast, reduce | `mixed-tree` | `mixed` (two phases); between two nodes `mixed-tree` |
//! | alltoall | `mixed` (logarithmic) | `pairwise-nonblocking`; on nodes up to 4 KiB `node-aware` |
//! | barrier | `mixed`; on nodes `mixed-leader` | |
//! | alltoallv | `bruck:2` | `pairwise-nonblocking`; between the two `bruck` with the root of the ranks |
//! | scan, exscan | `sweeps` | `chain` |
//! | others | `mixed` | `mixed` |

use hopbine_torus::Collective;
use hopbine_torus::geometry::Shape;
use hopbine_torus::plan::max_ports;
use hopbine_torus::registry::{self, Algorithm};

use super::candidate::Candidate;

/// A vector up to this length is not worth being cut into blocks.
const SHORT_VECTOR_BYTES: u64 = 8 * 1024;
/// A block of an alltoall up to this length is not worth a message of its own.
const SHORT_BLOCK_BYTES: u64 = 512;
/// A block of an alltoall beyond this is long: from there on Fan et al. 2025 found the volume alone to
/// decide on Fugaku.
const LONG_BLOCK_BYTES: u64 = 32 * 1024;
/// The radix with the fewest rounds.
const FEWEST_ROUNDS: u32 = 2;
/// Up to this many ranks, a message to each rank is sooner there than two rounds (sizes, then data) of
/// a logarithmic alltoall.
const FEW_RANKS: u32 = 16;
/// Blocks of an alltoall up to this length travel between nodes together, one message for each node.
const NODE_BLOCK_BYTES: u64 = 4 * 1024;
/// An alltoall in which every block goes straight to its owner, as many at a time as the wire takes.
const STRAIGHT: &str = "pairwise-nonblocking";
/// An alltoall between nodes first, with a few messages under way: each needs room.
const NODE_AWARE: &str = "node-aware-batched:8";
/// With more ranks no rank sends to all others: each peer costs an endpoint 6 to 40 KiB.
const MOST_PEERS: u32 = 1024;
/// Data up to this length are not worth several ports.
const ONE_PORT_BYTES: u64 = 8 * 1024;
/// Messages are cut into about this many, so that reducing overlaps with sending.
const SEGMENTS: u64 = 4;
/// The shortest and the longest segment.
const SEGMENT_BYTES: (u64, u64) = (64 * 1024, 1024 * 1024);
/// The shortest between two nodes, where nobody passes on what he gets to a third: over MPI by TCP, two
/// hosts of two ranks, a reduction of 256 KiB takes 160 us in such segments and 300 in shorter ones.
const PAIR_SEGMENT_BYTES: u64 = 128 * 1024;

/// Prefixes of longer vectors go from rank to rank, segment after segment.
const CHAIN_BYTES: u64 = 1 << 20;
/// With this many ranks in a dimension everybody can talk to everybody.
pub(crate) const MOST_DIRECT: u32 = 64;
/// On one host: two ranks exchange whole vectors up to this length.
const WHOLE_BYTES: u64 = 2 * 1024 * 1024;
/// On one host: up to this length (with two ranks, with more) the root of a reduce reads all vectors
/// and folds them itself. Of longer ones each rank folds a part, and the root reads results that the
/// others have just written.
const ROOT_FOLDS_BYTES: [u64; 2] = [2 * 1024 * 1024, 256 * 1024];
/// On one host: the longest message that stays in the cache until it is folded, with two ranks and
/// with more (which fold several at once and may share a core).
const CACHED_BYTES: [u64; 2] = [512 * 1024, 64 * 1024];
/// On one host: a broadcast up to this length (with two ranks, with more) is read from staging slots
/// while the root still fills others (64 KiB on two ranks: 10 us; 17 if the root's memory is read).
const STAGED_BCAST_BYTES: [u64; 2] = [256 * 1024, 512 * 1024];
/// The longest message of such a broadcast. It is longer with more ranks: where they outnumber cores,
/// each message is a wait.
const STAGED_BYTES: [u64; 2] = [8 * 1024, 32 * 1024];
/// On one host: up to this length, a vector that one of two ranks sends the other goes through
/// staging slots, as a few messages.
const STAGED_PAIR_BYTES: u64 = 32 * 1024;
/// The shortest of these messages.
const LEAST_STAGED_BYTES: u64 = 4 * 1024;

/// What messages travel through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Interfaces that move data by themselves, and links between them.
    #[default]
    Network,
    /// The memory of one host: every rank is as near as any other, and whoever drives a port
    /// moves its data.
    Memory,
}

/// What holds for the sizes of a call, whatever the shape.
pub(crate) struct Regime {
    pub(crate) candidate: Candidate,
    pub(crate) ports: u32,
    pub(crate) segment_bytes: u64,
}

impl Regime {
    fn on(self, collective: Collective, shape: &Shape) -> Choice {
        let Regime { candidate, ports, segment_bytes } = self;
        Choice { algorithm: candidate.on(collective, shape), ports, segment_bytes }
    }
}

/// What a call does not say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Number of ports.
    pub ports: u32,
    /// The longest message.
    pub segment_bytes: u64,
}

/// Chooses for a call on up to `n_ports` ports, whose vector or block has `bytes` bytes.
pub fn choose(
    wire: Wire,
    collective: Collective,
    shape: &Shape,
    bytes: u64,
    n_ports: u32,
) -> Choice {
    rule(wire, collective, shape, bytes, n_ports).on(collective, shape)
}

/// The rule of [`choose`].
pub(crate) fn rule(
    wire: Wire,
    collective: Collective,
    shape: &Shape,
    bytes: u64,
    n_ports: u32,
) -> Regime {
    if wire == Wire::Memory && shape.sizes().iter().all(|&size| size <= MOST_DIRECT) {
        return in_memory(collective, shape, bytes);
    }
    let n_ports = n_ports.min(max_ports(shape));
    let total = match collective {
        Collective::Allreduce
        | Collective::Bcast
        | Collective::Reduce
        | Collective::Scan
        | Collective::Exscan => bytes,
        _ => bytes.saturating_mul(u64::from(shape.n_ranks())),
    };
    let is_short = total <= SHORT_VECTOR_BYTES;
    let has_nodes = shape.ranks_per_node() > 1;
    // Between two nodes a tree is one step, and moves less: a second phase only brings back what the
    // first has taken there.
    let is_pair = shape.n_ranks() == 2 * shape.ranks_per_node();
    let candidate = match collective {
        Collective::Allreduce if is_short => Candidate::Latency,
        // One rank speaks for its node.
        Collective::Barrier if has_nodes => "mixed-leader".into(),
        Collective::Alltoall
            if has_nodes && (SHORT_BLOCK_BYTES + 1..=NODE_BLOCK_BYTES).contains(&bytes) =>
        {
            NODE_AWARE.into()
        }
        Collective::Bcast | Collective::Reduce if is_short || is_pair => "mixed-tree".into(),
        Collective::Scan | Collective::Exscan if bytes > CHAIN_BYTES => "chain".into(),
        Collective::Alltoall if bytes > SHORT_BLOCK_BYTES && shape.n_ranks() <= MOST_PEERS => {
            STRAIGHT.into()
        }
        _ => "mixed".into(),
    };
    let ports = if total <= ONE_PORT_BYTES { 1 } else { n_ports };
    let shortest = if is_pair { PAIR_SEGMENT_BYTES } else { SEGMENT_BYTES.0 };
    let segment = (total / u64::from(ports) / SEGMENTS).clamp(shortest, SEGMENT_BYTES.1);
    Regime { candidate, ports, segment_bytes: segment }
}

/// Chooses for a call of which ranks know only the blocks that they give and get themselves, so
/// that nothing can depend on sizes. Between few ranks, or within one host, blocks go straight to
/// their owners, in one message each. Otherwise sizes are learnt first, of an alltoall in as few
/// rounds as there can be: see [`learnt_choice`].
pub fn choose_unknown(wire: Wire, collective: Collective, shape: &Shape, n_ports: u32) -> Choice {
    rule_unknown(wire, collective, shape, n_ports).on(collective, shape)
}

/// The rule of [`choose_unknown`].
pub(crate) fn rule_unknown(
    wire: Wire,
    collective: Collective,
    shape: &Shape,
    n_ports: u32,
) -> Regime {
    let most_direct = match (wire, collective) {
        (Wire::Memory, _) => MOST_PEERS,
        (Wire::Network, Collective::Alltoall) => FEW_RANKS,
        (Wire::Network, _) => MOST_DIRECT,
    };
    let is_few = shape.n_ranks() <= most_direct;
    let candidate: Candidate = match collective {
        Collective::Alltoall if is_few => STRAIGHT.into(),
        Collective::Alltoall => Candidate::Named(radix_name(FEWEST_ROUNDS).into()),
        _ if is_few => "linear".into(),
        _ => "mixed".into(),
    };
    if !is_few {
        return Regime { candidate, ports: 1, segment_bytes: SEGMENT_BYTES.1 };
    }
    let ports = if wire == Wire::Memory { 1 } else { n_ports.min(max_ports(shape)) };
    Regime { candidate, ports, segment_bytes: u64::MAX }
}

/// The algorithm for an alltoall of which all ranks have learnt that its longest block has
/// `longest` bytes, as Fan et al. 2025 found it (section 5.1): radix 2 for short blocks, where
/// rounds are what counts; about the root of the number of ranks for those between, where rounds
/// and volume meet; for long ones as many as there are ranks, which is one message for each
/// block. But with very many ranks nobody talks to everybody.
pub fn learnt_choice(shape: &Shape, longest: u64, n_ports: u32) -> Choice {
    let n_ranks = shape.n_ranks();
    let ports = n_ports.min(max_ports(shape));
    let (name, ports) = match longest {
        ..=SHORT_BLOCK_BYTES => (radix_name(FEWEST_ROUNDS), 1),
        _ if longest <= LONG_BLOCK_BYTES || n_ranks > MOST_PEERS => {
            (radix_name(n_ranks.isqrt().max(FEWEST_ROUNDS)), ports)
        }
        _ => (STRAIGHT.to_owned(), ports),
    };
    Choice { algorithm: alltoall(&name), ports, segment_bytes: SEGMENT_BYTES.1 }
}

fn radix_name(radix: u32) -> String {
    format!("bruck:{radix}")
}

fn alltoall(name: &str) -> Algorithm {
    registry::find(Collective::Alltoall, name).expect("an alltoall that serves every shape")
}

/// The choice for ranks that share memory: as few steps as possible, since each is a wait for
/// others, who may have to get a core first; one port, since a second has nobody to drive it.
fn in_memory(collective: Collective, shape: &Shape, bytes: u64) -> Regime {
    let is_pair = shape.n_ranks() == 2;
    let of = |[pair, more]: [u64; 2]| if is_pair { pair } else { more };
    let root_folds = collective == Collective::Reduce && bytes <= of(ROOT_FOLDS_BYTES);
    let candidate = match collective {
        Collective::Allreduce if is_pair && bytes <= WHOLE_BYTES => "direct-l",
        // Everybody reads the root's data where they are staged, once.
        Collective::Bcast => "direct-tree",
        Collective::Reduce if root_folds => "direct-tree",
        Collective::Alltoall => STRAIGHT,
        _ => "direct",
    };
    let is_staged = match collective {
        Collective::Bcast => bytes <= of(STAGED_BCAST_BYTES),
        Collective::Reduce => is_pair && bytes <= STAGED_PAIR_BYTES,
        _ => false,
    };
    let segment_bytes = match collective {
        _ if is_staged => (bytes / SEGMENTS).clamp(LEAST_STAGED_BYTES, of(STAGED_BYTES)),
        Collective::Reduce if root_folds => CACHED_BYTES[0],
        _ if collective.is_reduction() => of(CACHED_BYTES),
        // What is only moved is read where it lies to where it belongs, in one piece.
        _ => u64::MAX,
    };
    Regime { candidate: candidate.into(), ports: 1, segment_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopbine_torus::plan::traffic;
    use hopbine_torus::{RankMap, Request};

    fn chosen(collective: Collective, sizes: &[u32], bytes: u64) -> String {
        let shape = Shape::torus(sizes).unwrap();
        choose(Wire::Network, collective, &shape, bytes, 4).algorithm.name.into_owned()
    }

    #[test]
    fn short_vectors_take_a_latency_form() {
        assert_eq!(chosen(Collective::Allreduce, &[4, 4], 8), "mixed-l");
        assert_eq!(chosen(Collective::Allreduce, &[7], 8), "multiplying-l");
        assert_eq!(chosen(Collective::Allreduce, &[23], 8), "multiplying-l");
        assert_eq!(chosen(Collective::Allreduce, &[13], 8), "mixed-l");
        assert_eq!(chosen(Collective::Allreduce, &[48, 69, 48], 8), "multiplying-l");
        assert_eq!(chosen(Collective::Allreduce, &[4, 4], 1 << 20), "mixed");
    }

    /// What leaves nodes where several ranks share one, by what is chosen: as multiples of n, of all
    /// ranks. One vector per node and step at most, where vectors are short; else what must.
    #[test]
    fn nodes_send_what_one_rank_would() {
        let counted = |collective, text: &str, bytes| {
            let shape: Shape = text.parse().unwrap();
            let choice = choose(Wire::Network, collective, &shape, bytes, 4);
            let (map, ports) = (RankMap::ColumnMajor, Some(choice.ports));
            let request = Request {
                shape: shape.clone(),
                map: map.clone(),
                root: hopbine_torus::Rank(0),
                ports,
            };
            let expansion = choice.algorithm.schedule(&request).unwrap().expand().unwrap();
            let found = traffic(&expansion, &shape, |rank| map.vertex_of(&shape, rank));
            (choice.algorithm.name.into_owned(), found.between_nodes * f64::from(found.n_ranks))
        };
        use Collective as C;
        for (collective, bytes, name, between) in [
            // 16 nodes: 4 steps of all of them.
            (C::Allreduce, 8, "mixed-leader-l", 64.0),
            (C::Allreduce, 1 << 20, "mixed", 2.0 * 15.0),
            (C::ReduceScatter, 1 << 20, "mixed", 15.0),
            (C::Allgather, 1 << 20, "mixed", 15.0),
            (C::Bcast, 8, "mixed-tree", 15.0),
            (C::Reduce, 8, "mixed-tree", 15.0),
            // A scatter on its way through 4 nodes, and an allgather, of which nothing goes to the root.
            (C::Bcast, 1 << 20, "mixed", 15.0 + 2.0 - 15.0 / 64.0),
            (C::Reduce, 1 << 20, "mixed", 15.0 + 2.0),
            (C::Gather, 1 << 10, "mixed", 2.0),
            (C::Scatter, 1 << 10, "mixed", 2.0),
            (C::Alltoall, 1 << 10, NODE_AWARE, 60.0),
        ] {
            let found = counted(collective, "4x4+4", bytes);
            assert_eq!(found.0, name, "{collective} of {bytes}");
            assert!((found.1 - between).abs() < 1e-9, "{collective} of {bytes}: {found:?}");
        }
        let shape: Shape = "4x4+4".parse().unwrap();
        let choice = choose(Wire::Network, C::Barrier, &shape, 0, 4);
        assert_eq!(choice.algorithm.name, "mixed-leader");
        assert_eq!(counted(C::Allreduce, "7+4", 8).0, "multiplying-leader-l");
        // Two phases would send half a vector more, back to where it was.
        for (collective, text) in
            [(C::Bcast, "2"), (C::Reduce, "2"), (C::Bcast, "2+4"), (C::Reduce, "1x2+2")]
        {
            assert_eq!(counted(collective, text, 1 << 20), ("mixed-tree".to_owned(), 1.0));
        }
    }

    #[test]
    fn every_choice_serves() {
        for collective in Collective::ALL {
            for sizes in [&[1][..], &[7], &[2, 3], &[4, 4, 4], &[23, 2]] {
                for bytes in [0, 8, 1 << 10, 1 << 20, 1 << 40] {
                    let shape = Shape::torus(sizes).unwrap();
                    for wire in [Wire::Network, Wire::Memory] {
                        let choice = choose(wire, collective, &shape, bytes, 6);
                        assert!(choice.ports <= max_ports(&shape));
                        choice.algorithm.serves(&shape).unwrap();
                    }
                }
            }
        }
    }
}
