//! Flat-buffer calls in groups of ranks, for hosts with many cores: the cores of a group share a cache or a memory,
//! and a line takes longer to arrive from another group.
//!
//! The first rank of each group, its leader, reads the contributions of the group and writes their fold. The leaders
//! read these folds of all groups and write the result, which the other ranks read. So a leader fetches the lines of
//! its group and one fold per other group, and another rank only one result, instead of the lines of all ranks. The
//! call has a number of the flat buffer as any other call, and the same condition frees its places.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::flat_buffer::{FlatBuffer, INLINE_BYTES};
use super::flat_call::{Contribution, Entered, HAS_READ, NUMBER_BIT};
use super::flat_groups::FlatGroups;
use super::layout::{DEPTH, GROUP_STRIDE, LINE};

/// The two values that a leader writes in a call in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderStage {
    /// The fold of the contributions of its group.
    Group,
    /// The result of all groups.
    All,
}

impl FlatBuffer {
    #[inline]
    fn groups(&self) -> &FlatGroups {
        self.groups.as_ref().expect("a call in groups is one of a flat buffer with groups")
    }

    /// Number of groups; 0 if the flat buffer has none.
    pub fn n_groups(&self) -> usize {
        self.groups.as_ref().map_or(0, |groups| groups.groups.len())
    }

    /// The ranks of a group, ascending; the first is the leader.
    ///
    /// # Panics
    /// If the group does not exist.
    pub fn ranks_of_group(&self, group: usize) -> &Arc<[usize]> {
        &self.groups().groups[group]
    }

    /// Index of this rank's group.
    ///
    /// # Panics
    /// If there are no groups.
    pub fn own_group(&self) -> usize {
        self.groups().own
    }

    /// The stamp of a leader for a stage of the call.
    #[inline]
    fn stage_word(&self, call: Entered, stage: LeaderStage, group: usize) -> &AtomicU64 {
        let place = place(call, stage);
        // SAFETY: an aligned word of the leader's part, which `segment` keeps mapped; all accesses to this word are
        // atomic.
        unsafe { AtomicU64::from_ptr(self.groups().parts[group].add(place).cast()) }
    }

    /// Where a group's leader writes `len` bytes of a stage, at most [`GROUP_BYTES`](super::GROUP_BYTES). If this
    /// rank is the leader and [`is_free`](FlatBuffer::is_free) for the call, no other rank reads or writes there
    /// before [`stage_is_there`](FlatBuffer::stage_is_there).
    #[inline]
    pub fn stage(&self, call: Entered, stage: LeaderStage, group: usize, len: usize) -> *mut u8 {
        let offset = place(call, stage) + if len <= INLINE_BYTES { 8 } else { LINE };
        // SAFETY: within the leader's part.
        unsafe { self.groups().parts[group].add(offset) }
    }

    /// Records that all ranks of a group, or for the last stage all ranks, have read the calls before this one.
    #[inline]
    fn note_read(&mut self, call: Entered, stage: LeaderStage, group: usize) {
        match (stage, &mut self.groups) {
            (LeaderStage::All, _) => self.all_read = self.all_read.max(call.number()),
            (LeaderStage::Group, Some(groups)) => groups.read[group] = call.number(),
            (LeaderStage::Group, None) => {}
        }
    }

    /// Marks the bytes of a stage as complete that this rank has written as its group's leader.
    #[inline]
    pub fn stage_is_there(&mut self, call: Entered, stage: LeaderStage) {
        let number = call.number();
        let FlatGroups { groups, own, read, .. } = self.groups();
        let (own, mut ranks) = (*own, groups[*own].iter().copied());
        let have_read = match stage {
            LeaderStage::Group => {
                self.own_read >= number
                    && ranks.all(|rank| rank == self.me || self.read[rank] >= number)
            }
            LeaderStage::All => read.iter().all(|&read| read >= number),
        };
        if have_read {
            self.note_read(call, stage, own);
        }
        let has_read = if have_read { HAS_READ } else { 0 };
        // Release: pairs with the Acquire in `of_stage`: orders the bytes, and what these ranks have read, before the
        // stamp.
        self.stage_word(call, stage, own).store(call.stamp() | has_read, Ordering::Release);
        self.ring();
    }

    /// Ends a failed call, to which ranks contribute `len` bytes: if a rank makes another call and this one leads its
    /// group, the ranks that wait for its stages learn of it, since the bytes will not come.
    #[cold]
    pub fn end_stages(&mut self, call: Entered, len: usize) {
        let own = self.own_group();
        if self.ranks_of_group(own)[0] != self.me || self.other_call(call, len).is_none() {
            return;
        }
        let differs = call.stamp() ^ u64::from(u16::MAX);
        for stage in [LeaderStage::Group, LeaderStage::All] {
            // Release: as in `stage_is_there`; orders the contributions that this rank has seen.
            self.stage_word(call, stage, own).store(differs, Ordering::Release);
        }
        self.ring();
    }

    /// The first rank that makes another call.
    #[cold]
    fn other_call(&mut self, call: Entered, len: usize) -> Option<usize> {
        let mut ranks = 0..self.n_ranks();
        ranks.find(|&rank| matches!(self.of(call, rank, len), Contribution::Other(_)))
    }

    /// The bytes that a group's leader has written for a stage of the call; `len` is their length.
    #[inline]
    pub fn of_stage(
        &mut self,
        call: Entered,
        stage: LeaderStage,
        group: usize,
        len: usize,
    ) -> Contribution {
        // Acquire: pairs with the Release in `stage_is_there`.
        let stamp = self.stage_word(call, stage, group).load(Ordering::Acquire);
        if stamp & !HAS_READ != call.stamp() {
            if stamp >> NUMBER_BIT != call.number() {
                return Contribution::Missing;
            }
            let leader = self.ranks_of_group(group)[0];
            return Contribution::Other(self.other_call(call, len).unwrap_or(leader));
        }
        if stamp & HAS_READ != 0 {
            self.note_read(call, stage, group);
        }
        #[cfg(test)]
        self.fetched(self.ranks_of_group(group)[0], len);
        Contribution::At(self.stage(call, stage, group, len))
    }
}

#[inline]
fn place(call: Entered, stage: LeaderStage) -> usize {
    ((call.number() % DEPTH) as usize * 2 + stage as usize) * GROUP_STRIDE
}

#[cfg(test)]
mod tests {
    use super::super::bulk::BulkPlaces;
    use super::super::layout::{GROUP_BYTES, ShmLayout};
    use super::super::segment::Segment;
    use super::*;

    fn flats(of: &[u32]) -> Vec<FlatBuffer> {
        let layout = ShmLayout { n_ranks: of.len(), n_ports: 0, flats_per_rank: 0 };
        let segment = Segment::create(layout.len(), 1).unwrap().0;
        let all: Vec<usize> = (0..of.len()).collect();
        let bulk = || BulkPlaces::new(&segment, layout);
        let flat = |me| FlatBuffer::new(&segment, layout, &bulk(), (0, &all), me, 0).in_groups(of);
        (0..of.len()).map(flat).collect()
    }

    /// Adds the bytes at `found` to `sum`.
    fn add(sum: &mut [u8], found: Contribution) {
        let Contribution::At(ptr) = found else { panic!("{found:?}") };
        for (at, byte) in sum.iter_mut().enumerate() {
            // SAFETY: the flat buffer says that the bytes are there.
            *byte = byte.wrapping_add(unsafe { ptr.add(at).read() });
        }
    }

    /// Writes `bytes` as a leader.
    fn write(flat: &mut FlatBuffer, call: Entered, stage: LeaderStage, bytes: &[u8]) {
        let into = flat.stage(call, stage, flat.own_group(), bytes.len());
        // SAFETY: there is room for the bytes, and no rank reads them yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), into, bytes.len()) };
        flat.stage_is_there(call, stage);
    }

    /// An allreduce in groups that adds bytes; runs all ranks one after the other.
    fn sum(flats: &mut [FlatBuffer], len: usize) -> Vec<Vec<u8>> {
        let calls: Vec<Entered> = flats.iter_mut().map(|flat| flat.enter(7)).collect();
        let (call, n_groups) = (calls[0], flats[0].n_groups());
        for (rank, flat) in flats.iter_mut().enumerate() {
            assert_eq!(flat.is_free(call), Ok(()));
            flat.contribute(call, &vec![rank as u8 + 1; len]);
        }
        let leads = |flat: &FlatBuffer| flat.ranks_of_group(flat.own_group())[0] == flat.me();
        for flat in flats.iter_mut().filter(|flat| leads(flat)) {
            assert_eq!(
                flat.of_stage(call, LeaderStage::All, flat.own_group(), len),
                Contribution::Missing
            );
            let mut folded = vec![0; len];
            for rank in flat.ranks_of_group(flat.own_group()).to_vec() {
                add(&mut folded, flat.of(call, rank, len));
            }
            write(flat, call, LeaderStage::Group, &folded);
        }
        for flat in flats.iter_mut().filter(|flat| leads(flat)) {
            let mut result = vec![0; len];
            (0..n_groups).for_each(|group| {
                add(&mut result, flat.of_stage(call, LeaderStage::Group, group, len))
            });
            write(flat, call, LeaderStage::All, &result);
        }
        let result = |flat: &mut FlatBuffer| {
            let mut result = vec![0; len];
            add(&mut result, flat.of_stage(call, LeaderStage::All, flat.own_group(), len));
            result
        };
        flats.iter_mut().map(result).collect()
    }

    #[test]
    fn all_ranks_get_the_result_of_all_groups() {
        for of in [&[3, 3, 1, 1, 1][..], &[0, 1, 0, 1, 2], &[5], &[0, 1], &[2, 2, 2]] {
            let mut flats = flats(of);
            let want = (of.len() * (of.len() + 1) / 2) as u8;
            for len in [8, 0, 56, 57, 4096, GROUP_BYTES, 1, 9] {
                assert_eq!(sum(&mut flats, len), vec![vec![want; len]; of.len()], "{of:?} {len}");
            }
        }
    }

    /// On the 48 ranks of an A64FX, in its four memory groups.
    #[test]
    fn a_rank_fetches_the_lines_of_its_group_and_one_of_each_other() {
        let of: Vec<u32> = (0..48).map(|rank| rank / 12).collect();
        for (len, each) in [(8, 1), (56, 1), (64, 2), (4096, 65)] {
            let mut flats = flats(&of);
            sum(&mut flats, len);
            let lines: Vec<usize> = flats.iter().map(|flat| flat.counts.n_lines).collect();
            for (rank, n) in lines.iter().enumerate() {
                let stamps = if rank % 12 == 0 { 11 + 3 } else { 1 };
                assert_eq!(*n, stamps * each, "rank {rank}, {len} bytes");
            }
            // Without groups each rank fetches the lines of 47 others.
            assert_eq!(lines.iter().sum::<usize>(), (4 * (11 + 3) + 44) * each);
        }
    }

    /// A result says that all ranks have read all earlier calls: no rank polls the words of the others for that.
    #[test]
    fn a_place_is_free_once_all_have_read_whoever_led() {
        let mut flats = flats(&[0, 0, 1, 1]);
        for _ in 0..3 * DEPTH {
            sum(&mut flats, 8);
            let all_read = flats[3].call();
            assert!(flats.iter().all(|flat| flat.all_read == all_read));
        }
        // Leaders and other ranks wait for a rank that reads later.
        let last = flats[2].call();
        let call = flats[2].enter(7);
        flats[2].read_later();
        for rank in [0, 1, 3] {
            assert_eq!(flats[rank].enter(7), call);
        }
        for _ in 0..DEPTH {
            flats.iter_mut().for_each(|flat| _ = flat.enter(7));
        }
        let next = flats[0].enter(7);
        for rank in [0, 1, 3] {
            assert_eq!(flats[rank].is_free(next), Err(2));
        }
        assert!(call.number() == last + 1 && next.number() > call.number() + DEPTH);
        flats[2].has_read(None);
        assert_eq!(flats[0].is_free(next), Ok(()));
    }
}
