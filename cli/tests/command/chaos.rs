//! `hopbine chaos`, and `hopbine run` on the simulated wire.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use hopbine_testing::processes::OutputInTime;

use super::{command, json, refused, well};

#[test]
fn seeds_end_well_and_repeat_exactly() {
    for backend in ["sim", "sim-utofu"] {
        let run = || json(&format!("chaos --seeds 1..16 --backend {backend} --format json"));
        let (once, again) = (run(), run());
        assert_eq!(once["runs"], 16, "{once}");
        assert_eq!(once["wrong"].as_array().map(Vec::len), Some(0), "{once}");
        assert_eq!((&once["trace"], &once["steps"]), (&again["trace"], &again["steps"]));
        assert!(once["collectives"].as_u64() > Some(100) && once["faults"].as_u64() > Some(2));
    }
}

/// Seeds that once failed. A rank is dead, stopped or late and the waits of the other ranks form a cycle, or the
/// ranks that a rank has told why it gives up have left; memory is registered while its unmapping has not been
/// announced, or within a range that was registered before; several ranks wait at the gates of a further
/// communicator, and one waits for a message.
#[test]
fn seeds_that_were_wrong_are_well() {
    for seed in [13793, 21158, 29156, 59556, 80593, 88700, 94796] {
        assert!(well(&format!("chaos --seeds {seed}")).contains("1 runs, "));
    }
    for seed in [32, 35, 182, 6906, 10314, 16816, 17648] {
        assert!(well(&format!("chaos --seeds {seed} --backend sim-utofu")).contains("1 runs, "));
    }
}

/// As with `| head -1`.
#[test]
fn a_reader_that_closes_the_output_ends_it() {
    let mut command = command("chaos --seeds 1..1000 --story");
    let (mut child, _limit) = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn_in_time();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("seed "), "{line}");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn limits_make_runs_smaller() {
    let story = well("chaos --seeds 5 --torus 2 --only 1 --most-elements 2 --faults none --story");
    assert!(story.contains("seed 5, wire 5: 2,") && story.contains("no fault"), "{story}");
    assert!(story.contains("step 1") && !story.contains("step 2"), "{story}");
    assert!(story.contains("rank 1: ") && story.contains("1 runs, "), "{story}");
}

#[test]
fn what_cannot_be_is_refused() {
    refused(&[
        ("chaos --seeds 7..3", "an increasing range"),
        ("chaos --faults fire", "fire"),
        ("chaos --backend shm", "valid are: sim, sim-utofu"),
        ("chaos --torus 0", "0"),
        ("chaos --failures 0", "0 is not in 1.."),
    ]);
}

#[test]
fn collectives_are_verified_on_the_simulated_wire() {
    for backend in ["sim", "sim-utofu"] {
        for call in ["allreduce", "alltoall --counts zipf", "bcast", "scan"] {
            let args = format!(
                "run {call} --backend {backend} --torus 3x2 --bytes 4KiB --seed 9 --format json"
            );
            let (once, again) = (json(&args), json(&args));
            assert_eq!(
                (&once["verified"], &once["backend"]),
                (&true.into(), &backend.into()),
                "{args}"
            );
            assert_eq!(once["notes"], again["notes"]);
            assert!(once["notes"].to_string().contains("trace "), "{once}");
        }
    }
}

#[test]
fn a_thousand_ranks_are_simulated() {
    let value =
        json("run allreduce --backend sim --torus 10x10x10 --bytes 1KiB --seed 7 --format json");
    assert_eq!(value["verified"], true);
}
