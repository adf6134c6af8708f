//! The trees of a plan's lanes, with equal subtrees stored once.

use std::collections::{HashMap, HashSet};

use crate::collectives::{Action, Collective};
use crate::geometry::Vertex;
use crate::names::{LaneId, LinkId, PortId, Rank, StepId};
use crate::plan::{Expansion, Flow};
use crate::sim::network::Network;

/// The edge from a rank to the next rank on a path away from the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Branch {
    /// The number of the next rank's subtree.
    pub below: u32,
    /// The step of the message between the two ranks, and its port.
    pub step: u32,
    pub port: PortId,
    /// Numbers of cables and of links on boards on the route.
    pub hops: [u32; 2],
    /// Loads of the route's busiest link: [`SHARES`] for each port with as much data as this one.
    /// `in_step`: ports that send over the link in the step. `in_all`: ports that would load it as much in the long
    /// run, when each also has the other messages of its pieces.
    pub in_step: u32,
    pub in_all: u32,
    /// Whether no message of the step leaves its node.
    pub is_intra_node: bool,
}

/// The most ranks, times ports, for which the trees of an allreduce are followed.
const MOST_OF_ALLREDUCE: usize = 1 << 15;

/// The load that one port puts on a link, if it has as much data as the branch's own port.
pub const SHARES: f32 = 64.0;

/// A rank with all ranks below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subtree {
    /// In the order of their steps and, within a step, in the order of the plan.
    pub branches: Vec<Branch>,
    /// The message towards the root: whether it is of the lane's first step, its route, and whether it stays on its
    /// node. `None` for the root, and in trees whose messages come from the root.
    pub above: Option<(bool, [u32; 2], bool)>,
}

/// Subtrees; those below a subtree have lower numbers. The last is the root's.
pub type Subtrees = Vec<Subtree>;

/// The trees of a lane: first towards the root, then from it; or towards the root, then a shift.
#[derive(Debug)]
pub struct LaneTrees {
    /// The tree towards the root, which combines.
    pub up: Option<Subtrees>,
    /// The tree from the root, which stores.
    pub down: Option<Subtrees>,
    /// The root's message in the shift: a last step in which each rank of the tree sends what it has combined to
    /// another rank, which stores it. The root has its pieces last, so its message is the last.
    pub shift: Option<Branch>,
}

/// The trees of all lanes.
#[derive(Debug)]
pub struct TreesOfLanes {
    /// By lane.
    pub lanes: Vec<LaneTrees>,
    /// Messages of all lanes and steps on the busiest link, in units of the data.
    pub busiest: u32,
}

/// A message between two ranks, of which `near` is nearer to the root.
struct Edge {
    near: Rank,
    far: Rank,
    branch: Branch,
}

/// The messages of a step.
struct StepMessages {
    action: Action,
    messages: Vec<(Rank, Rank, PortId)>,
}

/// Returns whether a lane ends with a shift: as many copies, from and to different ranks, as its tree has ranks.
fn ends_with_shift(steps: &[StepMessages]) -> bool {
    let Some((last, before)) = steps.split_last() else { return false };
    let n_ranks = 1 + before.iter().map(|step| step.messages.len()).sum::<usize>();
    let ends = |end: fn(&(Rank, Rank, PortId)) -> Rank| {
        last.messages.iter().map(end).collect::<HashSet<_>>().len()
    };
    n_ranks > 1
        && before.iter().all(|step| step.action == Action::Reduce)
        && last.action == Action::Copy
        && last.messages.len() == n_ranks
        && ends(|message| message.0) == n_ranks
        && ends(|message| message.1) == n_ranks
}

/// All messages by lane and step, on a network.
struct Messages<'a> {
    lanes: Vec<Vec<StepMessages>>,
    /// By lane, the units of data in each message.
    weights: Vec<u32>,
    /// By lane, whether its last step is a shift.
    shifts: Vec<bool>,
    n_ranks: usize,
    n_ports: usize,
    network: &'a Network,
    place: &'a dyn Fn(Rank) -> Vertex,
}

impl<'a> Messages<'a> {
    fn of(flow: &Expansion, network: &'a Network, place: &'a dyn Fn(Rank) -> Vertex) -> Self {
        let of_step = |lane, step| {
            let mut messages = Vec::new();
            flow.volumes(lane, step, &mut |from, to, _| {
                messages.push((from, to, flow.port(lane, step, from, to)));
            });
            StepMessages { action: flow.action(lane, step, Rank(0)), messages }
        };
        let lanes = LaneId::first(flow.lanes().len()).zip(flow.lanes()).map(|(lane, header)| {
            StepId::first(header.n_steps).map(|step| of_step(lane, step)).collect()
        });
        let lanes: Vec<Vec<StepMessages>> = lanes.collect();
        let shifts = lanes.iter().map(|steps| ends_with_shift(steps)).collect();
        let weights = flow.lanes().iter().map(|lane| lane.part.weight()).collect();
        let n_ports = flow.lanes().iter().map(|lane| lane.port.index() + 1).max().unwrap_or(1);
        let n_ranks = flow.n_ranks() as usize;
        Messages { lanes, weights, shifts, n_ranks, n_ports, network, place }
    }

    fn route(&self, from: Rank, to: Rank, visit: &mut dyn FnMut(LinkId)) {
        self.network.whole().route((self.place)(from), (self.place)(to), visit);
    }
}

/// Loads of links.
struct Loads<'a> {
    of: &'a Messages<'a>,
    /// By link, the weights of ports that send over it in the step, and the last of these ports.
    in_step: Vec<u32>,
    last: Vec<Sender>,
    crossed: Vec<usize>,
    /// By link, the weights of ports that would keep it as busy as all messages together.
    in_all: Vec<f32>,
    /// By link, the weights of all messages.
    n_all: Vec<u32>,
}

/// A lane, and a port of a rank.
type Sender = (usize, Rank, PortId);

/// A sender that does not exist.
const NOBODY: Sender = (0, Rank(u32::MAX), PortId(0));

impl<'a> Loads<'a> {
    fn new(of: &'a Messages<'a>) -> Self {
        let n_links = of.network.whole().n_links();
        let (mut in_all, mut n_all) = (vec![0.0; n_links], vec![0; n_links]);
        for ((steps, &weight), &has_shift) in of.lanes.iter().zip(&of.weights).zip(&of.shifts) {
            // The port with several messages for each piece: the sender's from the root, the receiver's towards the
            // root.
            let busy = |action, [from, to]: [Rank; 2], port: PortId| {
                let (way, rank) = match action {
                    Action::Reduce => (0, to),
                    Action::Copy => (1, from),
                };
                (way, rank.index() * of.n_ports + port.index())
            };
            let all = || {
                steps.iter().flat_map(|StepMessages { action, messages }| {
                    messages
                        .iter()
                        .map(move |&(from, to, port)| (from, to, busy(*action, [from, to], port)))
                })
            };
            let mut messages = [0, 1].map(|_| vec![0u32; of.n_ranks * of.n_ports]);
            all().for_each(|(_, _, (way, port))| messages[way][port] += 1);
            // In the shift a port sends a second message for each piece.
            let n_ways = if has_shift { 2 } else { 1 };
            for (from, to, (way, port)) in all() {
                let share = weight as f32 / (n_ways * messages[way][port]) as f32;
                of.route(from, to, &mut |link| {
                    in_all[link.index()] += share;
                    n_all[link.index()] += weight;
                });
            }
        }
        let (in_step, last) = (vec![0; n_links], vec![NOBODY; n_links]);
        Loads { of, in_step, last, crossed: Vec::new(), in_all, n_all }
    }

    /// Counts a lane's messages in a step.
    fn count(&mut self, lane: usize, step: &StepMessages) {
        let Loads { of, in_step, last, crossed, .. } = self;
        for &(from, to, port) in &step.messages {
            of.route(from, to, &mut |link| {
                // A port sends one message after the other, so it counts once.
                let sender = (lane, from, port);
                if std::mem::replace(&mut last[link.index()], sender) != sender {
                    in_step[link.index()] += of.weights[lane];
                    crossed.push(link.index());
                }
            });
        }
    }

    fn branch(&self, (lane, step): (usize, u32), (from, to, port): (Rank, Rank, PortId)) -> Branch {
        let own = self.of.weights[lane];
        let (mut in_step, mut in_all) = (own, 0.0f32);
        let Messages { network, place, .. } = self.of;
        let hops = network.route(network.whole(), [from, to].map(place), |link| {
            in_step = in_step.max(self.in_step[link.index()]);
            in_all = in_all.max(self.in_all[link.index()]);
        });
        let [in_step, in_all] =
            [in_step as f32, in_all].map(|load| (load / own as f32 * SHARES).round() as u32);
        Branch { below: 0, step, port, hops, in_step, in_all, is_intra_node: false }
    }

    /// The root's message in a shift; `None` if it has none.
    fn shift(&self, at: (usize, u32), step: &StepMessages, root: Rank) -> Option<Branch> {
        let Messages { network, place, .. } = self.of;
        let of_root = step.messages.iter().find(|message| message.0 == root)?;
        let is_inside = |&(from, to, _): &(Rank, Rank, PortId)| {
            network.node(place(from)) == network.node(place(to))
        };
        let is_intra_node = step.messages.iter().all(is_inside);
        Some(Branch { is_intra_node, ..self.branch(at, *of_root) })
    }

    fn end_step(&mut self) {
        for link in self.crossed.drain(..) {
            (self.in_step[link], self.last[link]) = (0, NOBODY);
        }
    }
}

/// The state of a lane while its steps are read.
struct TreeBuilder {
    edges: [Vec<Edge>; 2],
    /// By rank, 1 + the step of the last message to it, and 1 + the step of its message towards the root.
    received: Vec<u32>,
    sent: Vec<u32>,
    root: Option<Rank>,
    shift: Option<Branch>,
}

impl TreesOfLanes {
    /// The trees of all lanes; `None` if a lane is not a tree, or shares its port with another lane.
    pub fn of(
        flow: &Expansion,
        network: &Network,
        place: &dyn Fn(Rank) -> Vertex,
    ) -> Option<TreesOfLanes> {
        let headers = flow.lanes();
        let n_ranks = flow.n_ranks() as usize;
        let mut ports: Vec<_> = headers.iter().map(|header| header.port).collect();
        ports.sort_unstable();
        if headers.is_empty() {
            return None;
        }
        // Beside all other algorithms of an allreduce.
        let is_long = n_ranks * headers.len() > MOST_OF_ALLREDUCE;
        if flow.collective() == Collective::Allreduce && is_long {
            return None;
        }
        if ports.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
        let messages = Messages::of(flow, network, place);
        let new = || TreeBuilder {
            edges: [Vec::new(), Vec::new()],
            received: vec![0; n_ranks],
            sent: vec![0; n_ranks],
            root: None,
            shift: None,
        };
        let mut lanes: Vec<TreeBuilder> = headers.iter().map(|_| new()).collect();
        let mut loads = Loads::new(&messages);
        let n_steps = headers.iter().map(|header| header.n_steps).max().unwrap_or(0);
        for step in 0..n_steps {
            for (lane, steps) in messages.lanes.iter().enumerate() {
                steps.get(step).into_iter().for_each(|of_step| loads.count(lane, of_step));
            }
            for (lane, (steps, builder)) in messages.lanes.iter().zip(&mut lanes).enumerate() {
                let Some(of_step) = steps.get(step) else { continue };
                if messages.shifts[lane] && step + 1 == steps.len() {
                    let root = builder.edges[0].last()?.near;
                    builder.shift = Some(loads.shift((lane, step as u32), of_step, root)?);
                    continue;
                }
                let first = [builder.edges[0].len(), builder.edges[1].len()];
                let mut is_intra_node = true;
                for &message in &of_step.messages {
                    let branch = loads.branch((lane, step as u32), message);
                    let (from, to, _) = message;
                    is_intra_node &= branch.hops == [0, 0];
                    if !builder.message((from, to), of_step.action, branch) {
                        return None;
                    }
                }
                for (edges, first) in builder.edges.iter_mut().zip(first) {
                    edges[first..]
                        .iter_mut()
                        .for_each(|edge| edge.branch.is_intra_node = is_intra_node);
                }
            }
            loads.end_step();
        }
        let busiest = loads.n_all.iter().copied().max().unwrap_or(0);
        let lanes = lanes.into_iter().map(TreeBuilder::trees).collect::<Option<_>>()?;
        Some(TreesOfLanes { lanes, busiest })
    }
}

impl TreeBuilder {
    /// Records a message; false if it does not belong to a tree.
    fn message(&mut self, (from, to): (Rank, Rank), action: Action, branch: Branch) -> bool {
        let now = branch.step + 1;
        let [up, down] = &mut self.edges;
        match action {
            Action::Reduce => {
                // A rank sends once, after all messages that it combines, and before any message comes from the root.
                let is_first = self.sent[from.index()] == 0 && self.received[from.index()] < now;
                self.sent[from.index()] = now;
                let is_open = self.sent[to.index()] == 0;
                self.received[to.index()] = now;
                up.push(Edge { near: to, far: from, branch });
                is_first && is_open && down.is_empty()
            }
            Action::Copy => {
                if down.is_empty() {
                    self.received.fill(0);
                }
                let before = self.received[from.index()];
                let is_known = match before {
                    0 => *self.root.get_or_insert(from) == from,
                    _ => before < now,
                };
                let is_first = self.received[to.index()] == 0 && self.root != Some(to);
                self.received[to.index()] = now;
                down.push(Edge { near: from, far: to, branch });
                is_known && is_first
            }
        }
    }

    fn trees(self) -> Option<LaneTrees> {
        let n_ranks = self.sent.len();
        let (shift, [up, down]) = (self.shift, self.edges);
        let top = up.last().map(|edge| edge.near);
        // Both trees must have the same root.
        if top.zip(self.root).is_some_and(|(top, root)| top != root) {
            return None;
        }
        let up = match up.is_empty() {
            true => None,
            false => Some(subtrees(n_ranks, up.into_iter(), true)?),
        };
        let down = match down.is_empty() {
            true => None,
            false => Some(subtrees(n_ranks, down.into_iter().rev(), false)?),
        };
        Some(LaneTrees { up, down, shift })
    }
}

/// The subtrees of edges; edges below a rank come before the edge above it.
fn subtrees(n_ranks: usize, edges: impl Iterator<Item = Edge>, is_up: bool) -> Option<Subtrees> {
    let mut branches: Vec<Vec<Branch>> = vec![Vec::new(); n_ranks];
    let (mut all, mut known) = (Subtrees::new(), HashMap::new());
    let mut number = |mut branches: Vec<Branch>, above| {
        if !is_up {
            branches.reverse();
        }
        let subtree = Subtree { branches, above };
        *known.entry(subtree).or_insert_with_key(|subtree| {
            all.push(subtree.clone());
            all.len() as u32 - 1
        })
    };
    let mut root = None;
    let mut n_edges = 0;
    for Edge { near, far, branch } in edges {
        let above = is_up.then_some((branch.step == 0, branch.hops, branch.is_intra_node));
        let below = number(std::mem::take(&mut branches[far.index()]), above);
        branches[near.index()].push(Branch { below, ..branch });
        root = Some(near);
        n_edges += 1;
    }
    let root = root?;
    let of_root = std::mem::take(&mut branches[root.index()]);
    number(of_root, None);
    // Branches that do not hang on the root do not belong to the tree.
    let is_whole = branches.iter().all(Vec::is_empty) && n_edges > 0;
    is_whole.then_some(all)
}
