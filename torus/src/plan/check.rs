//! The checker: executes all ranks' plans symbolically and proves that they do what the
//! collective promises. It knows no algorithm.
//!
//! Proved, all violations returned:
//! 1. every send meets one receive of the same step, with runs of the same lengths;
//! 2. runs lie inside the working space and do not overlap within a transfer;
//! 3. nothing is sent that is not there, and blocks of different owners are never combined;
//! 4. no contribution is counted twice, and at the end none is missing: the collective's
//!    post-condition holds on every rank;
//! 5. no block is overwritten while it is still to be sent;
//! 6. all ranks of an allreduce combine operands in the same order and grouping, so that
//!    floating-point results have identical bits (algorithms.md section 5);
//! 7. with [`Expect::sent_per_rank`], the volume is exactly that.
//!
//! Not proved here: that ports use different links (see [`super::traffic`]) and anything
//! about time.
//!
//! Contributor sets are exact as long as all of them fit [`EXACT_BYTES`]: about a thousand
//! ranks for vectors cut into blocks, [`MAX_RANKS`] for whole vectors and barriers. Beyond, a
//! set is the sum of 128-bit pseudo-random numbers, one per rank: two different multisets
//! agree with a probability of about 2^-128.

use std::fmt;
use std::ops::Range;

use super::types::{Action, Placement, Plan, PortPlan, Rank, Run, n_positions};
use crate::collectives::Collective;

/// Up to this many bytes in all, contributor sets are bit sets.
pub const EXACT_BYTES: u64 = 256 << 20;

/// Most ranks that the checker takes: its state is 28 bytes per rank and position.
pub const MAX_RANKS: u32 = 16_384;

/// What is expected beyond correctness.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expect {
    /// Positions that every rank sends on every port in all, if that is fixed: p - 1 for a
    /// reduce-scatter or allgather of minimal volume, twice that for an allreduce.
    pub sent_per_rank: Option<u64>,
}

/// One thing that is wrong with a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rank on which it shows.
    pub rank: Rank,
    /// The port.
    pub port: usize,
    /// The step; `None` for the state after the last.
    pub step: Option<usize>,
    /// The position (block), where one is concerned.
    pub position: Option<u32>,
    /// What is wrong.
    pub kind: Fault,
}

/// What can be wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The plans given are not those of ranks 0, 1, ... of one collective with equal ports.
    Inconsistent {
        /// What differs.
        what: &'static str,
    },
    /// A send or receive names a rank that does not exist, or the rank itself.
    BadPeer {
        /// The peer named.
        peer: Rank,
    },
    /// A send for which the peer has no receive in this step.
    UnmatchedSend {
        /// The receiver named.
        to: Rank,
    },
    /// A receive for which the peer has no send in this step.
    UnmatchedRecv {
        /// The sender named.
        from: Rank,
    },
    /// The runs of a receive are not as long as those of the send.
    LengthMismatch {
        /// The sender.
        from: Rank,
        /// Positions sent.
        sent: u64,
        /// Positions awaited.
        awaited: u64,
    },
    /// A run is empty or reaches beyond the working space.
    OutOfBounds {
        /// The run.
        run: Run,
        /// Size of the working space.
        positions: u32,
    },
    /// Two runs of one transfer, or of two storing receives of a step, overlap.
    OverlappingRuns {
        /// The second of them.
        run: Run,
    },
    /// A position is sent that holds nothing.
    SentEmpty,
    /// A block is combined with another owner's block, or with nothing.
    MixedBlocks {
        /// What the position holds.
        held: Option<u32>,
        /// What arrives.
        arrived: u32,
    },
    /// A contribution is counted twice.
    CountedTwice {
        /// The block.
        block: u32,
        /// The peer whose message repeats it.
        from: Rank,
    },
    /// A block is overwritten before it was sent on.
    Overwritten {
        /// The block that is lost.
        block: u32,
    },
    /// At the end a user block is not what the collective promises.
    WrongResult {
        /// The user block.
        block: u32,
        /// What the position holds instead.
        found: Found,
    },
    /// A placement does not fit the collective: a user block has no position, or two.
    BadPlacement {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The operands were combined in another order than on rank 0.
    DifferentOrder,
    /// The volume is not what was expected.
    Volume {
        /// Positions sent.
        sent: u64,
        /// Positions expected.
        expected: u64,
    },
}

/// What a position holds that should hold something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// Another block.
    Block(u32),
    /// The right block, but not the right set of contributions.
    Incomplete,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} port {}", self.rank, self.port)?;
        match self.step {
            Some(step) => write!(f, " step {step}")?,
            None => write!(f, " at the end")?,
        }
        if let Some(position) = self.position {
            write!(f, " position {position}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Inconsistent { what } => write!(f, "the plans differ in {what}"),
            Fault::BadPeer { peer } => write!(f, "{peer} is no other rank"),
            Fault::UnmatchedSend { to } => write!(f, "rank {to} awaits no such message"),
            Fault::UnmatchedRecv { from } => write!(f, "rank {from} sends no such message"),
            Fault::LengthMismatch { from, sent, awaited } => {
                write!(
                    f,
                    "rank {from} sends {sent} blocks in other runs than the {awaited} awaited"
                )
            }
            Fault::OutOfBounds { run, positions } => write!(
                f,
                "run {}..{} is not a part of the {positions} positions",
                run.start,
                u64::from(run.start) + u64::from(run.len)
            ),
            Fault::OverlappingRuns { run } => {
                write!(f, "run {}..{} overlaps another", run.start, run.end())
            }
            Fault::SentEmpty => f.write_str("nothing is there to be sent"),
            Fault::MixedBlocks { held: Some(held), arrived } => {
                write!(f, "block {arrived} is combined with block {held}")
            }
            Fault::MixedBlocks { held: None, arrived } => {
                write!(f, "block {arrived} is combined with nothing")
            }
            Fault::CountedTwice { block, from } => {
                write!(f, "rank {from} repeats a contribution to block {block}")
            }
            Fault::Overwritten { block } => {
                write!(f, "block {block} is overwritten before it was sent on")
            }
            Fault::WrongResult { block, found } => {
                write!(f, "user block {block} is wrong: ")?;
                match found {
                    Found::Nothing => f.write_str("nothing has arrived"),
                    Found::Block(other) => write!(f, "block {other} is in its place"),
                    Found::Incomplete => f.write_str("contributions are missing or foreign"),
                }
            }
            Fault::BadPlacement { what } => f.write_str(what),
            Fault::DifferentOrder => {
                f.write_str("operands are combined in another order than on rank 0")
            }
            Fault::Volume { sent, expected } => {
                write!(f, "{sent} blocks are sent where {expected} are expected")
            }
        }
    }
}

/// Checks the plans of all ranks, `plans[r]` being rank r's.
///
/// Returns every violation found; none means that the plans are proved.
///
/// # Panics
/// With more than [`MAX_RANKS`] plans.
pub fn check(plans: &[Plan], expect: Expect) -> Vec<Violation> {
    let mut found = Vec::new();
    if are_consistent(plans, &mut found) {
        found.extend(parts(plans).into_iter().flat_map(|part| check_part(plans, part, expect)));
    }
    found
}

/// The parts into which the data is cut: what [`check_part`] can check independently, for
/// instance in threads of the caller's.
pub fn parts(plans: &[Plan]) -> Vec<u32> {
    let ports = plans.first().map(|plan| plan.ports.as_slice()).unwrap_or_default();
    let mut parts: Vec<u32> = ports.iter().map(|port| port.part).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// Checks the ports that move one part of the data; [`check`] does so for all parts.
///
/// # Panics
/// With more than [`MAX_RANKS`] plans.
pub fn check_part(plans: &[Plan], part: u32, expect: Expect) -> Vec<Violation> {
    let n_ranks = plans.len() as u32;
    assert!(n_ranks <= MAX_RANKS, "the checker takes {MAX_RANKS} ranks at most");
    let mut found = Vec::new();
    if !are_consistent(plans, &mut found) {
        return found;
    }
    // Ports that share a part share a working space.
    let has_part = |port: &PortPlan| port.part == part;
    let Some(first) = plans.first() else { return found };
    let ports: Vec<usize> =
        (0..first.ports.len()).filter(|&port| has_part(&first.ports[port])).collect();
    let Some(&port) = ports.first() else { return found };
    let words = u64::from(n_ranks.div_ceil(64));
    let slots = u64::from(n_ranks) * u64::from(first.ports[port].positions);
    let set = if slots * words * 8 <= EXACT_BYTES {
        SetKind::Exact { words: words as usize }
    } else {
        SetKind::Fingerprint
    };
    Check { plans, ports: ports.clone(), set, found: &mut found }.run();
    if let Some(expected) = expect.sent_per_rank {
        for (rank, plan) in plans.iter().enumerate() {
            for &port in &ports {
                let sends = plan.ports[port].steps.iter().flat_map(|step| &step.sends);
                let sent = sends.map(|send| n_positions(&send.blocks)).sum();
                if sent != expected {
                    let kind = Fault::Volume { sent, expected };
                    let rank = rank as Rank;
                    found.push(Violation { rank, port, step: None, position: None, kind });
                }
            }
        }
    }
    found
}

/// The plans must be those of one collective; otherwise nothing else can be checked.
fn are_consistent(plans: &[Plan], found: &mut Vec<Violation>) -> bool {
    let Some(first) = plans.first() else { return true };
    for (rank, plan) in plans.iter().enumerate() {
        let ports_agree = plan.ports.len() == first.ports.len()
            && plan.ports.iter().zip(&first.ports).all(|(a, b)| {
                (a.part, a.parts, a.positions, a.space) == (b.part, b.parts, b.positions, b.space)
                    && a.steps.len() == b.steps.len()
            });
        let what = if plan.rank as usize != rank || plan.n_ranks as usize != plans.len() {
            "their ranks"
        } else if (plan.collective, plan.root) != (first.collective, first.root) {
            "collective or root"
        } else if !ports_agree {
            "ports, parts, positions or number of steps"
        } else {
            continue;
        };
        let kind = Fault::Inconsistent { what };
        found.push(Violation { rank: rank as Rank, port: 0, step: None, position: None, kind });
    }
    found.is_empty()
}

/// How contributor sets are represented: `words()` 64-bit words each.
#[derive(Clone, Copy)]
enum SetKind {
    Exact { words: usize },
    Fingerprint,
}

impl SetKind {
    fn words(self) -> usize {
        match self {
            SetKind::Exact { words } => words,
            SetKind::Fingerprint => 2,
        }
    }

    fn add_rank(self, set: &mut [u64], rank: Rank) {
        match self {
            SetKind::Exact { .. } => set[rank as usize / 64] |= 1 << (rank % 64),
            SetKind::Fingerprint => {
                let low = mix(u64::from(rank), 0x9e37_79b9_7f4a_7c15);
                let high = mix(low, 0xd1b5_4a32_d192_ed03);
                add_wide(set, low, high);
            }
        }
    }

    /// Unites `set` with `other`; false if they are seen to overlap. Fingerprints add up, so
    /// that a repetition shows at the end instead.
    fn unite(self, set: &mut [u64], other: &[u64]) -> bool {
        match self {
            SetKind::Exact { .. } => {
                let overlap = set.iter().zip(other).any(|(a, b)| a & b != 0);
                set.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
                !overlap
            }
            SetKind::Fingerprint => {
                add_wide(set, other[0], other[1]);
                true
            }
        }
    }
}

fn add_wide(set: &mut [u64], low: u64, high: u64) {
    let sum = (u128::from(set[1]) << 64 | u128::from(set[0]))
        .wrapping_add(u128::from(high) << 64 | u128::from(low));
    set[0] = sum as u64;
    set[1] = (sum >> 64) as u64;
}

/// A 64-bit mix of two words (the finaliser of SplitMix64, Steele et al., OOPSLA 2014).
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(32) ^ b;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const NOTHING: u32 = u32::MAX;

/// What positions hold: all ranks' working spaces, or the blocks of the messages of a step.
#[derive(Default)]
struct Contents {
    /// Which block, or [`NOTHING`].
    block: Vec<u32>,
    /// The expression that combined it, as a hash.
    order: Vec<u64>,
    /// Who contributed.
    set: Vec<u64>,
}

impl Contents {
    fn new(slots: usize, words: usize) -> Self {
        Contents { block: vec![NOTHING; slots], order: vec![0; slots], set: vec![0; slots * words] }
    }

    fn clear(&mut self) {
        self.block.clear();
        self.order.clear();
        self.set.clear();
    }

    fn push_from(&mut self, other: &Contents, slots: Range<usize>, words: usize) {
        self.block.extend_from_slice(&other.block[slots.clone()]);
        self.order.extend_from_slice(&other.order[slots.clone()]);
        self.set.extend_from_slice(&other.set[slots.start * words..slots.end * words]);
    }
}

/// A receive of the step at hand with what it brings.
struct Message {
    rank: Rank,
    port: usize,
    index: usize,
    /// First of its blocks in the message contents.
    first: usize,
}

struct Check<'a> {
    plans: &'a [Plan],
    /// The ports whose plans share the working space.
    ports: Vec<usize>,
    set: SetKind,
    found: &'a mut Vec<Violation>,
}

impl Check<'_> {
    fn report(&mut self, at: (Rank, usize, Option<usize>), position: Option<u32>, kind: Fault) {
        let (rank, port, step) = at;
        self.found.push(Violation { rank, port, step, position, kind });
    }

    fn port_plan(&self, rank: Rank, port: usize) -> &PortPlan {
        &self.plans[rank as usize].ports[port]
    }

    fn positions(&self) -> u32 {
        self.port_plan(0, self.ports[0]).positions
    }

    fn slot(&self, rank: Rank, position: u32) -> usize {
        rank as usize * self.positions() as usize + position as usize
    }

    fn run(mut self) {
        let slots = self.plans.len() * self.positions() as usize;
        let words = self.set.words();
        let mut state = Contents::new(slots, words);
        // A live block has not been sent since it was written.
        let mut is_live = vec![false; slots];
        self.fill(&mut state, &mut is_live);
        let n_steps = self.ports.iter().map(|&q| self.port_plan(0, q).steps.len()).max();
        let mut arriving = Contents::default();
        for step in 0..n_steps.unwrap_or(0) {
            arriving.clear();
            let messages = self.deliver(step, &state, &mut is_live, &mut arriving);
            self.receive(step, &messages, &arriving, &mut state, &mut is_live);
        }
        self.verify(&state);
    }

    /// The content at the start: what the input placements take from the users.
    fn fill(&mut self, state: &mut Contents, is_live: &mut [bool]) {
        let words = self.set.words();
        for rank in 0..self.plans.len() as Rank {
            let port = self.ports[0];
            let Some(placed) = self.placed(rank, port, true) else { continue };
            for (position, user_block) in placed {
                let (block, contributor) = self.starts_with(rank, user_block);
                let slot = self.slot(rank, position);
                state.block[slot] = block;
                state.order[slot] = mix(u64::from(contributor), u64::from(block));
                let set = &mut state.set[slot * words..(slot + 1) * words];
                self.set.add_rank(set, contributor);
                is_live[slot] = true;
            }
        }
    }

    /// Pairs (position, user block) of a placement; `None`, with a report, if it is not valid.
    fn placed(&mut self, rank: Rank, port: usize, input: bool) -> Option<Vec<(u32, u32)>> {
        let plan = self.port_plan(rank, port);
        let positions = plan.positions;
        let placed = match if input { &plan.input } else { &plan.output } {
            Placement::Nothing => Ok(Vec::new()),
            Placement::Identity => Ok((0..positions).map(|i| (i, i)).collect()),
            Placement::One { position } if *position < positions => Ok(vec![(*position, rank)]),
            Placement::One { .. } => Err("the own block's position does not exist"),
            Placement::Permuted(list) => {
                let mut sorted = list.to_vec();
                sorted.sort_unstable();
                if sorted.iter().copied().eq(0..positions) {
                    Ok((0..positions).zip(list.iter().copied()).collect())
                } else {
                    Err("a placement is not a permutation of the blocks")
                }
            }
        };
        let needed = self.needs_placement(rank, input);
        let placed = match placed {
            Ok(placed) if needed == placed.is_empty() => {
                Err("a user's buffer is left out, or used on a rank that has none")
            }
            other => other,
        };
        placed
            .map_err(|what| {
                self.report((rank, port, None), None, Fault::BadPlacement { what });
            })
            .ok()
    }

    /// True if the rank gives (input) or gets (output) something in this collective.
    fn needs_placement(&self, rank: Rank, input: bool) -> bool {
        use Collective as C;
        let plan = &self.plans[0];
        match (plan.collective, input) {
            (C::Bcast | C::Scatter, true) | (C::Reduce | C::Gather, false) => rank == plan.root,
            _ => true,
        }
    }

    /// The block and its contributor that `rank` starts with as its user block `user_block`.
    fn starts_with(&self, rank: Rank, user_block: u32) -> (u32, Rank) {
        use Collective as C;
        match self.plans[0].collective {
            C::Allreduce | C::ReduceScatter | C::Reduce | C::Alltoall | C::Barrier => {
                (user_block, rank)
            }
            C::Allgather | C::Gather => (rank, rank),
            C::Bcast | C::Scatter => (user_block, self.plans[0].root),
        }
    }

    /// The block that `rank` must end with as its user block `user_block`, and who must have
    /// contributed (`None`: everyone).
    fn ends_with(&self, rank: Rank, user_block: u32) -> (u32, Option<Rank>) {
        use Collective as C;
        match self.plans[0].collective {
            C::Allreduce | C::Reduce | C::Barrier => (user_block, None),
            C::ReduceScatter => (rank, None),
            C::Allgather | C::Gather => (user_block, Some(user_block)),
            C::Bcast => (user_block, Some(self.plans[0].root)),
            C::Scatter => (rank, Some(self.plans[0].root)),
            C::Alltoall => (rank, Some(user_block)),
        }
    }

    /// Matches the sends and receives of a step and reads what is sent.
    fn deliver(
        &mut self,
        step: usize,
        state: &Contents,
        is_live: &mut [bool],
        arriving: &mut Contents,
    ) -> Vec<Message> {
        let words = self.set.words();
        let plans = self.plans;
        let n_ranks = plans.len() as Rank;
        let mut messages = Vec::new();
        for rank in 0..n_ranks {
            for port in self.ports.clone() {
                let at = (rank, port, Some(step));
                let Some(own) = plans[rank as usize].ports[port].steps.get(step) else { continue };
                for send in &own.sends {
                    self.check_runs(at, &send.blocks);
                    let recvs = plans.get(send.to as usize).filter(|_| send.to != rank);
                    let recvs = recvs.map(|plan| &plan.ports[port].steps[step].recvs);
                    match recvs {
                        None => self.report(at, None, Fault::BadPeer { peer: send.to }),
                        Some(recvs) => {
                            if recvs.iter().filter(|recv| recv.from == rank).count() != 1
                                || own.sends.iter().filter(|s| s.to == send.to).count() != 1
                            {
                                self.report(at, None, Fault::UnmatchedSend { to: send.to });
                            }
                        }
                    }
                    for position in positions_of(&send.blocks, self.positions()) {
                        let slot = self.slot(rank, position);
                        is_live[slot] = false;
                        if state.block[slot] == NOTHING {
                            self.report(at, Some(position), Fault::SentEmpty);
                        }
                    }
                }
                for (index, recv) in own.recvs.iter().enumerate() {
                    self.check_runs(at, &recv.blocks);
                    let from = plans.get(recv.from as usize).filter(|_| recv.from != rank);
                    let Some(from) = from else {
                        self.report(at, None, Fault::BadPeer { peer: recv.from });
                        continue;
                    };
                    let sends = &from.ports[port].steps[step].sends;
                    let Some(send) = sends.iter().find(|send| send.to == rank) else {
                        self.report(at, None, Fault::UnmatchedRecv { from: recv.from });
                        continue;
                    };
                    if !send.blocks.iter().map(|r| r.len).eq(recv.blocks.iter().map(|r| r.len)) {
                        let (sent, awaited) =
                            (n_positions(&send.blocks), n_positions(&recv.blocks));
                        let kind = Fault::LengthMismatch { from: recv.from, sent, awaited };
                        self.report(at, None, kind);
                        continue;
                    }
                    let first = arriving.block.len();
                    for run in inside(&send.blocks, self.positions()) {
                        let start = self.slot(recv.from, run.start);
                        arriving.push_from(state, start..start + run.len(), words);
                    }
                    messages.push(Message { rank, port, index, first });
                }
            }
        }
        messages
    }

    /// Runs must be non-empty, inside the working space, and disjoint.
    fn check_runs(&mut self, at: (Rank, usize, Option<usize>), runs: &[Run]) {
        let positions = self.positions();
        for run in runs {
            let end = u64::from(run.start) + u64::from(run.len);
            if run.len == 0 || end > u64::from(positions) {
                self.report(at, None, Fault::OutOfBounds { run: *run, positions });
            }
        }
        let mut sorted: Vec<Run> = runs.to_vec();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            if u64::from(pair[0].start) + u64::from(pair[0].len) > u64::from(pair[1].start) {
                self.report(at, None, Fault::OverlappingRuns { run: pair[1] });
            }
        }
    }

    /// Stores and combines what has arrived in a step.
    fn receive(
        &mut self,
        step: usize,
        messages: &[Message],
        arriving: &Contents,
        state: &mut Contents,
        is_live: &mut [bool],
    ) {
        let plans = self.plans;
        // Messages stand in order of rank and port; those of one rank and port are one fold.
        for group in messages.chunk_by(|a, b| (a.rank, a.port) == (b.rank, b.port)) {
            let (rank, port) = (group[0].rank, group[0].port);
            let own = &plans[rank as usize].ports[port].steps[step];
            let mut stored: Vec<u32> = Vec::new();
            // Operands to the left of the own value, not yet combined with it.
            let mut left: Vec<(usize, u64)> = Vec::new();
            for message in group {
                let recv = &own.recvs[message.index];
                let is_left = message.index < own.own_at as usize;
                let at = (rank, port, Some(step));
                for (index, position) in positions_of(&recv.blocks, self.positions()).enumerate() {
                    let slot = self.slot(rank, position);
                    let source = message.first + index;
                    match recv.action {
                        Action::Copy => {
                            if stored.contains(&position) {
                                let kind = Fault::OverlappingRuns { run: Run::new(position, 1) };
                                self.report(at, Some(position), kind);
                            }
                            if group.len() > 1 {
                                stored.push(position);
                            }
                            self.store(at, position, (state, slot), (arriving, source), is_live);
                        }
                        Action::Reduce => {
                            let order = arriving.order[source];
                            if is_left {
                                match left.iter_mut().find(|(left_slot, _)| *left_slot == slot) {
                                    Some((_, all)) => *all = mix(*all, order),
                                    None => left.push((slot, order)),
                                }
                            } else {
                                if let Some(i) = left.iter().position(|&(s, _)| s == slot) {
                                    let (_, all) = left.swap_remove(i);
                                    state.order[slot] = mix(all, state.order[slot]);
                                }
                                state.order[slot] = mix(state.order[slot], order);
                            }
                            let from = recv.from;
                            self.combine(at, from, position, (state, slot), (arriving, source));
                            is_live[slot] = true;
                        }
                    }
                }
            }
            for (slot, all) in left {
                state.order[slot] = mix(all, state.order[slot]);
            }
        }
    }

    fn store(
        &mut self,
        at: (Rank, usize, Option<usize>),
        position: u32,
        (state, slot): (&mut Contents, usize),
        (arriving, source): (&Contents, usize),
        is_live: &mut [bool],
    ) {
        let words = self.set.words();
        let new = &arriving.set[source * words..(source + 1) * words];
        let old = &mut state.set[slot * words..(slot + 1) * words];
        let block = state.block[slot];
        if is_live[slot] && block != NOTHING && (block != arriving.block[source] || old != new) {
            self.report(at, Some(position), Fault::Overwritten { block });
        }
        old.copy_from_slice(new);
        state.block[slot] = arriving.block[source];
        state.order[slot] = arriving.order[source];
        is_live[slot] = true;
    }

    fn combine(
        &mut self,
        at: (Rank, usize, Option<usize>),
        from: Rank,
        position: u32,
        (state, slot): (&mut Contents, usize),
        (arriving, source): (&Contents, usize),
    ) {
        let words = self.set.words();
        let arrived = arriving.block[source];
        if arrived == NOTHING {
            return; // reported as sent empty
        }
        if state.block[slot] != arrived {
            let held = (state.block[slot] != NOTHING).then_some(state.block[slot]);
            self.report(at, Some(position), Fault::MixedBlocks { held, arrived });
        }
        let set = &mut state.set[slot * words..(slot + 1) * words];
        let disjoint = self.set.unite(set, &arriving.set[source * words..(source + 1) * words]);
        // A barrier has nothing to count: hearing twice from someone does no harm.
        if !disjoint && self.plans[0].collective != Collective::Barrier {
            self.report(at, Some(position), Fault::CountedTwice { block: arrived, from });
        }
    }

    /// The collective's post-condition.
    fn verify(&mut self, state: &Contents) {
        let words = self.set.words();
        let n_ranks = self.plans.len() as Rank;
        let collective = self.plans[0].collective;
        let mut everyone = vec![0; words];
        (0..n_ranks).for_each(|rank| self.set.add_rank(&mut everyone, rank));
        for rank in 0..n_ranks {
            let port = self.ports[0];
            let Some(placed) = self.placed(rank, port, false) else { continue };
            for (position, user_block) in placed {
                let slot = self.slot(rank, position);
                let (block, contributor) = self.ends_with(rank, user_block);
                let is_complete = self.is_complete(
                    &state.set[slot * words..(slot + 1) * words],
                    contributor,
                    &everyone,
                );
                let found = match state.block[slot] {
                    NOTHING => Some(Found::Nothing),
                    other if other != block => Some(Found::Block(other)),
                    _ if !is_complete => Some(Found::Incomplete),
                    _ => None,
                };
                let at = (rank, port, None);
                if let Some(found) = found {
                    let kind = Fault::WrongResult { block: user_block, found };
                    self.report(at, Some(position), kind);
                } else if collective == Collective::Allreduce
                    && state.order[slot] != state.order[self.slot(0, position)]
                {
                    self.report(at, Some(position), Fault::DifferentOrder);
                }
            }
        }
    }

    fn is_complete(&self, set: &[u64], contributor: Option<Rank>, everyone: &[u64]) -> bool {
        match contributor {
            Some(rank) => {
                let mut one = vec![0; set.len()];
                self.set.add_rank(&mut one, rank);
                set == one
            }
            None => set == everyone,
        }
    }
}

/// The runs as ranges of positions, without what lies outside the working space.
fn inside(runs: &[Run], positions: u32) -> impl Iterator<Item = Range<u32>> + '_ {
    runs.iter().map(move |run| {
        let end = (u64::from(run.start) + u64::from(run.len)).min(u64::from(positions));
        run.start.min(positions)..end as u32
    })
}

/// The positions of runs, without those outside the working space.
fn positions_of(runs: &[Run], positions: u32) -> impl Iterator<Item = u32> + '_ {
    inside(runs, positions).flatten()
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
