//! Tests of `hopbine launch`: C programs for uTofu under it, and its behaviour when ranks fail.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hopbine_testing::processes::{OutputInTime, send_signal, wait_until};

fn launch(arguments: &[&str], program: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hopbine"))
        .arg("launch")
        .args(arguments)
        .args(program)
        .stdin(Stdio::null())
        .output_in_time()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn well(output: &Output) -> String {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out
}

/// Compiles an example against the header alone, and links it to `library`.
fn compile(example: &str, library: &str, directory: &Path) -> PathBuf {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let program = directory.join(example);
    let exe = std::env::current_exe().expect("known");
    // Cargo puts the libraries of dependencies beside the test programs.
    let libraries = exe.parent().expect("is in a directory");
    let link = directory.join("libtofucom.so");
    if !link.exists() {
        let emulated = libraries.join("libtofucom_emu.so");
        std::os::unix::fs::symlink(emulated, link).expect("a link under the vendor's name");
    }
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(cc)
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("sys/include"))
        .arg(root.join("examples/utofu-c").join(example).with_extension("c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(libraries)
        .arg("-L")
        .arg(directory)
        .arg(format!("-l{library}"))
        .output_in_time();
    assert!(output.status.success(), "{}", text(&output.stderr));
    program
}

#[test]
fn c_programs_run_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let pingpong = compile("pingpong", "tofucom_emu", directory.path());
    let out = well(&launch(&["-n", "2"], &[pingpong.to_str().unwrap()]));
    assert!(out.contains("all correct"), "{out}");
    let halo = compile("halo", "tofucom_emu", directory.path());
    let halo = halo.to_str().unwrap();
    for (torus, sizes) in [("2x2x2", ["2", "2", "2"]), ("1x3x1", ["1", "3", "1"])] {
        let out = well(&launch(&["--torus", torus], &[halo, sizes[0], sizes[1], sizes[2]]));
        assert!(out.contains("all cells correct"), "{out}");
    }
}

/// In each direction more long messages are in flight than a queue has lines.
#[test]
fn two_ranks_have_many_long_messages_under_way() {
    let options = ["-n", "2", "--backend", "shm", "env", "HOPBINE_CMA=off"];
    let run =
        "run reduce-scatter --torus 2 --bytes 34MiB --segment 128KiB --ports 1 --iterations 10";
    let command = [env!("CARGO_BIN_EXE_hopbine")].into_iter().chain(run.split(' '));
    let out = well(&launch(&options, &command.collect::<Vec<_>>()));
    assert!(out.contains("yes"), "{out}");
}

#[test]
fn a_program_linked_to_the_vendors_library_runs_too() {
    let directory = tempfile::tempdir().unwrap();
    let pingpong = compile("pingpong", "tofucom", directory.path());
    let out = well(&launch(&["-n", "2", "--as-vendor"], &[pingpong.to_str().unwrap()]));
    assert!(out.contains("all correct"), "{out}");
}

#[test]
fn ranks_learn_their_place_and_their_lines_stay_whole() {
    let script = "for i in 1 2 3; do echo $HOPBINE_RANK/$HOPBINE_SIZE $HOPBINE_TORUS \
                  $HOPBINE_RANKS_PER_NODE $HOPBINE_TIMEOUT; done; echo trouble >&2";
    let output = launch(
        &["-n", "6", "--ranks-per-node", "2", "--timeout", "9", "--tag-output"],
        &["sh", "-c", script],
    );
    let out = well(&output);
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    let want: Vec<String> =
        (0..18).map(|at| format!("[{rank}] {rank}/6 3 2 9", rank = at / 3)).collect();
    assert_eq!(lines, want);
    assert_eq!(text(&output.stderr).lines().count(), 6);
}

/// The launcher keeps variables that the user has exported, and overrides those of an outer job's launcher.
#[test]
fn the_environments_torus_is_left_to_the_ranks() {
    let launched = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hopbine"));
        command.args(["launch", "-n", "4", "sh", "-c"]);
        command.arg("echo $HOPBINE_TORUS $HOPBINE_RANKS_PER_NODE");
        well(&command.envs(variables.iter().copied()).output_in_time())
    };
    let said = [("HOPBINE_TORUS", "2"), ("HOPBINE_RANKS_PER_NODE", "2"), ("HOPBINE_RANK", "0")];
    assert_eq!(launched(&said[..2]), "2 2\n".repeat(4));
    assert_eq!(launched(&said), "2x2 1\n".repeat(4));
    // Ranks that share memory choose their torus: not that of the outer job.
    let shared = [&said[..], &[("HOPBINE_BACKEND", "shm")]].concat();
    assert_eq!(launched(&shared), "1\n".repeat(4));
    // A variable that is set to the empty string counts as unset, for the launcher and for the ranks.
    let empty =
        ["TORUS", "RANKS_PER_NODE", "BACKEND", "TIMEOUT"].map(|name| format!("HOPBINE_{name}"));
    let mut info = Command::new(env!("CARGO_BIN_EXE_hopbine"));
    info.args(["launch", "-n", "4", env!("CARGO_BIN_EXE_hopbine"), "info"]);
    let out = well(&info.envs(empty.iter().map(|name| (name, ""))).output_in_time());
    assert_eq!(out.matches("emu (emulated device)").count(), 4, "{out}");
    assert!(out.contains("2x2 at (1,1)"), "{out}");
}

/// An empty element of the path would be the working directory.
#[test]
fn an_empty_library_path_gains_no_working_directory() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopbine"));
    command.args(["launch", "-n", "1", "--as-vendor", "sh", "-c", "echo $LD_LIBRARY_PATH"]);
    let out = well(&command.env("LD_LIBRARY_PATH", "").output_in_time());
    assert!(out.trim().split(':').all(|element| element.starts_with('/')), "{out}");
}

#[test]
fn what_ranks_write_is_passed_on_as_it_is() {
    let out = launch(&["-n", "2"], &["sh", "-c", "head -c 200000 /dev/zero"]);
    assert!(out.status.success() && out.stdout == vec![0; 400_000], "{}", out.stdout.len());
}

/// Whether a process exists and has not ended.
fn is_running(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn what_a_failed_job_leaves_behind_is_ended() {
    // The shell ends at SIGTERM; the process that it has started does not.
    let left = "trap '' TERM; echo $$; exec sleep 600";
    let script =
        format!("[ $HOPBINE_RANK = 1 ] && exit 3; sh -c \"{}\" & wait", left.replace('$', "\\$"));
    let output = launch(&["-n", "2", "--grace", "1"], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("terminating the last rank\n"));
    let process = text(&output.stdout);
    assert!(!process.trim().is_empty());
    // The process was killed; its end takes a moment.
    let begun = std::time::Instant::now();
    while is_running(process.trim()) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{process} still runs");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_signal_that_is_to_be_ignored_is() {
    let directory = tempfile::tempdir().unwrap();
    let sent = directory.path().join("sent");
    let rank = format!("echo up; until [ -e {} ]; do sleep 0.01; done; echo done", sent.display());
    let script = "trap '' HUP; exec \"$0\" launch -n 1 sh -c \"$1\"";
    let (mut job, _limit) = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_hopbine"), &rank])
        .stdout(Stdio::piped())
        .spawn_in_time();
    let mut out = std::io::BufReader::new(job.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    send_signal(&mut job, libc::SIGHUP);
    // The launcher receives the signal before it can see this file.
    std::fs::write(sent, "").unwrap();
    out.read_to_string(&mut line).unwrap();
    assert!(job.wait().unwrap().success());
    assert_eq!(line, "up\ndone\n");
}

/// Arguments that run a collective on two processes.
const RUN: [&str; 8] = ["run", "allreduce", "--torus", "2", "--bytes", "8", "--iterations", "2"];

#[test]
fn the_algorithm_that_the_environment_prefers_is_named() {
    let program = [&[env!("CARGO_BIN_EXE_hopbine")], &RUN[..]].concat();
    let mut command = Command::new(program[0]);
    command.args(["launch", "-n", "2"]).args(program);
    let output = command.env("HOPBINE_ALGORITHM", "allreduce=bucket").output_in_time();
    let out = well(&output);
    assert!(out.contains("bucket") && !out.contains("mixed"), "{out}");
}

/// Ranks use one decision table; they refuse different tables, and name the line of an error in a table.
#[test]
fn ranks_have_one_decision_table() {
    let directory = tempfile::tempdir().unwrap();
    let network = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../src/comm/choice/tables/network.toml"
    ));
    let network = network.unwrap();
    let other = network.replace("\"mixed-l\", ports = 1", "\"bine-l\", ports = 1");
    assert_ne!(other, network);
    for (name, table) in
        [("same-0", &other), ("same-1", &other), ("odd-0", &network), ("odd-1", &other)]
    {
        std::fs::write(directory.path().join(name), table).unwrap();
    }
    let with = |tables: &str| {
        let hopbine = env!("CARGO_BIN_EXE_hopbine");
        let path = directory.path().join(tables).display().to_string();
        let program = format!(
            "HOPBINE_TUNING={path}-$HOPBINE_RANK exec {hopbine} {} --backend emu",
            RUN.join(" ")
        );
        launch(&["-n", "2"], &["sh", "-c", &program])
    };
    let out = with("same");
    assert!(well(&out).contains("bine-l"), "{}", text(&out.stdout));
    let err = |tables| text(&with(tables).stderr).to_owned();
    let odd = err("odd");
    let at = |table: &str, part| 1 + table[..table.find(part).unwrap()].matches('\n').count();
    let line = at(&other, "\"bine-l\", ports = 1");
    assert!(
        odd.contains(&format!("odd-1, line {line}: from here on rank 0 has something else ("))
            && odd.contains(&format!("odd-0, line {line}); all ranks need the same table")),
        "{odd}"
    );
    // The rank that finds an error names itself, the file and the line.
    let table = "version = 1\nname = \"t\"\nwire = \"network\"\notherwise = \"network\"\n[class.all]\nranks = \"1..\"\n\
                 [[rule]]\ncollective = \"bcast\"\nclass = \"all\"\nrows = [\n\
                 { bytes = \"0..8KiB\", algorithm = \"mixed-tree\", ports = 1, segment = \"whole\" },\n\
                 { bytes = \"8KiB..\", algorithm = \"mixed\", ports = \"all\", segment = \"64KiB\" },\n]\n";
    for (from, to, said) in [
        ("version = 1", "version = 9", "1: `version = 9` is not known; tables have version 1"),
        ("mixed-tree", "mixed-three", "11: `mixed-three` is not an algorithm for bcast"),
        ("class = \"all\"", "class = \"some\"", "9: there is no class `some`; the table has all"),
        ("segment = \"64KiB\"", "segments = 3", "12: there is no key `segments` here"),
        ("8KiB..\"", "9KiB..\"", "12: no row is for sizes above 8192 up to 9216 bytes"),
        ("8KiB..\"", "7KiB..\"", "12: sizes above 7168 up to 8192 bytes are the row before's, too"),
        ("8KiB..\"", "8KiB..9KiB\"", "12: "),
    ] {
        assert!(table.contains(from), "{from}");
        for rank in 0..2 {
            let path = directory.path().join(format!("bad-{rank}"));
            std::fs::write(path, table.replacen(from, to, 1)).unwrap();
        }
        let bad = err("bad");
        // The launcher may have ended the other rank before it printed the error.
        let is_said = |rank: u32| {
            let path = directory.path().join(format!("bad-{rank}"));
            bad.contains(&format!("rank {rank}: decision table {}, line {said}", path.display()))
        };
        assert!((0..2).any(is_said), "{said}: {bad}");
    }
}

#[test]
fn a_rank_that_cannot_write_says_so() {
    let program = [&[env!("CARGO_BIN_EXE_hopbine")], &RUN[..], &["-o", "/nonexistent/x"]].concat();
    let output = launch(&["-n", "2"], &program);
    assert_eq!(output.status.code(), Some(1));
    let err = text(&output.stderr);
    assert!(err.contains("cannot write /nonexistent/x"), "{err}");
}

/// The names in a directory.
fn left_behind(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap();
    names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_first_failure_decides_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let run = |script: &str, grace: &str| {
        Command::new(env!("CARGO_BIN_EXE_hopbine"))
            .args(["launch", "-n", "3", "--grace", grace, "sh", "-c", script])
            .env("TMPDIR", directory.path())
            .output_in_time()
    };
    let output = run("if [ $HOPBINE_RANK = 1 ]; then kill -KILL $$; fi; sleep 600", "0");
    assert_eq!(output.status.code(), Some(137));
    let err = text(&output.stderr);
    assert!(err.contains("rank 1 was killed by signal 9 (SIGKILL)"), "{err}");
    assert!(err.contains("terminating the other 2 ranks"), "{err}");

    // Ranks that end within the grace period are not terminated.
    let output = run(
        "if [ $HOPBINE_RANK = 2 ]; then exit 7; fi; sleep 0.3; echo done",
        &u64::MAX.to_string(),
    );
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(text(&output.stdout), "done\ndone\n");

    // A process that ignores SIGTERM is killed.
    let output = run("trap '' TERM; if [ $HOPBINE_RANK = 0 ]; then exit 3; fi; sleep 600", "0");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(left_behind(directory.path()), [""; 0]);

    let output = Command::new(env!("CARGO_BIN_EXE_hopbine"))
        .args(["launch", "-n", "2", "/nowhere/program"])
        .output_in_time();
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).contains("/nowhere/program"));
}

/// A rank dies before it has joined, and another waits for it: the waiting rank does not outlive the job.
#[test]
fn a_job_that_never_met_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let pingpong = compile("pingpong", "tofucom_emu", directory.path());
    let (first, tmp) = (directory.path().join("first"), directory.path().join("tmp"));
    std::fs::create_dir(&tmp).unwrap();
    // Rank 0 opens the device and waits for rank 1, which exits as soon as the device exists.
    let script = format!(
        "if [ $HOPBINE_RANK = 0 ]; then echo $$ >{}; exec {}; fi; \
         while [ ! -s $HOPBINE_RENDEZVOUS.device ]; do sleep 0.05; done; exit 5",
        first.display(),
        pingpong.display(),
    );
    let output = Command::new(env!("CARGO_BIN_EXE_hopbine"))
        .args(["launch", "-n", "2", "--grace", "0", "sh", "-c", &script])
        .env("TMPDIR", &tmp)
        .output_in_time();
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    let id = std::fs::read_to_string(first).unwrap();
    assert!(!is_running(id.trim()), "rank 0 still runs");
    assert_eq!(left_behind(&tmp), [""; 0]);
}

/// Sets what the command that is started does with a signal, before it starts.
fn start_with(command: &mut Command, signal: libc::c_int, action: libc::sighandler_t) {
    use std::os::unix::process::CommandExt;
    // SAFETY: `signal` may be called between fork and exec, and no function becomes a handler.
    unsafe {
        command.pre_exec(move || {
            libc::signal(signal, action);
            Ok(())
        });
    }
}

/// Some parents ignore SIGCHLD, and so do the processes that they start: the ends of ranks are known nevertheless.
#[test]
fn how_ranks_end_is_known_under_a_parent_that_ignores_it() {
    for status in [0, 7] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hopbine"));
        command.args(["launch", "-n", "2", "sh", "-c", &format!("exit {status}")]);
        start_with(&mut command, libc::SIGCHLD, libc::SIG_IGN);
        let output = command.output_in_time();
        assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
    }
}

#[test]
fn signals_are_passed_on() {
    use std::io::{BufRead, BufReader};
    let script = "trap 'echo rank $HOPBINE_RANK interrupted; exit 4' INT; echo ready; \
                  while :; do sleep 0.05; done";
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopbine"));
    command
        .args(["launch", "-n", "2", "--grace", "60", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // Tests that run in the background of a shell inherit SIGINT as ignored, and a shell cannot trap an ignored signal.
    start_with(&mut command, libc::SIGINT, libc::SIG_DFL);
    let (mut child, _limit) = command.spawn_in_time();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
    }
    send_signal(&mut child, libc::SIGINT);
    let mut rest: Vec<String> = lines.map(Result::unwrap).collect();
    rest.sort_unstable();
    assert_eq!(rest, ["rank 0 interrupted", "rank 1 interrupted"]);
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

/// A reader that stops reading the ranks' output does not keep the job from ending.
#[test]
fn a_job_ends_though_nobody_reads() {
    for script in ["yes", "yes >&2"] {
        let script = format!("[ $HOPBINE_RANK = 1 ] && sleep 0.5 && exit 3; {script}");
        let (mut job, _limit) = Command::new(env!("CARGO_BIN_EXE_hopbine"))
            .args(["launch", "-n", "2", "--grace", "0", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn_in_time();
        assert_eq!(job.wait().unwrap().code(), Some(3), "{script}");
    }
}

/// Runs the launcher with its arguments, as `hopbine` in a shell.
fn in_shell(script: &str) -> Output {
    let script = format!("hopbine() {{ {} \"$@\"; }}; {script}", env!("CARGO_BIN_EXE_hopbine"));
    Command::new("bash").args(["-c", &script]).stdin(Stdio::null()).output_in_time()
}

/// A reader that comes late gets all that ranks have written, even if a process left behind keeps the pipe open.
#[test]
fn a_slow_reader_gets_everything() {
    for behind in ["", "sleep 20 & "] {
        for (to, from) in [("", ""), (" >&2", "2>&1")] {
            let ranks = format!("launch -n 1 sh -c '{behind}seq 1 20000{to}' {from}");
            let output =
                in_shell(&format!("hopbine {ranks} | (sleep 2; wc -l); echo ${{PIPESTATUS[0]}}"));
            assert_eq!(well(&output), "20000\n0\n", "{ranks}: {}", text(&output.stderr));
        }
    }
}

/// So does the reader of a line without an end.
#[test]
fn a_line_without_an_end_is_passed_on() {
    let output = in_shell("hopbine launch -n 1 sh -c 'sleep 20 & printf begun'");
    assert_eq!(well(&output), "begun");
}

/// A signal ends a launcher that waits for its reader, after its ranks.
#[test]
fn a_signal_ends_the_wait_for_a_reader() {
    let (mut job, _limit) = Command::new(env!("CARGO_BIN_EXE_hopbine"))
        .args(["launch", "-n", "1", "sh", "-c", "echo $$ >&2; seq 1 20000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn_in_time();
    let mut err = std::io::BufReader::new(job.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    wait_until("the end of the rank", || !is_running(line.trim()));
    // The launcher waits once its output is full, but for what is left of each page.
    let out = job.stdout.take().unwrap();
    let full = rustix::pipe::fcntl_getpipe_size(&out).unwrap() - 1000;
    wait_until("a full pipe", || rustix::io::ioctl_fionread(&out).unwrap() > full as u64);
    std::thread::sleep(std::time::Duration::from_millis(200));
    send_signal(&mut job, libc::SIGTERM);
    assert_eq!(job.wait().unwrap().code(), Some(128 + libc::SIGTERM));
    err.read_to_string(&mut line).unwrap();
    assert!(line.contains("the end of the ranks' output is lost"), "{line}");
}

/// A rank's failure is the job's status also if nobody reads the output; otherwise a job that is ended because
/// nobody reads has the status of a program that SIGPIPE has ended.
#[test]
fn a_closed_output_does_not_hide_a_failure() {
    for (script, status) in [("yes", 141), ("[ $HOPBINE_RANK = 1 ] && exit 3; sleep 1; yes", 3)] {
        let output = in_shell(&format!(
            "hopbine launch -n 2 --grace 60 sh -c '{script}' | head -n 1; echo ${{PIPESTATUS[0]}}"
        ));
        let (out, err) = (well(&output), text(&output.stderr));
        assert_eq!(out.lines().last(), Some(&*status.to_string()), "{script}: {err}");
        let is_said = err.contains("standard output is closed: the ranks are terminated");
        assert_eq!(is_said, status == 141, "{script}: {err}");
    }
}

/// Processes behind a shell, and one in a process group of its own, end when their launcher is killed, and the
/// launcher's directory is removed.
#[test]
fn nothing_outlives_a_launcher_that_is_killed() {
    use std::io::BufReader;
    let script =
        "setsid sleep 1000 & echo $!; sleep 1000 & echo $!; echo $HOPBINE_RENDEZVOUS; wait";
    let (mut job, _limit) = Command::new(env!("CARGO_BIN_EXE_hopbine"))
        .args(["launch", "-n", "1", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn_in_time();
    let mut lines = BufReader::new(job.stdout.take().unwrap()).lines().map(Result::unwrap);
    let processes = [lines.next(), lines.next()].map(|line| format!("/proc/{}", line.unwrap()));
    let rendezvous = lines.next().unwrap();
    let directory = Path::new(&rendezvous).parent().unwrap();
    assert!(directory.is_dir());
    job.kill().unwrap();
    job.wait().unwrap();
    let begun = std::time::Instant::now();
    // A process that has ended and is not reaped has no descriptors to look at.
    let lives = |process: &&String| std::fs::read_link(format!("{process}/exe")).is_ok();
    while processes.iter().any(|process| lives(&process)) || directory.exists() {
        let left = processes.iter().filter(lives).collect::<Vec<_>>();
        let waited = begun.elapsed();
        assert!(waited < std::time::Duration::from_secs(60), "{left:?}, {rendezvous}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn info_tells_of_every_rank() {
    let hopbine = env!("CARGO_BIN_EXE_hopbine");
    let output = launch(&["-n", "4", "--ranks-per-node", "2", "--tag-output"], &[hopbine, "info"]);
    let out = well(&output);
    for rank in 0..4 {
        let line = format!("[{rank}] rank          {rank} of 4, 2 on this node");
        assert!(out.contains(&line), "{out}");
    }
    assert!(out.contains(", from HOPBINE_TORUS\n"), "{out}");
    assert!(out.contains("butterfly") && out.contains("HOPBINE_RANKS_PER_NODE=2"), "{out}");
    let output = launch(&["-n", "1"], &[hopbine, "info", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&well(&output)).unwrap();
    assert_eq!(json["torus_source"], "HOPBINE_TORUS");
    assert_eq!(json["backend"], "emu");
    assert_eq!(json["onesided"]["max_putget_size"], 16_777_215);
    assert!(json["registration_cache"]["hits"].is_u64());
}

/// The launcher reacts to a signal while it still starts ranks.
#[test]
fn the_start_can_be_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, _limit) = Command::new(env!("CARGO_BIN_EXE_hopbine"))
        .args(["launch", "-n", "3000", "--grace", "60", "sh", "-c"])
        .arg("echo started; sleep 600")
        .env("TMPDIR", directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn_in_time();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "started\n");
    send_signal(&mut child, libc::SIGTERM);
    let n_started = 1 + std::io::BufRead::lines(out).count();
    let mut err = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut err).unwrap();
    assert!(n_started < 3000, "all were started");
    assert_eq!(child.wait().unwrap().code(), Some(128 + libc::SIGTERM), "{err}");
    assert!(err.contains("SIGTERM while ranks were started"), "{err}");
    assert_eq!(left_behind(directory.path()), [""; 0]);
}

#[test]
fn more_ranks_than_the_host_can_start_are_refused() {
    let output = launch(&["-n", "1000000"], &["true"]);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("1000000 ranks need") && err.contains("this host allows"), "{err}");
}

/// Ranks also meet in a directory whose name is not UTF-8.
#[test]
fn a_directory_need_not_have_text_for_a_name() {
    use std::os::unix::ffi::OsStrExt;
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join(std::ffi::OsStr::from_bytes(b"a\xff"));
    std::fs::create_dir(&place).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopbine"));
    command.args(["launch", "-n", "2", env!("CARGO_BIN_EXE_hopbine"), "info"]);
    let out = well(&command.env("TMPDIR", place).output_in_time());
    assert!(out.contains("emu (emulated device)"), "{out}");
}

/// Batch systems limit the length of files, and so of shared memory: the result is an error, not a signal.
#[test]
fn a_limit_of_file_sizes_is_told() {
    let hopbine = env!("CARGO_BIN_EXE_hopbine");
    for backend in ["emu", "shm"] {
        let script = format!(
            "ulimit -f 200; exec {hopbine} launch -n 2 --grace 0 --backend {backend} {hopbine} info"
        );
        let output = Command::new("sh").args(["-c", &script]).output_in_time();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{backend}: {err}");
        assert!(err.contains("bytes only (ulimit -f)"), "{backend}: {err}");
    }
}

#[test]
fn the_first_rank_reads_what_is_piped_in() {
    use std::io::Write;
    let (mut child, _limit) = Command::new(env!("CARGO_BIN_EXE_hopbine"))
        .args(["launch", "-n", "3", "--tag-output", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn_in_time();
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    assert_eq!(well(&child.wait_with_output().unwrap()), "[0] one\n[0] two\n");
}

/// The cores that ranks may run on, sorted.
fn cores_of_ranks(arguments: &[&str]) -> Vec<String> {
    let say = ["grep", "Cpus_allowed_list", "/proc/self/status"];
    let mut cores: Vec<_> = well(&launch(arguments, &say)).lines().map(str::to_owned).collect();
    cores.sort();
    cores
}

#[test]
fn ranks_have_cores_of_their_own_where_there_are_enough() {
    let all = cores_of_ranks(&["-n", "1"]);
    let pair = cores_of_ranks(&["-n", "2"]);
    if core_affinity::get_core_ids().is_some_and(|cores| cores.len() >= 2) {
        assert_ne!(pair[0], pair[1]);
    } else {
        assert_eq!(pair, [&all[0][..]; 2]);
    }
    assert_eq!(cores_of_ranks(&["-n", "2", "--bind-to", "none"]), [&all[0][..]; 2]);
    // If there are more ranks than cores, no rank is bound.
    let many = core_affinity::get_core_ids().map_or(1, |cores| cores.len()) + 1;
    let unbound = cores_of_ranks(&["-n", &many.to_string()]);
    assert!(unbound.iter().all(|cores| *cores == all[0]), "{unbound:?}");
}
