//! The proof for the whole registry: every algorithm on every shape that it claims, with
//! first, middle and last roots and every number of ports.

use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{Expect, Flow, Listed, Plan, check, max_ports};
use hopbine_torus::registry;
use hopbine_torus::{Collective, Rank, Request};

const SHAPES: [&str; 33] = [
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "12",
    "16",
    "23",
    "24",
    "31",
    "32",
    "2x2",
    "2x3",
    "3x3",
    "4x4",
    "2x6",
    "4x6",
    "5x7",
    "8x4",
    "1x6",
    "6x1",
    "2x2x2",
    "2x3x2",
    "4x4x4",
    "3x3x3",
    "5x3x2",
    "4x6x4",
    "2x1x4",
    "6x9x4",
    "2x3x2x2x3x2",
    "4x6mx3",
];

fn check_collective(collective: Collective) {
    let mut n_checked = 0;
    for text in SHAPES {
        let shape: Shape = text.parse().unwrap();
        let last = shape.n_nodes() - 1;
        let mut roots = vec![0];
        if collective.is_rooted() {
            roots.extend([last / 2, last]);
            roots.dedup();
        }
        let mut served = Vec::new();
        for algorithm in registry::algorithms(collective) {
            if algorithm.serves(&shape).is_err() {
                continue;
            }
            served.push(algorithm.name.clone());
            for &root in &roots {
                for ports in 1..=max_ports(&shape) {
                    let request = Request {
                        shape: shape.clone(),
                        map: RankMap::RowMajor,
                        root,
                        ports: Some(ports),
                    };
                    let schedule = algorithm.schedule(&request).unwrap();
                    let expansion = schedule.expand().unwrap();
                    let expect = Expect { sent_per_rank: algorithm.promised_volume(&shape) };
                    let mut violations = check(&expansion, expect);
                    let plans: Vec<Plan> =
                        Rank::first(last + 1).map(|rank| expansion.plan(rank)).collect();
                    violations.extend(check(&Listed::new(plans).unwrap(), expect));
                    assert!(
                        violations.is_empty(),
                        "{collective} {} on {text}, root {root}, {ports} ports: {} violations, \
                         first: {}",
                        algorithm.name,
                        violations.len(),
                        violations[0]
                    );
                    n_checked += 1;
                }
            }
        }
        assert!(served.iter().any(|name| name == "mixed"), "mixed serves {text}: {served:?}");
    }
    println!("{collective}: {n_checked} schedules proved");
}

macro_rules! matrix {
    ($($name:ident: $collective:ident,)*) => {
        $(#[test]
        fn $name() {
            check_collective(Collective::$collective);
        })*
    };
}

matrix! {
    allreduce: Allreduce,
    reduce_scatter: ReduceScatter,
    allgather: Allgather,
    bcast: Bcast,
    reduce: Reduce,
    gather: Gather,
    scatter: Scatter,
    alltoall: Alltoall,
    barrier: Barrier,
}
