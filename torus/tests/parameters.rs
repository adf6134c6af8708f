//! Patterns with parameters, in every collective and form that they serve.

use hopbine_torus::collectives::WalkForm;
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::patterns::PatternKind;
use hopbine_torus::plan::{
    Expect, Flow, Interleave, Placement, Recipe, Schedule, ScheduleError, Split, StepOrder,
    WalkRecipe, check, max_ports,
};
use hopbine_torus::registry::{self, Algorithm};
use hopbine_torus::{Collective, Rank, Request};

fn request(shape: &Shape, root: u32, ports: Option<u32>) -> Request {
    Request { shape: shape.clone(), map: RankMap::RowMajor, root: Rank(root), ports }
}

/// Proves an algorithm on a shape for three roots and all numbers of ports; returns the number of proofs.
fn prove(algorithm: &Algorithm, shape: &Shape) -> u32 {
    let mut n_proved = 0;
    let last = shape.n_ranks() - 1;
    let roots = if algorithm.collective.is_rooted() { vec![0, last / 2, last] } else { vec![0] };
    for (root, ports) in roots.iter().flat_map(|&r| (1..=max_ports(shape)).map(move |p| (r, p))) {
        let schedule = algorithm.schedule(&request(shape, root, Some(ports))).unwrap();
        let expect = algorithm.promises(shape);
        let violations = check(&schedule.expand().unwrap(), expect);
        let name = format!("{} {} on {shape}", algorithm.collective, algorithm.name);
        assert!(violations.is_empty(), "{name}, root {root}: {}", violations[0]);
        n_proved += 1;
    }
    n_proved
}

#[test]
fn patterns_with_parameters_serve_every_collective() {
    // A name of one pattern stands for the rows of its family, a name of several patterns for the rows of `mixed`.
    let cases = [
        ("9", "knomial:3"),
        ("7", "knomial:3"),
        ("9", "balanced"),
        ("2x9", "multiplying:2/balanced"),
        ("8x6", "balanced/bine"),
        ("23", "knomial:5"),
        ("16", "bruck:4"),
        ("11", "bruck:3"),
        ("12", "kring:3"),
        ("8", "kring:2"),
        ("32", "multiplying:4,4,2"),
        ("12", "multiplying:2,3,2"),
        ("6x4", "kring:2"),
        ("6x8", "kring:3/kring:2"),
        ("6x5", "kring:2/bruck:2"),
        ("4x6", "knomial:3/kring:6"),
        ("8x3", "multiplying:2,4/knomial:2"),
        ("4x6+3", "multiplying:2,2/knomial:4/ring"),
        ("5x4x6", "bruck:3/bine/kring:3"),
        ("7m+4", "knomial:3/kring:2"),
    ];
    let mut n_proved = 0;
    for (text, patterns) in cases {
        let shape: Shape = text.parse().unwrap();
        let suffixes = ["", "-block", "-send", "-two", "-l", "-tree", "-tree-near", "-tree-far"];
        let names = suffixes.iter().map(|suffix| format!("{patterns}{suffix}"));
        let mut n_found = 0;
        for (collective, name) in
            names.flat_map(|name| Collective::ALL.map(|collective| (collective, name.clone())))
        {
            let Ok(algorithm) = registry::find(collective, &name) else { continue };
            match algorithm.serves(&shape) {
                Ok(()) => n_proved += prove(&algorithm, &shape),
                // The groups of this pattern do not nest.
                Err(error) => {
                    assert!(matches!(error, ScheduleError::NotNested { .. }), "{name}: {error}");
                    assert!(name.ends_with("-l"), "{name}");
                }
            }
            n_found += 1;
        }
        assert!(n_found >= 3, "{patterns}: {n_found} rows");
    }
    println!("{n_proved} schedules proved");
}

/// Every order of blocks that a form accepts gives right results.
#[test]
fn forms_have_only_orders_of_blocks_with_which_they_are_right() {
    let mut resent = Vec::new();
    for (collective, text) in Collective::ALL.into_iter().flat_map(|c| ["4", "3x4"].map(|t| (c, t)))
    {
        let shape: Shape = text.parse().unwrap();
        let root = if collective.is_rooted() { Rank(1) } else { Rank(0) };
        for (form, positions) in
            WalkForm::ALL.into_iter().flat_map(|form| Placement::ALL.map(|order| (form, order)))
        {
            let recipe = WalkRecipe {
                form,
                patterns: vec![PatternKind::Multiplying { max_radix: 4 }; shape.n_dims()],
                order: StepOrder::NearFirst,
                interleave: Interleave::RoundRobin,
                positions,
            };
            let schedule = Schedule {
                collective,
                shape: shape.clone(),
                map: RankMap::RowMajor,
                root,
                ports: 1,
                split: Split::default(),
                recipe: Recipe::Walk(recipe),
            };
            match schedule.expand() {
                Ok(expansion) => {
                    let violations = check(&expansion, Expect::default());
                    assert!(violations.is_empty(), "{schedule}{}", violations[0]);
                    if positions == Placement::Resend {
                        resent.push((collective, form));
                    }
                }
                Err(ScheduleError::Form { .. }) => {}
                Err(error) => {
                    let refused =
                        ScheduleError::Placement { collective, form: form.name(), positions };
                    assert_eq!(error, refused);
                }
            }
        }
    }
    resent.dedup();
    let butterfly = |collective| (collective, WalkForm::Butterfly);
    assert_eq!(resent, [Collective::ReduceScatter, Collective::Allgather].map(butterfly));
}

const FUSED: [&str; 24] = [
    "2",
    "3",
    "7",
    "8",
    "9",
    "12",
    "23",
    "27",
    "31",
    "4x4",
    "5x7",
    "8x4",
    "2x3x2",
    "3x3x3",
    "6x9x4",
    "4x6mx3",
    "2x3x2x2x3x2",
    "11x13",
    "4+2",
    "2x3+4",
    "5x7+3",
    "4x4+13",
    "1",
    "1x6",
];

/// Shapes with more ranks are tested with few limits of messages; the ignored test has all.
const LARGE: u32 = 24;

#[test]
fn fused_steps_on_shapes_of_every_kind() {
    steps_are_fused(false);
}

#[test]
#[ignore = "takes long: cargo test -p hopbine-torus --test torus -- --ignored"]
fn fused_steps_with_every_limit() {
    steps_are_fused(true);
}

/// Latency forms with fused steps: proved, including identical bits, for limits of messages. No rank sends or
/// receives more than that in a step, and fusing never adds a step.
fn steps_are_fused(all: bool) {
    let (mut n_proved, mut n_shorter) = (0, 0);
    for text in FUSED {
        let shape: Shape = text.parse().unwrap();
        let limits: &[u32] = match all || shape.n_ranks() <= LARGE {
            true => &[1, 2, 3, 4, 6, 7, 12],
            false => &[3, 12],
        };
        for &messages in limits {
            for collective in [Collective::Allreduce, Collective::Barrier] {
                let name = format!("fused:{messages}-l");
                let algorithm = registry::find(collective, &name).unwrap();
                n_proved += prove(&algorithm, &shape);
                let schedule = algorithm.schedule(&request(&shape, 0, None)).unwrap();
                let again: Schedule = schedule.to_string().parse().unwrap();
                assert_eq!(again, schedule);
                let Recipe::Walk(walk) = &schedule.recipe else { panic!("a walk") };
                let plain = WalkRecipe { interleave: Interleave::RoundRobin, ..walk.clone() };
                let plain = Schedule { recipe: Recipe::Walk(plain), ..schedule.clone() };
                let n_steps = |schedule: &Schedule| schedule.expand().unwrap().lanes()[0].n_steps;
                assert!(n_steps(&schedule) <= n_steps(&plain), "{name} on {text}");
                n_shorter += u32::from(n_steps(&schedule) < n_steps(&plain));
                let flow = schedule.expand().unwrap();
                for rank in Rank::first(flow.n_ranks()) {
                    let plan = flow.plan(rank);
                    for step in plan.lanes.iter().flat_map(|lane| &lane.steps) {
                        let most = step.sends.len().max(step.recvs.len());
                        // The exception is a fold onto a core in more dimensions than the limit allows.
                        let is_fold = step.sends.len().min(step.recvs.len()) == 0;
                        assert!(most <= messages as usize || is_fold, "{name} on {text}: {most}");
                    }
                }
            }
        }
    }
    println!("{n_proved} schedules proved");
    assert!(n_shorter > 50, "{n_shorter}");
}

/// Fusing applies to all patterns whose groups nest, not only to one family.
#[test]
fn steps_of_all_nesting_patterns_are_fused() {
    for (shape, patterns, order, messages, n_steps) in [
        ("8x4", "bine bine", "far-first", 3, 3),
        ("8x4", "doubling doubling", "near-first", 7, 2),
        ("9x4", "balanced bine", "far-first", 8, 2),
        ("12x6", "multiplying:2,3,2 multiplying:3,2", "near-first", 5, 3),
        ("7x8", "direct circulant", "far-first", 3, 3),
        ("27", "knomial:3", "far-first", 8, 2),
        ("11x6", "bine multiplying:4", "far-first", 6, 5),
        ("4x3+4", "bine direct direct", "far-first", 5, 3),
    ] {
        let text = |messages: &str, form: &str| {
            format!(
                "schedule allreduce\nform {form}\nshape {shape}\nmap row-major\nroot 0\n\
                 patterns {patterns}\norder {order}\ninterleave fused:{messages}\n\
                 positions path\nports 2\n"
            )
        };
        let schedule: Schedule = text(&messages.to_string(), "latency").parse().unwrap();
        let flow = schedule.expand().unwrap();
        let found: Vec<usize> = flow.lanes().iter().map(|lane| lane.n_steps).collect();
        assert_eq!(found, [n_steps, n_steps], "{patterns} on {shape}");
        let violations = check(&flow, Expect::default());
        assert!(violations.is_empty(), "{patterns} on {shape}: {}", violations[0]);
        let refused = |messages, form| text(messages, form).parse::<Schedule>().unwrap_err();
        assert!(refused("0", "latency").to_string().contains("1 or more"));
        assert!(refused("2", "two-phase").to_string().contains("use the latency form"));
    }
}

#[test]
fn names_with_wrong_numbers_say_which_would_be_right() {
    for (collective, name) in [
        (Collective::Allreduce, "multiplying:1"),
        (Collective::Allreduce, "fused:0-l"),
        (Collective::Allreduce, "fused:13-l"),
        (Collective::Alltoall, "multi-leader:x"),
        (Collective::Alltoall, "pairwise-batched:0"),
        (Collective::Bcast, "bine/rings"),
    ] {
        let error = registry::find(collective, name).unwrap_err().to_string();
        assert!(error.contains("are 2 or more, leaders"), "{error}");
    }
    let error = registry::find(Collective::Bcast, "bin").unwrap_err().to_string();
    assert!(error.contains("known are mixed, ") && !error.contains("2 or more"), "{error}");
}

/// An alias, with every suffix, gives the same plans as the name that it stands for.
#[test]
fn aliases_are_said_to_be_such_and_do_the_same() {
    let shape: Shape = "2x3+4".parse().unwrap();
    let plans = |algorithm: &Algorithm| {
        let schedule = algorithm.schedule(&request(&shape, 0, Some(2))).unwrap();
        let expansion = schedule.expand().unwrap();
        Rank::first(shape.n_ranks()).map(|rank| expansion.plan(rank)).collect::<Vec<_>>()
    };
    let listed = registry::algorithms(Collective::Alltoall);
    for (name, meant) in [("hierarchical", "multi-leader:1"), ("node-aware", "locality-aware:node")]
    {
        assert!(listed.iter().any(|row| row.name == name));
        for ending in ["", "-nonblocking", "-batched:2"] {
            let find = |name: &str| {
                registry::find(Collective::Alltoall, &format!("{name}{ending}")).unwrap()
            };
            let (alias, same) = (find(name), find(meant));
            assert_eq!(alias.alias_of, Some(format!("{meant}{ending}")));
            assert_eq!(alias.summary(), format!("another name of {meant}{ending}"));
            assert_eq!((same.alias_of.as_deref(), plans(&alias)), (None, plans(&same)));
        }
    }
    assert_eq!(listed.iter().filter(|row| row.alias_of.is_some()).count(), 4);
}
