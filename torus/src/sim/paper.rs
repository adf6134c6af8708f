//! The software of the measured code: what its ports do in a call.
//!
//! Read in the public sources of the code that the Bine paper was measured with (repository
//! HLC-Lab/bine_trees_fugaku, lib/), in our words: addresses are exchanged in each call; a parallel region
//! is opened, a thread a port; every step of a two-phase allreduce makes a timer, whose operations of the
//! heap all threads of a rank do one after the other; all folds of a rank go through one critical section.

use super::machine::Machine;
use super::outcome::Part;
use super::score::Score;
use super::script::{Op, Script};
use crate::collectives::{Action, Collective, WalkForm};
use crate::names::{LaneId, StepId};
use crate::plan::{Flow, Interleave, Recipe, Schedule, StepView};

/// A schedule that the measured code has no counterpart of, or one that is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the software of the papers is modelled for allreduce on two-phase, latency and bucket schedules, and for \
     allgather, reduce-scatter and alltoall over butterflies; take --profile hopbine"
)]
pub struct NotModelled;

/// The largest put of uTofu, bytes (utofu_query_onesided_caps).
const MAX_PUT: f64 = 16_777_215.0;
/// The longest vector whose latency form needs no message that says ready, bytes.
const EAGER_BYTES: f64 = 1024.0;
/// The longest piece that the compiler's loop combines in one thread, bytes.
const ALONE_BYTES: f64 = 4800.0;
/// The locks of a rank.
const HEAP: usize = 0;
const CRITICAL: usize = 1;
/// The most parts of a step's segments that are followed one by one.
const MOST_PARTS: u64 = 24;

/// What ports do in a call of `n` bytes; `segment` is the longest piece of a reduction, 0 for none.
pub(super) fn script(
    schedule: &Schedule,
    flow: &dyn Flow,
    score: &Score,
    machine: &Machine,
    n: f64,
    segment: u64,
) -> Result<Script, NotModelled> {
    let Recipe::Walk(recipe) = &schedule.recipe else { return Err(NotModelled) };
    let code = Code { machine, flow, score, n, segment: segment as f64, ports: score.n_ports() };
    match (schedule.collective, recipe.form, recipe.interleave) {
        (Collective::Allreduce, WalkForm::Latency, _) => Ok(code.latency()),
        (Collective::Allreduce, WalkForm::TwoPhase, Interleave::RoundRobin) => {
            let dims = schedule.shape.active_dims().len() as u32;
            Ok(code.two_phase(score.n_ports() > dims))
        }
        (Collective::Allreduce, WalkForm::TwoPhase, Interleave::Sequential) => Ok(code.bucket()),
        (Collective::Allgather, WalkForm::Butterfly, Interleave::RoundRobin) => {
            Ok(code.allgather())
        }
        (Collective::ReduceScatter, WalkForm::Butterfly, Interleave::RoundRobin) => {
            Ok(code.reduce_scatter())
        }
        (Collective::Alltoall, WalkForm::Butterfly, Interleave::RoundRobin)
            if score.n_ports() == 1 =>
        {
            Ok(code.alltoall())
        }
        _ => Err(NotModelled),
    }
}

struct Code<'a> {
    machine: &'a Machine,
    flow: &'a dyn Flow,
    score: &'a Score,
    n: f64,
    segment: f64,
    ports: u32,
}

impl Code<'_> {
    /// Vector after vector, every step the whole of a port's part.
    fn latency(&self) -> Script {
        let machine = self.machine;
        let mut setup = vec![(Part::Setup, machine.paper_base_ns + self.table())];
        if self.ports > 1 {
            setup.push((Part::Threads, self.fork()));
        }
        let lane = |steps: &[f64]| {
            let step = |(step, &bytes): (usize, &f64)| {
                let mut ops = Vec::new();
                if self.n > EAGER_BYTES {
                    ops.push(self.ready(step));
                }
                ops.extend([self.put(step, puts(bytes, MAX_PUT)), self.receive(step, 1.0, 1.0)]);
                ops.extend([self.sent(step), self.fold(bytes, 1.0)]);
                ops
            };
            steps.iter().enumerate().flat_map(step).collect()
        };
        self.of_lanes(setup, lane)
    }

    /// Reduce-scatter, then allgather, on contiguous blocks; `is_mirrored` if some ports are.
    fn two_phase(&self, is_mirrored: bool) -> Script {
        let machine = self.machine;
        let n_steps = self.score.facts().first().map_or(0, Vec::len) / 2;
        let exchanges = if is_mirrored { 2.0 } else { 1.0 } * n_steps as f64 * machine.paper_mpi_ns;
        let setup = machine.paper_base_ns + self.table() + exchanges;
        let lane = |steps: &[f64]| {
            let mut ops = Vec::new();
            for (step, &bytes) in steps.iter().enumerate() {
                let is_reduced = step < n_steps;
                let longest = if is_reduced && self.segment > 0.0 { self.segment } else { MAX_PUT };
                let segments = puts(bytes, longest);
                ops.extend([self.heap(3.0, 1.0), self.put(step, segments), self.heap(3.0, 0.0)]);
                if is_reduced {
                    let mut done = 0;
                    for part in parts(segments as u64) {
                        done += part;
                        let to = (done as f64 / segments) as f32;
                        ops.push(self.receive(step, to, part as f64));
                        ops.push(self.fold(bytes * part as f64 / segments, part as f64));
                    }
                } else {
                    ops.push(self.receive(step, 1.0, 1.0));
                }
                ops.extend([self.sent(step), self.heap(1.0, 0.0)]);
            }
            ops
        };
        self.of_lanes(vec![(Part::Setup, setup), (Part::Threads, self.fork())], lane)
    }

    /// Rings, one dimension after the other, with a parallel region for each dimension and phase.
    fn bucket(&self) -> Script {
        let machine = self.machine;
        let p = f64::from(self.flow.n_ranks());
        let entries = p * f64::from(self.ports);
        // Everybody's addresses, by MPI_Allgather.
        let exchange = p.log2() * machine.paper_mpi_ns
            + 16.0 * entries * (1.0 / machine.link + 1.0 / machine.paper_eager)
            + 3.0 * entries * machine.paper_entry_ns;
        let setup = vec![
            (Part::Setup, machine.paper_base_ns + exchange),
            (Part::Copy, self.n / machine.copy),
        ];
        let mut script = self.of_lanes(setup, |_| Vec::new());
        for (lane, ops) in LaneId::first(self.score.facts().len()).zip(&mut script.lanes) {
            let mut last = None;
            for (step, facts) in self.score.facts()[lane.index()].iter().enumerate() {
                let dim = match self.flow.view(lane, StepId(step)) {
                    StepView::Lines(lines) => Some(lines.dim),
                    StepView::Messages => None,
                };
                if last != Some((dim, facts.action)) {
                    last = Some((dim, facts.action));
                    let fork = Op::Spend { ns: self.fork(), part: Part::Threads };
                    ops.extend([Op::Join, fork, self.heap(2.0, 0.0)]);
                }
                let bytes = facts.share * self.n;
                ops.extend([
                    self.ready(step),
                    self.put(step, puts(bytes, MAX_PUT)),
                    self.receive(step, 1.0, 1.0),
                ]);
                if facts.action == Action::Reduce {
                    ops.push(self.fold(bytes, 1.0));
                }
                ops.push(self.sent(step));
            }
        }
        script
    }

    /// In temporary memory, from which every block is copied to its place in the end.
    fn allgather(&self) -> Script {
        let lane = |steps: &[f64]| {
            let mut ops = vec![self.heap(3.0, 0.0), self.copy(self.part() / self.ranks(), 1.0)];
            for (step, &bytes) in steps.iter().enumerate() {
                ops.extend([self.heap(1.0, 0.0), self.put(step, puts(bytes, MAX_PUT))]);
                ops.extend([self.receive(step, 1.0, 1.0), self.sent(step)]);
            }
            ops.extend([
                self.heap(2.0, 0.0),
                self.copy(self.part(), self.ranks()),
                self.heap(1.0, 0.0),
            ]);
            ops
        };
        self.of_lanes(self.with_table(), lane)
    }

    /// In temporary memory, to which every block is copied before.
    fn reduce_scatter(&self) -> Script {
        let lane = |steps: &[f64]| {
            let mut ops = vec![self.heap(4.0, 0.0), self.copy(self.part(), self.ranks())];
            for (step, &bytes) in steps.iter().enumerate() {
                ops.extend([self.heap(1.0, 0.0), self.put(step, puts(bytes, MAX_PUT))]);
                ops.extend([self.receive(step, 1.0, 1.0), self.sent(step), self.fold(bytes, 1.0)]);
            }
            ops.push(self.heap(1.0, 0.0));
            ops
        };
        self.of_lanes(self.with_table(), lane)
    }

    /// Half of all blocks in each step, packed before.
    fn alltoall(&self) -> Script {
        let lane = |steps: &[f64]| {
            let mut ops = vec![self.heap(6.0, 0.0), self.copy(self.n, 1.0)];
            for (step, &bytes) in steps.iter().enumerate() {
                ops.extend([
                    self.heap(2.0, 0.0),
                    self.copy(self.n, self.ranks()),
                    self.ready(step),
                ]);
                ops.extend([self.put(step, puts(bytes, MAX_PUT)), self.receive(step, 1.0, 1.0)]);
                ops.push(self.sent(step));
            }
            ops.extend([self.heap(2.0, 0.0), self.copy(self.n, self.ranks())]);
            ops
        };
        self.of_lanes(vec![(Part::Setup, self.machine.paper_base_ns)], lane)
    }

    /// Entering a call that makes a table of blocks, and its parallel region.
    fn with_table(&self) -> Vec<(Part, f64)> {
        let enter = self.machine.paper_base_ns + self.table();
        vec![(Part::Setup, enter), (Part::Threads, self.fork())]
    }

    /// The bytes of a port.
    fn part(&self) -> f64 {
        self.n / f64::from(self.ports)
    }

    fn ranks(&self) -> f64 {
        f64::from(self.flow.n_ranks())
    }

    /// Copies bytes in pieces.
    fn copy(&self, bytes: f64, pieces: f64) -> Op {
        let machine = self.machine;
        let speed = machine.copy.min(machine.copy_all / f64::from(self.ports));
        let ramp = (bytes / pieces / 256.0).min(128.0).sqrt() * machine.copy_ramp_ns;
        let ramp = if self.ports > 1 { ramp } else { 0.0 };
        let ns = bytes / speed + pieces * (machine.block_ns + ramp);
        Op::Spend { ns, part: Part::Copy }
    }

    /// A script of what a port does, of the bytes of each of its steps.
    fn of_lanes(&self, setup: Vec<(Part, f64)>, lane: impl Fn(&[f64]) -> Vec<Op>) -> Script {
        let bytes = |facts: &Vec<super::score::StepFacts>| -> Vec<f64> {
            facts.iter().map(|facts| facts.share * self.n).collect()
        };
        let lanes = self.score.facts().iter().map(|facts| lane(&bytes(facts))).collect();
        Script { setup, lanes, takes_turns: self.ports > 1 }
    }

    /// The table of all ranks' blocks that a call makes, ns.
    fn table(&self) -> f64 {
        f64::from(self.flow.n_ranks()) * f64::from(self.ports) * self.machine.paper_entry_ns
    }

    /// A parallel region, ns.
    fn fork(&self) -> f64 {
        self.machine.paper_fork_ns + f64::from(self.ports - 1) * self.machine.paper_fork_each_ns
    }

    /// Operations of the heap, and timers.
    fn heap(&self, operations: f64, timers: f64) -> Op {
        let machine = self.machine;
        let timers = timers * machine.paper_timer_ns;
        match self.ports {
            1 => {
                Op::Spend { ns: operations * machine.paper_heap_ns + timers, part: Part::Software }
            }
            _ => Op::Serial {
                lock: HEAP,
                ns: operations * machine.paper_heap_all_ns + timers,
                wake_ns: machine.paper_heap_wake_ns,
                part: Part::Software,
            },
        }
    }

    fn put(&self, step: usize, puts: f64) -> Op {
        let Machine { post_ns, gap_ns, .. } = *self.machine;
        Op::Put { step, from: 0.0, to: 1.0, puts: puts as f32, post_ns, gap_ns }
    }

    fn receive(&self, step: usize, to: f32, notices: f64) -> Op {
        Op::Receive { step, to, poll_ns: notices * self.machine.poll_ns }
    }

    fn sent(&self, step: usize) -> Op {
        Op::Sent { step, ack_ns: self.machine.ack_ns }
    }

    fn ready(&self, step: usize) -> Op {
        let Machine { post_ns, poll_ns, .. } = *self.machine;
        Op::Ready { step, post_ns, poll_ns }
    }

    /// Combines bytes in pieces: of several ports one at a time; of one the compiler's threads, if pieces
    /// are long.
    fn fold(&self, bytes: f64, pieces: f64) -> Op {
        let machine = self.machine;
        if self.ports == 1 {
            let ns = match bytes / pieces > ALONE_BYTES {
                true => bytes / machine.reduce_all + pieces * machine.paper_team_ns,
                false => bytes / machine.reduce,
            };
            return Op::Spend { ns, part: Part::Fold };
        }
        let ns = bytes / machine.reduce
            + pieces * machine.paper_critical_ns
            + machine.reduce_start_ns(bytes, pieces);
        Op::Serial { lock: CRITICAL, ns, wake_ns: 0.0, part: Part::Fold }
    }
}

/// Pieces of at most `longest` bytes.
fn puts(bytes: f64, longest: f64) -> f64 {
    (bytes / longest).ceil().max(1.0)
}

/// Segments in a few parts, the last of one segment: what is combined after all else has arrived.
fn parts(segments: u64) -> Vec<u64> {
    if segments <= MOST_PARTS {
        return vec![1; segments as usize];
    }
    let (each, more) = ((segments - 1) / (MOST_PARTS - 1), (segments - 1) % (MOST_PARTS - 1));
    (0..MOST_PARTS - 1).map(|part| each + u64::from(part < more)).chain([1]).collect()
}
