//! Passes: the steps of a lane, as one rank's list or as all ranks' messages.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::order::{PositionOrder, Runs};
use super::paths::Moves;
use super::walk::{GlobalStep, Walk};
use crate::collectives::{Action, Paths, Phase};
use crate::geometry::{Coord, MAX_DIMS, Node};
use crate::names::Rank;
use crate::plan::ir::flow::Message;
use crate::plan::ir::members::{Members, Tile};
use crate::plan::ir::places::Places;
use crate::plan::ir::runs::{Blocks, Run};
use crate::plan::ir::types::{Step, Transfer};

/// Sets of one dimension are kept if there are at most this many of them; longer rings make
/// theirs when they are asked for, each in constant time.
const MOST_KEPT_SETS: usize = 1 << 14;

/// One pass over a walk.
#[derive(Debug)]
pub struct WalkPass {
    places: Arc<Places>,
    walk: Arc<Walk>,
    order: Arc<PositionOrder>,
    phase: Phase,
    root: Coord,
    /// The space has one position, which every message carries.
    is_whole: bool,
    /// For each step, how many steps each dimension has done before.
    done: Vec<SmallVec<[u32; 4]>>,
    /// By dimension, if kept: the set beside coordinate `a` after `done` steps at
    /// `done * size + a`.
    beside: Vec<Option<Vec<Members>>>,
    /// By dimension, if kept: by step and target, the moving sets of all coordinates.
    moving: Vec<Option<Vec<Vec<Vec<Members>>>>>,
    /// For folds of whole vectors, by step: the least coordinate of every coordinate's group.
    groups: Option<Vec<Vec<u32>>>,
}

impl WalkPass {
    /// The pass of `phase` over `walk`, from or to `root`, with blocks in `order`.
    pub fn new(
        places: Arc<Places>,
        walk: Arc<Walk>,
        order: Arc<PositionOrder>,
        phase: Phase,
        root: Coord,
        is_whole: bool,
    ) -> Self {
        let mut counts: SmallVec<[u32; 4]> = walk.sizes().iter().map(|_| 0).collect();
        let mut done = Vec::with_capacity(walk.steps().len());
        for step in walk.steps() {
            done.push(counts.clone());
            counts[step.dim] += 1;
        }
        let mut pass = WalkPass {
            places,
            walk,
            order,
            phase,
            root,
            is_whole,
            done,
            beside: Vec::new(),
            moving: Vec::new(),
            groups: None,
        };
        pass.keep_sets();
        pass
    }

    /// With the operands of folds in an order in which all ranks compute the same expression.
    pub fn in_fold_order(mut self) -> Self {
        if self.phase.paths == Paths::Everything {
            self.groups = Some(group_leaders(&self.walk));
        }
        self
    }

    fn moves(&self) -> Moves<'_> {
        Moves { walk: &self.walk, order: &self.order, paths: self.phase.paths, root: self.root }
    }

    fn keep_sets(&mut self) {
        let mut beside = Vec::new();
        let mut moving = Vec::new();
        let moves = self.moves();
        let many_dims = self.walk.visited().len() > 1;
        for (dim, &size) in self.walk.sizes().iter().enumerate() {
            let pattern = self.walk.pattern(dim);
            let n_steps = pattern.n_steps();
            let is_small = n_steps as usize * size as usize <= MOST_KEPT_SETS;
            beside.push((is_small && many_dims).then(|| moves.all_beside(dim)));
            moving.push(is_small.then(|| {
                let of_step = |t| {
                    let n_targets = pattern.targets(t, 0).len() as u32;
                    (0..n_targets).map(|target| moves.all_moving(dim, t, target)).collect()
                };
                (0..n_steps).map(of_step).collect()
            }));
        }
        (self.beside, self.moving) = (beside, moving);
    }

    fn beside(&self, dim: usize, done: u32, a: u32) -> Cow<'_, Members> {
        match &self.beside[dim] {
            Some(kept) => Cow::Borrowed(&kept[(done * self.walk.sizes()[dim] + a) as usize]),
            None => Cow::Owned(self.moves().beside(dim, done, a)),
        }
    }

    fn moving(&self, step: GlobalStep, target: u32, a: u32) -> Cow<'_, Members> {
        let GlobalStep { dim, t } = step;
        match &self.moving[dim] {
            Some(kept) => Cow::Borrowed(&kept[t as usize][target as usize][a as usize]),
            None => Cow::Owned(self.moves().moving(dim, t, target, a)),
        }
    }

    /// Tiles of the order, if the space has several positions.
    pub fn tiles(&self, most: u32) -> Option<Vec<Tile>> {
        (!self.is_whole).then(|| self.order.tiles(most))
    }

    /// Number of steps.
    pub fn n_steps(&self) -> usize {
        self.walk.steps().len()
    }

    /// Whether what moves depends on where a node stands in the other dimensions.
    fn needs_others(&self) -> bool {
        !self.is_whole || self.phase.paths == Paths::ToRoot
    }

    fn walk_step(&self, step: usize) -> usize {
        if self.phase.backwards { self.n_steps() - 1 - step } else { step }
    }

    fn blocks(&self, sets: &[&Members]) -> Blocks {
        if self.is_whole { Blocks::from_slice(&[Run::new(0, 1)]) } else { self.order.runs(sets) }
    }

    /// Appends what the node at `at` does: nothing beyond the walk's coordinates.
    pub fn list(&self, at: Coord, steps: &mut Vec<Step>) {
        let first = steps.len();
        if self.walk.sizes().iter().enumerate().any(|(dim, &size)| at[dim] >= size) {
            let idle = Step { action: self.phase.action, ..Step::default() };
            return steps.resize(first + self.n_steps(), idle);
        }
        let n_dims = self.walk.sizes().len();
        let needs_others = self.needs_others();
        let nothing = Members::default();
        // By dimension, the set for so many steps done.
        type Beside<'a> = Option<(u32, Cow<'a, Members>)>;
        let mut beside: SmallVec<[Beside<'_>; 4]> = (0..n_dims).map(|_| None).collect();
        for (number, &step) in self.walk.steps().iter().enumerate() {
            let GlobalStep { dim, t } = step;
            let mut listed = Step { action: self.phase.action, ..Step::default() };
            let mut sets = [&nothing; MAX_DIMS];
            let mut is_idle = false;
            if needs_others {
                let others = || (0..n_dims).filter(|&other| other != dim);
                for other in others() {
                    let done = self.done[number][other];
                    if beside[other].as_ref().is_none_or(|(at, _)| *at != done) {
                        beside[other] = Some((done, self.beside(other, done, at[other])));
                    }
                }
                for other in others() {
                    sets[other] = beside[other].as_ref().map_or(&nothing, |(_, set)| set);
                    is_idle |= sets[other].is_empty();
                }
            }
            if !is_idle {
                let transfer = |target: u32, from: u32, peer: u32| {
                    let moving = self.moving(step, target, from);
                    if moving.is_empty() {
                        return None;
                    }
                    let mut sets = sets;
                    sets[dim] = &moving;
                    let blocks = self.blocks(&sets[..n_dims]);
                    Some(Transfer { peer: self.places.rank(at.with(dim, peer)), blocks })
                };
                let pattern = self.walk.pattern(dim);
                let here = at[dim];
                let targets = pattern.targets(t, here);
                let targets = targets.iter().enumerate();
                listed.sends = targets.filter_map(|(i, &b)| transfer(i as u32, here, b)).collect();
                let sources = pattern.sources(t, here);
                let mut sources: SmallVec<[(u32, u32); 2]> =
                    sources.iter().enumerate().map(|(i, &b)| (i as u32, b)).collect();
                if let Some(groups) = &self.groups {
                    let leader = |a: u32| groups[number][a as usize];
                    sources.sort_by_key(|&(_, b)| leader(b));
                    listed.own_at = self.own_at(groups, number, at);
                }
                listed.recvs = sources.iter().filter_map(|&(i, b)| transfer(i, b, b)).collect();
            }
            steps.push(listed);
        }
        if self.phase.backwards {
            turn_back(&mut steps[first..]);
        }
    }

    /// Operands of the step's fold whose groups come before the node's own.
    fn own_at(&self, groups: &[Vec<u32>], number: usize, at: Coord) -> u32 {
        let GlobalStep { dim, t } = self.walk.steps()[number];
        if at[dim] >= self.walk.sizes()[dim] {
            return 0;
        }
        let leader = |a: u32| groups[number][a as usize];
        let sources = self.walk.pattern(dim).sources(t, at[dim]);
        sources.iter().filter(|&&b| leader(b) < leader(at[dim])).count() as u32
    }

    /// The same for step `step` of the pass and a rank.
    pub fn own_at_step(&self, step: usize, rank: Rank) -> u32 {
        let own_at = |groups| self.own_at(groups, self.walk_step(step), self.places.coord(rank));
        self.groups.as_deref().map_or(0, own_at)
    }

    /// What becomes of what arrives.
    pub fn action(&self) -> Action {
        self.phase.action
    }

    /// Visits the messages of a step as far as they touch a tile.
    pub fn messages(&self, step: usize, tile: &Tile, visit: &mut dyn FnMut(Message<'_>)) {
        let number = self.walk_step(step);
        let step = self.walk.steps()[number];
        let n_dims = self.walk.sizes().len();
        let needs_others = self.needs_others();
        // Whom the tile concerns, dimension by dimension, with their sets.
        let concerns = |set: &Members, dim| match self.is_whole {
            true => !set.is_empty(),
            false => set.covers(tile.box_[dim]).is_some(),
        };
        type Concerned<'a> = Vec<(u32, u32, Cow<'a, Members>)>;
        let concerned: Vec<Concerned<'_>> = (0..n_dims)
            .map(|dim| {
                let size = self.walk.sizes()[dim];
                if dim == step.dim {
                    let pattern = self.walk.pattern(dim);
                    // Target by target, as receivers list their sources.
                    let mut all = Vec::new();
                    for target in 0..pattern.targets(step.t, 0).len() {
                        for a in 0..size {
                            let set = self.moving(step, target as u32, a);
                            if concerns(&set, dim) {
                                all.push((a, pattern.targets(step.t, a)[target], set));
                            }
                        }
                    }
                    if let Some(groups) = &self.groups {
                        all.sort_by_key(|&(a, ..)| groups[number][a as usize]);
                    }
                    all
                } else if needs_others {
                    let done = self.done[number][dim];
                    (0..size)
                        .map(|a| (a, a, self.beside(dim, done, a)))
                        .filter(|(.., set)| concerns(set, dim))
                        .collect()
                } else {
                    (0..size).map(|a| (a, a, Cow::Owned(Members::default()))).collect()
                }
            })
            .collect();
        if concerned.iter().any(Vec::is_empty) {
            return;
        }
        let mut product = Product {
            pass: self,
            dim: step.dim,
            tile,
            concerned: &concerned,
            sets: SmallVec::new(),
            last: SmallVec::new(),
            runs: Runs::new(),
            visit,
        };
        product.descend(0, Node(0), Node(0));
    }
}

/// The product over the dimensions of who is concerned.
struct Product<'a, 'b> {
    pass: &'a WalkPass,
    dim: usize,
    tile: &'a Tile,
    concerned: &'a [Vec<(u32, u32, Cow<'a, Members>)>],
    sets: SmallVec<[&'a Members; MAX_DIMS]>,
    /// The sets of the last message, whose runs these are.
    last: SmallVec<[&'a Members; MAX_DIMS]>,
    runs: Runs,
    visit: &'b mut dyn FnMut(Message<'_>),
}

impl Product<'_, '_> {
    fn descend(&mut self, dim: usize, from: Node, to: Node) {
        let Some(here) = self.concerned.get(dim) else { return self.meet(from, to) };
        let size = self.pass.places.shape.size(dim);
        for (a, peer, set) in here {
            self.sets.push(set);
            let peer = if dim == self.dim { *peer } else { *a };
            self.descend(dim + 1, Node(from.0 * size + a), Node(to.0 * size + peer));
            self.sets.pop();
        }
    }

    fn meet(&mut self, from: Node, to: Node) {
        let pass = self.pass;
        // Neighbours often send the same.
        if self.last != self.sets {
            self.last.clone_from(&self.sets);
            self.runs.clear();
            match pass.is_whole {
                true => self.runs.push(Run::new(0, 1)),
                false => pass.order.runs_in(self.tile, &self.sets, &mut self.runs),
            }
        }
        let (from, to) = (pass.places.rank_on(from), pass.places.rank_on(to));
        let (from, to) = if pass.phase.backwards { (to, from) } else { (from, to) };
        (self.visit)(Message { from, to, runs: &self.runs });
    }
}

/// The same steps backwards: a gather becomes a scatter, a reduce-scatter an allgather.
fn turn_back(steps: &mut [Step]) {
    steps.reverse();
    for step in steps {
        std::mem::swap(&mut step.sends, &mut step.recvs);
    }
}

/// By step, the least coordinate of the group of every coordinate of the step's dimension: of
/// all that have exchanged so far. An operand of a step is the value of a whole group; all
/// members of the groups that meet fold them in the order of the groups' least coordinates, so
/// that they compute the same expression (algorithms.md section 5).
fn group_leaders(walk: &Walk) -> Vec<Vec<u32>> {
    let mut now: Vec<Vec<u32>> = walk.sizes().iter().map(|&size| (0..size).collect()).collect();
    let mut leaders = Vec::with_capacity(walk.steps().len());
    for &GlobalStep { dim, t } in walk.steps() {
        let pattern = walk.pattern(dim);
        let before = now[dim].clone();
        now[dim] = (0..pattern.size())
            .map(|a| {
                let met = pattern.sources(t, a);
                met.iter().map(|&b| before[b as usize]).fold(before[a as usize], u32::min)
            })
            .collect();
        leaders.push(before);
    }
    leaders
}
