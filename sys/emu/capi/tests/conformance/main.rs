//! Runs the conformance suite (`sys/conformance`) on the emulated device and compares what it prints
//! with what it printed on Fujitsu's library.
//!
//! Every case runs with 1, 2 and 4 ranks, as processes and as threads. No test harness: the cases
//! are the C suite's, and in thread mode this program starts itself again to be the process that
//! holds the ranks.

#[path = "../common/mod.rs"]
mod common;
mod threads;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{compile, launch, library_dir, sys, trouble};
use hopbine_testing::processes;

/// How long a queue must be silent to count as drained, in ms. The emulated device delivers before
/// a post returns; the time is for ranks that the scheduler keeps waiting.
const QUIET_MS: &str = "25";

/// Cases in progress at a time. They mostly sleep.
const AT_A_TIME: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ranks {
    Processes,
    Threads,
}

struct Suite {
    program: PathBuf,
    shared_object: PathBuf,
    scratch: PathBuf,
}

/// One case with one number of ranks, and the lines it must print.
struct Task {
    ranks: Ranks,
    size: usize,
    case: String,
    want: String,
}

fn main() -> ExitCode {
    if let Some(code) = threads::as_rank_holder() {
        return code;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let suite = build(scratch.path());
    let tasks = tasks(&suite);
    assert!(!tasks.is_empty(), "HOPBINE_CONFORMANCE leaves no case");

    let (next, failures) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|s| {
        for _ in 0..AT_A_TIME {
            s.spawn(|| {
                // Relaxed: only hands out numbers; the tasks were there before the threads.
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(text) = run(&suite, task) {
                        let key = (task.ranks, task.size, task.case.clone());
                        failures.lock().expect("no panic").insert(key, text);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    for ((ranks, size, case), text) in &failures {
        println!("---- {case}, {size} rank(s) as {ranks:?}\n{text}");
    }
    println!("conformance: {} of {} cases as expected", tasks.len() - failures.len(), tasks.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn build(dir: &Path) -> Suite {
    let source = |name| sys().join("conformance").join(name);
    let program = dir.join("conformance");
    compile(&[source("conformance.c"), source("harness_hopbine.c")], &program, &[]);
    let shared_object = dir.join("conformance.so");
    let sources = [source("conformance.c"), source("harness_threads.c")];
    compile(&sources, &shared_object, &["-shared", "-fPIC"]);
    Suite { program, shared_object, scratch: dir.to_path_buf() }
}

/// Every case of the suite that the golden files have, in the suite's order.
fn tasks(suite: &Suite) -> Vec<Task> {
    let list = Command::new(&suite.program)
        .arg("--list")
        .env("LD_LIBRARY_PATH", library_dir())
        .output()
        .expect("was built");
    assert!(list.status.success(), "{list:?}");
    let list = String::from_utf8(list.stdout).expect("names");
    let only = std::env::var("HOPBINE_CONFORMANCE").unwrap_or_default();
    let mut tasks = Vec::new();
    for ranks in [Ranks::Processes, Ranks::Threads] {
        for size in [1, 2, 4] {
            let golden = sys().join(format!("conformance/golden/conformance-{size}.golden"));
            let golden = fs::read_to_string(&golden).expect("is in the repository");
            let mut named = 0;
            for case in list.lines().filter_map(|l| l.split(' ').next()) {
                let prefix = format!("CASE {case}:");
                let want: Vec<_> =
                    golden.split_inclusive('\n').filter(|l| l.starts_with(&prefix)).collect();
                named += want.len();
                if !want.is_empty() && case.contains(&only) {
                    tasks.push(Task { ranks, size, case: case.to_owned(), want: want.concat() });
                }
            }
            assert_eq!(
                named,
                golden.lines().count(),
                "the golden file has cases that the suite lacks"
            );
        }
    }
    tasks
}

/// Ok, or a diff and what else is known.
fn run(suite: &Suite, task: &Task) -> Result<(), String> {
    let dir = tempfile::tempdir_in(&suite.scratch).expect("a directory");
    let environment = |c: &mut Command| {
        c.env("HX_SHM", dir.path().join("shm"))
            .env("HX_QUIET_MS", QUIET_MS)
            .env("HX_LIMIT_S", "60");
    };
    let outcomes = match task.ranks {
        Ranks::Processes => launch(task.size, dir.path(), || {
            let mut c = Command::new(&suite.program);
            c.arg(&task.case);
            environment(&mut c);
            c
        }),
        Ranks::Threads => {
            let mut c =
                threads::rank_holder(&suite.shared_object, dir.path(), task.size, &task.case);
            environment(&mut c);
            let ended = processes::run(c.env("LD_LIBRARY_PATH", library_dir()));
            let trouble = trouble(&ended);
            vec![(ended.stdout, trouble)]
        }
    };
    let (mut lines, mut troubles) = (Vec::new(), String::new());
    for (text, trouble) in &outcomes {
        lines.extend(text.split_inclusive('\n'));
        troubles.extend(trouble.as_deref());
    }
    lines.sort_unstable();
    let got = lines.concat();
    if got == task.want && troubles.is_empty() {
        return Ok(());
    }
    let diff = similar::TextDiff::from_lines(task.want.as_str(), got.as_str());
    let diff = diff.unified_diff().header("golden", "emulated device").to_string();
    Err(format!("{diff}{troubles}"))
}
