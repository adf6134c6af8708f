//! The places in memory of the positions of a lane's working space.
//!
//! The working space of a vector is in the user's receive buffer. So is that of blocks, if the plan's positions are
//! the user's blocks in order. All other working spaces are in a working buffer of the operation. Nothing is copied
//! in advance: until a position is first written, its value stays at its *origin*, the user's input, where tasks read
//! it. So the first reduction into a position also moves it, and an exchange of blocks needs no copy.

mod outputs;

use std::ops::Range;

use hopbine_torus::collectives::{Collective, Payload, Share};
use hopbine_torus::plan::layout::{Counts, Extent};
use hopbine_torus::plan::{Lane, Plan, Run, Step};
use hopbine_torus::{Block, LaneId, Position, Rank};

use smallvec::SmallVec;

use super::checked::{CheckedPlan, LaneFacts};
use super::geometry::{Geometry, Staged};
use super::graph::Tracked;
use super::intervals::IntervalMap;
use super::passing::{Passing, positions};
use super::program::{Buffer, Region};
use super::regions::{Regions, push_joined};

/// The memory for working spaces.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SpaceMemory {
    /// The user's output if its order is that of the space, else working memory.
    Output,
    /// Working memory: no message that needs registered memory is in the user's memory.
    Work(Staged),
}

/// The working space of one lane.
#[derive(Debug)]
pub(crate) struct WorkingSpace<'a> {
    plan: &'a Plan,
    lane: &'a Lane,
    geometry: &'a Geometry,
    memory: SpaceMemory,
    extent: Extent,
    /// Start of the space; `None` for tokens, which take no memory.
    base: Option<(Buffer, u64)>,
    /// For bytes of the space that have not been written: the buffer with their value, and the difference (modulo
    /// 2^64) between the offset in that buffer and the offset in the space.
    origin: IntervalMap<(Buffer, u64)>,
    /// Facts about the lane that follow from the plan.
    facts: &'a LaneFacts,
    /// By position, the elements of the block that is there now, if that may be shorter than the position's room.
    lens: Vec<u64>,
    /// The blocks that pass through this rank, if their lengths had to be learnt.
    passing: Option<Passing<'a>>,
}

impl<'a> WorkingSpace<'a> {
    /// The space of lane `id` of `plan`.
    pub(crate) fn new(
        plan: &'a CheckedPlan,
        id: LaneId,
        geometry: &'a Geometry,
        memory: SpaceMemory,
    ) -> Self {
        let lane = &plan.lanes[id.index()];
        let [given, gotten] = geometry.sizes.counts();
        let mut extent = Extent::new(lane, plan.rank, &given, &gotten);
        let base = match lane.space.payload {
            Payload::Token => None,
            _ => {
                let is_free = matches!(memory, SpaceMemory::Output);
                let output = in_output(plan, lane, geometry, &extent).filter(|_| is_free);
                Some(output.unwrap_or((Buffer::Work, 0)))
            }
        };
        let lens = match extent.has_slack() {
            true => {
                let len = |at| len_at(lane, plan.rank, &extent, &given, at, false);
                (0..lane.space.n_positions).map(len).collect()
            }
            false => Vec::new(),
        };
        let passing = geometry.sizes.learnt().map(|learnt| {
            let part = |&count: &u64| {
                let part = extent.part_of(count);
                part.end - part.start
            };
            let keeps = matches!(memory, SpaceMemory::Work(_))
                || input_buffer(plan, geometry) == Buffer::Recv;
            Passing::new(lane, learnt.received[id.index()].iter().map(part), keeps)
        });
        if let Some(passing) = &passing {
            extent = extent.for_passing(&passing.longest(lens.clone()));
        }
        let mut space = WorkingSpace {
            plan,
            lane,
            geometry,
            memory,
            extent,
            base,
            origin: IntervalMap::new(),
            facts: plan.facts(id),
            lens,
            passing,
        };
        space.find_origins();
        space
    }

    /// Bytes of working memory for the space, unless it is in the user's memory.
    pub(crate) fn work_bytes(&self) -> u64 {
        let elements = self.passing.as_ref().map_or_else(|| self.extent.len(), Passing::capacity);
        elements * self.geometry.elem_bytes
    }

    /// Identifies the working memory of the space: lanes with the same part share it, except that every lane has its
    /// own for blocks that pass.
    pub(crate) fn memory_id(&self, id: LaneId) -> usize {
        if self.passing.is_some() { id.index() } else { self.lane.part.start as usize }
    }

    /// Sets the start of the space in the working buffer, if it is there.
    pub(crate) fn place_at(&mut self, work_base: u64) {
        if let Some((Buffer::Work, base)) = &mut self.base {
            *base = work_base;
        }
    }

    /// Notes that the data which a step receives are in their positions.
    pub(crate) fn receive(&mut self, step: &Step) {
        if self.lens.is_empty() {
            return;
        }
        let [_, gotten] = self.geometry.sizes.counts();
        for position in positions(&step.recvs) {
            self.lens[position as usize] = match &mut self.passing {
                Some(passing) => passing.receive(position),
                None => len_at(self.lane, self.plan.rank, &self.extent, &gotten, position, true),
            };
        }
    }

    /// The bytes of the space in which `run` has its room; for tokens, one virtual byte per position.
    pub(crate) fn bytes(&self, run: Run) -> Range<u64> {
        match self.base {
            None => u64::from(run.start)..u64::from(run.end()),
            Some(_) => self.scaled(self.extent.elements(run)),
        }
    }

    fn scaled(&self, elements: Range<u64>) -> Range<u64> {
        let size = self.geometry.elem_bytes;
        elements.start * size..elements.end * size
    }

    /// The bytes of the space that the data in `run` fill.
    pub(crate) fn filled(&self, run: Run) -> SmallVec<[Range<u64>; 1]> {
        match self.base {
            None => SmallVec::from_elem(self.bytes(run), 1),
            Some(_) => {
                let used = self.extent.used_elements(run, &self.lens);
                used.into_iter().map(|elements| self.scaled(elements)).collect()
            }
        }
    }

    /// The bytes that the data in `run` fill, cut into units for messages
    /// ([`Space::sends_by_position`](hopbine_torus::plan::Space::sends_by_position)).
    pub(crate) fn units(&self, run: Run) -> SmallVec<[Range<u64>; 1]> {
        let Lane { space, part, .. } = self.lane;
        match space.sends_by_position(*part, self.plan.collective) {
            true => (run.start..run.end()).flat_map(|at| self.filled(Run::new(at, 1))).collect(),
            false => self.filled(run),
        }
    }

    /// Whether a message from one region is packed nevertheless.
    pub(crate) fn packs(&self, from: Region) -> bool {
        matches!(self.memory, SpaceMemory::Work(staged) if staged.packs(from))
    }

    /// True if positions have no bytes.
    pub(crate) fn is_token(&self) -> bool {
        self.base.is_none()
    }

    /// The range in which hazards on bytes of the space are tracked.
    pub(crate) fn tracked(&self, range: &Range<u64>) -> (Tracked, Range<u64>) {
        match self.base {
            None => (Tracked::Tokens, range.clone()),
            Some((buffer, base)) => (Tracked::In(buffer), base + range.start..base + range.end),
        }
    }

    /// The region that holds `range` of the space once it has been written.
    pub(crate) fn region(&self, range: &Range<u64>) -> Region {
        let (buffer, base) = self.base.unwrap_or((Buffer::Work, 0));
        Region { buffer, offset: base + range.start, len: range.end - range.start }
    }

    /// The regions that hold the value of `range` now, in order.
    pub(crate) fn sources(&self, range: &Range<u64>) -> Regions {
        let mut regions = Regions::new();
        let mut at = range.start;
        for (part, &(buffer, delta)) in self.origin.within(range.clone()) {
            if part.start > at {
                push_joined(&mut regions, self.region(&(at..part.start)));
            }
            let offset = part.start.wrapping_add(delta);
            push_joined(&mut regions, Region { buffer, offset, len: part.end - part.start });
            at = part.end;
        }
        if at < range.end {
            push_joined(&mut regions, self.region(&(at..range.end)));
        }
        regions
    }

    /// Notes that `range` has been written.
    pub(crate) fn written(&mut self, range: &Range<u64>) {
        self.origin.clear(range.clone());
    }

    /// The region to store `range` in: the slot of a block that passes, or its place in the user's output if that is
    /// contiguous and holds no input, or its place in the space.
    pub(crate) fn target(&self, range: &Range<u64>) -> Region {
        let len = range.end - range.start;
        match (self.passing_offset(range), self.final_offset(range)) {
            (Some(offset), _) => Region { buffer: Buffer::Work, offset, len },
            (None, Some(offset)) => Region { buffer: Buffer::Recv, offset, len },
            (None, None) => self.region(range),
        }
    }

    /// Offset in the working buffer of bytes of a block that passes.
    fn passing_offset(&self, range: &Range<u64>) -> Option<u64> {
        let (passing, (_, base)) = (self.passing.as_ref()?, self.base?);
        let size = self.geometry.elem_bytes;
        let position = self.extent.positions(&(range.start / size..range.end.div_ceil(size))).start;
        let within = range.start - self.bytes(Run::new(position, 1)).start;
        Some(base + passing.slot_start(position)? * size + within)
    }

    /// Notes that `range` has been stored in `target`, which [`target`](WorkingSpace::target) has returned: later
    /// tasks read it there.
    pub(crate) fn stored(&mut self, range: &Range<u64>, target: Region) {
        if target == self.region(range) {
            return self.written(range);
        }
        let delta = target.offset.wrapping_sub(range.start);
        self.origin.set(range.clone(), (target.buffer, delta));
    }

    /// Offset in the user's output of `range`, if its positions are adjacent there, the space is elsewhere, and the
    /// output holds no input. (Input that is only the rank's own block is allowed: the rank does not receive that
    /// block.)
    fn final_offset(&self, range: &Range<u64>) -> Option<u64> {
        let Lane { space, .. } = self.lane;
        let is_apart = matches!(self.memory, SpaceMemory::Output)
            && matches!(self.base, Some((Buffer::Work, _)))
            && (input_buffer(self.plan, self.geometry) == Buffer::Send
                || gives(self.plan) == Share::Own);
        let share = gets(self.plan);
        if !is_apart
            || space.payload == Payload::Vector
            || share == Share::Nothing
            || range.is_empty()
        {
            return None;
        }
        let size = self.geometry.elem_bytes;
        // From the element of the first byte to that of the last byte.
        let elements = range.start / size..range.end.div_ceil(size);
        let positions = self.extent.positions(&elements);
        let owns =
            |owned: &Range<u32>| owned.start <= positions.start && positions.end <= owned.end;
        let LaneFacts { owned, gets, .. } = self.facts;
        if positions.is_empty() || !(owned.iter().any(owns) && gets.iter().any(owns)) {
            return None;
        }
        let first = self.bytes(Run::new(positions.start, 1));
        let start = self.output_offset(share, positions.start)?;
        let in_order = positions.clone().all(|position| {
            let bytes = self.bytes(Run::new(position, 1));
            let offset = Some(start + (bytes.start - first.start));
            bytes.is_empty() || self.output_offset(share, position) == offset
        });
        in_order.then(|| start + (range.start - first.start))
    }

    /// Offset in bytes of this lane's part of a block, from the start of one of the user's buffers.
    fn block_offset(&self, buffer: Buffer, block: Block) -> u64 {
        let (count, offset) = self.geometry.sizes.block(buffer, block);
        (offset + self.extent.part_of(count).start) * self.geometry.elem_bytes
    }

    /// Offset in bytes of this lane's part of the user's vector.
    fn part_offset(&self) -> u64 {
        self.block_offset(Buffer::Recv, Block(0))
    }

    fn find_origins(&mut self) {
        let Some((buffer, base)) = self.base else { return };
        let input = input_buffer(self.plan, self.geometry);
        let rank = self.plan.rank;
        let space = &self.lane.space;
        let share = gives(self.plan);
        let mut origins = Vec::new();
        match share {
            Share::Nothing => {}
            _ if space.payload == Payload::Vector => {
                origins.push((self.bytes(Run::new(0, space.n_positions)), self.part_offset()));
            }
            Share::All
                if !space.is_noncontiguous(self.lane.part)
                    && self.geometry.sizes.are_adjacent(input) =>
            {
                let all = self.bytes(Run::new(0, space.n_positions));
                origins.push((all, 0));
            }
            Share::All => {
                for at in 0..space.n_positions {
                    let block = space.block_at_start(rank, Position(at));
                    let Some(block) = block else { continue };
                    let offset = self.block_offset(input, block);
                    let ranges = self.filled(Run::new(at, 1));
                    origins.extend(ranges.into_iter().map(|range| (range, offset)));
                }
            }
            Share::Own => {
                let range = self.bytes(Run::single(space.position_of(rank)));
                let offset = self.block_offset(input, Block(rank.0));
                // In place, the rank's own block is at its place among the other blocks.
                let first = self.geometry.sizes.block(input, Block(rank.0)).1;
                let apart = if input == Buffer::Recv { 0 } else { first };
                origins.push((range, offset - apart * self.geometry.elem_bytes));
            }
        }
        for (range, offset) in origins {
            if (input, offset) != (buffer, base + range.start) {
                let delta = offset.wrapping_sub(range.start);
                self.origin.set(range, (input, delta));
            }
        }
    }
}

/// Elements of the lane's part of the block in a position, at the start or in the end.
fn len_at(lane: &Lane, rank: Rank, extent: &Extent, counts: &Counts, at: u32, at_end: bool) -> u64 {
    let block = match at_end {
        false => lane.space.block_at_start(rank, Position(at)),
        true => lane.space.block_at_end(rank, Position(at)),
    };
    // A position for which this rank has no block, as in a leader's space of other ranks' blocks.
    let Some(block) = block else { return 0 };
    let part = extent.part_of(counts.of(block));
    part.end - part.start
}

/// What the rank has at the start.
fn gives(plan: &Plan) -> Share {
    plan.collective.gives(plan.rank, plan.root, plan.n_ranks)
}

/// What the rank has in the end.
fn gets(plan: &Plan) -> Share {
    plan.collective.gets(plan.rank, plan.root, plan.n_ranks)
}

/// The buffer with the user's input.
fn input_buffer(plan: &Plan, geometry: &Geometry) -> Buffer {
    match plan.collective {
        Collective::Bcast => Buffer::Recv,
        // A scatter's root has its input in the send buffer also when its output stays there.
        Collective::Scatter => Buffer::Send,
        _ if geometry.in_place => Buffer::Recv,
        _ => Buffer::Send,
    }
}

/// The place in the user's output that can be the working space, if there is one.
fn in_output(
    plan: &Plan,
    lane: &Lane,
    geometry: &Geometry,
    extent: &Extent,
) -> Option<(Buffer, u64)> {
    let gets_all = gets(plan) == Share::All;
    let is_vector = lane.space.payload == Payload::Vector;
    let in_order =
        !lane.space.is_noncontiguous(lane.part) && geometry.sizes.are_adjacent(Buffer::Recv);
    let (count, _) = geometry.sizes.block(Buffer::Recv, Block(0));
    let start = if is_vector { extent.part_of(count).start * geometry.elem_bytes } else { 0 };
    (gets_all && (is_vector || in_order)).then_some((Buffer::Recv, start))
}
