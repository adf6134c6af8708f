//! The state of ports, messages and locks while scripts are played.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::sim::outcome::{Span, SpanKind, TimeBreakdown};
use crate::sim::rates::MaxMin;
use crate::sim::routed::{ResourceId, RoutedPlan, RoutedStep, Transit};
use crate::sim::script::{Op, Script, Threads};
use crate::sim::speeds::Speeds;

/// Times that differ by less than this count as equal, ns.
pub const EPSILON: f64 = 1e-6;
/// If ranks are followed one by one, messages that end within this part of their time end together. Otherwise, with
/// ranks that have drifted apart, all rates would be computed for each message.
pub const TOGETHER: f64 = 1.0 / 256.0;

/// A message of the network in flight, or waiting for its interface.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    pub lane: u32,
    pub step: u32,
    pub message: u32,
    /// The end of the posted part, as a multiple of the message, and the length of that part.
    pub to: f32,
    pub part: f32,
    /// Bytes of the whole message, and bytes that were done when it got its rate.
    pub bytes: f64,
    pub done: f64,
    /// Bytes per ns.
    pub rate: f64,
    /// The number of the next mark of the step.
    pub mark: u32,
}

/// The messages of a step while a script is played.
#[derive(Debug, Default)]
pub struct StepState {
    /// The marks: ends of parts of the messages for which threads wait.
    pub marks: Vec<f32>,
    /// By message and mark, when the message left up to the mark; by message, when its first part left.
    pub left: Vec<f64>,
    pub began: Vec<f64>,
    /// By agent, when it became ready to receive.
    pub ready: Vec<f64>,
}

impl StepState {
    /// The index of a message and a mark in `left`.
    pub fn index(&self, message: u32, mark: u32) -> usize {
        message as usize * self.marks.len() + mark as usize
    }

    /// The number of a mark.
    pub fn mark(&self, at: f32) -> u32 {
        self.marks.iter().position(|&mark| mark == at).expect("a mark of the step") as u32
    }

    /// When the first of the step's messages began to leave.
    pub fn min_began(&self) -> f64 {
        self.began.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// The event that a thread waits for, if its time is not known yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Blocked {
    No,
    Arrivals {
        step: u32,
        mark: u32,
    },
    Sent {
        step: u32,
        mark: u32,
    },
    Ready {
        step: u32,
    },
    Join,
    /// The first of several messages, for pieces that pass through.
    Pieces,
    Done,
}

/// A port of a rank, driven by a thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// When the thread is done with its operations so far, ns.
    pub at: f64,
    /// The index of its next operation.
    pub next: usize,
    /// Whether the processor has posted the first message of a put.
    pub has_posted: bool,
    pub blocked: Blocked,
    pub breakdown: TimeBreakdown,
    /// The pieces that pass through, if the thread is at them.
    pub forwarding: Option<Forwarding>,
}

/// Pieces that pass through a rank.
#[derive(Clone, Debug)]
pub struct Forwarding {
    /// By piece, the index of its next operation.
    pub next: Vec<u32>,
    /// The piece whose operation has begun.
    pub at: Option<usize>,
}

/// A time that orders events.
#[derive(Clone, Copy, PartialEq)]
pub struct Time(pub f64);

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The state of a simulation.
pub struct Player<'a> {
    pub routed: &'a RoutedPlan,
    pub script: &'a Script,
    pub speeds: &'a Speeds,
    pub n: f64,
    pub threads: Vec<Thread>,
    /// Threads that can continue, by time and number.
    pub due: BinaryHeap<Reverse<(Time, u32)>>,
    /// The state of messages, by lane and step.
    pub steps: Vec<Vec<StepState>>,
    /// By agent and port, messages that wait for the interface; the first is in flight.
    pub queues: Vec<VecDeque<InFlight>>,
    /// Queues with a message in flight.
    pub active: Vec<u32>,
    pub rates: MaxMin,
    /// By resource, the number of messages in flight that cross it.
    pub users: Vec<u32>,
    /// The rates of active flows, while they are computed.
    pub shared: Vec<f64>,
    /// The current time, ns.
    pub since: f64,
    /// The time since which flows have progressed at their rates, ns.
    pub rated: f64,
    /// The time at which the next flow reaches its mark, ns.
    pub next_mark: f64,
    /// Whether flows have begun or ended since rates were computed.
    pub is_stale: bool,
    /// See [`TOGETHER`].
    pub together: f64,
    /// By agent and lock, the time until which it is held, ns.
    pub locks: Vec<f64>,
    pub n_locks: usize,
    pub spans: Option<Vec<Span>>,
}

impl<'a> Player<'a> {
    pub fn new(
        routed: &'a RoutedPlan,
        script: &'a Script,
        speeds: &'a Speeds,
        n: f64,
        with_spans: bool,
    ) -> Self {
        let n_lanes = routed.lanes.len();
        let agents = routed.n_agents as usize;
        let capacity = routed.capacity(speeds);
        let mut breakdown = TimeBreakdown::default();
        script.setup.iter().for_each(|&(category, ns)| breakdown.add(category, ns));
        let start = breakdown.total();
        let (blocked, forwarding) = (Blocked::No, None);
        let thread =
            Thread { at: start, next: 0, has_posted: false, blocked, breakdown, forwarding };
        let lock = |op: &Op| match op {
            Op::Serial { lock, .. } => lock + 1,
            _ => 0,
        };
        let n_locks = script.lanes.iter().flatten().map(lock).max().unwrap_or(0);
        let steps = routed.lanes.iter().zip(&script.lanes).map(|(lane, ops)| {
            let mut states: Vec<StepState> =
                lane.steps.iter().map(|_| StepState::default()).collect();
            let pieces = ops.iter().filter_map(|op| match *op {
                Op::Pieces { number } => Some(script.pieces[number].iter().flatten()),
                _ => None,
            });
            for op in ops.iter().chain(pieces.flatten()) {
                match *op {
                    Op::Receive { step, to, .. } | Op::Sent { step, to, .. } => {
                        states[step].marks.push(to);
                    }
                    Op::Ready { step, .. } if states[step].ready.is_empty() => {
                        states[step].ready = vec![f64::INFINITY; agents];
                    }
                    _ => {}
                }
            }
            for (state, step) in states.iter_mut().zip(&lane.steps) {
                state.marks.push(1.0);
                state.marks.sort_by(f32::total_cmp);
                state.marks.dedup();
                state.left = vec![f64::INFINITY; state.marks.len() * step.messages.len()];
                state.began = vec![f64::INFINITY; step.messages.len()];
            }
            states
        });
        // A single thread begins with the first port.
        let apart = if script.threads == Threads::One { n_lanes.max(1) } else { 1 };
        let first = (0..agents * n_lanes).step_by(apart);
        Player {
            routed,
            script,
            speeds,
            n,
            steps: steps.collect(),
            due: first.map(|id| Reverse((Time(start), id as u32))).collect(),
            threads: vec![thread; agents * n_lanes],
            queues: vec![VecDeque::new(); agents * routed.n_ports as usize],
            active: Vec::new(),
            rates: MaxMin::new(capacity),
            users: vec![0; routed.n_resources],
            shared: Vec::new(),
            since: start,
            rated: start,
            next_mark: f64::INFINITY,
            is_stale: false,
            together: if agents > 1 { TOGETHER } else { 0.0 },
            locks: vec![0.0; agents * n_locks],
            n_locks,
            spans: with_spans.then(|| setup_spans(script, agents * n_lanes, n_lanes)),
        }
    }

    /// The time at which a thread continues.
    pub fn due_time(&self, id: u32) -> f64 {
        self.threads[id as usize].at.max(self.since)
    }

    /// The rank of a thread, and a step of its lane: the messages and their state.
    pub fn of_lane(&self, id: u32, step: u32) -> (u32, &'a RoutedStep, &StepState) {
        let n_lanes = self.routed.lanes.len() as u32;
        let (agent, lane) = (id / n_lanes, (id % n_lanes) as usize);
        (agent, &self.routed.lanes[lane].steps[step as usize], &self.steps[lane][step as usize])
    }
}

/// The spans of every thread before it starts.
fn setup_spans(script: &Script, n_threads: usize, n_lanes: usize) -> Vec<Span> {
    let of_thread = |id: usize| {
        let (rank, lane) = ((id / n_lanes) as u32, (id % n_lanes) as u32);
        let spent = script.setup.iter().filter(|(_, ns)| *ns > 0.0);
        spent.scan(0.0, move |at, &(category, ns)| {
            let (start_ns, end_ns) = (*at, *at + ns);
            *at = end_ns;
            Some(Span { rank, lane, step: None, kind: SpanKind::Busy(category), start_ns, end_ns })
        })
    };
    (0..n_threads).flat_map(of_thread).collect()
}

impl Transit {
    pub fn path_in<'s>(&self, routed: &'s RoutedPlan) -> &'s [(ResourceId, f32)] {
        &routed.paths[self.path.start as usize..self.path.end as usize]
    }
}

pub fn message<'s>(routed: &'s RoutedPlan, flow: &InFlight) -> &'s Transit {
    &routed.lanes[flow.lane as usize].steps[flow.step as usize].messages[flow.message as usize]
}

/// Time of a flow to its next mark, or to its end, at its rate, with which it has progressed for `ns`.
pub fn time_to_mark(flow: &InFlight, steps: &[Vec<StepState>], ns: f64) -> f64 {
    let state = &steps[flow.lane as usize][flow.step as usize];
    let to = state.marks[flow.mark as usize].min(flow.to);
    let left = flow.bytes * f64::from(to) - flow.done - flow.rate * ns;
    // Rounding must not leave a part of a byte.
    if left <= flow.bytes * 1e-9 { 0.0 } else { left / flow.rate }
}
