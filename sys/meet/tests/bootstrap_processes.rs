//! The rendezvous among processes, started as a launcher would: by environment only. This program
//! is its own ranks (no test harness, so that it can be started again as a rank).

use std::process::{Command, ExitCode};
use std::time::Duration;

use hopbine_meet::{
    Bootstrap, BootstrapError, ENV_RANK, ENV_RENDEZVOUS, ENV_SIZE, Exchange, Place,
    from_environment,
};
use hopbine_testing::processes::{Process, run, wait};

fn main() -> ExitCode {
    if std::env::var_os(ENV_RANK).is_some() {
        return rank();
    }
    without_a_launcher_the_variable_is_named();
    a_wrong_rank_is_refused();
    processes_meet();
    println!("bootstrap_processes: ok");
    ExitCode::SUCCESS
}

fn meet(timeout: Duration) -> Result<Bootstrap, BootstrapError> {
    Place::find(&from_environment)?.meet(&from_environment, ".test", timeout)
}

/// One rank: everyone's process number must reach everyone.
fn rank() -> ExitCode {
    let outcome = meet(Duration::from_secs(60)).and_then(|mut x| {
        let mine = format!("{} is {}", x.rank(), std::process::id());
        let all = x.allgather(mine.as_bytes())?;
        x.barrier()?;
        Ok((x.size(), all))
    });
    match outcome {
        Ok((size, all)) => {
            assert_eq!(all.len(), size);
            for message in all {
                println!("{}", String::from_utf8(message).expect("was text"));
            }
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn processes_meet() {
    let dir = tempfile::tempdir().expect("a directory");
    let me = std::env::current_exe().expect("known");
    for size in [1usize, 4] {
        let children: Vec<_> = (0..size)
            .map(|r| {
                let mut command = Command::new(&me);
                command
                    .env(ENV_RANK, r.to_string())
                    .env(ENV_SIZE, size.to_string())
                    .env(ENV_RENDEZVOUS, dir.path().join("meet"));
                Process::start(&mut command)
            })
            .collect();
        let want: String =
            children.iter().enumerate().map(|(r, c)| format!("{r} is {}\n", c.id())).collect();
        for ended in wait(children) {
            assert!(ended.status.success(), "{}", ended.stderr);
            assert_eq!(ended.stdout, want);
        }
    }
}

fn without_a_launcher_the_variable_is_named() {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    let ended = run(command.env(ENV_RANK, "1"));
    assert!(ended.stderr.contains("HOPBINE_SIZE is not set"), "{}", ended.stderr);
}

fn a_wrong_rank_is_refused() {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    command.envs([(ENV_RANK, "7"), (ENV_SIZE, "2"), (ENV_RENDEZVOUS, "/nowhere/meet")]);
    let ended = run(&mut command);
    assert!(!ended.status.success());
    let text = ended.stderr;
    assert!(text.contains("HOPBINE_RANK=7") && text.contains("from 0 to 1"), "{text}");
}
