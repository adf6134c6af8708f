//! Alltoall on nodes: steps, messages and bytes between and within nodes as in the many-core paper's algorithms 3
//! to 5, for every number of leaders and every size of a group; and the load of a torus's links.

use hopbine_torus::geometry::{RankMap, Shape, Vertex};
use hopbine_torus::plan::{
    Expansion, Expect, Flow, Listed, ScheduleError, Traffic, check, for_each_message, max_ports,
    n_positions, traffic,
};
use hopbine_torus::registry;
use hopbine_torus::{Collective, Rank, Request};

/// Shapes of nodes: a single node, a ring, tori. `PER_NODE` has the numbers of ranks per node.
const NODES: [&str; 4] = ["1", "3", "2x2", "3x2"];
const PER_NODE: [u32; 4] = [2, 3, 4, 8];

fn shape(nodes: &str, per_node: u32) -> Shape {
    format!("{nodes}+{per_node}").parse().unwrap()
}

fn expand(name: &str, shape: &Shape, ports: Option<u32>) -> Result<Expansion, ScheduleError> {
    let request = Request { shape: shape.clone(), map: RankMap::RowMajor, root: Rank(0), ports };
    registry::find(Collective::Alltoall, name).unwrap().schedule(&request)?.expand()
}

fn divisors(number: u32) -> impl Iterator<Item = u32> {
    (1..=number).filter(move |&divisor| number.is_multiple_of(divisor))
}

/// Messages and blocks that a rank sends, between nodes and within its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    between: [u64; 2],
    inside: [u64; 2],
}

impl Sent {
    fn of(between: [u64; 2], inside: [u64; 2]) -> Self {
        // Each pair is a number of messages and the blocks in each message.
        let blocks = |[messages, each]: [u64; 2]| [messages, messages * each];
        Sent { between: blocks(between), inside: blocks(inside) }
    }

    fn and(self, other: Self) -> Self {
        let add = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
        Sent { between: add(self.between, other.between), inside: add(self.inside, other.inside) }
    }
}

fn sent(expansion: &Expansion, per_node: u32) -> Vec<Sent> {
    let mut all = vec![Sent::default(); expansion.n_ranks() as usize];
    for_each_message(expansion, |_, _, message| {
        let sent = &mut all[message.from.index()];
        let leaves = message.from.0 / per_node != message.to.0 / per_node;
        let counted = if leaves { &mut sent.between } else { &mut sent.inside };
        counted[0] += 1;
        counted[1] += n_positions(message.runs);
    });
    all
}

/// Proves a plan, and compares the number of steps and what rank `l` of a node sends with the expected values.
fn compare(name: &str, shape: &Shape, steps: u64, expected: impl Fn(u32) -> Sent) {
    let per_node = shape.ranks_per_node();
    let expansion = expand(name, shape, Some(1)).unwrap();
    let violations = check(&expansion, Expect::default());
    assert!(violations.is_empty(), "{name} on {shape}: {}", violations[0]);
    assert_eq!(expansion.lanes()[0].n_steps as u64, steps, "{name} on {shape}");
    for (rank, sent) in sent(&expansion, per_node).into_iter().enumerate() {
        let want = expected(rank as u32 % per_node);
        assert_eq!(sent, want, "{name} on {shape}, rank {rank}");
    }
}

/// Algorithm 3, with one leader for each `g` ranks: gather, alltoall of all leaders, scatter; and algorithm 5:
/// alltoall among the leaders at the same place of all nodes, then among each node's leaders.
#[test]
fn leaders_send_what_the_paper_says() {
    for (nodes, q) in NODES.iter().flat_map(|nodes| PER_NODE.map(|q| (nodes, q))) {
        let shape = shape(nodes, q);
        let (p, q) = (u64::from(shape.n_ranks()), u64::from(q));
        let n = p / q;
        for leaders in divisors(q as u32).map(u64::from) {
            let g = q / leaders;
            // A member keeps its own block, which MPI_Gather would also move.
            let members = move |member: u64| match member % g {
                0 => Sent::of([0, 0], [g - 1, p - 1]),
                _ => Sent::of([0, 0], [1, p - 1]),
            };
            let with_exchange = move |member: u32, exchange: Sent| {
                let member = u64::from(member);
                let is_leader = member.is_multiple_of(g);
                let exchange = if is_leader { exchange } else { Sent::default() };
                if g == 1 { exchange } else { members(member).and(exchange) }
            };
            let around = if g == 1 { 0 } else { 2 };
            let all = Sent::of([(n - 1) * leaders, g * g], [leaders - 1, g * g]);
            let names = match leaders {
                1 => vec!["hierarchical".to_owned()],
                _ => vec![format!("multi-leader:{leaders}")],
            };
            for name in names {
                let steps = around + n * leaders - 1;
                compare(&name, &shape, steps, |member| with_exchange(member, all));
                let name = format!("{name}-nonblocking");
                let steps = around + u64::from(n * leaders > 1);
                compare(&name, &shape, steps, |member| with_exchange(member, all));
            }
            if leaders > 1 {
                let aware = Sent::of([n - 1, q * g], [leaders - 1, n * g * g]);
                let name = format!("multi-leader-node-aware:{leaders}");
                let steps = around + (n - 1) + (leaders - 1);
                compare(&name, &shape, steps, |member| with_exchange(member, aware));
                let name = format!("{name}-batched:2");
                let steps = around + (n - 1).div_ceil(2) + (leaders - 1).div_ceil(2);
                compare(&name, &shape, steps, |member| with_exchange(member, aware));
            }
        }
    }
}

/// Algorithm 4: alltoall among the ranks at the same place of all nodes, or of all groups, then within each.
#[test]
fn groups_send_what_the_paper_says() {
    for (nodes, q) in NODES.iter().flat_map(|nodes| PER_NODE.map(|q| (nodes, q))) {
        let shape = shape(nodes, q);
        let (p, q) = (u64::from(shape.n_ranks()), u64::from(q));
        for g in divisors(q as u32).map(u64::from) {
            let (groups, n) = (p / g, p / q);
            let between = Sent::of([groups - q / g, g], [q / g - 1, g]);
            let inside = Sent::of([0, 0], [g - 1, groups]);
            let name = format!("locality-aware:{g}");
            compare(&name, &shape, groups - 1 + g - 1, |_| between.and(inside));
            if g == q {
                let steps = n - 1 + q - 1;
                compare("node-aware", &shape, steps, |_| between.and(inside));
                let steps = u64::from(n > 1) + 1;
                compare("node-aware-nonblocking", &shape, steps, |_| between.and(inside));
            }
        }
    }
}

/// In every form a node sends the minimum: q blocks for each of q ranks on other nodes.
#[test]
fn between_nodes_there_is_only_what_must_be() {
    let shape = shape("3x2", 4);
    for name in
        ["hierarchical", "multi-leader", "node-aware", "multi-leader-node-aware", "pairwise"]
    {
        let expansion = expand(name, &shape, Some(1)).unwrap();
        let left: u64 = sent(&expansion, 4).iter().take(4).map(|sent| sent.between[1]).sum();
        assert_eq!(left, 5 * 16, "{name}");
    }
}

#[test]
fn what_does_not_divide_is_an_error_that_says_what_would() {
    let error = |name: &str, text: &str| {
        expand(name, &text.parse().unwrap(), None).unwrap_err().to_string()
    };
    let leaders = error("multi-leader:9", "4+8");
    assert!(leaders.contains("9 leaders") && leaders.contains("1 to 8"), "{leaders}");
    let none = error("multi-leader:0", "4+8");
    assert!(none.contains("0 leaders"), "{none}");
    let groups = error("locality-aware:4", "4+6");
    assert!(groups.contains("groups of 4") && groups.contains("1, 2, 3, 6"), "{groups}");
    let groups = error("locality-aware:3", "4+8");
    assert!(groups.contains("groups of 3") && groups.contains("1, 2, 4, 8"), "{groups}");
    let nodes = error("hierarchical", "4x4");
    assert!(nodes.contains("no ranks share a node"), "{nodes}");
    for name in ["hierarchical:2", "pairwise:2", "node-aware-batched:0", "multi-leader:x"] {
        assert!(registry::find(Collective::Alltoall, name).is_err(), "{name}");
    }
}

/// Leaders with groups of unequal sizes: proved on all ports, as flows and as listed plans after a round trip
/// through text. The messages are those of the paper's algorithms, and contain only blocks that exist: a leader of
/// a members and a leader of b members send each other a b blocks.
#[test]
fn leaders_share_ranks_that_they_do_not_divide() {
    for (text, leaders) in [("1+3", 2), ("4+5", 2), ("3x2+7", 3), ("2+7", 4), ("5+10", 4)] {
        let shape: Shape = text.parse().unwrap();
        let per_node = shape.ranks_per_node();
        let sizes: Vec<u32> =
            (0..leaders).map(|group| (per_node + leaders - 1 - group) / leaders).collect();
        assert_eq!(sizes.iter().sum::<u32>(), per_node);
        for name in ["multi-leader", "multi-leader-node-aware"] {
            for (name, ports) in [
                (format!("{name}:{leaders}"), 1),
                (format!("{name}:{leaders}-nonblocking"), 1),
                (format!("{name}:{leaders}-batched:2"), 3),
            ] {
                let ports = ports.min(max_ports(&shape));
                let expansion = expand(&name, &shape, Some(ports)).unwrap();
                let violations = check(&expansion, Expect::default());
                assert!(violations.is_empty(), "{name} on {shape}: {}", violations[0]);
                let plans = Rank::first(expansion.n_ranks()).map(|rank| {
                    let plan: hopbine_torus::Plan =
                        expansion.plan(rank).to_string().parse().unwrap();
                    assert_eq!(plan, expansion.plan(rank), "{name} on {shape}");
                    plan
                });
                let violations = check(&Listed::new(plans.collect()).unwrap(), Expect::default());
                assert!(violations.is_empty(), "{name} on {shape}: {}", violations[0]);
            }
        }
        let n_nodes = shape.n_ranks() / per_node;
        let expansion = expand(&format!("multi-leader:{leaders}"), &shape, Some(1)).unwrap();
        // The blocks of each message of the first leader, and of the last leader of its node.
        for group in [0, leaders - 1] {
            let first: u32 = sizes[..group as usize].iter().sum();
            let (a, members) = (sizes[group as usize], first + 1..first + sizes[group as usize]);
            let mut expected: Vec<u64> = (0..n_nodes)
                .flat_map(|node| (0..leaders).map(move |other| (node, other)))
                .filter(|&(node, other)| node > 0 || other != group)
                .map(|(_, other)| u64::from(a * sizes[other as usize]))
                .chain(members.map(|_| u64::from(shape.n_ranks() - 1)))
                .collect();
            let plan = expansion.plan(Rank(first));
            let sends = plan.lanes[0].steps.iter().flat_map(|step| &step.sends);
            let mut found: Vec<u64> = sends.map(|send| n_positions(&send.runs)).collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "group {group} of {shape}");
        }
    }
}

/// Listed plans of leaders hold on several ports, and survive a round trip through text.
#[test]
fn listed_plans_hold_on_all_ports_and_round_trip() {
    for name in ["multi-leader:2", "multi-leader-node-aware:2", "locality-aware:2", "dimensions"] {
        for (text, ports) in [("3x2+4", 4), ("2x2x2+4", 6), ("5+8", 2)] {
            let shape: Shape = text.parse().unwrap();
            let expansion = expand(name, &shape, Some(ports)).unwrap();
            let plans = Rank::first(expansion.n_ranks()).map(|rank| {
                let text = expansion.plan(rank).to_string();
                let plan: hopbine_torus::Plan = text.parse().unwrap();
                assert_eq!(plan, expansion.plan(rank), "{name} on {shape}: {text}");
                plan
            });
            let violations = check(&Listed::new(plans.collect()).unwrap(), Expect::default());
            assert!(violations.is_empty(), "{name} on {shape}: {}", violations[0]);
        }
    }
}

fn on_links(name: &str, text: &str, ports: u32) -> Traffic {
    let shape: Shape = text.parse().unwrap();
    traffic(&expand(name, &shape, Some(ports)).unwrap(), &shape, |rank| Vertex(rank.0))
}

/// Exchanges along one dimension after the other load all links of an odd torus evenly in each step, if every port
/// begins with a different dimension: no link carries more than the mean.
#[test]
fn dimensions_use_links_evenly() {
    for (text, dims) in [("3x3", 2), ("3x3x3", 3), ("5x5x5", 3), ("3x3+2", 2)] {
        let shape: Shape = text.parse().unwrap();
        let n_links = f64::from(shape.n_ranks() / shape.ranks_per_node() * 2 * dims);
        let counted = on_links("dimensions", text, 2 * dims);
        let mean = counted.crossed() / n_links;
        assert!((counted.max_link_load - mean).abs() < 1e-9, "{text}: {counted:?}");
        assert!((counted.step_load - mean).abs() < 1e-9, "{text}: {counted:?}");
        // A single port leaves the links of the other dimensions idle.
        let alone = on_links("dimensions", text, 1);
        assert!(alone.step_load > 1.9 * mean, "{text}: {alone:?}");
    }
}
