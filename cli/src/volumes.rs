//! Traffic of schedules whose blocks have different sizes.

use std::cell::RefCell;

use hopbine_torus::collectives::Payload;
use hopbine_torus::geometry::{Topology, Vertex};
use hopbine_torus::plan::{Flow, LaneHeader, Message, Run, Traffic, traffic_with_volumes};
use hopbine_torus::{Collective, LaneId, Position, Rank, StepId};

/// Weights of positions with different sizes, as multiples of n: the bytes of all blocks, or in an alltoall the mean
/// of the bytes that ranks send.
pub struct Volumes {
    /// By lane, the total weight of the positions before each position; empty for pairs.
    before: Vec<Vec<f64>>,
    /// The state of each lane, for pairs only.
    passing: Vec<RefCell<Passing>>,
    /// Lower bound, for any algorithm, of what the busiest rank sends.
    pub minimum: f64,
}

/// Weights of the blocks at each rank's positions while the steps of a lane are executed.
struct Passing {
    n_positions: usize,
    /// The weights, by rank and then by position.
    now: Vec<f32>,
    /// Writes of the current step: index and weight.
    coming: Vec<(usize, f32)>,
    step: StepId,
}

impl Volumes {
    /// Weights for blocks with `size(from, to)` elements. `to` matters only if each block is for one rank.
    pub fn new(flow: &dyn Flow, size: impl Fn(u32, u32) -> usize) -> Self {
        let (n, collective) = (flow.n_ranks(), flow.collective());
        let size = |from, to| size(from, to) as f64;
        if collective.payload() == Payload::Pairs {
            let sizes = |from| (0..n).map(move |to| size(from, to)).collect();
            let sizes: Vec<Vec<f64>> = (0..n).map(sizes).collect();
            let given: Vec<f64> = sizes.iter().map(|sizes| sizes.iter().sum()).collect();
            let mean = (given.iter().sum::<f64>() / f64::from(n)).max(1.0);
            let others = given.iter().enumerate().map(|(rank, given)| given - sizes[rank][rank]);
            let minimum = others.fold(0.0, f64::max) / mean;
            let passing = LaneId::first(flow.lanes().len()).map(|lane| {
                let LaneHeader { part, ref space, .. } = flow.lanes()[lane.index()];
                let sizes = &sizes;
                let stands = |rank: Rank| {
                    let space = flow.space(lane, rank);
                    Position::first(space.n_positions).map(move |at| {
                        let to = space.block_at_start(rank, at);
                        let size = to.map_or(0.0, |to| sizes[rank.index()][to.index()]);
                        (size / mean * part.share()) as f32
                    })
                };
                let now = Rank::first(n).flat_map(stands).collect();
                let n_positions = space.n_positions as usize;
                RefCell::new(Passing { n_positions, now, coming: Vec::new(), step: StepId(0) })
            });
            return Volumes { before: vec![], passing: passing.collect(), minimum };
        }
        let sizes: Vec<f64> = (0..n).map(|rank| size(rank, 0)).collect();
        let total = sizes.iter().sum::<f64>().max(1.0);
        let before = |lane: &LaneHeader| {
            let mut sum = 0.0;
            let weigh = |position| {
                let block = lane.space.block_at_start(Rank(0), position);
                let size = block.map_or(0.0, |block| sizes[block.index()]);
                sum += size / total * lane.part.share();
                sum
            };
            std::iter::once(0.0).chain(Position::first(lane.space.n_positions).map(weigh)).collect()
        };
        let root = flow.root().index();
        let minimum = match collective {
            Collective::Scatter => 1.0 - sizes[root] / total,
            Collective::Gather => {
                let others = (0..sizes.len()).filter(|&rank| rank != root);
                others.map(|rank| sizes[rank]).fold(0.0, f64::max) / total
            }
            // Every block goes to, or comes from, all other ranks, whichever rank forwards it.
            _ => collective.minimal_volume(n),
        };
        let before = flow.lanes().iter().map(before).collect();
        Volumes { before, passing: vec![], minimum }
    }

    /// The traffic of a schedule.
    pub fn traffic(
        &self,
        flow: &dyn Flow,
        topology: &dyn Topology,
        place: impl Fn(Rank) -> Vertex,
    ) -> Traffic {
        traffic_with_volumes(flow, topology, place, |lane, step, message| {
            self.of(lane, step, message)
        })
    }

    fn of(&self, lane: LaneId, step: StepId, message: &Message<'_>) -> f64 {
        let Some(before) = self.before.get(lane.index()) else {
            return self.passing[lane.index()].borrow_mut().pass(step, message);
        };
        let run = |run: &Run| before[run.end() as usize] - before[run.start as usize];
        message.runs.iter().map(run).sum()
    }
}

impl Passing {
    /// The weight of a message. All messages of a step read the state before the step.
    fn pass(&mut self, step: StepId, message: &Message<'_>) -> f64 {
        if step != self.step {
            self.coming.drain(..).for_each(|(at, weight)| self.now[at] = weight);
            self.step = step;
        }
        let [from, to] = [message.from, message.to].map(|rank| rank.index() * self.n_positions);
        let mut sum = 0.0;
        for position in message.runs.iter().flat_map(|run| run.start..run.end()) {
            let weight = self.now[from + position as usize];
            self.coming.push((to + position as usize, weight));
            sum += f64::from(weight);
        }
        sum
    }
}
