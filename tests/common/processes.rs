//! Ranks as processes: the test program runs itself once for each rank.
//!
//! A test calls [`ranks`] with the name of a scenario. The `scenarios` test of each file does
//! nothing otherwise; in such a process the one that knows the name runs that scenario.

use std::process::{Child, Command, Stdio};

/// The backend of tests that do not say, `emu` if unset.
pub const BACKEND: &str = "HOPBINE_TEST_BACKEND";

/// What [`BACKEND`] says.
pub fn backend() -> String {
    std::env::var(BACKEND).unwrap_or_else(|_| "emu".to_owned())
}

/// Names the scenario to a child.
const SCENARIO: &str = "HOPBINE_TEST_SCENARIO";

/// One rank's end.
#[derive(Debug)]
pub struct Ended {
    pub status: std::process::ExitStatus,
    /// Standard output and standard error.
    pub text: String,
}

/// Starts `n` ranks, each running `scenario` with the further variables `env`.
pub fn start(n: usize, scenario: &str, env: &[(&str, &str)]) -> (tempfile::TempDir, Vec<Child>) {
    let dir = tempfile::tempdir().expect("a directory for the rendezvous");
    let children = (0..n).map(|rank| {
        Command::new(std::env::current_exe().expect("this program"))
            .args(["scenarios", "--nocapture", "--test-threads=1"])
            .env(SCENARIO, scenario)
            .env("HOPBINE_BACKEND", backend())
            .env("HOPBINE_RANK", rank.to_string())
            .env("HOPBINE_SIZE", n.to_string())
            .env("HOPBINE_RENDEZVOUS", dir.path().join("rendezvous"))
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("can be started")
    });
    let children = children.collect();
    (dir, children)
}

/// Waits for all of them.
pub fn wait(children: Vec<Child>) -> Vec<Ended> {
    let waiting: Vec<_> =
        children.into_iter().map(|child| std::thread::spawn(|| child.wait_with_output())).collect();
    let ended = waiting.into_iter().map(|thread| {
        let output = thread.join().expect("does not panic").expect("was started");
        let text = [output.stdout, output.stderr].concat();
        Ended { status: output.status, text: String::from_utf8_lossy(&text).into_owned() }
    });
    ended.collect()
}

/// Runs `scenario` on `n` ranks and panics unless all of them end well.
pub fn ranks(n: usize, scenario: &str, env: &[(&str, &str)]) -> Vec<Ended> {
    let (_dir, children) = start(n, scenario, env);
    let ended = wait(children);
    for (rank, Ended { status, text }) in ended.iter().enumerate() {
        assert!(status.success(), "{scenario}, rank {rank} of {n}: {status}\n{text}");
        assert!(text.contains(DONE), "{scenario}, rank {rank} of {n} ran no scenario:\n{text}");
    }
    ended
}

/// What a rank says when its scenario has ended.
const DONE: &str = "scenario done";

/// In a child, runs the scenario that `find` returns for its name; nothing if that is another
/// file's.
pub fn run_scenario(find: impl Fn(&str) -> Option<fn()>) {
    let Ok(name) = std::env::var(SCENARIO) else { return };
    let Some(scenario) = find(&name) else { return };
    // The test harness has begun a line.
    println!();
    scenario();
    println!("{DONE}");
}
