//! What serves a call, and why: for reports that people read.

use std::fmt;

use hopbine_torus::choose::{Choice, Wire};

use crate::comm::call::Call;
use crate::comm::communicator::Communicator;
use crate::comm::programs::key::Key;
use crate::comm::state::inner::Inner;
use crate::error::Error;

/// What serves a call, and why. The text is one line: `direct-l, 1 port, in memory: 2 ranks, ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The algorithm's name in the registry, or what does without one.
    pub by: String,
    /// Ports and messages; empty where there is no plan.
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
    /// Says what serves a blocking call, without making it.
    ///
    /// # Errors
    /// As the call itself, where that is not served at all.
    pub fn explain(&self, call: &Call) -> Result<Explanation, Error> {
        let call = call.normalized(self.caller());
        let Ok(Some(small)) = self.gates_for(&call) else {
            return self.explain_started(&call);
        };
        let (by, why) = match self.tuning().table().wire() {
            Wire::Memory => ("flat buffer", "short, all ranks on one host"),
            Wire::Network => ("gates", "the network's barrier gates do it"),
        };
        if small.serves(&call, true).is_ok() {
            return Ok(Explanation { by: by.to_owned(), how: String::new(), why: why.to_owned() });
        }
        // What it may hand back.
        let otherwise = self.explain_started(&call)?;
        Ok(Explanation {
            by: format!("{by} or {}", otherwise.by),
            why: format!("{why}; where blocks are longer, {}", otherwise.why),
            ..otherwise
        })
    }

    /// As [`explain`](Communicator::explain), for a call that is not blocking.
    ///
    /// # Errors
    /// As the call itself, where that is not served at all.
    pub fn explain_started(&self, call: &Call) -> Result<Explanation, Error> {
        Ok(self.inner.explained(&Key::new(&call.normalized(self.caller()), &self.options)))
    }
}

impl Inner {
    /// What serves a call by plan.
    pub(crate) fn explained(&self, key: &Key) -> Explanation {
        let options = &key.options;
        let choice = self.choice(key);
        let choice = Choice {
            ports: options.ports.unwrap_or(choice.ports),
            segment_bytes: options.segment_bytes.unwrap_or(choice.segment_bytes),
            ..choice
        };
        let (by, why) = match &options.algorithm {
            Some(name) => (name.to_string(), "the call names it".to_owned()),
            None if self.preferred(key).is_some() => {
                (choice.algorithm.name.to_string(), "HOPBINE_ALGORITHM names it".to_owned())
            }
            None => {
                let found = self.found(key);
                (choice.algorithm.name.to_string(), format!("{found}, on {}", self.members.shape))
            }
        };
        let how = choice.how();
        Explanation { by, how, why }
    }
}
