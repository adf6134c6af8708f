//! Calls that the hardware performs: barrier gates and the flat buffer.

use std::fmt;
use std::sync::{PoisonError, RwLockReadGuard};

use crate::Rank;
use crate::comm::call::Call;
use crate::comm::call::options::Hardware;
use crate::comm::communicator::Communicator;
use crate::comm::state::inner::Inner;
use crate::comm::state::small::{Refusal, Requests, SmallCollectives, Terms, Waiter};
use crate::engine::{Admitted, GatesWatch};
use crate::error::Error;

impl Communicator {
    /// True if the barrier gates or the flat buffer perform this call with these options. They perform an alltoall
    /// with blocks of different sizes only if its blocks turn out to be short.
    pub fn uses_gates(&self, call: &Call) -> bool {
        matches!(self.gates_for(&call.normalized(self.caller())), Ok(Some(_)))
    }

    /// The hardware for small collectives, or the reason why there is none.
    #[inline]
    pub(crate) fn small_collectives(&self) -> Result<&dyn SmallCollectives, &str> {
        self.inner.small_collectives()
    }

    /// The hardware, if it performs this normalized call.
    #[inline]
    pub(crate) fn gates_for(&self, call: &Call) -> Result<Option<&dyn SmallCollectives>, Error> {
        match self.hardware_for(call) {
            Ok(small) => Ok(Some(small)),
            // The reason is formatted, which allocates, only if it is returned.
            Err(_) if self.options.hardware != Hardware::Always => Ok(None),
            Err(reason) => Err(not_served(call, &reason)),
        }
    }

    /// The hardware, if it starts this normalized call, which is not blocking, without a plan.
    ///
    /// # Errors
    /// [`Error::NotServed`] if the options demand the hardware and it cannot start the call.
    #[inline]
    pub(crate) fn requests_for(&self, call: &Call) -> Result<Option<&dyn Requests>, Error> {
        let Some(small) = self.gates_for(call)? else { return Ok(None) };
        match small.requests().filter(|requests| requests.starts(call)) {
            None if self.options.hardware == Hardware::Always => {
                Err(not_served(call, &"only blocking calls can use them"))
            }
            requests => Ok(requests),
        }
    }

    /// The hardware that performs a normalized call, or the reason why it does not.
    #[inline]
    pub(crate) fn hardware_for(
        &self,
        call: &Call,
    ) -> Result<&dyn SmallCollectives, NotByHardware<'_>> {
        let always = match self.options.hardware {
            Hardware::Never => return Err(NotByHardware::Unwanted),
            Hardware::Auto if self.options.requires_plan() => {
                return Err(NotByHardware::Unwanted);
            }
            Hardware::Auto if self.inner.members.preferred.of(call.collective).is_some() => {
                return Err(NotByHardware::Unwanted);
            }
            Hardware::Auto => false,
            Hardware::Always => true,
        };
        let any_rounding = always || self.options.gate_sum || self.inner.world.settings.gate_sum;
        let small = self.small_collectives().map_err(NotByHardware::Absent)?;
        small.serves(call, Terms { always, any_rounding }).map_err(NotByHardware::Refused)?;
        Ok(small)
    }

    /// Performs a checked, normalized call by the hardware. Returns the call, admitted, if the hardware hands it back.
    /// Operations under way advance meanwhile.
    ///
    /// # Safety
    /// As [`call`](Communicator::call).
    #[inline]
    pub(crate) unsafe fn perform_by_hardware(
        &self,
        small: &dyn SmallCollectives,
        call: &Call,
    ) -> Result<Option<Admitted>, Error> {
        let (engine, caller) = (&self.inner.world.engine, self.caller());
        let _open = self.inner.keep_open();
        let mut waiter = self.inner.hardware_waiter();
        // SAFETY: the caller's promise.
        let outcome = unsafe { small.perform(call, caller, &mut waiter) };
        match &outcome {
            // All ranks get the mismatch, so they stay in step.
            Ok(_) | Err(Error::GatesMismatch { .. } | Error::Poisoned(_) | Error::Closed) => {}
            // This rank has done its part, so no other rank waits for it.
            Err(Error::Lost { .. } | Error::Disagree { .. })
                if !waiter.gave_up && engine.allows_mismatch() => {}
            Err(error) => engine.fail(error),
        }
        outcome.map(|()| waiter.handed_back)
    }
}

impl Inner {
    /// The lock that a call holds so that [`close`](Communicator::close) refuses no calls meanwhile. `None` on the
    /// world's communicator, where [`between_calls`](SmallCollectives::between_calls) ensures that.
    #[inline]
    pub(super) fn keep_open(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let close_lock = &self.world.close_lock;
        (!self.is_world()).then(|| close_lock.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The [`Waiter`] of a call that is about to be made.
    #[inline]
    pub(super) fn hardware_waiter(&self) -> HardwareWaiter<'_> {
        HardwareWaiter {
            inner: self,
            next_operation: self.next_operation(),
            watch: None,
            gave_up: false,
            handed_back: None,
        }
    }

    /// The rank in the world of a member of the communicator.
    #[inline]
    pub(super) fn world_rank(&self, member: usize) -> Rank {
        match self.is_world() {
            true => member as Rank,
            false => self.members.world_rank(member as Rank),
        }
    }
}

/// Why the hardware does not perform a call.
#[derive(Clone, Copy)]
pub(crate) enum NotByHardware<'a> {
    /// The call or the environment asks for a plan.
    Unwanted,
    /// There is no hardware, for this reason.
    Absent(&'a str),
    Refused(Refusal),
}

impl fmt::Display for NotByHardware<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotByHardware::Unwanted => f.write_str("a plan is asked for"),
            NotByHardware::Absent(reason) => f.write_str(reason),
            NotByHardware::Refused(refusal) => refusal.fmt(f),
        }
    }
}

/// The [`Waiter`] of a call that the hardware performs.
pub(super) struct HardwareWaiter<'a> {
    inner: &'a Inner,
    next_operation: u32,
    /// Watches over a wait that is not short.
    watch: Option<GatesWatch<'a>>,
    gave_up: bool,
    /// The call, if the hardware has handed it back.
    handed_back: Option<Admitted>,
}

impl Waiter for HardwareWaiter<'_> {
    fn may_start(&mut self) -> Result<u32, Error> {
        self.inner.world.engine.check()?;
        Ok(self.next_operation)
    }

    fn hand_back(&mut self) -> Result<(), Error> {
        self.handed_back = Some(self.inner.world.engine.admit()?);
        Ok(())
    }

    fn idle(&mut self, awaited: Option<usize>) -> Result<(), Error> {
        let awaited = awaited.map(|rank| self.inner.world_rank(rank));
        let watch = self.watch.get_or_insert_with(|| self.inner.world.engine.watch_gates());
        watch.idle(awaited).inspect_err(|_| self.gave_up = true)
    }
}

pub(super) fn not_served(call: &Call, reason: &dyn std::fmt::Display) -> Error {
    Error::NotServed {
        collective: call.collective,
        name: "barrier gates".to_owned(),
        reason: reason.to_string(),
    }
}
