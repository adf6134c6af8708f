//! Ranks as processes: the test program runs itself once for each rank.
//!
//! A test calls [`ranks`] with the name of a scenario. Each test file has a `scenarios` test, which does nothing in
//! an ordinary test run. In a process started by [`ranks`], it runs the scenario if its file defines that name.

use std::process::Command;

use hopbine_testing::processes::{Ended, Process, wait};
use hopbine_testing::ranks::{assert_all_well, start as start_ranks};

/// Environment variable with the backend of tests that select none; `emu` if unset.
pub const BACKEND: &str = "HOPBINE_TEST_BACKEND";

/// Value of [`BACKEND`].
pub fn backend() -> String {
    std::env::var(BACKEND).unwrap_or_else(|_| "emu".to_owned())
}

/// Environment variable with the name of the scenario that a child runs.
const SCENARIO: &str = "HOPBINE_TEST_SCENARIO";

/// Starts `n` ranks, each running `scenario` with the additional variables `env`.
pub fn start(n: usize, scenario: &str, env: &[(&str, &str)]) -> (tempfile::TempDir, Vec<Process>) {
    let dir = tempfile::tempdir().expect("a directory for the rendezvous");
    let children = start_ranks(n, &dir.path().join("rendezvous"), |_| {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["scenarios", "--nocapture", "--test-threads=1"])
            .env(SCENARIO, scenario)
            .env("HOPBINE_BACKEND", backend())
            .envs(env.iter().copied());
        command
    });
    (dir, children)
}

/// Runs `scenario` on `n` ranks and panics unless all of them end successfully.
pub fn ranks(n: usize, scenario: &str, env: &[(&str, &str)]) -> Vec<Ended> {
    let (_dir, processes) = start(n, scenario, env);
    all_well(scenario, processes)
}

/// Waits for all ranks of `scenario` and panics unless all of them end successfully.
pub fn all_well(scenario: &str, processes: Vec<Process>) -> Vec<Ended> {
    let ended = wait(processes);
    assert_all_well(scenario, &ended);
    for (rank, each) in ended.iter().enumerate() {
        let text = each.text();
        assert!(text.contains(DONE), "{scenario}, rank {rank} ran no scenario:\n{text}");
    }
    ended
}

/// Line that a rank prints when its scenario has ended.
const DONE: &str = "scenario done";

/// In a child, runs the scenario that `find` returns for its name; does nothing if another file defines the name.
pub fn run_scenario(find: impl Fn(&str) -> Option<fn()>) {
    let Ok(name) = std::env::var(SCENARIO) else { return };
    let Some(scenario) = find(&name) else { return };
    // Ends the line that the test harness has begun.
    println!();
    scenario();
    println!("{DONE}");
}
