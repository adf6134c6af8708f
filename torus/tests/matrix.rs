//! The proof for the whole registry: every algorithm on every shape that it serves, with first, middle and last
//! roots and every number of ports. On large shapes proofs take long, so these tests prove some of the cases; the
//! ignored test, which ci/nightly.sh runs, proves all.

use hopbine_torus::geometry::{RankMap, Shape, Vertex};
use hopbine_torus::plan::{
    Expansion, Flow, Listed, Step, check, for_each_message, max_ports, n_positions, traffic,
};
use hopbine_torus::{Algorithm, Collective, PortId, Rank, Request, registry};

use crate::common::{NODE_SHAPES, SHAPES};

/// Three rank maps: column-major, random, and a snake embedded in the shape.
fn maps(shape: &Shape) -> [RankMap; 3] {
    let mut nodes: Vec<Vertex> = shape.vertices().collect();
    nodes.sort_by_key(|node| (u64::from(node.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let random = RankMap::from_vertices(shape, nodes).unwrap();
    let last = shape.n_dims() - 1;
    let snake = shape.vertices().map(|node| {
        let at = shape.coord(node);
        let row: u32 = (0..last).map(|dim| at[dim]).sum();
        let turned = if row.is_multiple_of(2) { at[last] } else { shape.size(last) - 1 - at[last] };
        shape.vertex(at.with(last, turned))
    });
    let snake = RankMap::from_vertices(shape, snake.collect()).unwrap();
    [RankMap::ColumnMajor, random, snake]
}

/// A shape with more ranks than this is large.
const LARGE: u32 = 16;

/// The cases to prove for a shape: rank map, root and number of ports. For a large shape, unless `all`: the middle
/// root with the most ports, and with one port and a further rank map.
fn cases(shape: &Shape, is_rooted: bool, all: bool) -> Vec<(RankMap, u32, u32)> {
    let (last, most) = (shape.n_ranks() - 1, max_ports(shape));
    let mut roots = vec![0];
    if is_rooted {
        roots.extend([last / 2, last]);
        roots.dedup();
    }
    let middle = if roots.len() > 1 { last / 2 } else { 0 };
    let [column_major, random, snake] = maps(shape);
    if shape.n_ranks() > LARGE && !all {
        return vec![(RankMap::RowMajor, middle, most), (random, middle, 1)];
    }
    let mut cases = Vec::new();
    for &root in &roots {
        cases.extend((1..=most).map(|ports| (RankMap::RowMajor, root, ports)));
    }
    cases.extend([column_major, random, snake].map(|map| (map, middle, most)));
    cases
}

fn check_collective(collective: Collective) {
    prove(collective, false);
}

#[test]
#[ignore = "takes minutes: cargo test -p hopbine-torus --test torus -- --ignored matrix"]
fn everything_on_large_shapes() {
    for collective in Collective::ALL {
        prove(collective, true);
    }
}

fn prove(collective: Collective, all: bool) {
    let mut n_checked = 0;
    for text in SHAPES.iter().chain(&NODE_SHAPES) {
        let shape: Shape = text.parse().unwrap();
        let last = shape.n_ranks() - 1;
        let most = max_ports(&shape);
        let cases = cases(&shape, collective.is_rooted(), all);
        let mut served = Vec::new();
        for algorithm in registry::algorithms(collective) {
            if algorithm.serves(&shape).is_err() {
                continue;
            }
            served.push(algorithm.name.clone());
            for (map, root, ports) in cases.iter().cloned() {
                let request =
                    Request { shape: shape.clone(), map, root: Rank(root), ports: Some(ports) };
                let schedule = algorithm.schedule(&request).unwrap();
                let expansion = schedule.expand().unwrap();
                let expect = algorithm.promises(&shape);
                let mut violations = check(&expansion, expect);
                // The listed plans alone, without the flow from which they are listed.
                if ports == most && last <= 64 {
                    let plans = Rank::first(last + 1).map(|rank| expansion.plan(rank));
                    violations.extend(check(&Listed::new(plans.collect()).unwrap(), expect));
                }
                assert!(
                    violations.is_empty(),
                    "{collective} {} on {text}, {:?}, root {root}, {ports} ports: {} violations, \
                     first: {}",
                    algorithm.name,
                    request.map,
                    violations.len(),
                    violations[0]
                );
                n_checked += 1;
            }
        }
        // The default algorithm serves every shape.
        let first = &registry::algorithms(collective)[0].name;
        assert!(served.contains(first), "{first} serves {text}: {served:?}");
    }
    println!("{collective}: {n_checked} schedules proved");
}

/// With several ranks per node the nodes exchange the minimum: each node's part of the reduction, or of the blocks,
/// once (Bine, section 6.2).
#[test]
fn nodes_exchange_no_more_than_they_must() {
    for text in NODE_SHAPES {
        let shape: Shape = text.parse().unwrap();
        let per_node = shape.ranks_per_node();
        let n_nodes = f64::from(shape.n_ranks() / per_node);
        let share = (n_nodes - 1.0) / n_nodes;
        for (collective, least) in [
            (Collective::Allreduce, 2.0 * share),
            (Collective::ReduceScatter, share),
            (Collective::Allgather, share),
        ] {
            for algorithm in registry::algorithms(collective) {
                if algorithm.promises(&shape).sent_per_rank.is_none()
                    || algorithm.serves(&shape).is_err()
                {
                    continue;
                }
                let map = RankMap::RowMajor;
                let request = Request { shape: shape.clone(), map, root: Rank(0), ports: None };
                let expansion = algorithm.schedule(&request).unwrap().expand().unwrap();
                let mut sent = vec![0.0; n_nodes as usize];
                for_each_message(&expansion, |lane, _, message| {
                    let (from, to) = (message.from.0 / per_node, message.to.0 / per_node);
                    if from != to {
                        let share = expansion.lanes()[lane.index()].position_share();
                        sent[from as usize] += n_positions(message.runs) as f64 * share;
                    }
                });
                let most = sent.iter().copied().fold(0.0, f64::max);
                assert!(most < least + 1e-9, "{collective} {} on {text}: {most}", algorithm.name);
            }
        }
    }
}

/// No port of a rank sends or receives more than one part; each part is on one lane.
fn ports_send_each_part_once(expansion: &Expansion, which: &str) {
    for rank in Rank::first(expansion.n_ranks()) {
        let plan = expansion.plan(rank);
        for port in PortId::first(plan.n_ports() as u16) {
            for is_sent in [true, false] {
                let of_step = |step: &Step| {
                    let transfers = if is_sent { &step.sends } else { &step.recvs };
                    transfers.iter().filter(|transfer| transfer.port == port).count()
                };
                let steps = plan.lanes.iter().flat_map(|lane| &lane.steps);
                let n: usize = steps.map(of_step).sum();
                assert!(n <= 1, "{which}: rank {rank}, port {port}: {n} messages");
            }
        }
    }
}

/// Edge-disjoint trees and cycles: each link of the torus carries at most one part, in one direction; in cycles no
/// rank sends a part more than once.
#[test]
fn trees_share_no_link() {
    for text in ["3", "2x3", "4x4", "5x3x2", "4x6x4", "3x3x3", "4x6mx3", "4x4+2"] {
        let shape: Shape = text.parse().unwrap();
        for collective in [Collective::Bcast, Collective::Reduce] {
            let request = Request {
                shape: shape.clone(),
                map: RankMap::RowMajor,
                root: Rank(1),
                ports: None,
            };
            for name in ["trees", "cycles"] {
                let trees = registry::find(collective, name).unwrap();
                let Ok(schedule) = trees.schedule(&request) else {
                    assert!(
                        name == "cycles" && ["3", "4x6mx3"].contains(&text),
                        "{name} on {text}"
                    );
                    continue;
                };
                let expansion = schedule.expand().unwrap();
                let traffic = traffic(&expansion, &shape, |rank| Vertex(rank.0));
                let part = expansion.lanes()[0].part.share();
                let which = format!("{collective}, {name} on {text}: {traffic:?}");
                assert!(traffic.max_link_load < part + 1e-9, "{which}");
                // A port uses one direction, but both directions along a mesh.
                if !text.contains(['m', '+']) {
                    ports_send_each_part_once(&expansion, &which);
                }
                // With several ranks per node, one rank forwards to the others of its node.
                if name == "cycles" && shape.ranks_per_node() == 1 {
                    assert!(traffic.max_sent < 1.0 + 1e-9, "{which}");
                }
            }
        }
    }
}

/// No two rows of the registry serve the same shapes with the same plans.
#[test]
fn no_row_is_a_copy() {
    let shapes =
        ["4", "5", "8", "12", "16", "2x4", "3x5", "4x4", "2x3x4", "8x4", "3+4", "2x3+8", "8+2"];
    let plans = |algorithm: &Algorithm, text: &str| {
        let shape: Shape = text.parse().unwrap();
        let root = if algorithm.collective.is_rooted() { shape.n_ranks() / 2 } else { 0 };
        let request = Request { shape, map: RankMap::RowMajor, root: Rank(root), ports: Some(2) };
        let expansion = algorithm.schedule(&request).ok()?.expand().ok()?;
        Some(Rank::first(expansion.n_ranks()).map(|rank| expansion.plan(rank)).collect::<Vec<_>>())
    };
    for collective in Collective::ALL {
        let rows = registry::algorithms(collective);
        let of_row = |row: &Algorithm| shapes.map(|text| plans(row, text));
        let all: Vec<_> = rows.iter().map(of_row).collect();
        for (index, a) in all.iter().enumerate() {
            for (other, b) in all.iter().enumerate().skip(index + 1) {
                let is_copy = a == b;
                let names = (&rows[index].name, &rows[other].name);
                assert!(!is_copy, "{collective}: {names:?} are the same");
            }
        }
    }
}

crate::for_every_collective!(check_collective);
