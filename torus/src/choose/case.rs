//! Algorithms on a shape, prepared for predictions at any size.

use crate::collectives::Collective;
use crate::geometry::{RankMap, Shape};
use crate::names::Rank;
use crate::plan::{Expansion, Flow, Recipe, Schedule, ScheduleError};
use crate::registry::{Algorithm, Request};
use crate::sim::{CallForm, Machine, Network, Profile, RoutedPlan};

/// An algorithm on a number of ports.
pub struct Case {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Number of ports.
    pub ports: u32,
    schedule: Schedule,
    flow: Expansion,
    routed: RoutedPlan,
}

impl Case {
    /// Prepares an algorithm on a shape, in the default rank map, with root 0.
    ///
    /// # Errors
    /// [`ScheduleError`] if the algorithm does not serve.
    pub fn new(
        network: &Network,
        shape: &Shape,
        algorithm: &Algorithm,
        ports: u32,
    ) -> Result<Self, ScheduleError> {
        let map = RankMap::default();
        let request =
            Request { shape: shape.clone(), map: map.clone(), root: Rank(0), ports: Some(ports) };
        let schedule = algorithm.schedule(&request)?;
        let flow = schedule.expand()?;
        let routed = RoutedPlan::of_one(&flow, network, |rank| map.vertex_of(shape, rank));
        Ok(Case { algorithm: algorithm.clone(), ports, schedule, flow, routed })
    }

    /// Follows all ranks, if one rank does not stand exactly for all and there are few enough messages. A search
    /// would otherwise prefer the schedules whose predictions are too short.
    #[must_use]
    pub fn exact(mut self, network: &Network) -> Self {
        if !self.routed.is_exact() {
            let Case { schedule, flow, .. } = &self;
            let place = |rank: Rank| schedule.map.vertex_of(&schedule.shape, rank);
            if let Ok(all) = RoutedPlan::of_all(flow, network, place) {
                self.routed = all;
            }
        }
        self
    }

    /// Whether the time of one rank may be far below the time of all ranks (docs/model.md), and there are few enough
    /// messages to follow all ranks.
    pub fn is_uneven(&self) -> bool {
        let is_dealt = matches!(&self.schedule.recipe, Recipe::Walk(recipe) if recipe.is_dealt());
        self.ports > 1 && is_dealt && self.routed.has_few_messages(self.flow.n_ranks())
    }

    /// Predicts a repeated call of `bytes` bytes with messages of at most `segment_bytes`, in ns.
    pub fn ns(&self, machine: &Machine, bytes: u64, segment_bytes: u64) -> f64 {
        let profile = Profile::Hopbine { segment_bytes, call: CallForm::Repeated };
        let Case { schedule, flow, routed, .. } = self;
        let played = profile.play(schedule, flow, routed, machine, bytes as f64, false);
        played.expect("our own software performs all schedules").ns
    }
}

/// Whether predictions of a collective can be compared. For alltoalls with several ranks on a node, predictions that
/// follow one rank for all are up to four times too short (docs/model.md), and to follow all ranks takes too long.
pub fn is_predicted(collective: Collective, ranks_per_node: u32) -> bool {
    collective != Collective::Alltoall || ranks_per_node == 1
}
