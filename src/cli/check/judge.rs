//! Runs the checker and the traffic count on a schedule, or on all ranks' plans.

use std::cell::RefCell;

use hopbine_torus::collectives::Cut;
use hopbine_torus::plan::{
    Checker, Expect, Fault, Flow, LaneHeader, Listed, Message, Mixed, Plan, Run, Schedule, Traffic,
    Violation, traffic, weighed,
};
use hopbine_torus::{Collective, Position, Rank, RankMap, Shape};
use rayon::prelude::*;

use crate::cli::counts::Counts;
use crate::cli::progress::Bar;

/// The result for one algorithm with one number of ports, over all roots asked for.
#[derive(Debug)]
pub struct Verdict {
    /// The largest figures of all roots; `None` if the plans do not belong together.
    pub traffic: Option<Traffic>,
    /// The least that the busiest rank must send, whatever the algorithm, as a multiple of n.
    pub minimum: Option<f64>,
    /// What is wrong, with the root at which it shows.
    pub violations: Vec<(u32, Violation)>,
}

/// Judges a schedule for each of the roots.
pub fn schedule(
    schedule: &Schedule,
    roots: &[u32],
    expect: Expect,
    counts: Option<(Counts, u64)>,
    bar: &Bar,
) -> Verdict {
    let judge = |&root: &u32| {
        let schedule = Schedule { root, ..schedule.clone() };
        let expansion = schedule.expand().expect("the schedule and its roots were validated");
        flow(&expansion, &schedule.shape, &schedule.map, expect, counts, bar)
    };
    let verdicts: Vec<Verdict> = roots.par_iter().map(judge).collect();
    verdicts.into_iter().reduce(merge).expect("there is at least one root")
}

/// Judges plans that come from anywhere.
pub fn plans(plans: Vec<Plan>, shape: &Shape, map: &RankMap, expect: Expect, bar: &Bar) -> Verdict {
    match Listed::new(plans) {
        Ok(listed) => flow(&listed, shape, map, expect, None, bar),
        Err(Mixed { rank, what }) => {
            let fault = Fault::Inconsistent { what };
            let violation = Violation { rank, lane: None, step: None, position: None, fault };
            Verdict { traffic: None, minimum: None, violations: vec![(0, violation)] }
        }
    }
}

/// The cores share the proof's units of work; the traffic count is one more unit.
fn flow(
    flow: &dyn Flow,
    shape: &Shape,
    map: &RankMap,
    expect: Expect,
    counts: Option<(Counts, u64)>,
    bar: &Bar,
) -> Verdict {
    let checker = Checker::new(flow, expect);
    bar.expect(checker.n_units() as u64 + 1);
    let work = |unit: usize| {
        let found = checker.run(unit);
        bar.advance(1);
        found
    };
    let count = || {
        let place = |rank: Rank| map.node_of(shape, rank.0);
        let found = match counts {
            None => {
                let minimum = flow.collective().minimal_volume(flow.n_ranks());
                (traffic(flow, shape, place), minimum)
            }
            Some((counts, seed)) => {
                let volumes = Volumes::new(flow, counts, seed);
                let weight = |lane, step, message: &Message<'_>| volumes.of(lane, step, message);
                (weighed(flow, shape, place, weight), volumes.minimum)
            }
        };
        bar.advance(1);
        found
    };
    let prove = || (0..checker.n_units()).into_par_iter().map(work).collect::<Vec<_>>();
    let (findings, (traffic, minimum)) = rayon::join(prove, count);
    let root = flow.root().0;
    let violations = checker.conclude(findings).into_iter().map(|found| (root, found)).collect();
    Verdict { traffic: Some(traffic), minimum: Some(minimum), violations }
}

/// What positions of different sizes weigh, as multiples of n: the bytes of all blocks, or the
/// mean of what ranks give in an alltoall.
struct Volumes {
    /// By lane, what the positions before each one weigh; empty for pairs.
    before: Vec<Vec<f64>>,
    /// By lane, for pairs.
    passing: Vec<RefCell<Passing>>,
    minimum: f64,
}

/// Which block each rank holds at each position while the steps of a lane are executed.
struct Passing {
    n_positions: usize,
    /// By rank, then by position.
    now: Vec<f32>,
    /// What the current step writes, by rank and position.
    coming: Vec<(usize, f32)>,
    step: usize,
}

/// Elements of the largest block: enough that the distributions give different sizes.
const LARGEST: usize = 1 << 20;

impl Volumes {
    fn new(flow: &dyn Flow, counts: Counts, seed: u64) -> Self {
        let (n, collective) = (flow.n_ranks(), flow.collective());
        let size = |from, to| counts.of(seed, n, LARGEST, from, to) as f64;
        if collective.cut() == Cut::Pairs {
            let given = |from| (0..n).map(|to| size(from, Some(to))).sum::<f64>();
            let mean = ((0..n).map(given).sum::<f64>() / f64::from(n)).max(1.0);
            let others = (0..n).map(|from| given(from) - size(from, Some(from)));
            let minimum = others.fold(0.0, f64::max) / mean;
            let passing = (0..flow.lanes().len()).map(|lane| {
                let LaneHeader { parts, ref space, .. } = flow.lanes()[lane];
                let stands = |rank: Rank| {
                    let space = flow.space(lane, rank);
                    Position::first(space.n_positions).map(move |at| {
                        let to = space.block_at_start(rank, at);
                        let size = to.map_or(0.0, |to| size(rank.0, Some(to.0)));
                        (size / mean / f64::from(parts)) as f32
                    })
                };
                let now = Rank::first(n).flat_map(stands).collect();
                let n_positions = space.n_positions as usize;
                RefCell::new(Passing { n_positions, now, coming: Vec::new(), step: 0 })
            });
            return Volumes { before: vec![], passing: passing.collect(), minimum };
        }
        let sizes: Vec<f64> = (0..n).map(|rank| size(rank, None)).collect();
        let total = sizes.iter().sum::<f64>().max(1.0);
        let before = |lane: &LaneHeader| {
            let mut sum = 0.0;
            let weigh = |position| {
                let block = lane.space.block_at_start(Rank(0), position);
                sum +=
                    block.map_or(0.0, |block| sizes[block.index()]) / total / f64::from(lane.parts);
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
            // Every block goes to, or comes from, all others, whoever passes it on.
            _ => collective.minimal_volume(n),
        };
        let before = flow.lanes().iter().map(before).collect();
        Volumes { before, passing: vec![], minimum }
    }

    fn of(&self, lane: usize, step: usize, message: &Message<'_>) -> f64 {
        let Some(before) = self.before.get(lane) else {
            return self.passing[lane].borrow_mut().pass(step, message);
        };
        let run = |run: &Run| before[run.end() as usize] - before[run.start as usize];
        message.runs.iter().map(run).sum()
    }
}

impl Passing {
    /// What a message of a step carries, all of whose messages read the state before it.
    fn pass(&mut self, step: usize, message: &Message<'_>) -> f64 {
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

fn merge(a: Verdict, b: Verdict) -> Verdict {
    let mut violations = a.violations;
    violations.extend(b.violations);
    let traffic = match (a.traffic, b.traffic) {
        (Some(a), Some(b)) => Some(a.larger(b)),
        (a, b) => a.or(b),
    };
    let minimum = a.minimum.into_iter().chain(b.minimum).reduce(f64::max);
    Verdict { traffic, minimum, violations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::progress;
    use hopbine_torus::{Request, registry};

    fn bine() -> (Schedule, Vec<Plan>) {
        let shape: Shape = "4x2".parse().unwrap();
        let request = Request { shape, map: RankMap::RowMajor, root: 0, ports: None };
        let algorithm = registry::find(Collective::Allreduce, "bine").unwrap();
        let schedule = algorithm.schedule(&request).unwrap();
        let expansion = schedule.expand().unwrap();
        let plans = Rank::first(8).map(|rank| expansion.plan(rank)).collect();
        (schedule, plans)
    }

    fn judged(schedule: &Schedule, set: Vec<Plan>, expect: Expect) -> Verdict {
        plans(set, &schedule.shape, &schedule.map, expect, &progress::bar(0, "checking"))
    }

    #[test]
    fn a_proved_schedule_has_its_volume() {
        let (schedule, set) = bine();
        let verdict =
            judged(&schedule, set, Expect { sent_per_rank: Some(14), ..Expect::default() });
        assert_eq!(verdict.violations, []);
        assert_eq!(verdict.traffic.unwrap().max_sent, 2.0 * 7.0 / 8.0);
    }

    #[test]
    fn blocks_that_pass_count_where_they_pass() {
        // From rank 1 to rank 0 of four: 6 elements; everybody else gives 2 in all.
        let list = [0, 1, 1, 0, 6, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0];
        let counts = Counts::Listed(Box::leak(Box::new(list)));
        let shape: Shape = "4".parse().unwrap();
        let request = Request { shape, map: RankMap::RowMajor, root: 0, ports: Some(1) };
        let sent = |name: &str| {
            let algorithm = registry::find(Collective::Alltoall, name).unwrap();
            let schedule = algorithm.schedule(&request).unwrap();
            let bar = progress::bar(0, "checking");
            let found =
                super::schedule(&schedule, &[0], Expect::default(), Some((counts, 1)), &bar);
            assert_eq!(found.violations, []);
            let mean = 3.0;
            assert_eq!(found.minimum, Some(6.0 / mean));
            (found.traffic.unwrap().max_sent * mean).round()
        };
        assert_eq!(sent("pairwise"), 6.0);
        assert_eq!(sent("bruck:4"), 6.0);
        // Steps of distances 1 and 2: the long block goes through rank 2, who has 2 of its own.
        assert_eq!(sent("bruck:2"), 8.0);
    }

    #[test]
    fn a_violation_keeps_its_lane() {
        let (schedule, mut set) = bine();
        // Lane 2 of rank 3 forgets to send in step 1.
        set[3].lanes[2].steps[1].sends.clear();
        let verdict = judged(&schedule, set, Expect::default());
        assert!(!verdict.violations.is_empty());
        for (_, violation) in &verdict.violations {
            assert_eq!(violation.lane, Some(2), "{violation}");
        }
    }
}
