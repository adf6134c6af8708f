//! Further communicators: of the same ranks, or of some of them.
//!
//! A communicator is a context, its members and their shape; it uses the endpoints of its world. The members agree
//! on the context in one collective of the communicator that it is made from, and on barrier gates, if any are left,
//! in collectives of the new communicator. A communicator ends locally.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::Rank;

use super::call::options::{CallOptions, Hardware};
use super::communicator::Communicator;
use super::state::inner::Inner;
use super::state::members::Members;
use super::state::world_state::{WorldState, context};
use crate::error::Error;

/// A number for a context and a slot for small collectives. Dropping it gives back what has not been used.
struct ContextReservation<'a> {
    world: &'a WorldState,
    /// `None` if none is left, or if it has been used or was not needed.
    number: Option<u32>,
    slot: Option<u32>,
}

/// The context and the slot that follow from what the first member of a communicator has sent to the others.
#[derive(Clone, Copy)]
struct AgreedContext {
    context: u64,
    slot: Option<u32>,
}

impl<'a> ContextReservation<'a> {
    /// Takes a number for a communicator whose first member may be this rank, and a slot if it `has_slot`.
    fn take(world: &'a WorldState, has_slot: bool) -> Self {
        let slot = world.small_pool.as_ref().filter(|_| has_slot).and_then(|pool| pool.take());
        ContextReservation { world, number: world.take_serial(), slot }
    }

    /// As [`take`](ContextReservation::take) on the first member; takes nothing on the others.
    fn take_if(is_first: bool, world: &'a WorldState, has_slot: bool) -> Self {
        match is_first {
            true => ContextReservation::take(world, has_slot),
            false => ContextReservation { world, number: None, slot: None },
        }
    }

    /// The value that other members get: the number plus 1 in the lower half, the slot plus 1 in the upper half, 0
    /// for `None`.
    fn encoded(&self) -> u64 {
        let half = |number: Option<u32>| number.map_or(0, |number| u64::from(number) + 1);
        half(self.slot) << 32 | half(self.number)
    }

    /// Reads the value of the first member, a rank of the world. The context belongs to the communicator from now on,
    /// and if this rank is that member, so does the slot.
    ///
    /// # Errors
    /// [`Error::Group`] if that member has no number left, or if the value cannot be its.
    fn commit(&mut self, encoded: u64, first: Rank) -> Result<AgreedContext, Error> {
        let (number, slot) =
            ((encoded as u32).checked_sub(1), ((encoded >> 32) as u32).checked_sub(1));
        let number = number.ok_or_else(|| {
            refused("there are too many communicators; drop some that are not used any more")
        })?;
        let is_first = first == self.world.engine.rank();
        // What `join` gets from its caller may be anything. Two communicators of a context or a slot would share
        // memory without a lock.
        let is_valid = match is_first {
            true => encoded == self.encoded(),
            false => self.world.open_context(first, number),
        };
        if !is_valid {
            return Err(refused("its ranks have agreed on another number than that of the first"));
        }
        if is_first {
            (self.number, self.slot) = (None, None);
        }
        Ok(AgreedContext { context: context(first, number), slot })
    }
}

impl Drop for ContextReservation<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.world.release_context(context(self.world.engine.rank(), number));
        }
        if let (Some(pool), Some(slot)) = (&self.world.small_pool, self.slot) {
            pool.give_back(slot);
        }
    }
}

impl Communicator {
    /// Makes a second communicator of the same ranks on the same torus. All ranks must call it,
    /// in the same order as the other operations of this communicator.
    ///
    /// Calls on the two communicators are independent: a thread can use one while another thread uses the other, or
    /// one thread can have operations of both under way and wait for them in any order. The new communicator has the
    /// options of this handle. It takes a few hundred bytes, shares the programs of this one, and ends when its last
    /// handle is dropped.
    ///
    /// Barrier gates are limited. The new communicator gets some if all ranks find free ones, and gives them back
    /// when its last handles are dropped; otherwise its calls use plans. The same holds for flat buffers over shared
    /// memory: each rank has up to 32 for communicators of which it is the first rank.
    ///
    /// ```
    /// use hopbine::{EmulationConfig, emulate, reduce::Op};
    /// use hopbine::torus::geometry::Shape;
    ///
    /// let config = EmulationConfig::new(Shape::torus(&[2, 2]).unwrap());
    /// let results = emulate(&config, |comm| {
    ///     let second = comm.duplicate()?;
    ///     let (mut sum, mut max) = ([comm.rank()], [comm.rank()]);
    ///     std::thread::scope(|threads| {
    ///         let other = threads.spawn(|| second.allreduce_in_place(&mut max, Op::Max));
    ///         comm.allreduce_in_place(&mut sum, Op::Sum)?;
    ///         other.join().unwrap()
    ///     })?;
    ///     Ok((sum[0], max[0]))
    /// });
    /// assert_eq!(results.unwrap(), vec![Ok::<_, hopbine::Error>((6, 3)); 4]);
    /// ```
    ///
    /// # Failures
    /// All communicators of a world fail together: an error that makes one of them unusable ([`Error::Poisoned`])
    /// makes all of them unusable, since the ranks are out of step.
    ///
    /// # Errors
    /// [`Error::Group`] if there are a million communicators already; else those of
    /// [`bcast`](Communicator::bcast).
    pub fn duplicate(&self) -> Result<Communicator, Error> {
        self.copied(true)
    }

    /// As [`duplicate`](Communicator::duplicate), for calls that are not blocking: it leaves barrier gates, which serve
    /// blocking calls only, to other communicators.
    ///
    /// # Errors
    /// As [`duplicate`](Communicator::duplicate).
    pub fn duplicate_for_requests(&self) -> Result<Communicator, Error> {
        self.copied(self.inner.requests().is_some())
    }

    fn copied(&self, has_slot: bool) -> Result<Communicator, Error> {
        let plain = self.with(CallOptions::default());
        let members = &self.inner.members;
        let is_first = self.rank() == 0;
        let mut reservation = ContextReservation::take_if(is_first, &self.inner.world, has_slot);
        let mut encoded = [reservation.encoded()];
        plain.bcast(&mut encoded, 0)?;
        let agreed = reservation.commit(encoded[0], members.world_rank(0))?;
        self.new_communicator(agreed, members.clone())
    }

    /// Makes a communicator for each colour, of the ranks that give it, in the order of their keys and, for equal
    /// keys, of their ranks here. A rank that gives `None` is in no new communicator. All ranks must call it, in the
    /// same order as the other operations of this communicator.
    ///
    /// Ranks that fill a box of this communicator's torus, whole rows and planes for instance,
    /// keep its shape; others are laid out as near a cube as their number allows.
    ///
    /// # Errors
    /// [`Error::Group`] if there are a million communicators already; else those of
    /// [`allgather`](Communicator::allgather).
    pub fn split(&self, colour: Option<u32>, key: i64) -> Result<Option<Communicator>, Error> {
        self.split_checked(colour, key, 0, |_| false)
    }

    /// As [`split`](Communicator::split). Ranks of a colour must give the same `stamp`. A dimension in which they do
    /// not differ stays in their shape if `keeps` accepts it.
    fn split_checked(
        &self,
        colour: Option<u32>,
        key: i64,
        stamp: u64,
        keeps: impl Fn(usize) -> bool,
    ) -> Result<Option<Communicator>, Error> {
        let plain = self.with(CallOptions::default());
        let mut reservation = ContextReservation::take(&self.inner.world, true);
        let colour_word = colour.map_or(0, |colour| u64::from(colour) + 1);
        let mine = [colour_word, key as u64, reservation.encoded(), stamp];
        let mut all = vec![0; mine.len() * self.size() as usize];
        plain.allgather(&mine, &mut all)?;
        let (all, _) = all.as_chunks::<4>();
        let mut ranks: Vec<(i64, Rank)> = (0..)
            .zip(all)
            .filter(|(_, record)| record[0] == mine[0])
            .map(|(rank, record)| (record[1] as i64, rank))
            .collect();
        if colour.is_none() {
            return Ok(None);
        }
        ranks.sort_unstable();
        let ranks: Vec<Rank> = ranks.into_iter().map(|(_, rank)| rank).collect();
        // An error from here on occurs on all ranks of the colour.
        if ranks.iter().any(|&rank| all[rank as usize][3] != stamp) {
            return Err(refused("its ranks gave different lists of ranks"));
        }
        let own = ranks.iter().position(|&rank| rank == self.rank());
        let own = own.expect("a rank gives its own colour") as Rank;
        let Inner { world, members, .. } = &*self.inner;
        let agreed = reservation.commit(all[ranks[0] as usize][2], members.world_rank(ranks[0]))?;
        let members = members.subset((&ranks, own), &world.settings.preferred, keeps);
        self.new_communicator(agreed, Arc::new(members)).map(Some)
    }

    /// Makes a communicator of these ranks of this one, in this order. All ranks must call it, in the same order as
    /// the other operations of this communicator: members with the same list, every other rank with a list of its
    /// own or an empty one. Returns `None` on ranks that are not in their list.
    ///
    /// # Errors
    /// [`Error::Group`] if a rank of the list does not exist, or appears twice, or gives
    /// another list; else as [`split`](Communicator::split).
    pub fn group(&self, ranks: &[Rank]) -> Result<Option<Communicator>, Error> {
        let listed = self.listed(ranks);
        // A rank with an invalid list also takes part, so that no other rank waits for it.
        let place = listed.as_ref().ok().copied().flatten();
        let colour = place.map(|_| ranks[0]);
        let mut hasher = DefaultHasher::new();
        ranks.hash(&mut hasher);
        let key = place.map_or(0, |place| place as i64);
        let made = self.split_checked(colour, key, hasher.finish(), |_| false)?;
        listed?;
        match made {
            // A rank of the list has given no valid list.
            Some(made) if made.size() as usize != ranks.len() => {
                Err(refused("its ranks gave different lists of ranks"))
            }
            made => Ok(made),
        }
    }

    /// The place of this rank in a list of ranks, if it has one.
    ///
    /// # Errors
    /// [`Error::Group`], if a rank of the list does not exist or appears twice.
    fn listed(&self, ranks: &[Rank]) -> Result<Option<usize>, Error> {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(refused(format!("rank {} appears twice", pair[0])));
        }
        match sorted.last() {
            Some(last) if *last >= self.size() => {
                let last_valid = self.size() - 1;
                Err(refused(format!("there is no rank {last}, ranks are 0 to {last_valid}")))
            }
            _ => Ok(ranks.iter().position(|&rank| rank == self.rank())),
        }
    }

    /// Makes a communicator of the ranks that differ from this one only in the given dimensions
    /// of the torus: rows, columns, planes. It has the shape of these dimensions, with the first
    /// varying fastest from rank to rank. All ranks must call it, in the same order as the other
    /// operations of this communicator, with the same dimensions.
    ///
    /// # Errors
    /// [`Error::Group`] if a dimension does not exist or is given twice; else as
    /// [`split`](Communicator::split).
    pub fn sub_box(&self, dims: &[usize]) -> Result<Communicator, Error> {
        let shape = self.shape();
        let n_dims = shape.n_dims();
        let is_wrong = |(at, dim): (usize, &usize)| *dim >= n_dims || dims[..at].contains(dim);
        if let Some((_, dim)) = dims.iter().enumerate().find(|&(at, dim)| is_wrong((at, dim))) {
            let last = n_dims - 1;
            return Err(refused(format!(
                "dimension {dim} of {shape}: give each of 0 to {last} once at most"
            )));
        }
        let at = self.coordinates();
        let number = |dims: &mut dyn Iterator<Item = usize>| {
            dims.fold(0u64, |number, dim| number * u64::from(shape.size(dim)) + u64::from(at[dim]))
        };
        let colour = number(&mut (0..n_dims).filter(|dim| !dims.contains(dim)));
        let key = number(&mut (0..n_dims).rev().filter(|dim| dims.contains(dim)));
        let made =
            self.split_checked(Some(colour as u32), key as i64, 0, |dim| dims.contains(&dim))?;
        made.ok_or_else(|| unreachable!("a colour was given"))
    }

    /// Makes a communicator of these ranks of this one, in this order. Unlike [`group`](Communicator::group), only
    /// these ranks call it. They agree through `agree`, which gets a number on the first rank of the list and
    /// returns it on all of them (a broadcast by other means, such as MPI's).
    ///
    /// # Errors
    /// [`Error::Group`] if there are a million communicators already, if a rank of the list does
    /// not exist or appears twice, if this rank is not in it, or if `agree` returns another number
    /// than the first rank's, as far as this rank can tell; else those of [`allgather`](Communicator::allgather).
    pub fn join(
        &self,
        ranks: &[Rank],
        agree: impl FnOnce(u64) -> u64,
    ) -> Result<Communicator, Error> {
        let own = self.listed(ranks)?.ok_or_else(|| refused("this rank is not in the list"))?;
        let own = own as Rank;
        let mut reservation = ContextReservation::take_if(own == 0, &self.inner.world, true);
        let Inner { world, members, .. } = &*self.inner;
        let agreed =
            reservation.commit(agree(reservation.encoded()), members.world_rank(ranks[0]))?;
        // A communicator of the same ranks shares the programs.
        let members = match ranks.iter().copied().eq(0..self.size()) {
            true => members.clone(),
            false => Arc::new(members.subset((ranks, own), &world.settings.preferred, |_| false)),
        };
        self.new_communicator(agreed, members)
    }

    /// Makes another communicator of this world.
    ///
    /// # Errors
    /// Those of [`allgather`](Communicator::allgather).
    fn new_communicator(
        &self,
        agreed: AgreedContext,
        members: Arc<Members>,
    ) -> Result<Communicator, Error> {
        let AgreedContext { context, slot } = agreed;
        let world = self.inner.world.clone();
        world.engine.note_several_comms();
        let inner = Arc::new(Inner::new(world.clone(), members.clone(), context));
        let made = Communicator { inner, options: self.options.clone() };
        let plain = made.with(CallOptions::new().hardware(Hardware::Never));
        let mut allgather = |mine: &[u64]| {
            let mut all = vec![0; mine.len() * members.caller.n_ranks as usize];
            plain.allgather(mine, &mut all).map(|()| all)
        };
        let small = match (&world.small_pool, slot) {
            (Some(pool), Some(slot)) => {
                let opened = pool.open(slot, &members, &mut allgather);
                // Other ranks have agreed on the communicator and wait for this rank.
                opened.inspect_err(|error| world.engine.fail(error))?
            }
            (Some(_), None) => {
                Err("all are in use by other communicators, or can serve none of its calls"
                    .to_owned())
            }
            (None, _) => Err(match &world.small {
                Ok(_) => "only the world's communicator has them".to_owned(),
                Err(reason) => reason.clone(),
            }),
        };
        let is_first = made.inner.small.set(small).is_ok();
        debug_assert!(is_first, "nobody else has the communicator yet");
        Ok(made)
    }
}

/// The error for a communicator that cannot be made.
fn refused(reason: impl Into<String>) -> Error {
    Error::Group { reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use hopbine_torus::choose::Wire;
    use hopbine_torus::geometry::Shape;

    use super::*;
    use crate::reduce::Op;
    use crate::world::{EmulationConfig, emulate};

    /// Over shared memory, where a slot is memory that its communicator uses under a lock of its own.
    #[test]
    fn a_number_that_the_first_rank_has_not_given_is_refused() {
        let mut config = EmulationConfig::new(Shape::torus(&[2]).unwrap());
        config.wire = Wire::Memory;
        let outcome = emulate(&config, |comm| {
            let join = |word: u64| comm.join(&[0, 1], |_| word);
            let made = join(1 << 32 | 7);
            assert_eq!(made.is_err(), comm.rank() == 0, "the first rank knows its number");
            for word in [1 << 32 | 7, 1 << 32 | 1, 1 << 21] {
                assert!(matches!(join(word), Err(Error::Group { .. })), "{word:#x}");
            }
            drop(made);
            comm.barrier()?;
            let two = [comm.duplicate()?, comm.duplicate()?];
            let always =
                |made: &Communicator| made.with(CallOptions::new().hardware(Hardware::Always));
            let mut sums = [[comm.rank()], [comm.rank() + 2]];
            for (made, sum) in two.iter().zip(&mut sums) {
                always(made).allreduce_in_place(sum, Op::Sum)?;
            }
            assert_ne!(two[0].inner.context(), two[1].inner.context());
            Ok::<_, Error>(sums)
        });
        assert_eq!(outcome.unwrap(), [Ok([[1], [5]]), Ok([[1], [5]])]);
    }
}
