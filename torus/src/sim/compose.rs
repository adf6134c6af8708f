//! Routed plans: of all ranks, or of one rank that stands for all.

use std::collections::HashMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::conditions::{CheckedConditions, Conditions, Fault};
use super::error::{FaultyPart, RoutingError};
use super::loads::RouteLoads;
use super::network::Network;
use super::routed::{ResourceId, RoutedLane, RoutedPlan, RoutedStep, StepFacts, Transit};
use super::subtrees::TreesOfLanes;
use super::whole::whole_vectors;
use super::work::{self, LaneWork};
use crate::collectives::Payload;
use crate::geometry::Vertex;
use crate::names::{LaneId, PortId, Rank, StepId};
use crate::plan::{Expansion, Flow, LaneHeader, LineStep, StepView};

/// Sender, receiver and port: messages with the same ends take the same path.
type Ends = (u32, u32, PortId);

/// The most messages that are followed one by one.
const MOST_MESSAGES: u64 = 1 << 26;

impl RoutedPlan {
    /// Follows all messages of all ranks; `place` is the vertex of a rank in the network.
    ///
    /// # Errors
    /// [`RoutingError`] if there are too many messages, or their links take too much memory.
    pub fn of_all(
        flow: &dyn Flow,
        network: &Network,
        place: impl Fn(Rank) -> Vertex,
    ) -> Result<Self, RoutingError> {
        Self::of_all_under(&Conditions::default(), flow, network, place)
    }

    /// Follows all messages of all ranks under conditions: blocks of several sizes, faults.
    ///
    /// # Errors
    /// [`RoutingError`]: too many messages or links, conditions that do not fit the call, or a call that does not end.
    pub fn of_all_under(
        conditions: &Conditions,
        flow: &dyn Flow,
        network: &Network,
        place: impl Fn(Rank) -> Vertex,
    ) -> Result<Self, RoutingError> {
        let n_agents = flow.n_ranks();
        let places: Vec<Vertex> = Rank::first(n_agents).map(place).collect();
        let mut routed = RoutedPlan::empty(flow, n_agents);
        let checked = CheckedConditions::new(conditions, flow, network, routed.n_ports)?;
        let n_nodes = (n_agents / network.per_node()) as usize;
        // A slow interface is also slow for messages that it sends.
        let has_outs = network.per_node() > 1 || !conditions.faults.is_empty();
        routed.number(network.whole().n_links(), n_nodes, has_outs);
        routed.take_faults(conditions);
        let mut known: HashMap<Ends, (Range<u32>, [u32; 2])> = HashMap::new();
        let mut n_messages = 0u64;
        for (lane, header) in LaneId::first(flow.lanes().len()).zip(flow.lanes()) {
            let share = position_share(header);
            let mut blocks = checked.blocks(flow, lane);
            known.clear();
            for step in StepId::first(header.n_steps) {
                let mut messages = Vec::new();
                let mut fault = None;
                let mut add = |from: Rank, to: Rank, positions: f64| {
                    let port = flow.port(lane, step, from, to);
                    let (path, hops) = known
                        .entry((from.0, to.0, port))
                        .or_insert_with(|| {
                            let found = routed.path(&checked, network, &places, [from, to], port);
                            found.unwrap_or_else(|error| {
                                fault.get_or_insert(error);
                                (0..0, [0, 0])
                            })
                        })
                        .clone();
                    let share = positions * share;
                    messages.push(Transit { from: from.0, to: to.0, port, share, hops, path });
                };
                match &mut blocks {
                    None => flow.volumes(lane, step, &mut |from, to, positions| {
                        add(from, to, positions as f64)
                    }),
                    Some(blocks) => blocks.step(step, &mut add),
                }
                if let Some(fault) = fault {
                    return Err(fault);
                }
                n_messages += messages.len() as u64;
                if n_messages > MOST_MESSAGES {
                    return Err(RoutingError::TooLong {
                        messages: n_messages,
                        most: MOST_MESSAGES,
                    });
                }
                routed.push(flow, lane, step, RoutedStep::new(messages, n_agents));
            }
        }
        routed.detour(&checked, |rank| network.node(places[rank.index()]))?;
        routed.work = work_of(flow);
        Ok(routed)
    }

    /// The resources that a message uses, and its numbers of links.
    fn path(
        &mut self,
        checked: &CheckedConditions<'_>,
        network: &Network,
        places: &[Vertex],
        [from, to]: [Rank; 2],
        port: PortId,
    ) -> Result<(Range<u32>, [u32; 2]), RoutingError> {
        let start = self.paths.len();
        let ends = [from, to].map(|rank| places[rank.index()]);
        let mut dead = None;
        let mut path: SmallVec<[(ResourceId, f32); 64]> = SmallVec::new();
        let hops = network.route(network.whole(), ends, |link| {
            if checked.is_dead(link) {
                dead.get_or_insert(link);
            }
            path.push((link.0 as u32, 1.0));
        });
        if let Some(link) = dead {
            let link = network.whole().link_name(link);
            return Err(RoutingError::DeadLink { from, to, link });
        }
        let [from, to] = ends.map(|vertex| network.node(vertex));
        let ports = [checked.via(from, port)?, checked.via(to, port)?];
        path.extend(self.at_ends(hops, [from, to], ports, 1.0));
        let no_room = RoutingError::NoRoom { links: start };
        let end = u32::try_from(start + path.len()).map_err(|_| no_room.clone())?;
        self.paths.try_reserve(path.len()).map_err(|_| no_room)?;
        self.paths.extend(path);
        Ok((start as u32..end, hops))
    }

    /// Records slow links and interfaces.
    fn take_faults(&mut self, conditions: &Conditions) {
        for &Fault { part, speed } in &conditions.faults {
            match part {
                FaultyPart::Link(link) => self.slow.push((link.0 as u32, speed)),
                FaultyPart::Interface { node, port } => {
                    let number = node * self.n_ports + u32::from(port.0);
                    let first = [self.first_in as u32, self.first_out as u32];
                    self.slow.extend(first.map(|first| (first + number, speed)));
                }
            }
        }
    }

    /// Records the ranks whose messages use other ports than those of their lanes.
    fn detour(
        &mut self,
        checked: &CheckedConditions<'_>,
        node: impl Fn(Rank) -> u32,
    ) -> Result<(), RoutingError> {
        for rank in Rank::first(self.n_agents) {
            for port in (0..self.n_ports).map(|port| PortId(port as u16)) {
                let via = checked.via(node(rank), port)?;
                if via != port {
                    self.detours.insert((rank.0, port), via);
                }
            }
        }
        Ok(())
    }

    /// Follows one rank that stands for all. This is exact if all lines of a dimension do the same, and on a line
    /// every coordinate has a message like those of the others, which it meets. Else, if there are classes of ranks
    /// that do the same, one rank of each class is followed. A step without either is replaced by one in which every
    /// rank sends as much as the busiest, over the step's most loaded link: see [`RoutedPlan::is_exact`].
    pub fn of_one(flow: &Expansion, network: &Network, place: impl Fn(Rank) -> Vertex) -> Self {
        Self::of_any(flow, network, place, false)
    }

    /// Follows one rank of a plan for ranks in a row: one dimension, independent of the network's dimensions.
    pub fn of_row(flow: &Expansion, network: &Network, place: impl Fn(Rank) -> Vertex) -> Self {
        Self::of_any(flow, network, place, true)
    }

    fn of_any(
        flow: &Expansion,
        network: &Network,
        place: impl Fn(Rank) -> Vertex,
        is_row: bool,
    ) -> Self {
        let mut routed = RoutedPlan::empty(flow, 1);
        let mut loads = RouteLoads::default();
        let lanes = || LaneId::first(flow.lanes().len()).zip(flow.lanes());
        let n_steps = lanes().map(|(_, header)| header.n_steps).max().unwrap_or(0);
        // By lane: a ring repeats one step.
        let mut last: Vec<Option<(LineStep<'_>, Vec<usize>)>> = vec![None; flow.lanes().len()];
        for step in StepId::first(n_steps) {
            for (lane, header) in lanes().filter(|(_, header)| step.index() < header.n_steps) {
                let share = position_share(header);
                let last = &mut last[lane.index()];
                // The share of n and the route load of each message.
                let mut found: SmallVec<[(f64, usize); 2]> = SmallVec::new();
                let mut is_symmetric = true;
                match flow.view(lane, step) {
                    StepView::Lines(lines) => {
                        let same = last.take().filter(|(before, _)| before.has_hops_of(&lines));
                        let of_line = match same {
                            Some((_, same)) => same,
                            None if is_row => loads.of_row(&lines, network, &place),
                            None => loads.of_line(&lines, network),
                        };
                        let sent = lines.positions.iter().zip(&of_line);
                        let sent = sent.filter(|(positions, _)| **positions > 0);
                        found.extend(
                            sent.map(|(&positions, &load)| (positions as f64 * share, load)),
                        );
                        is_symmetric = lines.is_transitive();
                        *last = Some((lines, of_line));
                    }
                    StepView::Products(product) if !is_row => {
                        let of_product = loads.of_product(&product, network);
                        let of_message = product.positions as f64 * share;
                        found.extend(of_product.into_iter().map(|load| (of_message, load)));
                        // On other networks the links of a message's dimensions are mixed.
                        is_symmetric = product.is_everywhere() && network.is_dimension_ordered();
                    }
                    StepView::Shifts(shifts) if !is_row => {
                        match loads.of_shifts(&shifts, network) {
                            Some(of_shifts) => {
                                let sent = shifts.shifts.iter().zip(of_shifts);
                                found.extend(
                                    sent.map(|(shift, load)| {
                                        (shift.positions as f64 * share, load)
                                    }),
                                );
                            }
                            None => {
                                let at = (lane, step);
                                let (positions, load) =
                                    loads.of_busiest(flow, network, &place, at, None);
                                found.extend(
                                    (positions > 0).then_some((positions as f64 * share, load)),
                                );
                            }
                        }
                    }
                    other => {
                        let (at, key) = ((lane, step), other.into_key());
                        let (positions, load) = loads.of_busiest(flow, network, &place, at, key);
                        is_symmetric = false;
                        found.extend((positions > 0).then_some((positions as f64 * share, load)));
                    }
                }
                // If a rank has several messages, they meet others that differ by rank, unless all links are alike.
                let of = |&(_, load): &(f64, usize)| &loads.all[load];
                routed.is_exact &= is_symmetric
                    && found.iter().all(|message| of(message).is_alike)
                    && (found.len() <= 1 || found.iter().all(|message| of(message).is_uniform));
                // Paths can be filled in when all route loads are known.
                let transit = |&(share, load): &(f64, usize)| {
                    let hops = loads.all[load].hops;
                    Transit { from: 0, to: 0, port: header.port, share, hops, path: load as u32..0 }
                };
                let messages = found.iter().map(transit).collect();
                routed.push(flow, lane, step, RoutedStep::new(messages, 1));
            }
            loads.end_step();
        }
        routed.is_exact = routed.is_exact && loads.has_equal_contention(&routed, network);
        let share = |lane: LaneId| position_share(&flow.lanes()[lane.index()]);
        if !is_row
            && !routed.is_exact
            && let Some(of_classes) = RoutedPlan::of_classes(flow, network, &place, share)
        {
            return RoutedPlan { work: work_of(flow), ..of_classes };
        }
        if !routed.is_exact && routed.whole.iter().all(Option::is_some) {
            routed.trees = TreesOfLanes::of(flow, network, &place);
        }
        routed.work = work_of(flow);
        let of_node: Vec<f32> = loads.all.iter().map(|load| load.of_node).collect();
        let (links, n_links) = loads.into_links();
        routed.number(n_links, 1, network.per_node() > 1);
        let mut known: HashMap<(u32, PortId), Range<u32>> = HashMap::new();
        let mut lanes = std::mem::take(&mut routed.lanes);
        for lane in &mut lanes {
            for message in lane.steps.iter_mut().flat_map(|step| &mut step.messages) {
                let load = message.path.start;
                let path = known.entry((load, message.port)).or_insert_with(|| {
                    let start = routed.paths.len() as u32;
                    routed.paths.extend_from_slice(&links[load as usize]);
                    let at_ends = routed.at_ends(
                        message.hops,
                        [0, 0],
                        [message.port; 2],
                        of_node[load as usize],
                    );
                    routed.paths.extend(at_ends);
                    start..routed.paths.len() as u32
                });
                message.path = path.clone();
            }
        }
        routed.lanes = lanes;
        routed
    }

    /// Numbers resources: links, interfaces into nodes, memories of nodes, and interfaces out of nodes if several
    /// ranks share them (else a rank sends one message after the other).
    pub(super) fn number(&mut self, n_links: usize, n_nodes: usize, has_several: bool) {
        let of_ports = n_nodes * self.n_ports as usize;
        self.first_in = n_links;
        self.first_memory = n_links + of_ports;
        self.first_out = self.first_memory + n_nodes;
        self.n_resources = self.first_out + if has_several { of_ports } else { 0 };
    }

    /// Resources of a message beside links: interfaces, or memory inside a node; `of_node` messages at a time.
    pub(super) fn at_ends(
        &self,
        hops: [u32; 2],
        [from, to]: [u32; 2],
        [out, into]: [PortId; 2],
        of_node: f32,
    ) -> SmallVec<[(ResourceId, f32); 2]> {
        let interface = |first: usize, node: u32, port: PortId| {
            let port = node * self.n_ports + u32::from(port.0);
            (first as u32 + port, of_node)
        };
        let mut found = SmallVec::new();
        if hops == [0, 0] {
            found.push((self.first_memory as u32 + to, of_node));
            return found;
        }
        if self.n_resources > self.first_out {
            found.push(interface(self.first_out, from, out));
        }
        found.push(interface(self.first_in, to, into));
        found
    }

    pub(super) fn empty(flow: &dyn Flow, n_agents: u32) -> Self {
        let lanes = flow.lanes();
        let n_ports = lanes.iter().map(|lane| u32::from(lane.port.0) + 1).max().unwrap_or(1);
        let lane = |_: &LaneHeader| RoutedLane { steps: Vec::new() };
        RoutedPlan {
            n_agents,
            lanes: lanes.iter().map(lane).collect(),
            facts: vec![Vec::new(); lanes.len()],
            work: Vec::new(),
            whole: whole_vectors(flow),
            trees: None,
            n_ports,
            paths: Vec::new(),
            first_memory: 0,
            first_out: 0,
            first_in: 0,
            n_resources: 0,
            slow: Vec::new(),
            detours: HashMap::new(),
            is_exact: true,
        }
    }

    pub(super) fn push(&mut self, flow: &dyn Flow, lane: LaneId, step: StepId, routed: RoutedStep) {
        let sent = |agent| {
            let range = routed.sent(agent);
            &routed.messages[range.start as usize..range.end as usize]
        };
        let share = |agent| sent(agent).iter().map(|message| message.share).sum::<f64>();
        let share = (0..self.n_agents).map(share).fold(0.0, f64::max);
        let n_sends = (0..self.n_agents).map(|agent| sent(agent).len() as u32).max().unwrap_or(0);
        let (action, depends_on) = (flow.action(lane, step, Rank(0)), flow.depends_on(lane, step));
        let is_everywhere = match flow.view(lane, step) {
            StepView::Lines(lines) => lines.is_everywhere(),
            StepView::Products(product) => product.is_everywhere(),
            StepView::Shifts(_) => true,
            StepView::Messages(_) => false,
        };
        let is_intra_node =
            !routed.messages.is_empty() && routed.messages.iter().all(Transit::is_intra_node);
        let facts = StepFacts { action, depends_on, share, n_sends, is_everywhere, is_intra_node };
        self.facts[lane.index()].push(facts);
        self.lanes[lane.index()].steps.push(routed);
    }
}

/// A position's share of n; a token has no bytes.
fn position_share(header: &LaneHeader) -> f64 {
    if header.space.payload == Payload::Token { 0.0 } else { header.position_share() }
}

/// The work of hopbine's engine on a rank beside its messages, by lane.
fn work_of(flow: &dyn Flow) -> Vec<LaneWork> {
    work::of_plan(flow, |lane| position_share(&flow.lanes()[lane]))
}
