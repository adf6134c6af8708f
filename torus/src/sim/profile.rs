//! What software does in a call: scripts of the ports of a rank.

use std::iter;

use super::machine::Machine;
use super::mpi;
use super::outcome::Part;
use super::paper::{self, PaperCall};
use super::score::{Score, StepFacts};
use super::script::{NotModelled, Op, Script, Threads, parts};
use crate::collectives::{Action, Payload};
use crate::names::LaneId;
use crate::plan::{DependsOn, Flow, Schedule};

/// Whose software performs a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Our engine, in a call like one before: nothing is registered or exchanged, each port has a thread
    /// of its own, and what has arrived is combined while the next segment comes.
    Hopbine {
        /// The longest message, bytes.
        segment_bytes: u64,
    },
    /// The code that the Bine paper was measured with.
    Paper(PaperCall),
    /// The same schedules over MPI, messages one after the other.
    Mpi,
}

/// The most parts of a message that are followed one by one; of more, several go together.
const MOST_PARTS: u64 = 24;

impl Profile {
    /// What each port does in a call of `n` bytes.
    ///
    /// # Errors
    /// [`NotModelled`] for what the software has no counterpart of.
    pub fn script(
        self,
        schedule: &Schedule,
        flow: &dyn Flow,
        score: &Score,
        machine: &Machine,
        n: f64,
    ) -> Result<Script, NotModelled> {
        let segment_bytes = match self {
            Profile::Hopbine { segment_bytes } => segment_bytes,
            Profile::Paper(call) => {
                return paper::script(call, schedule, flow, score, machine, n);
            }
            Profile::Mpi => return mpi::script(schedule, flow, score, machine, n),
        };
        let n_lanes = score.facts().len();
        let lanes = LaneId::first(n_lanes).map(|lane| {
            let facts = &score.facts()[lane.index()];
            let header = &flow.lanes()[lane.index()];
            let threads = f64::from(score.n_ports());
            let costs = Costs {
                machine,
                n,
                segment: segment_bytes as f64,
                fold_ns: 1.0 / machine.reduce.min(machine.reduce_all / threads),
                is_token: header.space.payload == Payload::Token,
            };
            let wake = machine.wake_ns * f64::from(header.port.0);
            let start = Op::Spend { ns: wake, part: Part::Threads };
            let window = header.window.map_or(usize::MAX, |window| window.get() as usize);
            iter::once(start).chain(lane_ops(&costs, facts, window)).collect()
        });
        Ok(Script {
            setup: vec![(Part::Setup, machine.call_ns)],
            lanes: lanes.collect(),
            threads: Threads::Each,
        })
    }
}

struct Costs<'a> {
    machine: &'a Machine,
    n: f64,
    segment: f64,
    fold_ns: f64,
    is_token: bool,
}

impl Costs<'_> {
    fn segments(&self, facts: &StepFacts) -> f64 {
        let bytes = facts.share * self.n / f64::from(facts.n_sends.max(1));
        if self.is_token { 1.0 } else { (bytes / self.segment).ceil().max(1.0) }
    }

    /// Posts a step's messages.
    fn put(&self, step: usize, facts: &StepFacts) -> Op {
        let puts = self.segments(facts) as f32;
        let Machine { post_ns, gap_ns, .. } = *self.machine;
        Op::Put { step, from: 0.0, to: 1.0, puts, post_ns, gap_ns, abreast: 1.0 }
    }

    /// Receives a step's messages, and combines what has arrived while the rest comes.
    fn receive(&self, step: usize, facts: &StepFacts) -> Vec<Op> {
        let segments = self.segments(facts);
        let poll_ns = self.machine.poll_ns;
        if facts.action == Action::Copy || self.is_token {
            return vec![Op::Receive { step, to: 1.0, poll_ns: poll_ns * segments }];
        }
        let mut done = 0;
        let part = |pieces: u64| {
            done += pieces;
            let pieces = pieces as f64;
            let (to, share) = ((done as f64 / segments) as f32, (pieces / segments) as f32);
            let receive = Op::Receive { step, to, poll_ns: poll_ns * pieces };
            let bytes = f64::from(share) * facts.share * self.n;
            let fold = Op::Fold {
                step,
                share,
                ns_per_byte: self.fold_ns,
                start_ns: self.machine.reduce_start_ns(bytes, pieces),
            };
            [receive, fold]
        };
        parts(segments as u64, MOST_PARTS).into_iter().flat_map(part).collect()
    }
}

/// Steps in order: each is posted as soon as what it carries is there and the window has room.
fn lane_ops(costs: &Costs<'_>, facts: &[StepFacts], window: usize) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut n_received = 0;
    let receive_up_to = |end: usize, n_received: &mut usize, ops: &mut Vec<Op>| {
        for (step, of_step) in facts.iter().enumerate().take(end).skip(*n_received) {
            ops.extend(costs.receive(step, of_step));
        }
        *n_received = end.max(*n_received);
    };
    for (step, of_step) in facts.iter().enumerate() {
        let carried = match of_step.after {
            DependsOn::Nothing => 0,
            DependsOn::Step(before) => before.index() + 1,
        };
        let held = (step + 1).saturating_sub(window);
        receive_up_to(carried.max(held), &mut n_received, &mut ops);
        ops.push(costs.put(step, of_step));
    }
    receive_up_to(facts.len(), &mut n_received, &mut ops);
    ops.extend(facts.len().checked_sub(1).map(|step| Op::Sent {
        step,
        to: 1.0,
        ack_ns: costs.machine.ack_ns,
    }));
    ops
}
