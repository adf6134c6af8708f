//! Calls that the hardware performs: barrier gates and the flat buffer.

use std::sync::PoisonError;

use crate::Rank;
use crate::comm::call::Call;
use crate::comm::call::options::Hardware;
use crate::comm::communicator::Communicator;
use crate::comm::state::members::Members;
use crate::comm::state::small::{SmallCollectives, Waiter};
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
        match (&self.inner.small, &self.inner.of_world.small) {
            (Some(own), _) => Ok(own.as_ref()),
            (None, Ok(_)) if !self.inner.is_world() => Err(match self.inner.of_world.places {
                Some(_) => "this communicator found none free",
                None => "they know the world's communicator only",
            }),
            (None, small) => small.as_deref().map_err(String::as_str),
        }
    }

    /// The hardware, if it is to perform a normalized call.
    #[inline]
    pub(crate) fn gates_for(&self, call: &Call) -> Result<Option<&dyn SmallCollectives>, Error> {
        let preferred = self.preferred();
        let always = match self.options.hardware {
            Hardware::Never => return Ok(None),
            Hardware::Auto if self.options.asks_for_a_plan() => return Ok(None),
            Hardware::Auto if preferred.of(call.collective).is_some() => return Ok(None),
            Hardware::Auto => false,
            Hardware::Always => true,
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

pub(super) fn gates_refuse(call: &Call, reason: &dyn std::fmt::Display) -> Error {
    Error::NotServed {
        collective: call.collective,
        name: "barrier gates".to_owned(),
        reason: reason.to_string(),
    }
}
