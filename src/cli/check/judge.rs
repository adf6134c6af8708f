//! One verdict: a schedule, or all ranks' plans, through the checker and the traffic count.

use hopbine_torus::plan::{
    Checker, Expect, Fault, Flow, Listed, Mixed, Plan, Schedule, Traffic, Violation, traffic,
};
use hopbine_torus::{RankMap, Shape};
use rayon::prelude::*;

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
pub fn schedule(schedule: &Schedule, roots: &[u32], expect: Expect, bar: &Bar) -> Verdict {
    let judge = |&root: &u32| {
        let schedule = Schedule { root, ..schedule.clone() };
        let expansion = schedule.expand().expect("the schedule and its roots were validated");
        flow(&expansion, &schedule.shape, &schedule.map, expect, bar)
    };
    let verdicts: Vec<Verdict> = roots.par_iter().map(judge).collect();
    verdicts.into_iter().reduce(merge).expect("there is at least one root")
}

/// Judges plans, whoever made them.
pub fn plans(plans: Vec<Plan>, shape: &Shape, map: &RankMap, expect: Expect, bar: &Bar) -> Verdict {
    match Listed::new(plans) {
        Ok(listed) => flow(&listed, shape, map, expect, bar),
        Err(Mixed { rank, what }) => {
            let fault = Fault::Inconsistent { what };
            let violation = Violation { rank, lane: None, step: None, position: None, fault };
            Verdict { traffic: None, violations: vec![(0, violation)] }
        }
    }
}

/// The proof's units of work go to all cores; the traffic count is one more.
fn flow(flow: &dyn Flow, shape: &Shape, map: &RankMap, expect: Expect, bar: &Bar) -> Verdict {
    let checker = Checker::new(flow, expect);
    bar.expect(checker.n_units() as u64 + 1);
    let work = |unit: usize| {
        let found = checker.run(unit);
        bar.advance(1);
        found
    };
    let count = || {
        let traffic = traffic(flow, shape, |rank| map.node_of(shape, rank.0));
        bar.advance(1);
        traffic
    };
    let prove = || (0..checker.n_units()).into_par_iter().map(work).collect::<Vec<_>>();
    let (findings, traffic) = rayon::join(prove, count);
    let root = flow.root().0;
    let violations = checker.conclude(findings).into_iter().map(|found| (root, found)).collect();
    Verdict { traffic: Some(traffic), violations }
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
    use hopbine_torus::{Collective, Rank, Request, registry};

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
