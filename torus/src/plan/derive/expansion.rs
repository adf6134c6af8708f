//! What all ranks of a schedule share, made once: walks, orders, sets. One rank's plan and all
//! ranks' messages are read from it.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::fold::FoldPass;
use super::order::PositionOrder;
use super::pass::WalkPass;
use super::paths::{path_order, tree_order};
use super::prefix::PrefixPass;
use super::resend::ResendPass;
use super::schedule::{Positions, PrefixSteps, Recipe, Schedule, ScheduleError, WalkRecipe};
use super::tree::TreePass;
use super::walk::Walk;
use crate::collectives::{Action, Collective, Cut, Form, Paths, Share, Sums};
use crate::geometry::{Node, Trees};
use crate::names::{Block, Rank};
use crate::plan::exchange::linear::{self, LinearPass};
use crate::plan::exchange::parlinna;
use crate::plan::exchange::{self, ExchangePass};
use crate::plan::ir::flow::{Flow, LaneHeader, Message};
use crate::plan::ir::grid::{Grid, Groups};
use crate::plan::ir::members::Tile;
use crate::plan::ir::places::Places;
use crate::plan::ir::space::{BlockOrder, Displaced, Listing, Space};
use crate::plan::ir::types::{Lane, Plan};

/// The shared part of all ranks' plans; see the module documentation.
#[derive(Debug)]
pub struct Expansion {
    collective: Collective,
    root: Rank,
    /// Who has all from the start: what passes send there is left out.
    complete: Option<Rank>,
    places: Arc<Places>,
    headers: Vec<LaneHeader>,
    lanes: Vec<Vec<Pass>>,
}

/// Lanes: what all ranks know of each, and its passes.
type Lanes = (Vec<LaneHeader>, Vec<Vec<Pass>>);

#[derive(Debug)]
enum Pass {
    Walk(WalkPass),
    Fold(FoldPass),
    Resend(ResendPass),
    Exchange(ExchangePass),
    Linear(LinearPass),
    Prefix(PrefixPass),
    Tree(TreePass),
}

impl Pass {
    fn n_steps(&self) -> usize {
        match self {
            Pass::Walk(pass) => pass.n_steps(),
            Pass::Fold(_) | Pass::Resend(_) => 1,
            Pass::Exchange(pass) => pass.n_steps(),
            Pass::Linear(pass) => pass.n_steps(),
            Pass::Prefix(pass) => pass.n_steps(),
            Pass::Tree(pass) => pass.n_steps(),
        }
    }
}

impl Schedule {
    /// What all ranks share.
    ///
    /// # Errors
    /// As [`Schedule::validate`].
    pub fn expand(&self) -> Result<Expansion, ScheduleError> {
        self.validate()?;
        let schedule = self;
        let places = Arc::new(Places { shape: schedule.shape.clone(), map: schedule.map.clone() });
        let (headers, lanes) = match &schedule.recipe {
            Recipe::Walk(recipe) => (0..schedule.ports)
                .map(|port| walk_lane(schedule, recipe, &places, port))
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .unzip(),
            Recipe::Exchange(exchange) => {
                let grid = Grid::new(places.clone(), exchange.groups);
                let passes = |grid: &_| exchange::passes(exchange, &places, grid, schedule.ports);
                exchange_lanes(grid, exchange.window(), passes)
            }
            Recipe::ParLinNa(recipe) => {
                let grid = Grid::new(places.clone(), Groups::Of(places.shape.ranks_per_node()));
                let passes = |grid: &_| (parlinna::passes(*recipe, grid, schedule.ports), 1);
                exchange_lanes(grid, recipe.window(), passes)
            }
            Recipe::Linear => linear_lanes(&places, schedule),
            Recipe::Prefix(how) => prefix_lanes(&places, schedule, *how),
            Recipe::Trees => tree_lanes(&places, schedule),
        };
        let root = Rank(if schedule.collective.is_rooted() { schedule.root } else { 0 });
        let collective = schedule.collective;
        let complete = collective.brings_all(root, root, places.shape.n_nodes()).then_some(root);
        Ok(Expansion { collective, root, complete, places, headers, lanes })
    }
}

impl Expansion {
    /// The pass that a lane's step belongs to, and which of its steps it is.
    fn pass(&self, lane: usize, mut step: usize) -> (&Pass, usize) {
        for pass in &self.lanes[lane] {
            if step < pass.n_steps() {
                return (pass, step);
            }
            step -= pass.n_steps();
        }
        panic!("lane {lane} has no step {step} more");
    }
}

impl Flow for Expansion {
    fn collective(&self) -> Collective {
        self.collective
    }

    fn n_ranks(&self) -> u32 {
        self.places.shape.n_nodes()
    }

    fn root(&self) -> Rank {
        self.root
    }

    fn lanes(&self) -> &[LaneHeader] {
        &self.headers
    }

    fn action(&self, lane: usize, step: usize, _rank: Rank) -> Action {
        let (pass, step) = self.pass(lane, step);
        match pass {
            Pass::Prefix(pass) => pass.action(step),
            Pass::Walk(pass) => pass.action(),
            Pass::Fold(pass) => pass.action(),
            Pass::Tree(pass) => pass.action(),
            Pass::Resend(_) | Pass::Exchange(_) | Pass::Linear(_) => Action::Copy,
        }
    }

    fn own_at(&self, lane: usize, step: usize, rank: Rank) -> u32 {
        match self.pass(lane, step) {
            (Pass::Walk(pass), step) => pass.own_at_step(step, rank),
            (Pass::Prefix(pass), step) => pass.own_at(step, self.places.coord(rank)),
            _ => 0,
        }
    }

    fn tiles(&self, lane: usize, most: u32) -> Vec<Tile> {
        let n_positions = self.headers[lane].space.n_positions;
        let order = self.lanes[lane].iter().find_map(|pass| match pass {
            Pass::Walk(pass) => pass.tiles(most),
            _ => None,
        });
        order.unwrap_or_else(|| Tile::ranges(n_positions, most))
    }

    fn messages(&self, lane: usize, step: usize, tile: &Tile, visit: &mut dyn FnMut(Message<'_>)) {
        let visit = &mut |message: Message<'_>| {
            if self.complete != Some(message.to) {
                visit(message);
            }
        };
        match self.pass(lane, step) {
            (Pass::Walk(pass), step) => pass.messages(step, tile, visit),
            (Pass::Fold(pass), _) => pass.messages(visit),
            (Pass::Resend(pass), _) => pass.messages(tile, visit),
            (Pass::Exchange(pass), step) => pass.messages(step, tile, visit),
            (Pass::Linear(pass), step) => pass.messages(step, tile, visit),
            (Pass::Prefix(pass), step) => pass.messages(step, visit),
            (Pass::Tree(pass), step) => pass.messages(step, visit),
        }
    }

    /// Costs O(steps x sizes of the dimensions) plus what it lists; no rank is enumerated.
    ///
    /// # Panics
    /// If `rank` is not below the number of ranks.
    fn plan(&self, rank: Rank) -> Plan {
        let at = self.places.coord(rank);
        let lanes = self.headers.iter().zip(&self.lanes).map(|(header, passes)| {
            let mut steps = Vec::with_capacity(header.n_steps);
            for pass in passes {
                match pass {
                    Pass::Walk(pass) => pass.list(at, &mut steps),
                    Pass::Fold(pass) => pass.list(at, &mut steps),
                    Pass::Resend(pass) => pass.list(at, &mut steps),
                    Pass::Exchange(pass) => pass.list(at, &mut steps),
                    Pass::Linear(pass) => pass.list(at, &mut steps),
                    Pass::Prefix(pass) => pass.list(at, &mut steps),
                    Pass::Tree(pass) => pass.list(at, &mut steps),
                }
            }
            if let Some(complete) = self.complete {
                for step in &mut steps {
                    step.sends.retain(|send| send.peer != complete);
                    step.recvs.retain(|_| rank != complete);
                }
            }
            let LaneHeader { port, part, parts, window, ref space, .. } = *header;
            Lane { port, part, parts, space: space.clone(), window, steps }
        });
        Plan {
            collective: self.collective,
            rank,
            n_ranks: self.n_ranks(),
            root: self.root,
            lanes: lanes.collect(),
        }
    }
}

/// One lane of a walk: port q < D starts at the q-th dimension with links, ports D.. are the
/// mirrored forms of ports 0.. (Bine, appendix D.4; Swing, section 4.1).
fn walk_lane(
    schedule: &Schedule,
    recipe: &WalkRecipe,
    places: &Arc<Places>,
    port: u32,
) -> Result<(LaneHeader, Vec<Pass>), ScheduleError> {
    let Schedule { collective, shape, map, .. } = schedule;
    let n_linked = shape.active_dims().len().max(1) as u32;
    let patterns = schedule.ring_patterns(recipe, port >= n_linked)?;
    let walk = Arc::new(Walk::new(shape, patterns, recipe.interleave, (port % n_linked) as usize));
    let root = map.coord_of(shape, schedule.root);
    let origin = if collective.is_rooted() { root } else { shape.coord(Node(0)) };
    let cut = collective.cut();
    let is_whole = cut == Cut::Token
        || cut == Cut::Vector && matches!(recipe.form, Form::Tree | Form::Latency);
    let is_resent = recipe.positions == Positions::Resend;
    let order = Arc::new(match (recipe.form, recipe.positions) {
        _ if is_whole => PositionOrder::row_major(walk.sizes()),
        (Form::Tree, _) => tree_order(&walk, root),
        (_, Positions::Rank) => PositionOrder::row_major(walk.sizes()),
        (_, Positions::Path | Positions::Resend) => path_order(&walk, origin),
    });
    let space = Arc::new(Space {
        cut,
        n_positions: if is_whole { 1 } else { order.n_positions() },
        order: match cut {
            Cut::Blocks if !is_resent => listed(places, &order),
            Cut::Pairs => BlockOrder::Displaced(Arc::new(Displaced {
                places: places.clone(),
                patterns: (0..shape.n_dims()).map(|dim| walk.pattern(dim).clone()).collect(),
                displacements: order.nodes(),
            })),
            Cut::Blocks | Cut::Vector | Cut::Token => BlockOrder::Identity,
        },
    });
    let phases = collective.phases(recipe.form).unwrap_or_default();
    let resend = |backwards| {
        let (places, order) = (places.clone(), order.clone());
        is_resent.then_some(Pass::Resend(ResendPass { places, order, backwards }))
    };
    // In the latency form the patterns may be smaller than the dimensions.
    let sizes = shape.sizes();
    let mut nodes = sizes.clone();
    shape.node_dim().into_iter().for_each(|dim| nodes[dim] = walk.sizes()[dim]);
    let fold = |all: &[u32], core: &[u32], action| {
        FoldPass::new(places, all, core, action).map(Pass::Fold)
    };
    let mut passes = Vec::from_iter(fold(&sizes, &nodes, Action::Reduce));
    passes.extend(fold(&nodes, walk.sizes(), Action::Reduce));
    for &phase in phases {
        let (places, walk, order) = (places.clone(), walk.clone(), order.clone());
        let mut pass = WalkPass::new(places, walk, order, phase, root, is_whole);
        // A barrier has nothing that could be combined in another order.
        if cut == Cut::Vector {
            pass = pass.in_fold_order();
        }
        // A reduce-scatter leaves blocks in path order, and an allgather needs them so: one more
        // exchange puts them right, after the former and before the latter.
        let puts_right = phase.paths == Paths::Toward;
        passes.extend(resend(true).filter(|_| puts_right && phase.backwards));
        passes.push(Pass::Walk(pass));
        passes.extend(resend(false).filter(|_| puts_right && !phase.backwards));
    }
    passes.extend(fold(&nodes, walk.sizes(), Action::Copy));
    passes.extend(fold(&sizes, &nodes, Action::Copy));
    let header = LaneHeader {
        port: port as u16,
        part: port,
        parts: schedule.ports,
        space,
        window: None,
        n_steps: passes.iter().map(Pass::n_steps).sum(),
    };
    Ok((header, passes))
}

/// The blocks in a position order.
fn listed(places: &Places, order: &PositionOrder) -> BlockOrder {
    let blocks: Vec<Block> =
        order.nodes().into_iter().map(|node| Block(places.rank_on(node).0)).collect();
    if blocks.iter().enumerate().all(|(position, block)| position == block.index()) {
        return BlockOrder::Identity;
    }
    let listing = Listing::new(blocks).expect("an order of all coordinates is a permutation");
    BlockOrder::Listed(Arc::new(listing))
}

fn exchange_lanes(
    grid: Grid,
    window: Option<NonZeroU32>,
    passes: impl FnOnce(&Arc<Grid>) -> (Vec<ExchangePass>, u32),
) -> Lanes {
    let grid = Arc::new(grid);
    let (passes, parts) = passes(&grid);
    let n_positions = grid.n_positions();
    let space = Space { cut: Cut::Pairs, n_positions, order: BlockOrder::Grid(grid) };
    let (mut headers, lanes) = lanes(space, parts, passes.into_iter().map(Pass::Exchange));
    headers.iter_mut().for_each(|header| header.window = window);
    (headers, lanes)
}

fn linear_lanes(places: &Arc<Places>, schedule: &Schedule) -> Lanes {
    let Places { shape, map } = &**places;
    let root = map.coord_of(shape, schedule.root);
    let from_root =
        schedule.collective.gives(Rank(schedule.root), Rank(schedule.root), shape.n_nodes())
            == Share::All;
    let order = BlockOrder::Identity;
    let space = Space { cut: Cut::Blocks, n_positions: shape.n_nodes(), order };
    let passes = linear::passes(places, root, from_root, schedule.ports);
    lanes(space, 1, passes.into_iter().map(Pass::Linear))
}

/// One lane for each port, with its part of the vector.
fn prefix_lanes(places: &Arc<Places>, schedule: &Schedule, how: PrefixSteps) -> Lanes {
    let is_exclusive = schedule.collective.sums() == Sums::Before;
    let pass = |_| Pass::Prefix(PrefixPass::new(places.clone(), how, is_exclusive));
    lanes(whole_vector(), schedule.ports, (0..schedule.ports).map(pass))
}

/// One lane for each tree, as many as there are ports and trees.
fn tree_lanes(places: &Arc<Places>, schedule: &Schedule) -> Lanes {
    let shape = &places.shape;
    let trees = Arc::new(Trees::new(shape, schedule.map.node_of(shape, schedule.root)));
    let action = schedule.collective.along_trees().unwrap_or_default();
    let parts = schedule.ports.min(trees.n_trees() as u32);
    let pass =
        |part| Pass::Tree(TreePass::new(places.clone(), trees.clone(), part as usize, action));
    lanes(whole_vector(), parts, (0..parts).map(pass))
}

/// A space in which every message carries all of the vector's part.
fn whole_vector() -> Space {
    Space { cut: Cut::Vector, n_positions: 1, order: BlockOrder::Identity }
}

/// A lane with its header for each port, of one pass each; the data are cut into `parts`.
fn lanes(space: Space, parts: u32, passes: impl Iterator<Item = Pass>) -> Lanes {
    let space = Arc::new(space);
    let lane = |(port, pass): (u32, Pass)| {
        let (n_steps, space) = (pass.n_steps(), space.clone());
        let (port, part) = (port as u16, port % parts);
        let header = LaneHeader { port, part, parts, space, window: None, n_steps };
        (header, vec![pass])
    };
    (0..).zip(passes).map(lane).unzip()
}
