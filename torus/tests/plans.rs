//! Golden plans, round trips of the text forms, and random schedules.
//!
//! `HOPBINE_BLESS=1 cargo test -p hopbine-torus --test torus plans` rewrites the golden files.

use std::path::Path;

use hopbine_torus::geometry::{Axis, RankMap, Shape, Vertex};
use hopbine_torus::plan::{
    Expect, Flow, Listed, Plan, PlanFault, Schedule, Split, TextError, check, max_ports,
    sent_positions, traffic,
};
use hopbine_torus::registry;
use hopbine_torus::{Algorithm, Collective, Position, Rank, Request};
use proptest::prelude::*;

fn schedule(collective: &str, algorithm: &str, shape: &str, ports: u32, root: u32) -> Schedule {
    let collective: Collective = collective.parse().unwrap();
    let request = Request {
        shape: shape.parse().unwrap(),
        map: RankMap::RowMajor,
        root: Rank(root),
        ports: Some(ports),
    };
    registry::find(collective, algorithm).unwrap().schedule(&request).unwrap()
}

#[test]
fn golden_plans() {
    let cases = [
        ("allreduce", "bine", "8", 2, 0, 3),
        ("allreduce", "swing", "8", 1, 0, 3),
        ("allreduce", "bine-l", "2x4", 2, 0, 5),
        ("allreduce", "mixed", "3x5", 2, 0, 7),
        ("allreduce", "multiplying-l", "6", 1, 0, 4),
        ("reduce-scatter", "bine", "8", 1, 0, 1),
        ("reduce-scatter", "bine-send", "8", 1, 0, 1),
        ("reduce-scatter", "bine-two", "8", 1, 0, 0),
        ("allgather", "bucket", "2x3", 2, 0, 4),
        ("bcast", "bine", "2x2", 1, 3, 1),
        ("bcast", "bine-tree", "8", 1, 2, 2),
        ("gather", "mixed", "2x3", 1, 4, 3),
        ("scatter", "circulant", "7", 1, 6, 6),
        ("reduce", "bine-tree", "4x4", 1, 5, 6),
        ("alltoall", "doubling", "8", 1, 0, 2),
        ("alltoall", "pairwise", "2x3", 3, 0, 1),
        ("alltoall", "hierarchical", "2+2", 1, 0, 2),
        ("barrier", "circulant", "5", 1, 0, 2),
    ];
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("HOPBINE_BLESS").is_some();
    for (collective, algorithm, shape, ports, root, rank) in cases {
        let schedule = schedule(collective, algorithm, shape, ports, root);
        let plan = schedule.expand().unwrap().plan(Rank(rank));
        let text = format!("{schedule}\n{plan}");
        let file = dir.join(format!("{collective}-{algorithm}-{shape}-p{ports}.txt"));
        if bless {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(&file, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(golden, text, "{} (HOPBINE_BLESS=1 rewrites it)", file.display());
    }
}

/// If leaders handle the blocks of other ranks, the text of a plan lists the positions with memory, and reading the
/// text restores them.
#[test]
fn texts_tell_where_there_is_room() {
    let mut n_without = 0;
    for (shape, algorithm) in
        [("2+4", "multi-leader:2"), ("2+5", "multi-leader:2"), ("3+2", "hierarchical")]
    {
        let schedule = schedule("alltoall", algorithm, shape, 1, 0);
        let expansion = schedule.expand().unwrap();
        for rank in Rank::first(expansion.n_ranks()) {
            let plan = expansion.plan(rank);
            let text = plan.to_string();
            let read: Plan = text.parse().unwrap();
            assert_eq!(read, plan, "{algorithm} on {shape}");
            let space = |plan: &Plan| plan.lanes[0].space.clone();
            for at in Position::first(space(&plan).n_positions) {
                let has_room = space(&plan).has_room(rank, at);
                assert_eq!(space(&read).has_room(rank, at), has_room, "{at} in\n{text}");
                n_without += u32::from(!has_room);
            }
        }
    }
    assert!(n_without > 100, "{n_without}");
}

#[test]
fn bad_texts_name_the_line() {
    let good = schedule("allreduce", "bine", "4", 1, 0);
    let plan = good.expand().unwrap().plan(Rank(0)).to_string();
    let cases = [
        (good.to_string().replace("ports 1", "ports 9"), "line 10, `ports 9`: 9 ports"),
        (good.to_string().replace("shape 4", "shape 70000x70000"), "`: the shape has more than"),
        (good.to_string().replace("shape 4", "shape 4y"), "line 3"),
        (good.to_string().replace("patterns bine", "patterns binary"), "line 6"),
        (good.to_string().replace("root 0\n", ""), "expected `root ...`"),
        (format!("{good}lanes 1\n"), "line 11, `lanes 1`: expected the end"),
        (
            schedule("allreduce", "bine-l", "8", 1, 0)
                .to_string()
                .replace("far-first", "near-first"),
            "bine has none in near-first order on a dimension of size 8",
        ),
    ];
    for (text, expected) in cases {
        let message = text.parse::<Schedule>().unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let cases = [
        (plan.replace("send to 1:", "send to 1"), "line 6"),
        (plan.replace("step reduce", "step add"), "one of copy reduce"),
        (plan.replace("of vector", "of something"), "one of vector blocks pairs token"),
        (plan.replace("step reduce\n", "order 1..4 0..2\nstep reduce\n"), "4 blocks, one for"),
        (plan.replace("step reduce\n", "order 1..4 1..2\nstep reduce\n"), "every block once"),
        (
            plan.replace(", 4 positions", ", 4000000000 positions")
                .replace("step reduce\n", "order 0..4000000000\nstep reduce\n"),
            "134217728 blocks at most",
        ),
        (
            format!("{plan}  send to 1: 0..1\nnonsense\n"),
            "expected the end, or `lane port`, `step`",
        ),
        (plan.replace("0..2", "2..2"), "none empty"),
    ];
    for (text, expected) in cases {
        let message = text.parse::<Plan>().unwrap_err().to_string();
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn the_number_of_steps_is_logarithmic_on_every_shape() {
    for text in ["23", "5x7", "6x9x4", "48x69x48", "2x3x2x2x3x2", "31x2"] {
        let shape: Shape = text.parse().unwrap();
        let bound: u32 =
            shape.sizes().iter().map(|size| size.next_power_of_two().trailing_zeros()).sum();
        let request = Request { shape, map: RankMap::RowMajor, root: Rank(0), ports: Some(1) };
        let mixed = registry::find(Collective::ReduceScatter, "mixed").unwrap();
        let plan = mixed.schedule(&request).unwrap().expand().unwrap().plan(Rank(0));
        assert!(plan.n_steps() as u32 <= bound, "{text}: {} > {bound}", plan.n_steps());
    }
}

/// algorithms.md section 3: on power-of-two shapes every message is one run of positions, for every starting
/// dimension and direction.
#[test]
fn powers_of_two_send_single_runs() {
    for text in ["8", "16", "32", "4x4", "8x4", "4x4x4", "2x4x8", "16x16x16"] {
        let shape: Shape = text.parse().unwrap();
        for family in ["bine", "doubling", "mixed", "multiplying"] {
            let request = Request {
                shape: shape.clone(),
                map: RankMap::RowMajor,
                root: Rank(0),
                ports: None,
            };
            let algorithm = registry::find(Collective::Allreduce, family).unwrap();
            let schedule = algorithm.schedule(&request).unwrap();
            for rank in [0, 1, shape.n_ranks() / 2, shape.n_ranks() - 1] {
                let plan = schedule.expand().unwrap().plan(Rank(rank));
                let steps = plan.lanes.iter().flat_map(|lane| &lane.steps);
                let sends = steps.flat_map(|step| &step.sends);
                assert!(sends.map(|send| send.runs.len()).max() <= Some(1), "{family} {text}");
            }
        }
    }
}

#[test]
fn the_whole_of_fugaku_plans() {
    let schedule = schedule("allreduce", "mixed", "48x69x48", 6, 0);
    let plan = schedule.expand().unwrap().plan(Rank(77_777));
    assert_eq!(plan.n_ranks, 158_976);
    assert_eq!(plan.lanes.len(), 6);
    let others = u64::from(plan.n_ranks) - 1;
    for lane in &plan.lanes {
        assert_eq!(sent_positions(lane), 2 * others);
    }
}

/// In a gather the root receives every other rank's block once; in a scatter it sends each of them once.
#[test]
fn what_passes_the_root_is_minimal() {
    for (collective, name, ports) in [
        ("gather", "mixed", 4),
        ("gather", "linear", 3),
        ("scatter", "knomial", 1),
        ("scatter", "linear", 4),
    ] {
        let schedule = schedule(collective, name, "2x3", ports, 4);
        let expansion = schedule.expand().unwrap();
        let collective = schedule.collective;
        let promised = registry::find(collective, name).unwrap().promises(&schedule.shape);
        assert_eq!(promised.at_root, Some(5));
        assert!(check(&expansion, promised).is_empty(), "{collective} {name}");
        let more = Expect { at_root: Some(6), ..promised };
        let parts = u64::from(expansion.lanes()[0].part.units);
        let found: Vec<PlanFault> =
            check(&expansion, more).into_iter().map(|found| found.fault).collect();
        let fault = PlanFault::AtRoot { moved: 5 * parts, expected: 6 * parts };
        assert_eq!(found, [fault], "{collective} {name}");
    }
}

/// The root of a bcast may send from read-only memory.
#[test]
fn nothing_reaches_the_root_of_a_bcast() {
    for algorithm in registry::algorithms(Collective::Bcast) {
        for (shape, root) in [("8", 5), ("2x3", 4), ("5x7", 34), ("4x4x4", 21)] {
            let shape: Shape = shape.parse().unwrap();
            if algorithm.serves(&shape).is_err() {
                continue;
            }
            let request = Request { shape, map: RankMap::RowMajor, root: Rank(root), ports: None };
            let plan = algorithm.schedule(&request).unwrap().expand().unwrap().plan(Rank(root));
            let mut steps = plan.lanes.iter().flat_map(|lane| &lane.steps);
            assert!(
                steps.all(|step| step.recvs.is_empty()),
                "{} {}",
                algorithm.name,
                request.shape
            );
        }
    }
}

/// Trees have the fewest steps in each dimension. Their sum is the shape's minimum if all sizes are powers of the
/// radix. A broken promise is a violation.
#[test]
fn trees_have_the_fewest_steps() {
    for (collective, name, shape, expected, minimal) in [
        ("gather", "doubling", "8", 3, 3),
        ("gather", "bine", "12", 4, 4),
        ("gather", "circulant", "7", 3, 3),
        ("gather", "knomial", "16", 2, 2),
        ("scatter", "knomial", "5x5", 4, 3),
        ("scatter", "direct", "9", 1, 1),
        ("scatter", "mixed", "2x3", 2, 2),
        ("scatter", "doubling", "4x4+4", 5, 3),
        ("bcast", "bine-tree", "6x6", 6, 6),
        ("reduce", "knomial-tree", "17", 3, 3),
    ] {
        let schedule = schedule(collective, name, shape, 1, 1);
        let expansion = schedule.expand().unwrap();
        let what = format!("{collective} {name} on {shape}");
        let promised = registry::find(schedule.collective, name).unwrap().promises(&schedule.shape);
        assert_eq!(promised.steps, Some(expected), "{what}");
        let violations = check(&expansion, promised);
        assert!(violations.is_empty(), "{what}: {}", violations[0]);
        let counted = traffic(&expansion, &schedule.shape, |rank| Vertex(rank.0));
        assert_eq!((counted.n_steps as u32, counted.min_steps), (expected, minimal), "{what}");
        let broken = Expect { steps: Some(expected - 1), ..promised };
        let found: Vec<PlanFault> =
            check(&expansion, broken).into_iter().map(|found| found.fault).collect();
        let fault = PlanFault::Steps { found: expected as usize, expected: expected - 1 };
        assert_eq!(found, [fault], "{what}");
    }
}

/// The groups of opposed ports are shifted (algorithms.md section 4): blocks still arrive, also on several dimensions
/// and with groups of several sizes, and in each step but the last the busiest link has the messages of one port.
#[test]
fn opposed_ports_use_idle_links() {
    for (collective, n_phases) in [("allreduce", 2), ("reduce-scatter", 1), ("allgather", 1)] {
        for (name, shape, ports) in [
            ("doubling", "8", 2),
            ("doubling", "16", 2),
            ("doubling", "64", 2),
            ("doubling", "8x16", 4),
            ("doubling", "8x4x2", 6),
            ("multiplying", "12", 2),
            ("multiplying", "24x16", 4),
        ] {
            let schedule = schedule(collective, name, shape, ports, 0);
            let expansion = schedule.expand().unwrap();
            let what = format!("{collective} {name} on {shape}");
            let promised = registry::find(schedule.collective, name).unwrap();
            let violations = check(&expansion, promised.promises(&schedule.shape));
            assert!(violations.is_empty(), "{what}: {}", violations[0]);
            if (name, ports) == ("doubling", 2) {
                let counted = traffic(&expansion, &schedule.shape, |rank| Vertex(rank.0));
                let n_steps = (counted.n_steps / n_phases) as f64;
                let expected = n_phases as f64 * ((n_steps - 1.0) / 4.0 + 0.5);
                assert_eq!(counted.step_load, expected, "{what}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Random shapes, maps, roots, ports and algorithms: proved, and equal after a round trip.
    #[test]
    fn random_schedules_hold(
        axes in prop::collection::vec((1u32..8, any::<bool>()), 1..=4),
        ranks_per_node in 0u32..5,
        seed in any::<u64>(),
        weights in prop::collection::vec(1u32..=5, 12),
    ) {
        let axis = |(size, wraps)| if wraps { Axis::torus(size) } else { Axis::mesh(size) };
        let mut shape = Shape::from_axes(axes.into_iter().map(axis).collect()).unwrap();
        if ranks_per_node > 0 {
            shape = shape.with_ranks_per_node(ranks_per_node).unwrap();
        }
        let n = shape.n_ranks();
        prop_assume!(n <= 160);
        let served: Vec<_> =
            registry::all().into_iter().filter(|a| a.serves(&shape).is_ok()).collect();
        let algorithm = &served[(seed >> 8) as usize % served.len()];
        let map = match seed % 3 {
            0 => RankMap::RowMajor,
            1 => RankMap::ColumnMajor,
            _ => {
                let mut nodes: Vec<Vertex> = shape.vertices().collect();
                nodes.sort_by_key(|node| (u64::from(node.0) + 1).wrapping_mul(seed | 1));
                RankMap::from_vertices(&shape, nodes).unwrap()
            }
        };
        let root = if algorithm.collective.is_rooted() { (seed >> 20) as u32 % n } else { 0 };
        let ports = Some(1 + (seed >> 40) as u32 % max_ports(&shape));
        let expect = algorithm.promises(&shape);
        let request = Request { shape, map, root: Rank(root), ports };
        let equal = algorithm.schedule(&request).unwrap();
        // Half of the schedules have parts of different sizes.
        let weights = &weights[..equal.n_parts() as usize * usize::from(seed % 2 == 0)];
        let schedule = Schedule { split: Split::new(weights).unwrap_or_default(), ..equal };
        prop_assert_eq!(&schedule.to_string().parse::<Schedule>().unwrap(), &schedule);
        let by_name = registry::find(schedule.collective, &Algorithm::of_schedule(&schedule).name);
        prop_assert_eq!(&by_name.unwrap().schedule(&request).unwrap(), &schedule);
        let expansion = schedule.expand().unwrap();
        let violations = check(&expansion, expect);
        prop_assert!(violations.is_empty(), "{}: {}", algorithm.name, violations[0]);
        let some = expansion.plan(Rank((seed >> 30) as u32 % n));
        prop_assert_eq!(&some.to_string().parse::<Plan>().unwrap(), &some);
    }
}

/// A text with some lines removed or repeated, and some numbers changed.
fn corrupted(text: &str, dice: &[(u8, usize, usize)]) -> String {
    const NUMBERS: [&str; 10] =
        ["0", "1", "2", "7", "70000", "4294967295", "4294967296", "-1", "x", ""];
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for &(way, at, what) in dice {
        let n_lines = lines.len();
        if n_lines == 0 {
            break;
        }
        let at = at % n_lines;
        match way % 4 {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[what % n_lines].clone()),
            _ => {
                let line = lines[at].clone();
                let is_digit = |(_, c): &(usize, char)| c.is_ascii_digit();
                let digits: Vec<usize> =
                    line.char_indices().filter(is_digit).map(|(at, _)| at).collect();
                let Some(&digit) = digits.get(what % digits.len().max(1)) else { continue };
                let number = NUMBERS[what / 7 % NUMBERS.len()];
                lines[at] = format!("{}{number}{}", &line[..digit], &line[digit + 1..]);
            }
        }
    }
    lines.join("\n")
}

proptest! {
    /// For any file the result is a schedule or plans that can be checked, or an error with a line of the file.
    #[test]
    fn no_text_does_harm(
        which in any::<prop::sample::Index>(),
        shape in prop::sample::select(vec!["4", "2x3", "5", "2x2+2", "8"]),
        dice in prop::collection::vec((any::<u8>(), 0usize..1000, 0usize..1000), 1..5),
    ) {
        let shape: Shape = shape.parse().unwrap();
        let served: Vec<_> =
            registry::all().into_iter().filter(|a| a.serves(&shape).is_ok()).collect();
        let algorithm = which.get(&served);
        let request = Request { shape, map: RankMap::ColumnMajor, root: Rank(0), ports: None };
        let schedule = algorithm.schedule(&request).unwrap();
        let named = |text: &str, error: TextError| {
            let has_line = error.line >= 1 && error.line <= text.lines().count() + 1;
            prop_assert!(has_line, "{}", error);
            Ok(())
        };

        let text = corrupted(&schedule.to_string(), &dice);
        let shape = text.lines().find_map(|line| line.strip_prefix("shape ")?.parse::<Shape>().ok());
        // To check a larger shape would take long.
        let is_small = shape.is_none_or(|shape| shape.n_ranks() <= 16);
        match is_small.then(|| text.parse::<Schedule>()) {
            None => {}
            Some(Err(error)) => named(&text, error)?,
            Some(Ok(read)) => {
                prop_assert_eq!(&read.to_string().parse::<Schedule>().unwrap(), &read);
                let _ = read.expand().map(|expansion| check(&expansion, Expect::default()));
            }
        }

        let expansion = schedule.expand().unwrap();
        let n = schedule.shape.n_ranks();
        let mut plans: Vec<Plan> = (0..n).map(|rank| expansion.plan(Rank(rank))).collect();
        let rank = dice[0].1 % n as usize;
        let text = corrupted(&plans[rank].to_string(), &dice);
        match text.parse::<Plan>() {
            Err(error) => named(&text, error)?,
            Ok(read) => {
                prop_assert_eq!(&read.to_string().parse::<Plan>().unwrap(), &read);
                plans[rank] = read;
                let _ = Listed::new(plans).map(|listed| check(&listed, Expect::default()));
            }
        }
    }
}
