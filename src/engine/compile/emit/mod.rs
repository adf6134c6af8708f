//! Emits the tasks of one port, or of several that share lanes, step by step and lane by lane: sends here, receives
//! in `recvs`. Both ends of a message use the same order of steps and lanes.

mod recvs;
mod sizes;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

use hopbine_torus::plan::segments::pieces;
use hopbine_torus::plan::{Lane, Run, Step, Transfer};
use hopbine_torus::{LaneId, PortId, Rank, StepId};

use super::geometry::{CompileFailure, Geometry};
use super::graph::{Graph, TaskAt, Tracked, TrackedRange};
use super::ports::{TaskLists, programs};
use super::program::{Buffer, ListRange, Move, PortProgram, Region, Task};
use super::regions::{Regions, push_joined};
use super::space::WorkingSpace;
use super::staging::Staging;
use super::transfer::{CutTransfer, by_piece, pair_up};
use crate::error::CompileError;
pub use sizes::{compile_sizes, learnt, log_words};
use smallvec::SmallVec;

/// Receives posted at a time, unless a step has more: enough to keep the wire busy, and so few that a peer's table of
/// announced receives stays small.
const MIN_RECV_WINDOW: u32 = 64;
/// Copies at the end of a program are split at this length, so that the first can run while the last blocks are in
/// flight.
const OUTPUT_COPY_BYTES: u64 = 256 * 1024;
/// Alignment of parts of the working buffer: a cache line.
pub(crate) const ALIGN: u64 = 64;
/// First of the virtual bytes that keep messages within their lane's window.
const FENCES: u64 = 1 << 34;
/// The region of messages without bytes.
const EMPTY_REGION: Region = Region { buffer: Buffer::Work, offset: 0, len: 0 };

/// The ranges that a task reads, or writes.
type TrackedRanges = SmallVec<[TrackedRange; 2]>;

/// A lane's number in the plan, the lane, and its space.
pub(crate) type PlacedLane<'a> = (LaneId, &'a Lane, WorkingSpace<'a>);

/// Ends of the resources that all ports of a program share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Common {
    /// Bytes of working space.
    pub(crate) work_bytes: u64,
    /// Flags.
    pub(crate) n_flags: u32,
}

/// Compiles ports that share lanes; mostly one port.
pub(crate) struct PortCompiler<'a> {
    geometry: &'a Geometry,
    ports: &'a [PortId],
    /// The lanes that the ports drive.
    lanes: Vec<PlacedLane<'a>>,
    /// The current lane, an index into `lanes`, and the port of the next tasks.
    lane: usize,
    port: PortId,
    graph: Graph,
    /// One for each lane.
    staging: Vec<Staging>,
    lists: TaskLists,
    closing: Vec<Move>,
    /// Number of messages so far, by port and peer, sent (`true`) or received.
    messages: BTreeMap<(PortId, Rank, bool), u32>,
    step: u32,
    /// The virtual byte that messages of this step read, and that is written when they have ended.
    fence: Option<TrackedRange>,
    /// The tasks of this step's sends.
    sending: Range<u32>,
}

impl<'a> PortCompiler<'a> {
    pub(crate) fn new(
        geometry: &'a Geometry,
        ports: &'a [PortId],
        lanes: Vec<PlacedLane<'a>>,
    ) -> Self {
        PortCompiler {
            geometry,
            ports,
            lanes,
            lane: 0,
            port: ports[0],
            graph: Graph::new(),
            staging: Vec::new(),
            lists: TaskLists::default(),
            closing: Vec::new(),
            messages: BTreeMap::new(),
            step: 0,
            fence: None,
            sending: 0..0,
        }
    }

    fn space(&self) -> &WorkingSpace<'a> {
        &self.lanes[self.lane].2
    }

    fn space_mut(&mut self) -> &mut WorkingSpace<'a> {
        &mut self.lanes[self.lane].2
    }

    /// Whether several ports share the lanes.
    fn is_shared(&self) -> bool {
        self.ports.len() > 1
    }

    fn staging(&mut self) -> &mut Staging {
        &mut self.staging[self.lane]
    }

    /// Bytes of the longest message of a lane.
    fn longest_piece(&self, (_, lane, space): &PlacedLane<'_>) -> u64 {
        let segment = self.geometry.segment_bytes.unwrap_or(u64::MAX);
        let bytes = |run: &Run| space.bytes(*run).end - space.bytes(*run).start;
        let longest = lane.transfers().map(|transfer| transfer.runs.iter().map(bytes).sum()).max();
        let longest: u64 = longest.filter(|_| !space.is_token()).unwrap_or(0);
        if !self.geometry.sizes.are_known() {
            return longest;
        }
        longest.min(segment.max(self.geometry.elem_bytes))
    }

    /// The staging of a lane, with the lane's index here.
    fn staging_of(&self, (number, placed): (u64, &PlacedLane<'_>)) -> Staging {
        let steps = &placed.1.steps;
        let most = |count: fn(&Step) -> usize| steps.iter().map(count).max().unwrap_or(0) as u64;
        let needs = [most(|step| step.sends.len()), most(|step| step.recvs.len())];
        Staging::new(number, self.longest_piece(placed), needs, self.is_shared())
    }

    /// Returns the programs of the ports, and the copies to perform when all ports have executed theirs. Resources
    /// that the ports share follow those in `common`.
    pub(crate) fn run(
        mut self,
        common: &mut Common,
    ) -> Result<(Vec<PortProgram>, Vec<Move>), CompileFailure> {
        let lanes = &self.lanes;
        let n_steps = lanes.iter().map(|(_, lane, _)| lane.steps.len()).max().unwrap_or(0);
        let steps = lanes.iter().flat_map(|(_, lane, _)| &lane.steps);
        let most_recvs = steps.map(|step| step.recvs.len()).max().unwrap_or(0);
        self.staging = (0..).zip(lanes).map(|lane| self.staging_of(lane)).collect();
        for index in 0..n_steps {
            for lane in 0..self.lanes.len() {
                let plan: &'a Lane = self.lanes[lane].1;
                let Some(step) = plan.steps.get(index) else { continue };
                (self.step, self.lane) = (index as u32, lane);
                self.staging().next_step();
                self.fence = fence(lane, index, plan.window);
                self.emit_sends(step);
                self.emit_recvs(step);
                self.port = plan.port;
                self.emit_fence(step);
            }
        }
        self.step = n_steps as u32;
        for lane in 0..self.lanes.len() {
            (self.lane, self.port) = (lane, self.lanes[lane].1.port);
            self.emit_outputs();
        }
        if self.graph.tasks.len() >= u32::MAX as usize {
            let lane = self.lanes.first().map_or(LaneId(0), |lane| lane.0);
            let step = StepId(n_steps);
            return Err(CompileFailure { lane, step, error: CompileError::TooLong });
        }
        Ok(self.finish(most_recvs as u32, common))
    }

    fn transfer(&self, Transfer { peer, port, runs }: &Transfer) -> CutTransfer {
        let mut at = 0;
        let ranges: Vec<_> = runs.iter().flat_map(|&run| self.space().units(run)).collect();
        let lens: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        let pieces = if self.space().is_token() || !self.geometry.sizes.are_known() {
            // One message: a token, or one whose length states the amount of data.
            std::iter::once(0..lens.iter().sum()).collect()
        } else {
            let mut pieces = pieces(&lens, self.geometry.segment_bytes, self.geometry.elem_bytes);
            if pieces.is_empty() && self.geometry.sizes.are_learnt() {
                // An empty message.
                pieces.extend(std::iter::once(0..0));
            }
            pieces
        };
        let runs = ranges.into_iter().zip(&lens).map(|(range, len)| {
            at += len;
            (at - len, range)
        });
        CutTransfer { peer: *peer, port: *port, runs: runs.collect(), pieces }
    }

    fn emit_sends(&mut self, step: &Step) {
        let first = self.graph.len();
        let transfers: Vec<_> = step.sends.iter().map(|send| self.transfer(send)).collect();
        for (piece, transfer) in by_piece(&transfers) {
            self.port = transfer.port;
            let ranges = transfer.ranges(piece);
            let mut sources = Regions::new();
            for range in &ranges {
                self.space().sources(range).into_iter().for_each(|r| push_joined(&mut sources, r));
            }
            let level = piece as u32;
            if self.space().is_token() {
                let reads: TrackedRanges =
                    ranges.iter().map(|range| self.space().tracked(range)).collect();
                self.emit_send(transfer.peer, level, EMPTY_REGION, &reads);
            } else if sources.is_empty() {
                self.emit_send(transfer.peer, level, EMPTY_REGION, &[]);
            } else if let [source] = sources[..]
                && !self.space().packs(source)
            {
                self.emit_send(transfer.peer, level, source, &[source.tracked()]);
            } else {
                let slot = self.staging().pack(sources.iter().map(|source| source.len).sum());
                self.emit_copy(level, &pair_up(&sources, &[slot]));
                self.emit_send(transfer.peer, level, slot, &[slot.tracked()]);
            }
        }
        self.sending = first..self.graph.len();
    }

    fn emit_send(&mut self, to: Rank, piece: u32, from: Region, reads: &[(Tracked, Range<u64>)]) {
        let message = self.next_message(to, true);
        let send = Task::Send { to: to.0, message, from };
        self.emit_message(piece, send, reads, &[]);
    }

    fn emit_recv(&mut self, from: Rank, piece: u32, into: Region) {
        let message = self.next_message(from, false);
        let writes = [into.tracked()];
        self.emit_message(piece, Task::Recv { from: from.0, message, into }, &[], &writes);
    }

    /// Emits a send or a receive.
    fn emit_message(
        &mut self,
        piece: u32,
        task: Task,
        reads: &[TrackedRange],
        writes: &[TrackedRange],
    ) {
        match &self.fence {
            None => self.graph.emit(self.at(piece), task, reads, writes),
            Some(fence) => {
                let reads = [reads, std::slice::from_ref(fence)].concat();
                self.graph.emit(self.at(piece), task, &reads, writes);
            }
        }
    }

    /// Emits the write to the fence: it waits for all messages of this step, and later readers of the fence wait for
    /// it.
    fn emit_fence(&mut self, step: &Step) {
        if let Some(fence) = self.fence.take()
            && !(step.sends.is_empty() && step.recvs.is_empty())
        {
            self.emit_noop(&[], &[fence]);
        }
    }

    /// Emits a task that only waits.
    fn emit_noop(&mut self, reads: &[TrackedRange], writes: &[TrackedRange]) {
        let nothing = ListRange { start: self.lists.moves.len() as u32, len: 0 };
        self.graph.emit(self.at(0), Task::Copy(nothing), reads, writes);
    }

    fn emit_copy(&mut self, piece: u32, pairs: &[(Region, Region)]) {
        let reads: TrackedRanges = pairs.iter().map(|(from, _)| from.tracked()).collect();
        let writes: TrackedRanges = pairs.iter().map(|(_, into)| into.tracked()).collect();
        let moves = &mut self.lists.moves;
        let span = ListRange { start: moves.len() as u32, len: pairs.len() as u32 };
        moves.extend(pairs.iter().map(|&(from, into)| Move { from, into }));
        self.graph.emit(self.at(piece), Task::Copy(span), &reads, &writes);
    }

    /// The place of the current task.
    fn at(&self, piece: u32) -> TaskAt {
        TaskAt { step: self.step, piece, port: self.port }
    }

    fn next_message(&mut self, peer: Rank, sent: bool) -> u32 {
        let next = self.messages.entry((self.port, peer, sent)).or_insert(0);
        *next += 1;
        *next - 1
    }

    fn emit_outputs(&mut self) {
        if self.space().waits_for_others() {
            let copies = self.space().outputs();
            self.closing.extend(copies.into_iter().map(|(from, into)| Move { from, into }));
            return;
        }
        let mut batch = Vec::new();
        let mut batch_bytes = 0;
        for (mut from, mut into) in self.space().outputs() {
            while from.len > 0 {
                let len = from.len.min(OUTPUT_COPY_BYTES - batch_bytes);
                batch.push((Region { len, ..from }, Region { len, ..into }));
                batch_bytes += len;
                for rest in [&mut from, &mut into] {
                    rest.offset += len;
                    rest.len -= len;
                }
                if batch_bytes == OUTPUT_COPY_BYTES {
                    self.emit_copy(0, &batch);
                    batch.clear();
                    batch_bytes = 0;
                }
            }
        }
        if !batch.is_empty() {
            self.emit_copy(0, &batch);
        }
    }

    fn finish(mut self, most_recvs: u32, common: &mut Common) -> (Vec<PortProgram>, Vec<Move>) {
        // Shared staging is in the working buffer, not in the memory of one port.
        let mut own_bytes = 0;
        let (buffer, end) = match self.is_shared() {
            true => (Buffer::Work, &mut common.work_bytes),
            false => (Buffer::Staging, &mut own_bytes),
        };
        let mut starts = Vec::with_capacity(self.staging.len());
        for staging in &self.staging {
            starts.push(*end);
            *end += staging.len().next_multiple_of(ALIGN);
        }
        let place = |region: &mut Region| {
            if region.buffer == Buffer::Staging {
                let number = Staging::number(region.offset);
                region.offset = starts[number] + self.staging[number].place(region.offset);
                region.buffer = buffer;
            }
        };
        self.graph.tasks.iter_mut().filter_map(Task::on_wire_mut).for_each(place);
        for copy in &mut self.lists.moves {
            place(&mut copy.from);
            place(&mut copy.into);
        }
        self.lists.operands.iter_mut().for_each(place);
        let mut programs = programs(&self.graph, self.lists, self.ports, &mut common.n_flags);
        for program in &mut programs {
            program.recv_window = most_recvs.max(MIN_RECV_WINDOW);
            program.step_window = most_recvs;
        }
        for copy in &self.closing {
            for region in [copy.from, copy.into] {
                let need = &mut programs[0].needs[region.buffer as usize];
                *need = region.range().end.max(*need);
            }
        }
        (programs, self.closing)
    }
}

/// The virtual byte that messages of a step read, and that is written when all of them have ended; one byte for each
/// step that may be in flight.
fn fence(lane: usize, step: usize, window: Option<NonZeroU32>) -> Option<TrackedRange> {
    let window = window?.get();
    let byte = FENCES + ((lane as u64) << 32) + step as u64 % u64::from(window);
    Some((Tracked::Tokens, byte..byte + 1))
}

impl Region {
    /// The range in which hazards on the region are tracked.
    fn tracked(self) -> TrackedRange {
        (Tracked::In(self.buffer), self.range())
    }
}
