//! Tests of `hopbine calibrate` and `hopbine validate`.

use std::fmt::Write as _;
use std::path::Path;

use super::{hopbine, json, refused, text, well};

const HEADER: &str = "shape,collective,bytes,api,algorithm,segment_bytes,ports,median_us\n";

/// Noise with a standard deviation of about 1, from a textbook generator (Numerical Recipes, ranqd1).
fn noise(seed: u32) -> impl FnMut() -> f64 {
    let mut state = seed;
    let mut uniform = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state) / f64::from(u32::MAX)
    };
    move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

/// Times that the model predicts for a machine, with noise of standard deviation `sigma` in the logarithm.
/// Reductions that allow segments have a time for each length in `segments`; 0 means no segments.
fn measured(machine: &str, shapes: &[&str], sigma: f64, segments: &[u64]) -> String {
    let mut csv = HEADER.to_owned();
    let mut noise = noise(7);
    for shape in shapes {
        for (collective, ours, theirs) in [
            ("allreduce", "bine-l", "bine-l"),
            ("allreduce", "bine", "bine-b_cont"),
            ("allgather", "bine", "bine-vec_doubling_cont_permute"),
            ("reduce-scatter", "bine", "bine-vec_halving_cont_permute"),
        ] {
            let of_row = |segment: &u64| *segment == 0 || theirs == "bine-b_cont";
            let of_row = segments.iter().copied().filter(of_row);
            for (segment, ports) in of_row.flat_map(|of| [(of, 1), (of, 3), (of, 6)]) {
                let longest = format!("--segment {segment}");
                let longest = if segment == 0 { "" } else { &longest };
                let report = json(&format!(
                    "simulate {collective} --torus {shape} --map row-major --algorithm {ours} --ports {ports} \
                     --bytes 4KiB..64MiB:x8 --profile paper {longest} --machine {machine} --format json"
                ));
                for row in report["rows"].as_array().unwrap() {
                    let us = row["predicted_us"].as_f64().unwrap() * (sigma * noise()).exp();
                    let bytes = &row["bytes"];
                    let what = format!("{bytes},utofu,{theirs},{segment},{ports}");
                    writeln!(csv, "{shape},{collective},{what},{us}").unwrap();
                }
            }
        }
    }
    csv
}

fn file(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Times from a machine that differs from the one with which the fit begins. The fit finds this machine's
/// parameters, and the machine file that it writes predicts the times.
#[test]
#[ignore = "takes long: cargo test -p hopbine-cli --test command -- --ignored"]
fn a_machine_is_found_from_its_own_times() {
    let directory = tempfile::tempdir().unwrap();
    let changes = [
        ("network", "latency", 2400.0),
        ("node", "reduce", 12.0),
        ("paper", "heap_all", 500.0),
        ("paper", "team", 16_000.0),
    ];
    let changed = |line: &str| {
        let is_it = |(_, name, _): &&(&str, &str, f64)| line.starts_with(&format!("{name} = "));
        changes.iter().find(is_it).map(|(_, name, value)| format!("{name} = {value:?}"))
    };
    let machine = well("machine tofu-d");
    assert_eq!(machine.lines().filter_map(changed).count(), changes.len());
    let machine: Vec<String> =
        machine.lines().map(|line| changed(line).unwrap_or_else(|| line.to_owned())).collect();
    let machine = file(directory.path(), "true.toml", &machine.join("\n"));
    // Only runs with segments separate the cost of a notice from the latency of a message.
    let measured = measured(&machine, &["2x2x2", "4x4x4"], 0.02, &[0, 4096]);
    let measured = file(directory.path(), "measured.csv", &measured);
    let found = directory.path().join("found.toml").display().to_string();
    let report = json(&format!("calibrate --measured {measured} -o {found} --format json"));
    assert_eq!((&report["measured"], &report["left_out"]), (&150.into(), &0.into()), "{report}");
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.len() <= 25);
    for (section, name, value) in changes {
        let name = format!("{section}.{name}");
        let row = rows.iter().find(|row| row["parameter"] == name.as_str()).unwrap();
        let error = row["standard_error"].as_f64().unwrap_or_else(|| panic!("{row}"));
        let off = (row["value"].as_f64().unwrap() / value).ln().abs();
        assert!(error < 0.3 && off < 4.0 * error + 0.02, "{row} for {value}");
    }
    // Every value has a source. No parameter of MPI's copies is fitted, since these calls use none.
    assert!(rows.iter().all(|row| !row["source"].as_str().unwrap().is_empty()));
    let eager = rows.iter().find(|row| row["parameter"] == "paper.eager").unwrap();
    assert!(eager["standard_error"].is_null(), "{eager}");
    assert!(eager["source"].as_str().unwrap().starts_with("not determined"), "{eager}");
    // The residual is as small as the noise allows.
    assert!(
        report["residuals"][0]["median"].as_f64().unwrap() < 0.03,
        "{}",
        report["residuals"][0]
    );
    let median = |machine: &str| {
        let args = format!("validate --measured {measured} --machine {machine} --format json");
        json(&args)["rows"][0]["median"].as_f64().unwrap()
    };
    assert!(
        median(&found) < 0.03 && median("tofu-d") > 0.05,
        "{} {}",
        median(&found),
        median("tofu-d")
    );
    // A second run gives the same result.
    let again = directory.path().join("again.toml").display().to_string();
    well(&format!("calibrate --measured {measured} -o {again}"));
    let read = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(found), read(again));
}

#[test]
fn predictions_are_judged_in_groups() {
    let directory = tempfile::tempdir().unwrap();
    let text = measured("tofu-d", &["2x2x2", "4x4x4"], 0.0, &[0]);
    let measured = file(directory.path(), "measured.csv", &text);
    let report = json(&format!("validate --measured {measured} --format json"));
    let row = |collective: &str, shape: &str, sizes: &str| {
        let is_it = |row: &&serde_json::Value| {
            row["algorithm"] == "all"
                && row["collective"] == collective
                && row["shape"] == shape
                && row["sizes"] == sizes
        };
        report["rows"].as_array().unwrap().iter().find(is_it).unwrap().clone()
    };
    let all = row("all", "all", "all");
    assert_eq!(
        (&all["rows"], &all["coverage"], &all["regret_mean"]),
        (&120.into(), &1.0.into(), &1.0.into())
    );
    assert!(all["median"].as_f64().unwrap() < 1e-9, "{all}");
    // A cell for each shape, collective and size.
    assert_eq!(all["cells"], 30);
    assert_eq!(row("all", "2x2x2", "all")["rows"], 60);
    assert_eq!(row("allreduce", "all", "all")["rows"], 60);
    assert_eq!(row("all", "all", "to 128 KiB")["rows"], 48);
    // Half of the times on the larger shape are twice as long as predicted, which changes the order of algorithms.
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in lines.iter_mut().filter(|line| line.starts_with("4x4x4")).step_by(2) {
        let (fields, us) = line.rsplit_once(',').unwrap();
        *line = format!("{fields},{}", 2.0 * us.parse::<f64>().unwrap());
    }
    let slower = file(directory.path(), "slower.csv", &lines.join("\n"));
    let slower = json(&format!("validate --measured {slower} --shapes 4x4x4 --format json"));
    let all = &slower["rows"][0];
    assert_eq!(all["rows"], 60);
    assert!((all["p90"].as_f64().unwrap() - 0.5).abs() < 1e-9, "{all}");
    assert!((all["bias"].as_f64().unwrap() + 0.5 * 2f64.ln()).abs() < 1e-9, "{all}");
    assert_eq!(all["coverage"], 0.5);
    assert!(all["regret_mean"].as_f64().unwrap() > 1.2, "{all}");
    // Without details the table is short; CSV has all rows.
    let lines =
        |args: &str| well(&format!("validate --measured {measured} {args}")).lines().count();
    assert_eq!(lines("--details"), lines("") + 4 * 2 * 3);
    assert_eq!(lines("--format csv"), 1 + report["rows"].as_array().unwrap().len());
}

/// Each shape is predicted by a fit to the other shapes.
#[test]
fn shapes_are_left_out_in_turn() {
    let directory = tempfile::tempdir().unwrap();
    let times = measured("tofu-d", &["2x2x2", "4x4x4"], 0.05, &[0]);
    let measured = file(directory.path(), "measured.csv", &times);
    let judged = |args: &str| json(&format!("validate --measured {measured} {args} --format json"));
    let (fitted, left_out) = (judged(""), judged("--leave-out"));
    assert_eq!((&fitted["leave_out"], &left_out["leave_out"]), (&false.into(), &true.into()));
    let median = |report: &serde_json::Value| report["rows"][0]["median"].as_f64().unwrap();
    // The noise is 5 %: its median is 3.4 %. The predictions for shapes outside the fit are a little worse.
    assert!((0.02..0.045).contains(&median(&fitted)), "{}", fitted["rows"][0]);
    assert!((0.02..0.08).contains(&median(&left_out)), "{}", left_out["rows"][0]);
    assert_ne!(median(&fitted), median(&left_out));
    refused(&[(
        &format!("validate --measured {measured} --shapes 2x2x2 --leave-out"),
        "needs times of two shapes or more; all modelled times are of 2x2x2",
    )]);
}

#[test]
fn our_own_times_and_picos_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let ours = directory.path().join("ours.csv").display().to_string();
    let run = "run allreduce --torus 2x2x2 --bytes 1KiB..64KiB:x64 --algorithm all --iterations 2 --format csv";
    well(&format!("{run} -o {ours}"));
    let n = std::fs::read_to_string(&ours).unwrap().lines().count() - 1;
    let plot = directory.path().join("scatter.svg");
    let report =
        json(&format!("validate --measured {ours} --format json --plot {}", plot.display()));
    assert_eq!(report["rows"][0]["rows"], n, "{report}");
    let plot = std::fs::read_to_string(plot).unwrap();
    let document = roxmltree::Document::parse(&plot).unwrap();
    let circles = document.descendants().filter(|node| node.has_tag_name("circle")).count();
    assert_eq!(circles, n, "a point for each time");
    let pico = "collective_type,buffer_size,algo_name,median,nnodes,tasks_per_node\n\
                ALLREDUCE,1048576,SWING-B_CONT-UTOFU-65536-6,700000,4x4x4,1\n\
                ALLREDUCE,1048576,BINE-L-UTOFU-0-1,900000,4x4x4,1\n\
                ALLREDUCE,1048576,default-crp,900000,4x4x4,1\n";
    let pico = file(directory.path(), "pico.csv", pico);
    let report = json(&format!("validate --measured {pico} --format json"));
    assert_eq!((&report["measured"], &report["left_out"]), (&2.into(), &1.into()), "{report}");
    assert!(report["notes"].to_string().contains("first in line 4"), "{report}");
    // Several files are treated as one.
    let both = json(&format!("validate --measured {ours} {pico} --profile paper --format json"));
    assert_eq!(both["measured"], 2);
    refused(&[(&format!("validate --measured {ours} --profile paper"), "give --profile hopbine")]);
}

#[test]
fn files_that_say_nothing_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let row = "2x2x2,allreduce,1024,utofu,bine-l,0,3,5.5";
    for (name, content, why) in [
        ("columns", "a,b\n1,2\n".to_owned(), "line 1: the columns are a, b; they must be"),
        (
            "number",
            format!("{HEADER}{row}\n{}\n", row.replace("5.5", "soon")),
            "line 3: `soon` in column median_us is not a time above 0",
        ),
        (
            "size",
            format!("{HEADER}{}\n", row.replace("1024", "18446744073709551616")),
            "line 2: `18446744073709551616` in column bytes is not a whole number of bytes below 2^64",
        ),
        ("shape", format!("{HEADER}{}\n", row.replace("2x2x2", "2x0")), "line 2, column shape:"),
        ("short", format!("{HEADER}{row},9\n"), "line 2 has 9 fields; line 1 has 8 columns"),
        ("empty", HEADER.to_owned(), "there are no rows"),
        (
            "unknown",
            format!("{HEADER}{}\n", row.replace("bine-l", "best")),
            "no row can be predicted. Not modelled: 1 rows, the first in line 2",
        ),
    ] {
        let path = file(directory.path(), &format!("{name}.csv"), &content);
        for command in ["calibrate", "validate"] {
            let output = hopbine(&format!("{command} --measured {path}"));
            assert_eq!(output.status.code(), Some(2), "{command} {name}");
            let error = text(&output.stderr);
            assert!(error.contains(why), "{command} {name}: {error}");
            assert!(name == "unknown" || error.contains(&path), "{error}");
        }
    }
    let few = file(directory.path(), "few.csv", &format!("{HEADER}{row}\n"));
    refused(&[
        (&format!("calibrate --measured {few}"), "1 measured times do not determine"),
        (
            &format!("validate --measured {few} --shapes 8x8x8"),
            "there is no measured time for the shape 8x8x8; the file has 2x2x2",
        ),
        ("calibrate --measured nothing.csv", "cannot read nothing.csv"),
        (&format!("calibrate --measured {few} --machine ideal-torus"), "has no logarithm"),
    ]);
}
