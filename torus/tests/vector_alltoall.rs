//! Alltoalls with blocks of any size, ParLogNa and ParLinNa: rounds, messages, volumes and buffers as in the paper
//! (Fan et al. 2025, "Parameterized Algorithms for Non-uniform All-to-all"), and their proof.

use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{Expect, Flow, Plan, check, max_ports, n_positions};
use hopbine_torus::registry;
use hopbine_torus::{Collective, Rank, Request};

fn plan(shape: &str, name: &str, rank: u32) -> Plan {
    let shape = shape.parse().unwrap();
    let request = Request { shape, map: RankMap::RowMajor, root: Rank(0), ports: Some(1) };
    let algorithm = registry::find(Collective::Alltoall, name).unwrap();
    algorithm.schedule(&request).unwrap().expand().unwrap().plan(Rank(rank))
}

/// Messages and blocks that a rank sends within its node of `per_node` ranks, and to other nodes.
fn sent(plan: &Plan, per_node: u32) -> [(u64, u64); 2] {
    let mut sums = [(0, 0); 2];
    for send in plan.lanes.iter().flat_map(|lane| &lane.steps).flat_map(|step| &step.sends) {
        let leaves = send.peer.0 / per_node != plan.rank.0 / per_node;
        let (messages, blocks) = &mut sums[usize::from(leaves)];
        *messages += 1;
        *blocks += n_positions(&send.runs);
    }
    sums
}

/// Rounds of an alltoall of p blocks by digits to the base r, and blocks sent in them: there is a round for each
/// value z of each digit x with z r^x < p (section 3.1).
fn by_digits(p: u64, r: u64) -> (u64, u64) {
    let powers = || std::iter::successors(Some(1), move |power| Some(power * r));
    let powers: Vec<u64> = powers().take_while(|&power| power < p).collect();
    let rounds = powers.iter().map(|power| (1..r).filter(|z| z * power < p).count() as u64);
    let digits =
        |o: u64| powers.iter().filter(|&power| !(o / power).is_multiple_of(r)).count() as u64;
    (rounds.sum(), (0..p).map(digits).sum())
}

#[test]
fn parlogna_has_the_papers_rounds_and_volumes() {
    for p in 2..=33u64 {
        for r in 2..=p {
            let what = format!("p = {p}, r = {r}");
            let (rounds, blocks) = by_digits(p, r);
            let plan = plan(&p.to_string(), &format!("bruck:{r}"), (p / 2) as u32);
            let [_, sent] = sent(&plan, 1);
            assert_eq!(sent, (rounds, blocks), "{what}");
            // The paper's bounds: K <= w (r - 1), D <= w (r - 1) r^(w - 1).
            let w = (0..).take_while(|&w| r.pow(w) < p).count() as u64;
            assert!(rounds <= w * (r - 1), "{what}");
            assert!(blocks <= w * (r - 1) * r.pow(w as u32 - 1), "{what}");
            assert_eq!(plan.n_steps() as u64, w, "{what}");
            if r == p {
                assert_eq!(sent, (p - 1, p - 1), "{what}");
            }
        }
    }
}

#[test]
fn parlinna_has_the_papers_rounds_and_volumes() {
    // Shape, nodes, ranks per node.
    for (shape, n, q) in [("4+3", 4, 3), ("3+8", 3, 8), ("2x3+5", 6, 5), ("7+1", 7, 1)] {
        for r in [2, 3, 8] {
            for (name, messages) in [("parlinna", n - 1), ("parlinna-staggered", q * (n - 1))] {
                for batch in ["", "-batched:3", "-nonblocking"] {
                    let name = format!("{name}:{r}{batch}");
                    let plan = plan(shape, &name, 1);
                    let (rounds, blocks) = by_digits(q, r);
                    let [inside, between] = sent(&plan, q as u32);
                    let what = format!("{name} on {shape}");
                    // Every block within its node is sent together with the blocks for the other nodes.
                    assert_eq!(inside, (rounds, blocks * n), "{what}");
                    assert_eq!(between, (messages, q * (n - 1)), "{what}");
                    let widest = plan.lanes[0].steps.iter().map(|step| step.sends.len()).max();
                    if batch == "-batched:3" {
                        assert!((widest.unwrap() as u64) < r.max(4), "{what}");
                    }
                }
            }
        }
    }
}

/// Sizes are sent in no more messages than there are ranks to inform: one for each between nodes. Every position
/// receives sizes as often as it will receive data.
#[test]
fn sizes_travel_in_few_messages() {
    for (name, n, q) in [
        ("parlinna-staggered:2", 5, 4),
        ("parlinna-staggered:2-batched:2", 3, 8),
        ("parlinna-batched:1", 6, 3),
        ("node-aware", 4, 3),
        ("multi-leader:2-batched:1", 3, 4),
    ] {
        let shape: Shape = format!("{n}+{q}").parse().unwrap();
        let data = registry::find(Collective::Alltoall, name).unwrap();
        for rank in [0, 1, n * q - 1] {
            let [data, sizes] = [data.clone(), data.for_sizes()].map(|algorithm| {
                let (shape, map) = (shape.clone(), RankMap::RowMajor);
                let request = Request { shape, map, root: Rank(0), ports: Some(1) };
                algorithm.schedule(&request).unwrap().expand().unwrap().plan(Rank(rank))
            });
            let arrivals = |plan: &Plan| {
                let steps = plan.lanes.iter().flat_map(|lane| &lane.steps);
                let runs = steps.flat_map(|step| &step.recvs).flat_map(|recv| &recv.runs);
                let mut all: Vec<u32> = runs.flat_map(|run| run.start..run.end()).collect();
                all.sort_unstable();
                all
            };
            assert_eq!(arrivals(&data), arrivals(&sizes), "{name}");
            let [_, (messages, _)] = sent(&sizes, q);
            if name.starts_with("parlinna") {
                assert_eq!(messages, u64::from(n - 1), "{name}");
            }
            assert_eq!(sizes.lanes[0].window, None, "{name}");
        }
    }
}

#[test]
fn parlinna_is_proved() {
    for text in ["1", "5", "4+3", "1+6", "3x2+2", "2x2x2+4", "3m+2", "5x3"] {
        let shape: Shape = text.parse().unwrap();
        let names = ["parlinna", "parlinna-staggered:2-batched:2", "parlinna:3-nonblocking"];
        for (name, ports) in
            names.iter().flat_map(|name| (1..=max_ports(&shape)).map(move |ports| (name, ports)))
        {
            let (shape, map) = (shape.clone(), RankMap::ColumnMajor);
            let request = Request { shape, map, root: Rank(0), ports: Some(ports) };
            let algorithm = registry::find(Collective::Alltoall, name).unwrap();
            let schedule = algorithm.schedule(&request).unwrap();
            let violations = check(&schedule.expand().unwrap(), Expect::default());
            assert!(violations.is_empty(), "{name} on {text}, {ports} ports: {}", violations[0]);
            let again = schedule.to_string().parse();
            assert_eq!(again.as_ref(), Ok(&schedule));
        }
    }
}

#[test]
fn names_that_make_no_sense() {
    for name in
        ["parlinna:1", "parlinna:x", "parlinna-batched:0", "parlinna-batched", "bruck:1", "bruck:"]
    {
        assert!(registry::find(Collective::Alltoall, name).is_err(), "{name}");
    }
}
