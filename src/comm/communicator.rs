//! The communicator: a torus of ranks, and how they call collectives together.

use std::sync::{Arc, PoisonError};

use crate::Rank;
use hopbine_torus::geometry::{Coord, Shape};

use super::call::Caller;
use super::call::options::CallOptions;
use super::choice::preferred::Preferred;
use super::choice::tuning::Tuning;
use super::state::inner::Inner;
use super::state::members::Members;
use super::state::world_state::WorldState;
use crate::endpoint::UnexpectedStats;
use crate::engine::OnIdle;
use crate::error::Error;
use crate::memory::CacheStats;

/// A group of ranks on a torus that call collectives together.
///
/// This is a handle: copies made by [`with`](Communicator::with) refer to the same communicator. All ranks must
/// start the same operations on it in the same order, with the same options.
pub struct Communicator {
    pub(crate) inner: Arc<Inner>,
    pub(crate) options: Arc<CallOptions>,
}

impl Communicator {
    /// The communicator of all ranks of a world.
    pub(crate) fn world(world: WorldState, members: Members) -> Self {
        Communicator::new(Inner::new(Arc::new(world), Arc::new(members), 0))
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
        self.inner.world.engine.n_ports() as u32
    }

    /// Statistics of the unexpected messages (received before their calls) that this rank keeps, for all communicators
    /// and ports.
    pub fn unexpected(&self) -> UnexpectedStats {
        self.inner.world.engine.unexpected()
    }

    /// True if operations progress while the caller computes.
    pub fn has_workers(&self) -> bool {
        self.inner.world.engine.has_workers()
    }

    /// Statistics of the rank's registration cache, if it has one.
    pub fn cache_stats(&self) -> Option<CacheStats> {
        let world = &self.inner.world;
        let stats = world.cache.as_ref().and_then(|figures| figures())?;
        Some(CacheStats { staged_bytes: world.engine.staged_bytes(), ..stats })
    }

    /// The same communicator with other options for its calls.
    pub fn with(&self, options: CallOptions) -> Communicator {
        Communicator { inner: self.inner.clone(), options: Arc::new(options) }
    }

    /// Refuses further calls on all communicators of the world, waits for those under way, and returns when
    /// everything that this rank has written has arrived. Memory that peers wrote to can be freed after all ranks
    /// have returned; it must not be freed after an error.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Wire`]; [`Error::Poisoned`] after an earlier failure;
    /// [`Error::Closed`] if it has been called before.
    pub(crate) fn close(&self) -> Result<(), Error> {
        let outcome = self.drain();
        let engine = &self.inner.world.engine;
        // Also after a failure, which the timeline shows.
        engine.close();
        engine.write_timeline();
        outcome
    }

    fn drain(&self) -> Result<(), Error> {
        let WorldState { engine, small, close_lock, .. } = &*self.inner.world;
        engine.check().inspect_err(|error| engine.fail(error))?;
        let alone = close_lock.write().unwrap_or_else(PoisonError::into_inner);
        match small {
            Ok(small) => small.between_calls(&mut || engine.close()),
            Err(_) => engine.close(),
        }
        drop(alone);
        engine.drain()
    }

    /// Has the wires release resources that belong to other ranks. Call it after all ranks have
    /// [`close`](Communicator::close)d or failed to.
    pub(crate) fn end(&self) {
        self.inner.world.engine.end();
    }

    /// Frees what handles of the ended world would keep from others: threads, queues and gates. Call it after
    /// [`end`](Communicator::end), if all ranks have [`close`](Communicator::close)d well.
    pub(crate) fn release(&self) {
        let WorldState { engine, small_pool, .. } = &*self.inner.world;
        small_pool.iter().for_each(|pool| pool.end());
        engine.drop_endpoints();
    }

    /// Whether the world has ended: every call on this communicator fails.
    pub fn has_ended(&self) -> bool {
        self.inner.world.engine.is_closed()
    }

    /// Fails all communicators of the world: this rank cannot continue.
    pub(crate) fn fail(&self, error: &Error) {
        self.inner.world.engine.fail(error);
    }

    /// Advances all operations under way, of all communicators of the world: up to `most` rounds, as long as nothing
    /// has moved since this returned `seen`. The returned number differs from `seen` if anything has moved since,
    /// for example if a collective has ended.
    pub fn progress(&self, most: u32, seen: u64) -> u64 {
        self.inner.world.engine.progress(most, seen)
    }

    /// The decision table for calls that name no algorithm: that of `HOPBINE_TUNING`, or the built-in one.
    pub fn tuning(&self) -> &Tuning {
        &self.inner.world.settings.tuning
    }

    /// The algorithms of `HOPBINE_ALGORITHM`, which replace the library's choice.
    pub fn preferred(&self) -> &Preferred {
        &self.inner.world.settings.preferred
    }

    /// Time without progress after which a wait is too long ([`OnTimeout`](crate::engine::OnTimeout)).
    pub(crate) fn timeout(&self) -> std::time::Duration {
        self.inner.world.engine.config().timeout
    }

    /// Number of this rank's waits that took longer than [`timeout`](Communicator::timeout).
    pub(crate) fn long_waits(&self) -> u64 {
        self.inner.world.engine.n_long_waits()
    }

    pub(crate) fn caller(&self) -> Caller {
        self.inner.members.caller
    }

    /// Calls `on_idle` from time to time on a thread of this rank that waits in a call: for libraries that make
    /// progress only when they are called, such as MPI. Applies to all communicators of the world. If several
    /// functions are given, only the first one is used.
    pub fn on_idle(&self, on_idle: OnIdle) {
        self.inner.world.engine.on_idle(on_idle);
    }

    /// Makes a call fail alone if ranks give it different counts, types or operators, as MPI programs expect: these
    /// ranks get an error, the call ends on all ranks, and later calls are served. Without this, such a call fails
    /// the world, and every rank learns of it. In either case the world fails if the messages of the calls do not
    /// match: another collective, root or algorithm, lengths that are segmented differently, or on Tofu barrier gates
    /// on one rank and messages on another. All ranks must call this before their first collective.
    pub fn spare(&self) {
        self.inner.world.engine.allow_mismatch();
    }
}
