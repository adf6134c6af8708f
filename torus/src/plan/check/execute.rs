//! The symbolic execution of the ports that share one working space.

use std::ops::Range;

use super::contents::{Contents, NOTHING, SetKind, mix};
use super::{Fault, Found, Violation};
use crate::collectives::Collective;
use crate::plan::types::{Action, Placement, Plan, PortPlan, Rank, Run, n_positions};

/// A receive of the step at hand with what it brings.
struct Message {
    rank: Rank,
    port: usize,
    index: usize,
    /// First of its blocks in the message contents.
    first: usize,
}

pub(super) struct Check<'a> {
    pub(super) plans: &'a [Plan],
    /// The ports whose plans share the working space.
    pub(super) ports: Vec<usize>,
    pub(super) set: SetKind,
    pub(super) found: &'a mut Vec<Violation>,
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

    pub(super) fn run(mut self) {
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
