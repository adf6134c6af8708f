//! Small collectives that are performed without a plan: by the hardware's barrier gates, or by ranks of one
//! host in memory that they share.

use std::fmt;

use hopbine_torus::collectives::Collective;
use serde::Serialize;

use super::members::Members;
use crate::comm::call::{Call, Caller};
use crate::engine::ProgressState;
use crate::error::Error;
use crate::memory::CacheStats;
use crate::reduce::{Dtype, Op};

/// The barrier gates of this rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GatesInfo {
    /// Connected.
    Connected {
        /// The TNI.
        tni: u16,
        /// `butterfly` or `tree`.
        arrangement: &'static str,
    },
    /// A flat buffer in shared memory replaces the gates.
    FlatBuffer {
        /// The longest contribution of a rank in bytes.
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

/// Reads the statistics of a registration cache; `None` once the cache has been dropped.
pub(crate) type CacheStatsFn = Box<dyn Fn() -> Option<CacheStats> + Send + Sync>;

/// The conditions on which the hardware may perform a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Only the hardware may perform the call: what it might hand back is refused.
    pub(crate) always: bool,
    /// A sum of floats may be rounded as the hardware rounds it: its last bits may differ from a plan's.
    pub(crate) any_rounding: bool,
}

/// Small collectives of a communicator that its ranks perform together without a plan.
pub(crate) trait SmallCollectives: Send + Sync {
    /// Whether it can perform a normalized call on these terms.
    ///
    /// # Errors
    /// The reason why it cannot.
    fn serves(&self, call: &Call, terms: Terms) -> Result<(), Refusal>;

    /// Performs a call that it [`serves`](SmallCollectives::serves), or [hands it back](Waiter::hand_back), as all ranks
    /// do: an alltoall whose blocks are too long, of which no rank knows all sizes.
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
    ) -> Result<(), Error>;

    /// Waits for the call under way, and runs `f` before another one starts.
    fn between_calls(&self, f: &mut dyn FnMut());

    /// A description for reports.
    fn describe(&self) -> GatesInfo;

    /// The interface for calls that are not blocking; `None` if it performs only blocking ones.
    fn requests(&self) -> Option<&dyn Requests> {
        None
    }
}

/// Small collectives that are started, and advance in each look at one of them.
pub(crate) trait Requests {
    /// Whether it starts a normalized call that is [served](SmallCollectives::serves).
    fn starts(&self, call: &Call) -> bool;

    /// Starts a checked, normalized call that it [`starts`](Requests::starts).
    ///
    /// # Safety
    /// As [`Engine::start`](crate::engine::Engine::start).
    ///
    /// # Errors
    /// As [`Waiter::may_start`].
    unsafe fn start(
        &self,
        call: &Call<'static>,
        waiter: &mut dyn Waiter,
    ) -> Result<StartStatus, Error>;

    /// Whether the call with this number is known to have ended; makes no progress.
    fn has_ended(&self, number: u64) -> bool;

    /// Advances all calls, and looks for the end of the call with this number, a few times if `spins`. After a
    /// failure of the world it gives up calls that cannot end any more. After an end has been returned, the caller
    /// must not ask again.
    fn poll(&self, number: u64, spins: bool, has_failed: bool) -> CallStatus;

    /// Advances all calls, unless another thread does.
    fn advance(&self) -> ProgressState;
}

/// The state of a call when it has been started.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StartStatus {
    /// It has ended at once.
    Ended,
    UnderWay {
        number: u64,
        /// Whether [`advance`](Requests::advance) must be called from now on, in all waits and tests of the rank.
        needs_hook: bool,
    },
}

/// The state of a started call.
#[derive(Debug)]
pub(crate) enum CallStatus {
    /// It has ended, and its buffers are the caller's.
    Ended,
    /// It has failed without failing the world: another rank has made another call.
    Failed(Error),
    /// It has been given up after a failure of the world.
    GivenUp,
    /// It waits for this member of the communicator, if that is known.
    Waits(Option<usize>),
}

/// What a call needs from its communicator while it waits for the hardware.
pub(crate) trait Waiter {
    /// Whether the call may still be performed. Returns the number of the communicator's next operation by a plan,
    /// which is the same on all ranks that have made the same calls.
    ///
    /// # Errors
    /// The reason why it may not.
    fn may_start(&mut self) -> Result<u32, Error>;

    /// Leaves the call to a plan, which ranks may start after this rank has refused further calls.
    ///
    /// # Errors
    /// The reason why it may not be performed.
    fn hand_back(&mut self) -> Result<(), Error>;

    /// Waits, since there is nothing else to do: for this member of the communicator, if it is known.
    ///
    /// # Errors
    /// The reason to give up waiting.
    fn idle(&mut self, awaited: Option<usize>) -> Result<(), Error>;
}

/// Slots for the small collectives of further communicators. Each rank has some, for communicators of which it is
/// the first member.
pub(crate) trait SmallCollectivesPool: Send + Sync {
    /// Takes a slot for a communicator, in case this rank is its first member; `None` if none is
    /// free.
    fn take(&self) -> Option<u32>;

    /// Gives back a slot that no communicator uses.
    fn give_back(&self, slot: u32);

    /// Opens the small collectives of `members` in a slot of their first member, or returns why there are none.
    /// Collective over the members: all get them, or none does. `allgather` gathers equally many words of each
    /// member.
    ///
    /// # Errors
    /// Those of `allgather`.
    fn open(
        &self,
        slot: u32,
        members: &Members,
        allgather: Allgather<'_>,
    ) -> Result<Result<Box<dyn SmallCollectives>, String>, Error>;

    /// Frees the hardware of all communicators after the end of the world, of which handles may stay.
    fn end(&self) {}
}

/// Gathers equally many words of each member of a communicator at all members, in the order of its ranks.
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
    /// More ranks than this.
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
