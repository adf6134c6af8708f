//! Tests of wrong arguments, and of output whose reader closes early.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use super::documents::blocks;
use super::{command, copy_of_hopbine, hopbine, text, well};
use hopbine_testing::cores::one_core;
use hopbine_testing::processes::OutputInTime;

/// What cannot be written is found before the work, whose own error would come first otherwise.
#[test]
fn a_file_that_cannot_be_written_is_found_first() {
    for command in [
        "tune --machine no-such",
        "search allreduce --torus 4 --machine no-such",
        "simulate allreduce --torus 4 --machine no-such",
        "simulate allreduce --torus 4 --machine no-such --plot /nonexistent/x",
        "simulate bcast --torus 4 --machine no-such --bytes 8 --show timeline --trace /nonexistent/x",
        "validate --measured no-such",
        "validate --measured no-such --plot /nonexistent/x",
        "calibrate --measured no-such",
        "doctor",
        "check --schedule no-such",
        "traffic --schedule no-such",
        "bench --mpicc no-such",
        "bench --mpicc no-such --plot /nonexistent/x",
        "tune --measure --torus 2 --log /nonexistent/x -o /dev/null --backend emu --against no-such",
        "run allreduce --torus 2 --bytes 8..16 --plot /nonexistent/x",
    ] {
        let other = if command.contains("/nonexistent") { "" } else { " -o /nonexistent/x" };
        let output = hopbine(&format!("{command}{other}"));
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {err}");
        assert!(err.starts_with("error: cannot write /nonexistent/x: "), "{command}: {err}");
        assert_eq!(text(&output.stdout), "", "{command}");
    }
}

/// Who starts a program that has another user's rights does not choose its code. Only root can make such a program.
#[test]
fn a_setuid_program_loads_no_library_that_its_caller_names() {
    use std::os::unix::fs::{PermissionsExt, chown};
    if !rustix::process::geteuid().is_root() {
        return hopbine_testing::skip("only root can make a setuid program of another user");
    }
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_hopbine"));
    // Beside the command: file systems for temporary files may not know such programs.
    let directory = tempfile::tempdir_in(own.parent().unwrap()).unwrap();
    let program = directory.path().join("hopbine");
    copy_of_hopbine(&program);
    chown(&program, Some(65534), None).unwrap();
    for (mode, is_tried) in [(0o755, true), (0o4755, false)] {
        std::fs::set_permissions(&program, PermissionsExt::from_mode(mode)).unwrap();
        let mut info = std::process::Command::new(&program);
        info.arg("info").env("HOPBINE_BACKEND", "tofu").env("HOPBINE_UTOFU_LIB", "/nowhere/x.so");
        for (name, value) in [("RANK", "0"), ("SIZE", "1"), ("RENDEZVOUS", "/nowhere/meet")] {
            info.env(format!("HOPBINE_{name}"), value);
        }
        let output = info.output_in_time();
        let err = text(&output.stderr);
        assert!(err.contains("no uTofu library"), "{err}");
        assert_eq!(err.contains("/nowhere/x.so"), is_tried, "{mode:o}: {err}");
    }
}

#[test]
fn errors_say_what_would_be_right() {
    for (args, expected) in [
        ("list foo", "known are allreduce, reduce-scatter"),
        ("env HOPBINE_NONE", "hopbine reads no variable HOPBINE_NONE"),
        ("list --torus 4x0x4", "every dimension of a torus has at least 1 coordinate"),
        ("list --torus 4*4", "write sizes joined by `x`"),
        ("run allreduce --torus 4x4 --bytes 3", "use 8 or another multiple of 8"),
        (
            "run allreduce --torus 4x4 --bytes 1.5MiB",
            "a whole number of KiB, MiB, GiB, TiB, kB, MB, GB or TB",
        ),
        ("run allreduce --torus 4x4 --bytes 64..8", "from the smaller size"),
        ("run allreduce --torus 4x4 --bytes 8..64:4", "write `:xF`"),
        ("run allreduce --torus 4x4 --bytes -8", "`-8` is not a size"),
        ("run allreduce --torus 4x4", "--bytes is missing"),
        ("run barrier --torus 4x4 --bytes 8", "leave out --bytes"),
        (
            "run allreduce --torus 3x5 --bytes 8 --algorithm bine",
            "it needs an even size; on 3x5 there are mixed",
        ),
        ("run allreduce --torus 4x4 --bytes 8 --algorithm ring", "known are mixed"),
        ("run allreduce --torus 4x4 --bytes 8 --ports 9", "use 1 to 4"),
        ("run allreduce --torus 4x4 --bytes 8 --ports 0", "use 1 to 4"),
        ("run allreduce --torus 4x4 --bytes 8 --type f33", "valid are: i8 i16"),
        ("run allreduce --torus 4x4 --bytes 8 --op plus", "valid are: sum prod"),
        ("run allreduce --torus 4x4 --bytes 8 --op band", "defined are: sum prod min max"),
        ("run allreduce --torus 4x4 --bytes 8 --drive fast", "inline, worker, workers, auto"),
        ("run barrier --torus 600", "at most 512, 768 and 512 nodes"),
        ("run barrier --torus 48x69x48", "this host allows"),
        ("run barrier --torus 4x4 --drive foo", "--drive <inline|worker|workers|auto>"),
        ("check allreduce --torus 4 --schedule s.txt", "Usage: hopbine check --torus <SHAPE>"),
        ("run bcast --torus 4x4 --bytes 8 --root 16", "ranks 0 to 15"),
        ("run bcast --torus 4x4 --bytes 8 --iterations 0", "0 is not in 1.."),
        ("run allreduce --torus 4x4 --bytes 1024TiB", "use smaller --bytes"),
        ("run allreduce --torus 2 --bytes 18446744073709551615", "use 18446744073709551608"),
        ("run bcast --torus 2 --type i8 --bytes 18446744073709551615", "use smaller --bytes"),
        ("run allgather --torus 3 --bytes 18446744073709551608", "use smaller --bytes"),
        ("run alltoall --torus 3 --bytes 18446744073709551608", "use smaller --bytes"),
        ("plan bcast --torus 4x4 --rank 16", "ranks 0 to 15"),
        ("plan allreduce --torus 4294967295 --rank 0", "use a smaller torus, or one of more"),
        ("plan bcast --torus 4x4 --rank 0 --map hosts", "column-major, row-major or a file"),
        ("launch -n 2 --bogus true", "launch has no option --bogus"),
        ("launch -n 4294967295 true", "this host allows"),
        ("plan bcast --torus 4x4 --rank 0 --root 16", "ranks 0 to 15"),
        ("plan bcast --torus 4x4 --rank 0 --format svgz", "svg"),
        ("plan bcast --torus 2x2x2x2 --rank 0 --format svg", "up to 3 dimensions"),
        ("plan bcast --torus 48x69x48 --rank 0 --format svg", "up to 600 nodes"),
        ("plan bcast --torus 4x4 --rank 0 --map nowhere.txt", "cannot read nowhere.txt"),
        ("check allreduce --torus 4x4 --ports some", "a number, `max` or `all`"),
        ("check allreduce --torus 4x4 --ports 7", "use 1 to 4"),
        ("check allreduce --torus 3x3 --algorithm doubling", "it needs a power of two; on 3x3"),
        ("check bcast --torus 4x4 --root 99", "ranks 0 to 15"),
        ("check --torus 4x4", "<COLLECTIVE>"),
        ("check allreduce", "--torus <SHAPE>"),
        ("check allreduce --torus 4 --schedule s.txt", "cannot be used with"),
        ("prove allreduce", "unrecognized subcommand"),
    ] {
        let output = hopbine(args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.starts_with("error: ") && error.contains(expected), "{args}: {error}");
        assert!(output.stdout.is_empty(), "{args}");
        assert!(!error.contains('\u{1b}'), "{args}: no colours without a terminal");
    }
}

const HELPS: [&str; 9] = [
    "--help",
    "list --help",
    "explain --help",
    "plan --help",
    "check --help",
    "traffic --help",
    "run --help",
    "launch --help",
    "info --help",
];

#[test]
fn every_command_explains_itself_with_examples() {
    for args in HELPS {
        let help = well(args);
        assert!(help.contains("Examples:\n  hopbine "), "{args}: {help}");
    }
}

/// The commands in the examples of the help texts, without those that need the user's files or programs, and without
/// those that `documents` runs.
fn examples() -> Vec<String> {
    let blocks = ["README.md", "docs/guide/command.md"].map(blocks).concat();
    let lines = blocks.iter().flat_map(|block| block.lines());
    let run_there: Vec<&str> = lines
        .filter_map(|line| {
            let plain = line.strip_prefix("hopbine ");
            plain.or_else(|| line.strip_prefix("cargo run --release -- "))
        })
        .map(|line| line.split(" #").next().unwrap_or(line).trim_end())
        .collect();
    let helps = HELPS.map(well);
    let lines = helps.iter().flat_map(|help| help.lines());
    let commands = lines.filter_map(|line| line.strip_prefix("  hopbine "));
    let mut commands: Vec<String> = commands
        .filter(|line| !line.contains(".txt") && !line.contains("./") && !run_there.contains(line))
        .map(str::to_owned)
        .collect();
    commands.sort();
    commands.dedup();
    commands
}

#[test]
#[ignore = "takes long: cargo test -p hopbine-cli --test command -- --ignored"]
fn the_examples_work() {
    let directory = tempfile::tempdir().unwrap();
    let examples = examples();
    assert!(examples.len() > 12, "{examples:?}");
    let _core = one_core();
    for args in examples {
        let output = command(&args).current_dir(directory.path()).output_in_time();
        assert!(output.status.success(), "{args}: {}", text(&output.stderr));
    }
    assert!(directory.path().join("plan.svg").exists());
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let (mut child, _limit) = command("plan alltoall --torus 12x12 --rank 0 --algorithm pairwise")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn_in_time();
    let mut line = String::new();
    // The output exceeds a pipe's capacity, so the writer sees the closed pipe.
    BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("# pairwise on 12x12"), "{line}");
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(error, "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn variables_that_make_no_sense_are_named() {
    let [long, torn] = [&b"4000000000"[..], b"o\xff"].map(OsStr::from_bytes);
    for (name, value, expected) in [
        ("HOPBINE_SIZE", long, "a whole number from 1 to 1048576"),
        ("HOPBINE_TIMEOUT", torn, "HOPBINE_TIMEOUT: `o\u{fffd}` is not valid"),
        ("HOPBINE_SHM", torn, "HOPBINE_SHM: `o\u{fffd}` is not valid"),
    ] {
        let mut info = command("info");
        info.env("HOPBINE_RANK", "0").env("HOPBINE_RENDEZVOUS", "nowhere/meet").env(name, value);
        let output = info.output_in_time();
        let error = text(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code != 0), "{name}: {error}");
        assert!(error.starts_with("error: ") && error.contains(expected), "{name}: {error}");
    }
}

/// `hopbine ... -o /dev/stdout >> log`, and `-o` with the name of the log.
#[test]
fn what_standard_output_is_appended_to_stays() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    std::fs::write(&log, "before\n").unwrap();
    let listed = well("list barrier");
    for path in [OsStr::new("/dev/stdout"), log.as_os_str()] {
        let appended = std::fs::File::options().append(true).open(&log).unwrap();
        let (mut child, _limit) =
            command("list barrier -o").arg(path).stdout(appended).spawn_in_time();
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(std::fs::read_to_string(&log).unwrap(), format!("before\n{listed}{listed}"));
}
