//! Scores of plans: of all ranks, or of one that stands for all.

use std::collections::HashMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::loads::Profiles;
use super::network::Network;
use super::score::{LaneScore, Score, ScoreError, StepFacts, StepScore, Transit};
use crate::collectives::Payload;
use crate::geometry::Vertex;
use crate::names::{LaneId, PortId, Rank, StepId};
use crate::plan::{Expansion, Flow, LaneHeader, LineStep, StepView};

/// The most messages that are followed one by one.
const MOST_MESSAGES: u64 = 1 << 26;

impl Score {
    /// All messages of all ranks; `place` says on which vertex of the network a rank is.
    ///
    /// # Errors
    /// [`ScoreError`] if there are too many.
    pub fn of_all(
        flow: &dyn Flow,
        network: &Network,
        place: impl Fn(Rank) -> Vertex,
    ) -> Result<Self, ScoreError> {
        let n_agents = flow.n_ranks();
        let places: Vec<Vertex> = Rank::first(n_agents).map(place).collect();
        let mut score = Score::empty(flow, n_agents);
        let n_links = network.whole().n_links() as u32;
        let n_ports = score.n_ports;
        // Messages between the same vertices take the same path.
        let mut known: HashMap<(u32, u32), (Range<u32>, [u16; 2])> = HashMap::new();
        let mut n_messages = 0u64;
        for (lane, header) in LaneId::first(flow.lanes().len()).zip(flow.lanes()) {
            let share = position_share(header);
            let port = u32::from(header.port.0);
            known.clear();
            for step in StepId::first(header.n_steps) {
                let mut messages = Vec::new();
                flow.volumes(lane, step, &mut |from, to, positions| {
                    let (path, hops) = known
                        .entry((from.0, to.0))
                        .or_insert_with(|| {
                            let start = score.paths.len() as u32;
                            let mut hops = [0u16; 2];
                            let ends = [from, to].map(|rank| places[rank.index()]);
                            network.whole().route(ends[0], ends[1], &mut |link| {
                                score.paths.push((link.0 as u32, 1.0));
                                hops[usize::from(network.is_on_board(link))] += 1;
                            });
                            score.paths.push((n_links + to.0 * n_ports + port, 1.0));
                            (start..score.paths.len() as u32, hops)
                        })
                        .clone();
                    let share = positions as f64 * share;
                    messages.push(Transit { from: from.0, to: to.0, share, hops, path });
                });
                n_messages += messages.len() as u64;
                if n_messages > MOST_MESSAGES {
                    return Err(ScoreError::TooLong { messages: n_messages, most: MOST_MESSAGES });
                }
                score.push(flow, lane, step, StepScore::new(messages, n_agents));
            }
        }
        score.n_resources = n_links as usize + (n_agents * n_ports) as usize;
        Ok(score)
    }

    /// The messages of one rank that stands for all: every line of a dimension does the same, and on a
    /// line every coordinate has a message like every other's, which meets those of the others. Steps
    /// without this symmetry are taken for one in which every rank sends as much as the one that sends
    /// most, over the step's most loaded link: see [`Score::is_exact`].
    pub fn of_one(flow: &Expansion, network: &Network, place: impl Fn(Rank) -> Vertex) -> Self {
        Self::of_any(flow, network, place, false)
    }

    /// The same of a plan for ranks in a row, of one dimension, which knows nothing of the network's.
    pub fn of_row(flow: &Expansion, network: &Network, place: impl Fn(Rank) -> Vertex) -> Self {
        Self::of_any(flow, network, place, true)
    }

    fn of_any(
        flow: &Expansion,
        network: &Network,
        place: impl Fn(Rank) -> Vertex,
        is_row: bool,
    ) -> Self {
        let mut score = Score::empty(flow, 1);
        let mut profiles = Profiles::default();
        for (lane, header) in LaneId::first(flow.lanes().len()).zip(flow.lanes()) {
            let share = position_share(header);
            // Rings do the same step after step.
            let mut last: Option<(LineStep<'_>, Vec<usize>)> = None;
            for step in StepId::first(header.n_steps) {
                let found: SmallVec<[(f64, usize); 2]> = match flow.view(lane, step) {
                    StepView::Lines(lines) => {
                        let same = last.take().filter(|(before, _)| before.has_hops_of(&lines));
                        let of_line = match same {
                            Some((_, same)) => same,
                            None if is_row => profiles.of_row(&lines, network, &place),
                            None => profiles.of_line(&lines, network),
                        };
                        let sent = lines
                            .positions
                            .iter()
                            .zip(&of_line)
                            .filter(|(positions, _)| **positions > 0);
                        let found =
                            sent.map(|(&positions, &profile)| (positions as f64 * share, profile));
                        let found: SmallVec<[_; 2]> = found.collect();
                        // Of several messages, those that meet differ from rank to rank.
                        score.is_exact &= found.len() <= 1
                            && lines.is_everywhere()
                            && found.iter().all(|&(_, profile)| profiles.all[profile].is_alike);
                        last = Some((lines, of_line));
                        found
                    }
                    StepView::Messages => {
                        last = None;
                        score.is_exact = false;
                        let (positions, profile) =
                            profiles.of_busiest(flow, network, &place, lane, step);
                        SmallVec::from_elem((positions as f64 * share, profile), 1)
                    }
                };
                // The paths of profiles are known when all profiles are.
                let transit = |(share, profile): (f64, usize)| {
                    let hops = profiles.all[profile].hops;
                    Transit { from: 0, to: 0, share, hops, path: profile as u32..0 }
                };
                score.push(
                    flow,
                    lane,
                    step,
                    StepScore::new(found.into_iter().map(transit).collect(), 1),
                );
            }
        }
        score.is_exact = score.is_exact && profiles.meet_alike(&score, network);
        let loads = profiles.into_resources(&mut score.n_resources);
        let first_port = score.n_resources as u32;
        score.n_resources += score.n_ports as usize;
        let mut known: HashMap<(u32, PortId), Range<u32>> = HashMap::new();
        for lane in &mut score.lanes {
            for message in lane.steps.iter_mut().flat_map(|step| &mut step.messages) {
                let profile = message.path.start;
                let paths = &mut score.paths;
                let path = known.entry((profile, lane.port)).or_insert_with(|| {
                    let start = paths.len() as u32;
                    paths.extend_from_slice(&loads[profile as usize]);
                    paths.push((first_port + u32::from(lane.port.0), 1.0));
                    start..paths.len() as u32
                });
                message.path = path.clone();
            }
        }
        score
    }

    fn empty(flow: &dyn Flow, n_agents: u32) -> Self {
        let lanes = flow.lanes();
        let n_ports = lanes.iter().map(|lane| u32::from(lane.port.0) + 1).max().unwrap_or(1);
        let lane = |header: &LaneHeader| LaneScore { port: header.port, steps: Vec::new() };
        Score {
            n_agents,
            lanes: lanes.iter().map(lane).collect(),
            facts: vec![Vec::new(); lanes.len()],
            n_ports,
            paths: Vec::new(),
            n_resources: 0,
            is_exact: true,
        }
    }

    fn push(&mut self, flow: &dyn Flow, lane: LaneId, step: StepId, score: StepScore) {
        let sent = |agent| {
            let range = score.sent(agent);
            &score.messages[range.start as usize..range.end as usize]
        };
        let share = |agent| sent(agent).iter().map(|message| message.share).sum::<f64>();
        let share = (0..self.n_agents).map(share).fold(0.0, f64::max);
        let n_sends = (0..self.n_agents).map(|agent| sent(agent).len() as u32).max().unwrap_or(0);
        let (action, after) = (flow.action(lane, step, Rank(0)), flow.after(lane, step));
        let is_everywhere = match flow.view(lane, step) {
            StepView::Lines(lines) => lines.is_everywhere(),
            StepView::Messages => false,
        };
        let facts = StepFacts { action, after, share, n_sends, is_everywhere };
        self.facts[lane.index()].push(facts);
        self.lanes[lane.index()].steps.push(score);
    }
}

/// What a position is of n; a token has no bytes.
fn position_share(header: &LaneHeader) -> f64 {
    if header.space.payload == Payload::Token { 0.0 } else { header.position_share() }
}
