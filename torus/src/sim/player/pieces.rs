//! Pieces that pass through a rank: the choice of the next operation.

use std::cmp::Reverse;

use super::state::{Blocked, Forwarding, Player, Time};
use crate::sim::routed::RoutedStep;
use crate::sim::script::Op;

/// The next action of a thread that has pieces to forward.
pub enum Next {
    /// An operation of one of the pieces.
    Op(Op),
    /// The thread waits for messages.
    Waits,
    /// All pieces have passed.
    Nothing,
}

/// The number of messages that a rank sends, or receives, in a step.
fn n_messages(step: &RoutedStep, agent: u32, is_sent: bool) -> usize {
    if is_sent { step.sent(agent).len() } else { step.received(agent).len() }
}

impl Player<'_> {
    /// Returns the next operation of the pieces that pass through.
    pub fn next_of(&mut self, id: u32, number: usize, now: f64) -> Next {
        let pieces = &self.script.pieces[number];
        let n_lanes = self.routed.lanes.len() as u32;
        let (agent, lane) = (id / n_lanes, (id % n_lanes) as usize);
        let steps = &self.routed.lanes[lane].steps;
        let of = |op: &Op| match *op {
            Op::Put { step, .. } => (step, true),
            Op::Handle { step, is_sent, .. } => (step, is_sent),
            Op::Receive { step, .. } | Op::Fold { step, .. } => (step, false),
            _ => unreachable!("pieces are put, received, combined and copied"),
        };
        self.threads[id as usize].blocked = Blocked::No;
        let known = self.threads[id as usize].forwarding.take();
        let mut forwarding =
            known.unwrap_or_else(|| Forwarding { next: vec![0; pieces.len()], at: None });
        if let Some(at) = forwarding.at {
            let op = pieces[at][forwarding.next[at] as usize];
            self.threads[id as usize].forwarding = Some(forwarding);
            return Next::Op(op);
        }
        let mut best: Option<((bool, usize, usize), Op)> = None;
        let (mut earliest, mut is_done) = (f64::INFINITY, true);
        for (piece, (ops, next)) in pieces.iter().zip(&mut forwarding.next).enumerate() {
            // A rank skips operations for which it has no messages.
            let has_none = |op: &&Op| {
                let (step, is_sent) = of(op);
                n_messages(&steps[step], agent, is_sent) == 0
            };
            *next += ops[*next as usize..].iter().take_while(has_none).count() as u32;
            let Some(&op) = ops.get(*next as usize) else { continue };
            is_done = false;
            let (step, is_sent) = of(&op);
            let order = (!is_sent, step, piece);
            if best.is_some_and(|(least, _)| least < order) {
                continue;
            }
            if let Op::Receive { step, to, .. } = op {
                let mark = self.steps[lane][step].mark(to);
                let until = self.arrival(id, step as u32, mark);
                if until > now {
                    earliest = earliest.min(until);
                    continue;
                }
            }
            best = Some((order, op));
        }
        if is_done {
            return Next::Nothing;
        }
        let found = best.map(|((_, _, piece), op)| {
            forwarding.at = Some(piece);
            op
        });
        self.threads[id as usize].forwarding = Some(forwarding);
        match found {
            Some(op) => Next::Op(op),
            None => {
                if earliest < f64::INFINITY {
                    self.due.push(Reverse((Time(earliest), id)));
                }
                self.threads[id as usize].blocked = Blocked::Pieces;
                Next::Waits
            }
        }
    }
}
