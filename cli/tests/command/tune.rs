//! `hopbine tune` and `hopbine explain`.

use hopbine::Tuning;
use hopbine::torus::Collective;
use hopbine_testing::processes::OutputInTime;

use super::{command, hopbine, json, refused, text, well};

const TUNE: &str =
    "tune allreduce bcast alltoall --torus 4x4x3,6x4+2,5x7x11 --bytes 8..8MiB:x8 --ports 1,2,6";

#[test]
fn a_table_of_predictions_is_one_and_always_the_same() {
    let once = hopbine(TUNE);
    assert!(once.status.success(), "{}", text(&once.stderr));
    let table = text(&once.stdout);
    assert_eq!(text(&hopbine(TUNE).stdout), table);
    let said = text(&once.stderr);
    assert!(said.contains("Predicted time over that of table network"), "{said}");
    assert!(said.contains("Not tuned: 5x7x11: shape 5x7x11 has no fold"), "{said}");
    for collective in ["allreduce", "bcast", "alltoall"] {
        assert_eq!(said.lines().filter(|line| line.contains(collective)).count(), 1, "{said}");
    }
    assert!(table.contains("predicted by the network model for machine tofu-d"), "{table}");
    let tuning: Tuning = table.parse().unwrap();
    let shape = "4x4x3".parse().unwrap();
    let short = tuning.choose(Collective::Allreduce, &shape, 8, 6);
    let long = tuning.choose(Collective::Allreduce, &shape, 8 << 20, 6);
    assert_eq!((short.ports, long.ports), (1, 6), "{table}");
    assert_ne!(short.algorithm.name, long.algorithm.name);
    // What was not tuned goes by the table behind it.
    let network = Tuning::built_in(hopbine::Wire::Network);
    let other =
        |tuning: &Tuning| tuning.choose(Collective::Scan, &shape, 1 << 22, 6).algorithm.name;
    assert_eq!(other(&tuning), other(network));

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuned.toml");
    std::fs::write(&path, table).unwrap();
    let run = "run allreduce --torus 4x4x3 --bytes 8 --iterations 1 --ports 6 --format json";
    let out = command(run).env("HOPBINE_TUNING", &path).output_in_time();
    assert!(text(&out.stdout).contains(&format!("\"algorithm\": \"{}\"", short.algorithm.name)));
    let explain = format!(
        "explain allreduce --torus 4x4x3 --bytes 8MiB --format json --table {}",
        path.display()
    );
    let value = json(&explain);
    assert_eq!(value["chosen"], &*long.algorithm.name);
    assert!(value["row"].as_str().unwrap().starts_with("table tofu-d, line "), "{value}");
}

#[test]
fn what_is_chosen_is_explained() {
    let table = well("explain allreduce --torus 4x3 --bytes 1MiB");
    let heading = table.lines().next().unwrap();
    assert!(
        heading.starts_with("allreduce of 1 MiB on 4x3: mixed, 4 ports, messages up to 65536 B: table network, line "),
        "{heading}"
    );
    for said in [
        "class any, above 8192 B",
        "does not serve: on shape 4x3, doubling does not serve a dimension of size 3",
        "Predicted for tofu-d",
    ] {
        // Tables wrap.
        let words: Vec<&str> = said.split(' ').collect();
        assert!(words.iter().all(|word| table.contains(word)), "{said}: {table}");
    }
    let value = json("explain allreduce --torus 4x3 --bytes 1MiB --format json");
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(
        (rows[0]["algorithm"].as_str(), rows[0]["is_chosen"].as_bool()),
        (Some("mixed"), Some(true))
    );
    assert!((rows[0]["over_chosen"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    let times: Vec<f64> = rows[1..].iter().map_while(|row| row["predicted_us"].as_f64()).collect();
    assert!(times.len() > 3 && times.is_sorted(), "{value}");
    assert!(
        rows[1 + times.len()..]
            .iter()
            .all(|row| row["why"].as_str().unwrap().starts_with("does not serve"))
    );
    let value = json("explain bcast --torus 4 --bytes 64KiB --wire memory --format json");
    assert_eq!(
        (value["chosen"].as_str(), value["predicted"].as_bool()),
        (Some("direct-tree"), Some(false))
    );
}

#[test]
fn what_cannot_be_tuned_or_explained_is_refused() {
    refused(&[
        ("tune allreduce --torus 5x7x11", "nothing was tuned; 5x7x11: shape 5x7x11 has no fold"),
        ("tune allreduce --torus 4 --ports 0", "calls have at least 1 port"),
        ("tune allreduce --torus 4 --budget 10", "such as 90s or 10min"),
        ("tune allreduce --torus 4 --machine tofu-e", "neither a machine"),
        ("tune allreduce --torus 4 --against /nonexistent", "/nonexistent"),
        ("explain allreduce --torus 4 --ports 3", "on 4 there are 1 to 2"),
        ("explain allreduce --torus 4 --table /nonexistent", "/nonexistent"),
        ("explain allreduce --torus 4 --table t --wire memory", "cannot be used with"),
    ]);
}
