//! What performs a call, and why, for reports that people read.

use std::fmt;

use hopbine_torus::choose::Wire;
use hopbine_torus::collectives::Collective;

use crate::comm::call::Call;
use crate::comm::choice::wanted::Wanted;
use crate::comm::communicator::Communicator;
use crate::comm::operations::hardware::NotByHardware;
use crate::comm::programs::key::Key;
use crate::comm::state::inner::Inner;
use crate::comm::state::small::{Refusal, Terms};
use crate::error::Error;

/// What performs a call, and why. The text is one line: `direct-l, 1 port, in memory: 2 ranks, ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The algorithm's name in the registry, or the hardware that performs the call.
    pub by: String,
    /// Ports and messages; empty without a plan.
    pub how: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { by, how, why } = self;
        let comma = if how.is_empty() { "" } else { ", " };
        write!(f, "{by}{comma}{how}: {why}")
    }
}

impl Communicator {
    /// Explains what performs a blocking call, without performing it.
    ///
    /// # Errors
    /// As the call itself, if nothing can perform it.
    pub fn explain(&self, call: &Call) -> Result<Explanation, Error> {
        let call = call.normalized(self.caller());
        let small = match self.hardware_for(&call) {
            Ok(small) => small,
            Err(reason) => {
                let plan = self.explain_plan(&call)?;
                let why = self
                    .why_not_gates(&call, reason)
                    .map(|reason| format!("{}; {reason}", plan.why));
                return Ok(Explanation { why: why.unwrap_or(plan.why), ..plan });
            }
        };
        let by_small = self.inner.explained_small();
        if small.serves(&call, Terms { always: true, any_rounding: true }).is_ok() {
            return Ok(by_small);
        }
        // The hardware may hand the call back to a plan.
        let (otherwise, Explanation { by, why, .. }) = (self.explain_plan(&call)?, by_small);
        Ok(Explanation {
            by: format!("{by} or {}", otherwise.by),
            why: format!("{why}; where blocks are longer, {}", otherwise.why),
            ..otherwise
        })
    }

    /// Why the world's barrier gates do not perform this call; `None` without gates, or for a collective that they
    /// never perform.
    fn why_not_gates(&self, call: &Call, reason: NotByHardware<'_>) -> Option<String> {
        let is_kind = matches!(call.collective, Collective::Barrier | Collective::Allreduce);
        let is_network = self.tuning().table().wire() == Wire::Network;
        if !(is_kind && is_network && self.inner.world.small.is_ok()) {
            return None;
        }
        Some(match reason {
            // Omits the count: one line of a report is for many lengths.
            NotByHardware::Refused(Refusal::Count { most, .. }) => {
                format!("not by gates, which take 1 to {most} elements")
            }
            reason => format!("not by gates: {reason}"),
        })
    }

    /// As [`explain`](Communicator::explain), for a non-blocking or persistent call.
    ///
    /// # Errors
    /// As the call itself, if nothing can perform it.
    pub fn explain_started(&self, call: &Call) -> Result<Explanation, Error> {
        let call = call.normalized(self.caller());
        match self.requests_for(&call)? {
            Some(_) => Ok(self.inner.explained_small()),
            None => self.explain_plan(&call),
        }
    }

    /// As [`explain`](Communicator::explain), for a normalized call that a plan performs.
    fn explain_plan(&self, call: &Call) -> Result<Explanation, Error> {
        self.inner.explained(&Key::new(call, &self.options))
    }
}

impl Inner {
    /// What performs a call without a plan, and why.
    pub(crate) fn explained_small(&self) -> Explanation {
        let (by, why) = match self.world.settings.tuning.table().wire() {
            Wire::Memory => ("flat buffer", "short, all ranks on one host"),
            Wire::Network => ("gates", "the network's barrier gates perform it"),
        };
        Explanation { by: by.to_owned(), how: String::new(), why: why.to_owned() }
    }

    /// Which plan performs a call, and why.
    ///
    /// # Errors
    /// If the call names an algorithm that cannot be used.
    pub(crate) fn explained(&self, key: &Key) -> Result<Explanation, Error> {
        let options = &key.options;
        let wanted = self.wanted(key)?;
        let why = match &options.algorithm {
            Some(_) if wanted.as_ref().is_some_and(|wanted| wanted.is_written) => {
                "the schedule that the call names".to_owned()
            }
            Some(name) if Wanted::is_search(name) => {
                format!("found by the {name} that the call names")
            }
            Some(_) => "the call names it".to_owned(),
            None if self.preferred(key).is_some() => "HOPBINE_ALGORITHM names it".to_owned(),
            None => format!("{}, on {}", self.table_row(key), self.members.shape),
        };
        let choice = self.final_choice(key, wanted);
        Ok(Explanation { by: choice.algorithm.name.to_string(), how: choice.how(), why })
    }
}
