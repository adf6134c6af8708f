//! Operations of the ports of hopbine's engine in a call.
//!
//! Each port has a thread of its own. A message of more than `eager` bytes waits for a descriptor from its receiver
//! (src/endpoint/utofu). Receivers post descriptors in advance, so only a lane's first step waits for the latency,
//! but each descriptor is one more message to post and to poll. Shorter messages are copied before the put and, if
//! they are not combined, after it. Messages between ranks of a node go through its memory (src/endpoint/shm).

use super::machine::Machine;
use super::outcome::TimeCategory;
use super::routed::{RoutedPlan, StepFacts};
use super::script::{Op, Script, Threads, parts};
use super::work::{Copies, LaneWork, StepWork};
use crate::collectives::{Action, Payload};
use crate::names::LaneId;
use crate::plan::{DependsOn, Flow};

/// Whether a call was made before, with the same memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallForm {
    /// The first call: plans are made, memory is registered, peers are contacted.
    First,
    /// A repeated or persistent call: plans, registrations and peers are known.
    #[default]
    Repeated,
}

/// The most parts of a message that are simulated one by one; if there are more segments, several make a part.
pub(super) const MOST_PARTS: u64 = 24;
/// Messages of at most this many bytes travel in a descriptor (src/endpoint/utofu), and are not copied.
const TINY_BYTES: f64 = 16.0;
/// The size of the pages in which Fugaku registers memory.
const PAGE_BYTES: f64 = 65_536.0;

/// Returns the operations of ports in a call of `n` bytes.
pub(super) fn script(
    flow: &dyn Flow,
    routed: &RoutedPlan,
    machine: &Machine,
    n: f64,
    segment: f64,
    call: CallForm,
) -> Script {
    let of_call = (machine, n, segment, call);
    let mut pieces = Vec::new();
    let lanes = LaneId::first(routed.facts.len()).map(|lane| {
        let (facts, work) = (&routed.facts[lane.index()], &routed.work()[lane.index()]);
        let header = &flow.lanes()[lane.index()];
        let wake = machine.wake_ns * f64::from(header.port.0);
        let mut ops = vec![Op::Spend { ns: wake, category: TimeCategory::Threads }];
        let window = header.window.map_or(usize::MAX, |window| window.get() as usize);
        let costs = Costs::of(flow, routed, of_call, lane);
        match routed.whole()[lane.index()] {
            Some(_) => costs.whole(facts, work, &mut pieces, &mut ops),
            None => costs.lane(facts, work, window, &mut ops),
        }
        ops
    });
    let lanes = lanes.collect();
    let setup = vec![(TimeCategory::Setup, setup(flow, routed, of_call))];
    Script { setup, lanes, pieces, threads: Threads::Each }
}

/// A call: the machine, bytes, the longest message in bytes, and whether the call is the first.
pub(super) type OfCall<'a> = (&'a Machine, f64, f64, CallForm);

/// Time before ports start, ns.
pub(super) fn setup(flow: &dyn Flow, routed: &RoutedPlan, of_call: OfCall<'_>) -> f64 {
    let (machine, n, _, call) = of_call;
    let mut setup = machine.call_ns;
    if call == CallForm::First {
        let of_lane = |(lane, work): (LaneId, &LaneWork)| {
            let facts = &routed.facts[lane.index()];
            let costs = Costs::of(flow, routed, of_call, lane);
            // A rank receives as many messages as it sends.
            let messages = |(facts, work): (&StepFacts, &StepWork)| {
                2.0 * f64::from(facts.n_sends) * costs.segments(facts, work)
            };
            facts.iter().zip(&work.steps).map(messages).sum::<f64>()
        };
        let messages: f64 =
            LaneId::first(routed.work().len()).zip(routed.work()).map(of_lane).sum();
        // Input, output and working memory, each registered for every port.
        let registered =
            3.0 * machine.register_ns + (2.0 * n / PAGE_BYTES).ceil() * machine.page_ns;
        setup += messages * machine.compile_ns + f64::from(routed.n_ports()) * registered;
    }
    setup
}

/// Costs of hopbine's engine for the messages of a lane.
pub(super) struct Costs<'a> {
    pub machine: &'a Machine,
    pub n: f64,
    segment: f64,
    pub call: CallForm,
    pub fold_ns: f64,
    copy_ns: f64,
    is_token: bool,
}

impl<'a> Costs<'a> {
    /// The costs of a lane in a call.
    pub fn of(flow: &dyn Flow, routed: &RoutedPlan, of_call: OfCall<'a>, lane: LaneId) -> Self {
        let (machine, n, segment, call) = of_call;
        let threads = f64::from(routed.n_ports());
        Costs {
            machine,
            n,
            segment,
            call,
            fold_ns: 1.0 / machine.reduce.min(machine.reduce_all / threads),
            copy_ns: 1.0 / machine.copy.min(machine.copy_all / threads),
            is_token: flow.lanes()[lane.index()].space.payload == Payload::Token,
        }
    }

    /// Bytes of each of a step's messages.
    pub fn message(&self, facts: &StepFacts) -> f64 {
        facts.share * self.n / f64::from(facts.n_sends.max(1))
    }

    /// Network messages for each of a step's messages.
    pub fn segments(&self, facts: &StepFacts, work: &StepWork) -> f64 {
        if self.is_token {
            return 1.0;
        }
        let runs = match work.sent.is_apart(self.n) {
            true => f64::from(work.sent.runs) / f64::from(facts.n_sends.max(1)),
            false => 1.0,
        };
        (self.message(facts) / self.segment).max(runs).ceil().max(1.0)
    }

    /// Whether a step's messages wait for a descriptor from their receivers.
    pub fn is_announced(&self, facts: &StepFacts) -> bool {
        !facts.is_intra_node && self.message(facts).min(self.segment) > self.machine.eager
    }

    /// The copies of messages into the slots of a channel, and out of them.
    pub fn eager(&self, facts: &StepFacts) -> Copies {
        let bytes = self.message(facts);
        match facts.is_intra_node || self.is_announced(facts) || bytes <= TINY_BYTES {
            true => Copies::default(),
            false => Copies { share: facts.share, pieces: facts.n_sends },
        }
    }

    pub fn copy_time(&self, copies: Copies) -> f64 {
        copies.share * self.n * self.copy_ns + f64::from(copies.pieces) * self.machine.block_ns
    }

    /// An operation that copies the data of a step's messages.
    fn copy_of(&self, step: usize, facts: &StepFacts, is_sent: bool, copies: Copies) -> Op {
        let each_ns = self.copy_time(copies) / f64::from(facts.n_sends.max(1));
        Op::Handle { step, is_sent, each_ns, category: TimeCategory::Copy }
    }

    /// Posts a step's messages. Each is packed before; segments after the first are packed while others are sent.
    fn put(&self, step: usize, facts: &StepFacts, work: &StepWork, ops: &mut Vec<Op>) {
        let machine = self.machine;
        let ns = self.first_contact_ns(facts, work.new_peers);
        if ns > 0.0 {
            ops.push(Op::Spend { ns, category: TimeCategory::Setup });
        }
        let segments = self.segments(facts, work);
        let (packed, of_first) = (work.sent.copies(self.n), 1.0 / segments);
        let is_packed = packed.share > 0.0;
        if is_packed {
            ops.push(self.copy_of(
                step,
                facts,
                true,
                Copies { share: packed.share * of_first, ..packed },
            ));
        }
        let eager = self.eager(facts);
        if eager.share > 0.0 {
            ops.push(self.copy_of(step, facts, true, eager));
        }
        let (post, poll) = (machine.post_ns, machine.poll_ns);
        let is_announced = self.is_announced(facts);
        if is_announced && step == 0 {
            ops.push(Op::Ready { step, post_ns: post, poll_ns: poll });
        }
        let (post_ns, gap_ns) = self.post(step, facts);
        ops.push(Op::Put {
            step,
            from: 0.0,
            to: 1.0,
            puts: segments as f32,
            post_ns,
            gap_ns,
            n_sharing: 1.0,
        });
        if is_packed && segments > 1.0 {
            let share = packed.share * (1.0 - of_first);
            ops.push(self.copy_of(step, facts, true, Copies { share, pieces: 0 }));
        }
    }

    /// Time to contact `peers` new peers, ns: a request and an answer, and a channel for each.
    pub fn first_contact_ns(&self, facts: &StepFacts, peers: u32) -> f64 {
        let machine = self.machine;
        if self.call == CallForm::Repeated || peers == 0 || facts.is_intra_node {
            return 0.0;
        }
        2.0 * (machine.latency_ns + machine.poll_ns) + f64::from(peers) * machine.peer_ns
    }

    /// Time of a thread to post a message, and least time of its interface for a message, ns.
    pub fn post(&self, step: usize, facts: &StepFacts) -> (f64, f64) {
        let machine = self.machine;
        let seen = if self.is_announced(facts) && step > 0 { machine.poll_ns } else { 0.0 };
        match facts.is_intra_node {
            true => (machine.shm_overhead_ns, 0.0),
            false => (machine.post_ns + seen, machine.gap_ns),
        }
    }

    /// Time of a thread to poll for a message, with the post of its descriptor, ns.
    pub fn poll_ns(&self, step: usize, facts: &StepFacts) -> f64 {
        let machine = self.machine;
        match facts.is_intra_node {
            true => machine.shm_overhead_ns,
            false if self.is_announced(facts) && step > 0 => machine.poll_ns + machine.post_ns,
            false => machine.poll_ns,
        }
    }

    /// Receives a step's messages, and combines or unpacks the parts that have arrived while the rest arrives.
    fn receive(&self, step: usize, facts: &StepFacts, work: &StepWork, ops: &mut Vec<Op>) {
        let segments = self.segments(facts, work);
        let poll_ns = self.poll_ns(step, facts);
        let is_folded = facts.action == Action::Reduce && !self.is_token;
        let unpacked = work.received.copies(self.n);
        let is_unpacked = !is_folded && unpacked.share > 0.0;
        let mut done = 0.0;
        for pieces in parts(segments as u64, MOST_PARTS).into_iter().map(|pieces| pieces as f64) {
            done += pieces;
            let (to, share) = ((done / segments) as f32, (pieces / segments) as f32);
            ops.push(Op::Receive { step, to, poll_ns: poll_ns * pieces });
            if is_unpacked {
                let pieces = if to == 1.0 { unpacked.pieces } else { 0 };
                let share = unpacked.share * f64::from(share);
                ops.push(self.copy_of(step, facts, false, Copies { share, pieces }));
            } else if is_folded {
                let bytes = f64::from(share) * facts.share * self.n;
                let start_ns = self.machine.reduce_start_ns(bytes, pieces);
                ops.push(Op::Fold { step, share, ns_per_byte: self.fold_ns, start_ns });
            }
        }
        let eager = self.eager(facts);
        if !is_folded && !is_unpacked && eager.share > 0.0 {
            ops.push(self.copy_of(step, facts, false, eager));
        }
    }

    /// Whole vectors, which ranks forward piece by piece.
    fn whole(
        &self,
        facts: &[StepFacts],
        work: &LaneWork,
        all: &mut Vec<Vec<Vec<Op>>>,
        ops: &mut Vec<Op>,
    ) {
        let (Some(first), Some(of_first)) = (facts.first(), work.steps.first()) else { return };
        if self.is_announced(first) {
            let (post_ns, poll_ns) = (self.machine.post_ns, self.machine.poll_ns);
            ops.push(Op::Ready { step: 0, post_ns, poll_ns });
        }
        let segments = self.segments(first, of_first);
        let mut done = 0.0;
        let piece = |segments_of: u64| {
            let (from, puts) = ((done / segments) as f32, segments_of as f64);
            done += puts;
            let to = (done / segments) as f32;
            let of_step = |(step, facts): (usize, &StepFacts)| {
                self.forward_piece(step, facts, [from, to], puts)
            };
            facts.iter().enumerate().flat_map(of_step).collect::<Vec<Op>>()
        };
        let pieces = parts(segments as u64, MOST_PARTS).into_iter().map(piece).collect();
        ops.push(Op::Pieces { number: all.len() });
        all.push(pieces);
        self.close(facts, work, ops);
    }

    /// A piece of some segments in a step: one is sent, and the one that arrives is combined or stored.
    fn forward_piece(
        &self,
        step: usize,
        facts: &StepFacts,
        [from, to]: [f32; 2],
        puts: f64,
    ) -> Vec<Op> {
        let (post_ns, gap_ns) = self.post(step, facts);
        let share = to - from;
        let eager = self.eager(facts);
        let copy = |is_sent: bool| {
            let copies = Copies { share: eager.share * f64::from(share), ..eager };
            (eager.share > 0.0).then(|| self.copy_of(step, facts, is_sent, copies))
        };
        let is_folded = facts.action == Action::Reduce;
        let received = if is_folded {
            let start_ns =
                self.machine.reduce_start_ns(f64::from(share) * self.message(facts), puts);
            Some(Op::Fold { step, share, ns_per_byte: self.fold_ns, start_ns })
        } else {
            copy(false)
        };
        let put = Op::Put { step, from, to, puts: puts as f32, post_ns, gap_ns, n_sharing: 1.0 };
        let receive = Op::Receive { step, to, poll_ns: puts * self.poll_ns(step, facts) };
        copy(true).into_iter().chain([put, receive]).chain(received).collect()
    }

    /// Steps in order: each is posted as soon as its data are there and the window has room.
    fn lane(&self, facts: &[StepFacts], work: &LaneWork, window: usize, ops: &mut Vec<Op>) {
        let mut n_received = 0;
        let receive_up_to = |end: usize, n_received: &mut usize, ops: &mut Vec<Op>| {
            let steps = facts.iter().zip(&work.steps).enumerate();
            for (step, (of_step, work)) in steps.take(end).skip(*n_received) {
                self.receive(step, of_step, work, ops);
            }
            *n_received = end.max(*n_received);
        };
        for (step, of_step) in facts.iter().enumerate() {
            let carried = match of_step.depends_on {
                DependsOn::Nothing => 0,
                DependsOn::Step(before) => before.index() + 1,
            };
            let held = (step + 1).saturating_sub(window);
            receive_up_to(carried.max(held), &mut n_received, ops);
            self.put(step, of_step, &work.steps[step], ops);
        }
        receive_up_to(facts.len(), &mut n_received, ops);
        self.close(facts, work, ops);
    }

    /// Waits until the last message has left, and copies data that are not at the user's place.
    fn close(&self, facts: &[StepFacts], work: &LaneWork, ops: &mut Vec<Op>) {
        if let Some(last) = facts.len().checked_sub(1) {
            ops.push(Op::Sent { step: last, to: 1.0, ack_ns: self.machine.ack_ns });
        }
        let closing = work.closing.copies(self.n);
        if closing.share > 0.0 {
            ops.push(Op::Spend { ns: self.copy_time(closing), category: TimeCategory::Copy });
        }
    }
}
