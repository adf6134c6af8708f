//! Calls that the hardware performs: barrier gates and the flat buffer.

use std::fmt;
use std::sync::PoisonError;

use crate::Rank;
use crate::comm::call::Call;
use crate::comm::call::options::Hardware;
use crate::comm::communicator::Communicator;
use crate::comm::state::members::Members;
use crate::comm::state::small::{Refusal, SmallCollectives, Terms, Waiter};
use crate::engine::{Engine, GatesWatch};
use crate::error::Error;

impl Communicator {
    /// True if this call could be, and with these options is, performed by the barrier gates or the flat buffer;
    /// an alltoall with blocks of different sizes only if these turn out to be short.
    pub fn uses_gates(&self, call: &Call) -> bool {
        matches!(self.gates_for(&call.normalized(self.caller())), Ok(Some(_)))
    }

    /// The collectives that the hardware performs, or why it performs none.
    #[inline]
    pub(crate) fn small_collectives(&self) -> Result<&dyn SmallCollectives, &str> {
        let small = self.inner.small.get().unwrap_or(&self.inner.of_world.small);
        small.as_deref().map_err(String::as_str)
    }

    /// The hardware, if it is to perform a normalized call.
    #[inline]
    pub(crate) fn gates_for(&self, call: &Call) -> Result<Option<&dyn SmallCollectives>, Error> {
        match self.hardware_for(call) {
            Ok(small) => Ok(Some(small)),
            // Nothing is said, and so nothing allocated, unless somebody wants to know.
            Err(_) if self.options.hardware != Hardware::Always => Ok(None),
            Err(reason) => Err(gates_refuse(call, &reason)),
        }
    }

    /// The hardware that is to perform a normalized call, or why it is not.
    #[inline]
    pub(crate) fn hardware_for(&self, call: &Call) -> Result<&dyn SmallCollectives, Passed<'_>> {
        let always = match self.options.hardware {
            Hardware::Never => return Err(Passed::Unwanted),
            Hardware::Auto if self.options.asks_for_a_plan() => return Err(Passed::Unwanted),
            Hardware::Auto if self.preferred().of(call.collective).is_some() => {
                return Err(Passed::Unwanted);
            }
            Hardware::Auto => false,
            Hardware::Always => true,
        };
        let any_rounding = always || self.options.gate_sum || self.inner.of_world.gate_sum;
        let small = self.small_collectives().map_err(Passed::Absent)?;
        small.serves(call, Terms { always, any_rounding }).map_err(Passed::Refused)?;
        Ok(small)
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

/// Why the hardware does not perform a call.
#[derive(Clone, Copy)]
pub(crate) enum Passed<'a> {
    /// The call or the environment asks for a plan.
    Unwanted,
    /// There is no hardware, for this reason.
    Absent(&'a str),
    Refused(Refusal),
}

impl fmt::Display for Passed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Passed::Unwanted => f.write_str("a plan is asked for"),
            Passed::Absent(reason) => f.write_str(reason),
            Passed::Refused(refusal) => refusal.fmt(f),
        }
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

pub(super) fn gates_refuse(call: &Call, reason: &dyn std::fmt::Display) -> Error {
    Error::NotServed {
        collective: call.collective,
        name: "barrier gates".to_owned(),
        reason: reason.to_string(),
    }
}
