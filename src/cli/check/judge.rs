//! One verdict: all ranks' plans through the checker and the traffic count.

use hopbine_torus::plan::{Expect, Plan, Schedule, Traffic, Violation, check, traffic};
use hopbine_torus::{RankMap, Shape};
use rayon::prelude::*;

use crate::cli::progress::Bar;

/// What was found out about one algorithm with one number of ports, for all roots asked for.
#[derive(Debug)]
pub struct Verdict {
    /// The largest figures of all roots.
    pub traffic: Traffic,
    /// What is wrong, with the root at which it shows.
    pub violations: Vec<(u32, Violation)>,
}

/// Above this number of ranks plans are judged one set after the other, with all cores on
/// one set: below, sets are too small to be divided, above, several would not fit into
/// memory together.
pub const MANY_RANKS: u32 = 256;

/// Plans and judges a schedule for each of the roots.
pub fn schedule(schedule: &Schedule, roots: &[u32], expect: Expect, bar: &Bar) -> Verdict {
    let judge = |&root: &u32| {
        let schedule = Schedule { root, ..schedule.clone() };
        let verdict = plans(expand(&schedule), &schedule.shape, &schedule.map, expect);
        bar.advance(1);
        verdict
    };
    let verdicts: Vec<Verdict> = if schedule.shape.n_nodes() > MANY_RANKS {
        roots.iter().map(judge).collect()
    } else {
        roots.par_iter().map(judge).collect()
    };
    verdicts.into_iter().reduce(merge).expect("there is at least one root")
}

/// The plans of all ranks.
fn expand(schedule: &Schedule) -> Vec<Plan> {
    let plan = |rank| schedule.plan(rank).expect("the schedule and its roots were validated");
    (0..schedule.shape.n_nodes()).into_par_iter().map(plan).collect()
}

/// Judges plans, whoever made them.
pub fn plans(plans: Vec<Plan>, shape: &Shape, map: &RankMap, expect: Expect) -> Verdict {
    let root = plans.first().map_or(0, |plan| plan.root);
    let traffic = traffic(&plans, shape, map);
    let violations = check_by_part(plans, expect);
    Verdict { traffic, violations: violations.into_iter().map(|v| (root, v)).collect() }
}

fn merge(a: Verdict, b: Verdict) -> Verdict {
    let mut violations = a.violations;
    violations.extend(b.violations);
    let (a, b) = (a.traffic, b.traffic);
    let (max_link_load, max_link) = if b.max_link_load > a.max_link_load {
        (b.max_link_load, b.max_link)
    } else {
        (a.max_link_load, a.max_link)
    };
    let traffic = Traffic {
        n_ranks: a.n_ranks,
        n_steps: a.n_steps.max(b.n_steps),
        max_sent: a.max_sent.max(b.max_sent),
        mean_sent: a.mean_sent.max(b.mean_sent),
        hop_bytes: a.hop_bytes.max(b.hop_bytes),
        max_link_load,
        max_link,
        max_messages: a.max_messages.max(b.max_messages),
        max_runs: a.max_runs.max(b.max_runs),
    };
    Verdict { traffic, violations }
}

/// The checker's state for this many ranks and positions still allows all parts at once.
const PARALLEL_SLOTS: u64 = 4096 * 4096;

/// Checks parts that have nothing to do with each other (no position in common) on several
/// cores. Plans that do not agree on their ports go to the checker as they are: it says so.
fn check_by_part(plans: Vec<Plan>, expect: Expect) -> Vec<Violation> {
    let Some(first) = plans.first() else { return Vec::new() };
    let parts: Vec<u32> = first.ports.iter().map(|port| port.part).collect();
    let mut distinct = parts.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let slots = first.ports.iter().map(|port| u64::from(port.positions)).max().unwrap_or(0)
        * plans.len() as u64;
    let agree =
        plans.iter().all(|plan| plan.ports.iter().map(|p| p.part).eq(parts.iter().copied()));
    if !agree || distinct.len() < 2 || slots > PARALLEL_SLOTS {
        return check(&plans, expect);
    }
    let mut sets: Vec<(Vec<usize>, Vec<Plan>)> = distinct
        .iter()
        .map(|&part| {
            let ports = (0..parts.len()).filter(|&port| parts[port] == part).collect();
            (ports, Vec::with_capacity(plans.len()))
        })
        .collect();
    for plan in plans {
        let Plan { collective, rank, n_ranks, root, ports } = plan;
        let mut ports: Vec<_> = ports.into_iter().map(Some).collect();
        for (indices, set) in &mut sets {
            let ports = indices.iter().filter_map(|&port| ports[port].take()).collect();
            set.push(Plan { collective, rank, n_ranks, root, ports });
        }
    }
    let found = sets.into_par_iter().flat_map_iter(|(indices, plans)| {
        let mut violations = check(&plans, expect);
        for violation in &mut violations {
            violation.port = indices[violation.port];
        }
        violations
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopbine_torus::{Collective, Request, collectives::registry};

    fn bine() -> (Schedule, Vec<Plan>) {
        let shape: Shape = "4x2".parse().unwrap();
        let request = Request { shape, map: RankMap::RowMajor, root: 0, ports: None };
        let algorithm = registry::find(Collective::Allreduce, "bine").unwrap();
        let schedule = algorithm.schedule(&request).unwrap();
        let plans = expand(&schedule);
        (schedule, plans)
    }

    #[test]
    fn a_proved_schedule_has_its_volume() {
        let (schedule, set) = bine();
        let verdict =
            plans(set, &schedule.shape, &schedule.map, Expect { sent_per_rank: Some(14) });
        assert_eq!(verdict.violations, []);
        assert_eq!(verdict.traffic.max_sent, 2.0 * 7.0 / 8.0);
    }

    #[test]
    fn a_violation_keeps_its_port() {
        let (schedule, mut set) = bine();
        // Port 2 of rank 3 forgets to send in step 1.
        set[3].ports[2].steps[1].sends.clear();
        let verdict = plans(set, &schedule.shape, &schedule.map, Expect::default());
        assert!(!verdict.violations.is_empty());
        for (_, violation) in &verdict.violations {
            assert_eq!(violation.port, 2, "{violation}");
        }
    }
}
