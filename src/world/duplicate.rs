//! Second communicators of the same ranks.
//!
//! A duplicate has endpoints of its own, so what goes on there never meets what goes on at its
//! parent, and two threads can call collectives at once. It is opened over the parent's
//! collectives, and closed by a barrier of the parent's that has a name of its own: threads may
//! close duplicates in any order, different on different ranks.

use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hopbine_torus::collectives::Collective;
use utofu_sys::bootstrap::{BootstrapError, Exchange};

use super::call::Call;
use super::communicator::{Communicator, Inner};
use super::options::{CallOptions, Hardware};
use super::programs::{Prepared, Turn};
use crate::engine::EngineConfig;
use crate::error::{Error, WireError};
use crate::reduce::{Dtype, Op};

/// A second communicator of the ranks of another; see [`Communicator::duplicate`].
///
/// Dropping it closes it: that waits until all ranks have closed theirs, at most for the
/// timeout. While a thread panics nobody is waited for, and its memory is leaked.
pub struct Duplicate<'parent> {
    /// `None` only while being dropped.
    open: Option<Open>,
    parent: PhantomData<&'parent Communicator>,
}

struct Open {
    comm: Communicator,
    /// The parent's barrier that ends it, made in advance: the end must not fail for want of
    /// memory. Keeps the parent.
    closing: Prepared,
    /// By which the ranks know the barrier among the parent's operations.
    name: u32,
}

impl Communicator {
    /// Makes a second communicator of the same ranks on the same torus. All ranks must call it,
    /// in the same order as the other operations of this communicator; it returns when they have.
    ///
    /// Calls on the two have nothing to do with each other: a thread can use one while another
    /// thread uses the other, or one thread can have operations of both under way and wait for
    /// them in any order. Duplicates can be duplicated. This handle's options are the new one's
    /// as well.
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
    ///     second.finish()?;
    ///     Ok((sum[0], max[0]))
    /// });
    /// assert_eq!(results.unwrap(), vec![Ok::<_, hopbine::Error>((6, 3)); 4]);
    /// ```
    ///
    /// # What it takes
    /// A VCQ for each port (the emulated device has 64 on each TNI, which the ranks of a node
    /// share; Fugaku's may grant fewer to a process), the memory of endpoints, and barrier
    /// gates as long as there are any (16 sets on each TNI at most); with
    /// workers, a thread for each port. Those are not pinned, and if the cores do not suffice
    /// for the threads of all communicators they give theirs away while they wait.
    ///
    /// # Failures
    /// A communicator and its duplicates fail together: after an error that makes one of them
    /// unusable ([`Error::Poisoned`]) all of them are, since it is the ranks that no longer
    /// agree.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if some rank cannot open it, for want of VCQs for instance: all
    /// ranks get it, and this communicator can be used further. Else those of
    /// [`allgather`](Communicator::allgather).
    pub fn duplicate(&self) -> Result<Duplicate<'_>, Error> {
        self.check()?;
        let Inner { shape, map, engine, site, segment_bytes, .. } = &*self.inner;
        // Relaxed: a plain counter. It wraps after 2^31 duplicates.
        let name = self.inner.n_duplicates.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 1);
        let plain = self.with(CallOptions::default());
        let mut exchange = OverCollectives { comm: &plain, failure: None };
        let opened = site.open(engine.n_ports(), shape, map, &mut exchange);
        let (endpoints, hardware) = opened.map_err(|source| exchange.explain(source))?;

        // What fails from here on fails on this rank alone, until all have said how they are.
        let made = engine.beside(endpoints, self.config_of_duplicate()).and_then(|engine| {
            let barrier = Call::new(Collective::Barrier, 0, Dtype::U8);
            let by_plan = self.with(CallOptions::new().hardware(Hardware::Never));
            Ok((engine, by_plan.prepare(&barrier)?))
        });
        let told = made.as_ref().map(|_| [].as_slice()).map_err(ToString::to_string);
        match exchange.agree(told) {
            Ok(Ok(_)) => {}
            Ok(Err(refusal)) => {
                return Err(Error::Duplicate {
                    source: WireError {
                        call: "preparing the ports",
                        reason: refusal.to_string(),
                        peer: Some(refusal.rank as u32),
                    },
                });
            }
            Err(error) => {
                // Others may have heard that all is well, and write to this rank.
                mem::forget((made, hardware));
                return Err(exchange.explain(lost(&error)));
            }
        }
        let (second, closing) = made?;
        let (shape, map) = (shape.clone(), map.clone());
        let comm = Communicator::new(shape, map, *segment_bytes, second, hardware, site.clone())
            .with(self.options.clone());
        Ok(Duplicate { open: Some(Open { comm, closing, name }), parent: PhantomData })
    }

    fn config_of_duplicate(&self) -> EngineConfig {
        let Inner { engine, site, .. } = &*self.inner;
        let parent = engine.config();
        let threads = if parent.workers { engine.n_ports() + 1 } else { 1 };
        let own_cores = parent.own_cores && (engine.n_beside() + 1) * threads <= site.cores;
        EngineConfig { own_cores, cores: Vec::new(), ..parent.clone() }
    }
}

impl Deref for Duplicate<'_> {
    type Target = Communicator;

    fn deref(&self) -> &Communicator {
        let Some(open) = &self.open else { unreachable!("taken in drop only") };
        &open.comm
    }
}

impl Duplicate<'_> {
    /// Closes it in an orderly way: waits until all ranks have closed theirs, at most for the
    /// timeout. Ranks may close several duplicates in different order, if they do so from
    /// different threads. Handles that are left then refuse every call.
    ///
    /// # Errors
    /// [`Error::Timeout`] if a rank does not close its own, after which the parent cannot be
    /// used any more; the failure of an earlier operation, after which nobody is waited for.
    /// In either case the memory is leaked, since peers may still write to it.
    pub fn finish(mut self) -> Result<(), Error> {
        self.close()
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some(Open { comm, closing, name }) = self.open.take() else { return Ok(()) };
        let outcome = comm.close().and_then(|()| {
            let barrier = Call::new(Collective::Barrier, 0, Dtype::U8);
            // SAFETY: a barrier has no buffers.
            let running =
                unsafe { closing.start(barrier.memory(comm.caller()), false, Turn::Any { name }) };
            running?.wait()
        });
        match outcome {
            Ok(()) => drop(comm),
            // Memory that peers may still write to must not be freed.
            Err(_) => mem::forget(comm),
        }
        outcome
    }
}

impl Drop for Duplicate<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The other ranks may be anywhere, and need not come.
            return mem::forget(self.open.take().map(|open| open.comm));
        }
        // Whoever wants to know calls `finish`.
        let _ = self.close();
    }
}

/// The exchange of the ranks of a communicator, by its own collectives.
struct OverCollectives<'a> {
    comm: &'a Communicator,
    /// What went wrong with one of them.
    failure: Option<Error>,
}

impl OverCollectives<'_> {
    fn gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let mut longest = [mine.len() as u64];
        self.comm.allreduce_in_place(&mut longest, Op::Max)?;
        // Each rank's length, its bytes, and zeros.
        let room = size_of::<u64>() + longest[0] as usize;
        let mut told = (mine.len() as u64).to_le_bytes().to_vec();
        told.extend_from_slice(mine);
        told.resize(room, 0);
        let mut all = vec![0; room * self.size()];
        self.comm.allgather(&told, &mut all)?;
        let record = |bytes: &[u8]| {
            let (len, bytes) = bytes
                .split_first_chunk()
                .map_or((0, bytes), |(len, bytes)| (u64::from_le_bytes(*len) as usize, bytes));
            bytes[..len.min(bytes.len())].to_vec()
        };
        Ok(all.chunks(room).map(record).collect())
    }

    /// The failure of a collective, if that is behind the failure at hand.
    fn explain(&mut self, source: WireError) -> Error {
        self.failure.take().unwrap_or(Error::Duplicate { source })
    }
}

impl Exchange for OverCollectives<'_> {
    fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    fn size(&self) -> usize {
        self.comm.size() as usize
    }

    /// Has no effect: collectives have the timeout of their communicator.
    fn set_timeout(&mut self, _: Duration) {}

    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        self.gather(mine).map_err(|error| {
            self.failure = Some(error.clone());
            BootstrapError::Failed(Box::new(error))
        })
    }
}

fn lost(error: &BootstrapError) -> WireError {
    WireError { call: "agreeing on a duplicate", reason: error.to_string(), peer: None }
}
