//! Lower bounds of the time of a pattern's steps along one dimension.
//!
//! Each figure is for a message that shares links only with messages of its own class (`sim/classes`): other messages
//! can only make it slower. On rings, if the pattern's steps look the same from every p-th coordinate, a class is
//! every p-th coordinate, and a message of h hops shares some link with ceil(h/p) messages of its class. On other
//! networks one rank stands for all, with the load of the busiest link on the least loaded route.

use std::hash::{DefaultHasher, Hash, Hasher};

use smallvec::SmallVec;

use crate::geometry::{AxisLink, Shape, Vertex};
use crate::patterns::{Pattern, PatternKind, Peers, Toward};
use crate::plan::StepOrder;
use crate::sim::{Machine, Network};

/// A step of a pattern. Shares are parts of all blocks of a line.
#[derive(Clone, Debug)]
pub(super) struct StepCost {
    /// Time to post a message, ns.
    pub post_ns: f64,
    /// Time from when a message has left until it has arrived, ns.
    pub latency_ns: f64,
    /// Time to poll for a message, ns.
    pub poll_ns: f64,
    /// Messages of a rank in forms that send all data of a rank.
    pub n_targets: f64,
    /// Messages of a rank in forms that send blocks towards their owners.
    pub n_moving: f64,
    /// The share of the blocks that a rank sends towards their owners.
    pub moved: f64,
    /// `moved` times ns per byte of each message, for n bytes on the line.
    pub moved_ns: f64,
    /// `moved_ns` for an alltoall, in which ranks forward blocks of others.
    pub crossing_ns: f64,
    /// ns for each byte of a rank's data, if all are sent to all targets.
    pub whole_ns: f64,
}

/// A pattern on a dimension.
#[derive(Clone, Debug)]
pub(super) struct AxisSteps {
    pub kind: PatternKind,
    pub steps: Vec<StepCost>,
    /// Coordinates of the core.
    pub core: u32,
    /// Coordinates of the dimension.
    pub size: u32,
    /// Messages that coordinate 0 receives over links in a gather.
    pub n_children: f64,
    /// Time of the messages in sequence from the coordinate that is farthest from 0 in the tree, without bytes, ns.
    pub path_ns: f64,
    /// The number of coordinates after which the steps look the same.
    pub period: u32,
    /// A hash that is equal for patterns with the same messages.
    pub signature: u64,
}

/// The costs of messages along a dimension in the network model.
struct Costs<'a> {
    network: &'a Network,
    machine: &'a Machine,
    dim: usize,
    is_intra_node: bool,
}

impl AxisSteps {
    /// The steps of a pattern on a dimension; `None` if the pattern does not serve it. `has_cores`: coordinates
    /// beyond the pattern's core fold onto it.
    pub fn new(
        (network, machine): (&Network, &Machine),
        (shape, dim): (&Shape, usize),
        kind: &PatternKind,
        order: StepOrder,
        has_cores: bool,
    ) -> Option<Self> {
        let axis = shape.axes()[dim];
        let core = if has_cores { kind.core(axis.size) } else { axis.size };
        let is_far = order == StepOrder::FarFirst;
        let plain = Pattern::new(kind.clone(), core).ok()?.far_first(is_far);
        if has_cores && !plain.groups_nest() {
            return None;
        }
        let costs = Costs { network, machine, dim, is_intra_node: axis.link == AxisLink::Node };
        let period = period(&plain);
        let is_ring = network.rings().is_some();
        // On rings the forms of other ports cost the same. An opposed form that is not shifted is the mirror image.
        let others: Vec<Pattern> = match is_ring || costs.is_intra_node {
            true => Vec::new(),
            false => {
                let opposed = Some(plain.clone().opposed()).filter(|form| !form.is_transitive());
                [plain.clone().mirrored(true)].into_iter().chain(opposed).collect()
            }
        };
        let toward = Toward::new(plain.clone());
        let crossing = crossing(&toward);
        let mut steps: Vec<StepCost> = Vec::with_capacity(plain.n_steps() as usize);
        let mut last: Option<(Peers, Vec<(f64, f64)>)> = None;
        let d = f64::from(core);
        for t in 0..plain.n_steps() {
            let targets = plain.targets(t, 0);
            // A ring repeats one step.
            let known = last.take().filter(|(before, _)| period == 1 && *before == targets);
            let of_targets = known.map_or_else(
                || {
                    let mut found = costs.of_targets(&plain, t, is_ring.then_some(period));
                    for form in &others {
                        let other = costs.of_targets(form, t, None);
                        for (one, other) in found.iter_mut().zip(other) {
                            *one = (one.0.min(other.0), one.1.min(other.1));
                        }
                    }
                    found
                },
                |(_, known)| known,
            );
            let mut moved = vec![0.0; targets.len()];
            for &b in toward.hopping(t) {
                if let Some(hop) = toward.hop(b) {
                    moved[hop.target as usize] += 1.0 / d;
                }
            }
            let least =
                of_targets.iter().map(|(latency, _)| *latency).fold(f64::INFINITY, f64::min);
            let weighed = |shares: &[f64]| -> f64 {
                shares.iter().zip(&of_targets).map(|(share, (_, ns))| share * ns).sum()
            };
            let step = StepCost {
                post_ns: costs.post_ns(),
                latency_ns: least,
                poll_ns: costs.poll_ns(),
                n_targets: targets.len() as f64,
                n_moving: moved.iter().filter(|moved| **moved > 0.0).count() as f64,
                moved: moved.iter().sum(),
                moved_ns: weighed(&moved),
                crossing_ns: weighed(&crossing[t as usize]),
                whole_ns: of_targets.iter().map(|(_, ns)| ns).sum(),
            };
            steps.push(step);
            last = Some((targets, of_targets));
        }
        let hops = (1..core).filter_map(|b| Some((b, toward.hop(b)?)));
        let n_children =
            hops.filter(|(_, hop)| hop.next == 0 && !costs.is_intra_node).count() as f64;
        let path_ns = longest_path(&toward, &steps);
        let signature = signature(&toward, has_cores);
        let (kind, size) = (kind.clone(), axis.size);
        Some(AxisSteps { kind, steps, core, size, n_children, path_ns, period, signature })
    }
}

impl Costs<'_> {
    fn post_ns(&self) -> f64 {
        if self.is_intra_node { self.machine.shm_overhead_ns } else { self.machine.post_ns }
    }

    fn poll_ns(&self) -> f64 {
        if self.is_intra_node { self.machine.shm_overhead_ns } else { self.machine.poll_ns }
    }

    /// For each target of a step, the least latency and the least ns per byte of its messages; on rings, with classes
    /// of this period.
    fn of_targets(&self, pattern: &Pattern, t: u32, period: Option<u32>) -> Vec<(f64, f64)> {
        let speeds = self.machine.speeds();
        let n_targets = pattern.targets(t, 0).len();
        if self.is_intra_node {
            let ns = 1.0 / speeds.copy.min(speeds.copy_all);
            return vec![(speeds.shm_latency_ns, ns); n_targets];
        }
        let line = self.network.line(self.dim);
        let all: Vec<_> = (0..pattern.size()).map(|a| (a, pattern.targets(t, a))).collect();
        let of_target = |target: usize| {
            let ends = || all.iter().map(|(a, targets)| (Vertex(*a), Vertex(targets[target])));
            let mut load = vec![0u32; line.n_links()];
            if period.is_none() {
                for (from, to) in ends() {
                    line.route(from, to, &mut |link| load[link.index()] += 1);
                }
            }
            let (mut latency, mut least) = (f64::INFINITY, u32::MAX);
            for (from, to) in ends() {
                let mut busiest = 0;
                let hops = self.network.route(line, [from, to], |link| {
                    busiest = busiest.max(load[link.index()]);
                });
                let n_hops: u32 = hops.iter().sum();
                latency = latency.min(speeds.latency(hops));
                least = least.min(period.map_or(busiest, |period| n_hops.div_ceil(period)));
            }
            let ns = (f64::from(least.max(1)) / speeds.link).max(1.0 / speeds.interface);
            (latency, ns)
        };
        (0..n_targets).map(of_target).collect()
    }
}

/// The number of coordinates after which all steps look the same.
fn period(pattern: &Pattern) -> u32 {
    let size = pattern.size();
    let far = |a: u32, t: u32| -> SmallVec<[u32; 8]> {
        pattern.targets(t, a).into_iter().map(|b| (b + size - a) % size).collect()
    };
    let is_period = |period: &u32| {
        size.is_multiple_of(*period)
            && (0..pattern.n_steps())
                .all(|t| (0..size - period).all(|a| far(a, t) == far(a + period, t)))
    };
    // For rings of many coordinates the first number that is tried is the period.
    (1..=size).find(is_period).unwrap_or(size)
}

/// A hash of the messages of all steps and, unless ranks send all their data, of the paths of blocks.
fn signature(toward: &Toward, sends_all: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    let pattern = toward.pattern();
    for t in 0..pattern.n_steps() {
        (0..pattern.size()).for_each(|a| pattern.targets(t, a).hash(&mut hasher));
    }
    let hops = (0..pattern.size()).filter(|_| !sends_all).filter_map(|b| toward.hop(b));
    hops.for_each(|hop| (hop.step, hop.target, hop.next).hash(&mut hasher));
    hasher.finish()
}

/// By step and target, the share of all displacements whose path takes this message.
fn crossing(toward: &Toward) -> Vec<Vec<f64>> {
    let pattern = toward.pattern();
    let d = f64::from(pattern.size());
    let of_step = |t| vec![0.0; pattern.targets(t, 0).len()];
    let mut found: Vec<Vec<f64>> = (0..pattern.n_steps()).map(of_step).collect();
    for b in 1..pattern.size() {
        if let Some(hop) = toward.hop(b) {
            // Everything that passes through b takes the same message as b's own.
            found[hop.step as usize][hop.target as usize] += toward.subtree(b).len() as f64 / d;
        }
    }
    found
}

/// Time of the longest sequence of messages from a coordinate to 0, without bytes, ns.
fn longest_path(toward: &Toward, steps: &[StepCost]) -> f64 {
    let size = toward.pattern().size();
    let mut known: Vec<Option<f64>> = vec![None; size as usize];
    known[0] = Some(0.0);
    let mut longest = 0.0f64;
    for b in 1..size {
        let (mut way, mut at) = (Vec::new(), b);
        while known[at as usize].is_none() {
            let Some(hop) = toward.hop(at) else { break };
            way.push((at, hop.step));
            at = hop.next;
        }
        let mut ns = known[at as usize].unwrap_or(0.0);
        for (at, step) in way.into_iter().rev() {
            let StepCost { post_ns, latency_ns, poll_ns, .. } = steps[step as usize];
            ns += post_ns + latency_ns + poll_ns;
            known[at as usize] = Some(ns);
        }
        longest = longest.max(ns);
    }
    longest
}
