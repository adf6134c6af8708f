//! Calls in which a rank knows the blocks that it gives and gets, and no others: before data
//! travel on paths that cross other ranks, the sizes travel there.
//!
//! Such a call is two operations. In the first, messages between the same ranks as the plan's
//! carry a word for every block; after it each rank knows how long every message of its own plan
//! is, and compiles the program that moves the data, or finds it made for the same sizes before.
//! (Sizes and data round by round, as in Fan et al. 2025, section 3.2, are as many messages; but
//! the program would have to change while it runs.)
//!
//! In an alltoall sizes travel as the data will, with as few messages as can be, and whoever gets a
//! block checks its size. On the way all ranks also learn the longest block of all, so that the
//! data may take another algorithm than the sizes, the same on all ranks.
//!
//! In a gather and a scatter they travel the other way, from those who are to get the blocks, along
//! the same tree: whoever gives a block checks its size before anything is sent, while those who
//! are to get it wait.

use std::sync::Arc;

use hopbine_torus::choose::Choice;
use hopbine_torus::plan::{Lane, Plan};
use hopbine_torus::{Block, Collective, Position};

use crate::Rank;
use crate::comm::programs::key::Key;
use crate::comm::programs::ready::{Ready, Then};
use crate::comm::state::inner::Inner;
use crate::engine::{BlockSizes, Known, Learnt, Sizes, learnt, positions};
use crate::error::Error;

impl Inner {
    /// What comes after an operation that is done. Returns whether there is anything.
    ///
    /// # Errors
    /// [`Error::Disagree`], as on no other rank than the two; and what may be wrong with a program.
    pub(crate) fn follow(&self, ready: &mut Ready) -> Result<bool, Error> {
        let Some(learning) = &mut ready.learning else { return Ok(false) };
        let Then { sizes, given, .. } = &*learning.then;
        let own_longest = given.last().copied().unwrap_or(0);
        let found = learnt(sizes, own_longest, &learning.log);
        if learning.last.as_ref().is_none_or(|(last, _)| *last != found) {
            // The old operation's memory goes before there is a new one.
            learning.last = None;
            let next = self.next(&ready.key, &learning.then, found.clone());
            // Others have come as far, and wait for this rank.
            let next = next.inspect_err(|error| self.of_world.engine.fail(error))?;
            learning.last = Some((found, next));
        }
        Ok(true)
    }

    fn next(&self, key: &Key, then: &Then, found: Learnt) -> Result<Box<Ready>, Error> {
        let (mut sizes, elem_bytes) = key.sizes(self.members.caller)?;
        if key.collective == Collective::Alltoall {
            let found = along(&then.sizes, &then.how.plan, found);
            self.check_received(&then.how.plan, &sizes, &found)?;
            if then.is_chosen
                && let Choice { algorithm, ports, .. } = self.learnt_choice(found.longest)
                && algorithm.name != then.how.algorithm.name
            {
                let mut key = key.clone();
                let options = Arc::make_mut(&mut key.options);
                options.algorithm = Some((*algorithm.name).into());
                options.ports.get_or_insert(ports);
                return self.ready_for(key);
            }
            if let Sizes::PerBlock { known, .. } = &mut sizes {
                *known = Known::Learnt(Arc::new(found));
            }
        } else if let Sizes::PerBlock { send, recv, known } = &mut sizes {
            self.take_told(&then.sizes, send, &found)?;
            *recv = send.clone();
            *known = Known::Told;
        }
        let program = self.data_program(key, &then.how, sizes, elem_bytes)?;
        self.make_room(&program);
        let operation = self.of_world.engine.prepare(Arc::new(program), None)?;
        Ok(Box::new(Ready::new(key.clone(), operation, None)))
    }

    /// Checks that what others send here is what this rank expects of them.
    fn check_received(&self, plan: &Plan, sizes: &Sizes, found: &Learnt) -> Result<(), Error> {
        let Sizes::PerBlock { recv, .. } = sizes else { return Ok(()) };
        for (lane, received) in plan.lanes.iter().zip(&found.received) {
            for (position, sent) in last_received(lane, received) {
                // A leader hands others' blocks on.
                let block = lane.space.block_at_end(plan.rank, position);
                let Some(Block(peer)) = block else { continue };
                let expected = recv.counts[peer as usize];
                if sent != expected {
                    return Err(self.disagree(plan.rank.0, peer, sent, expected));
                }
            }
        }
        Ok(())
    }

    /// Takes over what is expected of this rank's blocks and of those that pass here, and checks
    /// that it is what this rank gives.
    fn take_told(&self, plan: &Plan, blocks: &mut BlockSizes, found: &Learnt) -> Result<(), Error> {
        let (me, root) = (plan.rank.0, plan.root.0);
        let gives = |block: u32| if me == root { block != me } else { block == me };
        let mut counts = blocks.counts.to_vec();
        for (lane, received) in plan.lanes.iter().zip(&found.received) {
            for (position, expected) in last_received(lane, received) {
                let block = lane.space.block_at_end(plan.rank, position);
                let Some(Block(block)) = block else { continue };
                let count = &mut counts[block as usize];
                // The root gives blocks of a scatter, everybody its own of a gather.
                if gives(block) && *count != expected {
                    let peer = if me == root { block } else { root };
                    return Err(self.disagree(peer, me, *count, expected));
                }
                *count = expected;
            }
        }
        // Where there is no list of the user's, nothing else is said of the places.
        if me != root {
            *blocks = BlockSizes::adjacent(&counts);
        }
        Ok(())
    }

    /// `rank` expects another block than `peer` sends.
    fn disagree(&self, rank: Rank, peer: Rank, sent: u64, expected: u64) -> Error {
        let world = |rank: Rank| self.members.world_rank(rank);
        Error::Disagree { rank: world(rank), peer: world(peer), sent, expected }
    }
}

/// What has been learnt in the messages of one plan, in the order of another's. Every position of
/// a rank receives the same blocks one after the other in both.
fn along(from: &Plan, to: &Plan, found: Learnt) -> Learnt {
    let in_order = |((from, to), received): ((&Lane, &Lane), &[u64])| {
        let arriving = |lane: &'_ Lane| -> Vec<u32> {
            lane.steps.iter().flat_map(|step| positions(&step.recvs)).collect()
        };
        // By position, then in order of arrival.
        let sorted = |positions: &[u32]| {
            let mut order: Vec<usize> = (0..positions.len()).collect();
            order.sort_by_key(|&at| positions[at]);
            order
        };
        let (from, to) = (sorted(&arriving(from)), sorted(&arriving(to)));
        let mut lens = vec![0; received.len()];
        from.into_iter().zip(to).for_each(|(from, to)| lens[to] = received[from]);
        lens.into()
    };
    let lanes = from.lanes.iter().zip(&to.lanes);
    let received = lanes.zip(found.received.iter().map(|received| &**received)).map(in_order);
    Learnt { received: received.collect(), longest: found.longest }
}

/// By position that a lane receives, the length of what comes last.
fn last_received(lane: &Lane, received: &[u64]) -> impl Iterator<Item = (Position, u64)> {
    let mut last = vec![None; lane.space.n_positions as usize];
    let all = lane.steps.iter().flat_map(|step| positions(&step.recvs));
    for (position, &len) in all.zip(received) {
        last[position as usize] = Some(len);
    }
    let numbered = last.into_iter().zip(0..);
    numbered.filter_map(|(len, position)| Some((Position(position), len?)))
}
