//! The choices of decision tables, and the errors of invalid tables.

use hopbine_torus::choose::{Features, Knowledge, ShmLimits, TableProblem, Wire};
use hopbine_torus::plan::{max_ports, traffic};
use hopbine_torus::{Collective, RankMap, Request, Shape};
use proptest::prelude::*;

use super::tuning::Tuning;

#[test]
fn short_vectors_take_a_latency_form() {
    let chosen = |shape: &str, bytes| {
        let table = Tuning::built_in(Wire::Network);
        table.choose(Collective::Allreduce, &shape.parse().unwrap(), bytes, 4).algorithm.name
    };
    assert_eq!(["7", "23", "48x69x48"].map(|shape| chosen(shape, 8)), ["multiplying-l"; 3]);
    assert_eq!(["4x4", "13"].map(|shape| chosen(shape, 8)), ["mixed-l"; 2]);
    assert_eq!(chosen("4x4", 1 << 20), "mixed");
}

/// Data that the chosen algorithms send between nodes of several ranks, in multiples of n, over all ranks. A node
/// sends at most one short vector per step, and of long vectors only what has to leave it.
#[test]
fn nodes_send_what_one_rank_would() {
    let counted = |collective, text: &str, bytes| {
        let shape: Shape = text.parse().unwrap();
        let choice = Tuning::built_in(Wire::Network).choose(collective, &shape, bytes, 4);
        let (map, ports) = (RankMap::ColumnMajor, Some(choice.ports));
        let request =
            Request { shape: shape.clone(), map: map.clone(), root: hopbine_torus::Rank(0), ports };
        let expansion = choice.algorithm.schedule(&request).unwrap().expand().unwrap();
        let found = traffic(&expansion, &shape, |rank| map.vertex_of(&shape, rank));
        (choice.algorithm.name.into_owned(), found.between_nodes * f64::from(found.n_ranks))
    };
    use Collective as C;
    for (collective, bytes, name, between) in [
        // 16 nodes: each sends in 4 steps.
        (C::Allreduce, 8, "mixed-leader-l", 64.0),
        (C::Allreduce, 1 << 20, "mixed", 2.0 * 15.0),
        (C::ReduceScatter, 1 << 20, "mixed", 15.0),
        (C::Allgather, 1 << 20, "mixed", 15.0),
        (C::Bcast, 8, "mixed-tree", 15.0),
        (C::Reduce, 8, "mixed-tree", 15.0),
        // A scatter through 4 nodes, and an allgather that sends nothing to the root.
        (C::Bcast, 1 << 20, "mixed", 15.0 + 2.0 - 15.0 / 64.0),
        (C::Reduce, 1 << 20, "mixed", 15.0 + 2.0),
        (C::Gather, 1 << 10, "mixed", 2.0),
        (C::Scatter, 1 << 10, "mixed", 2.0),
        (C::Alltoall, 1 << 10, "node-aware-batched:8", 60.0),
    ] {
        let found = counted(collective, "4x4+4", bytes);
        assert_eq!(found.0, name, "{collective} of {bytes}");
        assert!((found.1 - between).abs() < 1e-9, "{collective} of {bytes}: {found:?}");
    }
    let shape: Shape = "4x4+4".parse().unwrap();
    let choice = Tuning::built_in(Wire::Network).choose(C::Barrier, &shape, 0, 4);
    assert_eq!(choice.algorithm.name, "mixed-leader");
    assert_eq!(counted(C::Allreduce, "7+4", 8).0, "multiplying-leader-l");
    // Two phases would send another half vector, back to the node that it came from.
    let two = [(C::Bcast, "2"), (C::Reduce, "2"), (C::Bcast, "2+4"), (C::Reduce, "1x2+2")];
    for (collective, text) in two {
        assert_eq!(counted(collective, text, 1 << 20), ("mixed-tree".to_owned(), 1.0));
    }
}

#[test]
fn every_choice_serves() {
    for collective in Collective::ALL {
        for sizes in [&[1][..], &[7], &[2, 3], &[4, 4, 4], &[23, 2]] {
            for bytes in [0, 8, 1 << 10, 1 << 20, 1 << 40] {
                let shape = Shape::torus(sizes).unwrap();
                for wire in Wire::ALL {
                    let choice = Tuning::built_in(wire).choose(collective, &shape, bytes, 6);
                    assert!(choice.ports <= max_ports(&shape));
                    choice.algorithm.serves(&shape).unwrap();
                }
            }
        }
    }
}

/// The algorithms in built-in tables serve the tables' classes, as is required of user tables.
#[test]
fn built_in_tables_pass_what_others_must() {
    for (name, text) in Tuning::BUILT_IN {
        let read: Tuning = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(Some(&read), Tuning::named(name));
        assert_eq!(read.table().name(), name);
    }
    for wire in Wire::ALL {
        assert_eq!(Tuning::named(wire.name()), Some(Tuning::built_in(wire)));
        assert_eq!(Tuning::built_in(wire).table().wire(), wire);
    }
}

/// A table of one collective on two classes.
const SMALL: &str = r#"version = 1
name = "small"
wire = "network"
otherwise = "network"
nearest = false
[class.all]
[class.cubes]
like = ["8x8x8", "16x16x16"]
[class.odd]
prime = "3.."
dims = 1

[[rule]]
collective = "bcast"
class = "cubes"
ports = "..4"
segment = "64KiB"
rows = [
    { bytes = "0..8KiB", algorithm = "bine-tree", ports = 1 },
    { bytes = "8KiB..", algorithm = ["bine", "mixed"], ports = "all", segment = "whole" },
]
[[rule]]
collective = "bcast"
class = "odd"
rows = [{ bytes = "0..", algorithm = "mixed", ports = 2, segment = { parts = 2, least = 8, most = 100 } }]
"#;

fn found(tuning: &Tuning, text: &str, bytes: u64, ports: u32) -> (String, String) {
    let shape: Shape = text.parse().unwrap();
    let of = Features::of(&shape);
    let kind = (Collective::Bcast, Knowledge::Known);
    let found = tuning.find(kind, (&shape, &of), bytes, ports);
    let choice = found.on(Collective::Bcast, &shape, &of);
    let (name, ports, segment) = (&choice.algorithm.name, choice.ports, choice.segment_bytes);
    (found.to_string(), format!("{name} {ports} {segment}"))
}

/// With another table behind it, a rule applies to its own class and ports; without one, also to the nearest shapes.
#[test]
fn shapes_go_by_their_class_or_the_nearest() {
    let strict: Tuning = SMALL.parse().unwrap();
    let network = Tuning::built_in(Wire::Network);
    for (shape, bytes, ports, expected, why) in [
        ("8x8x8", 8192, 4, "bine-tree 1 65536", "table small, line 19: class cubes, up to 8192 B"),
        (
            "8x8x8",
            8193,
            4,
            "bine 4 18446744073709551615",
            "table small, line 20: class cubes, above 8192 B",
        ),
        ("16x16x8", 8, 1, "bine-tree 1 65536", "table small, line 19: class cubes, up to 8192 B"),
        ("15", 300, 6, "mixed 2 75", "table small, line 25: class odd, any size"),
        ("15", 4, 1, "mixed 1 8", "table small, line 25: class odd, any size"),
    ] {
        assert_eq!(found(&strict, shape, bytes, ports), (why.to_owned(), expected.to_owned()));
    }
    for (shape, ports) in [("8x8x8", 6), ("8x8x8+4", 4), ("16", 4), ("32x32x32", 1)] {
        assert_eq!(found(&strict, shape, 1 << 20, ports), found(network, shape, 1 << 20, ports));
    }
    // Without another table all collectives need a rule.
    let (_, text) = Tuning::BUILT_IN[0];
    let own = &SMALL[SMALL.find("[class.all]").unwrap()..];
    let joined =
        text.replace("collective = [\"bcast\", \"reduce\"]", "collective = \"reduce\"") + own;
    let near: Tuning = joined.parse().unwrap();
    for (shape, ports, expected, class) in [
        ("8x8x8", 6, "bine 6 18446744073709551615", "nearest class cubes"),
        ("24x24x24", 1, "bine 1 18446744073709551615", "nearest class cubes"),
        ("8x8x7", 1, "mixed 1 18446744073709551615", "nearest class cubes"),
        ("16", 2, "mixed 2 100", "nearest class odd"),
    ] {
        let (why, how) = found(&near, shape, 1 << 20, ports);
        assert_eq!(how, expected, "{shape}");
        assert!(why.contains(class), "{shape}: {why}");
    }
}

#[test]
fn bad_tables_are_refused_by_line() {
    let line = |text: &str, found: &str| {
        1 + text[..text.find(found).unwrap()].matches('\n').count() as u32
    };
    for (from, to, said) in [
        ("version = 1", "version = 2", "`version = 2` is not known; tables have version 1"),
        ("version = 1\n", "", "`version` is missing; it must be 1"),
        (
            "wire = \"network\"",
            "wire = \"air\"",
            "`wire` is `air`; it must be \"network\" or \"memory\"",
        ),
        (
            "wire = \"network\"",
            "wires = \"network\"",
            "there is no key `wires` here; known are version, name,",
        ),
        (
            "otherwise = \"network\"",
            "otherwise = \"more\"",
            "must be the name of a built-in table: \"network\", \"memory\", \"tofu-d\" or \"mpi\"",
        ),
        (
            "otherwise = \"network\"\n",
            "",
            "`otherwise` is missing; it must be the name of a built-in table",
        ),
        (
            "nearest = false",
            "stage_bytes = \"64K\"",
            "`stage_bytes` is `64K`; it must be a size such as \"512KiB\", or 0 for no copies",
        ),
        (
            "nearest = false",
            "stage_bytes = -1",
            "`stage_bytes` is -1; it must be a size such as \"512KiB\", or 0 for no copies",
        ),
        (
            "wire = \"network\"",
            "wire = \"memory\"\nstage_bytes = 0",
            "`stage_bytes` is 0; it must be left out of a table for wire memory",
        ),
        (
            "nearest = false",
            "shm = \"32KiB\"",
            "`shm` is `32KiB`; it must be limits, such as { flat = \"32KiB\", flat_read = ",
        ),
        (
            "nearest = false",
            "shm = { slots = 3 }",
            "there is no key `slots` here; known are flat, flat_read, staged, staged_pair",
        ),
        (
            "nearest = false",
            "shm = { flat = \"41KiB\" }",
            "`flat` is `41KiB`; it must be a size from 0 B to 40 KiB",
        ),
        (
            "nearest = false",
            "shm = { staged_pair = \"1KiB\" }",
            "`staged_pair` is `1KiB`; it must be a size from 2 KiB to 64 KiB",
        ),
        (
            "nearest = false",
            "shm = { flat_read = \"much\" }",
            "`flat_read` is `much`; it must be a size such as \"128KiB\"",
        ),
        ("nearest = false", "nearest = 0", "`nearest` is 0; it must be true or false"),
        (
            "otherwise = \"network\"\nnearest = false\n",
            "",
            "no rule is for allreduce of known sizes; add one, or name a table",
        ),
        (
            "like = [\"8x8x8\",",
            "like = [\"8x8xq\",",
            "`like` is `8x8xq`; it must be a shape: `8x8xq` is not",
        ),
        (
            "prime = \"3..\"",
            "prime = \"3..2\"",
            "`prime` is `3..2`; it must be a number such as 4, or",
        ),
        ("prime = \"3..\"", "primes = 3", "there is no key `primes` here; known are ranks, nodes,"),
        ("dims = 1", "dims = 7", "no known shape is of class `odd`; give examples"),
        (
            "like = [\"8x8x8\",",
            "dims = 2\nlike = [\"8x8x8\",",
            "8x8x8 is not of class `cubes`: its dims is 3; it must be 2",
        ),
        (
            "collective = \"bcast\"\nclass = \"cubes\"",
            "collective = \"bcost\"\nclass = \"cubes\"",
            "`collective` is `bcost`; it must be one or a list of allreduce,",
        ),
        (
            "class = \"cubes\"",
            "class = \"cube\"",
            "there is no class `cube`; the table has all, cubes, odd",
        ),
        (
            "class = \"cubes\"",
            "class = \"cubes\"\nsizes = \"unknown\"",
            "`sizes` is `unknown`; it must be known for bcast",
        ),
        ("ports = \"..4\"", "ports = \"4..2\"", "`ports` is `4..2`; it must be a number"),
        (
            "segment = \"64KiB\"",
            "segment = \"64K\"",
            "`segment` is `64K`; it must be \"whole\", a size",
        ),
        ("segment = \"64KiB\"\n", "", "`segment` is missing; it must be \"whole\""),
        (
            "least = 8, most = 100",
            "least = 8, most = 7",
            "`segment` is a value of another kind (table); it must be parts",
        ),
        (
            "\"bine-tree\"",
            "\"bean-tree\"",
            "`bean-tree` is not an algorithm for bcast; known are mixed, ",
        ),
        ("\"bine-tree\"", "\"knomial:1-tree\"", "`knomial:1-tree` is not an algorithm for bcast"),
        (
            "\"bine-tree\"",
            "\"bine-tree-split:1,2\"",
            "`bine-tree-split:1,2` splits data over 2 ports; its row must have `ports = 2`, and its rule",
        ),
        (
            "0..8KiB",
            "1..8KiB",
            "no row is for sizes above 0 up to 1 bytes; this row must begin at 0",
        ),
        (
            "8KiB..\"",
            "9KiB..\"",
            "no row is for sizes above 8192 up to 9216 bytes; this row must begin at 8192",
        ),
        (
            "8KiB..\"",
            "7KiB..\"",
            "sizes above 7168 up to 8192 bytes are the row before's, too; this row must begin at 8192",
        ),
        ("0..8KiB", "0..0", "no size is above 0 and up to 0 bytes"),
        ("0..8KiB", "0..", "the row has no end, but another follows; only the last row has none"),
        (
            "8KiB..\"",
            "8KiB..1MiB\"",
            "no row is for more than 1048576 bytes; the last row must have no end",
        ),
        (
            "0..8KiB",
            "0-8KiB",
            "`bytes` is `0-8KiB`; it must be sizes from above the first up to the second",
        ),
        (
            "ports = 1 }",
            "ports = 5 }",
            "the row uses 5 ports, but the rule is for calls that have at most 4",
        ),
        ("ports = 1 }", "ports = 0 }", "`ports` is 0; it must be a number from 1"),
        ("ports = 2,", "ports = \"2\",", "`ports` is `2`; it must be a number from 1"),
        (
            "class = \"odd\"\nrows = [{ bytes = \"0..\", algorithm = \"mixed\"",
            "class = \"odd\"\nrows = [{ bytes = \"0..\", algorithm = [\"doubling\", \"mixed\"]",
            "`doubling` serves no shape of class `odd`",
        ),
        (
            "class = \"cubes\"",
            "class = \"all\"",
            "`bine-tree` does not serve 3, a shape of class `all`",
        ),
        (
            "class = \"odd\"",
            "class = \"cubes\"\nports = 3",
            "for bcast, the rule in line 13 already covers all shapes and ports of this rule",
        ),
        ("name = \"small\"", "name = \"small", "invalid basic string"),
        ("class = \"odd\"\n", "class = \"odd\n", "invalid basic string"),
        ("ports = \"..4\"\n", "[class.odd]\n# twice\n", "a second class `odd`"),
        (
            "ports = \"..4\"\n",
            "[other]\n# no key\n",
            "there is no key `other` here; known are class, rule",
        ),
    ] {
        assert_eq!(SMALL.matches(from).count(), 1, "{from}");
        let text = SMALL.replacen(from, to, 1);
        let error = text.parse::<Tuning>().map(drop).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(said), "{to}: {shown}");
        if !to.is_empty() && !said.contains("no known shape") {
            let expected = line(&text, to.lines().last().unwrap());
            // The line of the wrong key, or of its rule, or of a row of that rule.
            assert!(expected.abs_diff(error.line) <= 4, "{to}: {shown}");
        }
    }
    let hole = SMALL.replacen("8KiB..\"", "9KiB..\"", 1).parse::<Tuning>();
    let problem = TableProblem::Hole { above: 8 << 10, up_to: 9 << 10 };
    assert_eq!(hole.map_err(|error| (error.line, error.problem)), Err((20, problem)));
}

/// Ranks compare the contents of tables, not their text.
#[test]
fn tables_that_say_the_same_are_the_same() {
    let hash = |text: &str| text.parse::<Tuning>().unwrap().table().fingerprint();
    let own = hash(SMALL);
    assert_eq!(hash(&format!("# A remark.\n\n{SMALL}")), own);
    assert_eq!(hash(&SMALL.replace("8KiB", "8192")), own);
    for (from, to) in
        [("8KiB", "4KiB"), ("\"mixed\"]", "\"trees\"]"), ("\"..4\"", "\"..6\""), ("= 2,", "= 1,")]
    {
        assert_ne!(hash(&SMALL.replace(from, to)), own, "{from}");
    }
}

/// `stage_bytes` applies to all calls, so it is in the head, also in a table without rules.
#[test]
fn tables_say_what_is_copied() {
    let own: Tuning = SMALL.parse().unwrap();
    assert_eq!(own.table().stage_bytes(), None);
    let with = |value: &str| {
        let to = format!("nearest = false\nstage_bytes = {value}");
        SMALL.replace("nearest = false", &to).parse::<Tuning>().unwrap()
    };
    for (value, bytes) in [("\"2MiB\"", 2 << 20), ("\"5GiB\"", 5 << 30), ("0", 0), ("4096", 4096)] {
        let tuning = with(value);
        assert_eq!(tuning.table().stage_bytes(), Some(bytes), "{value}");
        // The hash of the head differs, so that ranks without the key are detected.
        assert_ne!(tuning.table().marks()[0], own.table().marks()[0]);
    }
    assert_eq!(with("4096"), with("\"4KiB\""));
    let head = &SMALL[..SMALL.find("[class.all]").unwrap()];
    let alone: Tuning = format!("{head}stage_bytes = \"1MiB\"").parse().unwrap();
    assert_eq!(alone.table().stage_bytes(), Some(1 << 20));
    let network = Tuning::built_in(Wire::Network);
    assert_eq!(found(&alone, "8x8x8", 8, 6), found(network, "8x8x8", 8, 6));
    let lonely = head.replace("otherwise = \"network\"\nnearest = false\n", "");
    let error = lonely.parse::<Tuning>().unwrap_err().to_string();
    assert!(error.contains("`rule` is missing; it must be a list of sections"), "{error}");
}

#[test]
fn tables_have_limits_of_shared_memory() {
    let own: Tuning = SMALL.parse().unwrap();
    let default = ShmLimits::default();
    assert_eq!(own.table().shm(), default);
    let with = |limits: &str| {
        let to = format!("nearest = false\nshm = {{ {limits} }}");
        SMALL.replace("nearest = false", &to).parse::<Tuning>().unwrap()
    };
    for (text, limits) in [
        ("", default),
        ("flat = 0, staged = \"64KiB\"", ShmLimits { flat: 0, staged: 64 << 10, ..default }),
        (
            "flat_read = \"1MiB\", staged_pair = \"2KiB\"",
            ShmLimits { flat_read: 1 << 20, staged_pair: 2 << 10, ..default },
        ),
        ("flat = \"40KiB\"", ShmLimits { flat: 40 << 10, ..default }),
    ] {
        let tuning = with(text);
        assert_eq!(tuning.table().shm(), limits, "{text}");
        // Ranks with other limits are detected.
        let is_same = tuning.table().fingerprint() == own.table().fingerprint();
        assert_eq!(is_same, limits == default);
    }
}

proptest! {
    /// For any text the result is a table or an error with a line of the text.
    #[test]
    fn no_text_does_harm(at in 0usize..900, with in "[0-9]{0,21}|[a-zA-Z.=\"\\[\\]{},]{0,6}|\\PC{0,4}") {
        let mut text = SMALL.to_owned();
        let at = at.min(text.len() - 1);
        text.replace_range(at..=at, &with);
        if let Err(error) = text.parse::<Tuning>() {
            let lines = text.matches('\n').count() as u32 + 1;
            prop_assert!((1..=lines).contains(&error.line), "{}", error);
        }
    }
}
