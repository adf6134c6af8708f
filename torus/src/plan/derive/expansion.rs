//! What all ranks of a schedule share, made once: walks, orders, sets. One rank's plan and all
//! ranks' messages are read from it.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use super::fold::FoldPass;
use super::order::PositionOrder;
use super::pass::{Pass, Scope};
use super::paths::{path_order, tree_order};
use super::prefix::PrefixPass;
use super::resend::ResendPass;
use super::schedule::{Placement, PrefixSteps, Recipe, Schedule, ScheduleError, WalkRecipe};
use super::tree::TreePass;
use super::walk::Walk;
use super::walk_pass::WalkPass;
use crate::collectives::{Action, Collective, Cut, Form, Paths, Share, Sums};
use crate::geometry::{Trees, Vertex};
use crate::names::{Block, Rank};
use crate::plan::exchange::linear;
use crate::plan::exchange::parlinna;
use crate::plan::exchange::{self, ExchangePass};
use crate::plan::ir::flow::{Flow, LaneHeader, Message};
use crate::plan::ir::grid::{Grid, NodeGroups};
use crate::plan::ir::members::Tile;
use crate::plan::ir::places::Places;
use crate::plan::ir::runs::Blocks;
use crate::plan::ir::space::{BlockOrder, Displaced, Listing, Space};
use crate::plan::ir::types::{Lane, Plan, Step, Transfer};

/// The shared part of all ranks' plans; see the module documentation.
#[derive(Debug)]
pub struct Expansion {
    collective: Collective,
    root: Rank,
    /// Who has all from the start: what passes send there is left out.
    complete: Option<Rank>,
    places: Arc<Places>,
    headers: Vec<LaneHeader>,
    lanes: Vec<Vec<PassSteps>>,
}

/// A pass, and which of its lane's steps are the pass's.
type PassSteps = (Range<usize>, Box<dyn Pass>);

/// What all ranks know of a lane, and its passes.
type Passes = (LaneHeader, Vec<Box<dyn Pass>>);

impl Schedule {
    /// What all ranks share.
    ///
    /// # Errors
    /// As [`Schedule::validate`].
    pub fn expand(&self) -> Result<Expansion, ScheduleError> {
        self.validate()?;
        let schedule = self;
        let places = Arc::new(Places { shape: schedule.shape.clone(), map: schedule.map.clone() });
        let lanes = match &schedule.recipe {
            Recipe::Walk(recipe) => (0..schedule.ports)
                .map(|port| walk_lane(schedule, recipe, &places, port))
                .collect::<Result<Vec<_>, _>>()?,
            Recipe::Exchange(exchange) => {
                let grid = Grid::new(places.clone(), exchange.groups);
                let passes = |grid: &_| exchange::passes(exchange, &places, grid, schedule.ports);
                exchange_lanes(grid, exchange.window(), passes)
            }
            Recipe::ParLinNa(recipe) => {
                let grid =
                    Grid::new(places.clone(), NodeGroups::OfSize(places.shape.ranks_per_node()));
                let passes = |grid: &_| (parlinna::passes(*recipe, grid, schedule.ports), 1);
                exchange_lanes(grid, recipe.window(), passes)
            }
            Recipe::Linear => linear_lanes(&places, schedule),
            Recipe::Prefix(how) => prefix_lanes(places.shape.n_ranks(), schedule, *how),
            Recipe::Trees => tree_lanes(&places, schedule),
        };
        let with_steps = |passes: Vec<Box<dyn Pass>>| {
            let mut first = 0;
            let with_steps = |pass: Box<dyn Pass>| {
                let steps = first..first + pass.n_steps();
                first = steps.end;
                (steps, pass)
            };
            passes.into_iter().map(with_steps).collect()
        };
        let lanes = lanes.into_iter().map(|(header, passes)| (header, with_steps(passes)));
        let (headers, lanes) = lanes.unzip();
        let root = Rank(if schedule.collective.is_rooted() { schedule.root } else { 0 });
        let collective = schedule.collective;
        let complete = collective.brings_all(root, root, places.shape.n_ranks()).then_some(root);
        Ok(Expansion { collective, root, complete, places, headers, lanes })
    }
}

impl Expansion {
    /// The pass that a lane's step belongs to, and which of its steps it is.
    fn pass(&self, lane: usize, step: usize) -> (&dyn Pass, usize) {
        let passes = &self.lanes[lane];
        let found = passes.iter().find(|(steps, _)| step < steps.end);
        let (steps, pass) = found.unwrap_or_else(|| panic!("lane {lane} has no step {step}"));
        (&**pass, step - steps.start)
    }
}

impl Flow for Expansion {
    fn collective(&self) -> Collective {
        self.collective
    }

    fn n_ranks(&self) -> u32 {
        self.places.shape.n_ranks()
    }

    fn root(&self) -> Rank {
        self.root
    }

    fn lanes(&self) -> &[LaneHeader] {
        &self.headers
    }

    fn action(&self, lane: usize, step: usize, _rank: Rank) -> Action {
        let (pass, step) = self.pass(lane, step);
        pass.action(step)
    }

    fn own_at(&self, lane: usize, step: usize, rank: Rank) -> u32 {
        let (pass, step) = self.pass(lane, step);
        pass.own_at(step, rank)
    }

    fn tiles(&self, lane: usize, most: u32) -> Vec<Tile> {
        let order = self.lanes[lane].iter().find_map(|(_, pass)| pass.tiles(most));
        order.unwrap_or_else(|| Tile::ranges(self.headers[lane].space.n_positions, most))
    }

    fn messages(&self, lane: usize, step: usize, tile: &Tile, visit: &mut dyn FnMut(Message<'_>)) {
        let (pass, step) = self.pass(lane, step);
        pass.messages(Scope::Step(step, tile), &mut |_, message| {
            if self.complete != Some(message.to) {
                visit(message);
            }
        });
    }

    /// Costs O(steps x sizes of the dimensions) plus what it lists; no rank is enumerated.
    ///
    /// # Panics
    /// If `rank` is not below the number of ranks.
    fn plan(&self, rank: Rank) -> Plan {
        let at = self.places.coord(rank);
        let lanes = self.headers.iter().zip(&self.lanes).map(|(header, passes)| {
            let mut steps: Vec<Step> = Vec::with_capacity(header.n_steps);
            for (Range { start, .. }, pass) in passes {
                steps.extend((0..pass.n_steps()).map(|step| Step {
                    action: pass.action(step),
                    own_at: pass.own_at(step, rank),
                    ..Step::default()
                }));
                pass.messages(Scope::Rank(rank, at), &mut |step, Message { from, to, runs }| {
                    if self.complete != Some(to) {
                        let Step { sends, recvs, .. } = &mut steps[start + step];
                        let (peer, transfers) =
                            if from == rank { (to, sends) } else { (from, recvs) };
                        transfers.push(Transfer { peer, blocks: Blocks::from_slice(runs) });
                    }
                });
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
) -> Result<Passes, ScheduleError> {
    let Schedule { collective, shape, map, .. } = schedule;
    let n_linked = shape.active_dims().len().max(1) as u32;
    let patterns = schedule.ring_patterns(recipe, port >= n_linked)?;
    let walk = Arc::new(Walk::new(shape, patterns, recipe.interleave, (port % n_linked) as usize));
    let root = map.coord_of(shape, schedule.root);
    let origin = if collective.is_rooted() { root } else { shape.coord(Vertex(0)) };
    let cut = collective.cut();
    let is_whole = cut == Cut::Token
        || cut == Cut::Vector && matches!(recipe.form, Form::Tree | Form::Latency);
    let is_resent = recipe.positions == Placement::Resend;
    let order = Arc::new(match (recipe.form, recipe.positions) {
        _ if is_whole => PositionOrder::row_major(walk.sizes()),
        (Form::Tree, _) => tree_order(&walk, root),
        (_, Placement::Rank) => PositionOrder::row_major(walk.sizes()),
        (_, Placement::Path | Placement::Resend) => path_order(&walk, origin),
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
        is_resent.then_some(boxed(ResendPass { places, order, backwards }))
    };
    // In the latency form the patterns may be smaller than the dimensions.
    let sizes = shape.sizes();
    let mut nodes = sizes.clone();
    shape.node_dim().into_iter().for_each(|dim| nodes[dim] = walk.sizes()[dim]);
    let fold =
        |all: &[u32], core: &[u32], action| FoldPass::new(places, all, core, action).map(boxed);
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
        passes.push(boxed(pass));
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
        n_steps: passes.iter().map(|pass| pass.n_steps()).sum(),
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
) -> Vec<Passes> {
    let grid = Arc::new(grid);
    let (passes, parts) = passes(&grid);
    let n_positions = grid.n_positions();
    let space = Space { cut: Cut::Pairs, n_positions, order: BlockOrder::Grid(grid) };
    let mut lanes = lanes(space, parts, passes);
    lanes.iter_mut().for_each(|(header, _)| header.window = window);
    lanes
}

fn linear_lanes(places: &Arc<Places>, schedule: &Schedule) -> Vec<Passes> {
    let Places { shape, map } = &**places;
    let root = map.coord_of(shape, schedule.root);
    let from_root =
        schedule.collective.gives(Rank(schedule.root), Rank(schedule.root), shape.n_ranks())
            == Share::All;
    let order = BlockOrder::Identity;
    let space = Space { cut: Cut::Blocks, n_positions: shape.n_ranks(), order };
    lanes(space, 1, linear::passes(places, root, from_root, schedule.ports))
}

/// One lane for each port, with its part of the vector.
fn prefix_lanes(n_ranks: u32, schedule: &Schedule, how: PrefixSteps) -> Vec<Passes> {
    let is_exclusive = schedule.collective.sums() == Sums::Before;
    let pass = |_| PrefixPass::new(n_ranks, how, is_exclusive);
    lanes(whole_vector(), schedule.ports, (0..schedule.ports).map(pass))
}

/// One lane for each tree, as many as there are ports and trees.
fn tree_lanes(places: &Arc<Places>, schedule: &Schedule) -> Vec<Passes> {
    let shape = &places.shape;
    let trees = Arc::new(Trees::new(shape, schedule.map.vertex_of(shape, schedule.root)));
    let action = schedule.collective.along_trees().unwrap_or_default();
    let parts = schedule.ports.min(trees.n_trees() as u32);
    let pass = |part| TreePass::new(places.clone(), trees.clone(), part as usize, action);
    lanes(whole_vector(), parts, (0..parts).map(pass))
}

/// A space in which every message carries all of the vector's part.
fn whole_vector() -> Space {
    Space { cut: Cut::Vector, n_positions: 1, order: BlockOrder::Identity }
}

/// A lane with its header for each port, of one pass each; the data are cut into `parts`.
fn lanes<P: Pass + 'static>(
    space: Space,
    parts: u32,
    passes: impl IntoIterator<Item = P>,
) -> Vec<Passes> {
    let space = Arc::new(space);
    let lane = |(port, pass): (u32, P)| {
        let (n_steps, space) = (pass.n_steps(), space.clone());
        let (port, part) = (port as u16, port % parts);
        let header = LaneHeader { port, part, parts, space, window: None, n_steps };
        (header, vec![boxed(pass)])
    };
    (0..).zip(passes).map(lane).collect()
}

fn boxed(pass: impl Pass + 'static) -> Box<dyn Pass> {
    Box::new(pass)
}
