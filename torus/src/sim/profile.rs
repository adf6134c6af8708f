//! What software does in a call: scripts of the ports of a rank.

use super::engine::{self, CallForm};
use super::machine::Machine;
use super::mpi;
use super::outcome::Outcome;
use super::paper::{self, PaperCall};
use super::player::play;
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
    /// The longest message of our engine if nothing else is said, bytes.
    pub const SEGMENT_BYTES: u64 = 1 << 20;

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

    /// What a call of `n` bytes takes; `with_spans`: and what ports do when.
    ///
    /// # Errors
    /// As [`Profile::script`].
    pub fn play(
        self,
        schedule: &Schedule,
        flow: &dyn Flow,
        score: &Score,
        machine: &Machine,
        n: f64,
        with_spans: bool,
    ) -> Result<Outcome, NotModelled> {
        let script = self.script(schedule, flow, score, machine, n)?;
        Ok(play(score, &script, &machine.speeds(), n, with_spans))
    }
}
