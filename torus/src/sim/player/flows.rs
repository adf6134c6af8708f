//! Messages in flight: posted, then sent one after the other by their interface, at shared rates.

use super::state::{EPSILON, InFlight, Player, message, time_to_mark};
use crate::sim::outcome::{Span, SpanKind};

impl Player<'_> {
    /// Posts a part of a message, cut into `puts` puts that follow each other after at least `gap_ns`.
    pub fn post(
        &mut self,
        agent: u32,
        lane: u32,
        step: u32,
        number: u32,
        [from, to]: [f32; 2],
        (puts, gap_ns, n_sharing): (f64, f64, f64),
    ) {
        let state = &self.steps[lane as usize][step as usize];
        let transit =
            &self.routed.lanes[lane as usize].steps[step as usize].messages[number as usize];
        // If the gaps take longer than the bytes, the message counts as many bytes as take that long.
        let uncontended = self.speeds.uncontended(transit.is_intra_node());
        let part = f64::from(to - from).max(f64::MIN_POSITIVE);
        let bytes = transit.share * self.n * n_sharing;
        let bytes = bytes.max((puts - 1.0) * gap_ns * uncontended / part + bytes / puts);
        let mark = state.marks.iter().position(|&mark| mark > from).unwrap_or(0) as u32;
        let done = bytes * f64::from(from);
        let port = u32::from(self.routed.via(agent, transit.port).0);
        let queue = (agent * self.routed.n_ports + port) as usize;
        self.queues[queue].push_back(InFlight {
            lane,
            step,
            message: number,
            to,
            part: to - from,
            bytes,
            done,
            rate: 0.0,
            mark,
        });
        if self.queues[queue].len() == 1 {
            self.active.push(queue as u32);
            let now = self.since;
            self.begin_flow(queue, now);
        }
    }

    /// Computes the rates of all flows, and when the first flow reaches its mark.
    pub fn update_rates(&mut self) {
        self.is_stale = false;
        // Flows have progressed at their rates up to now.
        let ns = self.since - self.rated;
        for &queue in &self.active {
            let flow = &mut self.queues[queue as usize][0];
            flow.done += flow.rate * ns;
        }
        self.rated = self.since;
        let (queues, active, routed) = (&self.queues, &self.active, self.routed);
        let path = |at: usize| {
            let flow = &queues[active[at] as usize][0];
            message(routed, flow).path_in(routed)
        };
        let mut rates = std::mem::take(&mut self.shared);
        rates.clear();
        rates.resize(active.len(), 0.0);
        let speeds = self.speeds;
        let most = |at: usize| {
            let flow = &queues[active[at] as usize][0];
            speeds.max_rate(message(routed, flow).is_intra_node())
        };
        self.rates.rates(most, path, &mut rates);
        let mut next = f64::INFINITY;
        for (&queue, &rate) in self.active.iter().zip(&rates) {
            let flow = &mut self.queues[queue as usize][0];
            flow.rate = rate;
            next = next.min(time_to_mark(flow, &self.steps, 0.0));
        }
        self.next_mark = self.since + next;
        self.shared = rates;
    }

    /// Lets all flows that reach a mark now pass it.
    pub fn pass_marks(&mut self) {
        let now = self.next_mark;
        self.since = now;
        let ns = now - self.rated;
        // Late times are rounded by more than EPSILON: what is left would take no time, again and again.
        let rounding = EPSILON.max(4.0 * f64::EPSILON * now);
        let mut at = 0;
        while at < self.active.len() {
            let queue = self.active[at] as usize;
            let mut has_ended = false;
            while let Some(flow) = self.queues[queue].front().copied() {
                // A flow that has just begun has no rate yet.
                let slack = match flow.rate > 0.0 {
                    true => self.together * flow.bytes * f64::from(flow.part) / flow.rate,
                    false => 0.0,
                };
                if time_to_mark(&flow, &self.steps, ns) > rounding + slack {
                    break;
                }
                let state = &mut self.steps[flow.lane as usize][flow.step as usize];
                let mark = state.marks[flow.mark as usize];
                if mark <= flow.to {
                    let at = state.index(flow.message, flow.mark);
                    state.left[at] = now;
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
        }
        let next = self
            .active
            .iter()
            .map(|&queue| time_to_mark(&self.queues[queue as usize][0], &self.steps, ns));
        self.next_mark = now + next.fold(f64::INFINITY, f64::min);
        if self.is_stale {
            self.update_rates();
        }
    }

    /// Ends a flow, and lets the interface continue with its next message.
    pub fn end_flow(&mut self, queue: usize, now: f64) {
        let ended = self.queues[queue].pop_front().expect("a flow has ended");
        for &(resource, _) in message(self.routed, &ended).path_in(self.routed) {
            let users = &mut self.users[resource as usize];
            *users -= 1;
            self.is_stale |= *users > 0;
        }
        if let Some(spans) = &mut self.spans {
            let state = &self.steps[ended.lane as usize][ended.step as usize];
            let start_ns = state.began[ended.message as usize];
            let rank = message(self.routed, &ended).from;
            let (lane, step) = (ended.lane, Some(ended.step));
            let kind = SpanKind::Sends { message: ended.message };
            spans.push(Span { rank, lane, step, kind, start_ns, end_ns: now });
        }
        self.begin_flow(queue, now);
    }

    pub fn begin_flow(&mut self, queue: usize, now: f64) {
        let Some(flow) = self.queues[queue].front_mut() else { return };
        let transit = message(self.routed, flow);
        let path = transit.path_in(self.routed);
        let mut is_alone = true;
        for &(resource, _) in path {
            let users = &mut self.users[resource as usize];
            is_alone &= *users == 0;
            *users += 1;
        }
        if is_alone {
            // The flow changes no other flow's rate. Its progress counts from the time of the others' rates.
            flow.rate =
                self.rates.uncontended(path).min(self.speeds.max_rate(transit.is_intra_node()));
            let ns = now - self.rated;
            flow.done -= flow.rate * ns;
            self.next_mark = self.next_mark.min(now + time_to_mark(flow, &self.steps, ns));
        } else {
            self.is_stale = true;
        }
        let InFlight { lane, step, message, .. } = *flow;
        let began = &mut self.steps[lane as usize][step as usize].began[message as usize];
        *began = began.min(now);
        // Another port may wait for the turn of this port.
        if self.takes_turns() {
            (0..self.threads.len() as u32).for_each(|id| self.wake_if_ready(id, step, now));
        }
    }
}
