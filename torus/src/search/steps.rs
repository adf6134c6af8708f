//! What the steps of a pattern take along one dimension, at least.
//!
//! Every figure is for a message by itself, with those of its own class on its links (`sim/classes`): other
//! messages can only make it slower. On rings a class has every p-th coordinate if the pattern's steps look the
//! same from every p-th one, so a message of h hops meets ceil(h/p) of them on some link. Elsewhere one rank
//! stands for all, with the load of the busiest link on the shortest of its ways.

use std::hash::{DefaultHasher, Hash, Hasher};

use smallvec::SmallVec;

use crate::geometry::{AxisLink, Shape, Vertex};
use crate::patterns::{Pattern, PatternKind, Peers, Toward};
use crate::plan::StepOrder;
use crate::sim::{Machine, Network};

/// A step of a pattern. Shares are of what a line holds for each coordinate.
#[derive(Clone, Debug)]
pub(super) struct StepCost {
    /// To post a message, and from when it has left until it is seen, ns.
    pub post_ns: f64,
    /// See above.
    pub latency_ns: f64,
    /// To see a message, ns.
    pub poll_ns: f64,
    /// Messages of a rank that sends all that it has.
    pub n_targets: f64,
    /// Messages of a rank that sends blocks towards their owners.
    pub n_moving: f64,
    /// The share of the blocks that it sends so.
    pub moved: f64,
    /// The same times ns per byte, for n bytes on the line.
    pub moved_ns: f64,
    /// The same of an alltoall, which forwards what others have sent.
    pub crossing_ns: f64,
    /// Ns for each byte of all that it has, to all targets.
    pub whole_ns: f64,
    /// Of what coordinate 0 has of a gather: its share before the step, and the largest that is sent in it.
    pub held: f64,
    /// See above.
    pub gathered: f64,
}

/// A pattern on a dimension.
#[derive(Clone, Debug)]
pub(super) struct AxisSteps {
    pub kind: PatternKind,
    pub steps: Vec<StepCost>,
    /// Coordinates that take part.
    pub core: u32,
    /// Coordinates of the dimension.
    pub size: u32,
    /// Messages that coordinate 0 receives over links in a gather.
    pub n_children: f64,
    /// The messages one after the other from the coordinate that is farthest from 0 in the tree, ns without
    /// bytes.
    pub path_ns: f64,
    /// From which coordinate on the steps look the same.
    pub period: u32,
    /// The same for patterns that send the same to the same.
    pub signature: u64,
}

/// What messages along a dimension cost, as the network model has it.
struct Costs<'a> {
    network: &'a Network,
    machine: &'a Machine,
    dim: usize,
    stays: bool,
}

impl AxisSteps {
    /// Those of a pattern on a dimension; `None` if it does not serve it. `has_cores`: coordinates beyond the
    /// pattern's core fold onto it.
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
        let costs = Costs { network, machine, dim, stays: axis.link == AxisLink::Node };
        let period = period(&plain);
        let is_ring = network.rings().is_some();
        let mirrored = plain.clone().mirrored(true);
        // Both forms cost the same where all coordinates are alike.
        let has_mirror = !is_ring && !costs.stays;
        let toward = Toward::new(plain.clone());
        let crossing = crossing(&toward);
        let mut steps: Vec<StepCost> = Vec::with_capacity(plain.n_steps() as usize);
        let mut last: Option<(Peers, Vec<(f64, f64)>)> = None;
        let mut held = 1.0;
        let d = f64::from(core);
        for t in 0..plain.n_steps() {
            let targets = plain.targets(t, 0);
            // A ring does the same step after step.
            let known = last.take().filter(|(before, _)| period == 1 && *before == targets);
            let of_targets = known.map_or_else(
                || {
                    let mut found = costs.of_targets(&plain, t, is_ring.then_some(period));
                    if has_mirror {
                        let other = costs.of_targets(&mirrored, t, None);
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
            let gathered = |&b: &u32| f64::from(toward.subtree(b).len() as u32) / d;
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
                held: held / d,
                gathered: toward.hopping(t).iter().map(gathered).fold(0.0, f64::max),
            };
            let to_root = |b: &&u32| toward.hop(**b).is_some_and(|hop| hop.next == 0);
            let arrived =
                toward.hopping(t).iter().filter(to_root).map(|b| toward.subtree(*b).len());
            held += arrived.sum::<usize>() as f64;
            steps.push(step);
            last = Some((targets, of_targets));
        }
        let hops = (1..core).filter_map(|b| Some((b, toward.hop(b)?)));
        let n_children = hops.filter(|(_, hop)| hop.next == 0 && !costs.stays).count() as f64;
        let path_ns = longest_path(&toward, &steps);
        let signature = signature(&toward, has_cores);
        let (kind, size) = (kind.clone(), axis.size);
        Some(AxisSteps { kind, steps, core, size, n_children, path_ns, period, signature })
    }
}

impl Costs<'_> {
    fn post_ns(&self) -> f64 {
        if self.stays { self.machine.shm_overhead_ns } else { self.machine.post_ns }
    }

    fn poll_ns(&self) -> f64 {
        if self.stays { self.machine.shm_overhead_ns } else { self.machine.poll_ns }
    }

    /// By target of a step, the latency and the ns per byte of the message for which they are least; on rings of
    /// links with classes of this period.
    fn of_targets(&self, pattern: &Pattern, t: u32, period: Option<u32>) -> Vec<(f64, f64)> {
        let speeds = self.machine.speeds();
        let n_targets = pattern.targets(t, 0).len();
        if self.stays {
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
                let (mut hops, mut busiest) = ([0u16; 2], 0);
                line.route(from, to, &mut |link| {
                    busiest = busiest.max(load[link.index()]);
                    hops[usize::from(self.network.is_on_board(link))] += 1;
                });
                let n_hops = u32::from(hops[0]) + u32::from(hops[1]);
                latency = latency.min(speeds.latency(hops));
                least = least.min(period.map_or(busiest, |period| n_hops.div_ceil(period)));
            }
            let ns = (f64::from(least.max(1)) / speeds.link).max(1.0 / speeds.interface);
            (latency, ns)
        };
        (0..n_targets).map(of_target).collect()
    }
}

/// From which coordinate on all steps look the same.
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
    // Rings of many coordinates are periodic at once.
    (1..=size).find(is_period).unwrap_or(size)
}

/// Who sends to whom, step by step, and, unless all send all that they have, which way blocks take.
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

/// By step and target, the share of all displacements whose way takes it.
fn crossing(toward: &Toward) -> Vec<Vec<f64>> {
    let pattern = toward.pattern();
    let d = f64::from(pattern.size());
    let of_step = |t| vec![0.0; pattern.targets(t, 0).len()];
    let mut found: Vec<Vec<f64>> = (0..pattern.n_steps()).map(of_step).collect();
    for b in 1..pattern.size() {
        if let Some(hop) = toward.hop(b) {
            // All that pass through b go on as it does.
            found[hop.step as usize][hop.target as usize] += toward.subtree(b).len() as f64 / d;
        }
    }
    found
}

/// The messages one after the other from the farthest coordinate to 0, ns without bytes.
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
