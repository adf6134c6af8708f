//! Calls under unusual conditions: blocks of several sizes, slow or dead links and interfaces.

use hopbine_torus::geometry::Vertex;
use hopbine_torus::plan::{Expansion, Flow, Schedule};
use hopbine_torus::sim::{
    CallForm, Conditions, Fault, FaultyPart, Machine, Network, Profile, Resource, RoutedPlan,
    RoutingError,
};
use hopbine_torus::{Collective, LinkId, PortId, Rank, RankMap, Request, Shape, registry};

/// Bytes of a call.
const N: f64 = 4e6;

struct Case {
    schedule: Schedule,
    flow: Expansion,
    network: Network,
    machine: Machine,
}

impl Case {
    fn new(collective: Collective, name: &str, text: &str, ports: u32) -> Self {
        let shape: Shape = text.parse().unwrap();
        // Without latencies, time is bytes over speed.
        let machine =
            Machine { latency_ns: 0.0, hop_ns: 0.0, ..Machine::built_in("ideal-torus").unwrap() };
        let network = Network::new(machine.network, &shape, 0).unwrap();
        let (map, root) = (RankMap::RowMajor, Rank(0));
        let request = Request { shape, map, root, ports: Some(ports) };
        let schedule = registry::find(collective, name).unwrap().schedule(&request).unwrap();
        let flow = schedule.expand().unwrap();
        Case { schedule, flow, network, machine }
    }

    fn routed(&self, blocks: &[f64], faults: &[Fault]) -> Result<RoutedPlan, RoutingError> {
        let conditions = Conditions { blocks: blocks.to_vec(), faults: faults.to_vec() };
        RoutedPlan::of_all_under(&conditions, &self.flow, &self.network, |rank| Vertex(rank.0))
    }

    fn ns(&self, blocks: &[f64], faults: &[Fault]) -> f64 {
        let Case { schedule, flow, machine, .. } = self;
        let profile = Profile::Hopbine { segment_bytes: u64::MAX, call: CallForm::Repeated };
        let routed = self.routed(blocks, faults).unwrap();
        profile.play(schedule, flow, &routed, machine, N, false).unwrap().ns
    }

    /// A link that a message crosses.
    fn some_link(&self) -> LinkId {
        let routed = self.routed(&[], &[]).unwrap();
        let mut crossed = routed.messages().flat_map(|message| message.crossed.to_vec());
        crossed
            .find_map(|(number, _)| match routed.resource(number) {
                Resource::Link(link) => Some(link),
                _ => None,
            })
            .unwrap()
    }
}

fn is(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.01, "{found}: {expected}");
}

#[test]
fn slow_parts_take_longer() {
    // Each of 4 ranks sends n / 4 three times over its next link.
    let ring = Case::new(Collective::Allgather, "bucket", "4", 1);
    let step = N / 4.0 / ring.machine.link;
    is(ring.ns(&[], &[]), 3.0 * step);
    let link = FaultyPart::Link(ring.some_link());
    is(ring.ns(&[], &[Fault { part: link, speed: 0.25 }]), 12.0 * step);
    let interface = FaultyPart::Interface { node: 2, port: PortId(0) };
    is(ring.ns(&[], &[Fault { part: interface, speed: 0.5 }]), 6.0 * step);
    is(ring.ns(&[], &[Fault { part: interface, speed: 1.0 }]), 3.0 * step);
}

/// The port of a dead interface uses the next interface, which then has twice as much to send.
#[test]
fn a_dead_interface_is_replaced() {
    let ring = Case::new(Collective::Allgather, "bucket", "4", 2);
    let step = N / 8.0 / ring.machine.link;
    is(ring.ns(&[], &[]), 3.0 * step);
    let dead = |port| {
        let part = FaultyPart::Interface { node: 1, port: PortId(port) };
        Fault { part, speed: 0.0 }
    };
    for port in [0, 1] {
        is(ring.ns(&[], &[dead(port)]), 6.0 * step);
    }
    let error = ring.routed(&[], &[dead(0), dead(1)]).unwrap_err();
    assert_eq!(error, RoutingError::NoInterface { node: 1 });
}

#[test]
fn a_dead_link_ends_no_call() {
    let ring = Case::new(Collective::Allgather, "bucket", "4", 1);
    let link = ring.some_link();
    let dead = Fault { part: FaultyPart::Link(link), speed: 0.0 };
    let message = ring.routed(&[], &[dead]).unwrap_err().to_string();
    assert!(message.contains("which is dead: the call does not end"), "{message}");
}

/// Explicit sizes that are all equal take as long as blocks of one size.
#[test]
fn equal_blocks_are_blocks() {
    for (collective, name) in [
        (Collective::Allgather, "bine"),
        (Collective::Allgather, "bucket"),
        (Collective::Allgather, "circulant"),
        (Collective::ReduceScatter, "doubling"),
        (Collective::Gather, "bine"),
        (Collective::Scatter, "linear"),
        (Collective::Alltoall, "bine"),
        (Collective::Alltoall, "pairwise"),
        (Collective::Alltoall, "bruck:2"),
    ] {
        let case = Case::new(collective, name, "4x2", 2);
        let usual: f64 = case.ns(&[], &[]);
        is(case.ns(&[7.0; 8], &[]), usual);
        if collective == Collective::Alltoall {
            is(case.ns(&[7.0; 64], &[]), usual);
        }
    }
}

/// Only one block is not empty: it travels all the way, and no other message is sent.
#[test]
fn one_block_travels_alone() {
    let ring = Case::new(Collective::Allgather, "bucket", "5", 1);
    let blocks = [0.0, 0.0, 3.0, 0.0, 0.0];
    is(ring.ns(&blocks, &[]), 4.0 * N / ring.machine.link);
    assert_eq!(ring.routed(&blocks, &[]).unwrap().messages().count(), 4);
    // In an alltoall with digits to the base 2, a block is sent once for each 1 in its distance, through other
    // ranks.
    let bruck = Case::new(Collective::Alltoall, "bruck:2", "8", 1);
    for (from, to, n_messages) in [(0, 1, 1), (2, 5, 2), (3, 2, 3), (4, 4, 0)] {
        let mut pairs = vec![0.0; 64];
        pairs[from * 8 + to] = 1.0;
        let routed = bruck.routed(&pairs, &[]).unwrap();
        let sent: Vec<_> = routed.messages().collect();
        assert_eq!(sent.len(), n_messages, "{from} to {to}");
        assert!(sent.first().is_none_or(|first| first.from == Rank(from as u32)));
        assert!(sent.last().is_none_or(|last| last.to == Rank(to as u32)));
        // The single block has the bytes of all 8 ranks.
        assert!(sent.iter().all(|message| (message.share - 8.0).abs() < 1e-9));
    }
}

#[test]
fn mistakes_are_named() {
    let ring = Case::new(Collective::Allgather, "bucket", "4", 1);
    let fault = |part, speed| [Fault { part, speed }];
    let port = |node, port| FaultyPart::Interface { node, port: PortId(port) };
    for (blocks, faults, expected) in [
        (vec![1.0; 3], vec![], "3 sizes of blocks for 4 ranks"),
        (vec![0.0; 4], vec![], "not all 0"),
        (vec![1.0, 1.0, 1.0, -1.0], vec![], "none negative"),
        (vec![], fault(port(4, 0), 0.5).to_vec(), "interface 0 of node 4 does not exist"),
        (vec![], fault(port(0, 1), 0.5).to_vec(), "interface 1 of node 0 does not exist"),
        (vec![], fault(FaultyPart::Link(LinkId(99)), 0.5).to_vec(), "link number 99"),
        (vec![], fault(port(0, 0), -0.5).to_vec(), "-0.5 is not a factor for a speed"),
        (vec![], fault(port(0, 0), f64::NAN).to_vec(), "NaN is not a factor for a speed"),
    ] {
        let message = ring.routed(&blocks, &faults).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}: {expected}");
    }
    let vector = Case::new(Collective::Allreduce, "bine", "4", 1);
    let message = vector.routed(&[1.0; 4], &[]).unwrap_err().to_string();
    assert!(message.contains("allreduce has no blocks"), "{message}");
    assert_eq!(vector.flow.n_ranks(), 4);
}
