//! Tests of `hopbine simulate` and `hopbine machine`.

use super::{hopbine, json, text, well};

/// The row of an algorithm and size that have only one.
fn row<'a>(report: &'a serde_json::Value, algorithm: &str, bytes: u64) -> &'a serde_json::Value {
    let is_it = |row: &&serde_json::Value| row["algorithm"] == algorithm && row["bytes"] == bytes;
    report["rows"].as_array().unwrap().iter().find(is_it).unwrap()
}

/// Times of 0 have no place on logarithmic axes, and names of any length have one above them.
#[test]
fn pictures_take_every_time_and_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long ".repeat(40).replace(' ', "-"));
    let picture = directory.path().join("x.svg");
    let plot = format!("--bytes 32..1KiB --plot {}", picture.display());
    std::fs::write(&path, well("plan allreduce --torus 4 --rank 0 --format schedule")).unwrap();
    well(&format!("simulate --schedule {} {plot}", path.display()));
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert!(svg.contains("..."), "{svg}");
    let output = hopbine(&format!("simulate allreduce --torus 1 --machine ideal-torus {plot}"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("nothing to draw"), "{}", text(&output.stderr));
    // The report comes before the picture.
    assert!(text(&output.stdout).contains("1 KiB"));
}

#[test]
fn predictions_are_labelled_and_ordered() {
    let report = json(
        "simulate allreduce --torus 16x16 --machine ideal-torus --bytes 1KiB..256MiB:x512 --format json",
    );
    assert_eq!(report["predicted"], true);
    assert!(report["notes"][0].as_str().unwrap().contains("not measured"));
    let us = |algorithm, bytes| row(&report, algorithm, bytes)["predicted_us"].as_f64().unwrap();
    assert!(us("bine-l", 1 << 10) < us("bine", 1 << 10));
    assert!(us("bine", 1 << 19) < us("bucket", 1 << 19));
    assert!(us("bucket", 1 << 28) < us("bine", 1 << 28));
    // The fastest row of each size comes first.
    let over: Vec<f64> = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["over_best"].as_f64().unwrap())
        .collect();
    assert_eq!(over.iter().filter(|&&over| over == 1.0).count() % 3, 0, "{over:?}");
    // The parts add up to the whole time.
    let parts = [
        "setup",
        "threads",
        "software",
        "latency",
        "wire",
        "congestion",
        "fold",
        "lock",
        "copy",
        "skew",
    ];
    let of = row(&report, "bine", 1 << 19);
    let sum: f64 = parts.iter().map(|part| of[part].as_f64().unwrap()).sum();
    assert!((sum / us("bine", 1 << 19) - 1.0).abs() < 1e-6, "{of}");
}

#[test]
fn all_ranks_take_as_long_as_the_one_that_stands_for_them() {
    for machine in ["ideal-torus", "tofu-d"] {
        let args = format!(
            "simulate allreduce --torus 4x4x4 --algorithm bucket --bytes 64KiB --machine {machine} --format json"
        );
        let us = |args: &str| json(args)["rows"][0]["predicted_us"].as_f64().unwrap();
        let (one, all) = (us(&args), us(&format!("{args} --exact")));
        assert!((one / all - 1.0).abs() < 0.02, "{machine}: {one} and {all}");
    }
}

#[test]
fn machines_are_printed_changed_and_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slow.toml");
    let machine = well("machine ideal-torus");
    assert!(machine.contains("link = 50.0"), "{machine}");
    std::fs::write(&path, machine.replace("link = 50.0", "link = 5.0")).unwrap();
    let simulate = |machine: &str| {
        let args = "simulate allgather --torus 8x8 --algorithm bucket --bytes 512MiB --format json";
        json(&format!("{args} --machine {machine}"))["rows"][0]["predicted_us"].as_f64().unwrap()
    };
    let path = path.display().to_string();
    let ratio = simulate(&path) / simulate("ideal-torus");
    assert!((9.5..10.0).contains(&ratio), "{ratio}");
    for name in well("machine").lines() {
        assert!(well(&format!("machine {name}")).contains("[network]"), "{name}");
    }
    std::fs::write(&path, "name = \"none\"\nkind = \"tofu-d\"\n[network]\nlink = -1\n").unwrap();
    let output = hopbine(&format!("simulate allreduce --torus 4 --machine {path}"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("line 4: network.link is -1: it must be more than 0"));
}

/// A text of a picture with its approximate bounding box: left, right, top, bottom.
struct Words {
    text: String,
    at: [f64; 4],
}

/// The texts of a picture that are not rotated.
fn words(picture: &str) -> Vec<Words> {
    let picture = roxmltree::Document::parse(picture).unwrap();
    let texts = picture.descendants().filter(|node| node.has_tag_name("text"));
    let level = texts.filter(|node| node.attribute("transform").is_none());
    let words = level.map(|node| {
        let number = |name: &str| -> f64 { node.attribute(name).unwrap().parse().unwrap() };
        let text = node.text().unwrap().trim().to_owned();
        let size = number("font-size");
        let wide = text.chars().count() as f64 * size * 0.55;
        let left = match node.attribute("text-anchor") {
            Some("middle") => number("x") - wide / 2.0,
            Some("end") => number("x") - wide,
            _ => number("x"),
        };
        let baseline = match node.attribute("dy") {
            Some("0.76em") => number("y") + 0.76 * size,
            Some("0.5ex") => number("y") + 0.25 * size,
            Some("-0.5ex") => number("y") - 0.25 * size,
            Some(other) => panic!("{other}"),
            None => number("y"),
        };
        Words { text, at: [left, left + wide, baseline - 0.7 * size, baseline] }
    });
    words.filter(|words| !words.text.is_empty()).collect()
}

/// Every kind of picture has a title, units and a background of its own, and no two of its texts overlap.
#[test]
fn pictures_are_legible() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("picture.svg");
    for (args, expected) in [
        (
            "allreduce --torus 8x8 --machine ideal-torus --bytes 32..512MiB",
            "bytes;goodput, GB/s;best:;bucket",
        ),
        ("alltoall --torus 4x2x4 --bytes 32..512MiB:x4 --ports all", "goodput, GB/s;(6 ports)"),
        ("allreduce --torus 8x8x8 --bytes 32..512MiB --show gain", "bytes;1;bucket"),
        (
            "allgather --torus 5x7,4x4,3x3x3 --machine ideal-torus --show heatmap",
            "5x7;bytes;shape of the torus;512 B",
        ),
        (
            "allreduce --torus 2x2x2,4x4x4,8x8x8,4x2x2,8x4x4,12x4x4,8x8x4,16x4x4,8x2x2,12x2x2,16x8x4,12x8x4,4x4x2 \
             --algorithm bine --algorithm bucket --show heatmap",
            "letter: the best",
        ),
        (
            "allreduce --torus 4x4x4 --algorithm bine --bytes 1MiB --show timeline",
            "us;port 5;step 11;40",
        ),
        (
            "bcast --torus 2x2x2 --algorithm bine-tree --bytes 1MiB --show timeline --exact --ports 3",
            "rank 7, port 2",
        ),
        (
            "allreduce --torus 13 --machine ideal-torus --algorithm bucket --bytes 8 --show timeline",
            "step 22",
        ),
        (
            "allreduce --torus 4x2 --machine ideal-torus --algorithm bucket --bytes 1MiB --show link-timeline",
            "a message on a link;step 3",
        ),
        (
            "alltoall --torus 4x4x4 --algorithm pairwise --bytes 1MiB --show links",
            "+x;-c;0.5 n = 524288 B",
        ),
        (
            "bcast --torus 8x8 --machine hx2mesh --algorithm bine-tree --bytes 1MiB --show links",
            "1 up at the low end",
        ),
        (
            "allreduce --torus 128 --machine ideal-torus --algorithm bine --bytes 1MiB --show links",
            "2 links",
        ),
    ] {
        let args = format!("simulate {args} --format csv");
        let rows = well(&format!("{args} --plot {}", path.display()));
        assert_eq!(rows, well(&args), "{args}: a picture changes no row");
        let picture = std::fs::read_to_string(&path).unwrap();
        let words = words(&picture);
        let title: String = words.iter().take(2).map(|words| words.text.as_str()).collect();
        assert!(title.contains("predicted"), "{args}: {title}");
        for expected in expected.split(';') {
            assert!(picture.contains(expected), "{args}: {expected}");
        }
        let picture = roxmltree::Document::parse(&picture).unwrap();
        let root = picture.root_element();
        let first = root.first_element_child().unwrap();
        let of = |node: roxmltree::Node<'_, '_>, name: &str| -> f64 {
            node.attribute(name).unwrap().parse().unwrap()
        };
        assert_eq!(
            (first.attribute("fill"), first.attribute("opacity")),
            (Some("#FFFFFF"), Some("1"))
        );
        let size = ["width", "height"].map(|name| of(root, name));
        assert!(
            size[0] == 800.0 && ["width", "height"].map(|name| of(first, name) + 1.0) >= size,
            "{args}"
        );
        for (index, a) in words.iter().enumerate() {
            let [left, right, top, bottom] = a.at;
            assert!(
                left >= 0.0 && right <= size[0] && top >= 0.0 && bottom <= size[1],
                "{args}: {}",
                a.text
            );
            for b in &words[index + 1..] {
                let apart =
                    right <= b.at[0] || b.at[1] <= left || bottom <= b.at[2] || b.at[3] <= top;
                assert!(apart, "{args}: `{}` and `{}` overlap", a.text, b.text);
            }
        }
    }
}

#[test]
fn gains_are_of_families() {
    let report = json(
        "simulate allreduce --torus 8x8 --machine ideal-torus --bytes 1KiB..64MiB:x65536 --show gain --format json",
    );
    let rows = report["rows"].as_array().unwrap();
    let of = |family: &str, bytes: u64| {
        let is_it = |row: &&serde_json::Value| row["family"] == family && row["bytes"] == bytes;
        rows.iter().find(is_it).unwrap()
    };
    // The fastest algorithm of the family: for short vectors, one with few steps.
    assert_eq!(of("bine", 1 << 10)["algorithm"], "bine-l");
    assert_eq!(of("bine", 1 << 26)["algorithm"], "bine");
    for row in rows {
        let gain = row["gain"].as_f64().unwrap();
        let us = row["predicted_us"].as_f64().unwrap();
        let other = row["best_other"].as_str().unwrap();
        let family =
            rows.iter().find(|row| row["algorithm"] == other && row["bytes"] == row["bytes"]);
        assert!(family.is_some(), "{row}");
        let fastest = rows.iter().filter(|other| other["bytes"] == row["bytes"]);
        let fastest =
            fastest.map(|row| row["predicted_us"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
        // Above 1 for the fastest algorithm, otherwise its ratio to the fastest.
        assert!(
            if us <= fastest * 1.001 {
                gain > 1.0
            } else {
                (gain * us / fastest - 1.0).abs() < 1e-3
            },
            "{row}"
        );
    }
}

#[test]
fn a_heatmap_has_a_cell_for_each_shape_and_size() {
    let text = well(
        "simulate allreduce --torus 4x4,8x8 --torus 2x3 --machine ideal-torus --bytes 1KiB..1MiB:x32 --show heatmap --format csv",
    );
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let shapes: Vec<&str> = rows.iter().map(|row| &row[0]).collect();
    assert_eq!(shapes, ["4x4", "4x4", "4x4", "8x8", "8x8", "8x8", "2x3", "2x3", "2x3"]);
    assert!(rows.iter().all(|row| row[8].parse::<f64>().unwrap() >= 1.0), "{text}");
    // A letter stands for one family.
    let mut letters: Vec<(&str, &str)> = rows.iter().map(|row| (&row[3], &row[4])).collect();
    letters.sort_unstable();
    letters.dedup();
    assert!(letters.is_sorted_by(|a, b| a.0 < b.0), "{letters:?}");
}

#[test]
fn one_call_is_told_in_full() {
    let args = "allreduce --torus 4x3 --machine ideal-torus --algorithm circulant --bytes 120KiB --ports 2";
    let all = |show: &str| json(&format!("simulate {args} --show {show} --format json"));
    // Messages: as many as the check counts, each after the messages whose data it carries.
    let messages = all("messages");
    let rows = messages["rows"].as_array().unwrap();
    let counted =
        json("traffic allreduce --torus 4x3 --algorithm circulant --ports 2 --format json");
    let counted = &counted["rows"][0];
    let sent = |rank: u64| rows.iter().filter(move |row| row["from"] == rank);
    let most = (0..12).map(|rank| sent(rank).count() as u64).max();
    assert_eq!(most, counted["messages"].as_u64());
    let bytes = |rank| sent(rank).map(|row| row["bytes"].as_f64().unwrap()).sum::<f64>();
    let volume = (0..12).map(bytes).fold(0.0, f64::max) / (120.0 * 1024.0);
    assert!((volume - counted["volume"].as_f64().unwrap()).abs() < 1e-9, "{volume}: {counted}");
    let resources = messages["resources"].as_array().unwrap();
    let mut ways_in = std::collections::BTreeMap::new();
    for row in rows {
        assert!(row["awaits"].as_u64() <= row["step"].as_u64(), "{row}");
        let crossed: Vec<&serde_json::Value> = row["crosses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|number| &resources[number.as_u64().unwrap() as usize])
            .collect();
        let (interface, links) = crossed.split_last().unwrap();
        let name = interface["name"].as_str().unwrap();
        assert!(name.ends_with(&format!(" in {}", row["port"])), "{name}: {row}");
        assert_eq!(*ways_in.entry(name).or_insert(&row["to"]), &row["to"], "{name}");
        assert!(!links.is_empty() && links.iter().all(|link| link["kind"] == "cable"), "{row}");
    }
    assert_eq!(ways_in.len(), 12 * 2, "each rank's, each port's");
    // Links: the busiest one comes first, with the load that the check computes.
    let links = all("links");
    let [load, expected] =
        [&links["rows"][0]["load"], &counted["link_load"]].map(|load| load.as_f64().unwrap());
    assert!((load - expected).abs() < 1e-9, "{load} for {expected}");
    // Times: they extend to the end of the call and cover all of its steps.
    let timeline = all("timeline");
    let us = timeline["predicted_us"].as_f64().unwrap();
    let last =
        timeline["rows"].as_array().unwrap().iter().map(|row| row["end_us"].as_f64().unwrap());
    assert!((last.fold(0.0, f64::max) / us - 1.0).abs() < 1e-9);
    let steps: std::collections::BTreeSet<u64> = timeline["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["step"].as_u64())
        .collect();
    assert_eq!(steps.len() as u64, counted["steps"].as_u64().unwrap());
    // Links over time: each has as many messages as the check counts, and none ends after the call.
    let times = all("link-timeline");
    let on_link = |name: &serde_json::Value| {
        times["rows"].as_array().unwrap().iter().filter(|row| row["link"] == *name).count() as u64
    };
    for link in links["rows"].as_array().unwrap() {
        assert_eq!(Some(on_link(&link["link"])), link["messages"].as_u64(), "{link}");
    }
    for row in times["rows"].as_array().unwrap() {
        let [start, end] = ["start_us", "end_us"].map(|time| row[time].as_f64().unwrap());
        assert!(start < end && end <= us, "{row}");
    }
    for report in [messages, links, timeline, times] {
        assert_eq!(report["predicted"], true);
        assert!(report["notes"][0].as_str().unwrap().contains("not measured"));
    }
}

#[test]
fn faults_and_blocks_change_what_a_call_takes() {
    let us = |args: &str| {
        let report = json(&format!(
            "simulate allgather --torus 4 --machine ideal-torus --algorithm bucket --ports 1 --bytes 64MiB \
             --format json {args}"
        ));
        report["rows"][0]["predicted_us"].as_f64().unwrap()
    };
    let usual = us("");
    for (args, times) in [
        ("--blocks 2,2,2,2", 1.0),
        // The whole payload over three links, not a quarter at a time.
        ("--blocks 0,0,1,0", 4.0),
        ("--fault tni:2.0=0.5", 2.0),
    ] {
        assert!((us(args) / usual / times - 1.0).abs() < 0.01, "{args}: {} for {usual}", us(args));
    }
}

/// In the papers' code a far-first walk is the reverse of the near-first one, including the order of dimensions.
#[test]
fn the_papers_code_walks_in_its_own_order() {
    let ways = |profile: &str| {
        let args = format!(
            "simulate gather --torus 4x8 --machine ideal-torus --algorithm bine-far --ports 1 --bytes 64 \
             --show link-timeline --profile {profile} --format json"
        );
        let report = json(&args);
        let mut rows = report["rows"].as_array().unwrap().clone();
        rows.retain(|row| row["step"] == 0);
        // Ranks along the second dimension are at least four apart.
        let is_second = |row: &serde_json::Value| {
            let [from, to] = ["from", "to"].map(|end| row[end].as_i64().unwrap());
            (from - to).abs() >= 4
        };
        rows.iter().map(is_second).collect::<Vec<bool>>()
    };
    let (ours, theirs) = (ways("hopbine"), ways("paper"));
    assert!(!ours.is_empty() && ours.iter().all(|is_second| !is_second), "{ours:?}");
    assert!(!theirs.is_empty() && theirs.iter().all(|is_second| *is_second), "{theirs:?}");
}

#[test]
fn what_cannot_be_simulated_says_why() {
    for (args, expected) in [
        ("simulate allreduce --torus 4 --bytes 8 --blocks 1,1,1,1", "allreduce has no blocks"),
        ("simulate allgather --torus 4 --bytes 8 --blocks 1,1,1", "3 sizes of blocks for 4 ranks"),
        ("simulate allgather --torus 4 --bytes 8 --blocks 1,x", "`x` is not a number"),
        ("simulate allgather --torus 4 --bytes 8 --fault 0x+", "must be a part and its speed"),
        ("simulate allgather --torus 4 --bytes 8 --fault up=0.5", "is not a link of this network"),
        ("simulate allreduce --torus 2x2x2x2", "no fold onto Tofu's six axes"),
        ("simulate allreduce --torus 6x5 --machine hx2mesh", "boards of 2 nodes"),
        ("simulate allreduce --torus 4 --machine fast", "neither a machine (tofu-d"),
        ("simulate allreduce --torus 4 --machine ./none.toml", "none.toml"),
        ("simulate allreduce --torus 4 --segment 0", "--segment is 0"),
        ("simulate allreduce --torus 4 --bytes 1KiB --plot x.svg", "needs a range of sizes"),
        ("machine fast", "neither a machine"),
        ("simulate allreduce --torus 4x4,8x8", "--show goodput takes one --torus"),
        ("traffic allreduce --torus 4x4,8x8", "--torus must be one shape for this command"),
        ("simulate allreduce --torus 4x4x4 --show links", "there are"),
        (
            "simulate allreduce --torus 4 --algorithm bine --show timeline",
            "give one, such as --bytes 1MiB",
        ),
        (
            "simulate allreduce --torus 4 --ports all --algorithm bine --bytes 8 --show links",
            "one number of --ports",
        ),
        (
            "simulate allreduce --torus 4 --algorithm bine --show gain",
            "the only family of algorithms on 4 is bine",
        ),
        ("simulate barrier --torus 4 --show heatmap", "a barrier has no sizes"),
        ("simulate allreduce --torus 4 --show gain --explain-time", "--show goodput"),
        (
            "simulate allreduce --torus 4 --algorithm bine --bytes 8 --show messages --plot x.svg",
            "has no picture",
        ),
        (
            "simulate allreduce --torus 2 --algorithm bine --bytes 8 --show messages --profile paper",
            "needs --profile hopbine",
        ),
        (
            "simulate barrier --torus 4 --machine ideal-torus --algorithm bine --show links --plot x.svg",
            "no link carries anything",
        ),
        (
            "simulate allreduce --torus 8x8 --machine ideal-torus --algorithm bine --bytes 8 --exact --show timeline --plot x.svg",
            "a timeline of 256 ports is not legible",
        ),
    ] {
        let output = hopbine(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(text(&output.stderr).contains(expected), "{args}: {}", text(&output.stderr));
    }
}
