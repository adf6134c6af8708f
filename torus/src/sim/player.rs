//! Scripts on a score, event by event.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::outcome::{Outcome, Part, Parts, Span, SpanKind};
use super::rates::MaxMin;
use super::score::{ResourceId, Score, StepScore, Transit};
use super::script::{Op, Script};

/// Times nearer than this are one, ns.
const EPSILON: f64 = 1e-6;
/// Where ranks are followed one by one, messages that are done within this part of their time are done
/// together: ranks that have drifted apart would otherwise have the rates of all found for each message.
const TOGETHER: f64 = 1.0 / 256.0;

/// What messages meet on their way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// Of a link in one direction, bytes per ns.
    pub link: f64,
    /// Of an interface in one direction, bytes per ns.
    pub interface: f64,
    /// A message without bytes to a neighbour, ns.
    pub latency_ns: f64,
    /// Each further cable, ns.
    pub hop_ns: f64,
    /// Each further link on a board, ns.
    pub board_hop_ns: f64,
}

impl Speeds {
    /// From when a message leaves until it is there, whatever its length.
    fn latency(&self, hops: [u16; 2]) -> f64 {
        let [cables, boards] = hops.map(f64::from);
        // The first link, a cable if there is one, is part of the latency.
        let further =
            if cables > 0.0 { [cables - 1.0, boards] } else { [0.0, (boards - 1.0).max(0.0)] };
        self.latency_ns + further[0] * self.hop_ns + further[1] * self.board_hop_ns
    }
}

/// Performs a script on all agents of a score, `n` bytes in all.
///
/// # Panics
/// If the script does not end: it waits for what nobody sends.
pub fn play(score: &Score, script: &Script, speeds: &Speeds, n: f64, with_spans: bool) -> Outcome {
    Player::new(score, script, speeds, n, with_spans).run()
}

/// A message of the network under way, or waiting for its interface.
#[derive(Clone, Copy, Debug)]
struct Flow {
    lane: u32,
    step: u32,
    message: u32,
    /// The part of the message after which it is done.
    to: f32,
    /// Bytes for the whole message, and of them what is done.
    bytes: f64,
    done: f64,
    /// Bytes per ns.
    rate: f64,
    /// The next mark of the step.
    mark: u32,
}

/// The messages of a step while a script is played.
#[derive(Debug, Default)]
struct StepState {
    /// Up to which parts of its messages somebody waits.
    marks: Vec<f32>,
    /// By message and mark, when it left; by message, when its first part did.
    left: Vec<f64>,
    began: Vec<f64>,
    /// By agent, when it was ready to receive.
    ready: Vec<f64>,
}

impl StepState {
    /// When the first of its messages began to leave.
    fn min_began(&self) -> f64 {
        self.began.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Blocked {
    No,
    Arrivals { step: u32, mark: u32 },
    Sent { step: u32 },
    Ready { step: u32 },
    Join,
    Done,
}

/// A port of a rank.
#[derive(Clone, Debug)]
struct Thread {
    at: f64,
    next: usize,
    /// The processor has posted the first message of a put.
    has_posted: bool,
    blocked: Blocked,
    parts: Parts,
}

/// A time in the order of events.
#[derive(Clone, Copy, PartialEq)]
struct Time(f64);

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

struct Player<'a> {
    score: &'a Score,
    script: &'a Script,
    speeds: &'a Speeds,
    n: f64,
    threads: Vec<Thread>,
    /// Threads that can go on, by time and number.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// By lane and step.
    steps: Vec<Vec<StepState>>,
    /// By agent and port: messages that wait for the interface; the first is under way.
    queues: Vec<VecDeque<Flow>>,
    /// Queues with messages under way.
    active: Vec<u32>,
    rates: MaxMin,
    /// The rates of active flows, while they are found.
    shared: Vec<f64>,
    /// Since when flows go at their rates.
    since: f64,
    /// When the next flow comes to its mark.
    next_mark: f64,
    is_stale: bool,
    /// See [`TOGETHER`].
    together: f64,
    /// By agent and lock, until when it is held.
    locks: Vec<f64>,
    n_locks: usize,
    spans: Option<Vec<Span>>,
}

impl<'a> Player<'a> {
    fn new(
        score: &'a Score,
        script: &'a Script,
        speeds: &'a Speeds,
        n: f64,
        with_spans: bool,
    ) -> Self {
        let n_lanes = score.lanes.len();
        let agents = score.n_agents as usize;
        let first_port = score.n_resources - agents * score.n_ports as usize;
        let mut capacity = vec![speeds.link; score.n_resources];
        capacity[first_port..].fill(speeds.interface);
        let mut parts = Parts::default();
        script.setup.iter().for_each(|&(part, ns)| parts.add(part, ns));
        let start = parts.total();
        let thread = Thread { at: start, next: 0, has_posted: false, blocked: Blocked::No, parts };
        let lock = |op: &Op| match op {
            Op::Serial { lock, .. } => lock + 1,
            _ => 0,
        };
        let n_locks = script.lanes.iter().flatten().map(lock).max().unwrap_or(0);
        let steps = score.lanes.iter().zip(&script.lanes).map(|(lane, ops)| {
            let mut states: Vec<StepState> =
                lane.steps.iter().map(|_| StepState::default()).collect();
            for op in ops {
                match *op {
                    Op::Receive { step, to, .. } => states[step].marks.push(to),
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
        Player {
            score,
            script,
            speeds,
            n,
            steps: steps.collect(),
            due: (0..(agents * n_lanes) as u32).map(|id| Reverse((Time(start), id))).collect(),
            threads: vec![thread; agents * n_lanes],
            queues: vec![VecDeque::new(); agents * score.n_ports as usize],
            active: Vec::new(),
            rates: MaxMin::new(capacity),
            shared: Vec::new(),
            since: start,
            next_mark: f64::INFINITY,
            is_stale: false,
            together: if agents > 1 { TOGETHER } else { 0.0 },
            locks: vec![0.0; agents * n_locks],
            n_locks,
            spans: with_spans.then(Vec::new),
        }
    }

    fn run(mut self) -> Outcome {
        loop {
            let thread = self.due.peek().map_or(f64::INFINITY, |Reverse((time, _))| time.0);
            if self.is_stale && thread > self.since + EPSILON {
                self.share();
            }
            let now = thread.min(self.next_mark);
            if now == f64::INFINITY && !self.is_stale {
                break;
            }
            if self.next_mark < thread {
                self.pass_marks();
                continue;
            }
            // Flows go on at their rates up to here, before any is added.
            if thread > self.since {
                self.advance(thread);
            }
            let Some(Reverse((_, id))) = self.due.pop() else { continue };
            self.step(id);
        }
        let last = (0..self.threads.len())
            .max_by(|&a, &b| self.threads[a].at.total_cmp(&self.threads[b].at));
        assert!(
            self.threads.iter().all(|thread| thread.blocked == Blocked::Done),
            "a script waits for what nobody sends: {:?}",
            self.threads.iter().find(|thread| thread.blocked != Blocked::Done)
        );
        let (ns, parts) = last.map_or_else(Default::default, |last| {
            (self.threads[last].at, self.threads[last].parts)
        });
        Outcome { ns, parts, spans: self.spans.unwrap_or_default() }
    }

    /// Moves all flows on to a time at their rates.
    fn advance(&mut self, to: f64) {
        let ns = to - self.since;
        for &queue in &self.active {
            let flow = &mut self.queues[queue as usize][0];
            flow.done += flow.rate * ns;
        }
        self.since = to;
    }

    /// Finds the rates of all flows, and when the first comes to its mark.
    fn share(&mut self) {
        self.is_stale = false;
        let (queues, active, score) = (&self.queues, &self.active, self.score);
        let path = |at: usize| {
            let flow = &queues[active[at] as usize][0];
            message(score, flow).path_in(score)
        };
        let mut rates = std::mem::take(&mut self.shared);
        rates.clear();
        rates.resize(active.len(), 0.0);
        self.rates.rates(self.speeds.interface, path, &mut rates);
        let mut next = f64::INFINITY;
        for (&queue, &rate) in self.active.iter().zip(&rates) {
            let flow = &mut self.queues[queue as usize][0];
            flow.rate = rate;
            next = next.min(time_to_mark(flow, &self.steps));
        }
        self.next_mark = self.since + next;
        self.shared = rates;
    }

    /// Lets all flows that come to a mark now pass it.
    fn pass_marks(&mut self) {
        let now = self.next_mark;
        self.advance(now);
        let mut at = 0;
        while at < self.active.len() {
            let queue = self.active[at] as usize;
            let mut has_ended = false;
            while let Some(flow) = self.queues[queue].front().copied() {
                // A flow that has just begun has no rate yet.
                let slack =
                    if flow.rate > 0.0 { self.together * flow.bytes / flow.rate } else { 0.0 };
                if time_to_mark(&flow, &self.steps) > EPSILON + slack {
                    break;
                }
                let state = &mut self.steps[flow.lane as usize][flow.step as usize];
                let mark = state.marks[flow.mark as usize];
                if mark <= flow.to {
                    state.left[flow.message as usize * state.marks.len() + flow.mark as usize] =
                        now;
                    self.queues[queue][0].mark += 1;
                    self.wake(&flow, now);
                }
                if mark >= flow.to {
                    self.end_flow(queue, now);
                    has_ended = true;
                    break;
                }
            }
            if !(has_ended && self.queues[queue].is_empty()) {
                at += 1;
            } else {
                self.active.swap_remove(at);
            }
            self.is_stale |= has_ended;
        }
        let next = self
            .active
            .iter()
            .map(|&queue| time_to_mark(&self.queues[queue as usize][0], &self.steps));
        self.next_mark = now + next.fold(f64::INFINITY, f64::min);
        if self.is_stale {
            self.share();
        }
    }

    /// The interface goes on with its next message.
    fn end_flow(&mut self, queue: usize, now: f64) {
        let ended = self.queues[queue].pop_front().expect("a flow has ended");
        if let Some(spans) = &mut self.spans {
            let state = &self.steps[ended.lane as usize][ended.step as usize];
            let start_ns = state.began[ended.message as usize];
            let rank = message(self.score, &ended).from;
            let (lane, step) = (ended.lane, Some(ended.step));
            spans.push(Span { rank, lane, step, kind: SpanKind::Sends, start_ns, end_ns: now });
        }
        self.begin_flow(queue, now);
    }

    fn begin_flow(&mut self, queue: usize, now: f64) {
        let Some(&Flow { lane, step, message, .. }) = self.queues[queue].front() else { return };
        let began = &mut self.steps[lane as usize][step as usize].began[message as usize];
        *began = began.min(now);
        // Another port may wait for this one's turn.
        if self.script.takes_turns && self.score.n_agents == 1 {
            (0..self.threads.len() as u32).for_each(|id| self.retry(id, step, now));
        }
    }

    /// Wakes who waits for a mark of a message, if it was the last thing that was missing.
    fn wake(&mut self, flow: &Flow, now: f64) {
        let Transit { from, to, .. } = *message(self.score, flow);
        let n_lanes = self.score.lanes.len() as u32;
        for id in [from * n_lanes + flow.lane, to * n_lanes + flow.lane] {
            self.retry(id, flow.step, now);
            if from == to {
                break;
            }
        }
    }

    /// Wakes a thread that waits for something of a step, if it need not any more.
    fn retry(&mut self, id: u32, step: u32, now: f64) {
        let blocked = self.threads[id as usize].blocked;
        let until = match blocked {
            Blocked::Arrivals { step: of, mark } if of == step => self.arrival(id, step, mark),
            Blocked::Sent { step: of } if of == step => self.all_left(id, step),
            Blocked::Ready { step: of } if of == step => self.peers_ready(id, step),
            _ => return,
        };
        if until < f64::INFINITY {
            self.threads[id as usize].blocked = Blocked::No;
            self.due.push(Reverse((Time(until.max(now)), id)));
        }
    }

    fn of_lane(&self, id: u32, step: u32) -> (u32, &'a StepScore, &StepState) {
        let n_lanes = self.score.lanes.len() as u32;
        let (agent, lane) = (id / n_lanes, (id % n_lanes) as usize);
        (agent, &self.score.lanes[lane].steps[step as usize], &self.steps[lane][step as usize])
    }

    /// When all messages to a thread's rank have arrived up to a mark.
    fn arrival(&self, id: u32, step: u32, mark: u32) -> f64 {
        let (agent, score, state) = self.of_lane(id, step);
        let late =
            self.turn(id, step).map_or(0.0, |(state, other)| other.min_began() - state.min_began());
        let arrives = |&message: &u32| {
            let left = state.left[message as usize * state.marks.len() + mark as usize];
            left + late + self.speeds.latency(score.messages[message as usize].hops)
        };
        score.received(agent).iter().map(arrives).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The step of a thread's lane, and that of the lane whose turn it is on the rank that it receives
    /// from, if that is another: see [`Script::takes_turns`].
    fn turn(&self, id: u32, step: u32) -> Option<(&StepState, &StepState)> {
        let n_lanes = self.score.lanes.len() as u32;
        if !self.script.takes_turns || self.score.n_agents > 1 {
            return None;
        }
        let other = (id + step + 1) % n_lanes;
        let other = self.steps[other as usize].get(step as usize)?;
        let own = &self.steps[id as usize][step as usize];
        (!other.began.is_empty() && !own.began.is_empty()).then_some((own, other))
    }

    /// When all messages of a thread's rank have left.
    fn all_left(&self, id: u32, step: u32) -> f64 {
        let (agent, score, state) = self.of_lane(id, step);
        let left = |message: u32| state.left[(message as usize + 1) * state.marks.len() - 1];
        score.sent(agent).map(left).fold(f64::NEG_INFINITY, f64::max)
    }

    /// When a thread's rank has heard of all its receivers that they are ready.
    fn peers_ready(&self, id: u32, step: u32) -> f64 {
        let (agent, score, state) = self.of_lane(id, step);
        let state = self.turn(id, step).map_or(state, |(_, other)| other);
        let heard = |message: u32| {
            let message = &score.messages[message as usize];
            state.ready[message.to as usize] + self.speeds.latency(message.hops)
        };
        score.sent(agent).map(heard).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Performs the next thing of a thread.
    fn step(&mut self, id: u32) {
        let now = self.due_time(id);
        let n_lanes = self.score.lanes.len() as u32;
        let (agent, lane) = (id / n_lanes, id % n_lanes);
        let Some(&op) = self.script.lanes[lane as usize].get(self.threads[id as usize].next) else {
            self.threads[id as usize].blocked = Blocked::Done;
            return;
        };
        let index = agent as usize;
        let steps = |step: usize| &self.score.lanes[lane as usize].steps[step];
        match op {
            Op::Spend { ns, part } => self.spend(id, &[(part, ns)], None),
            Op::Serial { lock, ns, wake_ns, part } => {
                let free = &mut self.locks[index * self.n_locks + lock];
                let wait = (*free - now).max(0.0);
                *free = now + wait + ns;
                let wake = if wait > 0.0 { wake_ns } else { 0.0 };
                self.spend(id, &[(Part::Lock, wait + wake), (part, ns)], None);
            }
            Op::Put { step, from, to, puts, post_ns, gap_ns } => {
                let sent = steps(step).sent(agent);
                let n_posts = f64::from(puts) * sent.len() as f64;
                if !sent.is_empty()
                    && !std::mem::replace(&mut self.threads[id as usize].has_posted, true)
                {
                    return self.spend_time(id, now, &[(Part::Software, post_ns)], Some(step));
                }
                self.threads[id as usize].has_posted = false;
                for message in sent {
                    let cut = (f64::from(puts), gap_ns);
                    self.post(agent, lane, step as u32, message, [from, to], cut);
                }
                self.spend(id, &[(Part::Software, (n_posts - 1.0).max(0.0) * post_ns)], Some(step));
            }
            Op::Receive { step, to, poll_ns } => {
                let n_messages = steps(step).received(agent).len() as f64;
                if n_messages == 0.0 {
                    return self.spend(id, &[], None);
                }
                let marks = &self.steps[lane as usize][step].marks;
                let mark =
                    marks.iter().position(|&mark| mark == to).expect("a mark of the step") as u32;
                let until = self.arrival(id, step as u32, mark);
                if until > now {
                    return self.block(id, Blocked::Arrivals { step: step as u32, mark }, until);
                }
                let waited = self.threads[id as usize].at;
                let [skew, congestion, wire, latency] = self.waited(id, step, mark, waited, now);
                let poll = (Part::Software, n_messages * poll_ns);
                self.spend_since(id, waited, &[skew, congestion, wire, latency, poll], Some(step));
            }
            Op::Sent { step, ack_ns } => {
                if steps(step).sent(agent).is_empty() {
                    return self.spend(id, &[], None);
                }
                let left = self.all_left(id, step as u32);
                if left > now {
                    return self.block(id, Blocked::Sent { step: step as u32 }, left);
                }
                let waited = self.threads[id as usize].at;
                let (wire, ack) =
                    ((left - waited).max(0.0), (left + ack_ns - left.max(waited)).max(0.0));
                self.spend_since(
                    id,
                    waited,
                    &[(Part::Wire, wire), (Part::Software, ack)],
                    Some(step),
                );
            }
            Op::Fold { step, share, ns_per_byte, start_ns } => {
                let received = steps(step).received(agent);
                if received.is_empty() {
                    return self.spend(id, &[], None);
                }
                let share_of = |&message: &u32| steps(step).messages[message as usize].share;
                let bytes = received.iter().map(share_of).sum::<f64>() * self.n * f64::from(share);
                self.spend(id, &[(Part::Fold, bytes * ns_per_byte + start_ns)], Some(step));
            }
            Op::Ready { step, post_ns, poll_ns } => {
                let state = &mut self.steps[lane as usize][step];
                if state.ready[index] == f64::INFINITY {
                    state.ready[index] = now + post_ns;
                    if self.script.takes_turns && self.score.n_agents == 1 {
                        (0..n_lanes)
                            .filter(|&of| of != id)
                            .for_each(|of| self.retry(of, step as u32, now));
                    }
                    for &message in self.score.lanes[lane as usize].steps[step].received(agent) {
                        let from = self.score.lanes[lane as usize].steps[step].messages
                            [message as usize]
                            .from;
                        if from != agent {
                            self.retry(from * n_lanes + lane, step as u32, now);
                        }
                    }
                }
                if steps(step).sent(agent).is_empty() {
                    return self.spend(id, &[], None);
                }
                let until = self.peers_ready(id, step as u32);
                if until > now {
                    return self.block(id, Blocked::Ready { step: step as u32 }, until);
                }
                let waited = self.threads[id as usize].at;
                self.spend_since(
                    id,
                    waited,
                    &[(Part::Latency, now - waited), (Part::Software, poll_ns)],
                    Some(step),
                );
            }
            Op::Join => self.join(id, agent),
        }
    }

    /// The time at which a thread goes on.
    fn due_time(&self, id: u32) -> f64 {
        self.threads[id as usize].at.max(self.since)
    }

    /// A thread waits, until a time if it is known.
    fn block(&mut self, id: u32, blocked: Blocked, until: f64) {
        if until < f64::INFINITY {
            self.due.push(Reverse((Time(until), id)));
        } else {
            self.threads[id as usize].blocked = blocked;
        }
    }

    fn spend(&mut self, id: u32, parts: &[(Part, f64)], step: Option<usize>) {
        let at = self.threads[id as usize].at;
        self.spend_since(id, at, parts, step);
    }

    /// A thread has spent time since `at`, and is done with what it did.
    fn spend_since(&mut self, id: u32, at: f64, parts: &[(Part, f64)], step: Option<usize>) {
        self.threads[id as usize].next += 1;
        self.spend_time(id, at, parts, step);
    }

    /// A thread spends time from `at` on.
    fn spend_time(&mut self, id: u32, at: f64, parts: &[(Part, f64)], step: Option<usize>) {
        let n_lanes = self.score.lanes.len() as u32;
        let thread = &mut self.threads[id as usize];
        let mut end = at;
        for &(part, ns) in parts.iter().filter(|(_, ns)| *ns > 0.0) {
            thread.parts.add(part, ns);
            if let Some(spans) = &mut self.spans {
                let kind = match part {
                    Part::Latency | Part::Wire | Part::Congestion | Part::Lock | Part::Skew => {
                        SpanKind::Waits
                    }
                    _ => SpanKind::Busy(part),
                };
                let (rank, lane, step) = (id / n_lanes, id % n_lanes, step.map(|step| step as u32));
                spans.push(Span { rank, lane, step, kind, start_ns: end, end_ns: end + ns });
            }
            end += ns;
        }
        thread.at = end;
        self.due.push(Reverse((Time(end), id)));
    }

    /// What a wait for messages was spent on: the last of them to arrive tells.
    fn waited(&self, id: u32, step: usize, mark: u32, since: f64, now: f64) -> [(Part, f64); 4] {
        let (agent, score, state) = self.of_lane(id, step as u32);
        let left = |message: u32| state.left[message as usize * state.marks.len() + mark as usize];
        let arrives = |message: u32| {
            left(message) + self.speeds.latency(score.messages[message as usize].hops)
        };
        let last = score
            .received(agent)
            .iter()
            .copied()
            .max_by(|&a, &b| arrives(a).total_cmp(&arrives(b)));
        let last = last.expect("who waits has messages");
        let transit = &score.messages[last as usize];
        let waited = now - since;
        let latency = waited.min(self.speeds.latency(transit.hops));
        let sending =
            (left(last) - state.began[last as usize].max(since)).clamp(0.0, waited - latency);
        let alone = transit.share * self.n * f64::from(state.marks[mark as usize])
            / self.speeds.link.min(self.speeds.interface);
        let wire = sending.min(alone);
        [
            (Part::Skew, waited - latency - sending),
            (Part::Congestion, sending - wire),
            (Part::Wire, wire),
            (Part::Latency, latency),
        ]
    }

    /// Posts a part of a message, cut into so many that follow each other at least so long.
    fn post(
        &mut self,
        agent: u32,
        lane: u32,
        step: u32,
        number: u32,
        [from, to]: [f32; 2],
        (puts, gap_ns): (f64, f64),
    ) {
        let state = &self.steps[lane as usize][step as usize];
        let transit =
            &self.score.lanes[lane as usize].steps[step as usize].messages[number as usize];
        // What takes longer than its bytes has as many bytes as take so long.
        let alone = self.speeds.link.min(self.speeds.interface);
        let part = f64::from(to - from).max(f64::MIN_POSITIVE);
        let bytes = transit.share * self.n;
        let bytes = bytes.max((puts - 1.0) * gap_ns * alone / part + bytes / puts);
        let mark = state.marks.iter().position(|&mark| mark > from).unwrap_or(0) as u32;
        let done = bytes * f64::from(from);
        let port = u32::from(self.score.lanes[lane as usize].port.0);
        let queue = (agent * self.score.n_ports + port) as usize;
        self.queues[queue].push_back(Flow {
            lane,
            step,
            message: number,
            to,
            bytes,
            done,
            rate: 0.0,
            mark,
        });
        if self.queues[queue].len() == 1 {
            self.active.push(queue as u32);
            let now = self.since;
            self.begin_flow(queue, now);
            self.is_stale = true;
        }
    }

    /// A thread waits for the others of its rank.
    fn join(&mut self, id: u32, agent: u32) {
        let n_lanes = self.score.lanes.len();
        let own = agent as usize * n_lanes..(agent as usize + 1) * n_lanes;
        self.threads[id as usize].blocked = Blocked::Join;
        if !self.threads[own.clone()].iter().all(|thread| thread.blocked == Blocked::Join) {
            return;
        }
        let last = self.threads[own.clone()].iter().map(|thread| thread.at).fold(0.0, f64::max);
        for id in own {
            self.threads[id].blocked = Blocked::No;
            let wait = last - self.threads[id].at;
            self.spend(id as u32, &[(Part::Threads, wait)], None);
        }
    }
}

impl Transit {
    fn path_in<'s>(&self, score: &'s Score) -> &'s [(ResourceId, f32)] {
        &score.paths[self.path.start as usize..self.path.end as usize]
    }
}

fn message<'s>(score: &'s Score, flow: &Flow) -> &'s Transit {
    &score.lanes[flow.lane as usize].steps[flow.step as usize].messages[flow.message as usize]
}

/// How long a flow takes to its next mark, or to its end, at its rate.
fn time_to_mark(flow: &Flow, steps: &[Vec<StepState>]) -> f64 {
    let state = &steps[flow.lane as usize][flow.step as usize];
    let to = state.marks[flow.mark as usize].min(flow.to);
    let left = flow.bytes * f64::from(to) - flow.done;
    // Rounding must not leave a part of a byte.
    if left <= flow.bytes * 1e-9 { 0.0 } else { left / flow.rate }
}
