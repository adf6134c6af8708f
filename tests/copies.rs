//! Verifies that the network model predicts the bytes that the engine copies, for every algorithm, on the root or
//! rank 0.

use hopbine::engine::{CheckedPlan, Geometry, Sizes, compile};
use hopbine_torus::collectives::Payload;
use hopbine_torus::geometry::{RankMap, Shape, Vertex};
use hopbine_torus::plan::Flow;
use hopbine_torus::sim::{Network, NetworkKind, RoutedPlan};
use hopbine_torus::{Collective, Rank, Request, registry};

/// Bytes of a block, with short runs and with long runs.
const BLOCKS: [u64; 2] = [960, 960 << 12];

/// Bytes that a rank copies for each byte of its data: in the engine's program, and in the model. `None` if the
/// algorithm does not support the shape.
fn copied(
    collective: Collective,
    name: &str,
    text: &str,
    ports: Option<u32>,
    block: u64,
) -> Option<(f64, f64)> {
    let shape: Shape = text.parse().unwrap();
    let (map, root) = (RankMap::RowMajor, Rank(shape.n_ranks() / 2));
    let request = Request { shape: shape.clone(), map, root, ports };
    let schedule = registry::find(collective, name).unwrap().schedule(&request).ok()?;
    let flow = schedule.expand().unwrap();
    let rank = if collective.is_rooted() { root } else { Rank(0) };
    let (sizes, segment_bytes) = (Sizes::Equal(block), None);
    let geometry = Geometry { sizes, elem_bytes: 1, in_place: false, segment_bytes, staged: None };
    let program = compile(&CheckedPlan::new(flow.plan(rank)).unwrap(), &geometry).unwrap();
    let moves = program.ports.iter().flat_map(|port| port.moves.iter());
    let bytes: u64 = moves.chain(program.closing.iter()).map(|copy| copy.from.len).sum();
    let n = match collective.payload() {
        Payload::Vector => block,
        _ => block * u64::from(shape.n_ranks()),
    };
    let network = Network::new(NetworkKind::IdealTorus, &shape, 0).unwrap();
    let routed = RoutedPlan::of_one(&flow, &network, |rank| Vertex(rank.0));
    let n = n as f64;
    let of_steps = |work: &hopbine_torus::sim::LaneWork| {
        let of_step = |step: &hopbine_torus::sim::StepWork| {
            step.sent.copies(n).share + step.received.copies(n).share
        };
        work.steps.iter().map(of_step).sum::<f64>() + work.closing.copies(n).share
    };
    Some((bytes as f64 / n, routed.work().iter().map(of_steps).sum()))
}

#[test]
fn the_model_counts_what_the_engine_copies() {
    let (mut n_cases, mut n_copying, mut wrong) = (0, 0, Vec::new());
    for text in ["4", "6", "2x3", "4x4", "2x2x2", "2x2+3"] {
        for algorithm in registry::all() {
            for (ports, block) in
                [Some(1), None].into_iter().flat_map(|ports| BLOCKS.map(|block| (ports, block)))
            {
                let (collective, name) = (algorithm.collective, &algorithm.name);
                let Some((engine, model)) = copied(collective, name, text, ports, block) else {
                    continue;
                };
                n_cases += 1;
                n_copying += usize::from(engine > 0.0);
                if (engine - model).abs() > 0.01 * engine.max(0.01) {
                    wrong.push(format!(
                        "{collective} {name} on {text}, {ports:?}, {block}: {engine} {model}"
                    ));
                }
            }
        }
    }
    assert!(n_cases > 500 && n_copying > 100, "{n_cases} {n_copying}");
    assert!(wrong.is_empty(), "{} of {n_cases}:\n{}", wrong.len(), wrong.join("\n"));
}
