//! The operations of the papers' code, and their costs.

use std::collections::HashSet;

use crate::collectives::Action;
use crate::names::{LaneId, StepId};
use crate::plan::Flow;
use crate::sim::machine::Machine;
use crate::sim::outcome::TimeCategory;
use crate::sim::routed::RoutedPlan;
use crate::sim::script::{Op, Script, Threads, parts};

/// The largest put of uTofu, bytes (utofu_query_onesided_caps).
const MAX_PUT: f64 = 16_777_215.0;
/// The longest piece that one thread combines in the compiler's loop, bytes.
const ALONE_BYTES: f64 = 4800.0;
/// The locks of a rank.
const HEAP: usize = 0;
const CRITICAL: usize = 1;
/// The most parts of a step's segments that are followed one by one.
const MOST_PARTS: u64 = 24;

pub struct PaperSoftware<'a> {
    pub machine: &'a Machine,
    pub flow: &'a dyn Flow,
    pub routed: &'a RoutedPlan,
    pub n: f64,
    /// The longest piece of a reduction or a tree, bytes; 0 for none.
    pub segment: f64,
    pub ports: u32,
}

/// A step of a port.
pub struct PaperStep {
    /// The number of the step.
    pub at: usize,
    /// The most bytes that a rank sends.
    pub bytes: f64,
    /// Whether arriving data are combined.
    pub reduces: bool,
    /// Whether all ranks do the same, not only those that a tree has reached.
    pub is_everywhere: bool,
}

/// A part of a step's segments.
pub struct Piece {
    pub segments: f64,
    pub bytes: f64,
    pub from: f32,
    pub to: f32,
}

impl PaperSoftware<'_> {
    /// A script with the operations of each port in its steps.
    pub fn of_lanes(
        &self,
        setup: f64,
        threads: f64,
        lane: impl Fn(&[PaperStep]) -> Vec<Op>,
    ) -> Script {
        let setup = vec![(TimeCategory::Setup, setup), (TimeCategory::Threads, threads)];
        let lanes = (0..self.routed.facts.len()).map(|number| lane(&self.steps(number)));
        let threads = if self.ports > 1 { Threads::TakingTurns } else { Threads::Each };
        Script { setup, lanes: lanes.collect(), threads, ..Script::default() }
    }

    /// The steps of a lane.
    pub fn steps(&self, lane: usize) -> Vec<PaperStep> {
        let facts = self.routed.facts[lane].iter().enumerate();
        let steps = facts.map(|(at, facts)| PaperStep {
            at,
            bytes: facts.share * self.n,
            reduces: facts.action == Action::Reduce,
            is_everywhere: facts.is_everywhere,
        });
        steps.collect()
    }

    /// Steps of one phase over all dimensions, if there are `phases` phases.
    pub fn n_steps(&self, phases: usize) -> f64 {
        (self.routed.facts.first().map_or(0, Vec::len) / phases) as f64
    }

    /// Ranks that send in a step of the first lane.
    pub fn n_senders(&self, step: &PaperStep) -> f64 {
        let mut senders = HashSet::new();
        self.flow.volumes(LaneId(0), StepId(step.at), &mut |from, _, _| {
            senders.insert(from);
        });
        senders.len() as f64
    }

    /// The bytes of a port's part.
    pub fn part(&self) -> f64 {
        self.n / f64::from(self.ports)
    }

    pub fn ranks(&self) -> f64 {
        f64::from(self.flow.n_ranks())
    }

    /// Time to enter a call, ns.
    pub fn enter(&self) -> f64 {
        self.machine.paper_base_ns
    }

    /// Time to make the table of all ranks' blocks, ns.
    pub fn table(&self) -> f64 {
        self.entries() * self.machine.paper_entry_ns
    }

    fn entries(&self) -> f64 {
        self.ranks() * f64::from(self.ports)
    }

    /// Time to exchange addresses with the peer of each step by messages of MPI, ns.
    pub fn exchange(&self, messages: f64) -> f64 {
        messages * (self.machine.paper_mpi_ns + self.machine.latency_ns)
    }

    /// Time to exchange the addresses of all ranks by MPI_Allgather, and to store them, ns.
    pub fn exchange_all(&self) -> f64 {
        let machine = self.machine;
        self.exchange(self.ranks().log2())
            + 16.0 * self.entries() * (1.0 / machine.link + 1.0 / machine.paper_eager)
            + 3.0 * self.table()
    }

    /// Time to open and close a parallel region, ns.
    pub fn fork(&self) -> f64 {
        self.machine.paper_fork_ns + f64::from(self.ports - 1) * self.machine.paper_fork_each_ns
    }

    /// Time to open and close a parallel region in forms that open none for one port, ns.
    pub fn fork_if_several(&self) -> f64 {
        if self.ports > 1 { self.fork() } else { 0.0 }
    }

    /// Operations of the heap, and timers.
    pub fn heap_and_timers(&self, operations: f64, timers: f64) -> Op {
        let machine = self.machine;
        let timers = timers * machine.paper_timer_ns;
        match self.ports {
            1 => self.software(operations * machine.paper_heap_ns + timers),
            _ => Op::Serial {
                lock: HEAP,
                ns: operations * machine.paper_heap_all_ns + timers,
                wake_ns: machine.paper_heap_wake_ns,
                category: TimeCategory::Software,
            },
        }
    }

    /// Operations of the heap.
    pub fn heap(&self, operations: f64) -> Op {
        self.heap_and_timers(operations, 0.0)
    }

    pub fn software(&self, ns: f64) -> Op {
        Op::Spend { ns, category: TimeCategory::Software }
    }

    /// Takes notices from a queue.
    pub fn poll(&self, notices: f64) -> Op {
        self.software(notices * self.machine.poll_ns)
    }

    /// Copies bytes in pieces.
    pub fn copy(&self, bytes: f64, pieces: f64) -> Op {
        let machine = self.machine;
        let speed = machine.copy.min(machine.copy_all / f64::from(self.ports));
        let ramp = (bytes / pieces / 256.0).min(128.0).sqrt() * machine.copy_ramp_ns;
        let ramp = if self.ports > 1 { ramp } else { 0.0 };
        let ns = bytes / speed + pieces * (machine.block_ns + ramp);
        Op::Spend { ns, category: TimeCategory::Copy }
    }

    /// Posts a step's messages, in puts of `longest` bytes.
    pub fn put_in(&self, step: &PaperStep, longest: f64) -> Op {
        self.put_part([0.0, 1.0], step.at, puts(step.bytes, longest))
    }

    pub fn put(&self, step: &PaperStep) -> Op {
        self.put_in(step, MAX_PUT)
    }

    pub fn put_part(&self, [from, to]: [f32; 2], step: usize, puts: f64) -> Op {
        let Machine { post_ns, gap_ns, .. } = *self.machine;
        Op::Put { step, from, to, puts: puts as f32, post_ns, gap_ns, n_sharing: 1.0 }
    }

    pub fn receive(&self, step: &PaperStep) -> Op {
        self.receive_part(step.at, 1.0, 1.0)
    }

    pub fn receive_part(&self, step: usize, to: f32, notices: f64) -> Op {
        Op::Receive { step, to, poll_ns: notices * self.machine.poll_ns }
    }

    pub fn sent(&self, step: &PaperStep) -> Op {
        self.sent_part(step.at, 1.0)
    }

    pub fn sent_part(&self, step: usize, to: f32) -> Op {
        Op::Sent { step, to, ack_ns: self.machine.ack_ns }
    }

    pub fn ready(&self, step: &PaperStep) -> Op {
        let Machine { post_ns, poll_ns, .. } = *self.machine;
        Op::Ready { step: step.at, post_ns, poll_ns }
    }

    /// Puts a step's messages, receives the arriving messages, and waits until the puts have left.
    pub fn exchange_in(&self, step: &PaperStep) -> [Op; 3] {
        [self.put(step), self.receive(step), self.sent(step)]
    }

    /// Combines bytes in pieces in the critical section, which one port at a time enters.
    pub fn fold(&self, bytes: f64, pieces: f64) -> Op {
        let machine = self.machine;
        let enter = pieces * machine.paper_critical_ns;
        if self.ports == 1 {
            return Op::Spend {
                ns: enter + self.team_ns(bytes, pieces),
                category: TimeCategory::Fold,
            };
        }
        let ns = bytes / machine.reduce + enter + machine.reduce_start_ns(bytes, pieces);
        Op::Serial { lock: CRITICAL, ns, wake_ns: 0.0, category: TimeCategory::Fold }
    }

    /// Combines bytes in pieces in code without the critical section.
    pub fn fold_alone(&self, bytes: f64, pieces: f64) -> Op {
        Op::Spend { ns: self.team_ns(bytes, pieces), category: TimeCategory::Fold }
    }

    /// Time to combine outside parallel regions of several threads, ns: the compiler's threads combine long pieces.
    fn team_ns(&self, bytes: f64, pieces: f64) -> f64 {
        let machine = self.machine;
        match bytes / pieces > ALONE_BYTES {
            true => bytes / machine.reduce_all + pieces * machine.paper_team_ns,
            false => bytes / machine.reduce,
        }
    }

    /// The number of segments of `bytes` bytes; whole messages are cut only by the network.
    pub fn segments(&self, bytes: f64) -> f64 {
        puts(bytes, if self.segment > 0.0 { self.segment } else { MAX_PUT })
    }

    /// Cuts bytes into segments, grouped into parts that are followed one by one.
    pub fn pieces(&self, bytes: f64, segments: f64) -> Vec<Piece> {
        self.pieces_at_most(bytes, segments, MOST_PARTS)
    }

    pub fn pieces_at_most(&self, bytes: f64, segments: f64, most: u64) -> Vec<Piece> {
        let mut done = 0.0;
        let piece = |part: u64| {
            let (from, part) = (done, part as f64);
            done += part;
            let at = |segment: f64| (segment / segments) as f32;
            Piece { segments: part, bytes: bytes * part / segments, from: at(from), to: at(done) }
        };
        parts(segments as u64, most).into_iter().map(piece).collect()
    }
}

/// The number of pieces of at most `longest` bytes.
pub fn puts(bytes: f64, longest: f64) -> f64 {
    (bytes / longest).ceil().max(1.0)
}

/// The number of the network's puts for blocks, one put or more for each block.
pub fn puts_of_blocks(blocks: f64, bytes: f64) -> f64 {
    blocks * puts(bytes / blocks, MAX_PUT)
}
