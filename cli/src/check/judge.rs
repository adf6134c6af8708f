//! Runs the checker and counts the traffic of a schedule, or of all ranks' plans.

use hopbine_torus::bounds::{LeastTraffic, Links};
use hopbine_torus::collectives::Payload;
use hopbine_torus::plan::{
    Checker, Expect, Flow, InconsistentPlans, Listed, Plan, PlanFault, Schedule, Traffic,
    Violation, traffic,
};
use hopbine_torus::{Rank, RankMap, Shape};
use rayon::prelude::*;

use crate::counts::CountsArg;
use crate::progress::Bar;
use crate::volumes::Volumes;

/// Elements of the largest block: enough for the distributions to give different sizes.
const LARGEST: usize = 1 << 20;

/// The result for one algorithm with one number of ports, over all requested roots.
#[derive(Debug)]
pub struct AlgorithmVerdict {
    /// The maximum of each figure over all roots; `None` if the plans are inconsistent.
    pub traffic: Option<Traffic>,
    /// Lower bound, for any algorithm, of the bytes that the busiest rank sends, as a multiple of n.
    pub minimum: Option<f64>,
    /// Lower bound of the load of the most loaded link for equal blocks, as a multiple of n.
    pub least_load: Option<f64>,
    /// The violations, each with the root of its plans.
    pub violations: Vec<(Rank, Violation)>,
}

/// Checks a schedule for each of the roots.
pub fn schedule(
    schedule: &Schedule,
    roots: &[Rank],
    expect: Expect,
    counts: Option<(CountsArg, u64)>,
    bar: &Bar,
) -> AlgorithmVerdict {
    let judge = |&root: &Rank| {
        let schedule = Schedule { root, ..schedule.clone() };
        let expansion = schedule.expand().expect("the schedule and its roots were validated");
        flow(&expansion, &schedule.shape, &schedule.map, expect, counts, bar)
    };
    let verdicts: Vec<AlgorithmVerdict> = roots.par_iter().map(judge).collect();
    verdicts.into_iter().reduce(merge).expect("there is at least one root")
}

/// Checks plans from any source.
pub fn plans(
    plans: Vec<Plan>,
    shape: &Shape,
    map: &RankMap,
    expect: Expect,
    bar: &Bar,
) -> AlgorithmVerdict {
    match Listed::new(plans) {
        Ok(listed) => flow(&listed, shape, map, expect, None, bar),
        Err(InconsistentPlans { rank, what, .. }) => {
            let fault = PlanFault::Inconsistent { what };
            let violation = Violation { rank, lane: None, step: None, position: None, fault };
            AlgorithmVerdict {
                traffic: None,
                minimum: None,
                least_load: None,
                violations: vec![(Rank(0), violation)],
            }
        }
    }
}

/// Checks a flow. The cores share the checker's units of work; the traffic count is one more unit.
fn flow(
    flow: &dyn Flow,
    shape: &Shape,
    map: &RankMap,
    expect: Expect,
    counts: Option<(CountsArg, u64)>,
    bar: &Bar,
) -> AlgorithmVerdict {
    let checker = Checker::new(flow, expect);
    bar.expect(checker.n_units() as u64 + 1);
    let work = |unit: usize| {
        let found = checker.run(unit);
        bar.advance(1);
        found
    };
    let count = || {
        let place = |rank: Rank| map.vertex_of(shape, rank);
        let found = match counts {
            None => {
                let minimum = flow.collective().minimal_volume(flow.n_ranks());
                (traffic(flow, shape, place), minimum)
            }
            Some((counts, seed)) => {
                let (n, is_pairs) = (flow.n_ranks(), flow.collective().payload() == Payload::Pairs);
                let size =
                    |from, to: u32| counts.of(seed, n, LARGEST, from, is_pairs.then_some(to));
                let volumes = Volumes::new(flow, size);
                (volumes.traffic(flow, shape, place), volumes.minimum)
            }
        };
        bar.advance(1);
        found
    };
    let prove = || (0..checker.n_units()).into_par_iter().map(work).collect::<Vec<_>>();
    let (findings, (traffic, minimum)) = rayon::join(prove, count);
    let root = flow.root();
    let violations = checker.conclude(findings).into_iter().map(|found| (root, found)).collect();
    let least = LeastTraffic::new(flow.collective(), &Links::of(shape)).link().1;
    let least_load = counts.is_none().then_some(least);
    AlgorithmVerdict { traffic: Some(traffic), minimum: Some(minimum), least_load, violations }
}

fn merge(a: AlgorithmVerdict, b: AlgorithmVerdict) -> AlgorithmVerdict {
    let mut violations = a.violations;
    violations.extend(b.violations);
    let traffic = match (a.traffic, b.traffic) {
        (Some(a), Some(b)) => Some(a.larger(b)),
        (a, b) => a.or(b),
    };
    let minimum = a.minimum.into_iter().chain(b.minimum).reduce(f64::max);
    let least_load = a.least_load.or(b.least_load);
    AlgorithmVerdict { traffic, minimum, least_load, violations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress;
    use hopbine_torus::{Collective, Request, registry};

    fn bine() -> (Schedule, Vec<Plan>) {
        let shape: Shape = "4x2".parse().unwrap();
        let request = Request { shape, map: RankMap::RowMajor, root: Rank(0), ports: None };
        let algorithm = registry::find(Collective::Allreduce, "bine").unwrap();
        let schedule = algorithm.schedule(&request).unwrap();
        let expansion = schedule.expand().unwrap();
        let plans = Rank::first(8).map(|rank| expansion.plan(rank)).collect();
        (schedule, plans)
    }

    fn judged(schedule: &Schedule, set: Vec<Plan>, expect: Expect) -> AlgorithmVerdict {
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
        // Rank 1 sends 6 elements to rank 0; every other rank sends 2 in total.
        let list = [0, 1, 1, 0, 6, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0];
        let counts = CountsArg::Listed(Box::leak(Box::new(list)));
        let shape: Shape = "4".parse().unwrap();
        let request = Request { shape, map: RankMap::RowMajor, root: Rank(0), ports: Some(1) };
        let sent = |name: &str| {
            let algorithm = registry::find(Collective::Alltoall, name).unwrap();
            let schedule = algorithm.schedule(&request).unwrap();
            let bar = progress::bar(0, "checking");
            let found =
                super::schedule(&schedule, &[Rank(0)], Expect::default(), Some((counts, 1)), &bar);
            assert_eq!(found.violations, []);
            let mean = 3.0;
            assert_eq!(found.minimum, Some(6.0 / mean));
            (found.traffic.unwrap().max_sent * mean).round()
        };
        assert_eq!(sent("pairwise"), 6.0);
        assert_eq!(sent("bruck:4"), 6.0);
        // Distances 1 and 2: the long block passes through rank 2, which sends 2 elements of its own.
        assert_eq!(sent("bruck:2"), 8.0);
    }

    #[test]
    fn a_violation_keeps_its_lane() {
        let (schedule, mut set) = bine();
        // Lane 2 of rank 3 does not send in step 1.
        set[3].lanes[2].steps[1].sends.clear();
        let verdict = judged(&schedule, set, Expect::default());
        assert!(!verdict.violations.is_empty());
        for (_, violation) in &verdict.violations {
            assert_eq!(violation.lane, Some(hopbine_torus::LaneId(2)), "{violation}");
        }
    }
}
