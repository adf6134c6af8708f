//! Profiles: the software of a call, as scripts of the ports of a rank.

use super::engine::{self, CallForm};
use super::machine::Machine;
use super::mpi;
use super::outcome::Outcome;
use super::paper::{self, PaperCall};
use super::player::play;
use super::routed::RoutedPlan;
use super::script::{NotModelled, Script};
use super::trees;
use crate::plan::{Flow, Interleave, Recipe, Schedule, StepOrder};

/// The software that performs a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// hopbine's engine: each port has a thread of its own, which combines arrived data while the next segment
    /// arrives.
    Hopbine {
        /// The longest message, bytes.
        segment_bytes: u64,
        /// Whether the call was made before.
        call: CallForm,
    },
    /// The code that the Bine paper was measured with.
    Paper(PaperCall),
    /// The same schedules over MPI, messages one after the other.
    Mpi,
}

impl Profile {
    /// The default of the longest message of hopbine's engine, bytes.
    pub const SEGMENT_BYTES: u64 = 1 << 20;

    /// A schedule as this software performs it: the papers' code performs far-first steps as near-first steps in
    /// reverse order, dimensions included.
    #[must_use]
    pub fn performed(self, mut schedule: Schedule) -> Schedule {
        if let (Profile::Paper(_), Recipe::Walk(recipe)) = (self, &mut schedule.recipe)
            && recipe.order == StepOrder::FarFirst
        {
            recipe.interleave = Interleave::RoundRobinBackwards;
        }
        schedule
    }

    /// Returns the operations of each port in a call of `n` bytes.
    ///
    /// # Errors
    /// [`NotModelled`] if the software does not perform the schedule or the call.
    pub fn script(
        self,
        schedule: &Schedule,
        flow: &dyn Flow,
        routed: &RoutedPlan,
        machine: &Machine,
        n: f64,
    ) -> Result<Script, NotModelled> {
        match self {
            Profile::Hopbine { segment_bytes, call } => {
                Ok(engine::script(flow, routed, machine, n, segment_bytes as f64, call))
            }
            Profile::Paper(call) => paper::script(call, schedule, flow, routed, machine, n),
            Profile::Mpi => mpi::script(schedule, flow, routed, machine, n),
        }
    }

    /// Predicts a call of `n` bytes; `with_spans`: with the spans of all ports.
    ///
    /// # Errors
    /// As [`Profile::script`].
    pub fn play(
        self,
        schedule: &Schedule,
        flow: &dyn Flow,
        routed: &RoutedPlan,
        machine: &Machine,
        n: f64,
        with_spans: bool,
    ) -> Result<Outcome, NotModelled> {
        if let Some([shorter, short]) = self.short_of(routed, n).filter(|_| !with_spans) {
            // Each further segment of a forwarded vector takes as long as the one before, and at least the time of
            // the busiest link.
            let play = |n| self.play(schedule, flow, routed, machine, n, false);
            let (more, speeds) = (short - shorter, machine.speeds());
            let (shorter, short, times) = (play(shorter)?, play(short)?, (n - short) / more);
            let busiest = match &routed.trees {
                Some(trees) => trees::busiest_ns(flow, routed, trees, &speeds),
                None => routed.busiest_ns(&speeds),
            };
            return Ok(short.extended(&shorter, times, busiest * more));
        }
        if let (Profile::Hopbine { segment_bytes, call }, Some(trees)) = (self, &routed.trees) {
            let of_call = (machine, n, segment_bytes as f64, call);
            return Ok(trees::play(flow, routed, trees, of_call, with_spans));
        }
        let script = self.script(schedule, flow, routed, machine, n)?;
        Ok(play(routed, &script, &machine.speeds(), n, with_spans))
    }

    /// If vectors are forwarded in more segments than are followed one by one: two sizes with segments as long as
    /// those of `n` bytes, but not more segments than that.
    fn short_of(self, routed: &RoutedPlan, n: f64) -> Option<[f64; 2]> {
        let Profile::Hopbine { segment_bytes, .. } = self else { return None };
        let shares: Vec<f64> = routed.whole().iter().copied().collect::<Option<_>>()?;
        let share = shares.into_iter().fold(0.0, f64::max);
        let segments = (share * n / segment_bytes as f64).ceil();
        let most = engine::MOST_PARTS as f64;
        (segments > most).then(|| [most - 8.0, most].map(|pieces| n * pieces / segments))
    }
}
