//! Lower bounds of the time of a schedule on a machine with hopbine's software, from its template and patterns.
//!
//! A port performs its lane in order: it posts the messages of a step after all messages of the step before have
//! arrived. Let m(t) be the earliest time at which any rank posts step t. A rank posts step t + 1 after it has
//! received the last message of some rank's step t. That rank posted the message at m(t) or later, its interface sent
//! it after the step's other messages, and the receiver polled for it. Hence
//!
//! m(t + 1) >= m(t) + max(post + bytes x ns per byte + latency, k post) + k poll
//!
//! for k messages. [`BoundModel::chain`] adds this up over the steps of a lane. The bytes of a step follow from the
//! sizes of its pattern's sets and of the sets that the other dimensions have left (algorithms.md section 2). Whole
//! vectors are forwarded in segments and have three bounds: the first segment's chain, the bytes that the port sends,
//! and its thread's work. On the way from or to the root, ranks without a message in a step do not wait. The bounds of
//! this way, and of trees, are the longest path and the bytes that the root's port moves.

use std::ops::Add;

use super::request::SearchRequest;
use super::space::ScheduleTemplate;
use super::steps::{AxisSteps, StepCost};
use crate::bounds::Bounds;
use crate::collectives::{Action, Payload, Routing, WalkForm, WalkPhase};
use crate::geometry::AxisLink;
use crate::plan::{GlobalStep, Interleave, interleaved};
use crate::sim::{Machine, Network};

/// Two lower bounds of a lane, sums over the dimensions, in ns: the messages in sequence, and the data that a port
/// moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LaneSums {
    pub chain: f64,
    pub moved: f64,
}

impl Add for LaneSums {
    type Output = LaneSums;

    fn add(self, other: LaneSums) -> LaneSums {
        LaneSums { chain: self.chain + other.chain, moved: self.moved + other.moved }
    }
}

impl LaneSums {
    /// The smaller of each.
    pub fn min(self, other: LaneSums) -> LaneSums {
        LaneSums { chain: self.chain.min(other.chain), moved: self.moved.min(other.moved) }
    }

    pub const MOST: LaneSums = LaneSums { chain: f64::INFINITY, moved: f64::INFINITY };
}

/// The call, machine and network for which bounds are computed.
pub(super) struct BoundModel<'a> {
    pub request: &'a SearchRequest,
    pub machine: &'a Machine,
    network: &'a Network,
    /// By ports, from 1: the bound of any schedule, ns.
    any: Vec<f64>,
}

impl<'a> BoundModel<'a> {
    pub fn new(request: &'a SearchRequest, network: &'a Network, machine: &'a Machine) -> Self {
        let limits = machine.limits(network);
        let of = |ports| Bounds::new(request.collective, ports, &limits).call(request.bytes).1;
        BoundModel { request, machine, network, any: (1..=request.ports).map(of).collect() }
    }

    /// The bound of any schedule on `ports` ports, ns.
    pub fn any(&self, ports: u32) -> f64 {
        self.any[ports as usize - 1]
    }

    /// Time of a message to the next rank, from its post until after its poll, ns; `is_intra_node`: within the node.
    pub fn hop(&self, bytes: f64, is_intra_node: bool) -> f64 {
        let (machine, speeds) = (self.machine, self.machine.speeds());
        if is_intra_node {
            return 2.0 * machine.shm_overhead_ns
                + speeds.shm_latency_ns
                + bytes * self.intra_node_ns();
        }
        let latency = speeds.latency([1, 0]).min(speeds.latency([0, 1]));
        machine.post_ns + latency + machine.poll_ns + bytes * self.uncontended_ns()
    }

    /// Bytes of one of `parts` equal parts of n.
    pub fn part(&self, parts: u32) -> f64 {
        match self.request.collective.payload() {
            Payload::Token => 0.0,
            _ => self.request.bytes / f64::from(parts),
        }
    }

    /// Whether every message is a lane's whole vector.
    fn is_whole(&self, template: &ScheduleTemplate) -> bool {
        let is_vector = self.request.collective.payload() == Payload::Vector;
        is_vector && matches!(template.recipe.form, WalkForm::Tree | WalkForm::Latency)
    }

    /// The number of segments of a part for each longest message that is tried.
    pub fn segments(&self, parts: u32) -> impl Iterator<Item = f64> {
        let part = self.part(parts);
        self.request.segments.iter().map(move |&segment| (part / segment as f64).ceil().max(1.0))
    }

    /// The least factor by which messages are slower because the ranks of a node share its links. On rings only ranks
    /// of one class count.
    fn node_factor(&self, node: Option<&AxisSteps>, is_core: bool) -> f64 {
        let per_node = f64::from(self.network.per_node());
        match node {
            _ if is_core => 1.0,
            Some(node) if self.network.rings().is_some() => per_node / f64::from(node.period),
            _ => per_node,
        }
    }

    fn phases(&self, template: &ScheduleTemplate) -> &'static [WalkPhase] {
        self.request.collective.phases(template.recipe.form).unwrap_or_default()
    }

    /// The passes that count in bounds. Beside a pass from or to the root, ranks do not wait for each other in every
    /// step of a pass of blocks, as each has blocks at another time.
    fn bounded(&self, template: &ScheduleTemplate) -> impl Iterator<Item = &'static WalkPhase> {
        let is_rooted = self.request.collective.is_rooted();
        let phases = self.phases(template).iter();
        phases.filter(move |phase| !(is_rooted && phase.routing == Routing::Toward))
    }

    /// The sums that a pattern of a dimension contributes, whatever the patterns of the others are.
    pub fn sums(&self, template: &ScheduleTemplate, axis: &AxisSteps) -> LaneSums {
        if template.is_dealt() {
            return LaneSums::default();
        }
        let of_phases = self.bounded(template).map(|phase| self.sums_of(template, phase, axis));
        // A port may receive data for the root while it sends data that come back from the root.
        let both = |a: LaneSums, b: LaneSums| match self.is_whole(template) {
            true => LaneSums { moved: a.moved.max(b.moved), ..a + b },
            false => a + b,
        };
        of_phases.reduce(both).unwrap_or_default()
    }

    fn sums_of(
        &self,
        template: &ScheduleTemplate,
        phase: &WalkPhase,
        axis: &AxisSteps,
    ) -> LaneSums {
        let part = self.part(template.ports);
        let plain = |step: &StepCost| step.post_ns + step.latency_ns + step.poll_ns;
        let uncontended = self.uncontended_ns();
        match (template.recipe.form, phase.routing) {
            (WalkForm::Latency, _) => {
                if let Interleave::Fused { messages } = template.recipe.interleave {
                    // A round makes groups messages + 1 times larger, unless it is a single step.
                    let share = |step: &StepCost| {
                        let grows = (step.n_targets + 1.0).ln() / f64::from(messages + 1).ln();
                        grows.min(1.0) * plain(step)
                    };
                    let n_messages: f64 = axis.steps.iter().map(|step| step.n_targets).sum();
                    let chain = axis.steps.iter().map(share).sum();
                    return LaneSums {
                        chain,
                        moved: n_messages * part * uncontended.min(self.intra_node_ns()),
                    };
                }
                let first = |n: f64| {
                    axis.steps.iter().map(|step| self.whole_step(step, part / n, 1.0)).sum()
                };
                let chain = self.segments(template.ports).map(first).fold(f64::INFINITY, f64::min);
                let moved = axis.steps.iter().map(|step| step.whole_ns * part).sum();
                LaneSums { chain, moved }
            }
            (WalkForm::Tree, _) if self.is_whole(template) => {
                // A port sends one message after the other; vectors that it receives share only its interface.
                let ns = match phase.action {
                    Action::Reduce => 1.0 / self.machine.speeds().interface,
                    _ => uncontended,
                };
                LaneSums { chain: axis.path_ns, moved: axis.n_children * part * ns }
            }
            (_, Routing::Displaced) => {
                let step = |step: &StepCost| match step.n_moving > 0.0 {
                    true => plain(step) + step.crossing_ns * part,
                    false => 0.0,
                };
                LaneSums { chain: axis.steps.iter().map(step).sum(), moved: 0.0 }
            }
            (_, Routing::Everything) => {
                LaneSums { chain: axis.steps.iter().map(plain).sum(), moved: 0.0 }
            }
            (_, Routing::FromRoot | Routing::ToRoot | Routing::AllToRoot) => {
                LaneSums { chain: axis.path_ns, moved: 0.0 }
            }
            (_, Routing::Toward) => {
                let moves = axis.steps.iter().filter(|step| step.n_moving > 0.0);
                LaneSums { chain: moves.map(plain).sum(), moved: 0.0 }
            }
        }
    }

    /// ns per byte of a message that shares nothing with others.
    pub fn uncontended_ns(&self) -> f64 {
        let speeds = self.machine.speeds();
        1.0 / speeds.link.min(speeds.interface)
    }

    pub fn intra_node_ns(&self) -> f64 {
        let speeds = self.machine.speeds();
        1.0 / speeds.copy.min(speeds.copy_all)
    }

    /// Time that all patterns of a template have in common, ns: to enter the call, to wake the last lane's thread, and
    /// to move a lane's data between nodes.
    pub fn common(&self, template: &ScheduleTemplate) -> f64 {
        let moves = |phase: &&WalkPhase| phase.routing == Routing::Toward;
        let times = self.bounded(template).filter(moves).count() as f64;
        let bytes = self.between_nodes(template.ports);
        self.start(template) + times * bytes * self.uncontended_ns()
    }

    /// The least bytes of a lane that one of a node's ports moves to or from other nodes.
    fn between_nodes(&self, parts: u32) -> f64 {
        let shape = &self.request.shape;
        let n_nodes = f64::from(shape.n_ranks() / shape.ranks_per_node());
        // The ranks of a node have n together, and each forwards its part.
        (n_nodes - 1.0) / n_nodes / f64::from(shape.ranks_per_node()) * self.part(parts)
    }

    /// Time to enter the call and to wake the last lane's thread, ns.
    pub fn start(&self, template: &ScheduleTemplate) -> f64 {
        self.machine.call_ns + self.machine.wake_ns * f64::from(template.ports - 1)
    }

    /// The bound of a whole or partial choice of patterns, from all dimensions' sums and the common time, ns.
    pub fn partial(&self, common: f64, sums: LaneSums) -> f64 {
        common + sums.chain.max(sums.moved)
    }

    /// The bound of a schedule, ns.
    pub fn whole(&self, template: &ScheduleTemplate, axes: &[&AxisSteps]) -> f64 {
        let lanes = (0..template.ports).map(|port| self.lane(template, axes, port));
        lanes.fold(self.any(template.ports), f64::max)
    }

    fn lane(&self, template: &ScheduleTemplate, axes: &[&AxisSteps], port: u32) -> f64 {
        let start = self.machine.call_ns + self.machine.wake_ns * f64::from(port);
        if template.is_dealt() {
            return start;
        }
        let folds = self.folds(axes);
        if self.is_whole(template) || matches!(template.recipe.interleave, Interleave::Fused { .. })
        {
            let sums = axes.iter().map(|axis| self.sums(template, axis));
            let sums = sums.fold(LaneSums::default(), Add::add);
            let mut least = sums.chain.max(sums.moved);
            if template.recipe.form == WalkForm::Latency {
                least = least.max(self.thread(template, axes));
            }
            return start + folds + least;
        }
        let shape = &self.request.shape;
        let n_linked = shape.active_dims().len().max(1) as u32;
        let n_steps: Vec<u32> = axes.iter().map(|axis| axis.steps.len() as u32).collect();
        let first = (port % n_linked) as usize;
        let steps = interleaved(shape, &n_steps, template.recipe.interleave, first);
        let node = shape.node_dim().map(|dim| axes[dim]);
        let factor = self.node_factor(node, axes.iter().any(|axis| axis.core < axis.size));
        let of_phase = |phase: &WalkPhase| match phase.routing {
            Routing::FromRoot | Routing::ToRoot | Routing::AllToRoot => {
                self.along_tree(template, axes, phase.routing)
            }
            _ => self.chain(template, axes, phase, &steps, factor),
        };
        start + folds + self.bounded(template).map(of_phase).sum::<f64>()
    }

    /// Least time of folding, ns: coordinates beyond the cores send vectors before the steps, and get results after
    /// them. Only one of both is in sequence with all steps: a result need not contain the last vector that was sent.
    fn folds(&self, axes: &[&AxisSteps]) -> f64 {
        let shape = &self.request.shape;
        let linked = |dim: usize| shape.axes()[dim].link != AxisLink::Node;
        let is_folded = (0..axes.len()).any(|dim| linked(dim) && axes[dim].core < axes[dim].size);
        if is_folded { self.hop(0.0, false) } else { 0.0 }
    }

    /// A pass from or to the root, ns.
    fn along_tree(
        &self,
        template: &ScheduleTemplate,
        axes: &[&AxisSteps],
        routing: Routing,
    ) -> f64 {
        let parts = template.ports;
        let n_children = || axes.iter().map(|axis| axis.n_children).sum::<f64>();
        let moved = match routing {
            Routing::ToRoot => self.between_nodes(parts) / self.machine.speeds().interface,
            Routing::AllToRoot => n_children() * self.part(parts) * self.uncontended_ns(),
            _ => self.between_nodes(parts) * self.uncontended_ns(),
        };
        moved.max(axes.iter().map(|axis| axis.path_ns).sum())
    }

    /// The steps of a lane in sequence, ns.
    fn chain(
        &self,
        template: &ScheduleTemplate,
        axes: &[&AxisSteps],
        phase: &WalkPhase,
        steps: &[GlobalStep],
        factor: f64,
    ) -> f64 {
        let part = self.part(template.ports);
        let shape = &self.request.shape;
        // By dimension, the share of a line that is still to be forwarded.
        let mut left = vec![1.0; axes.len()];
        let is_split = phase.action == Action::Reduce && phase.routing == Routing::Toward;
        let mut ns = 0.0;
        for &GlobalStep { dim, t } in steps {
            let step = &axes[dim].steps[t as usize];
            let is_intra_node = shape.axes()[dim].link == AxisLink::Node;
            let times = if is_intra_node { 1.0 } else { factor };
            let others: f64 =
                (0..axes.len()).filter(|&other| other != dim).map(|other| left[other]).product();
            let (moved, k) = match phase.routing {
                Routing::Displaced => (part * step.crossing_ns * times, step.n_moving),
                Routing::Everything => (part * step.whole_ns * times, step.n_targets),
                _ => (part * others * step.moved_ns * times, step.n_moving),
            };
            left[dim] -= step.moved;
            if step.n_moving > 0.0 || phase.routing == Routing::Everything {
                // Messages that are not operands of one fold are steps of their own, each with one poll.
                let seen = if is_split { 1.0 } else { k };
                let sent = step.post_ns + moved + step.latency_ns + seen * step.poll_ns;
                ns += sent.max(k * (step.post_ns + step.poll_ns));
            }
        }
        ns
    }

    /// Time of a step in which ranks exchange and combine all their data, `bytes` bytes, ns.
    fn whole_step(&self, step: &StepCost, bytes: f64, times: f64) -> f64 {
        let StepCost { post_ns, latency_ns, poll_ns, n_targets: k, whole_ns, .. } = *step;
        (post_ns + bytes * whole_ns * times + latency_ns).max(k * post_ns)
            + k * poll_ns
            + self.fold(k * bytes, bytes)
    }

    /// Time to combine `all` bytes that arrive in messages of `of_message` bytes, if the collective combines, ns.
    fn fold(&self, all: f64, of_message: f64) -> f64 {
        let is_folded = self.request.collective.is_reduction() && of_message > 0.0;
        let start = || self.machine.reduce_start_ns(of_message, 1.0);
        if is_folded {
            all / self.machine.reduce.min(self.machine.reduce_all) + start()
        } else {
            0.0
        }
    }

    /// Time of a lane's thread in a latency form, ns: it posts, polls for and combines every segment.
    fn thread(&self, template: &ScheduleTemplate, axes: &[&AxisSteps]) -> f64 {
        let steps = || axes.iter().flat_map(|axis| &axis.steps);
        let part = self.part(template.ports);
        let least = self.segments(template.ports).map(|n| {
            let messages = |step: &StepCost| n * step.n_targets * (step.post_ns + step.poll_ns);
            let n_targets: f64 = steps().map(|step| step.n_targets).sum();
            let speed = self.machine.reduce.min(self.machine.reduce_all);
            let is_folded = self.request.collective.is_reduction();
            let fold = if is_folded { n_targets * part / speed } else { 0.0 };
            steps().map(messages).sum::<f64>() + fold
        });
        least.fold(f64::INFINITY, f64::min)
    }
}

impl BoundModel<'_> {
    /// Approximate time of a dimension's pattern, ns: for the order of the search, not a bound. Each dimension with
    /// links counts an equal share of forwarded blocks.
    pub fn estimate(&self, template: &ScheduleTemplate, axis: &AxisSteps) -> f64 {
        let of_phases =
            self.phases(template).iter().map(|phase| self.sums_of(template, phase, axis));
        let LaneSums { chain, moved } = of_phases.fold(LaneSums::default(), Add::add);
        let mut estimate = chain.max(moved);
        let part = self.part(template.ports) / self.request.shape.active_dims().len().max(1) as f64;
        for phase in self.phases(template) {
            let moved: f64 = match phase.routing {
                Routing::Toward => axis.steps.iter().map(|step| step.moved_ns).sum(),
                Routing::FromRoot => {
                    axis.steps.iter().map(|step| step.moved).sum::<f64>() * self.uncontended_ns()
                }
                _ => 0.0,
            };
            estimate += if template.recipe.form == WalkForm::Tree { 0.0 } else { moved * part };
        }
        estimate
    }
}
