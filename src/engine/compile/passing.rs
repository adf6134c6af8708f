//! Blocks that pass through a rank on their way between other ranks: their lengths, and their places meanwhile.
//!
//! Only these blocks need memory here. The rank reads blocks that it gives from the user's input, and stores blocks
//! that it gets in the user's output. A position has a slot for the longest block that passes through it. In Bruck's
//! all-to-all with radix r over p ranks, in K rounds, p - 1 - K positions have a slot (Fan et al. 2025, section 3.3).

use hopbine_torus::plan::{Lane, Transfer};

/// The blocks that pass through a lane.
#[derive(Debug)]
pub(crate) struct Passing<'a> {
    /// The blocks that the lane receives, position by position in the order of its steps: length in elements, and
    /// whether the block needs a slot here.
    received: Vec<(u64, bool)>,
    next: usize,
    /// By position, the start of its slot in elements; the last entry is the end of the last slot.
    slot_starts: Box<[u64]>,
    /// By position, whether the block there is in the position's slot.
    in_slot: Vec<bool>,
    lane: &'a Lane,
}

impl<'a> Passing<'a> {
    /// The blocks that pass through `lane`, which receives blocks of `lens` elements. With `keeps`, blocks that stay
    /// have slots too.
    pub(crate) fn new(lane: &'a Lane, lens: impl Iterator<Item = u64>, keeps: bool) -> Self {
        let n_positions = lane.space.n_positions as usize;
        let mut received: Vec<(u64, bool)> = lens.map(|len| (len, keeps)).collect();
        // Backwards: a received block is sent on if its position is sent later.
        let mut is_sent = vec![false; n_positions];
        let mut most = vec![0; n_positions];
        let mut at = received.len();
        for step in lane.steps.iter().rev() {
            let arriving: Vec<u32> = positions(&step.recvs).collect();
            at -= arriving.len();
            for (&position, (len, needs_slot)) in arriving.iter().zip(&mut received[at..]) {
                let position = position as usize;
                *needs_slot |= std::mem::take(&mut is_sent[position]);
                if *needs_slot {
                    most[position] = (*len).max(most[position]);
                }
            }
            positions(&step.sends).for_each(|position| is_sent[position as usize] = true);
        }
        let mut end = 0;
        let slot_starts = std::iter::once(0).chain(most.into_iter().map(|len| (end += len, end).1));
        Passing {
            received,
            next: 0,
            slot_starts: slot_starts.collect(),
            in_slot: vec![false; n_positions],
            lane,
        }
    }

    /// Elements of all slots together.
    pub(crate) fn capacity(&self) -> u64 {
        self.slot_starts[self.lane.space.n_positions as usize]
    }

    /// Notes that the next block arrives, in `position`. Returns its length.
    pub(crate) fn receive(&mut self, position: u32) -> u64 {
        let (len, in_slot) = self.received[self.next];
        self.next += 1;
        self.in_slot[position as usize] = in_slot;
        len
    }

    /// The length of the longest block ever in each position; at the start the blocks have `lens` elements.
    pub(crate) fn longest(&self, mut lens: Vec<u64>) -> Vec<u64> {
        let all = self.lane.steps.iter().flat_map(|step| positions(&step.recvs));
        for (position, (len, _)) in all.zip(&self.received) {
            let longest = &mut lens[position as usize];
            *longest = (*len).max(*longest);
        }
        lens
    }

    /// The start of the slot of `position`, if the block there is in its slot.
    pub(crate) fn slot_start(&self, position: u32) -> Option<u64> {
        self.in_slot[position as usize].then(|| self.slot_starts[position as usize])
    }
}

/// The positions of some transfers, one by one.
pub fn positions(transfers: &[Transfer]) -> impl Iterator<Item = u32> + '_ {
    transfers.iter().flat_map(|transfer| &transfer.runs).flat_map(|run| run.start..run.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopbine_torus::geometry::{RankMap, Shape};
    use hopbine_torus::plan::Flow;
    use hopbine_torus::{Collective, Position, Rank, Request, registry};

    /// Fan et al. 2025, section 3.3: room for p - (K + 1) blocks. The block at displacement o is in place o - 1 - dx
    /// (r - 1) - dz, where dx and dz are the place and the value of o's first digit.
    #[test]
    fn room_is_that_of_the_papers_formula() {
        for p in 2..40u32 {
            for r in 2..=p {
                let shape = Shape::torus(&[p]).unwrap();
                let request =
                    Request { shape, map: RankMap::RowMajor, root: Rank(0), ports: Some(1) };
                let algorithm = registry::find(Collective::Alltoall, &format!("bruck:{r}"));
                let schedule = algorithm.unwrap().schedule(&request).unwrap();
                let plan = schedule.expand().unwrap().plan(Rank(0));
                let lane = &plan.lanes[0];
                let received = lane.steps.iter().map(|step| positions(&step.recvs).count()).sum();
                let passing = Passing::new(lane, std::iter::repeat_n(1, received), false);
                let powers = || std::iter::successors(Some(1), |power| Some(power * r));
                let rounds = powers().take_while(|&power| power < p);
                let n_rounds: u32 =
                    rounds.map(|power| (1..r).filter(|z| z * power < p).count() as u32).sum();
                let what = format!("p = {p}, r = {r}");
                assert_eq!(passing.capacity(), u64::from(p - (n_rounds + 1)), "{what}");
                let messages: usize = lane.steps.iter().map(|step| step.sends.len()).sum();
                assert_eq!(messages, n_rounds as usize, "{what}");
                // The displacements of positions with slots, in order.
                let displaced = |position| lane.space.block_at_start(Rank(0), position).unwrap().0;
                let has_slot = |at: u32| {
                    passing.slot_starts[at as usize + 1] > passing.slot_starts[at as usize]
                };
                let mut with_slot: Vec<u32> =
                    (0..p).filter(|&at| has_slot(at)).map(|at| displaced(Position(at))).collect();
                with_slot.sort_unstable();
                for (place, o) in with_slot.into_iter().enumerate() {
                    let dx = o.ilog(r);
                    let dz = o / r.pow(dx);
                    assert_eq!(place as u32, o - 1 - dx * (r - 1) - dz, "{what}, o = {o}");
                }
            }
        }
    }
}
