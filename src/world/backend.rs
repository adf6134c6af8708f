//! What a world needs of the device that it is on.

use std::fmt;

use hopbine_torus::collectives::Collective;
use hopbine_torus::geometry::{RankMap, Shape};
use utofu::bootstrap::Exchange;

use super::call::{Call, Caller};
use super::config::Drive;
use super::info::{DeviceInfo, GatesInfo};
use super::near::Near;
use super::select::Wire;
use crate::Rank;
use crate::endpoint::Endpoint;
use crate::endpoint::shm::Reading;
use crate::error::{Error, WireError};
use crate::memory::CacheStats;
use crate::reduce::{Dtype, Op};

/// A device, as one rank sees it.
pub(super) trait Backend: Send + Sync {
    /// Its name, as `HOPBINE_BACKEND` gives it.
    fn name(&self) -> &'static str;

    /// Coordinates x, y, z, a, b, c of this rank's node; zeros where there are none.
    ///
    /// # Errors
    /// [`WireError`] if the device does not say.
    fn coordinates(&self) -> Result<[u8; 6], WireError>;

    /// Whether the coordinates are those of a machine, so that they say which ranks are near.
    fn is_physical(&self) -> bool;

    /// What its messages travel through.
    fn wire(&self) -> Wire;

    /// Ports beyond this number share an interface with another one.
    ///
    /// # Errors
    /// [`WireError`] if the device does not say.
    fn n_interfaces(&self) -> Result<usize, WireError>;

    /// The drive that this device allows if `wanted` was asked for.
    ///
    /// # Errors
    /// Why not.
    fn drive(&self, wanted: Drive) -> Result<Drive, String> {
        Ok(wanted)
    }

    /// Opens the ports of all ranks, and the collectives that the hardware performs; collective over
    /// `exchange`. One set of endpoints serves all communicators.
    ///
    /// # Errors
    /// [`WireError`] if the exchange fails, or the device does on some rank; in the latter case
    /// all ranks get the same error.
    fn open(&self, exchange: &mut dyn Exchange, layout: &Layout<'_>) -> Result<Opened, WireError>;

    /// What there is to tell about it.
    fn describe(&self) -> DeviceInfo;
}

/// Where the ranks are: which share a node, and how those speak with each other.
pub(super) struct Layout<'a> {
    pub(super) n_ports: usize,
    pub(super) shape: &'a Shape,
    pub(super) map: &'a RankMap,
    /// This rank's number among those of its node.
    pub(super) place: usize,
    /// How the ranks of this node speak with each other, if not as those of different nodes do.
    pub(super) near: Option<Near>,
}

/// A rank's open endpoints on its device.
pub(super) struct Opened {
    /// One for each port.
    pub(super) endpoints: Vec<Box<dyn Endpoint>>,
    /// The collectives that the hardware performs, or why it performs none.
    pub(super) small: Result<Box<dyn SmallCollectives>, String>,
    /// Those for further communicators, if there are any.
    pub(super) places: Option<Box<dyn SmallPlaces>>,
    /// The figures of the registration cache, if there is one.
    pub(super) cache: Option<CacheFigures>,
    /// Whether ranks of this host read each other's memory.
    pub(super) reading: Reading,
}

/// Figures of a cache, as long as it lives.
pub(super) type CacheFigures = Box<dyn Fn() -> Option<CacheStats> + Send + Sync>;

/// Barriers and small reductions by the hardware, for all ranks of a communicator together.
pub(super) trait SmallCollectives: Send + Sync {
    /// Whether it can perform a normalized call. `always` says that nothing else may: results may then
    /// differ from a plan's by rounding, and what it might hand back is refused.
    ///
    /// # Errors
    /// Why not.
    fn serves(&self, call: &Call, always: bool) -> Result<(), Refusal>;

    /// Performs a call that it [`serves`](SmallCollectives::serves), or hands it back, false: an alltoall
    /// whose blocks, of sizes that no rank knows all of, are too long for it. All ranks find this alike.
    ///
    /// # Safety
    /// As [`Communicator::call`](super::Communicator::call).
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
}

/// What a call checks, and tells, while it waits for the hardware.
pub(super) trait Waiter {
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
pub(super) trait SmallPlaces: Send + Sync {
    /// Takes a place for a communicator, in case this rank is its first member; `None` if none is
    /// free.
    fn take(&self) -> Option<u32>;

    /// Gives back a place that no communicator uses.
    fn give_back(&self, place: u32);

    /// What performs small collectives in a place of the first of `members`, ranks of the world,
    /// of which this one is number `me`. `None` if it cannot.
    fn open(&self, place: u32, members: &[Rank], me: usize) -> Option<Box<dyn SmallCollectives>>;
}

/// Why the hardware cannot do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Collective(Collective),
    Elements {
        op: Option<Op>,
        dtype: Dtype,
    },
    Count {
        most: u64,
        count: u64,
    },
    /// Blocks of different sizes.
    Sizes,
    Lacks {
        interface: u16,
        operation: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Collective(other) => {
                write!(f, "they cannot do {other}")
            }
            Refusal::Elements { op, dtype } => {
                let op = op.map_or("no operator", |op| op.name());
                write!(f, "they do not do {op} on {dtype}")
            }
            Refusal::Count { most, count } => {
                write!(f, "they take 1 to {most} elements, not {count}")
            }
            Refusal::Sizes => write!(f, "blocks must have one size"),
            Refusal::Lacks { interface, operation } => {
                write!(f, "TNI {interface} lacks the operation with capability {operation:#x}")
            }
        }
    }
}
