//! What software does in a call: scripts of the ports of a rank.

use super::engine::{self, CallForm};
use super::machine::Machine;
use super::mpi;
use super::outcome::Outcome;
use super::paper::{self, PaperCall};
use super::player::play;
use super::score::Score;
use super::script::{NotModelled, Script};
use super::trees;
use crate::plan::{Flow, Interleave, Recipe, Schedule, StepOrder};

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

    /// A schedule as this software performs it: what the papers' code does far first is what it does near first,
    /// from the end, dimensions included.
    #[must_use]
    pub fn performed(self, mut schedule: Schedule) -> Schedule {
        if let (Profile::Paper(_), Recipe::Walk(recipe)) = (self, &mut schedule.recipe)
            && recipe.order == StepOrder::FarFirst
        {
            recipe.interleave = Interleave::RoundRobinBackwards;
        }
        schedule
    }

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
        if let Some([shorter, short]) = self.short_of(score, n).filter(|_| !with_spans) {
            // Each further segment of what is passed on takes as long as the one before.
            let play = |n| self.play(schedule, flow, score, machine, n, false);
            let (shorter, short, times) =
                (play(shorter)?, play(short)?, (n - short) / (short - shorter));
            return Ok(short.extended(&shorter, times));
        }
        if let (Profile::Hopbine { segment_bytes, call }, Some(trees)) = (self, &score.trees) {
            let of_call = (machine, n, segment_bytes as f64, call);
            return Ok(trees::play(flow, score, trees, of_call, with_spans));
        }
        let script = self.script(schedule, flow, score, machine, n)?;
        Ok(play(score, &script, &machine.speeds(), n, with_spans))
    }

    /// Two sizes with segments as long as those of `n` bytes, but not more than are followed one by one, if
    /// vectors are passed on in more of them.
    fn short_of(self, score: &Score, n: f64) -> Option<[f64; 2]> {
        let Profile::Hopbine { segment_bytes, .. } = self else { return None };
        let shares: Vec<f64> = score.whole().iter().copied().collect::<Option<_>>()?;
        let share = shares.into_iter().fold(0.0, f64::max);
        let segments = (share * n / segment_bytes as f64).ceil();
        let most = engine::MOST_PARTS as f64;
        (segments > most).then(|| [most - 8.0, most].map(|pieces| n * pieces / segments))
    }
}
