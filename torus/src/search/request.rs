//! The request to a search, and its result.

use crate::bounds::BoundKind;
use crate::collectives::Collective;
use crate::geometry::{RankMap, Shape};
use crate::names::Rank;
use crate::plan::{Expansion, Schedule, max_ports};
use crate::sim::{CallForm, Machine, Network, Profile, RoutedPlan};

/// The default lengths at which messages are cut, in bytes. Of the lengths that cut nothing the first is used.
pub const SEGMENTS: [u64; 4] = [1 << 20, 256 << 10, 64 << 10, 16 << 10];

/// The most messages of a call of which all ranks are followed at every length.
const MOST_AT_ALL_LENGTHS: u64 = 1 << 11;

/// A request: the call whose best schedule is wanted.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// The collective.
    pub collective: Collective,
    /// The shape of the communicator.
    pub shape: Shape,
    /// The rank map of the communicator.
    pub map: RankMap,
    /// The root; 0 for collectives without one.
    pub root: Rank,
    /// The most ports of a rank, at least 1.
    pub ports: u32,
    /// Bytes of a rank's vector, or of all its blocks.
    pub bytes: f64,
    /// The lengths at which messages may be cut, bytes.
    pub segments: Vec<u64>,
}

impl SearchRequest {
    /// Checks the request.
    pub(super) fn validate(&self) -> Result<(), SearchError> {
        let SearchRequest { ref shape, ports, root, ref segments, .. } = *self;
        let (max, last) = (max_ports(shape), Rank(shape.n_ranks() - 1));
        if !(1..=max).contains(&ports) {
            return Err(SearchError::Ports { ports, max, shape: shape.to_string() });
        }
        if root > last {
            return Err(SearchError::Root { root, last, shape: shape.to_string() });
        }
        if segments.is_empty() || segments.contains(&0) {
            return Err(SearchError::Segments);
        }
        Ok(())
    }
}

/// Why a request is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// More ports than the shape has directions, or none.
    #[error("{ports} ports on shape {shape}: use 1 to {max}, two per dimension of size above 1")]
    Ports {
        /// Ports asked for.
        ports: u32,
        /// Most ports.
        max: u32,
        /// The shape.
        shape: String,
    },
    /// No segment length is given, or one is 0.
    #[error("messages are cut at one length or several, each of 1 byte or more")]
    Segments,
    /// The root is not a rank.
    #[error("root {root} is not a rank: the shape {shape} has ranks 0 to {last}")]
    Root {
        /// Root asked for.
        root: Rank,
        /// The last rank.
        last: Rank,
        /// The shape.
        shape: String,
    },
}

/// The predicted time of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Time of a repeated call, ns.
    pub ns: f64,
    /// The length at which messages are cut, bytes.
    pub segment_bytes: u64,
    /// Whether all ranks do the same as the one that was followed, or all ranks were followed.
    pub is_exact: bool,
    /// Whether it is exact and the least of all lengths.
    pub is_least: bool,
}

/// A schedule of the space.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The schedule.
    pub schedule: Schedule,
    /// The lower bound of its time, ns.
    pub bound_ns: f64,
    /// Whether it is a row of the registry, on at most the request's number of ports.
    pub is_registry_row: bool,
    /// Whether its prediction counts if one rank stands for all, but not exactly: true for rows of the registry, and
    /// for forms in which all ranks do the same.
    pub is_trusted: bool,
    /// The estimate of its time, ns.
    pub(super) estimate_ns: f64,
    /// The kind of its template: the template without the number of ports.
    pub(super) kind: u32,
}

impl Candidate {
    /// A schedule from outside the search, such as a row of the registry, to be predicted in the same way.
    pub fn of_schedule(schedule: Schedule) -> Self {
        Candidate {
            schedule,
            bound_ns: 0.0,
            is_registry_row: true,
            is_trusted: true,
            estimate_ns: 0.0,
            kind: u32::MAX,
        }
    }

    /// Whether a prediction of this schedule counts.
    pub fn counts(&self, cost: &Cost) -> bool {
        cost.is_exact || self.is_trusted
    }

    /// Predicts the time by the fast simulation, at the best of the request's segment lengths. If one rank does not
    /// stand exactly for all, a search over many schedules would find those whose predictions are too short. So all
    /// ranks are followed: with at most 2,048 messages at every length; with at most 65,536 only if the prediction of
    /// one rank is below `best_ns`, at the length that is best for this rank. No time counts that is below the bound;
    /// this can happen if many segments are extrapolated from fewer, or if the busiest rank's node sends less than
    /// others.
    pub fn cost(
        &self,
        request: &SearchRequest,
        (network, machine): (&Network, &Machine),
        best_ns: f64,
    ) -> Cost {
        self.predict(request, (network, machine), best_ns).cost
    }

    /// The cost, with what it was computed from.
    pub(super) fn predict(
        &self,
        request: &SearchRequest,
        (network, machine): (&Network, &Machine),
        best_ns: f64,
    ) -> Prediction {
        let schedule = &self.schedule;
        let flow = schedule.expand().expect("points are valid");
        let place = |rank: Rank| schedule.map.vertex_of(&schedule.shape, rank);
        let play = |routed: &RoutedPlan, segment_bytes: u64| {
            let profile = Profile::Hopbine { segment_bytes, call: CallForm::Repeated };
            let played = profile.play(schedule, &flow, routed, machine, request.bytes, false);
            played.expect("our own software performs all schedules").ns
        };
        // A length above that of all data cuts nothing.
        let (cut, whole): (Vec<u64>, Vec<u64>) =
            request.segments.iter().partition(|&&segment| (segment as f64) < request.bytes);
        let n_ranks = request.shape.n_ranks();
        let mut routed = RoutedPlan::of_one(&flow, network, place);
        let follow_all = |routed: &mut RoutedPlan| {
            RoutedPlan::of_all(&flow, network, place).map(|all| *routed = all).is_ok()
        };
        if !routed.is_exact() && routed.n_messages(n_ranks) <= MOST_AT_ALL_LENGTHS {
            follow_all(&mut routed);
        }
        let is_least = routed.is_exact();
        let costs = whole.iter().take(1).chain(&cut).map(|&at| (play(&routed, at), at));
        let best = costs.min_by(|a, b| a.0.total_cmp(&b.0));
        let (mut ns, segment_bytes) = best.expect("a question has segments");
        let may_be_best = !is_least && ns < best_ns && routed.has_few_messages(n_ranks);
        if may_be_best && follow_all(&mut routed) {
            ns = play(&routed, segment_bytes);
        }
        let (ns, is_exact) = (ns.max(self.bound_ns), routed.is_exact());
        let cost = Cost { ns, segment_bytes, is_exact, is_least };
        Prediction { cost, flow, routed }
    }
}

/// The cost of a schedule, with what it was computed from.
pub(super) struct Prediction {
    pub cost: Cost,
    pub flow: Expansion,
    pub routed: RoutedPlan,
}

/// The best schedule known so far.
#[derive(Clone, Debug)]
pub struct Best {
    /// The schedule.
    pub schedule: Schedule,
    /// Its cost.
    pub cost: Cost,
}

/// How good a result is, with counts of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Certificate {
    /// The time that no schedule of any kind is below, ns, and the kind of this bound.
    pub bound: (BoundKind, f64),
    /// The time that no schedule of the space is below, ns.
    pub space_ns: f64,
    /// Whether nothing in the space is better.
    pub is_exhaustive: bool,
    /// Nodes of the tree that were visited.
    pub visited: u64,
    /// Nodes that were pruned because of their bounds, each with all nodes below it.
    pub pruned: u64,
    /// Schedules that were predicted.
    pub predicted: u64,
    /// Of these, schedules that might be better, but whose predictions do not count: see [`Candidate::is_trusted`].
    pub uncertain: u64,
}
