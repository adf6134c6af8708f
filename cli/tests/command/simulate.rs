//! `hopbine simulate` and `hopbine machine`.

use super::{hopbine, json, text, well};

/// Cells of a row that is the only one of its algorithm and size.
fn row<'a>(report: &'a serde_json::Value, algorithm: &str, bytes: u64) -> &'a serde_json::Value {
    let is_it = |row: &&serde_json::Value| row["algorithm"] == algorithm && row["bytes"] == bytes;
    report["rows"].as_array().unwrap().iter().find(is_it).unwrap()
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
    // Of every size the fastest comes first.
    let over: Vec<f64> = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["over_best"].as_f64().unwrap())
        .collect();
    assert_eq!(over.iter().filter(|&&over| over == 1.0).count() % 3, 0, "{over:?}");
    // What time is spent on is all of it.
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

#[test]
fn goodput_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("goodput.svg");
    well(&format!("simulate allreduce --torus 8x8 --bytes 32..1MiB:x8 --plot {}", path.display()));
    let picture = std::fs::read_to_string(&path).unwrap();
    let picture = roxmltree::Document::parse(&picture).unwrap();
    let has = |wanted: &str| {
        picture.descendants().any(|node| node.text().is_some_and(|text| text.contains(wanted)))
    };
    assert!(has("predicted goodput") && has("bytes") && has("bine"));
}

#[test]
fn what_cannot_be_simulated_says_why() {
    for (args, expected) in [
        ("simulate allreduce --torus 2x2x2x2", "no fold onto Tofu's six axes"),
        ("simulate allreduce --torus 6x5 --machine hx2mesh", "boards of 2 nodes"),
        ("simulate allreduce --torus 4 --machine fast", "neither a machine (tofu-d"),
        ("simulate allreduce --torus 4 --machine ./none.toml", "none.toml"),
        ("simulate allreduce --torus 4 --segment 0", "--segment is 0"),
        ("simulate allreduce --torus 4 --bytes 1KiB --plot x.svg", "needs a range of sizes"),
        ("machine fast", "neither a machine"),
    ] {
        let output = hopbine(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(text(&output.stderr).contains(expected), "{args}: {}", text(&output.stderr));
    }
}
