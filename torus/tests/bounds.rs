//! Lower bounds never exceed what is counted or predicted, and are attained in known cases.

use hopbine_torus::bounds::{BoundKind, Bounds, LeastTraffic, Limits, Links};
use hopbine_torus::geometry::{RankMap, Shape, Vertex};
use hopbine_torus::plan::{Schedule, max_ports, traffic};
use hopbine_torus::registry;
use hopbine_torus::sim::{CallForm, Machine, Network, Profile, RoutedPlan};
use hopbine_torus::{Collective, Rank, Request};

use crate::common::{NODE_SHAPES, SHAPES};

/// On more ranks than this, the model does not simulate each rank: in each test run, and in the ignored test.
const MOST_FOLLOWED: [u32; 2] = [16, 64];

/// On more ranks than this, only one of the machines is used, in turn.
const FEW: u32 = 12;
const MACHINES: [&str; 3] = ["ideal-torus", "tofu-d", "hx2mesh"];

fn schedules(
    collective: Collective,
    shape: &Shape,
) -> impl Iterator<Item = (String, Schedule)> + '_ {
    let most = max_ports(shape);
    let ports = if most > 1 { vec![1, most] } else { vec![1] };
    registry::algorithms(collective).into_iter().flat_map(move |algorithm| {
        let request = |&ports: &u32| Request {
            shape: shape.clone(),
            map: RankMap::RowMajor,
            root: Rank(shape.n_ranks() / 2),
            ports: Some(ports),
        };
        let root = |request: Request| match collective.is_rooted() {
            true => request,
            false => Request { root: Rank(0), ..request },
        };
        let scheduled = |ports: &u32| algorithm.schedule(&root(request(ports))).ok();
        let found: Vec<Schedule> = ports.iter().filter_map(scheduled).collect();
        let name = algorithm.name.to_string();
        found.into_iter().map(move |schedule| (name.clone(), schedule))
    })
}

/// Predicted time of a call of hopbine, ns, for each size.
fn predicted(schedule: &Schedule, network: &Network, machine: &Machine, bytes: &[f64]) -> Vec<f64> {
    let flow = schedule.expand().unwrap();
    let place = |rank: Rank| schedule.map.vertex_of(&schedule.shape, rank);
    let routed = RoutedPlan::of_all(&flow, network, place).unwrap();
    let profile =
        Profile::Hopbine { segment_bytes: Profile::SEGMENT_BYTES, call: CallForm::Repeated };
    let play = |&n: &f64| profile.play(schedule, &flow, &routed, machine, n, false).unwrap().ns;
    bytes.iter().map(play).collect()
}

fn never_below(collective: Collective) {
    never_below_up_to(MOST_FOLLOWED[0], collective);
}

#[test]
#[ignore = "takes long: cargo test -p hopbine-torus --test torus -- --ignored"]
fn never_below_on_more_ranks() {
    for collective in Collective::ALL {
        never_below_up_to(MOST_FOLLOWED[1], collective);
    }
}

fn never_below_up_to(most_followed: u32, collective: Collective) {
    let (mut n_counted, mut n_played, mut decided) = (0, 0, [0; 4]);
    for (number, text) in SHAPES.iter().chain(&NODE_SHAPES).enumerate() {
        let shape: Shape = text.parse().unwrap();
        let turn = (number + collective as usize) % MACHINES.len();
        let machines = if shape.n_ranks() > FEW { &MACHINES[turn..=turn] } else { &MACHINES[..] };
        let least = LeastTraffic::new(collective, &Links::of(&shape));
        for (name, schedule) in schedules(collective, &shape) {
            let which = format!("{collective} {name} on {text}, {} ports", schedule.ports);
            let flow = schedule.expand().unwrap();
            let found = traffic(&flow, &shape, |rank| Vertex(rank.0));
            if collective != Collective::Barrier {
                assert!(found.max_sent > least.sent - 1e-9, "{which}: {found:?}, {least:?}");
                let link = least.link().1;
                assert!(found.max_link_load > link - 1e-9, "{which}: {found:?}, {least:?}");
                n_counted += 1;
            }
            if shape.n_ranks() > most_followed {
                continue;
            }
            for &machine in machines {
                let machine = Machine::built_in(machine).unwrap();
                let Ok(network) = Network::new(machine.network, &shape, 0) else { continue };
                let bounds = Bounds::new(collective, schedule.ports, &machine.limits(&network));
                let bytes = [8.0, 65_536.0, 16_777_216.0];
                for (n, ns) in
                    bytes.into_iter().zip(predicted(&schedule, &network, &machine, &bytes))
                {
                    for kind in BoundKind::ALL {
                        let bound = bounds.of(kind, n);
                        assert!(
                            ns > bound - 1e-6,
                            "{which}, {} of {n} B: {ns} ns, {} {bound}",
                            machine.name,
                            kind.name()
                        );
                    }
                    decided[bounds.call(n).0 as usize] += 1;
                    n_played += 1;
                }
            }
        }
    }
    println!("{collective}: {n_counted} counted, {n_played} played, decided by {decided:?}");
    assert!(n_played > 400 && decided[BoundKind::Latency as usize] > 0);
    assert!(decided[BoundKind::Bandwidth as usize] > 0 || collective == Collective::Barrier);
}

crate::for_every_collective!(never_below);

/// Where a further link costs more than a message to a neighbour, data may go from neighbour to neighbour.
#[test]
fn never_below_where_a_further_link_costs_more_than_a_message() {
    let ideal = Machine::built_in("ideal-torus").unwrap();
    let machine = Machine { latency_ns: ideal.hop_ns / 4.0, ..ideal };
    for text in ["9", "6x5"] {
        let shape: Shape = text.parse().unwrap();
        let network = Network::new(machine.network, &shape, 0).unwrap();
        for collective in Collective::ALL {
            for (name, schedule) in schedules(collective, &shape) {
                let bounds = Bounds::new(collective, schedule.ports, &machine.limits(&network));
                let ns = predicted(&schedule, &network, &machine, &[8.0])[0];
                let (kind, bound) = bounds.call(8.0);
                let kind = kind.name();
                assert!(ns > bound - 1e-6, "{collective} {name} on {text}: {ns}, {kind} {bound}");
            }
        }
    }
}

/// On N ranks an exscan needs N - 2 combinations: the first two ranks combine nothing.
#[test]
fn the_first_two_ranks_of_an_exscan_combine_nothing() {
    let machine = Machine::built_in("ideal-torus").unwrap();
    for (shape, least) in [("1", 0.0), ("2", 0.0), ("4", 0.5), ("4x4", 14.0 / 16.0)] {
        let network = Network::new(machine.network, &shape.parse().unwrap(), 0).unwrap();
        let limits = Limits { reduce: 1.0, ..machine.limits(&network) };
        let bound = Bounds::new(Collective::Exscan, 1, &limits).of(BoundKind::Reduction, 1.0);
        assert!((bound - least).abs() < 1e-9, "{shape}: {bound}");
    }
}

#[test]
fn bounds_are_reached_where_they_are_known_to_be() {
    let find = |collective, name: &str, shape: &str, ports| {
        let (shape, map): (Shape, _) = (shape.parse().unwrap(), RankMap::RowMajor);
        let request = Request { shape, map, root: Rank(0), ports: Some(ports) };
        registry::find(collective, name).unwrap().schedule(&request).unwrap()
    };
    // Links: rings in both directions, in all dimensions at the same time if the torus is square; edge-disjoint
    // trees; direct messages to the receivers on odd tori, in both directions around.
    for (collective, name, shape, ports, kind) in [
        (Collective::Allgather, "bucket", "8", 2, BoundKind::Bandwidth),
        (Collective::ReduceScatter, "bucket", "7", 2, BoundKind::Bandwidth),
        (Collective::Allreduce, "bucket", "12", 2, BoundKind::Bandwidth),
        (Collective::Bcast, "trees", "4x4", 4, BoundKind::Bandwidth),
        (Collective::Reduce, "trees", "3x3x3", 6, BoundKind::Bandwidth),
        (Collective::Alltoall, "dimensions", "9x9", 4, BoundKind::Bisection),
        (Collective::Alltoall, "direct", "13", 1, BoundKind::Bisection),
    ] {
        let schedule = find(collective, name, shape, ports);
        let found = traffic(&schedule.expand().unwrap(), &schedule.shape, |rank| Vertex(rank.0));
        let least = LeastTraffic::new(collective, &Links::of(&schedule.shape)).link();
        assert_eq!(least.0, kind, "{collective} {name} on {shape}");
        let load = found.max_link_load;
        assert!(
            (load / least.1 - 1.0).abs() < 1e-9,
            "{collective} {name} on {shape}: {load}, {least:?}"
        );
    }
    // Volumes of the busiest rank.
    for (collective, name, shape) in [
        (Collective::Allgather, "bruck", "4x16"),
        (Collective::Allreduce, "circulant", "23"),
        (Collective::Alltoall, "pairwise", "5x7"),
    ] {
        let schedule = find(collective, name, shape, 1);
        let found = traffic(&schedule.expand().unwrap(), &schedule.shape, |rank| Vertex(rank.0));
        let least = LeastTraffic::new(collective, &Links::of(&schedule.shape));
        assert!((found.max_sent - least.sent).abs() < 1e-9, "{collective} {name}: {found:?}");
    }
    // Time: one message between two ranks, and long vectors around a ring without software costs.
    for (collective, name, machine, shape, ports, n, kind, most) in [
        (Collective::Bcast, "direct-tree", "tofu-d", "4", 1, 0.0, BoundKind::Latency, 1.001),
        (
            Collective::Barrier,
            "bruck:2",
            "ideal-torus",
            "2",
            1,
            0.0,
            BoundKind::Latency,
            1.0 + 1e-9,
        ),
        (
            Collective::Bcast,
            "direct-tree",
            "ideal-torus",
            "16",
            1,
            0.0,
            BoundKind::Latency,
            1.0 + 1e-9,
        ),
        (Collective::Allgather, "bucket", "ideal-torus", "8", 2, 1e9, BoundKind::Bandwidth, 1.001),
        (Collective::Allreduce, "bucket", "ideal-torus", "8", 2, 1e9, BoundKind::Bandwidth, 1.001),
    ] {
        let machine = Machine::built_in(machine).unwrap();
        let schedule = find(collective, name, shape, ports);
        let network = Network::new(machine.network, &schedule.shape, 0).unwrap();
        let bounds = Bounds::new(collective, ports, &machine.limits(&network));
        let (decides, bound) = bounds.call(n);
        let ns = predicted(&schedule, &network, &machine, &[n])[0];
        assert_eq!(decides, kind, "{collective} {name} on {shape}");
        assert!(ns <= bound * most, "{collective} {name} on {shape}: {ns}, {bound}");
    }
}
