//! What is known of ports, messages and locks while scripts are played.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::sim::outcome::{Parts, Span, SpanKind};
use crate::sim::rates::MaxMin;
use crate::sim::score::{ResourceId, Score, StepScore, Transit};
use crate::sim::script::{Op, Script, Threads};
use crate::sim::speeds::Speeds;

/// Times nearer than this are one, ns.
pub const EPSILON: f64 = 1e-6;
/// Where ranks are followed one by one, messages that are done within this part of their time are done
/// together: ranks that have drifted apart would otherwise have the rates of all found for each message.
pub const TOGETHER: f64 = 1.0 / 256.0;

/// A message of the network under way, or waiting for its interface.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    pub lane: u32,
    pub step: u32,
    pub message: u32,
    /// The part of the message after which it is done, and how much of it that is.
    pub to: f32,
    pub part: f32,
    /// Bytes for the whole message, and of them what was done when it got its rate.
    pub bytes: f64,
    pub done: f64,
    /// Bytes per ns.
    pub rate: f64,
    /// The next mark of the step.
    pub mark: u32,
}

/// The messages of a step while a script is played.
#[derive(Debug, Default)]
pub struct StepState {
    /// Up to which parts of its messages somebody waits.
    pub marks: Vec<f32>,
    /// By message and mark, when it left; by message, when its first part did.
    pub left: Vec<f64>,
    pub began: Vec<f64>,
    /// By agent, when it was ready to receive.
    pub ready: Vec<f64>,
}

impl StepState {
    /// Where in `left` a message and a mark are.
    pub fn index(&self, message: u32, mark: u32) -> usize {
        message as usize * self.marks.len() + mark as usize
    }

    /// The number of a mark.
    pub fn mark(&self, at: f32) -> u32 {
        self.marks.iter().position(|&mark| mark == at).expect("a mark of the step") as u32
    }

    /// When the first of its messages began to leave.
    pub fn min_began(&self) -> f64 {
        self.began.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// What a thread waits for, at a time that is not known yet.
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

/// A port of a rank.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Until when it has done what it did, ns.
    pub at: f64,
    /// The number of its next operation.
    pub next: usize,
    /// The processor has posted the first message of a put.
    pub has_posted: bool,
    pub blocked: Blocked,
    pub parts: Parts,
    /// Of the pieces that pass through, if it is at them.
    pub passing: Option<Passing>,
}

/// Pieces that pass through a rank.
#[derive(Clone, Debug)]
pub struct Passing {
    /// By piece, its next operation.
    pub next: Vec<u32>,
    /// The piece whose operation has begun.
    pub at: Option<usize>,
}

/// A time in the order of events.
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

/// All of it.
pub struct Player<'a> {
    pub score: &'a Score,
    pub script: &'a Script,
    pub speeds: &'a Speeds,
    pub n: f64,
    pub threads: Vec<Thread>,
    /// Threads that can go on, by time and number.
    pub due: BinaryHeap<Reverse<(Time, u32)>>,
    /// By lane and step.
    pub steps: Vec<Vec<StepState>>,
    /// By agent and port: messages that wait for the interface; the first is under way.
    pub queues: Vec<VecDeque<InFlight>>,
    /// Queues with messages under way.
    pub active: Vec<u32>,
    pub rates: MaxMin,
    /// By resource, how many messages under way cross it.
    pub users: Vec<u32>,
    /// The rates of active flows, while they are found.
    pub shared: Vec<f64>,
    /// The time.
    pub since: f64,
    /// Since when flows go at their rates.
    pub rated: f64,
    /// When the next flow comes to its mark.
    pub next_mark: f64,
    /// Flows have come or gone since rates were found.
    pub is_stale: bool,
    /// See [`TOGETHER`].
    pub together: f64,
    /// By agent and lock, until when it is held.
    pub locks: Vec<f64>,
    pub n_locks: usize,
    pub spans: Option<Vec<Span>>,
}

impl<'a> Player<'a> {
    pub fn new(
        score: &'a Score,
        script: &'a Script,
        speeds: &'a Speeds,
        n: f64,
        with_spans: bool,
    ) -> Self {
        let n_lanes = score.lanes.len();
        let agents = score.n_agents as usize;
        let mut capacity = vec![speeds.link; score.n_resources];
        capacity[score.first_in..].fill(speeds.interface);
        capacity[score.first_memory..score.first_out].fill(speeds.copy_all);
        score.slow.iter().for_each(|&(resource, speed)| capacity[resource as usize] *= speed);
        let mut parts = Parts::default();
        script.setup.iter().for_each(|&(part, ns)| parts.add(part, ns));
        let start = parts.total();
        let (blocked, passing) = (Blocked::No, None);
        let thread = Thread { at: start, next: 0, has_posted: false, blocked, parts, passing };
        let lock = |op: &Op| match op {
            Op::Serial { lock, .. } => lock + 1,
            _ => 0,
        };
        let n_locks = script.lanes.iter().flatten().map(lock).max().unwrap_or(0);
        let steps = score.lanes.iter().zip(&script.lanes).map(|(lane, ops)| {
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
        // One thread begins with the first port.
        let apart = if script.threads == Threads::One { n_lanes.max(1) } else { 1 };
        let first = (0..agents * n_lanes).step_by(apart);
        Player {
            score,
            script,
            speeds,
            n,
            steps: steps.collect(),
            due: first.map(|id| Reverse((Time(start), id as u32))).collect(),
            threads: vec![thread; agents * n_lanes],
            queues: vec![VecDeque::new(); agents * score.n_ports as usize],
            active: Vec::new(),
            rates: MaxMin::new(capacity),
            users: vec![0; score.n_resources],
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

    /// The time at which a thread goes on.
    pub fn due_time(&self, id: u32) -> f64 {
        self.threads[id as usize].at.max(self.since)
    }

    /// A thread's rank, the messages of a step of its lane, and what is known of them.
    pub fn of_lane(&self, id: u32, step: u32) -> (u32, &'a StepScore, &StepState) {
        let n_lanes = self.score.lanes.len() as u32;
        let (agent, lane) = (id / n_lanes, (id % n_lanes) as usize);
        (agent, &self.score.lanes[lane].steps[step as usize], &self.steps[lane][step as usize])
    }
}

/// What every thread waits for before it starts.
fn setup_spans(script: &Script, n_threads: usize, n_lanes: usize) -> Vec<Span> {
    let of_thread = |id: usize| {
        let (rank, lane) = ((id / n_lanes) as u32, (id % n_lanes) as u32);
        let spent = script.setup.iter().filter(|(_, ns)| *ns > 0.0);
        spent.scan(0.0, move |at, &(part, ns)| {
            let (start_ns, end_ns) = (*at, *at + ns);
            *at = end_ns;
            Some(Span { rank, lane, step: None, kind: SpanKind::Busy(part), start_ns, end_ns })
        })
    };
    (0..n_threads).flat_map(of_thread).collect()
}

impl Transit {
    pub fn path_in<'s>(&self, score: &'s Score) -> &'s [(ResourceId, f32)] {
        &score.paths[self.path.start as usize..self.path.end as usize]
    }
}

pub fn message<'s>(score: &'s Score, flow: &InFlight) -> &'s Transit {
    &score.lanes[flow.lane as usize].steps[flow.step as usize].messages[flow.message as usize]
}

/// How long a flow takes to its next mark, or to its end, at its rate, at which it has gone for `ns`.
pub fn time_to_mark(flow: &InFlight, steps: &[Vec<StepState>], ns: f64) -> f64 {
    let state = &steps[flow.lane as usize][flow.step as usize];
    let to = state.marks[flow.mark as usize].min(flow.to);
    let left = flow.bytes * f64::from(to) - flow.done - flow.rate * ns;
    // Rounding must not leave a part of a byte.
    if left <= flow.bytes * 1e-9 { 0.0 } else { left / flow.rate }
}
