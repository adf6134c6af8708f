//! Receives: where messages are received, and how they are stored or folded.

use std::ops::Range;

use hopbine_torus::Rank;
use hopbine_torus::collectives::Action;
use hopbine_torus::plan::Step;

use super::{EMPTY_REGION, PortCompiler, TrackedRanges};
use crate::engine::compile::graph::Tracked;
use crate::engine::compile::program::{Fold, ListRange, Region, Task};
use crate::engine::compile::regions::Regions;
use crate::engine::compile::transfer::{CutTransfer, groups, pair_up};
use smallvec::SmallVec;

/// First of the virtual bytes that link the receive of a token to the task that notes it; positions are 32-bit
/// numbers and stay below.
const LINKS: u64 = 1 << 32;

impl PortCompiler<'_> {
    /// Emits the receives of a step, and the tasks that store or fold the messages.
    pub(crate) fn emit_recvs(&mut self, step: &Step) {
        if self.space().is_token() {
            // The message has no bytes. A separate task notes its arrival, because only that task may have to wait
            // for this step's sends.
            for recv in &step.recvs {
                let transfer = self.transfer(recv);
                self.port = recv.port;
                self.emit_token(recv.peer, &transfer.ranges(0));
            }
            return;
        }
        self.space_mut().receive(step);
        let groups = groups(step);
        let transfers: Vec<Vec<CutTransfer>> = groups
            .iter()
            .map(|group| {
                let of = |&index: &usize| &step.recvs[index];
                group.iter().map(of).map(|recv| self.transfer(recv)).collect()
            })
            .collect();
        // Piece by piece across all transfers, so that a message waits only for messages with smaller piece numbers
        // to leave staging.
        let most = transfers.iter().map(|group| group[0].pieces.len()).max().unwrap_or(0);
        for piece in 0..most {
            for transfers in &transfers {
                if piece >= transfers[0].pieces.len() {
                    continue;
                }
                match step.action {
                    Action::Copy => self.emit_stored(&transfers[0], piece),
                    Action::Reduce => self.emit_folded(transfers, piece, step.own_at),
                }
            }
        }
    }

    fn emit_token(&mut self, from: Rank, ranges: &[Range<u64>]) {
        // A virtual byte of its own links the receive to the task that notes it.
        let link = LINKS + u64::from(self.graph.len());
        let link = (Tracked::Tokens, link..link + 1);
        let message = self.next_message(from, false);
        let recv = Task::Recv { from: from.0, message, into: EMPTY_REGION };
        self.emit_message(0, recv, &[], std::slice::from_ref(&link));
        let noted: Vec<_> = ranges.iter().map(|range| self.space().tracked(range)).collect();
        self.emit_noop(&[link], &noted);
    }

    fn emit_stored(&mut self, transfer: &CutTransfer, piece: usize) {
        self.port = transfer.port;
        let ranges = transfer.ranges(piece);
        let level = piece as u32;
        if ranges.is_empty() {
            self.emit_recv(transfer.peer, level, EMPTY_REGION);
            return;
        }
        let targets: Regions = ranges.iter().map(|range| self.space().target(range)).collect();
        let still_sent = self.still_read(&targets);
        if let ([target], None) = (&targets[..], still_sent) {
            self.emit_recv(transfer.peer, level, *target);
        } else {
            let slot = self.recv_slot(transfer, piece, still_sent);
            self.emit_recv(transfer.peer, level, slot);
            self.emit_copy(level, &pair_up(&[slot], &targets));
        }
        for (range, target) in ranges.iter().zip(targets) {
            self.space_mut().stored(range, target);
        }
    }

    fn emit_folded(&mut self, transfers: &[CutTransfer], piece: usize, own_at: u32) {
        self.port = transfers[0].port;
        let ranges = transfers[0].ranges(piece);
        let targets: Regions = ranges.iter().map(|range| self.space().target(range)).collect();
        let still_sent = self.still_read(&targets);
        if let ([transfer], [range], [target], None) =
            (transfers, &ranges[..], &targets[..], still_sent)
            && let [own] = self.space().sources(range)[..]
            && own.buffer != target.buffer
        {
            return self.emit_folded_in_place(transfer.peer, piece, (range, own, *target), own_at);
        }
        // Each port folds the messages that it receives, one port after the other: the result has the same bits.
        if own_at == 0 && transfers.iter().any(|transfer| transfer.port != self.port) {
            for transfer in transfers {
                self.emit_folded(std::slice::from_ref(transfer), piece, 0);
            }
            return;
        }
        let mut received = Regions::new();
        for transfer in transfers {
            let slot = self.recv_slot(transfer, piece, still_sent);
            self.emit_recv(transfer.peer, piece as u32, slot);
            received.push(slot);
        }
        self.emit_fold(piece as u32, &ranges, &received, own_at);
    }

    /// Emits a receive into the fold's target, which holds nothing yet: the rank's own value is elsewhere.
    fn emit_folded_in_place(
        &mut self,
        peer: Rank,
        piece: usize,
        (range, own, target): (&Range<u64>, Region, Region),
        own_at: u32,
    ) {
        let piece = piece as u32;
        self.emit_recv(peer, piece, target);
        let lists = &mut self.lists;
        let span = ListRange { start: lists.folds.len() as u32, len: 1 };
        let operands = ListRange { start: lists.operands.len() as u32, len: 1 };
        lists.operands.push(own);
        // The target holds the message, which is on the other side of the own value.
        lists.folds.push(Fold { into: target, operands, own_at: Some(1 - own_at) });
        let reads = [own.tracked(), target.tracked()];
        self.graph.emit(self.at(piece), Task::Fold(span), &reads, &reads[1..]);
        self.space_mut().stored(range, target);
    }

    /// Emits the fold of messages for `ranges`, which have been received in staging, with the values of the space.
    fn emit_fold(&mut self, piece: u32, ranges: &[Range<u64>], received: &[Region], own_at: u32) {
        let first = self.lists.folds.len();
        let (mut reads, mut writes) = (TrackedRanges::new(), TrackedRanges::new());
        let mut stored: SmallVec<[(Range<u64>, Region); 2]> = SmallVec::new();
        let mut packed = 0;
        for range in ranges {
            let mut into = range.start;
            for own in self.space().sources(range) {
                let part = into..into + own.len;
                let target = self.space().target(&part);
                let start = self.lists.operands.len() as u32;
                for (index, slot) in received.iter().enumerate() {
                    if index == own_at as usize && own != target {
                        self.lists.operands.push(own);
                    }
                    let offset = slot.offset + packed;
                    self.lists.operands.push(Region { offset, len: own.len, ..*slot });
                }
                if own_at as usize == received.len() && own != target {
                    self.lists.operands.push(own);
                }
                let len = self.lists.operands.len() as u32 - start;
                let operands = ListRange { start, len };
                let own_at = (own == target).then_some(own_at);
                self.lists.folds.push(Fold { into: target, operands, own_at });
                reads.push(own.tracked());
                writes.push(target.tracked());
                packed += own.len;
                into = part.end;
                stored.push((part, target));
            }
        }
        reads.extend(received.iter().map(|slot| slot.tracked()));
        let span = ListRange { start: first as u32, len: (self.lists.folds.len() - first) as u32 };
        self.graph.emit(self.at(piece), Task::Fold(span), &reads, &writes);
        for (part, target) in stored {
            self.space_mut().stored(&part, target);
        }
    }

    /// The highest piece number of this step's sends that read any of these bytes.
    fn still_read(&self, regions: &[Region]) -> Option<u32> {
        let last = |region: &Region| self.graph.last_piece_reading(region.tracked(), &self.sending);
        regions.iter().filter_map(last).max()
    }

    /// Allocates staging for a message that can leave it when the sends up to piece `still_sent` have finished.
    fn recv_slot(
        &mut self,
        transfer: &CutTransfer,
        piece: usize,
        still_sent: Option<u32>,
    ) -> Region {
        let len = transfer.pieces[piece].end - transfer.pieces[piece].start;
        match still_sent {
            Some(last) if last as usize > piece => self.staging().exchange(len),
            _ => self.staging().receive(len),
        }
    }
}
