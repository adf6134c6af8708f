//! The tasks of one port, emitted in plan order.

use std::collections::HashMap;
use std::ops::Range;

use hopbine_torus::plan::{Action, PortPlan, Rank, Recv, Run, Step};

use super::compile::{CompileError, Geometry};
use super::graph::{Graph, Place};
use super::pieces::pieces;
use super::program::{Buffer, Fold, Move, PortProgram, Region, Span, Task};
use super::space::{WorkingSpace, push_joined};
use super::staging::Staging;
use super::transfer::{Transfer, by_piece, groups, pair_up};

/// Receives posted at a time, unless a step has more: enough to keep the wire busy, few
/// enough that a peer's table of announced receives stays small.
const MIN_RECV_WINDOW: u32 = 64;
/// Copies at the end of a program are split at this length, so that the first can be done
/// while the last blocks are still on their way.
const OUTPUT_COPY_BYTES: u64 = 256 * 1024;
/// The region of messages without bytes.
const NOWHERE: Region = Region { buffer: Buffer::Work, offset: 0, len: 0 };
/// Virtual bytes from here on link a token's arrival to the note taken of it; positions are
/// 32-bit numbers and stay below.
const LINKS: u64 = 1 << 32;

/// A message that has landed in staging: the region, and the ranges of the space it is for.
type Landed = (Region, Vec<Range<u64>>);

/// Compiles one port.
pub(super) struct PortCompiler<'a> {
    port: &'a PortPlan,
    geometry: &'a Geometry,
    space: WorkingSpace<'a>,
    graph: Graph,
    staging: Staging,
    recvs: Vec<u32>,
    moves: Vec<Move>,
    folds: Vec<Fold>,
    operands: Vec<Region>,
    /// Messages so far to (`true`) and from (`false`) each peer.
    messages: HashMap<(Rank, bool), u32>,
    wire_bytes: [u64; Buffer::COUNT],
    step: u32,
    /// The tasks that send in this step.
    sending: Range<u32>,
}

impl<'a> PortCompiler<'a> {
    pub(super) fn new(port: &'a PortPlan, geometry: &'a Geometry, space: WorkingSpace<'a>) -> Self {
        let most = |count: fn(&Step) -> usize| port.steps.iter().map(count).max().unwrap_or(0);
        let mut compiler = PortCompiler {
            port,
            geometry,
            space,
            graph: Graph::new(),
            staging: Staging::new(0, 0, 0),
            recvs: Vec::new(),
            moves: Vec::new(),
            folds: Vec::new(),
            operands: Vec::new(),
            messages: HashMap::new(),
            wire_bytes: [0; Buffer::COUNT],
            step: 0,
            sending: 0..0,
        };
        compiler.staging = Staging::new(
            compiler.longest_piece(),
            most(|step| step.sends.len()) as u64,
            most(|step| step.recvs.len()) as u64,
        );
        compiler
    }

    fn longest_piece(&self) -> u64 {
        let blocks = self.port.steps.iter().flat_map(|step| {
            let sent = step.sends.iter().map(|send| &send.blocks);
            sent.chain(step.recvs.iter().map(|recv| &recv.blocks))
        });
        let longest = blocks
            .map(|runs| {
                runs.iter().map(|&run| self.space.bytes(run)).map(|b| b.end - b.start).sum()
            })
            .max()
            .unwrap_or(0);
        let segment = self.geometry.segment_bytes.unwrap_or(u64::MAX);
        if self.space.is_token() { 0 } else { longest.min(segment.max(self.geometry.elem_bytes)) }
    }

    /// The program; or the step that cannot be compiled, and why.
    pub(super) fn run(mut self) -> Result<PortProgram, (usize, CompileError)> {
        let mut most_recvs = 0;
        for (index, step) in self.port.steps.iter().enumerate() {
            self.step = index as u32;
            self.staging.next_step();
            most_recvs = most_recvs.max(step.recvs.len() as u32);
            self.emit_sends(step);
            self.emit_recvs(step).map_err(|error| (index, error))?;
        }
        self.step = self.port.steps.len() as u32;
        self.emit_outputs();
        if self.graph.tasks.len() >= u32::MAX as usize {
            return Err((self.port.steps.len(), CompileError::TooLong));
        }
        Ok(self.finish(most_recvs.max(MIN_RECV_WINDOW)))
    }

    fn transfer(&self, peer: Rank, runs: &[Run]) -> Transfer {
        let mut at = 0;
        let ranges: Vec<_> = runs.iter().map(|&run| self.space.bytes(run)).collect();
        let lens: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        let pieces = if self.space.is_token() {
            // One message that says "I am here".
            std::iter::once(0..lens.iter().sum()).collect()
        } else {
            pieces(&lens, self.geometry.segment_bytes, self.geometry.elem_bytes)
        };
        let runs = ranges.into_iter().zip(&lens).map(|(range, len)| {
            at += len;
            (at - len, range)
        });
        Transfer { peer, runs: runs.collect(), pieces }
    }

    fn emit_sends(&mut self, step: &Step) {
        let first = self.graph.len();
        let transfers: Vec<_> =
            step.sends.iter().map(|send| self.transfer(send.to, &send.blocks)).collect();
        for (piece, transfer) in by_piece(&transfers) {
            let ranges = transfer.ranges(piece);
            let mut sources = Vec::new();
            for range in &ranges {
                self.space.sources(range).into_iter().for_each(|r| push_joined(&mut sources, r));
            }
            let level = piece as u32;
            if self.space.is_token() {
                let reads: Vec<_> = ranges.iter().map(|range| self.space.place(range)).collect();
                self.emit_send(transfer.peer, level, NOWHERE, &reads);
            } else if let [source] = sources[..] {
                self.emit_send(transfer.peer, level, source, &[(source.place(), source.range())]);
            } else {
                let slot = self.staging.pack(sources.iter().map(|source| source.len).sum());
                self.emit_copy(level, pair_up(&sources, &[slot]));
                self.emit_send(transfer.peer, level, slot, &[(slot.place(), slot.range())]);
            }
        }
        self.sending = first..self.graph.len();
    }

    fn emit_send(&mut self, to: Rank, piece: u32, from: Region, reads: &[(Place, Range<u64>)]) {
        self.note_wire(from);
        let message = self.next_message(to, true);
        self.graph.emit(self.step, piece, Task::Send { to, message, from }, reads, &[]);
    }

    fn emit_recv(&mut self, from: Rank, piece: u32, into: Region) {
        self.note_wire(into);
        let message = self.next_message(from, false);
        self.recvs.push(self.graph.len());
        let writes = [(into.place(), into.range())];
        self.graph.emit(self.step, piece, Task::Recv { from, message, into }, &[], &writes);
    }

    fn emit_copy(&mut self, piece: u32, pairs: Vec<(Region, Region)>) {
        let reads: Vec<_> = pairs.iter().map(|(from, _)| (from.place(), from.range())).collect();
        let writes: Vec<_> = pairs.iter().map(|(_, into)| (into.place(), into.range())).collect();
        let span = Span { start: self.moves.len() as u32, len: pairs.len() as u32 };
        self.moves.extend(pairs.into_iter().map(|(from, into)| Move { from, into }));
        self.graph.emit(self.step, piece, Task::Copy(span), &reads, &writes);
    }

    fn note_wire(&mut self, region: Region) {
        let longest = &mut self.wire_bytes[region.buffer as usize];
        *longest = region.len.max(*longest);
    }

    fn next_message(&mut self, peer: Rank, sent: bool) -> u32 {
        let next = self.messages.entry((peer, sent)).or_insert(0);
        *next += 1;
        *next - 1
    }

    fn emit_recvs(&mut self, step: &Step) -> Result<(), CompileError> {
        if self.space.is_token() {
            // The message lands nowhere; taking note of it is a task of its own, because only
            // that one may have to wait for this step's sends.
            for recv in &step.recvs {
                let transfer = self.transfer(recv.from, &recv.blocks);
                self.emit_token(recv.from, &transfer.ranges(0));
            }
            return Ok(());
        }
        let groups = groups(step);
        if !self.disjoint(step, &groups) {
            return self.emit_one_by_one(step);
        }
        let transfers: Vec<Vec<Transfer>> = groups
            .iter()
            .map(|group| {
                let of = |&index: &usize| &step.recvs[index];
                group.iter().map(of).map(|recv| self.transfer(recv.from, &recv.blocks)).collect()
            })
            .collect();
        // Piece by piece across all transfers, so that a message waits only for messages with
        // smaller piece numbers to leave staging.
        let most = transfers.iter().map(|group| group[0].pieces.len()).max().unwrap_or(0);
        for piece in 0..most {
            for (group, transfers) in groups.iter().zip(&transfers) {
                if piece >= transfers[0].pieces.len() {
                    continue;
                }
                match step.recvs[group[0]].action {
                    Action::Copy => self.emit_stored(&transfers[0], piece),
                    Action::Reduce => {
                        let own_at = group.iter().filter(|&&at| (at as u32) < step.own_at).count();
                        self.emit_folded(transfers, piece, own_at as u32);
                    }
                }
            }
        }
        Ok(())
    }

    fn emit_token(&mut self, from: Rank, ranges: &[Range<u64>]) {
        // A virtual byte of its own links the message to the note taken of it.
        let link = LINKS + u64::from(self.graph.len());
        let link = (Place::Tokens, link..link + 1);
        let message = self.next_message(from, false);
        self.recvs.push(self.graph.len());
        let recv = Task::Recv { from, message, into: NOWHERE };
        self.graph.emit(self.step, 0, recv, &[], std::slice::from_ref(&link));
        let noted: Vec<_> = ranges.iter().map(|range| self.space.place(range)).collect();
        let nothing = Span { start: self.moves.len() as u32, len: 0 };
        self.graph.emit(self.step, 0, Task::Copy(nothing), &[link], &noted);
    }

    fn emit_stored(&mut self, transfer: &Transfer, piece: usize) {
        let ranges = transfer.ranges(piece);
        let level = piece as u32;
        let still_sent = self.still_sent(&ranges);
        if let ([range], None) = (&ranges[..], still_sent) {
            let into = self.space.region(range);
            self.emit_recv(transfer.peer, level, into);
        } else {
            let slot = self.landing(transfer, piece, still_sent);
            self.emit_recv(transfer.peer, level, slot);
            let into: Vec<_> = ranges.iter().map(|range| self.space.region(range)).collect();
            self.emit_copy(level, pair_up(&[slot], &into));
        }
        ranges.iter().for_each(|range| self.space.written(range));
    }

    fn emit_folded(&mut self, transfers: &[Transfer], piece: usize, own_at: u32) {
        let still_sent = self.still_sent(&transfers[0].ranges(piece));
        let mut landed: Vec<Landed> = Vec::with_capacity(transfers.len());
        for transfer in transfers {
            let slot = self.landing(transfer, piece, still_sent);
            self.emit_recv(transfer.peer, piece as u32, slot);
            landed.push((slot, transfer.ranges(piece)));
        }
        self.emit_fold(piece as u32, &landed, own_at);
    }

    /// Combines messages for the same ranges with what the space holds there.
    fn emit_fold(&mut self, piece: u32, landed: &[Landed], own_at: u32) {
        let first = self.folds.len();
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let ranges = &landed[0].1;
        let mut packed = 0;
        for range in ranges {
            let mut into = range.start;
            for own in self.space.sources(range) {
                let target = self.space.region(&(into..into + own.len));
                let start = self.operands.len() as u32;
                for (index, (slot, _)) in landed.iter().enumerate() {
                    if index == own_at as usize && own != target {
                        self.operands.push(own);
                    }
                    let offset = slot.offset + packed;
                    self.operands.push(Region { offset, len: own.len, ..*slot });
                }
                if own_at as usize == landed.len() && own != target {
                    self.operands.push(own);
                }
                let operands = Span { start, len: self.operands.len() as u32 - start };
                let own_at = (own == target).then_some(own_at);
                self.folds.push(Fold { into: target, operands, own_at });
                reads.push((own.place(), own.range()));
                writes.push((target.place(), target.range()));
                packed += own.len;
                into += own.len;
            }
        }
        reads.extend(landed.iter().map(|(slot, _)| (slot.place(), slot.range())));
        let span = Span { start: first as u32, len: (self.folds.len() - first) as u32 };
        self.graph.emit(self.step, piece, Task::Fold(span), &reads, &writes);
        ranges.iter().for_each(|range| self.space.written(range));
    }

    /// Receives that overlap unevenly: each is reduced on its own, in list order. Nothing of
    /// the exchange area is reused within a step, so the order of pieces does not matter.
    fn emit_one_by_one(&mut self, step: &Step) -> Result<(), CompileError> {
        if step.own_at != 0 {
            return Err(CompileError::UnevenFold { own_at: step.own_at });
        }
        for Recv { from, blocks, action } in &step.recvs {
            let transfer = self.transfer(*from, blocks);
            for piece in 0..transfer.pieces.len() {
                let len = transfer.pieces[piece].end - transfer.pieces[piece].start;
                let slot = self.staging.exchange(len);
                self.emit_recv(*from, piece as u32, slot);
                let ranges = transfer.ranges(piece);
                match action {
                    Action::Reduce => self.emit_fold(piece as u32, &[(slot, ranges)], 0),
                    Action::Copy => {
                        let into: Vec<_> = ranges.iter().map(|r| self.space.region(r)).collect();
                        self.emit_copy(piece as u32, pair_up(&[slot], &into));
                        ranges.iter().for_each(|range| self.space.written(range));
                    }
                }
            }
        }
        Ok(())
    }

    /// The highest piece number of this step's sends that read any of `ranges`.
    fn still_sent(&self, ranges: &[Range<u64>]) -> Option<u32> {
        let last = |range| {
            let (place, range) = self.space.place(range);
            self.graph.last_piece_reading(place, range, &self.sending)
        };
        ranges.iter().filter_map(last).max()
    }

    /// Staging for a message that is to leave it when the sends up to piece `still_sent`
    /// have gone.
    fn landing(&mut self, transfer: &Transfer, piece: usize, still_sent: Option<u32>) -> Region {
        let len = transfer.pieces[piece].end - transfer.pieces[piece].start;
        match still_sent {
            Some(last) if last as usize > piece => self.staging.exchange(len),
            _ => self.staging.land(len),
        }
    }

    /// True if receives of different groups never write the same bytes.
    fn disjoint(&self, step: &Step, groups: &[Vec<usize>]) -> bool {
        let runs = |group: &Vec<usize>| step.recvs[group[0]].blocks.clone();
        let mut ranges: Vec<Range<u64>> = groups
            .iter()
            .flat_map(|group| {
                runs(group).iter().map(|&run| self.space.bytes(run)).collect::<Vec<_>>()
            })
            .filter(|range| !range.is_empty())
            .collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.windows(2).all(|pair| pair[0].end <= pair[1].start)
    }

    fn emit_outputs(&mut self) {
        let mut batch = Vec::new();
        let mut batch_bytes = 0;
        for (mut from, mut into) in self.space.outputs() {
            while from.len > 0 {
                let len = from.len.min(OUTPUT_COPY_BYTES - batch_bytes);
                batch.push((Region { len, ..from }, Region { len, ..into }));
                batch_bytes += len;
                for rest in [&mut from, &mut into] {
                    rest.offset += len;
                    rest.len -= len;
                }
                if batch_bytes == OUTPUT_COPY_BYTES {
                    self.emit_copy(0, std::mem::take(&mut batch));
                    batch_bytes = 0;
                }
            }
        }
        if !batch.is_empty() {
            self.emit_copy(0, batch);
        }
    }

    /// How far into each buffer the tasks reach. The folds' targets are never in staging.
    fn needs(&self) -> [u64; Buffer::COUNT] {
        let mut needs = [0; Buffer::COUNT];
        let mut note = |region: Region| {
            let need = &mut needs[region.buffer as usize];
            *need = region.range().end.max(*need);
        };
        for task in &self.graph.tasks {
            match task {
                Task::Send { from: region, .. } | Task::Recv { into: region, .. } => note(*region),
                Task::Copy(_) | Task::Fold(_) => {}
            }
        }
        self.moves.iter().for_each(|copy| {
            note(copy.from);
            note(copy.into);
        });
        self.folds.iter().for_each(|fold| note(fold.into));
        self.operands.iter().copied().for_each(note);
        needs
    }

    fn finish(mut self, recv_window: u32) -> PortProgram {
        let staging = &self.staging;
        let place = |region: &mut Region| {
            if region.buffer == Buffer::Staging {
                region.offset = staging.place(region.offset);
            }
        };
        for task in &mut self.graph.tasks {
            match task {
                Task::Send { from: region, .. } | Task::Recv { into: region, .. } => place(region),
                Task::Copy(_) | Task::Fold(_) => {}
            }
        }
        for copy in &mut self.moves {
            place(&mut copy.from);
            place(&mut copy.into);
        }
        self.operands.iter_mut().for_each(place);
        let needs = self.needs();
        let successors = self.graph.successors();
        PortProgram {
            tasks: self.graph.tasks.into(),
            steps: self.graph.steps.into(),
            n_deps: successors.n_deps,
            successor_start: successors.start,
            successors: successors.tasks,
            recvs: self.recvs.into(),
            moves: self.moves.into(),
            folds: self.folds.into(),
            operands: self.operands.into(),
            needs,
            wire_bytes: self.wire_bytes,
            recv_window,
        }
    }
}

impl Region {
    fn place(self) -> Place {
        Place::In(self.buffer)
    }
}
