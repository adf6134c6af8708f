//! The network model: simulating one representative rank gives the same time as simulating all ranks, and the
//! simulated messages are those of the plan.

use std::collections::HashMap;

use hopbine_torus::geometry::Vertex;
use hopbine_torus::plan::{Expansion, Flow, Schedule, StepView, Traffic, traffic};
use hopbine_torus::sim::{
    CallForm, Machine, Network, Op, Outcome, Profile, RoutedPlan, Script, SpanKind, Threads,
    TimeCategory, play,
};
use hopbine_torus::{
    Algorithm, Collective, LaneId, Rank, RankMap, Request, Shape, StepId, registry,
};

const PROFILE: Profile = Profile::Hopbine { segment_bytes: 1 << 18, call: CallForm::Repeated };

fn scheduled(
    algorithm: &Algorithm,
    shape: &Shape,
    ports: Option<u32>,
) -> Option<(Schedule, Expansion)> {
    let (map, root) = (RankMap::RowMajor, Rank(0));
    let request = Request { shape: shape.clone(), map, root, ports };
    let schedule = algorithm.schedule(&request).ok()?;
    let flow = schedule.expand().unwrap();
    Some((schedule, flow))
}

fn played(
    (schedule, flow): &(Schedule, Expansion),
    routed: &RoutedPlan,
    machine: &Machine,
    bytes: f64,
) -> Outcome {
    PROFILE.play(schedule, flow, routed, machine, bytes, false).unwrap()
}

fn place(rank: Rank) -> Vertex {
    Vertex(rank.0)
}

/// Schedules in which all ranks do the same.
#[test]
fn one_rank_stands_for_all() {
    let (mut n_cases, mut farthest) = (0, 0.0f64);
    for (name, text) in [
        ("ideal-torus", "7"),
        ("ideal-torus", "12"),
        ("ideal-torus", "8x4"),
        ("ideal-torus", "5x7"),
        ("ideal-torus", "4x4x4"),
        ("ideal-torus", "2x3x2+2"),
        ("hx2mesh", "8x4"),
        ("hyperx", "4x6"),
        ("tofu-d", "8"),
        ("tofu-d", "4x2x4"),
        ("tofu-d", "4x4x4"),
    ] {
        let shape: Shape = text.parse().unwrap();
        let machine = Machine::built_in(name).unwrap();
        let network = Network::new(machine.network, &shape, machine.fold).unwrap();
        for collective in Collective::ALL {
            for algorithm in registry::algorithms(collective) {
                let Some(plan) = scheduled(&algorithm, &shape, None) else { continue };
                let one = RoutedPlan::of_one(&plan.1, &network, place);
                if !one.is_exact() {
                    continue;
                }
                let all = RoutedPlan::of_all(&plan.1, &network, place).unwrap();
                for bytes in [64.0, 65_536.0, 4_194_304.0] {
                    let [one, all] =
                        [&one, &all].map(|routed| played(&plan, routed, &machine, bytes));
                    let ratio = one.ns / all.ns;
                    let which =
                        || format!("{collective} {} on {name} {text}, {bytes}", algorithm.name);
                    assert!(
                        (0.98..1.02).contains(&ratio),
                        "{}: {} and {}",
                        which(),
                        one.ns,
                        all.ns
                    );
                    farthest = farthest.max((ratio - 1.0).abs());
                    n_cases += 1;
                    let spent = one.breakdown.total();
                    assert!(
                        (spent / one.ns - 1.0).abs() < 1e-6,
                        "{}: {spent} of {}",
                        which(),
                        one.ns
                    );
                }
            }
        }
    }
    println!("{n_cases} cases, at most {:.2} % apart", 100.0 * farthest);
    assert!(n_cases > 300, "{n_cases}");
}

/// Time is bytes over the bandwidth of the busiest resource: a script that only sends.
#[test]
fn the_busiest_link_is_the_bound() {
    let shape: Shape = "8x8".parse().unwrap();
    let machine =
        Machine { latency_ns: 0.0, hop_ns: 0.0, ..Machine::built_in("ideal-torus").unwrap() };
    let network = Network::new(machine.network, &shape, 0).unwrap();
    for name in ["bine", "doubling", "circulant", "bucket", "swing"] {
        let algorithm = registry::find(Collective::Allreduce, name).unwrap();
        let plan = scheduled(&algorithm, &shape, Some(1)).unwrap();
        let flow = &plan.1;
        let found = traffic(flow, &shape, place);
        let bytes = 1e6;
        for routed in [
            RoutedPlan::of_one(flow, &network, place),
            RoutedPlan::of_all(flow, &network, place).unwrap(),
        ] {
            let ns = played(&plan, &routed, &machine, bytes).ns;
            let bound = found.step_load * bytes / machine.link;
            assert!((ns / bound - 1.0).abs() < 1e-6, "{name}: {ns} for {bound}");
        }
    }
}

/// The simulated traffic equals the traffic that the check counts: on every link and interface, of every rank.
#[test]
fn what_is_played_is_what_is_counted() {
    let mut n_cases = 0;
    for (name, text) in [
        ("ideal-torus", "7"),
        ("ideal-torus", "3x5"),
        ("ideal-torus", "4x4m"),
        ("ideal-torus", "2x3x2+2"),
        ("hx2mesh", "4x4"),
        ("hyperx", "3x4"),
        ("tofu-d", "4x2x4"),
    ] {
        let shape: Shape = text.parse().unwrap();
        let machine = Machine::built_in(name).unwrap();
        let network = Network::new(machine.network, &shape, machine.fold).unwrap();
        for algorithm in Collective::ALL.into_iter().flat_map(registry::algorithms) {
            for ports in [None, Some(1)] {
                let Some((_, flow)) = scheduled(&algorithm, &shape, ports) else { continue };
                let which = format!("{} {} on {name} {text}", algorithm.collective, algorithm.name);
                let counted = traffic(&flow, network.whole(), place);
                let all = RoutedPlan::of_all(&flow, &network, place).unwrap();
                let per_node = shape.ranks_per_node();
                all_ranks_are_counted(
                    &which,
                    &all,
                    &counted,
                    &network,
                    per_node,
                    flow.collective(),
                );
                let one = RoutedPlan::of_one(&flow, &network, place);
                if one.is_exact() {
                    one_rank_is_counted(&which, &one, &counted, per_node);
                }
                n_cases += 1;
            }
        }
    }
    assert!(n_cases > 800, "{n_cases}");
}

/// `traffic` counts a barrier's token as a position; in a simulation the token has no bytes.
fn bytes_of(collective: Collective, counted: f64) -> f64 {
    if collective == Collective::Barrier { 0.0 } else { counted }
}

fn all_ranks_are_counted(
    which: &str,
    routed: &RoutedPlan,
    counted: &Traffic,
    network: &Network,
    per_node: u32,
    collective: Collective,
) {
    let n_ranks = counted.n_ranks as usize;
    let (n_links, n_ports) = (network.whole().n_links(), routed.n_ports() as usize);
    let n_nodes = n_ranks / per_node as usize;
    let (mut sent, mut n_sent) = (vec![0.0; n_ranks], vec![0usize; n_ranks]);
    let (mut on_link, mut into) = (vec![0.0; n_links], vec![0.0; n_ranks]);
    let mut in_step: HashMap<usize, Vec<f64>> = HashMap::new();
    let mut crossed = 0.0;
    for message in routed.messages() {
        sent[message.from.index()] += message.share;
        n_sent[message.from.index()] += 1;
        for &(resource, along) in message.crossed {
            assert_eq!(along, 1.0, "{which}");
            match (resource as usize).checked_sub(n_links) {
                // Interfaces into nodes come first, then the nodes' memories; the load of interfaces out of nodes
                // is not counted.
                Some(port) if port < n_nodes * n_ports => {
                    assert_eq!(port % n_ports, usize::from(message.port.0), "{which}");
                    into[port / n_ports] += message.share;
                }
                Some(memory) if memory < n_nodes * (n_ports + 1) => {
                    into[memory - n_nodes * n_ports] += message.share;
                }
                Some(_) => {}
                None => {
                    on_link[resource as usize] += message.share;
                    let of_step = in_step.entry(message.step.index());
                    of_step.or_insert_with(|| vec![0.0; n_links])[resource as usize] +=
                        message.share;
                    crossed += message.share;
                }
            }
        }
    }
    let most = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
    let same = |what: &str, found: f64, expected: f64| {
        let expected = bytes_of(collective, expected);
        assert!(
            (found - expected).abs() < 1e-9 * expected.max(1.0),
            "{which}, {what}: {found} for {expected}"
        );
    };
    same("volume", most(&sent), counted.max_sent);
    same("all sent", sent.iter().sum::<f64>(), counted.mean_sent * n_ranks as f64);
    same("received", into.iter().sum::<f64>(), counted.mean_sent * n_ranks as f64);
    same("link load", most(&on_link), counted.max_link_load);
    same("hop-bytes", crossed, counted.crossed());
    same("in step", in_step.values().map(|loads| most(loads)).sum::<f64>(), counted.step_load);
    assert_eq!(n_sent.iter().max().copied().unwrap_or(0), counted.max_messages, "{which}");
}

/// If one rank represents all, each rank sends as much as this rank, and the messages that share its busiest link
/// are the load of that link.
fn one_rank_is_counted(which: &str, routed: &RoutedPlan, counted: &Traffic, per_node: u32) {
    let n_agents = routed.n_agents() as usize;
    let (mut n_sent, mut sent) = (vec![0usize; n_agents], vec![0.0f64; n_agents]);
    let mut on_link = HashMap::new();
    for message in routed.messages() {
        n_sent[message.from.index()] += 1;
        sent[message.from.index()] += message.share;
        // The last entries are the interfaces out of and into nodes, or a node's memory.
        let n_ends = if per_node > 1 && message.crossed.len() > 1 { 2 } else { 1 };
        let links = &message.crossed[..message.crossed.len() - n_ends];
        for &(link, along) in links {
            *on_link.entry(link).or_insert(0.0) += message.share * f64::from(along);
        }
    }
    // The representative, or the rank of a class that sends most.
    assert_eq!(n_sent.into_iter().max(), Some(counted.max_messages), "{which}");
    let sent = sent.into_iter().fold(0.0, f64::max);
    let most = on_link.values().copied().fold(0.0, f64::max);
    for (what, found, expected) in
        [("volume", sent, counted.max_sent), ("link load", most, counted.max_link_load)]
    {
        let is_token = sent == 0.0;
        assert!(
            is_token || (found - expected).abs() < 1e-5 * expected.max(1.0),
            "{which}, {what}: {found} for {expected}"
        );
    }
}

/// The operations of the script language: posts, locks, joins, and waits for late receivers.
#[test]
fn scripts_take_what_they_say() {
    let shape: Shape = "2".parse().unwrap();
    let mut machine = Machine::built_in("ideal-torus").unwrap();
    machine.latency_ns = 100.0;
    let network = Network::new(machine.network, &shape, 0).unwrap();
    let algorithm = registry::find(Collective::Allreduce, "bine-l").unwrap();
    let (_, flow) = scheduled(&algorithm, &shape, Some(2)).unwrap();
    let all = RoutedPlan::of_all(&flow, &network, place).unwrap();
    // Each rank has two ports: 500 bytes at 50 bytes per ns, both over the only link, then a fold under a lock.
    let lane = |late: f64| {
        vec![
            Op::Spend { ns: late, category: TimeCategory::Software },
            Op::Ready { step: 0, post_ns: 5.0, poll_ns: 5.0 },
            Op::Put {
                step: 0,
                from: 0.0,
                to: 1.0,
                puts: 1.0,
                post_ns: 10.0,
                gap_ns: 0.0,
                n_sharing: 1.0,
            },
            Op::Receive { step: 0, to: 0.5, poll_ns: 0.0 },
            Op::Receive { step: 0, to: 1.0, poll_ns: 0.0 },
            Op::Serial { lock: 0, ns: 50.0, wake_ns: 3.0, category: TimeCategory::Fold },
            Op::Sent { step: 0, to: 1.0, ack_ns: 1.0 },
            Op::Join,
            Op::Serial { lock: 0, ns: 7.0, wake_ns: 0.0, category: TimeCategory::Copy },
        ]
    };
    let script = Script {
        setup: vec![(TimeCategory::Setup, 50.0)],
        lanes: vec![lane(0.0), lane(0.0)],
        pieces: Vec::new(),
        threads: Threads::Each,
    };
    let found = play(&all, &script, &machine.speeds(), 1000.0, true);
    // 50 to enter; 5 + 100 + 5 until both ranks are ready; 10 to post; 20 to send, as each port has half of the
    // link; 100 of latency; 50 for each of two folds, and 3 to wake up for the second; the acknowledgement has
    // arrived by then; 7 for each of two copies.
    assert_eq!(found.ns.round(), 50.0 + 110.0 + 10.0 + 20.0 + 100.0 + 103.0 + 14.0);
    assert_eq!(found.breakdown.of(TimeCategory::Fold), 50.0);
    assert_eq!(found.breakdown.of(TimeCategory::Lock).round(), 53.0 + 7.0);
    assert!(found.spans.iter().all(|span| span.end_ns > span.start_ns));
    // The activities of a thread follow each other without a gap, from the beginning of the call to its end.
    for (rank, lane) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let own = found.spans.iter().filter(|span| (span.rank, span.lane) == (rank, lane));
        let mut own: Vec<_> =
            own.filter(|span| !matches!(span.kind, SpanKind::Sends { .. })).collect();
        own.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
        assert_eq!((own[0].kind, own[0].start_ns), (SpanKind::Busy(TimeCategory::Setup), 0.0));
        let gaps = own.windows(2).map(|pair| (pair[1].start_ns - pair[0].end_ns).abs());
        assert!(gaps.fold(0.0, f64::max) < 1e-3, "{own:?}");
    }
}

/// Times of minutes are rounded by more than short messages take; a call ends all the same.
#[test]
fn late_messages_arrive() {
    let shape: Shape = "2".parse().unwrap();
    let machine = Machine::built_in("ideal-torus").unwrap();
    let network = Network::new(machine.network, &shape, 0).unwrap();
    let algorithm = registry::find(Collective::Allreduce, "bine-l").unwrap();
    let (_, flow) = scheduled(&algorithm, &shape, Some(2)).unwrap();
    let one = RoutedPlan::of_one(&flow, &network, place);
    let late_ns = 1e11;
    let (puts, from, to) = (1.0, 0.0, 1.0);
    let (post_ns, gap_ns, n_sharing) = (0.3, 0.0, 1.0);
    let lane = vec![
        Op::Spend { ns: late_ns, category: TimeCategory::Software },
        Op::Put { step: 0, from, to, puts, post_ns, gap_ns, n_sharing },
        Op::Receive { step: 0, to, poll_ns: 0.0 },
    ];
    let (setup, pieces) = (Vec::new(), Vec::new());
    let script = Script { setup, lanes: vec![lane; 2], pieces, threads: Threads::Each };
    // A simulation without an end must not keep this test from its own.
    let (send, ends) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for bytes in 1..=64 {
            _ = send.send(play(&one, &script, &machine.speeds(), f64::from(bytes), false).ns);
        }
    });
    for bytes in 1..=64 {
        let ns = ends.recv_timeout(std::time::Duration::from_secs(60));
        assert!(ns.is_ok_and(|ns| ns > late_ns && ns < late_ns + 1e6), "{bytes}: {ns:?}");
    }
}

/// A ring of 131,072 coordinates has distances that 16 bits do not hold.
#[test]
fn long_ways_are_counted() {
    let shape: Shape = "131072".parse().unwrap();
    let machine = Machine { hop_ns: 50.0, ..Machine::built_in("ideal-torus").unwrap() };
    let network = Network::new(machine.network, &shape, 0).unwrap();
    let algorithm = registry::find(Collective::Bcast, "doubling-tree").unwrap();
    let bcast = scheduled(&algorithm, &shape, Some(1)).unwrap();
    let found = played(&bcast, &RoutedPlan::of_one(&bcast.1, &network, place), &machine, 8.0).ns;
    assert!(found > 65_535.0 * machine.hop_ns, "{found}");
}

/// Whether every step of every lane is the same for all lines, or for all ranks.
fn is_symmetric(flow: &Expansion) -> bool {
    LaneId::first(flow.lanes().len()).zip(flow.lanes()).all(|(lane, header)| {
        StepId::first(header.n_steps).all(|step| match flow.view(lane, step) {
            StepView::Lines(lines) => lines.is_everywhere(),
            StepView::Products(product) => product.is_everywhere(),
            StepView::Shifts(_) => true,
            StepView::Messages(_) => false,
        })
    })
}

/// Machines and shapes, with how far apart the two simulations may be.
type Places = [(&'static str, &'static str, f64)];

/// One shape of each kind for each kind of network.
const PLACES: &Places = &[
    ("ideal-torus", "5x7", 0.02),
    ("ideal-torus", "2x3x2+2", 0.02),
    ("hyperx", "4x6", 0.5),
    ("hx2mesh", "8x4", 0.5),
    ("tofu-d", "12", 0.5),
    // Predictions marked as exact are; alltoalls through nodes are not, and are up to four times too short.
    ("tofu-d", "4x2x2+2", 1.0),
];

/// Places of the ignored test only, where all ranks take long.
const FURTHER_PLACES: &Places = &[
    ("ideal-torus", "12", 0.02),
    ("ideal-torus", "16", 0.02),
    ("ideal-torus", "4x4x4", 0.02),
    ("tofu-d", "4x4x4", 0.5),
    ("ideal-torus", "8x8", 0.02),
    ("ideal-torus", "6x6", 0.02),
    ("ideal-torus", "4x4+4", 0.02),
    ("ideal-torus", "5x5x3", 0.02),
    ("hyperx", "4x4+2", 0.5),
    ("tofu-d", "6x6x3", 0.5),
    ("tofu-d", "4x2x4+4", 1.0),
];

/// Compares the fast and the exact simulation for every symmetric schedule of the registry. On rings of links they
/// agree. On other networks the fast one does not follow classes of ranks: coordinates of one
/// dimension lie along two axes on Tofu, and at different places of a board in a mesh of boards, so equal messages
/// of a plan meet different messages. If the fast one says that it is exact, it is; otherwise it differs at most by
/// the given ratio.
fn symmetric_schedules_are_compared(places: &Places) {
    for &(name, text, most_off) in places {
        let shape: Shape = text.parse().unwrap();
        let machine = Machine::built_in(name).unwrap();
        let network = Network::new(machine.network, &shape, machine.fold).unwrap();
        let (mut n_cases, mut n_apart, mut farthest) = (0, 0, (0.0f64, String::new()));
        for algorithm in registry::all() {
            let Some(plan) = scheduled(&algorithm, &shape, None) else { continue };
            if !is_symmetric(&plan.1) {
                continue;
            }
            let one = RoutedPlan::of_one(&plan.1, &network, place);
            let all = RoutedPlan::of_all(&plan.1, &network, place).unwrap();
            for bytes in [64.0, 4_194_304.0] {
                let [fast, exact] =
                    [&one, &all].map(|routed| played(&plan, routed, &machine, bytes).ns);
                let off = (fast / exact - 1.0).abs();
                let Algorithm { collective, name: algorithm, .. } = &algorithm;
                let which = format!("{collective} {algorithm} on {name} {text}, {bytes}: {off:.3}");
                let most = if one.is_exact() { 0.02 } else { most_off };
                assert!(off < most, "{which}, {fast} and {exact}");
                n_cases += 1;
                n_apart += usize::from(off > 0.02);
                if off > farthest.0 {
                    farthest = (off, which);
                }
            }
        }
        println!("{name} {text}: {n_cases} cases, {n_apart} over 2 %; {}", farthest.1);
        assert!(n_cases > 20, "{n_cases}");
    }
}

#[test]
fn symmetric_schedules_take_as_long_on_both_players() {
    symmetric_schedules_are_compared(PLACES);
}

#[test]
#[ignore = "takes long: cargo test -p hopbine-torus --test torus -- --ignored"]
fn symmetric_schedules_on_further_shapes() {
    symmetric_schedules_are_compared(FURTHER_PLACES);
}
