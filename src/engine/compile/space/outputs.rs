//! The copies to the user's output after the last step of a plan.

use std::ops::Range;

use hopbine_torus::collectives::{Collective, Payload, Share};
use hopbine_torus::plan::{Plan, Run};
use hopbine_torus::{Block, Position};

use super::{WorkingSpace, gets, input_buffer};
use crate::engine::compile::checked::LaneFacts;
use crate::engine::compile::program::{Buffer, Region};
use crate::engine::compile::regions::continues;

impl WorkingSpace<'_> {
    /// Whether the final copies must also wait for the other ports: another lane may still have to read the input
    /// that the user's buffer holds there. They need not wait if every lane's part of the input is at the place of
    /// its part of the output.
    pub(crate) fn waits_for_others(&self) -> bool {
        // A rank's own block goes to the start of the buffer, which is another block's place.
        let stays = self.lane.space.is_identity() && gets(self.plan) != Share::Own;
        let is_own_part = self.geometry.sizes.are_equal() && (stays || !self.facts.is_shared);
        let is_alone = self.plan.lanes.iter().all(|lane| lane.port == self.lane.port);
        let is_in_place = input_buffer(self.plan, self.geometry) == Buffer::Recv;
        is_in_place && !is_alone && !is_own_part
    }

    /// The final copies that complete the user's output: pairs of source and destination, joined if both are
    /// adjacent.
    pub(crate) fn outputs(&self) -> Vec<(Region, Region)> {
        let mut copies: Vec<(Region, Region)> = Vec::new();
        if self.is_token() {
            return copies;
        }
        let share = gets(self.plan);
        let LaneFacts { owned, gets, .. } = self.facts;
        let all = owned.iter().flat_map(|owned| gets.iter().map(move |gets| (owned, gets)));
        for (owned, gets) in all {
            let positions = owned.start.max(gets.start)..owned.end.min(gets.end);
            if positions.is_empty() {
                continue;
            }
            if self.lane.space.payload == Payload::Vector {
                let range = self.bytes(Run::new(positions.start, positions.len() as u32));
                self.push_output(&range, self.part_offset() + range.start, &mut copies);
                continue;
            }
            for position in positions {
                if let Some(offset) = self.output_offset(share, position) {
                    for range in self.filled(Run::new(position, 1)) {
                        self.push_output(&range, offset, &mut copies);
                    }
                }
            }
        }
        copies
    }

    fn push_output(&self, range: &Range<u64>, offset: u64, copies: &mut Vec<(Region, Region)>) {
        let mut offset = offset;
        for from in self.sources(range) {
            let into = Region { buffer: Buffer::Recv, offset, len: from.len };
            offset += from.len;
            if from == into || from.len == 0 {
                continue;
            }
            match copies.last_mut() {
                Some((last_from, last_into))
                    if continues(last_from, &from) && continues(last_into, &into) =>
                {
                    last_from.len += from.len;
                    last_into.len += into.len;
                }
                _ => copies.push((from, into)),
            }
        }
    }

    /// Offset in the user's output of a position in a space of blocks.
    pub(crate) fn output_offset(&self, share: Share, position: u32) -> Option<u64> {
        let Plan { collective, rank, .. } = *self.plan;
        match share {
            // In place, a scatter's root leaves its block where it is.
            _ if self.geometry.in_place && collective == Collective::Scatter => None,
            Share::Own => {
                let (count, _) = self.geometry.sizes.block(Buffer::Recv, Block(rank.0));
                Some(self.extent.part_of(count).start * self.geometry.elem_bytes)
            }
            _ => {
                let block = self.lane.space.block_at_end(rank, Position(position))?;
                Some(self.block_offset(Buffer::Recv, block))
            }
        }
    }
}
