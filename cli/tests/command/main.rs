//! Tests of the `hopbine` command, called as a user calls it.

mod bench;
mod chaos;
mod check;
mod doctor;
mod documents;
mod env;
mod errors;
mod generate;
mod launched;
mod list;
mod messages;
mod plan;
mod run;
mod search;
mod simulate;
mod tables;
mod trace;
mod traffic;
mod tune;
mod validate;

use std::path::Path;
use std::process::{Command, Output};

use hopbine::torus::{Collective, registry};
use hopbine_testing::cores::one_core;
use hopbine_testing::processes::{OutputInTime, write_program};

/// The command, without variables from the environment.
fn command(args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopbine"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HOPBINE_")) {
        command.env_remove(name);
    }
    command.args(args.split_whitespace());
    command
}

fn copy_of_hopbine(to: &Path) {
    write_program(to, &std::fs::read(env!("CARGO_BIN_EXE_hopbine")).unwrap());
}

fn hopbine(args: &str) -> Output {
    let _core = one_core();
    command(args).output_in_time()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Standard output of a call that must succeed.
fn well(args: &str) -> String {
    let output = hopbine(args);
    assert!(output.status.success(), "{args}: {}", text(&output.stderr));
    // On a busy machine `chaos` may take long enough to print its progress.
    let said: Vec<_> =
        text(&output.stderr).lines().filter(|line| !line.starts_with("chaos: ")).collect();
    assert_eq!(said, Vec::<&str>::new(), "{args}");
    text(&output.stdout).to_owned()
}

/// Calls with wrong arguments, each with a part of its error message.
fn refused(calls: &[(&str, &str)]) {
    for (args, why) in calls {
        let output = hopbine(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(text(&output.stderr).contains(why), "{args}: {}", text(&output.stderr));
    }
}

/// Number of algorithms of a collective that serve a shape.
fn n_serving(collective: Collective, shape: &str) -> usize {
    let shape = shape.parse().unwrap();
    let algorithms = registry::algorithms(collective).into_iter();
    algorithms.filter(|algorithm| algorithm.serves(&shape).is_ok()).count()
}

fn json(args: &str) -> serde_json::Value {
    serde_json::from_str(&well(args)).unwrap_or_else(|error| panic!("{args}: {error}"))
}
