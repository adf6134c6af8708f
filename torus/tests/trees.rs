//! Trees that forward pieces: the fast simulation compared with the simulation of all ranks.

use hopbine_torus::geometry::Vertex;
use hopbine_torus::plan::{Expansion, Schedule};
use hopbine_torus::sim::{CallForm, Machine, Network, Outcome, Profile, RoutedPlan};
use hopbine_torus::{Algorithm, Collective, Rank, RankMap, Request, Shape, registry};

/// The longest segment, bytes.
const SEGMENT: u64 = 1 << 18;
const PROFILE: Profile = Profile::Hopbine { segment_bytes: SEGMENT, call: CallForm::Repeated };

/// A schedule whose lanes are trees, prepared for both simulations.
struct Tree {
    schedule: Schedule,
    flow: Expansion,
    machine: Machine,
    fast: RoutedPlan,
    exact: RoutedPlan,
}

impl Tree {
    fn of(
        algorithm: &Algorithm,
        network: &Network,
        machine: &Machine,
        shape: &Shape,
        ports: Option<u32>,
    ) -> Option<Self> {
        let (map, root) = (RankMap::RowMajor, Rank(0));
        let request = Request { shape: shape.clone(), map, root, ports };
        let schedule = algorithm.schedule(&request).ok()?;
        let flow = schedule.expand().unwrap();
        let place = |rank: Rank| Vertex(rank.0);
        let fast = RoutedPlan::of_one(&flow, network, place);
        if fast.is_exact() || fast.whole().iter().any(Option::is_none) {
            return None;
        }
        let exact = RoutedPlan::of_all(&flow, network, place).unwrap();
        Some(Tree { schedule, flow, machine: machine.clone(), fast, exact })
    }

    fn played(&self, is_exact: bool, bytes: f64) -> Outcome {
        let Tree { schedule, flow, machine, fast, exact } = self;
        let routed = if is_exact { exact } else { fast };
        PROFILE.play(schedule, flow, routed, machine, bytes, false).unwrap()
    }
}

/// Both simulations agree for edge-disjoint trees and cycles, and for trees on one port whose messages do not meet.
/// Other trees agree within bounds: there, messages of several ports and steps share links, and the fast simulation
/// counts these messages without their times.
///
/// Returns the numbers of cases with trees that share links, and with trees that do not.
fn trees_are_compared(places: &[(&str, &str)]) -> [usize; 2] {
    let mut n_cases = [0, 0];
    for &(name, text) in places {
        let shape: Shape = text.parse().unwrap();
        let machine = Machine::built_in(name).unwrap();
        let network = Network::new(machine.network, &shape, machine.fold).unwrap();
        let (mut n, mut n_apart, mut all) = (0, 0, Vec::new());
        for algorithm in
            [Collective::Bcast, Collective::Reduce].into_iter().flat_map(registry::algorithms)
        {
            if shape.n_ranks() > 100
                && !["trees", "cycles", "bine-tree"].contains(&&*algorithm.name)
            {
                continue;
            }
            for ports in [None, Some(1)] {
                let Some(tree) = Tree::of(&algorithm, &network, &machine, &shape, ports) else {
                    continue;
                };
                for bytes in [64.0, 65_536.0, 4_194_304.0, 67_108_864.0] {
                    let (fast, exact) = (tree.played(false, bytes), tree.played(true, bytes));
                    let ratio = fast.ns / exact.ns;
                    let which = format!(
                        "{} {}, {} ports, on {name} {text}, {bytes}: {ratio:.3}",
                        algorithm.collective, algorithm.name, tree.schedule.ports
                    );
                    let spent = fast.breakdown.total();
                    assert!(
                        (spent / fast.ns - 1.0).abs() < 1e-6,
                        "{which}: {spent} of {}",
                        fast.ns
                    );
                    let is_disjoint = ["trees", "cycles"].contains(&&*algorithm.name);
                    let most = if is_disjoint { 0.03 } else { 1.1 };
                    assert!((ratio - 1.0).abs() < most, "{which}");
                    n_cases[usize::from(is_disjoint)] += 1;
                    n += 1;
                    n_apart += usize::from((ratio - 1.0).abs() > 0.02);
                    all.push((ratio, which));
                }
            }
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        println!(
            "{name} {text}: {n} cases, {n_apart} over 2 %; from {} to {}",
            all[0].1,
            all[n - 1].1
        );
        let at = |part: usize| all[(n - 1) * part / 20].0;
        println!(
            "  5 % {:.3}, quartiles {:.3} {:.3} {:.3}, 95 % {:.3}",
            at(1),
            at(5),
            at(10),
            at(15),
            at(19)
        );
    }
    n_cases
}

#[test]
fn trees_take_as_long_on_both_players() {
    let n_cases = trees_are_compared(&[
        ("ideal-torus", "5x7"),
        ("ideal-torus", "4x4+2"),
        ("hx2mesh", "8x4"),
        ("tofu-d", "4x2x4"),
    ]);
    assert!(n_cases[0] > 300 && n_cases[1] >= 90, "{n_cases:?}");
}

#[test]
#[ignore = "takes long: cargo test -p hopbine-torus --test torus -- --ignored"]
fn trees_on_further_shapes() {
    let n_cases = trees_are_compared(&[
        ("ideal-torus", "8x4"),
        ("ideal-torus", "4x4x4"),
        ("ideal-torus", "5x5x5"),
        ("ideal-torus", "4x4+4"),
        ("tofu-d", "4x4x4"),
    ]);
    assert!(n_cases[0] > 200 && n_cases[1] >= 90, "{n_cases:?}");
}

/// Compares both simulations for trees with parts of different sizes.
#[test]
fn trees_with_parts_that_differ_take_as_long_on_both_players() {
    let machine = Machine::built_in("ideal-torus").unwrap();
    let mut n_cases = 0;
    for (text, weights) in [("5x7", "3,2,2,4"), ("4x4x4", "9,8,7,6,5,12"), ("4x4+4", "1,2,1,1")] {
        let shape: Shape = text.parse().unwrap();
        let network = Network::new(machine.network, &shape, machine.fold).unwrap();
        for collective in [Collective::Bcast, Collective::Reduce] {
            let algorithm = registry::find(collective, &format!("trees-split:{weights}")).unwrap();
            let tree = Tree::of(&algorithm, &network, &machine, &shape, None).unwrap();
            for bytes in [64.0, 65_536.0, 4_194_304.0, 67_108_864.0] {
                let ratio = tree.played(false, bytes).ns / tree.played(true, bytes).ns;
                assert!((ratio - 1.0).abs() < 0.03, "{collective} on {text}, {bytes}: {ratio:.3}");
                n_cases += 1;
            }
        }
    }
    assert_eq!(n_cases, 24);
}

/// Compares both simulations for chains, with the last step of an exscan. Pieces of different lanes that share links
/// meet less often than the fast simulation assumes.
#[test]
fn chains_take_as_long_on_both_players() {
    for (name, text, most) in [("ideal-torus", "5x7", 1.01), ("tofu-d", "4x4x4", 2.1)] {
        let shape: Shape = text.parse().unwrap();
        let machine = Machine::built_in(name).unwrap();
        let network = Network::new(machine.network, &shape, machine.fold).unwrap();
        for collective in [Collective::Scan, Collective::Exscan] {
            let algorithm = registry::find(collective, "chain").unwrap();
            let tree = Tree::of(&algorithm, &network, &machine, &shape, None).unwrap();
            for bytes in [64.0, 65_536.0, 4_194_304.0, 67_108_864.0] {
                let ratio = tree.played(false, bytes).ns / tree.played(true, bytes).ns;
                let most = if bytes > 64.0 { most } else { 1.01 };
                let which = format!("{collective} on {name} {text}, {bytes}: {ratio:.3}");
                assert!(ratio > 0.97 && ratio < most, "{which}");
            }
        }
    }
}

/// Long vectors are extrapolated from a few segments, which in a long chain meet by chance: further bytes must take
/// at least the time of the busiest link.
#[test]
fn further_segments_take_at_least_the_time_of_the_busiest_link() {
    let shape: Shape = "6x6x6".parse().unwrap();
    let machine = Machine::built_in("tofu-d").unwrap();
    let network = Network::new(machine.network, &shape, machine.fold).unwrap();
    let algorithm = registry::find(Collective::Scan, "chain").unwrap();
    let tree = Tree::of(&algorithm, &network, &machine, &shape, None).unwrap();
    let Tree { schedule, flow, exact, .. } = &tree;
    let profile = Profile::Hopbine { segment_bytes: 16_384, call: CallForm::Repeated };
    let ns = |bytes| profile.play(schedule, flow, exact, &machine, bytes, false).unwrap().ns;
    let [short, long] = [4_194_304.0, 16_777_216.0];
    // Each port sends its part of the vector to a neighbour, over the same link as the others.
    let least = (long - short) / f64::from(schedule.ports) / machine.speeds().link;
    let [short, long] = [short, long].map(ns);
    assert!(long - short >= least, "{short} and {long}, {least}");
}
