//! What software does in a call: scripts of the ports of a rank.

use super::engine::{self, CallForm};
use super::machine::Machine;
use super::mpi;
use super::paper::{self, PaperCall};
use super::score::Score;
use super::script::{NotModelled, Script};
use crate::plan::{Flow, Schedule};

/// Whose software performs a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Our engine: each port has a thread of its own, and what has arrived is combined while the next segment
    /// comes.
    Hopbine {
        /// The longest message, bytes.
        segment_bytes: u64,
        /// Whether there has been such a call before.
        call: CallForm,
    },
    /// The code that the Bine paper was measured with.
    Paper(PaperCall),
    /// The same schedules over MPI, messages one after the other.
    Mpi,
}

impl Profile {
    /// What each port does in a call of `n` bytes.
    ///
    /// # Errors
    /// [`NotModelled`] for what the software has no counterpart of.
    pub fn script(
        self,
        schedule: &Schedule,
        flow: &dyn Flow,
        score: &Score,
        machine: &Machine,
        n: f64,
    ) -> Result<Script, NotModelled> {
        match self {
            Profile::Hopbine { segment_bytes, call } => {
                Ok(engine::script(flow, score, machine, n, segment_bytes as f64, call))
            }
            Profile::Paper(call) => paper::script(call, schedule, flow, score, machine, n),
            Profile::Mpi => mpi::script(schedule, flow, score, machine, n),
        }
    }
}
