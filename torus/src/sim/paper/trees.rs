//! Steps to and from a root. One rank stands for the slowest path through the tree: after a message has arrived, the
//! simulation continues with its receiver.

use super::butterflies::EAGER_BYTES;
use super::software::{PaperSoftware, PaperStep, puts_of_blocks};
use crate::sim::outcome::TimeCategory;
use crate::sim::script::{Op, Script, Threads};

/// The most parts of a bcast's segments that are followed one by one.
const MOST_PARTS: u64 = 40;

impl PaperSoftware<'_> {
    /// Segment after segment: the root sends a segment to all its children and waits until it has left. The last
    /// segment is followed down the tree.
    pub fn bcast(&self, via_temporary: bool) -> Script {
        let exchange = if via_temporary { 0.0 } else { self.exchange_all() };
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(3.0)];
            let segments = self.segments(self.part());
            let pieces = self.pieces_at_most(self.part(), segments, MOST_PARTS);
            let (last, first) = pieces.split_last().expect("one segment or more");
            for piece in first {
                ops.push(self.heap(2.0 * piece.segments));
                let put = |step: &PaperStep| {
                    self.put_part([piece.from, piece.to], step.at, piece.segments)
                };
                ops.extend(steps.iter().map(put));
                ops.extend(steps.last().map(|step| self.sent_part(step.at, piece.to)));
                ops.push(self.software((piece.segments - 1.0) * self.machine.ack_ns));
            }
            ops.push(self.heap(1.0));
            for step in steps {
                let put = self.put_part([last.from, last.to], step.at, last.segments);
                ops.extend([put, self.receive(step)]);
            }
            ops.push(self.heap(1.0));
            ops
        };
        let mut script = self.of_lanes(self.enter() + exchange, self.fork_if_several(), lane);
        if via_temporary {
            script.setup.push((TimeCategory::Copy, self.n / self.machine.copy));
        }
        script
    }

    /// Scatters the vector block by block, then gathers it on all ranks.
    pub fn scatter_allgather(&self) -> Script {
        let block = self.part() / self.ranks();
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(4.0)];
            for step in steps {
                if step.is_everywhere {
                    ops.extend([self.heap(1.0), self.put(step), self.receive(step)]);
                    continue;
                }
                let blocks = (step.bytes / block).round().max(1.0);
                let mut put =
                    self.put_part([0.0, 1.0], step.at, puts_of_blocks(blocks, step.bytes));
                if let (Op::Put { n_sharing, .. }, true) = (&mut put, step.at > 0) {
                    // The subtree that was served first is already in the allgather: its messages share the
                    // receivers' interfaces.
                    *n_sharing = 2.0;
                }
                ops.extend([put, self.receive(step)]);
            }
            ops.extend(steps.last().map(|step| self.sent(step)));
            ops.extend([self.poll(self.ranks()), self.heap(1.0)]);
            ops
        };
        self.of_lanes(self.enter() + self.exchange_all(), self.fork(), lane)
    }

    /// Uses temporary memory, from which every block is copied to its place in the end.
    pub fn gather(&self) -> Script {
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(4.0), self.copy(self.part() / self.ranks(), 1.0)];
            for step in steps {
                ops.extend([self.heap(1.0), self.put(step), self.receive(step)]);
            }
            let copy = self.copy(self.part(), self.ranks());
            ops.extend([self.heap(1.0), copy, self.heap(1.0)]);
            ops
        };
        self.of_lanes(self.enter() + self.table(), self.fork(), lane)
    }

    /// Uses temporary memory, to which every block is copied before.
    pub fn scatter(&self) -> Script {
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(5.0), self.copy(self.part(), self.ranks())];
            ops.extend(steps.iter().flat_map(|step| [self.put(step), self.receive(step)]));
            ops.extend([self.heap(2.0), self.copy(self.part() / self.ranks(), 1.0)]);
            ops
        };
        self.of_lanes(self.enter() + self.table(), self.fork(), lane)
    }

    /// One thread serves port after port (the code's loop has no parallel pragma), and the compiler's
    /// threads combine.
    pub fn reduce(&self) -> Script {
        let one = PaperSoftware { ports: 1, ..*self };
        let lane = |lane: usize| {
            let mut ops = vec![one.heap(3.0)];
            let steps = self.steps(lane);
            for step in &steps {
                let segments = self.segments(step.bytes);
                ops.push(one.heap(1.0));
                ops.extend((self.n > EAGER_BYTES).then(|| self.ready(step)));
                ops.push(self.put_part([0.0, 1.0], step.at, segments));
                for piece in self.pieces(step.bytes, segments) {
                    ops.push(one.heap(piece.segments));
                    // Messages of children on later ports arrived long ago, if children do not wait for ready
                    // messages.
                    ops.push(match self.n > EAGER_BYTES || lane == 0 {
                        true => self.receive_part(step.at, piece.to, piece.segments),
                        false => self.poll(piece.segments),
                    });
                    ops.push(one.heap(2.0 * piece.segments));
                    ops.push(one.fold_alone(piece.bytes, piece.segments));
                }
            }
            ops.push(one.heap(1.0));
            ops.extend(steps.last().map(|step| self.sent(step)));
            ops
        };
        let lanes = (0..self.routed.facts.len()).map(lane).collect();
        let setup = vec![(TimeCategory::Setup, self.enter())];
        Script { setup, lanes, threads: Threads::One, ..Script::default() }
    }

    /// A reduce-scatter without copies, then a gather.
    pub fn reduce_scatter_gather(&self) -> Script {
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(3.0)];
            for step in steps {
                if step.reduces {
                    ops.extend(self.exchange_in(step));
                    ops.push(self.fold(step.bytes, 1.0));
                } else {
                    ops.extend([self.heap(1.0), self.put(step), self.receive(step)]);
                }
            }
            ops.push(self.heap(1.0));
            ops
        };
        self.of_lanes(self.enter() + self.table() + self.exchange_all(), self.fork(), lane)
    }
}
