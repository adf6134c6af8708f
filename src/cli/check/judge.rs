//! One verdict: a schedule, or all ranks' plans, through the checker and the traffic count.

use hopbine_torus::collectives::Cut;
use hopbine_torus::plan::{
    Checker, Expect, Fault, Flow, LaneHeader, Listed, Message, Mixed, Plan, Run, Schedule, Traffic,
    Violation, traffic, weighed,
};
use hopbine_torus::{Position, Rank, RankMap, Shape};
use rayon::prelude::*;

use crate::cli::counts::Counts;
use crate::cli::progress::Bar;

/// What was found out about one algorithm with one number of ports, for all roots asked for.
#[derive(Debug)]
pub struct Verdict {
    /// The largest figures of all roots; `None` if the plans do not belong together.
    pub traffic: Option<Traffic>,
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

/// Judges plans, whoever made them.
pub fn plans(plans: Vec<Plan>, shape: &Shape, map: &RankMap, expect: Expect, bar: &Bar) -> Verdict {
    match Listed::new(plans) {
        Ok(listed) => flow(&listed, shape, map, expect, None, bar),
        Err(Mixed { rank, what }) => {
            let fault = Fault::Inconsistent { what };
            let violation = Violation { rank, lane: None, step: None, position: None, fault };
            Verdict { traffic: None, violations: vec![(0, violation)] }
        }
    }
}

/// The proof's units of work go to all cores; the traffic count is one more.
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
        let traffic = match counts {
            None => traffic(flow, shape, place),
            Some((counts, seed)) => {
                let volumes = Volumes::new(flow, counts, seed);
                weighed(flow, shape, place, |lane, message| volumes.of(flow, lane, message))
            }
        };
        bar.advance(1);
        traffic
    };
    let prove = || (0..checker.n_units()).into_par_iter().map(work).collect::<Vec<_>>();
    let (findings, traffic) = rayon::join(prove, count);
    let root = flow.root().0;
    let violations = checker.conclude(findings).into_iter().map(|found| (root, found)).collect();
    Verdict { traffic: Some(traffic), violations }
}

/// What positions of different sizes weigh, as multiples of n: the bytes of all blocks, or the
/// mean of what ranks send in an alltoall in which blocks go straight to their owners.
struct Volumes {
    /// By lane, what the positions before each one weigh; empty for pairs.
    before: Vec<Vec<f64>>,
    /// By sender and receiver, for pairs.
    pairs: Vec<f64>,
}

/// Elements of the largest block: enough for all shades.
const LARGEST: usize = 1 << 20;

impl Volumes {
    fn new(flow: &dyn Flow, counts: Counts, seed: u64) -> Self {
        let n = flow.n_ranks();
        let size = |from, to| counts.of(seed, n, LARGEST, from, to) as f64;
        let is_pairs = flow.collective().cut() == Cut::Pairs;
        if is_pairs {
            let all = || (0..n).flat_map(move |from| (0..n).map(move |to| (from, to)));
            let sizes: Vec<f64> = all().map(|(from, to)| size(from, Some(to))).collect();
            let mean = sizes.iter().sum::<f64>() / f64::from(n);
            let pairs = sizes.into_iter().map(|size| size / mean.max(1.0)).collect();
            return Volumes { before: vec![], pairs };
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
        Volumes { before: flow.lanes().iter().map(before).collect(), pairs: vec![] }
    }

    fn of(&self, flow: &dyn Flow, lane: usize, message: &Message<'_>) -> f64 {
        let run = |run: &Run| match self.before.get(lane) {
            Some(before) => before[run.end() as usize] - before[run.start as usize],
            // Straight to the owner: the blocks of this pair, however many lanes there are.
            None => {
                let pair = message.from.0 * flow.n_ranks() + message.to.0;
                f64::from(run.len) * self.pairs[pair as usize]
            }
        };
        message.runs.iter().map(run).sum()
    }
}

fn merge(a: Verdict, b: Verdict) -> Verdict {
    let mut violations = a.violations;
    violations.extend(b.violations);
    let traffic = match (a.traffic, b.traffic) {
        (Some(a), Some(b)) => Some(a.larger(b)),
        (a, b) => a.or(b),
    };
    Verdict { traffic, violations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::progress;
    use hopbine_torus::{Collective, Request, registry};

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
        let verdict = judged(&schedule, set, Expect { sent_per_rank: Some(14) });
        assert_eq!(verdict.violations, []);
        assert_eq!(verdict.traffic.unwrap().max_sent, 2.0 * 7.0 / 8.0);
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
