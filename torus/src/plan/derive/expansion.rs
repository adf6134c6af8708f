//! The data that all ranks of a schedule share: walks, orders, sets, each computed once. One rank's plan and all
//! ranks' messages are derived from it.

use std::ops::Range;
use std::sync::Arc;

use super::dealt::{Deal, DealtPass};
use super::fold::FoldPass;
use super::latency::LatencyPass;
use super::order::PositionOrder;
use super::prefix::PrefixPass;
use super::resend::ResendPass;
use super::routing::{path_order, tree_order};
use super::schedule::{Placement, PrefixSteps, Recipe, Schedule, ScheduleError, WalkRecipe};
use super::tree::TreePass;
use super::walk::Walk;
use super::walk_pass::WalkPass;
use crate::collectives::{Action, Collective, Payload, Share, Sums, WalkForm};
use crate::geometry::{Trees, Vertex};
use crate::names::{Block, LaneId, PortId, Rank, StepId};
use crate::plan::exchange::linear;
use crate::plan::exchange::{self, ExchangeRecipe};
use crate::plan::ir::flow::{Flow, LaneHeader, Visit};
use crate::plan::ir::grid::Grid;
use crate::plan::ir::members::Tile;
use crate::plan::ir::pass::{Pass, PassScope};
use crate::plan::ir::space::{BlockOrder, BlockPermutation, Displaced, Space};
use crate::plan::ir::split::Part;
use crate::plan::ir::torus::Torus;
use crate::plan::ir::types::{Lane, Plan};
use crate::plan::ir::view::{DependsOn, StepView};

/// The shared part of all ranks' plans; see the module documentation.
#[derive(Debug)]
pub struct Expansion {
    collective: Collective,
    root: Rank,
    /// The rank that has all data at the start, if there is one; messages of passes to it are omitted.
    all_data_rank: Option<Rank>,
    torus: Arc<Torus>,
    headers: Vec<LaneHeader>,
    lanes: Vec<Passes>,
}

/// A lane's passes, each with its range of the lane's steps.
#[derive(Clone, Debug, Default)]
struct Passes(Vec<(Range<usize>, Arc<dyn Pass>)>);

impl Passes {
    /// Appends a pass.
    fn push(&mut self, pass: impl Pass + 'static) {
        let first = self.n_steps();
        self.0.push((first..first + pass.n_steps(), Arc::new(pass)));
    }

    fn n_steps(&self) -> usize {
        self.0.last().map_or(0, |(steps, _)| steps.end)
    }
}

/// The header of a lane, and its passes.
type ExpandedLane = (LaneHeader, Passes);

impl Schedule {
    /// Expands the schedule into the data that all ranks share.
    ///
    /// # Errors
    /// The errors of [`Schedule::validate`].
    pub fn expand(&self) -> Result<Expansion, ScheduleError> {
        self.validate()?;
        let schedule = self;
        let torus = Arc::new(Torus { shape: schedule.shape.clone(), map: schedule.map.clone() });
        let lanes = match &schedule.recipe {
            Recipe::Walk(recipe) => {
                let deal = recipe
                    .is_dealt()
                    .then(|| Deal::new(&schedule.shape, &schedule.split.turns(schedule.ports)));
                (0..schedule.ports)
                    .map(|port| walk_lane(schedule, recipe, &torus, deal.as_ref(), port))
                    .collect::<Result<Vec<_>, _>>()?
            }
            Recipe::Exchange(exchange) => exchange_lanes(&torus, exchange, schedule),
            Recipe::Linear => linear_lanes(&torus, schedule),
            Recipe::Prefix(how) => prefix_lanes(torus.shape.n_ranks(), schedule, *how),
            Recipe::Trees(ways) => tree_lanes(&torus, schedule, schedule.trees(*ways)?),
        };
        let (headers, lanes) = lanes.into_iter().unzip();
        let root = if schedule.collective.is_rooted() { schedule.root } else { Rank(0) };
        let collective = schedule.collective;
        let all_data_rank =
            collective.needs_no_receive(root, root, torus.shape.n_ranks()).then_some(root);
        Ok(Expansion { collective, root, all_data_rank, torus, headers, lanes })
    }
}

impl Expansion {
    /// The lanes repeated cyclically on `ports` ports, each with an equal part of the data: models software that
    /// drives more ports than a torus has directions.
    #[must_use]
    pub fn on_ports(self, ports: u32) -> Self {
        let Expansion { headers, lanes, .. } = self;
        let n_lanes = lanes.len();
        let again = (0..ports).map(|port| {
            let from = port as usize % n_lanes;
            let port = PortId(port as u16);
            let header = LaneHeader {
                port,
                part: Part::equal(port.0.into(), ports),
                ..headers[from].clone()
            };
            (header, lanes[from].clone())
        });
        let (headers, lanes) = again.unzip();
        Expansion { headers, lanes, ..self }
    }

    /// The pass to which a lane's step belongs, and the number of the step in that pass.
    fn pass(&self, lane: LaneId, step: StepId) -> (&dyn Pass, usize) {
        let Passes(passes) = &self.lanes[lane.index()];
        let found = passes.iter().find(|(steps, _)| step.index() < steps.end);
        let (steps, pass) = found.unwrap_or_else(|| panic!("lane {lane} has no step {step}"));
        (&**pass, step.index() - steps.start)
    }
}

impl Flow for Expansion {
    fn collective(&self) -> Collective {
        self.collective
    }

    fn n_ranks(&self) -> u32 {
        self.torus.shape.n_ranks()
    }

    fn root(&self) -> Rank {
        self.root
    }

    fn lanes(&self) -> &[LaneHeader] {
        &self.headers
    }

    fn port(&self, lane: LaneId, step: StepId, from: Rank, to: Rank) -> PortId {
        let (pass, _) = self.pass(lane, step);
        pass.port(self.headers[lane.index()].port, from, to)
    }

    fn action(&self, lane: LaneId, step: StepId, _rank: Rank) -> Action {
        let (pass, step) = self.pass(lane, step);
        pass.action(step)
    }

    fn own_at(&self, lane: LaneId, step: StepId, rank: Rank) -> u32 {
        let (pass, step) = self.pass(lane, step);
        pass.own_at(step, rank)
    }

    fn tiles(&self, lane: LaneId, most: u32) -> Vec<Tile> {
        let order = self.lanes[lane.index()].0.iter().find_map(|(_, pass)| pass.tiles(most));
        order.unwrap_or_else(|| Tile::ranges(self.headers[lane.index()].space.n_positions, most))
    }

    fn messages(&self, lane: LaneId, step: StepId, tile: &Tile, visit: Visit<'_>) {
        let (pass, step) = self.pass(lane, step);
        pass.messages(PassScope::Step(step, tile), &mut |_, message| {
            if self.all_data_rank != Some(message.to) {
                visit(message);
            }
        });
    }

    fn view(&self, lane: LaneId, step: StepId) -> StepView<'_> {
        let (pass, step) = self.pass(lane, step);
        pass.view(step, self.all_data_rank)
    }

    fn depends_on(&self, lane: LaneId, step: StepId) -> DependsOn {
        let (pass, within) = self.pass(lane, step);
        let first = step.index() - within;
        match pass.depends_on(within) {
            DependsOn::Step(before) => DependsOn::Step(StepId(first + before.index())),
            DependsOn::Nothing => DependsOn::before(first),
        }
    }

    /// Costs O(steps x sizes of the dimensions) plus the size of the result; ranks are not enumerated.
    ///
    /// # Panics
    /// If `rank` is not below the number of ranks.
    fn plan(&self, rank: Rank) -> Plan {
        let at = self.torus.coord(rank);
        let lanes = self.headers.iter().zip(&self.lanes).map(|(header, Passes(passes))| {
            let mut steps = Vec::with_capacity(header.n_steps);
            for (_, pass) in passes {
                pass.list((rank, at), header.port, self.all_data_rank, &mut steps);
            }
            let LaneHeader { port, part, window, ref space, .. } = *header;
            Lane { port, part, space: space.clone(), window, steps }
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

/// One lane of a walk: port q < D starts at the q-th dimension with links; ports D.. are the mirrored forms of
/// ports 0.. (Bine, appendix D.4; Swing, section 4.1), or the opposed ones ([`Schedule::ring_patterns`]).
fn walk_lane(
    schedule: &Schedule,
    recipe: &WalkRecipe,
    torus: &Arc<Torus>,
    deal: Option<&Deal>,
    port: u32,
) -> Result<ExpandedLane, ScheduleError> {
    let Schedule { collective, shape, map, .. } = schedule;
    let n_linked = shape.active_dims().len().max(1) as u32;
    let patterns = schedule.ring_patterns(recipe, port >= n_linked)?;
    let walk = Arc::new(Walk::new(shape, patterns, recipe.interleave, (port % n_linked) as usize));
    let root = map.coord_of(shape, schedule.root);
    let origin = if collective.is_rooted() { root } else { shape.coord(Vertex(0)) };
    let payload = collective.payload();
    let is_whole = payload == Payload::Token
        || payload == Payload::Vector && matches!(recipe.form, WalkForm::Tree | WalkForm::Latency);
    let is_resent = recipe.positions == Placement::Resend;
    let order = Arc::new(match (recipe.form, recipe.positions) {
        _ if is_whole => PositionOrder::row_major(walk.sizes()),
        (WalkForm::Tree, _) => tree_order(&walk, root),
        (_, Placement::Rank | Placement::Dealt) => PositionOrder::row_major(walk.sizes()),
        (_, Placement::Path | Placement::Resend) => path_order(&walk, origin),
    });
    let space = Arc::new(Space {
        payload,
        n_positions: if is_whole { 1 } else { order.n_positions() },
        order: match payload {
            Payload::Blocks if !is_resent => listed(torus, &order),
            Payload::Pairs => BlockOrder::Displaced(Arc::new(Displaced {
                torus: torus.clone(),
                patterns: (0..shape.n_dims()).map(|dim| walk.pattern(dim).clone()).collect(),
                displacements: order.nodes(),
            })),
            Payload::Blocks | Payload::Vector | Payload::Token => BlockOrder::Identity,
        },
    });
    let phases = collective.phases(recipe.form).unwrap_or_default();
    let resend = |backwards| ResendPass { torus: torus.clone(), order: order.clone(), backwards };
    // In the latency form the patterns may be smaller than the dimensions.
    let sizes = shape.sizes();
    let mut nodes = sizes.clone();
    shape.node_dim().into_iter().for_each(|dim| nodes[dim] = walk.sizes()[dim]);
    let mut passes = Passes::default();
    let fold = |all: &[u32], core: &[u32], action| FoldPass::new(torus, all, core, action);
    let inwards =
        [fold(&sizes, &nodes, Action::Reduce), fold(&nodes, walk.sizes(), Action::Reduce)];
    inwards.into_iter().flatten().for_each(|pass| passes.push(pass));
    if recipe.form == WalkForm::Latency {
        // In a barrier nothing is combined, so folds need no order.
        let combines = payload == Payload::Vector;
        passes.push(LatencyPass::new(torus.clone(), walk.clone(), combines));
    }
    for &phase in phases.iter().filter(|_| recipe.form != WalkForm::Latency) {
        let (torus, walk, order) = (torus.clone(), walk.clone(), order.clone());
        let pass = WalkPass::new(torus, walk, order, phase, root, is_whole);
        // A reduce-scatter leaves blocks in path order, and an allgather starts from path order: one more exchange
        // restores rank order, after a reduce-scatter and before an allgather.
        if is_resent && phase.backwards {
            passes.push(resend(true));
        }
        match deal {
            Some(deal) => {
                passes.push(DealtPass { walk: pass, deal: deal.clone(), lane: port as u8 })
            }
            None => passes.push(pass),
        }
        if is_resent && !phase.backwards {
            passes.push(resend(false));
        }
    }
    let outwards = [fold(&nodes, walk.sizes(), Action::Copy), fold(&sizes, &nodes, Action::Copy)];
    outwards.into_iter().flatten().for_each(|pass| passes.push(pass));
    // Lanes that move whole blocks share one space.
    let part = match deal {
        Some(_) => Part::WHOLE,
        None => schedule.split.part(port, schedule.ports),
    };
    let header = LaneHeader {
        port: PortId(port as u16),
        part,
        space,
        window: None,
        n_steps: passes.n_steps(),
    };
    Ok((header, passes))
}

/// The blocks in a position order, as a permutation.
fn listed(torus: &Torus, order: &PositionOrder) -> BlockOrder {
    let blocks: Vec<Block> =
        order.nodes().into_iter().map(|node| Block(torus.rank_on(node).0)).collect();
    if blocks.iter().enumerate().all(|(position, block)| position == block.index()) {
        return BlockOrder::Identity;
    }
    let permutation =
        BlockPermutation::new(blocks).expect("an order of all coordinates is a permutation");
    BlockOrder::Listed(Arc::new(permutation))
}

fn exchange_lanes(
    torus: &Arc<Torus>,
    exchange: &ExchangeRecipe,
    schedule: &Schedule,
) -> Vec<ExpandedLane> {
    let grid = Arc::new(Grid::new(torus.clone(), exchange.groups));
    let passes = exchange::passes(exchange, torus, &grid, schedule.ports);
    let n_positions = grid.n_positions();
    let space = Space { payload: Payload::Pairs, n_positions, order: BlockOrder::Grid(grid) };
    let mut lanes = lanes(space, schedule, passes);
    lanes.iter_mut().for_each(|(header, _)| header.window = exchange.window());
    lanes
}

fn linear_lanes(torus: &Arc<Torus>, schedule: &Schedule) -> Vec<ExpandedLane> {
    let Torus { shape, map } = &**torus;
    let root = map.coord_of(shape, schedule.root);
    let from_root =
        schedule.collective.gives(schedule.root, schedule.root, shape.n_ranks()) == Share::All;
    let order = BlockOrder::Identity;
    let space = Space { payload: Payload::Blocks, n_positions: shape.n_ranks(), order };
    lanes(space, schedule, linear::passes(torus, root, from_root, schedule.ports))
}

/// One lane for each port, with the port's part of the vector.
fn prefix_lanes(n_ranks: u32, schedule: &Schedule, how: PrefixSteps) -> Vec<ExpandedLane> {
    let is_exclusive = schedule.collective.sums() == Sums::Before;
    let pass = |_| PrefixPass::new(n_ranks, how, is_exclusive);
    lanes(whole_vector(), schedule, (0..schedule.ports).map(pass))
}

/// One lane for each tree: the smaller of the numbers of ports and trees.
fn tree_lanes(torus: &Arc<Torus>, schedule: &Schedule, trees: Trees) -> Vec<ExpandedLane> {
    let trees = Arc::new(trees);
    let action = schedule.collective.along_trees().unwrap_or_default();
    let n_parts = schedule.n_parts();
    let pass = |part| {
        TreePass::new(torus.clone(), trees.clone(), (part as usize, n_parts as usize), action)
    };
    lanes(whole_vector(), schedule, (0..n_parts).map(pass))
}

/// A space with one position: every message carries the lane's whole part of the vector.
fn whole_vector() -> Space {
    Space { payload: Payload::Vector, n_positions: 1, order: BlockOrder::Identity }
}

/// One lane for each pass, with its header.
fn lanes<P: Pass + 'static>(
    space: Space,
    schedule: &Schedule,
    passes: impl IntoIterator<Item = P>,
) -> Vec<ExpandedLane> {
    let (space, parts) = (Arc::new(space), schedule.n_parts());
    let lane = |(port, pass): (u32, P)| {
        let (n_steps, space) = (pass.n_steps(), space.clone());
        let (port, part) = (PortId(port as u16), schedule.split.part(port % parts, parts));
        let header = LaneHeader { port, part, space, window: None, n_steps };
        let mut passes = Passes::default();
        passes.push(pass);
        (header, passes)
    };
    (0..).zip(passes).map(lane).collect()
}
