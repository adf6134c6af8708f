//! Work of hopbine's engine on a rank beside its messages: copies, and first contacts with peers.
//!
//! The work is that of `src/engine/compile` for a call whose input and output are apart. Vectors, and blocks in the
//! user's order, are processed in the user's output, other blocks in the call's working memory. Nothing is copied in
//! advance: data that have not been written yet are read in the user's input. A message whose bytes are contiguous is
//! sent from their place and received there; others are packed before, or unpacked after it. Long parts of blocks are
//! messages of their own ([`segments`](crate::plan::segments)). Data that a step both sends and receives arrive
//! elsewhere and are copied. In the end, data that are not at the user's place are copied to it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::slice;

use crate::collectives::{Action, Collective, Payload, Share};
use crate::names::{Block, PortId, Position, Rank};
use crate::plan::segments::MIN_SEPARATE_RUN_BYTES;
use crate::plan::{Flow, Lane, Part, Plan, Run, Transfer};

/// The most positions of a vector that are followed one by one.
const MOST_FOLLOWED: u32 = 4096;

/// Copies of a rank's own data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Copies {
    /// Bytes, as a multiple of n.
    pub share: f64,
    /// The number of contiguous pieces.
    pub pieces: u32,
}

/// The data that a rank sends or receives in a step, or has at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// Bytes, as a multiple of n.
    pub share: f64,
    /// Runs of positions, or positions at separate places of the user's memory.
    pub runs: u32,
    /// Copies if runs are short, and the runs of a message travel together.
    pub together: Copies,
    /// Copies if runs are long, and each is a message.
    pub apart: Copies,
}

impl Moved {
    /// Whether runs are messages of their own in a call of `n` bytes: see [`segments`](crate::plan::segments).
    pub fn is_apart(&self, n: f64) -> bool {
        self.share * n >= f64::from(self.runs.max(1)) * MIN_SEPARATE_RUN_BYTES as f64
    }

    /// The copies in a call of `n` bytes.
    pub fn copies(&self, n: f64) -> Copies {
        if self.is_apart(n) { self.apart } else { self.together }
    }
}

/// The work of a rank in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepWork {
    /// What it sends, with the copies for packing.
    pub sent: Moved,
    /// What it receives, with the copies for unpacking.
    pub received: Moved,
    /// Ranks with which no earlier step of the port had messages.
    pub new_peers: u32,
}

/// The work of a rank in a lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneWork {
    /// By step.
    pub steps: Vec<StepWork>,
    /// The work after all steps.
    pub closing: Moved,
}

/// The work of one rank, by lane: of the root, or of rank 0.
pub(super) fn of_plan(flow: &dyn Flow, share: impl Fn(usize) -> f64) -> Vec<LaneWork> {
    let collective = flow.collective();
    let rank = if collective.is_rooted() { flow.root() } else { Rank(0) };
    let plan = flow.plan(rank);
    let mut met: HashSet<(PortId, Rank)> = HashSet::new();
    // By part of several lanes, the positions that arrive in any of these lanes.
    let mut arrives: HashMap<Part, Vec<bool>> = HashMap::new();
    for (number, lane) in plan.lanes.iter().enumerate() {
        let others = plan.lanes.iter().enumerate().filter(|(other, _)| *other != number);
        if others.map(|(_, other)| other.part).all(|part| part != lane.part) {
            continue;
        }
        let n = lane.space.n_positions as usize;
        let arrives = arrives.entry(lane.part).or_insert_with(|| vec![false; n]);
        let runs = lane.steps.iter().flat_map(|step| &step.recvs).flat_map(|recv| &recv.runs);
        for run in runs {
            arrives[run.start as usize..run.end() as usize].fill(true);
        }
    }
    let lanes = plan.lanes.iter().enumerate().map(|(number, lane)| {
        let is_first = !plan.lanes[..number].iter().any(|other| other.part == lane.part);
        let together = BufferLayout::new(&plan, lane, share(number));
        let apart = BufferLayout { is_apart: true, ..together.clone() };
        let mut layouts = [together, apart];
        let steps = lane.steps.iter().map(|step| {
            let (sends, recvs) = (&step.sends, &step.recvs);
            let peers = sends.iter().chain(recvs).map(|transfer| (transfer.port, transfer.peer));
            let new_peers = peers.filter(|&peer| met.insert(peer)).count() as u32;
            let [together, apart] = layouts.each_mut().map(|layout| {
                layout.step += 1;
                let sent = sends.iter().map(|send| layout.send(&send.runs));
                let sent = sent.fold(Copies::default(), Copies::and);
                let received = recvs.iter().map(|recv| layout.receive(&recv.runs, step.action));
                (sent, received.fold(Copies::default(), Copies::and))
            });
            let moved = |transfers: &[Transfer], copies| {
                let runs = transfers.iter().flat_map(|transfer| &transfer.runs).copied();
                layouts[1].moved(runs, copies)
            };
            StepWork {
                sent: moved(sends, [together.0, apart.0]),
                received: moved(recvs, [together.1, apart.1]),
                new_peers,
            }
        });
        let steps = steps.collect();
        let all = &arrives.get(&lane.part);
        let copies = layouts.each_ref().map(|layout| {
            layout.closing(|position| {
                let of_others = all.is_some_and(|all| all[position as usize]);
                is_first && !of_others
            })
        });
        let all = std::iter::once(Run::new(0, lane.space.n_positions));
        LaneWork { steps, closing: layouts[1].moved(all, copies) }
    });
    lanes.collect()
}

impl Copies {
    fn and(self, other: Copies) -> Self {
        Copies { share: self.share + other.share, pieces: self.pieces + other.pieces }
    }
}

/// The location of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Location {
    /// A block of the user's input.
    Input(u32),
    /// A block of the user's output.
    Output(u32),
    /// A position of the call's working memory.
    Work(u32),
}

/// The locations of a lane's positions.
#[derive(Clone)]
struct BufferLayout<'a> {
    plan: &'a Plan,
    lane: &'a Lane,
    /// Bytes of a position, as a multiple of n.
    share: f64,
    /// Whether runs are messages of their own.
    is_apart: bool,
    /// Whether positions are the user's blocks in order, in the output.
    is_home: bool,
    /// By position; empty for tokens, and for vectors of many positions, which are contiguous.
    at: Vec<Location>,
    /// By position, its location at the end.
    ends: Rc<[Option<Location>]>,
    /// The step, from 1; and by location in the output and in working memory, the last step that sends it.
    step: u32,
    read: [Vec<u32>; 2],
    arrived: Vec<bool>,
}

impl<'a> BufferLayout<'a> {
    /// The locations at the start, with runs that travel together.
    fn new(plan: &'a Plan, lane: &'a Lane, share: f64) -> Self {
        let Plan { collective, rank, root, n_ranks, .. } = *plan;
        let (gives, gets) =
            (collective.gives(rank, root, n_ranks), collective.gets(rank, root, n_ranks));
        let space = &lane.space;
        let is_vector = space.payload == Payload::Vector;
        let is_home = gets == Share::All && (is_vector || !space.is_noncontiguous(lane.part));
        let home = |position| match is_home {
            true => Location::Output(position),
            false => Location::Work(position),
        };
        let has_own = gives == Share::Own || gets == Share::Own;
        let own = has_own.then(|| space.position_of(rank).0);
        let start = |position: u32| match gives {
            // A bcast has one buffer.
            _ if collective == Collective::Bcast => None,
            Share::All if is_vector => Some(position),
            Share::All => space.block_at_start(rank, Position(position)).map(|Block(at)| at),
            Share::Own => (own == Some(position)).then_some(0),
            Share::Nothing => None,
        };
        // In a vector of many positions all are written, and few messages have both read and written positions.
        let is_plain =
            space.payload == Payload::Token || is_vector && space.n_positions > MOST_FOLLOWED;
        let n = if is_plain { 0 } else { space.n_positions };
        let at = (0..n).map(|position| start(position).map_or(home(position), Location::Input));
        let at: Vec<Location> = at.collect();
        let end = |position: u32| match gets {
            Share::Nothing => None,
            Share::All if is_vector => Some(Location::Output(position)),
            Share::Own => (own == Some(position)).then_some(Location::Output(0)),
            Share::All => {
                let Block(block) = space.block_at_end(rank, Position(position))?;
                Some(Location::Output(block))
            }
        };
        let ends = (0..n).map(end).collect();
        let n_output = if is_plain { 0 } else { n_ranks.max(n) as usize };
        let read = [vec![0; n_output], vec![0; at.len()]];
        let arrived = vec![false; at.len()];
        let (is_apart, step) = (false, 0);
        BufferLayout { plan, lane, share, is_apart, is_home, at, ends, step, read, arrived }
    }

    /// The parts of a run that may travel apart.
    fn units(&self, run: Run) -> impl Iterator<Item = Run> + use<> {
        let is_cut = self.lane.space.sends_by_position(self.lane.part, self.plan.collective);
        let len = if is_cut { 1 } else { run.len.max(1) };
        (run.start..run.end()).step_by(len as usize).map(move |start| Run::new(start, len))
    }

    fn moved(&self, runs: impl Iterator<Item = Run>, [together, apart]: [Copies; 2]) -> Moved {
        let count = |(n, units): (u32, u32), run: Run| {
            (n + run.len, units + self.units(run).count() as u32)
        };
        match self.lane.space.payload {
            Payload::Token => Moved::default(),
            _ => {
                let (n, runs) = runs.fold((0, 0), count);
                Moved { share: f64::from(n) * self.share, runs, together, apart }
            }
        }
    }

    /// Whether a location follows another directly. Parts of blocks in the user's memory do not.
    fn continues(&self, before: Location, location: Location) -> bool {
        match (before, location) {
            (Location::Work(a), Location::Work(b)) => a + 1 == b,
            (Location::Input(a), Location::Input(b))
            | (Location::Output(a), Location::Output(b)) => {
                let is_vector = self.lane.space.payload == Payload::Vector;
                (is_vector || self.lane.part.is_whole()) && a + 1 == b
            }
            _ => false,
        }
    }

    fn pieces(&self, locations: impl Iterator<Item = Location>) -> u32 {
        let (mut last, mut pieces) = (None, 0);
        for location in locations {
            pieces += u32::from(last.is_none_or(|last| !self.continues(last, location)));
            last = Some(location);
        }
        pieces
    }

    fn copies(&self, positions: usize, pieces: u32) -> Copies {
        Copies { share: positions as f64 * self.share, pieces }
    }

    /// The sum of `copies` over the messages of a transfer: one message, or one for each unit.
    fn messages(
        &mut self,
        runs: &[Run],
        mut copies: impl FnMut(&mut Self, &[Run]) -> Copies,
    ) -> Copies {
        if !self.is_apart {
            return copies(self, runs);
        }
        let mut all = Copies::default();
        for &run in runs {
            for unit in self.units(run) {
                all = all.and(copies(self, slice::from_ref(&unit)));
            }
        }
        all
    }

    /// Packs what a transfer sends.
    fn send(&mut self, runs: &[Run]) -> Copies {
        self.messages(runs, BufferLayout::send_message)
    }

    fn send_message(&mut self, runs: &[Run]) -> Copies {
        if self.at.is_empty() {
            return self.copies_plain(runs, true);
        }
        let all = || runs.iter().flat_map(|run| run.start..run.end());
        let pieces = self.pieces(all().map(|position| self.at[position as usize]));
        for position in all() {
            match self.at[position as usize] {
                Location::Input(_) => {}
                Location::Output(at) => self.read[0][at as usize] = self.step,
                Location::Work(at) => self.read[1][at as usize] = self.step,
            }
        }
        if pieces > 1 { self.copies(all().count(), pieces) } else { Copies::default() }
    }

    /// A message of a vector of many positions is copied if it has several runs.
    fn copies_plain(&self, runs: &[Run], is_copied: bool) -> Copies {
        let is_token = self.lane.space.payload == Payload::Token;
        if is_token || !is_copied || runs.len() <= 1 {
            return Copies::default();
        }
        let n: u32 = runs.iter().map(|run| run.len).sum();
        self.copies(n as usize, runs.len() as u32)
    }

    /// Unpacks what a transfer receives. Data to combine are read at the place of their arrival.
    fn receive(&mut self, runs: &[Run], action: Action) -> Copies {
        self.messages(runs, |layout, message| layout.receive_message(message, action))
    }

    fn receive_message(&mut self, runs: &[Run], action: Action) -> Copies {
        let is_stored = action == Action::Copy;
        if self.at.is_empty() {
            return self.copies_plain(runs, is_stored);
        }
        let mut is_direct = runs.len() <= 1;
        for run in runs {
            // In the output if the whole run belongs there in order, else in working memory.
            let ends = &self.ends[run.start as usize..run.end() as usize];
            let is_at_end = !self.is_home
                && ends.iter().all(Option::is_some)
                && self.pieces(ends.iter().copied().flatten()) == 1;
            let mut is_read = false;
            for position in run.start..run.end() {
                let home = match self.is_home {
                    true => Location::Output(position),
                    false => Location::Work(position),
                };
                let end = self.ends[position as usize].filter(|_| is_at_end);
                let location = end.unwrap_or(home);
                is_read |= match location {
                    Location::Input(_) => false,
                    Location::Output(at) => self.read[0][at as usize] == self.step,
                    Location::Work(at) => self.read[1][at as usize] == self.step,
                };
                self.at[position as usize] = location;
                self.arrived[position as usize] = true;
            }
            is_direct &= !is_read;
        }
        if !is_stored || is_direct {
            return Copies::default();
        }
        let n: u32 = runs.iter().map(|run| run.len).sum();
        self.copies(n as usize, runs.len() as u32)
    }

    /// The copies at the end: of positions that have arrived in this lane, and of positions that are `left` to it.
    fn closing(&self, left: impl Fn(u32) -> bool) -> Copies {
        let (mut last, mut n, mut pieces) = (None, 0, 0);
        for (position, &at) in (0..).zip(&self.at) {
            let end = self.ends[position as usize];
            let Some(end) = end.filter(|&end| end != at) else { continue };
            if !self.arrived[position as usize] && !left(position) {
                continue;
            }
            let is_behind = |&(from, into): &(Location, Location)| {
                self.continues(from, at) && self.continues(into, end)
            };
            pieces += u32::from(last.as_ref().is_none_or(|last| !is_behind(last)));
            last = Some((at, end));
            n += 1;
        }
        self.copies(n, pieces)
    }
}
