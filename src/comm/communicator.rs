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
use super::state::rank::RankOfWorld;
use crate::endpoint::UnexpectedBytes;
use crate::engine::OnIdle;
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
        Communicator::new(Inner::new(Arc::new(of_world), Arc::new(members), 0))
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
        let of_world = &self.inner.of_world;
        let stats = of_world.cache.as_ref().and_then(|figures| figures())?;
        Some(CacheStats { staged_bytes: of_world.engine.staged_bytes(), ..stats })
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
        let outcome = self.drain();
        // Also after a failure, whose story it tells.
        self.inner.of_world.engine.write_timeline();
        outcome
    }

    fn drain(&self) -> Result<(), Error> {
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

    /// Moves on whatever is under way, of all communicators of the world, up to `most` times as long as
    /// nothing has moved since this returned `seen`. Returns a number that is another one if anything
    /// has moved since, and so if a collective has ended.
    pub fn progress(&self, most: u32, seen: u64) -> u64 {
        self.inner.of_world.engine.progress(most, seen)
    }

    /// What chooses for calls that do not say: the table of `HOPBINE_TUNING`, or the one that is built in.
    pub fn tuning(&self) -> &Tuning {
        &self.inner.of_world.tuning
    }

    /// The algorithms that `HOPBINE_ALGORITHM` prefers to the library's choice.
    pub fn preferred(&self) -> &Preferred {
        &self.inner.of_world.preferred
    }

    /// How long nothing may move before a wait fails.
    pub(crate) fn timeout(&self) -> std::time::Duration {
        self.inner.of_world.engine.config().timeout
    }

    /// Waits of this rank that took longer.
    pub(crate) fn long_waits(&self) -> u64 {
        self.inner.of_world.engine.n_long_waits()
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
}
