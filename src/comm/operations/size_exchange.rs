//! Calls in which a rank knows only the sizes of the blocks that it sends and receives. If the data pass through
//! other ranks, the sizes are sent along the same paths first.
//!
//! Such a call consists of two operations. In the first, messages between the same ranks as those of the plan carry
//! a word for every block. After it each rank knows the length of every message of its own plan, and compiles the
//! program that moves the data or finds the one that it compiled for the same sizes before. (Sizes and data round by
//! round, as in Fan et al. 2025, section 3.2, take as many messages; but the program would have to change while it
//! runs.)
//!
//! In an alltoall sizes travel as the data will, with as few messages as possible, and the receiver of a block
//! checks its size. All ranks also learn the length of the longest block, so that the data may use another algorithm
//! than the sizes, the same on all ranks.
//!
//! In a gather and a scatter sizes travel in the opposite direction, from the receivers of the blocks, along the
//! same tree. The sender of a block checks its size before anything is sent, while the receivers wait.

use std::borrow::Cow;
use std::sync::Arc;

use hopbine_torus::choose::Choice;
use hopbine_torus::plan::{Lane, Plan};
use hopbine_torus::{Block, Collective, Position};

use crate::Rank;
use crate::comm::programs::key::Key;
use crate::comm::programs::ready::{AfterSizes, Ready};
use crate::comm::state::inner::Inner;
use crate::engine::{BlockSizes, Known, Learnt, Sizes, learnt, positions};
use crate::error::Error;

impl Inner {
    /// Prepares the operation that follows one that is done. Returns whether there is one.
    ///
    /// # Errors
    /// [`Error::Disagree`], on the receiver of the block in an alltoall, on its sender in a gather or a scatter; errors
    /// of compiling the program.
    pub(crate) fn prepare_next(&self, ready: &mut Ready) -> Result<bool, Error> {
        let Some(size_exchange) = &mut ready.size_exchange else { return Ok(false) };
        let AfterSizes { size_plan, send_sizes, .. } = &*size_exchange.after_sizes;
        let own_longest = send_sizes.last().copied().unwrap_or(0);
        let found = learnt(size_plan, own_longest, &size_exchange.log);
        if size_exchange.last.as_ref().is_none_or(|(last, _)| *last != found) {
            // Frees the old operation's memory before the new one is allocated.
            size_exchange.last = None;
            let next = self.prepare_data(&ready.key, &size_exchange.after_sizes, found.clone());
            // Other ranks have reached this stage and wait for this rank.
            let next = next.inspect_err(|error| self.world.engine.fail(error))?;
            size_exchange.last = Some((found, next));
        }
        Ok(true)
    }

    fn prepare_data(
        &self,
        key: &Key,
        after_sizes: &AfterSizes,
        found: Learnt,
    ) -> Result<Box<Ready>, Error> {
        let (mut sizes, elem_bytes) = key.sizes(self.members.caller)?;
        let mut data = Cow::Borrowed(&after_sizes.data);
        if key.collective == Collective::Alltoall {
            let found = reordered(&after_sizes.size_plan, &data.plan, found);
            self.check_received(&data.plan, &sizes, &found)?;
            if after_sizes.is_chosen {
                let choice = self.by_options(key, self.learnt_choice(found.longest));
                let Choice { algorithm, ports, segment_bytes } = choice;
                if (&algorithm.name, ports) != (&data.algorithm.name, data.ports) {
                    let mut key = key.clone();
                    let options = Arc::make_mut(&mut key.options);
                    options.algorithm = Some((*algorithm.name).into());
                    (options.ports, options.segment_bytes) = (Some(ports), Some(segment_bytes));
                    return self.ready_for(key);
                }
                if segment_bytes != data.segment_bytes {
                    data.to_mut().segment_bytes = segment_bytes;
                }
            }
            if let Sizes::PerBlock { known, .. } = &mut sizes {
                *known = Known::Learnt(Arc::new(found));
            }
        } else if let Sizes::PerBlock { send, recv, known } = &mut sizes {
            self.adopt_expected_sizes(&after_sizes.size_plan, send, &found)?;
            *recv = send.clone();
            *known = Known::Told;
        }
        let program = self.data_program(key, &data, sizes, elem_bytes)?;
        self.make_room(&program);
        let operation = self.world.engine.prepare(Arc::new(program), None)?;
        Ok(Box::new(Ready::new(key.clone(), operation, None)))
    }

    /// Checks that the sizes that other ranks send are those that this rank expects.
    fn check_received(&self, plan: &Plan, sizes: &Sizes, found: &Learnt) -> Result<(), Error> {
        let Sizes::PerBlock { recv, .. } = sizes else { return Ok(()) };
        for (lane, received) in plan.lanes.iter().zip(&found.received) {
            for (position, sent) in last_received(lane, received) {
                // Not a block for this rank: a leader forwards it to another rank.
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

    /// Adopts the sizes that receivers expect, of this rank's blocks and of those that it forwards, and checks that
    /// they are the sizes that this rank sends.
    fn adopt_expected_sizes(
        &self,
        plan: &Plan,
        blocks: &mut BlockSizes,
        found: &Learnt,
    ) -> Result<(), Error> {
        let (me, root) = (plan.rank.0, plan.root.0);
        let gives = |block: u32| if me == root { block != me } else { block == me };
        let mut counts = blocks.counts.to_vec();
        for (lane, received) in plan.lanes.iter().zip(&found.received) {
            for (position, expected) in last_received(lane, received) {
                let block = lane.space.block_at_end(plan.rank, position);
                let Some(Block(block)) = block else { continue };
                let count = &mut counts[block as usize];
                // In a scatter the root sends the blocks, in a gather every rank its own.
                if gives(block) && *count != expected {
                    let peer = if me == root { block } else { root };
                    return Err(self.disagree(peer, me, *count, expected));
                }
                *count = expected;
            }
        }
        // Without a list of the user's, the blocks are adjacent.
        if me != root {
            *blocks = BlockSizes::adjacent(&counts);
        }
        Ok(())
    }

    /// The error for a block of which `rank` expects another size than `peer` sends.
    fn disagree(&self, rank: Rank, peer: Rank, sent: u64, expected: u64) -> Error {
        let world = |rank: Rank| self.members.world_rank(rank);
        Error::Disagree { rank: world(rank), peer: world(peer), sent, expected }
    }
}

/// Reorders what the messages of plan `from` have learnt into the order of plan `to`. In both plans every position
/// of a rank receives the same blocks in the same order.
fn reordered(from: &Plan, to: &Plan, found: Learnt) -> Learnt {
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

/// By position that a lane receives, the length of the block received last.
fn last_received(lane: &Lane, received: &[u64]) -> impl Iterator<Item = (Position, u64)> {
    let mut last = vec![None; lane.space.n_positions as usize];
    let all = lane.steps.iter().flat_map(|step| positions(&step.recvs));
    for (position, &len) in all.zip(received) {
        last[position as usize] = Some(len);
    }
    let numbered = last.into_iter().zip(0..);
    numbered.filter_map(|(len, position)| Some((Position(position), len?)))
}

#[cfg(test)]
mod tests {
    use hopbine_torus::Shape;

    use super::*;
    use crate::comm::call::Call;
    use crate::comm::call::blocks::Blocks;
    use crate::reduce::Dtype;
    use crate::world::{EmulationConfig, emulate};

    const TABLE: &str = r#"version = 1
name = "learns"
wire = "network"
otherwise = "network"
[class.four]
ranks = 4
[[rule]]
collective = "alltoall"
sizes = "unknown"
class = "four"
rows = [{ bytes = "0..", algorithm = "bruck:2", ports = 1, segment = "whole" }]
[[rule]]
collective = "alltoall"
sizes = "learnt"
class = "four"
bytes_of = "block"
rows = [
    { bytes = "0..100", algorithm = "bruck:2", ports = 1, segment = 64 },
    { bytes = "100..", algorithm = "bruck:2", ports = 2, segment = 32 },
]
"#;

    /// Also if it names the algorithm that has carried the sizes.
    #[test]
    fn what_a_table_says_of_learnt_sizes_is_followed() {
        let config = EmulationConfig::new(Shape::torus(&[4]).unwrap()).with(|config| {
            config.ports = Some(2);
            config.tuning = Some(TABLE.parse().unwrap());
        });
        emulate(&config, |comm| {
            for (len, want) in [(96, (1, 64)), (256, (2, 32))] {
                let (counts, send) = ([len; 4], vec![1u8; 4 * len as usize]);
                let (mut recv, blocks) = (send.clone(), Blocks::new(&counts));
                comm.alltoallv(&send, blocks, &mut recv, blocks).unwrap();
                let call = Call::vector(Collective::Alltoall, Dtype::U8);
                let call = call.send_blocks(blocks).recv_blocks(blocks).normalized(comm.caller());
                let mut ready = comm.inner.ready(&call, &comm.options).unwrap();
                let mut last = &mut *ready;
                while last.size_exchange.is_some() {
                    last = last.size_exchange.as_mut().and_then(|sizes| sizes.next()).unwrap();
                }
                let ports = &last.operation.program().ports;
                let longest = ports.iter().flat_map(|port| port.wire_bytes).max();
                let n_used = ports.iter().filter(|port| !port.recvs.is_empty()).count();
                assert_eq!((n_used, longest), (want.0, Some(want.1)), "{len}");
            }
        })
        .unwrap();
    }
}
