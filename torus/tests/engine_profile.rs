//! The cost of hopbine's engine in the network model: known sums, term by term.

use hopbine_torus::geometry::Vertex;
use hopbine_torus::sim::{
    CallForm, Machine, Network, NetworkKind, Outcome, Profile, RoutedPlan, TimeCategory,
};
use hopbine_torus::{Collective, Rank, RankMap, Request, Shape, registry};

/// Tofu's parameters on a torus without folds.
fn machine() -> Machine {
    Machine { network: NetworkKind::IdealTorus, ..Machine::built_in("tofu-d").unwrap() }
}

fn played(
    collective: Collective,
    name: &str,
    text: &str,
    bytes: f64,
    call: CallForm,
    exact: bool,
) -> Outcome {
    let (shape, machine): (Shape, _) = (text.parse().unwrap(), machine());
    let (map, root) = (RankMap::RowMajor, Rank(0));
    let request = Request { shape: shape.clone(), map, root, ports: Some(1) };
    let schedule = registry::find(collective, name).unwrap().schedule(&request).unwrap();
    let flow = schedule.expand().unwrap();
    let network = Network::new(machine.network, &shape, 0).unwrap();
    let place = |rank: Rank| Vertex(rank.0);
    let routed = match exact {
        true => RoutedPlan::of_all(&flow, &network, place).unwrap(),
        false => RoutedPlan::of_one(&flow, &network, place),
    };
    let profile = Profile::Hopbine { segment_bytes: u64::MAX, call };
    profile.play(&schedule, &flow, &routed, &machine, bytes, false).unwrap()
}

fn is(found: &Outcome, expected: f64) {
    assert!((found.ns / expected - 1.0).abs() < 1e-6, "{found:?}: {expected}");
    assert!((found.breakdown.total() / found.ns - 1.0).abs() < 1e-6, "{found:?}");
}

/// Two ranks exchange a vector and combine it.
#[test]
fn an_exchange_of_two() {
    let allreduce = |bytes, call| played(Collective::Allreduce, "bine-l", "2", bytes, call, false);
    let m = machine();
    let fold = |bytes: f64| bytes / m.reduce + (bytes / 256.0).min(256.0).sqrt() * m.reduce_ramp_ns;
    let way = |bytes: f64| m.post_ns + bytes / m.link + m.latency_ns + m.poll_ns;
    // The message is carried in a descriptor, without a copy.
    is(&allreduce(16.0, CallForm::Repeated), m.call_ns + way(16.0) + fold(16.0));
    // The sender copies the message to a slot; the receiver combines it there.
    let copy = 1024.0 / m.copy + m.block_ns;
    is(&allreduce(1024.0, CallForm::Repeated), m.call_ns + copy + way(1024.0) + fold(1024.0));
    // The receiver first sends the destination address.
    let n = f64::from(1 << 20);
    let repeated = m.call_ns + way(0.0) + way(n) + fold(n);
    is(&allreduce(n, CallForm::Repeated), repeated);
    // One message each way, three regions with sixteen pages of the input and of the output, one peer.
    let first = 2.0 * m.compile_ns + 3.0 * m.register_ns + 32.0 * m.page_ns;
    let met = 2.0 * (m.latency_ns + m.poll_ns) + m.peer_ns;
    let found = allreduce(n, CallForm::First);
    is(&found, repeated + first + met);
    assert!((found.breakdown.of(TimeCategory::Setup) - m.call_ns - first - met).abs() < 1e-3);
}

/// Of four blocks a rank copies its own. The others arrive at their destinations, one message after the other, each
/// announced in advance except the first.
#[test]
fn an_alltoall_copies_what_stays() {
    let m = machine();
    let n = f64::from(1 << 22);
    let found = played(Collective::Alltoall, "pairwise", "4", n, CallForm::Repeated, false);
    let own = n / 4.0 / m.copy + m.block_ns;
    assert!((found.breakdown.of(TimeCategory::Copy) - own).abs() < 1e-3, "{found:?}");
    // Each of two steps sends half of the blocks: short blocks are packed and unpacked.
    let n = 1024.0;
    let packed = played(Collective::Alltoall, "bruck", "4", n, CallForm::Repeated, false);
    let once = n / 2.0 / m.copy + 2.0 * m.block_ns;
    assert!(packed.breakdown.of(TimeCategory::Copy) > 2.0 * once, "{packed:?}");
}

/// Ranks of one node use shared memory: no interface, no link, no descriptor.
#[test]
fn ranks_of_a_node_copy() {
    let m = machine();
    let n = f64::from(1 << 20);
    for exact in [false, true] {
        let found =
            played(Collective::Allreduce, "doubling-l", "1+2", n, CallForm::Repeated, exact);
        let fold = n / m.reduce + 16.0 * m.reduce_ramp_ns;
        // Both ranks copy at the same time, at less than the memory's bandwidth.
        assert!(2.0 * m.copy < m.copy_all);
        is(&found, m.call_ns + 2.0 * m.shm_overhead_ns + n / m.copy + m.shm_latency_ns + fold);
    }
    // The four ranks of each of two nodes send through one interface.
    let of = |exact| {
        played(Collective::Alltoall, "pairwise", "2+4", 8.0 * n, CallForm::Repeated, exact).ns
    };
    let [one, all] = [of(false), of(true)];
    let bound = 4.0 * 4.0 * n / m.link;
    assert!(one > bound && all > bound, "{one} and {all} of {bound}");
}
