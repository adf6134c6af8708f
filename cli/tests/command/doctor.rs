//! Tests of `hopbine doctor`, on one rank and in a job.

use hopbine_testing::processes::OutputInTime;
use serde_json::Value;

use crate::{command, hopbine, json, text};

/// The findings about one topic.
fn about<'a>(page: &'a Value, what: &str) -> Vec<&'a Value> {
    page["rows"].as_array().unwrap().iter().filter(|row| row["what"] == what).collect()
}

#[test]
fn one_rank_is_told_to_start_a_job() {
    let page = json("doctor --format json");
    assert_eq!(page["wrong"], 0);
    assert_eq!(about(&page, "ranks")[0]["verdict"], "slow");
    assert!(about(&page, "ranks")[0]["advice"].as_str().unwrap().contains("mpiexec"));
    let calls = about(&page, "allreduce");
    assert_eq!(about(&page, "queues").len(), 0, "memory has none");
    assert_eq!(calls.len(), 3);
    assert!(
        calls.iter().all(|row| row["found"].as_str().unwrap().contains("every element correct"))
    );
}

#[test]
fn a_job_gets_one_page_and_an_archive() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("report.tar.gz");
    let exe = env!("CARGO_BIN_EXE_hopbine");
    let output = hopbine(&format!(
        "launch -n 4 --torus 2x2 --backend emu {exe} doctor --format json -o {}",
        archive.display()
    ));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(about(&page, "torus")[0]["found"].as_str().unwrap().contains("one hop"), "{page}");
    assert!(about(&page, "short calls")[0]["found"].as_str().unwrap().contains("barrier gates"));
    let queues = about(&page, "queues")[0]["found"].as_str().unwrap();
    assert!(queues.contains("TNI 0: ") && queues.contains("TNI 5: "), "{queues}");
    let mut listing = std::process::Command::new("tar");
    let listing = listing.arg("tzf").arg(&archive).output_in_time();
    for name in ["page.txt", "page.json", "info.json", "timings.csv", "environment.txt"] {
        assert!(text(&listing.stdout).contains(&format!("hopbine-doctor/{name}")), "{name}");
    }
}

#[test]
fn a_variable_that_nobody_reads_is_wrong() {
    let output = command("doctor --format json").env("HOPBINE_TOURS", "2x2").output_in_time();
    assert_eq!(output.status.code(), Some(1));
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(page["wrong"], 1);
    let is_named = |row: &&Value| row["found"].as_str().unwrap().contains("HOPBINE_TOURS");
    assert!(about(&page, "variables").iter().any(is_named), "{page}");
}
