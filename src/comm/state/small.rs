//! Small collectives that are performed without a plan: by the hardware's barrier gates, or by ranks of one
//! host in memory that they share.

use std::fmt;

use hopbine_torus::collectives::Collective;
use serde::Serialize;

use super::members::Members;
use crate::comm::call::{Call, Caller};
use crate::engine::Advanced;
use crate::error::Error;
use crate::memory::CacheStats;
use crate::reduce::{Dtype, Op};

/// The barrier gates of this rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GatesInfo {
    /// Connected.
    Connected {
        /// The TNI.
        tni: u16,
        /// `butterfly` or `tree`.
        arrangement: &'static str,
    },
    /// A flat buffer in shared memory serves in place of gates.
    FlatBuffer {
        /// The longest contribution of a rank.
        bytes: u64,
        /// Groups of ranks that share a cache or a memory, for barriers and reductions; 0: none.
        groups: usize,
    },
    /// None can be used.
    Absent {
        /// Why.
        reason: String,
    },
}

/// Figures of a cache, as long as it lives.
pub(crate) type CacheFigures = Box<dyn Fn() -> Option<CacheStats> + Send + Sync>;

/// What a call leaves to the hardware.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Nothing else may perform it, so that what the hardware might hand back is refused.
    pub(crate) always: bool,
    /// A sum of floats may be rounded as the hardware does: its last bits may differ from a plan's.
    pub(crate) any_rounding: bool,
}

/// Barriers and small reductions by the hardware, for all ranks of a communicator together.
pub(crate) trait SmallCollectives: Send + Sync {
    /// Whether it can perform a normalized call on these terms.
    ///
    /// # Errors
    /// Why not.
    fn serves(&self, call: &Call, terms: Terms) -> Result<(), Refusal>;

    /// Performs a call that it [`serves`](SmallCollectives::serves), or hands it back, false: an alltoall
    /// whose blocks, of sizes that no rank knows all of, are too long for it. All ranks find this alike.
    ///
    /// # Safety
    /// As [`Communicator::call`](crate::Communicator::call).
    ///
    /// # Errors
    /// [`Error::GatesMismatch`], [`Error::Disagree`], [`Error::Wire`]; what `waiter` returns.
    unsafe fn perform(
        &self,
        call: &Call,
        caller: Caller,
        waiter: &mut dyn Waiter,
    ) -> Result<bool, Error>;

    /// Waits for whatever is going on, and calls `f` before anything else does.
    fn between_calls(&self, f: &mut dyn FnMut());

    /// What there is to tell about it.
    fn describe(&self) -> GatesInfo;

    /// What starts calls that it serves, without waiting for them; `None` if all that it performs is blocking.
    fn requests(&self) -> Option<&dyn Requests> {
        None
    }
}

/// Small collectives that are started, and go on whenever somebody looks.
pub(crate) trait Requests {
    /// Whether it starts a normalized call that is served.
    fn starts(&self, call: &Call) -> bool;

    /// Starts a checked, normalized call that it [`starts`](Requests::starts).
    ///
    /// # Safety
    /// As [`Engine::start`](crate::engine::Engine::start).
    ///
    /// # Errors
    /// As [`Waiter::may_start`].
    unsafe fn start(&self, call: &Call<'static>, waiter: &mut dyn Waiter) -> Result<Start, Error>;

    /// Whether the call with this number has ended, as far as that can be seen at a glance.
    fn has_ended(&self, number: u64) -> bool;

    /// Moves everything on, and looks for the end of the call with this number: `patiently`, a few times. After a
    /// failure of the world, what cannot end any more is given up. Whoever is told of an end does not ask again.
    fn look(&self, number: u64, patiently: bool, has_failed: bool) -> Look;

    /// Moves everything on, unless another thread does.
    fn advance(&self) -> Advanced;
}

/// How a call has started.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// It has ended at once.
    Ended,
    UnderWay {
        number: u64,
        /// [`advance`](Requests::advance) is to be called from now on, whatever is waited for.
        hooks: bool,
    },
}

/// How a started call goes on.
#[derive(Debug)]
pub(crate) enum Look {
    /// It has ended, and its buffers are the caller's.
    Ended,
    /// It has failed alone: another rank has made another call.
    Failed(Error),
    /// It has been given up.
    GivenUp,
    /// It waits for this member of the communicator, if that is known.
    Waits(Option<usize>),
}

/// What a call checks, and tells, while it waits for the hardware.
pub(crate) trait Waiter {
    /// Whether the call may still be performed. Returns the number that the communicator's next operation
    /// by a plan gets, the same on all ranks if they have made the same calls.
    ///
    /// # Errors
    /// Why not.
    fn may_start(&mut self) -> Result<u32, Error>;

    /// There is nothing to do but to wait, for this member of the communicator, if it is known.
    ///
    /// # Errors
    /// Why there is no point in waiting any longer.
    fn idle(&mut self, awaited: Option<usize>) -> Result<(), Error>;
}

/// Places for the small collectives of further communicators: some for each rank, which are for
/// communicators that it is the first member of.
pub(crate) trait SmallPlaces: Send + Sync {
    /// Takes a place for a communicator, in case this rank is its first member; `None` if none is
    /// free.
    fn take(&self) -> Option<u32>;

    /// Gives back a place that no communicator uses.
    fn give_back(&self, place: u32);

    /// What performs small collectives of `members` in a place of the first of them, or why nothing does.
    /// Collective over them: all have it, or none has. `allgather` gives everybody equally many words of
    /// each.
    ///
    /// # Errors
    /// Those of `allgather`.
    fn open(
        &self,
        place: u32,
        members: &Members,
        allgather: Allgather<'_>,
    ) -> Result<Result<Box<dyn SmallCollectives>, String>, Error>;
}

/// Gives everybody equally many words of each member of a communicator, in the order of its ranks.
pub(crate) type Allgather<'a> = &'a mut dyn FnMut(&[u64]) -> Result<Vec<u64>, Error>;

/// Why the hardware cannot do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Collective(Collective),
    /// A reduction without an operator.
    Operator,
    Elements {
        op: Op,
        dtype: Dtype,
    },
    Count {
        most: u64,
        count: u64,
    },
    /// With more ranks than this.
    Ranks {
        most: usize,
    },
    /// Blocks of different sizes.
    Sizes,
    /// A sum whose bits depend on how it is rounded.
    Rounding(Dtype),
    Lacks {
        interface: u16,
        operation: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Collective(other) => {
                write!(f, "{other} is not supported")
            }
            Refusal::Operator => write!(f, "there is no operator"),
            Refusal::Elements { op, dtype } => {
                write!(f, "{op} on {dtype} is not supported")
            }
            Refusal::Count { most, count } => {
                write!(f, "{count} elements are not supported, only 1 to {most}")
            }
            Refusal::Ranks { most } => {
                write!(
                    f,
                    "it is for up to {most} ranks; among more it serves barriers and reductions"
                )
            }
            Refusal::Sizes => write!(f, "blocks must have one size"),
            Refusal::Rounding(dtype) => {
                write!(f, "they round a sum of {dtype} differently (HOPBINE_GATE_SUM=1 permits it)")
            }
            Refusal::Lacks { interface, operation } => {
                write!(f, "TNI {interface} lacks the operation with capability {operation:#x}")
            }
        }
    }
}
