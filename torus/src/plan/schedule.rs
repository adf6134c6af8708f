//! The schedule: a collective on a torus as a compact global description, and its expansion
//! to one rank's [`Plan`].
//!
//! A schedule is a few lines of text at any scale (only an explicit rank map makes it
//! longer). It names no buffers and no bytes; the same schedule serves every count.

use std::sync::Arc;

use super::derive::{self, Exchange, Load, RawStep};
use super::direct;
use super::order::PositionOrder;
use super::types::{Action, Placement, Plan, PortPlan, Rank, Recv, Run, Send, Space, Step};
use super::walk::{Interleave, Walk};
use crate::collectives::Collective;
use crate::geometry::{Coord, Node, RankMap, Shape};
use crate::patterns::{Kind, Pattern, Unserved};

/// How a collective is performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// One pass over the walk: reduce-scatter, allgather, logarithmic alltoall, barrier.
    Butterfly,
    /// The tree towards (or from) the root: bcast, reduce, gather, scatter.
    Tree,
    /// Two passes: allreduce as reduce-scatter and allgather (its bandwidth form, B), bcast
    /// as scatter and allgather, reduce as reduce-scatter and gather (Bine, section 4.5).
    TwoPhase,
    /// Every step exchanges and combines the whole vector: allreduce's latency form (L).
    Latency,
    /// Every rank sends to every other directly: alltoall.
    Direct,
}

/// Which order the blocks of a butterfly stand in (Bine, section 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Positions {
    /// Path order: what is sent is contiguous, or a few runs; blocks that belong to users are
    /// permuted by a local copy before or after ("permute").
    Path,
    /// Rank order: nothing is permuted, what is sent is many runs ("block by block"; with
    /// far-first steps on a single ring two runs at most, "two transmissions").
    Rank,
    /// As if permuted, without permuting: one more exchange puts blocks right ("send").
    Resend,
}

/// Which 1-D step comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepOrder {
    /// Short distances first (distance doubling).
    NearFirst,
    /// Long distances first (distance halving).
    FarFirst,
}

/// A collective on a torus, for all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// What is performed.
    pub collective: Collective,
    /// How.
    pub form: Form,
    /// Where.
    pub shape: Shape,
    /// Which rank is on which node.
    pub map: RankMap,
    /// The root, for rooted collectives; 0 otherwise.
    pub root: Rank,
    /// One pattern per dimension.
    pub patterns: Vec<Kind>,
    /// Order of the steps within each dimension.
    pub order: StepOrder,
    /// Order of the steps between dimensions.
    pub interleave: Interleave,
    /// Order of the blocks.
    pub positions: Positions,
    /// Number of ports, `1 ..= max(1, 2 * D)` for D dimensions of size above 1. Port q < D
    /// starts at the q-th of them; ports D.. are the mirrored forms of ports 0.. (Bine,
    /// appendix D.4; Swing, section 4.1).
    pub ports: u32,
}

/// Why a schedule cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A pattern does not serve the size of a dimension.
    #[error("on shape {shape}, {unserved}")]
    Unserved {
        /// The shape.
        shape: String,
        /// The pattern, the size and what would be served.
        unserved: Unserved,
    },
    /// The number of patterns is not the number of dimensions.
    #[error("{found} patterns for the {expected} dimensions of the shape; give one for each")]
    Patterns {
        /// Patterns given.
        found: usize,
        /// Dimensions.
        expected: usize,
    },
    /// More ports than the shape has directions, or none.
    #[error("{ports} ports on shape {shape}: use 1 to {max}, two per dimension of size above 1")]
    Ports {
        /// Ports asked for.
        ports: u32,
        /// Most ports.
        max: u32,
        /// The shape.
        shape: String,
    },
    /// The root is not a rank.
    #[error("root {root} is not a rank: the shape {shape} has ranks 0 to {last}")]
    Root {
        /// Root asked for.
        root: Rank,
        /// The last rank.
        last: Rank,
        /// The shape.
        shape: String,
    },
    /// The collective has no such form.
    #[error("{collective} has no {form:?} form")]
    Form {
        /// The collective.
        collective: Collective,
        /// The form.
        form: Form,
    },
    /// The latency form would give different bits on different ranks.
    #[error(
        "the latency form needs groups that nest, which {kind} has not on a dimension of size \
         {size}; use the bandwidth form, or doubling, multiplying or direct"
    )]
    NotNested {
        /// The pattern.
        kind: Kind,
        /// The size of the dimension.
        size: u32,
    },
}

/// Most ports that a shape can use: two per dimension of size above 1 that has links, at least 1.
pub fn max_ports(shape: &Shape) -> u32 {
    (2 * shape.active_dims().len() as u32).max(1)
}

impl Schedule {
    /// Checks that the schedule can be expanded.
    ///
    /// # Errors
    /// [`ScheduleError`] saying what does not fit and what would.
    pub fn validate(&self) -> Result<(), ScheduleError> {
        let shape = || self.shape.to_string();
        let max = max_ports(&self.shape);
        if !(1..=max).contains(&self.ports) {
            return Err(ScheduleError::Ports { ports: self.ports, max, shape: shape() });
        }
        let last = self.shape.n_nodes() - 1;
        if self.root > last {
            return Err(ScheduleError::Root { root: self.root, last, shape: shape() });
        }
        if self.patterns.len() != self.shape.n_dims() {
            return Err(ScheduleError::Patterns {
                found: self.patterns.len(),
                expected: self.shape.n_dims(),
            });
        }
        use Collective as C;
        let has_form = match self.form {
            Form::Butterfly => matches!(
                self.collective,
                C::ReduceScatter | C::Allgather | C::Alltoall | C::Barrier
            ),
            Form::Tree => self.collective.is_rooted(),
            Form::TwoPhase => matches!(self.collective, C::Allreduce | C::Bcast | C::Reduce),
            Form::Latency => self.collective == C::Allreduce,
            Form::Direct => self.collective == C::Alltoall,
        };
        if !has_form {
            let (collective, form) = (self.collective, self.form);
            return Err(ScheduleError::Form { collective, form });
        }
        for (pattern, kind) in self.ring_patterns(false)?.into_iter().zip(&self.patterns) {
            if self.form == Form::Latency && !pattern.groups_nest() {
                let size = pattern.size();
                return Err(ScheduleError::NotNested { kind: kind.clone(), size });
            }
        }
        Ok(())
    }

    fn ring_patterns(&self, mirrored: bool) -> Result<Vec<Pattern>, ScheduleError> {
        self.patterns
            .iter()
            .enumerate()
            .map(|(dim, kind)| {
                let pattern =
                    Pattern::new(kind.clone(), self.shape.size(dim)).map_err(|unserved| {
                        ScheduleError::Unserved { shape: self.shape.to_string(), unserved }
                    })?;
                Ok(pattern.mirrored(mirrored).far_first(self.order == StepOrder::FarFirst))
            })
            .collect()
    }

    /// The walk of a port.
    fn walk(&self, port: u32) -> Result<Walk, ScheduleError> {
        let n_active = self.shape.active_dims().len().max(1) as u32;
        let patterns = self.ring_patterns(port >= n_active)?;
        let start = (port % n_active) as usize;
        Ok(Walk::new(&self.shape, patterns, self.interleave, start))
    }

    /// The plan of one rank.
    ///
    /// Costs O(steps x sizes of the dimensions) plus the runs and placements it lists; it
    /// never enumerates the ranks per step.
    ///
    /// # Errors
    /// As [`Schedule::validate`].
    ///
    /// # Panics
    /// If `rank` is not below the number of nodes.
    pub fn plan(&self, rank: Rank) -> Result<Plan, ScheduleError> {
        self.validate()?;
        let at = self.map.coord_of(&self.shape, rank);
        let ports = match self.form {
            Form::Direct => direct::ports(&self.shape, self.ports, at)
                .into_iter()
                .map(|port| self.finish_direct(port))
                .collect(),
            _ => (0..self.ports)
                .map(|port| Ok(self.port_plan(port, &self.walk(port)?, at)))
                .collect::<Result<Vec<_>, ScheduleError>>()?,
        };
        Ok(Plan {
            collective: self.collective,
            rank,
            n_ranks: self.shape.n_nodes(),
            root: if self.collective.is_rooted() { self.root } else { 0 },
            ports,
        })
    }

    fn rank_of(&self, node: Node) -> Rank {
        self.map.rank_of(&self.shape, node)
    }

    fn root_coord(&self) -> Coord {
        self.map.coord_of(&self.shape, self.root)
    }

    fn port_plan(&self, port: u32, walk: &Walk, at: Coord) -> PortPlan {
        use Collective as C;
        let steps;
        let (mut positions, mut space) = (1, Space::Vector);
        let (mut input, mut output) = (Placement::Identity, Placement::Identity);
        let is_root = at == self.root_coord();
        let only_at_root = |placement| if is_root { placement } else { Placement::Nothing };
        match (self.form, self.collective) {
            (Form::Latency, _) => {
                steps = finish(self, derive::disseminate(walk, at), Action::Reduce);
            }
            (Form::Butterfly, C::Barrier) => {
                space = Space::Token;
                steps = finish(self, derive::disseminate(walk, at), Action::Reduce);
            }
            (Form::Tree, C::Reduce) => {
                let raw = derive::tree(walk, Load::Whole, self.root_coord(), at);
                steps = finish(self, raw, Action::Reduce);
                output = only_at_root(Placement::Identity);
            }
            (Form::Tree, C::Bcast) => {
                let raw = derive::tree(walk, Load::Whole, self.root_coord(), at);
                steps = finish(self, derive::reverse(raw), Action::Copy);
                input = only_at_root(Placement::Identity);
            }
            (Form::Tree, collective) => {
                let order = derive::tree_order(walk, self.root_coord());
                let raw = derive::tree(walk, Load::Blocks(&order), self.root_coord(), at);
                (positions, space) = (order.n_positions(), Space::Blocks);
                let own = Placement::One { position: order.position(at) };
                let all = || only_at_root(self.permuted(&order));
                if collective == C::Gather {
                    (input, output) = (own, all());
                    steps = finish(self, raw, Action::Copy);
                } else {
                    (input, output) = (all(), own);
                    steps = finish(self, derive::reverse(raw), Action::Copy);
                }
            }
            (Form::Butterfly, C::Alltoall) => {
                let order = derive::path_order(walk, self.origin());
                (positions, space) = (order.n_positions(), Space::Blocks);
                steps = finish(self, derive::alltoall(walk, &order, at), Action::Copy);
                let displaced: Vec<_> = (0..walk.sizes().len())
                    .map(|dim| derive::displacements(walk, dim, at[dim]))
                    .collect();
                type Tables = (Vec<u32>, Vec<u32>);
                let through = |pick: fn(&Tables) -> &Vec<u32>| {
                    let rank = |coord: Coord| {
                        let parts: Vec<u32> = displaced
                            .iter()
                            .zip(coord.as_slice())
                            .map(|(tables, &by)| pick(tables)[by as usize])
                            .collect();
                        self.rank_of(walk.node(Coord::new(&parts)))
                    };
                    Placement::Permuted(order.coords().into_iter().map(rank).collect())
                };
                (input, output) = (through(|tables| &tables.0), through(|tables| &tables.1));
            }
            (_, collective) => {
                // Butterflies over the reduce-scatter's sets, one or two passes of them.
                let origin = if collective.is_rooted() { self.root_coord() } else { self.origin() };
                let order = match self.positions {
                    Positions::Rank => PositionOrder::row_major(walk.sizes()),
                    Positions::Path | Positions::Resend => derive::path_order(walk, origin),
                };
                positions = order.n_positions();
                let scatter = derive::reduce_scatter(walk, &order, at);
                match collective {
                    C::Allreduce => {
                        let mut both = finish(self, scatter.clone(), Action::Reduce);
                        both.extend(finish(self, derive::reverse(scatter), Action::Copy));
                        steps = both;
                    }
                    C::Bcast => {
                        let from_root = derive::scatter_along(walk, &order, origin, at);
                        let mut both = finish(self, from_root, Action::Copy);
                        both.extend(finish(self, derive::reverse(scatter), Action::Copy));
                        steps = both;
                        input = only_at_root(Placement::Identity);
                    }
                    C::Reduce => {
                        let from_root = derive::scatter_along(walk, &order, origin, at);
                        let mut both = finish(self, scatter, Action::Reduce);
                        both.extend(finish(self, derive::reverse(from_root), Action::Copy));
                        steps = both;
                        output = only_at_root(Placement::Identity);
                    }
                    _ => {
                        space = Space::Blocks;
                        let (resend, all, own) = self.block_placements(&order, at);
                        let mut there = finish(self, scatter.clone(), Action::Reduce);
                        there
                            .extend(resend.clone().map(|raw| finish_step(self, raw, Action::Copy)));
                        if collective == C::ReduceScatter {
                            (input, output, steps) = (all, own, there);
                        } else {
                            let mut raw = scatter;
                            raw.extend(resend);
                            (input, output) = (own, all);
                            steps = finish(self, derive::reverse(raw), Action::Copy);
                        }
                    }
                }
            }
        }
        PortPlan { part: port, parts: self.ports, positions, space, input, output, steps }
    }

    /// For reduce-scatter: the exchange that puts blocks right (if any), the placement of all
    /// blocks at the start, and that of the own block at the end.
    fn block_placements(
        &self,
        order: &PositionOrder,
        at: Coord,
    ) -> (Option<RawStep>, Placement, Placement) {
        let position = order.position(at);
        if self.positions != Positions::Resend {
            return (None, self.permuted(order), Placement::One { position });
        }
        // This rank ends with the block of the rank numbered like its position, and its own
        // is with the node whose position is numbered like this rank.
        let rank = self.rank_of(self.shape.node(at));
        let single = |position| Arc::from([Run::new(position, 1)]);
        let mut raw = RawStep::default();
        if position != rank {
            let to = self.map.node_of(&self.shape, position);
            let from = self.shape.node(order.coord(rank));
            raw.sends.push(Exchange { peer: to, blocks: single(position) });
            raw.recvs.push(Exchange { peer: from, blocks: single(rank) });
        }
        (Some(raw), Placement::Identity, Placement::One { position: rank })
    }

    /// The coordinate whose paths order the positions of collectives without a root.
    fn origin(&self) -> Coord {
        self.shape.coord(Node(0))
    }

    fn permuted(&self, order: &PositionOrder) -> Placement {
        let ranks: Arc<[u32]> =
            order.coords().into_iter().map(|coord| self.rank_of(self.shape.node(coord))).collect();
        let is_identity = ranks.iter().enumerate().all(|(i, &rank)| i as u32 == rank);
        if is_identity { Placement::Identity } else { Placement::Permuted(ranks) }
    }

    fn finish_direct(&self, port: direct::DirectPort) -> PortPlan {
        let ranks = |nodes: Vec<Node>| {
            Placement::Permuted(nodes.into_iter().map(|node| self.rank_of(node)).collect())
        };
        PortPlan {
            part: 0,
            parts: 1,
            positions: self.shape.n_nodes(),
            space: Space::Blocks,
            input: ranks(port.destinations),
            output: ranks(port.sources),
            steps: finish(self, port.steps, Action::Copy),
        }
    }
}

fn finish(schedule: &Schedule, raw: Vec<RawStep>, action: Action) -> Vec<Step> {
    raw.into_iter().map(|step| finish_step(schedule, step, action)).collect()
}

fn finish_step(schedule: &Schedule, raw: RawStep, action: Action) -> Step {
    let sends = raw
        .sends
        .into_iter()
        .map(|Exchange { peer, blocks }| Send { to: schedule.rank_of(peer), blocks });
    let recvs = raw.recvs.into_iter().map(|Exchange { peer, blocks }| Recv {
        from: schedule.rank_of(peer),
        blocks,
        action,
    });
    Step { sends: sends.collect(), recvs: recvs.collect(), own_at: raw.own_at }
}
