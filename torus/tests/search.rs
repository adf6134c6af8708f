//! The search finds the same optimum as an exhaustive search, and its statements about quality hold.

use hopbine_torus::collectives::Sums;
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{Expect, Schedule, check, max_ports};
use hopbine_torus::registry;
use hopbine_torus::search::{
    Best, Candidate, SEGMENTS, Search, SearchError, SearchRequest, best_of, better, splits,
};
use hopbine_torus::sim::{CallForm, Machine, Network, Profile, RoutedPlan};
use hopbine_torus::{Algorithm, Collective, Rank, Request};

use crate::common::{NODE_SHAPES, SHAPES};

/// The exhaustive search covers shapes of up to this many ranks, and some of six.
const MOST_RANKS: u32 = 4;
const SIX: [&str; 2] = ["6", "2x3"];

fn request(collective: Collective, text: &str, bytes: f64) -> SearchRequest {
    let shape: Shape = text.parse().unwrap();
    let (ports, map) = (max_ports(&shape), RankMap::default());
    let segments = vec![1 << 20];
    SearchRequest { collective, shape, map, root: Rank(0), ports, bytes, segments }
}

/// Machines with different networks.
fn machines() -> Vec<Machine> {
    let built_in = |name| Machine::built_in(name).unwrap();
    ["tofu-d", "ideal-torus", "hx2mesh"].map(built_in).to_vec()
}

/// Visits all cells of the shapes for which the machines have networks.
fn for_each_cell(
    collective: Collective,
    shapes: &[&str],
    machines: &[Machine],
    visit: impl Fn(&str, &SearchRequest, (&Network, &Machine)),
) {
    let sizes = match collective {
        Collective::Barrier => vec![0.0],
        _ => vec![8.0, 16_777_216.0],
    };
    for text in shapes {
        for machine in machines {
            let shape: Shape = text.parse().unwrap();
            let Ok(network) = Network::new(machine.network, &shape, 0) else { continue };
            for &bytes in &sizes {
                let which = format!("{collective} of {bytes} B on {text}, {}", machine.name);
                visit(&which, &request(collective, text, bytes), (&network, machine));
            }
        }
    }
}

/// A simulation of all ranks lets messages end together that end at almost the same time: it may be shorter by this
/// factor.
const ROUNDING: f64 = 1.005;

/// Time of a simulation of all ranks at the best of the request's lengths, ns.
fn followed(
    schedule: &Schedule,
    request: &SearchRequest,
    (network, machine): (&Network, &Machine),
) -> f64 {
    let flow = schedule.expand().unwrap();
    let place = |rank| schedule.map.vertex_of(&schedule.shape, rank);
    let routed = RoutedPlan::of_all(&flow, network, place).unwrap();
    let play = |&segment_bytes: &u64| {
        let profile = Profile::Hopbine { segment_bytes, call: CallForm::Repeated };
        profile.play(schedule, &flow, &routed, machine, request.bytes, false).unwrap().ns
    };
    request.segments.iter().map(play).fold(f64::INFINITY, f64::min)
}

/// The search finds the best candidate of the whole space, and no candidate is faster than its bound: for each shape
/// on one of the machines in turn. The ignored test has all.
fn equals_trying_everything(collective: Collective) {
    let machines = machines();
    for (number, text) in small_shapes().into_iter().enumerate() {
        let turn = (number + collective as usize) % machines.len();
        equals_trying_everything_on(collective, &[text], &machines[turn..=turn]);
    }
}

fn small_shapes() -> Vec<&'static str> {
    let shapes = SHAPES.iter().chain(&NODE_SHAPES).chain(&["2+2", "4m"]).copied();
    shapes.filter(|text| text.parse::<Shape>().unwrap().n_ranks() <= MOST_RANKS).collect()
}

/// A root receives from several links at the same time, if its interface is faster than a link.
#[test]
fn equals_trying_everything_where_links_and_interfaces_differ() {
    let ideal = Machine::built_in("ideal-torus").unwrap();
    let fast_interface = Machine { interface: 2.0 * ideal.link, ..ideal.clone() };
    let fast_link = Machine { link: 2.0 * ideal.interface, ..ideal };
    for collective in Collective::ALL {
        equals_trying_everything_on(
            collective,
            &["3"],
            &[fast_interface.clone(), fast_link.clone()],
        );
    }
}

#[test]
#[ignore = "takes long: cargo test -p hopbine-torus --test torus -- --ignored"]
fn equals_trying_everything_on_every_machine() {
    for collective in Collective::ALL {
        equals_trying_everything_on(collective, &small_shapes(), &machines());
        equals_trying_everything_on(collective, &SIX, &machines());
    }
}

fn equals_trying_everything_on(collective: Collective, shapes: &[&str], machines: &[Machine]) {
    for_each_cell(collective, shapes, machines, |which, request, place| {
        let mut search = Search::new(request, place.0, place.1).unwrap();
        let mut best = f64::INFINITY;
        let (mut n, mut n_below) = (0, 0);
        for candidate in search.all() {
            let cost = candidate.cost(request, place, best);
            let Candidate { schedule, bound_ns, .. } = &candidate;
            let ns = followed(schedule, request, place);
            assert!(*bound_ns <= ROUNDING * ns + 1e-6, "{which}: {bound_ns} and {ns}\n{schedule}");
            if candidate.counts(&cost) {
                best = best.min(cost.ns);
            }
            n += 1;
            let is_same = cost.ns <= ROUNDING * ns && ns <= ROUNDING * cost.ns;
            assert!(is_same && cost.is_least, "{which}: {cost:?} and {ns}\n{schedule}");
            n_below += u32::from(*bound_ns > 0.5 * cost.ns);
        }
        // For prefix collectives only rank-after-rank schedules have their own bounds; some machines' memories cost
        // nothing.
        let has_bounds =
            collective.sums() == Sums::Everyone && !request.shape.active_dims().is_empty();
        assert!(n_below > 0 || !has_bounds, "{which}: bounds say nothing");
        while let Some(candidate) = search.next(u64::MAX) {
            let cost = candidate.cost(request, place, search.best_ns());
            search.learn(candidate, cost);
        }
        let (found, certificate) = (search.best().unwrap(), search.certificate());
        let is_best = |ns: f64| (ns - best).abs() <= 1e-9 * best;
        assert!(is_best(found.cost.ns), "{which}: {} and {best}", found.cost.ns);
        assert!(certificate.is_exhaustive && is_best(certificate.space_ns), "{which}");
        assert!(certificate.bound.1 <= best, "{which}: {certificate:?}");
        assert!(certificate.predicted <= n, "{which}: {certificate:?} of {n}");
    });
}

crate::for_every_collective!(equals_trying_everything);

/// What the search finds within a few hundred predictions is at least as good as every row of the registry. One of
/// the shapes in turn; the ignored test has all.
#[test]
fn it_beats_or_equals_the_registry() {
    let shapes = ["4x4", "5x3", "2x3+2", "8"];
    for (number, collective) in Collective::ALL.into_iter().enumerate() {
        it_beats_or_equals_the_registry_on(collective, &[shapes[number % shapes.len()]]);
    }
}

#[test]
#[ignore = "takes long: cargo test -p hopbine-torus --test torus -- --ignored"]
fn it_beats_or_equals_the_registry_on_every_shape() {
    for collective in Collective::ALL {
        it_beats_or_equals_the_registry_on(collective, &["4x4", "5x3", "2x3+2", "8"]);
    }
}

fn it_beats_or_equals_the_registry_on(collective: Collective, shapes: &[&str]) {
    for_each_cell(collective, shapes, &machines(), |which, request, place| {
        let mut search = Search::new(request, place.0, place.1).unwrap();
        for _ in 0..300 {
            let Some(candidate) = search.next(100_000) else { break };
            let cost = candidate.cost(request, place, search.best_ns());
            search.learn(candidate, cost);
        }
        let best = search.best_ns();
        let certificate = search.certificate();
        assert!(certificate.space_ns <= best && certificate.bound.1 <= best, "{certificate:?}");
        let SearchRequest { ref shape, ref map, root, ports, .. } = *request;
        for algorithm in registry::algorithms(collective) {
            let row_request =
                Request { shape: shape.clone(), map: map.clone(), root, ports: Some(ports) };
            let Ok(schedule) = algorithm.schedule(&row_request) else { continue };
            let candidate = Candidate::of_schedule(schedule);
            let cost = candidate.cost(request, place, best);
            assert!(cost.ns >= best - 1e-6, "{which}: {best}, {} {cost:?}", algorithm.name);
        }
    });
}

/// Where the space is searched to the end, no row of the registry is faster when all its ranks are followed, at any
/// length.
#[test]
fn no_row_is_faster_than_the_best_of_the_space() {
    no_row_is_faster_on(&[(Collective::Reduce, "4x4")]);
}

#[test]
#[ignore = "takes long: cargo test -p hopbine-torus --test torus -- --ignored"]
fn no_row_is_faster_than_the_best_of_more_spaces() {
    let rooted = [Collective::Bcast, Collective::Reduce, Collective::Scatter, Collective::Gather];
    no_row_is_faster_on(&rooted.map(|collective| (collective, "4x4")));
    no_row_is_faster_on(&rooted.map(|collective| (collective, "4x2x2")));
}

fn no_row_is_faster_on(calls: &[(Collective, &str)]) {
    let machine = Machine::built_in("tofu-d").unwrap();
    for &(collective, text) in calls {
        let segments = SEGMENTS.to_vec();
        let request =
            SearchRequest { ports: 2, segments, ..request(collective, text, 1_048_576.0) };
        let network = Network::new(machine.network, &request.shape, 0).unwrap();
        let place = (&network, &machine);
        let mut search = Search::new(&request, &network, &machine).unwrap();
        while let Some(candidate) = search.next(u64::MAX) {
            let cost = candidate.cost(&request, place, search.best_ns());
            search.learn(candidate, cost);
        }
        assert!(search.certificate().is_exhaustive);
        let best = search.best_ns();
        for algorithm in registry::algorithms(collective) {
            let SearchRequest { ref shape, ref map, root, ports, .. } = request;
            let row_request =
                Request { shape: shape.clone(), map: map.clone(), root, ports: Some(ports) };
            let Ok(schedule) = algorithm.schedule(&row_request) else { continue };
            let ns = followed(&schedule, &request, place);
            assert!(
                best <= ROUNDING * ns,
                "{collective} on {text}: {best}, {} {ns}",
                algorithm.name
            );
        }
    }
}

const MOST_NAMED: usize = 400;

/// Every schedule that a search may find has a name, which tables and calls can use.
#[test]
fn every_schedule_of_the_space_has_a_name() {
    let machine = Machine::built_in("ideal-torus").unwrap();
    for collective in Collective::ALL {
        let (mut n, mut n_ordered) = (0, 0);
        for text in ["6", "4x3", "2x2x2", "4+2", "1"] {
            let request = request(collective, text, 1024.0);
            let network = Network::new(machine.network, &request.shape, 0).unwrap();
            let search = Search::new(&request, &network, &machine).unwrap();
            let all: Vec<Candidate> = search.all().collect();
            // Tests only some of many candidates.
            let each = all.len() / MOST_NAMED + 1;
            for Candidate { schedule, .. } in all.into_iter().step_by(each) {
                let name = registry::name_of(&schedule).unwrap_or_else(|| panic!("{schedule}"));
                let named = registry::find(collective, &name).unwrap();
                let algorithm = Algorithm::of_schedule(&schedule);
                assert_eq!((&named.name, &algorithm.name), (&name.into(), &named.name));
                let Schedule { shape, map, root, ports, .. } = schedule.clone();
                let row_request = Request { shape, map, root, ports: Some(ports) };
                assert_eq!(algorithm.schedule(&row_request).as_ref(), Ok(&schedule));
                n += 1;
                n_ordered += u32::from(algorithm.name.contains('@'));
            }
        }
        // For prefixes, and for alltoalls of one dimension, the registry has rows for all schedules.
        assert!(n > 0, "{collective}");
        assert!(
            n_ordered > 0 || collective.sums() != Sums::Everyone,
            "{collective}: {n} schedules"
        );
    }
}

/// A schedule without a name is an algorithm, too; different recipes have different names.
#[test]
fn a_schedule_without_a_name_is_an_algorithm() {
    let text = |order: &str| {
        format!(
            "schedule allreduce\nform latency\nshape 4x3\nmap row-major\nroot 0\npatterns bine direct\n\
             order {order}\ninterleave sequential\npositions rank\nports 2\n"
        )
    };
    let [near, far] = ["near-first", "far-first"].map(|order| {
        let schedule: Schedule = text(order).parse().unwrap();
        assert_eq!(registry::name_of(&schedule), None);
        let algorithm = Algorithm::of_schedule(&schedule);
        let Schedule { shape, map, root, ports, .. } = schedule.clone();
        let row_request = Request { shape, map, root, ports: Some(ports) };
        assert_eq!(algorithm.schedule(&row_request), Ok(schedule));
        assert!(algorithm.summary().contains("as it is written"));
        algorithm.name
    });
    assert!(near.starts_with("schedule:") && far.starts_with("schedule:") && near != far);
}

/// A search limited by a count is repeatable, and finds nothing worse than the registry.
#[test]
fn a_search_that_counts_is_the_same_again() {
    let machine = Machine::built_in("tofu-d").unwrap();
    let request = request(Collective::Allreduce, "4x4x3", 4096.0);
    let network = Network::new(machine.network, &request.shape, 0).unwrap();
    let place = (&network, &machine);
    let found = |more| best_of(&request, place, more).unwrap().unwrap();
    let (rows, more) = (found(0), found(40));
    // The search ignores a split that gains less than 1 %.
    assert!(more.0.cost.ns <= 1.01 * rows.0.cost.ns && more.1.predicted > rows.1.predicted);
    let again = found(40);
    assert_eq!((again.0.schedule, again.0.cost, again.1), (more.0.schedule, more.0.cost, more.1));
    for algorithm in registry::algorithms(Collective::Allreduce) {
        let SearchRequest { ref shape, ref map, root, ports, .. } = request;
        let row_request =
            Request { shape: shape.clone(), map: map.clone(), root, ports: Some(ports) };
        let Ok(schedule) = algorithm.schedule(&row_request) else { continue };
        let cost = Candidate::of_schedule(schedule).cost(&request, place, f64::INFINITY);
        assert!(cost.ns >= rows.0.cost.ns - 1e-6, "{}: {cost:?}", algorithm.name);
    }
}

/// Rows of the registry on all ports come first, and a search knows when it has visited all of them: afterwards only
/// its limits decide. Predictions below estimates must not look like rows.
#[test]
fn rows_come_first() {
    let machine = Machine::built_in("ideal-torus").unwrap();
    // Here the search predicts schedules that take less time than estimated.
    let request = request(Collective::Allgather, "12", 65_536.0);
    let network = Network::new(machine.network, &request.shape, 0).unwrap();
    let mut search = Search::new(&request, &network, &machine).unwrap();
    let mut n_others = 0;
    while let Some(candidate) = search.next(100_000).filter(|_| n_others < 100) {
        let is_row = candidate.is_registry_row && candidate.schedule.ports == request.ports;
        assert!(is_row || !search.has_rows(), "{}", candidate.schedule);
        n_others += u32::from(!is_row);
        let cost = candidate.cost(&request, (&network, &machine), search.best_ns());
        search.learn(candidate, cost);
    }
    assert!(n_others > 10, "{n_others}");
}

/// A stopped search says that it was stopped, and its bound is valid for the rest of the space.
#[test]
fn a_search_that_is_stopped_is_not_exhaustive() {
    let machine = Machine::built_in("tofu-d").unwrap();
    let request = request(Collective::Allreduce, "4x4x4", 1_048_576.0);
    let network = Network::new(machine.network, &request.shape, 0).unwrap();
    let mut search = Search::new(&request, &network, &machine).unwrap();
    assert!(!search.certificate().is_exhaustive);
    assert!(search.next(0).is_none());
    let candidate = search.next(100_000).unwrap();
    let handed_out = search.certificate();
    assert!(handed_out.space_ns <= candidate.bound_ns && handed_out.predicted == 0);
    let cost = candidate.cost(&request, (&network, &machine), search.best_ns());
    search.learn(candidate, cost);
    let certificate = search.certificate();
    assert!(!certificate.is_exhaustive && certificate.predicted == 1, "{certificate:?}");
    assert!(certificate.space_ns < search.best_ns());
}

#[test]
fn questions_without_answers_are_refused() {
    let machine = Machine::built_in("ideal-torus").unwrap();
    let good = request(Collective::Bcast, "4x4", 8.0);
    let network = Network::new(machine.network, &good.shape, 0).unwrap();
    let refused = |request: &SearchRequest| Search::new(request, &network, &machine).err().unwrap();
    for ports in [0, 5] {
        let error = refused(&SearchRequest { ports, ..good.clone() });
        assert!(matches!(error, SearchError::Ports { max: 4, .. }), "{error}");
    }
    for segments in [vec![], vec![0]] {
        assert_eq!(refused(&SearchRequest { segments, ..good.clone() }), SearchError::Segments);
    }
    let error = refused(&SearchRequest { root: Rank(16), ..good });
    assert!(error.to_string().contains("ranks 0 to 15"), "{error}");
}

/// If lanes would end at different times, they get parts of different sizes. Such schedules are predicted like
/// others and chosen if they gain; with equal dimensions there is no gain.
#[test]
fn lanes_of_unequal_dimensions_get_parts_that_differ() {
    let machine = Machine::built_in("ideal-torus").unwrap();
    let mut gains = Vec::new();
    for (collective, name, text) in [
        (Collective::Allgather, "bucket", "2x7"),
        (Collective::Allgather, "mixed-dealt", "3x8"),
        (Collective::Allreduce, "balanced", "3x5x2"),
        (Collective::Allreduce, "bucket", "4x4x4"),
        (Collective::Bcast, "mixed-tree", "3x7"),
    ] {
        let request = request(collective, text, 262_144.0);
        let network = Network::new(machine.network, &request.shape, 0).unwrap();
        let place = (&network, &machine);
        let algorithm = registry::find(collective, name).unwrap();
        let SearchRequest { shape, map, root, ports, .. } = request.clone();
        let row_request = Request { shape, map, root, ports: Some(ports) };
        let schedule = algorithm.schedule(&row_request).unwrap();
        let candidate = Candidate::of_schedule(schedule.clone());
        let equal = Best { schedule, cost: candidate.cost(&request, place, f64::INFINITY) };
        let all: Vec<Best> = splits(&equal, &request, place).collect();
        for Best { schedule, cost } in &all {
            assert!(!schedule.split.is_equal());
            let again =
                Candidate::of_schedule(schedule.clone()).cost(&request, place, equal.cost.ns);
            assert!(again.ns <= cost.ns, "{name} on {text}: {again:?} and {cost:?}");
            let faults = check(&schedule.expand().unwrap(), Expect::default());
            assert!(faults.is_empty(), "{name} on {text}: {}", faults[0]);
        }
        let found = better(all, &equal);
        gains.push(found.map_or(1.0, |found| equal.cost.ns / found.cost.ns));
        println!("{collective} {name} on {text}: {}", gains[gains.len() - 1]);
    }
    assert!(gains[0] > 1.01 && gains[2] > 1.01 && gains[4] > 1.01, "{gains:?}");
    assert_eq!(gains[3], 1.0);
}
