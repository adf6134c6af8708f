//! The communicator: a torus of ranks, and how they call collectives together.

use std::sync::{Arc, PoisonError};

use crate::Rank;
use hopbine_torus::geometry::{Coord, Shape};

use super::call::options::{self, CallOptions};
use super::call::{Call, Caller};
use super::choice::preferred::Preferred;
use super::operations::running::Prepared;
use super::operations::stages::{Registration, Running};
use super::state::inner::Inner;
use super::state::members::Members;
use super::state::rank::RankOfWorld;
use super::state::small::{SmallCollectives, Waiter};
use crate::endpoint::UnexpectedBytes;
use crate::engine::{Engine, GatesWatch, OnIdle, UserMemory};
use crate::error::Error;
use crate::memory::CacheStats;

/// A group of ranks on a torus that call collectives together.
///
/// A handle: copies made by [`with`](Communicator::with) mean the same communicator. All ranks
/// must start the same operations on it in the same order, with the same options.
pub struct Communicator {
    pub(crate) inner: Arc<Inner>,
    pub(crate) options: Arc<CallOptions>,
}

impl Communicator {
    /// The communicator of all ranks of a world.
    pub(crate) fn world(of_world: RankOfWorld, members: Members) -> Self {
        Communicator::new(Inner::new(Arc::new(of_world), Arc::new(members), 0, None))
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Communicator { inner: Arc::new(inner), options: Arc::default() }
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.inner.members.caller.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        self.inner.members.caller.n_ranks
    }

    /// The torus.
    pub fn shape(&self) -> &Shape {
        &self.inner.members.shape
    }

    /// This rank's place in the torus.
    pub fn coordinates(&self) -> Coord {
        self.inner.members.map.coord_of(self.shape(), hopbine_torus::Rank(self.rank()))
    }

    /// Number of ports that operations can use.
    pub fn n_ports(&self) -> u32 {
        self.inner.of_world.engine.n_ports() as u32
    }

    /// What this rank keeps, for all communicators and ports, of messages that came before their calls.
    pub fn unexpected(&self) -> UnexpectedBytes {
        self.inner.of_world.engine.unexpected()
    }

    /// True if operations progress while the caller computes.
    pub fn has_workers(&self) -> bool {
        self.inner.of_world.engine.has_workers()
    }

    /// Figures of the rank's registration cache, if there is one.
    pub fn cache_stats(&self) -> Option<CacheStats> {
        self.inner.of_world.cache.as_ref().and_then(|figures| figures())
    }

    /// True if this call could be, and with these options is, performed by the barrier gates or the board;
    /// an alltoall with blocks of different sizes only if these turn out to be short.
    pub fn uses_gates(&self, call: &Call) -> bool {
        matches!(self.gates_for(&call.normalized(self.caller())), Ok(Some(_)))
    }

    /// The same communicator with other options for its calls.
    pub fn with(&self, options: CallOptions) -> Communicator {
        Communicator { inner: self.inner.clone(), options: Arc::new(options) }
    }

    /// Refuses all further calls, waits for those under way, and returns when everything that
    /// this rank has written has arrived: of all communicators of the world. When all ranks have
    /// returned, memory that peers wrote to can be freed; after an error it must not be.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Wire`]; [`Error::Poisoned`] after an earlier failure;
    /// [`Error::Closed`] if this is not the first time.
    pub(crate) fn close(&self) -> Result<(), Error> {
        let RankOfWorld { engine, small, in_places, .. } = &*self.inner.of_world;
        engine.check().inspect_err(|error| engine.fail(error))?;
        let alone = in_places.write().unwrap_or_else(PoisonError::into_inner);
        match small {
            Ok(small) => small.between_calls(&mut || engine.refuse()),
            Err(_) => engine.refuse(),
        }
        drop(alone);
        engine.drain()
    }

    /// After all ranks have [`close`](Communicator::close)d, or have failed to: the wires release what
    /// belongs to other ranks.
    pub(crate) fn end(&self) {
        self.inner.of_world.engine.end();
    }

    /// This rank cannot go on: all communicators of its world fail.
    pub(crate) fn fail(&self, error: &Error) {
        self.inner.of_world.engine.fail(error);
    }

    /// The collectives that the hardware performs, or why it performs none.
    #[inline]
    pub(crate) fn small_collectives(&self) -> Result<&dyn SmallCollectives, &str> {
        match (&self.inner.small, &self.inner.of_world.small) {
            (Some(own), _) => Ok(own.as_ref()),
            (None, Ok(_)) if !self.inner.is_world() => Err(match self.inner.of_world.places {
                Some(_) => "this communicator found none free",
                None => "they know the world's communicator only",
            }),
            (None, small) => small.as_deref().map_err(String::as_str),
        }
    }

    /// Moves on whatever is under way, of all communicators of the world, up to `most` times as long as
    /// nothing has moved since this returned `seen`. Returns a number that is another one if anything
    /// has moved since, and so if a collective has ended.
    pub fn progress(&self, most: u32, seen: u64) -> u64 {
        self.inner.of_world.engine.progress(most, seen)
    }

    /// The algorithms that `HOPBINE_ALGORITHM` prefers to the library's choice.
    pub fn preferred(&self) -> &Preferred {
        &self.inner.of_world.preferred
    }

    /// How long nothing may move before a wait fails.
    pub(crate) fn timeout(&self) -> std::time::Duration {
        self.inner.of_world.engine.config().timeout
    }

    pub(crate) fn caller(&self) -> Caller {
        self.inner.members.caller
    }

    /// Has `on_idle` called now and then while a thread of this rank waits in a call, on that
    /// thread: for libraries that make progress only when they are called, such as MPI. Holds for
    /// all communicators of the world; of several functions given the first one stays.
    pub fn on_idle(&self, on_idle: OnIdle) {
        self.inner.of_world.engine.on_idle(on_idle);
    }

    /// Has ranks that give different counts, types or operators get an error from that call alone, as
    /// MPI programs expect: the call ends on all ranks, and later calls are served. Without this, such
    /// a call fails the world, and every rank learns of it. The world fails in any case where the
    /// calls' messages do not meet: another collective, root or algorithm, or lengths that are cut
    /// differently. All ranks must say this before their first call.
    pub fn spare(&self) {
        self.inner.of_world.engine.spare();
    }

    /// Starts a call, for which the caller will wait later.
    ///
    /// # Safety
    /// Until the operation is done: the send buffer is valid for reads of its elements and
    /// unchanged, the receive buffer is valid for reads and writes and used by nobody else.
    pub(crate) unsafe fn launch(&self, call: &Call) -> Result<Running, Error> {
        let call = &call.normalized(self.caller());
        let (prepared, memory) = self.prepare(call)?;
        // SAFETY: the caller's promise; `check` (in `prepare`) has made sure that the buffers
        // have the lengths that the program needs and do not overlap.
        unsafe { self.launch_prepared(prepared, memory) }
    }

    /// Starts a call that has been checked.
    ///
    /// # Safety
    /// As [`launch`](Communicator::launch); and the memory has the lengths that the program needs
    /// and does not overlap.
    pub(crate) unsafe fn launch_prepared(
        &self,
        prepared: Prepared,
        memory: [UserMemory; 2],
    ) -> Result<Running, Error> {
        let registration = match self.options.register_anew {
            false => Registration::Kept,
            true => Registration::Once,
        };
        // SAFETY: the caller's promise.
        let mut running = unsafe { Running::new(prepared, memory, registration) };
        running.start()?;
        Ok(running)
    }

    /// Checks a normalized call and gets an operation for it. Returns its memory, too.
    pub(crate) fn prepare(&self, call: &Call) -> Result<(Prepared, [UserMemory; 2]), Error> {
        let memory = call.check(self.caller())?;
        self.inner.of_world.engine.check()?;
        if self.options.hardware == options::Hardware::Always {
            return Err(gates_refuse(call, &"only blocking calls can use them"));
        }
        let ready = self.inner.ready(call, &self.options)?;
        Ok((Prepared::new(self.inner.clone(), ready), memory))
    }

    /// Performs a call whose buffers are given as addresses, and waits for it.
    ///
    /// This is what the interfaces to other languages use. Lengths, root, operator and overlap
    /// are checked; whether the addresses are right cannot be.
    ///
    /// # Safety
    /// The send buffer must be valid for reads of `send_count` elements and the receive buffer
    /// for reads and writes of `recv_count` elements, for the whole call, and nobody may write
    /// the former or access the latter meanwhile.
    ///
    /// # Errors
    /// As for the method named after the collective; [`Error::Address`], [`Error::Overlap`].
    #[inline]
    pub unsafe fn call(&self, call: &Call) -> Result<(), Error> {
        let call = &call.normalized(self.caller());
        let small = self.gates_for(call)?;
        let memory = call.check(self.caller())?;
        if let Some(small) = small
            // SAFETY: the caller's promise.
            && unsafe { self.by_hardware(small, call) }?
        {
            return Ok(());
        }
        // SAFETY: the caller's promise, and `check` as in `launch`.
        unsafe { self.run_by_plan(call, memory) }
    }

    /// Performs a checked, normalized call on its memory by a plan.
    ///
    /// # Safety
    /// As [`launch_prepared`](Communicator::launch_prepared), until this returns.
    #[inline]
    pub(crate) unsafe fn run_by_plan(
        &self,
        call: &Call,
        memory: [UserMemory; 2],
    ) -> Result<(), Error> {
        self.inner.of_world.engine.check()?;
        let prepared = Prepared::new(&*self.inner, self.inner.ready(call, &self.options)?);
        // SAFETY: the caller's promise.
        unsafe { prepared.run(memory, !self.options.register_anew) }
    }

    /// The hardware, if it is to perform a normalized call.
    #[inline]
    pub(crate) fn gates_for(&self, call: &Call) -> Result<Option<&dyn SmallCollectives>, Error> {
        let preferred = self.preferred();
        let always = match self.options.hardware {
            options::Hardware::Never => return Ok(None),
            options::Hardware::Auto if self.options.asks_for_a_plan() => return Ok(None),
            options::Hardware::Auto if preferred.of(call.collective).is_some() => return Ok(None),
            options::Hardware::Auto => false,
            options::Hardware::Always => true,
        };
        // Nothing is said, and so nothing allocated, unless somebody wants to know.
        match self.small_collectives() {
            Ok(small) => match small.serves(call, always) {
                Ok(()) => Ok(Some(small)),
                Err(reason) if always => Err(gates_refuse(call, &reason)),
                Err(_) => Ok(None),
            },
            Err(reason) if always => Err(gates_refuse(call, &reason)),
            Err(_) => Ok(None),
        }
    }

    /// Has the hardware perform a checked, normalized call, unless it hands it back: false. Operations under
    /// way go on meanwhile.
    ///
    /// # Safety
    /// As [`call`](Communicator::call).
    #[inline]
    pub(crate) unsafe fn by_hardware(
        &self,
        small: &dyn SmallCollectives,
        call: &Call,
    ) -> Result<bool, Error> {
        let (of_world, caller) = (&self.inner.of_world, self.caller());
        let engine = &of_world.engine;
        let is_world = self.inner.is_world();
        // Those of the world wait for each other by themselves.
        let _in_place =
            (!is_world).then(|| of_world.in_places.read().unwrap_or_else(PoisonError::into_inner));
        let members = (!is_world).then_some(&*self.inner.members);
        let next_operation = self.inner.next_operation();
        let mut waiter =
            AtHardware { engine, next_operation, watch: None, members, gave_up: false };
        // SAFETY: the caller's promise.
        let outcome = unsafe { small.perform(call, caller, &mut waiter) };
        match &outcome {
            // All ranks are told of a mismatch, so they still agree where they are.
            Ok(_) | Err(Error::GatesMismatch { .. } | Error::Poisoned(_) | Error::Closed) => {}
            // This rank has done its part.
            Err(Error::Lost { .. } | Error::Disagree { .. })
                if !waiter.gave_up && engine.is_sparing() => {}
            Err(error) => engine.fail(error),
        }
        outcome
    }
}

/// A call that the hardware performs.
struct AtHardware<'a> {
    engine: &'a Engine,
    next_operation: u32,
    /// Of a wait that is not short.
    watch: Option<GatesWatch<'a>>,
    /// Of a communicator that is not the world's.
    members: Option<&'a Members>,
    gave_up: bool,
}

impl Waiter for AtHardware<'_> {
    fn may_start(&mut self) -> Result<u32, Error> {
        self.engine.check()?;
        Ok(self.next_operation)
    }

    fn idle(&mut self, awaited: Option<usize>) -> Result<(), Error> {
        let world_rank = |rank| self.members.map_or(rank, |members| members.world_rank(rank));
        let awaited = awaited.map(|rank| world_rank(rank as Rank));
        let watch = self.watch.get_or_insert_with(|| self.engine.at_gates());
        watch.idle(awaited).inspect_err(|_| self.gave_up = true)
    }
}

fn gates_refuse(call: &Call, reason: &dyn std::fmt::Display) -> Error {
    Error::NotServed {
        collective: call.collective,
        name: "barrier gates".to_owned(),
        reason: reason.to_string(),
    }
}
