//! Steps in which all ranks exchange with peers.

use super::software::{PaperSoftware, PaperStep, puts_of_blocks};
use crate::sim::machine::Machine;
use crate::sim::script::Script;

/// The longest vector whose latency form needs no ready messages, bytes.
pub const EAGER_BYTES: f64 = 1024.0;
/// Speed of a rank's message to itself, as a part of the speed of an interface.
const TO_ITSELF: f64 = 0.25;

impl PaperSoftware<'_> {
    /// Exchanges whole vectors: each step has the whole of a port's part. One port has no critical section.
    pub fn latency(&self) -> Script {
        let lane = |steps: &[PaperStep]| {
            let step = |step: &PaperStep| {
                let ready = (self.n > EAGER_BYTES).then(|| self.ready(step));
                let fold = match self.ports {
                    1 => self.fold_alone(step.bytes, 1.0),
                    _ => self.fold(step.bytes, 1.0),
                };
                ready.into_iter().chain(self.exchange_in(step)).chain([fold]).collect::<Vec<_>>()
            };
            steps.iter().flat_map(step).collect()
        };
        self.of_lanes(self.enter() + self.table(), self.fork_if_several(), lane)
    }

    /// Reduce-scatter, then allgather, on contiguous blocks; `is_mirrored`: some ports are mirrored.
    pub fn two_phase(&self, is_mirrored: bool) -> Script {
        let exchanges = if is_mirrored { 2.0 } else { 1.0 } * self.n_steps(2);
        let setup = self.enter() + self.table() + self.exchange(exchanges);
        let lane = |steps: &[PaperStep]| {
            let mut ops = Vec::new();
            for step in steps {
                ops.push(self.heap_and_timers(3.0, 1.0));
                if step.reduces {
                    let segments = self.segments(step.bytes);
                    let put = self.put_part([0.0, 1.0], step.at, segments);
                    ops.extend([put, self.heap(3.0)]);
                    for piece in self.pieces(step.bytes, segments) {
                        ops.push(self.receive_part(step.at, piece.to, piece.segments));
                        ops.push(self.fold(piece.bytes, piece.segments));
                    }
                } else {
                    ops.extend([self.put(step), self.heap(3.0), self.receive(step)]);
                }
                ops.extend([self.sent(step), self.heap(1.0)]);
            }
            ops
        };
        self.of_lanes(setup, self.fork(), lane)
    }

    /// Uses temporary memory, from which every block is copied to its place in the end.
    pub fn allgather(&self) -> Script {
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(3.0), self.copy(self.part() / self.ranks(), 1.0)];
            for step in steps {
                ops.push(self.heap(1.0));
                ops.extend(self.exchange_in(step));
            }
            let copy = self.copy(self.part(), self.ranks());
            ops.extend([self.heap(2.0), copy, self.heap(1.0)]);
            ops
        };
        self.of_lanes(self.enter() + self.table(), self.fork(), lane)
    }

    /// Sends blocks straight to their places, with a put for each block. Half of the blocks of a step have arrived in
    /// the step before, and are polled for block by block.
    pub fn allgather_blocks(&self) -> Script {
        let block = self.part() / self.ranks();
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(5.0), self.copy(block, 1.0)];
            for step in steps {
                let blocks = (step.bytes / block).round().max(1.0);
                let fresh = if step.at == 0 { 0.0 } else { 0.5 };
                for piece in self.pieces(step.bytes, blocks) {
                    let puts = puts_of_blocks(piece.segments, piece.bytes);
                    ops.extend([
                        self.heap(piece.segments * (1.0 + fresh)),
                        self.put_part([piece.from, piece.to], step.at, puts),
                        self.poll(piece.segments * fresh),
                    ]);
                }
                ops.push(self.receive(step));
            }
            ops.extend(steps.last().map(|step| self.sent(step)));
            ops.extend([self.poll(self.ranks()), self.heap(3.0)]);
            ops
        };
        self.of_lanes(self.enter() + self.table() + self.exchange_all(), self.fork(), lane)
    }

    /// Puts blocks in order by one more exchange before the others.
    pub fn allgather_send(&self) -> Script {
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(3.0)];
            for step in steps {
                ops.push(self.put(step));
                // A rank whose block is in place sends it to itself.
                if self.n_senders(step) < self.ranks() {
                    let bytes = self.part() / self.ranks();
                    let Machine { interface, latency_ns, .. } = *self.machine;
                    ops.push(self.software(bytes / interface / TO_ITSELF + latency_ns));
                }
                ops.extend([self.receive(step), self.sent(step)]);
            }
            ops
        };
        self.of_lanes(self.enter() + self.exchange(self.n_steps(1)), 0.0, lane)
    }

    /// Uses temporary memory, to which every block is copied before.
    pub fn reduce_scatter(&self) -> Script {
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(4.0), self.copy(self.part(), self.ranks())];
            for step in steps {
                ops.push(self.heap(1.0));
                ops.extend(self.exchange_in(step));
                ops.push(self.fold(step.bytes, 1.0));
            }
            ops.push(self.heap(1.0));
            ops
        };
        self.of_lanes(self.enter() + self.table(), self.fork(), lane)
    }

    /// Sends half of all blocks in each step, packed before.
    pub fn alltoall(&self) -> Script {
        let lane = |steps: &[PaperStep]| {
            let mut ops = vec![self.heap(6.0), self.copy(self.n, 1.0)];
            for step in steps {
                let pack = self.copy(self.n, self.ranks());
                ops.extend([self.heap(2.0), pack, self.ready(step)]);
                ops.extend(self.exchange_in(step));
            }
            ops.extend([self.heap(2.0), self.copy(self.n, self.ranks())]);
            ops
        };
        self.of_lanes(self.enter(), 0.0, lane)
    }
}
