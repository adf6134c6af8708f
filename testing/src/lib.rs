//! Helpers that the tests of all packages share: [`skip`] counts a test that this machine cannot run, [`processes`]
//! starts programs and [`ranks`] threads that cannot hang their test, [`cores`] binds a test to one core,
//! [`forbidden`] forbids system calls, and [`huge`] maps huge pages.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::Path;

pub mod cores;
pub mod forbidden;
pub mod huge;
pub mod processes;
pub mod ranks;

/// Environment variable with the file to which [`skip`] appends. `test.sh` sets it and prints the file at its end.
pub const SKIPPED: &str = "HOPBINE_TEST_SKIPPED";

/// Reports why this machine cannot run the calling test; the test must then return. Appends one line to the file that
/// [`SKIPPED`] names.
///
/// # Panics
/// If `CI=true`, where no test may be skipped.
#[track_caller]
pub fn skip(reason: impl Display) {
    let place = Location::caller();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread without a name");
    let line = format!("{test} ({}:{}): {reason}", place.file(), place.line());
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    record(&line, in_ci, std::env::var_os(SKIPPED).as_ref().map(Path::new));
}

fn record(line: &str, in_ci: bool, file: Option<&Path>) {
    assert!(!in_ci, "CI=true allows no skipped test: {line}");
    eprintln!("SKIPPED: {line}");
    if let Some(path) = file {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // One write, so that lines of concurrent processes do not mix.
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skip_adds_a_line() {
        let path = std::env::temp_dir().join(format!("hopbine-testing-{}", std::process::id()));
        record("first", false, Some(&path));
        record("second", false, Some(&path));
        record("nowhere", false, None);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "first\nsecond\n");
    }

    #[test]
    #[should_panic(expected = "CI=true allows no skipped test: why")]
    fn a_skip_in_ci_fails() {
        record("why", true, None);
    }
}
