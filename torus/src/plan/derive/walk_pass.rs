//! A pass over a walk.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::order::{PositionOrder, RunBuffer};
use super::pass_steps::{PassStep, pass_steps};
use super::routing::Moves;
use super::walk::{GlobalStep, Walk};
use crate::collectives::{Action, Routing, WalkPhase};
use crate::geometry::{Coord, MAX_DIMS, Vertex};
use crate::names::Rank;
use crate::patterns::Peers;
use crate::plan::ir::flow::Message;
use crate::plan::ir::members::{CoordSet, Tile};
use crate::plan::ir::pass::{Pass, PassScope};
use crate::plan::ir::runs::WHOLE;
use crate::plan::ir::torus::Torus;
use crate::plan::ir::view::{DependsOn, LineStep, StepView};

/// The sets of a dimension are stored if there are at most this many; for longer rings each set is computed when it
/// is needed.
const MOST_KEPT_SETS: usize = 1 << 14;

/// One pass over a walk.
#[derive(Debug)]
pub struct WalkPass {
    torus: Arc<Torus>,
    walk: Arc<Walk>,
    order: Arc<PositionOrder>,
    phase: WalkPhase,
    root: Coord,
    /// True if the space has one position, which every message carries.
    is_whole: bool,
    steps: Vec<PassStep>,
    /// For each step of the walk, the number of earlier steps of each dimension.
    done: Vec<SmallVec<[u32; 4]>>,
    /// By dimension, if stored: the set resident at coordinate `a` after `done` steps is at index
    /// `done * size + a`.
    resident: Vec<Option<Vec<CoordSet>>>,
    /// By dimension, if stored: the moving sets by step, target and coordinate.
    moving: Vec<Option<Vec<Vec<Vec<CoordSet>>>>>,
}

impl WalkPass {
    /// The pass of `phase` over `walk`, with root `root` and with blocks in `order`.
    pub fn new(
        torus: Arc<Torus>,
        walk: Arc<Walk>,
        order: Arc<PositionOrder>,
        phase: WalkPhase,
        root: Coord,
        is_whole: bool,
    ) -> Self {
        let mut counts: SmallVec<[u32; 4]> = walk.sizes().iter().map(|_| 0).collect();
        let mut done = Vec::with_capacity(walk.steps().len());
        for step in walk.steps() {
            done.push(counts.clone());
            counts[step.dim] += 1;
        }
        let moves = Moves { walk: &walk, order: &order, routing: phase.routing, root };
        let (mut resident, mut moving) = (Vec::new(), Vec::new());
        for (dim, &size) in walk.sizes().iter().enumerate() {
            let pattern = walk.pattern(dim);
            let n_steps = pattern.n_steps();
            let is_small = n_steps as usize * size as usize <= MOST_KEPT_SETS;
            let has_others = walk.visited().len() > 1;
            resident.push((is_small && has_others).then(|| moves.all_resident(dim)));
            moving.push(is_small.then(|| {
                let of_step = |t| {
                    let n_targets = pattern.targets(t, 0).len() as u32;
                    (0..n_targets).map(|target| moves.all_moving(dim, t, target)).collect()
                };
                (0..n_steps).map(of_step).collect()
            }));
        }
        let steps = pass_steps(&walk, phase);
        WalkPass { torus, walk, order, phase, root, is_whole, steps, done, resident, moving }
    }

    fn moves(&self) -> Moves<'_> {
        Moves { walk: &self.walk, order: &self.order, routing: self.phase.routing, root: self.root }
    }

    fn resident(&self, dim: usize, done: u32, a: u32) -> Cow<'_, CoordSet> {
        match &self.resident[dim] {
            Some(kept) => Cow::Borrowed(&kept[(done * self.walk.sizes()[dim] + a) as usize]),
            None => Cow::Owned(self.moves().resident(dim, done, a)),
        }
    }

    fn moving(&self, step: GlobalStep, target: u32, a: u32) -> Cow<'_, CoordSet> {
        let GlobalStep { dim, t } = step;
        match &self.moving[dim] {
            Some(kept) => Cow::Borrowed(&kept[t as usize][target as usize][a as usize]),
            None => Cow::Owned(self.moves().moving(dim, t, target, a)),
        }
    }

    /// By dimension and coordinate, the sets whose products are the messages to a target of a step.
    pub fn sets(&self, step: usize, target: usize) -> Vec<Vec<Cow<'_, CoordSet>>> {
        let PassStep { number, .. } = self.steps[step];
        let now = self.walk.steps()[number];
        let of_dim = |(dim, &size): (usize, &u32)| {
            let of = |a| match dim == now.dim {
                true => self.moving(now, target as u32, a),
                false => self.resident(dim, self.done[number][dim], a),
            };
            (0..size).map(of).collect()
        };
        self.walk.sizes().iter().enumerate().map(of_dim).collect()
    }

    /// True if the messages of a node depend on its coordinates in the other dimensions.
    fn needs_others(&self) -> bool {
        !self.is_whole || self.phase.routing == Routing::ToRoot
    }

    /// Visits the messages of the rank at a coordinate.
    fn own_messages(&self, rank: Rank, at: Coord, visit: &mut dyn FnMut(usize, Message<'_>)) {
        let (n_dims, needs_others) = (self.walk.sizes().len(), self.needs_others());
        let (whole, nothing) = (self.order.whole_tile(), CoordSet::default());
        let mut runs = RunBuffer::from_slice(&WHOLE);
        // By dimension, the resident set, with the number of steps done for which it was computed.
        type Resident<'a> = Option<(u32, Cow<'a, CoordSet>)>;
        let mut resident: SmallVec<[Resident<'_>; 4]> = (0..n_dims).map(|_| None).collect();
        for step in 0..self.n_steps() {
            let PassStep { number, ref targets, .. } = self.steps[step];
            let now @ GlobalStep { dim, t } = self.walk.steps()[number];
            let others = || (0..n_dims).filter(|&other| needs_others && other != dim);
            for other in others() {
                let done = self.done[number][other];
                if resident[other].as_ref().is_none_or(|(at, _)| *at != done) {
                    resident[other] = Some((done, self.resident(other, done, at[other])));
                }
            }
            let mut sets = [&nothing; MAX_DIMS];
            for other in others() {
                sets[other] = resident[other].as_ref().map_or(&nothing, |(_, set)| set);
            }
            if others().any(|other| sets[other].is_empty()) {
                continue;
            }
            let mut visit_message = |target: u32, from: u32, peer: u32| {
                let moving = self.moving(now, target, from);
                if moving.is_empty() {
                    return;
                }
                if !self.is_whole {
                    let mut sets = sets;
                    sets[dim] = &moving;
                    runs.clear();
                    self.order.runs_in(&whole, &sets[..n_dims], &mut runs);
                }
                let is_sent = (from == at[dim]) != self.phase.backwards;
                let peer = self.torus.rank(at.with(dim, peer));
                let (from, to) = if is_sent { (rank, peer) } else { (peer, rank) };
                visit(step, Message { from, to, runs: &runs });
            };
            let pattern = self.walk.pattern(dim);
            let of_step = |peers: Peers| -> SmallVec<[(u32, u32); 2]> {
                let peers = (0..).zip(peers);
                peers.skip(targets.start).take(targets.len()).collect()
            };
            let receivers = of_step(pattern.targets(t, at[dim]));
            receivers.iter().for_each(|&(target, b)| visit_message(target, at[dim], b));
            let sources = of_step(pattern.sources(t, at[dim]));
            sources.iter().for_each(|&(target, b)| visit_message(target, b, b));
        }
    }

    /// Visits the messages of all ranks in a step, clipped to a tile.
    fn all_messages(&self, step: usize, tile: &Tile, visit: &mut dyn FnMut(Message<'_>)) {
        let PassStep { number, ref targets, .. } = self.steps[step];
        let step = self.walk.steps()[number];
        let n_dims = self.walk.sizes().len();
        let needs_others = self.needs_others();
        // By dimension, (sender, receiver) coordinates whose sets intersect the tile, with these sets.
        let concerns = |set: &CoordSet, dim| match self.is_whole {
            true => !set.is_empty(),
            false => set.covers(tile.box_[dim]).is_some(),
        };
        type Concerned<'a> = Vec<(u32, u32, Cow<'a, CoordSet>)>;
        let concerned: Vec<Concerned<'_>> = (0..n_dims)
            .map(|dim| {
                let size = self.walk.sizes()[dim];
                if dim == step.dim {
                    let pattern = self.walk.pattern(dim);
                    // In order of targets: receivers list their sources in this order.
                    let mut all = Vec::new();
                    for target in targets.clone() {
                        for a in 0..size {
                            let set = self.moving(step, target as u32, a);
                            if concerns(&set, dim) {
                                all.push((a, pattern.targets(step.t, a)[target], set));
                            }
                        }
                    }
                    all
                } else if needs_others {
                    let done = self.done[number][dim];
                    (0..size)
                        .map(|a| (a, a, self.resident(dim, done, a)))
                        .filter(|(.., set)| concerns(set, dim))
                        .collect()
                } else {
                    (0..size).map(|a| (a, a, Cow::Owned(CoordSet::default()))).collect()
                }
            })
            .collect();
        if concerned.iter().any(Vec::is_empty) {
            return;
        }
        let mut product = SenderProduct {
            pass: self,
            dim: step.dim,
            tile,
            concerned: &concerned,
            sets: SmallVec::new(),
            last: SmallVec::new(),
            runs: RunBuffer::new(),
            visit,
        };
        product.descend(0, Vertex(0), Vertex(0));
    }
}

impl Pass for WalkPass {
    fn n_steps(&self) -> usize {
        self.steps.len()
    }

    fn action(&self, _step: usize) -> Action {
        self.phase.action
    }

    fn tiles(&self, most: u32) -> Option<Vec<Tile>> {
        (!self.is_whole).then(|| self.order.tiles(most))
    }

    /// Without a root all coordinates of a pattern send the same amount, so one coordinate is counted. With a root,
    /// or if some coordinates take no part, senders are listed, with the largest amounts over the other dimensions.
    fn view(&self, step: usize, except: Option<Rank>) -> StepView<'_> {
        let is_core = self.walk.sizes() != self.torus.shape.sizes();
        let is_rooted = match self.phase.routing {
            Routing::Everything | Routing::Toward | Routing::Displaced => false,
            Routing::FromRoot | Routing::ToRoot | Routing::AllToRoot => true,
        };
        let PassStep { number, targets: ref sent_to, .. } = self.steps[step];
        let now @ GlobalStep { dim, t } = self.walk.steps()[number];
        let pattern = self.walk.pattern(dim);
        let most_of = |other: usize| {
            let of = |a| self.resident(other, self.done[number][other], a).n_places();
            (0..if is_rooted { self.walk.sizes()[other] } else { 1 }).map(of).max().unwrap_or(0)
        };
        let others = (0..self.walk.sizes().len()).filter(|&other| other != dim);
        let factor: u64 = if self.is_whole { 1 } else { others.map(most_of).product() };
        let of_sender = |target: usize, a: u32| {
            if !sent_to.contains(&target) {
                return 0;
            }
            let n_places = self.moving(now, target as u32, a).n_places();
            if self.is_whole { n_places.min(1) } else { factor * n_places }
        };
        let targets = 0..pattern.targets(t, 0).len();
        let (senders, positions) = if is_rooted || is_core {
            let of_target = |target| {
                let all = (0..pattern.size()).map(|a| (a, of_sender(target, a)));
                all.filter(|(_, positions)| *positions > 0).collect()
            };
            let senders: Vec<Vec<(u32, u64)>> = targets.map(of_target).collect();
            let most = |of: &Vec<(u32, u64)>| of.iter().map(|(_, positions)| *positions).max();
            let positions = senders.iter().map(|of| most(of).unwrap_or(0)).collect();
            (Some(senders), positions)
        } else {
            (None, targets.map(|target| of_sender(target, 0)).collect())
        };
        let is_backwards = self.phase.backwards;
        let steps = smallvec![t];
        StepView::Lines(LineStep {
            dim,
            positions,
            except,
            is_on_all_lines: senders.is_none(),
            senders,
            pattern,
            steps,
            is_backwards,
        })
    }

    /// All steps of the pass that belong to one step of the walk send data from before the first of them.
    fn depends_on(&self, step: usize) -> DependsOn {
        DependsOn::before(self.steps[step].first)
    }

    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>)) {
        match scope {
            PassScope::Step(step, tile) => {
                self.all_messages(step, tile, &mut |message| visit(step, message));
            }
            PassScope::Rank(rank, at) if self.walk.contains(at) => {
                self.own_messages(rank, at, visit)
            }
            PassScope::Rank(..) => {}
        }
    }
}

/// Enumerates the senders that a tile concerns: the product of `concerned` over the dimensions.
struct SenderProduct<'a, 'b> {
    pass: &'a WalkPass,
    dim: usize,
    tile: &'a Tile,
    concerned: &'a [Vec<(u32, u32, Cow<'a, CoordSet>)>],
    sets: SmallVec<[&'a CoordSet; MAX_DIMS]>,
    /// The sets of the last message; `runs` has that message's runs.
    last: SmallVec<[&'a CoordSet; MAX_DIMS]>,
    runs: RunBuffer,
    visit: &'b mut dyn FnMut(Message<'_>),
}

impl SenderProduct<'_, '_> {
    fn descend(&mut self, dim: usize, from: Vertex, to: Vertex) {
        let Some(here) = self.concerned.get(dim) else { return self.visit_message(from, to) };
        let size = self.pass.torus.shape.size(dim);
        for (a, peer, set) in here {
            self.sets.push(set);
            let peer = if dim == self.dim { *peer } else { *a };
            self.descend(dim + 1, Vertex(from.0 * size + a), Vertex(to.0 * size + peer));
            self.sets.pop();
        }
    }

    fn visit_message(&mut self, from: Vertex, to: Vertex) {
        let pass = self.pass;
        // Neighbouring senders often send the same runs.
        if self.last != self.sets {
            self.last.clone_from(&self.sets);
            self.runs.clear();
            match pass.is_whole {
                true => self.runs.push(WHOLE[0]),
                false => pass.order.runs_in(self.tile, &self.sets, &mut self.runs),
            }
        }
        let (from, to) = (pass.torus.rank_on(from), pass.torus.rank_on(to));
        let (from, to) = if pass.phase.backwards { (to, from) } else { (from, to) };
        (self.visit)(Message { from, to, runs: &self.runs });
    }
}
