//! A plan's messages on a network, with the resources that each crosses.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use smallvec::SmallVec;

use super::network::Network;
use crate::collectives::{Action, Payload};
use crate::geometry::Vertex;
use crate::names::{LaneId, PortId, Rank, StepId};
use crate::plan::{DependsOn, Expansion, Flow, LaneHeader, LineHop, LineStep, StepView};

/// One resource: a link, or an interface's way in.
pub(super) type ResourceId = u32;

/// Why a plan has no score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScoreError {
    /// Too many messages to follow one by one.
    #[error(
        "the plan has {messages} messages or more, and {most} are the most that are followed one by one"
    )]
    TooLong {
        /// Messages counted.
        messages: u64,
        /// The limit.
        most: u64,
    },
}

/// A message of a step.
#[derive(Clone, Debug)]
pub(super) struct Transit {
    pub from: u32,
    pub to: u32,
    /// Bytes, as a multiple of n.
    pub share: f64,
    /// Links crossed that are cables, and that lie on boards.
    pub hops: [u16; 2],
    /// Resources crossed, each with the messages that cross it along with this one.
    pub path: Range<u32>,
}

/// The messages of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct StepScore {
    pub messages: Vec<Transit>,
    /// By agent, where its messages start in `sent` and in `received`.
    sent_start: Vec<u32>,
    received_start: Vec<u32>,
    /// Messages by receiver.
    received: Vec<u32>,
}

impl StepScore {
    fn new(mut messages: Vec<Transit>, n_agents: u32) -> Self {
        messages.sort_by_key(|message| message.from);
        let starts = |of: &dyn Fn(&Transit) -> u32| {
            let mut start = vec![0u32; n_agents as usize + 1];
            messages.iter().for_each(|message| start[of(message) as usize + 1] += 1);
            for agent in 1..start.len() {
                start[agent] += start[agent - 1];
            }
            start
        };
        let (sent_start, received_start) =
            (starts(&|message| message.from), starts(&|message| message.to));
        let mut received: Vec<u32> = (0..messages.len() as u32).collect();
        received.sort_by_key(|&message| messages[message as usize].to);
        StepScore { messages, sent_start, received_start, received }
    }

    /// The messages that an agent sends, by number.
    pub fn sent(&self, agent: u32) -> Range<u32> {
        self.sent_start[agent as usize]..self.sent_start[agent as usize + 1]
    }

    /// Those that it receives.
    pub fn received(&self, agent: u32) -> &[u32] {
        let range = self.received_start[agent as usize]..self.received_start[agent as usize + 1];
        &self.received[range.start as usize..range.end as usize]
    }
}

/// What scripts need to know of a step, whoever performs it.
#[derive(Clone, Copy, Debug)]
pub struct StepFacts {
    /// What becomes of what arrives.
    pub action: Action,
    /// What its sends carry.
    pub after: DependsOn,
    /// The most that a rank sends, as a multiple of n.
    pub share: f64,
    /// The most messages that a rank sends.
    pub n_sends: u32,
}

#[derive(Debug)]
pub(super) struct LaneScore {
    pub port: PortId,
    pub steps: Vec<StepScore>,
}

/// See the module documentation.
#[derive(Debug)]
pub struct Score {
    pub(super) n_agents: u32,
    pub(super) lanes: Vec<LaneScore>,
    /// By lane and step.
    pub(super) facts: Vec<Vec<StepFacts>>,
    pub(super) n_ports: u32,
    /// Resources with the messages that cross each; of every message's path a range.
    pub(super) paths: Vec<(ResourceId, f32)>,
    pub(super) n_resources: usize,
    is_exact: bool,
}

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
                        let of_line = same
                            .map_or_else(|| profiles.of_line(&lines, network), |(_, same)| same);
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
        self.facts[lane.index()].push(StepFacts { action, after, share, n_sends });
        self.lanes[lane.index()].steps.push(score);
    }

    /// Whether all ranks are followed, or in every step each rank's one message goes as far, and meets as many
    /// on its busiest link, as the others'. Where they do not, the one that stands for all has the
    /// longest way and the busiest link.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Ranks that are followed.
    pub fn n_agents(&self) -> u32 {
        self.n_agents
    }

    /// Ports that lanes are driven by.
    pub fn n_ports(&self) -> u32 {
        self.n_ports
    }

    /// By lane and step, what all ranks know.
    pub fn facts(&self) -> &[Vec<StepFacts>] {
        &self.facts
    }
}

/// What a position is of n; a token has no bytes.
fn position_share(header: &LaneHeader) -> f64 {
    if header.space.payload == Payload::Token { 0.0 } else { header.position_share() }
}

/// What messages that are alike put on links.
#[derive(Debug)]
struct LoadProfile<'a> {
    /// The dimension along which they go; `None` for a step without symmetry.
    dim: Option<usize>,
    /// Of the longest way: cables, and links on boards.
    hops: [u16; 2],
    /// By link of a line, how many of them cross it; of a step without symmetry, the largest.
    load: Vec<f32>,
    /// Whether each of them goes as far and meets as many on its busiest link.
    is_alike: bool,
    /// The step and the target that they are, of a line.
    step: Option<(LineStep<'a>, usize)>,
}

#[derive(Default)]
struct Profiles<'a> {
    all: Vec<LoadProfile<'a>>,
    /// By dimension and bits of the loads.
    known: HashMap<(usize, Vec<u32>), usize>,
    /// Of the step at hand, by link what it carries and by rank what it sends; all 0 between steps.
    load: Vec<u64>,
    sent: Vec<u64>,
}

impl<'a> Profiles<'a> {
    /// Those of a step's messages, by target.
    fn of_line(&mut self, step: &LineStep<'a>, network: &Network) -> Vec<usize> {
        let line = network.line(step.dim);
        let new = |target| LoadProfile {
            dim: Some(step.dim),
            hops: [0; 2],
            load: vec![0.0; line.n_links()],
            is_alike: true,
            step: Some((step.clone(), target)),
        };
        let mut found: Vec<LoadProfile<'a>> = (0..step.positions.len()).map(new).collect();
        for LineHop { from, to, target, positions } in step.hops() {
            let profile = &mut found[target];
            // What carries less than the one that stands for all is a part of a message.
            let weight = positions as f32 / step.positions[target].max(1) as f32;
            let mut hops = [0u16; 2];
            line.route(Vertex(from), Vertex(to), &mut |link| {
                profile.load[link.index()] += weight;
                hops[usize::from(network.is_on_board(link))] += 1;
            });
            if hops.iter().sum::<u16>() > profile.hops.iter().sum() {
                profile.hops = hops;
            }
        }
        let busiest: Vec<f32> =
            found.iter().map(|profile| profile.load.iter().copied().fold(0.0, f32::max)).collect();
        for LineHop { from, to, target, .. } in step.hops() {
            let profile = &mut found[target];
            let (mut hops, mut most) = ([0u16; 2], 0.0f32);
            line.route(Vertex(from), Vertex(to), &mut |link| {
                most = most.max(profile.load[link.index()]);
                hops[usize::from(network.is_on_board(link))] += 1;
            });
            profile.is_alike &= hops == profile.hops && most == busiest[target];
        }
        let number = |profile: LoadProfile<'a>| {
            let bits = profile.load.iter().map(|load| load.to_bits()).collect();
            *self.known.entry((step.dim, bits)).or_insert_with(|| {
                self.all.push(profile);
                self.all.len() - 1
            })
        };
        found.into_iter().map(number).collect()
    }

    /// The most positions that a rank sends in a step, and what the most loaded link carries, as a
    /// multiple of them.
    fn of_busiest(
        &mut self,
        flow: &dyn Flow,
        network: &Network,
        place: &dyn Fn(Rank) -> Vertex,
        lane: LaneId,
        step: StepId,
    ) -> (u64, usize) {
        self.load.resize(network.whole().n_links(), 0);
        self.sent.resize(flow.n_ranks() as usize, 0);
        let (load, sent) = (&mut self.load, &mut self.sent);
        let (mut most, mut link_most, mut longest) = (0, 0, [0u16; 2]);
        let mut touched = Vec::new();
        flow.volumes(lane, step, &mut |from, to, positions| {
            let of_sender = &mut sent[from.index()];
            *of_sender += positions;
            most = most.max(*of_sender);
            touched.push(from);
            let mut hops = [0u16; 2];
            network.whole().route(place(from), place(to), &mut |link| {
                let of_link = &mut load[link.index()];
                *of_link += positions;
                link_most = link_most.max(*of_link);
                hops[usize::from(network.is_on_board(link))] += 1;
            });
            longest = longest.max(hops);
        });
        load.fill(0);
        touched.into_iter().for_each(|rank| sent[rank.index()] = 0);
        let load = vec![if most == 0 { 0.0 } else { link_most as f32 / most as f32 }];
        self.all.push(LoadProfile { dim: None, hops: longest, load, is_alike: false, step: None });
        (most, self.all.len() - 1)
    }

    /// Whether the messages of different lanes that go along a dimension in steps of one number meet each
    /// other alike, whoever sends them.
    fn meet_alike(&self, score: &Score, network: &Network) -> bool {
        let n_steps = score.lanes.iter().map(|lane| lane.steps.len()).max().unwrap_or(0);
        let mut known: HashSet<Vec<u32>> = HashSet::new();
        for step in 0..n_steps {
            let mut by_dim: HashMap<usize, Vec<u32>> = HashMap::new();
            let of_step = score.lanes.iter().filter_map(|lane| lane.steps.get(step));
            // The path of a message is its profile, until resources are numbered.
            for profile in of_step.flat_map(|step| &step.messages).map(|message| message.path.start)
            {
                if let Some(dim) = self.all[profile as usize].dim {
                    by_dim.entry(dim).or_default().push(profile);
                }
            }
            for (dim, mut together) in by_dim {
                together.sort_unstable();
                if together.len() > 1
                    && known.insert(together.clone())
                    && !self.are_alike(dim, &together, network)
                {
                    return false;
                }
            }
        }
        true
    }

    /// Whether all messages of a profile meet as many of these profiles on their busiest link.
    fn are_alike(&self, dim: usize, together: &[u32], network: &Network) -> bool {
        let line = network.line(dim);
        let mut load = vec![0.0f32; line.n_links()];
        for &profile in together {
            load.iter_mut()
                .zip(&self.all[profile as usize].load)
                .for_each(|(sum, load)| *sum += load);
        }
        together.iter().filter_map(|&profile| self.all[profile as usize].step.as_ref()).all(
            |(step, of)| {
                let hops = step.hops().filter(|hop| hop.target == *of);
                let mut busiest = hops.map(|LineHop { from, to, .. }| {
                    let mut most = 0.0f32;
                    line.route(Vertex(from), Vertex(to), &mut |link| {
                        most = most.max(load[link.index()])
                    });
                    most
                });
                let first = busiest.next();
                busiest.all(|most| Some(most) == first)
            },
        )
    }

    /// By profile, the resources that its messages cross, each with how many of them do. Links of a
    /// dimension that all profiles load alike are one resource.
    fn into_resources(self, n_resources: &mut usize) -> Vec<Vec<(ResourceId, f32)>> {
        let mut paths: Vec<Vec<(ResourceId, f32)>> = vec![Vec::new(); self.all.len()];
        let mut by_dim: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (number, profile) in self.all.iter().enumerate() {
            by_dim.entry(profile.dim).or_default().push(number);
        }
        // In order, so that the same plan has the same numbers each time.
        let mut by_dim: Vec<_> = by_dim.into_iter().collect();
        by_dim.sort();
        for (dim, profiles) in by_dim {
            if dim.is_none() {
                for number in profiles {
                    paths[number].push((*n_resources as u32, self.all[number].load[0]));
                    *n_resources += 1;
                }
                continue;
            }
            let n_links = self.all[profiles[0]].load.len();
            let mut classes: HashSet<Vec<u32>> = HashSet::new();
            for link in 0..n_links {
                let loads = || profiles.iter().map(|&number| self.all[number].load[link]);
                let class: Vec<u32> = loads().map(f32::to_bits).collect();
                if loads().any(|load| load > 0.0) && classes.insert(class) {
                    for (&number, load) in profiles.iter().zip(loads()) {
                        if load > 0.0 {
                            paths[number].push((*n_resources as u32, load));
                        }
                    }
                    *n_resources += 1;
                }
            }
        }
        paths
    }
}
