//! The rendezvous among processes, started as by a launcher: only through the environment. This program also runs
//! as the ranks (no test harness, so that it can be started again as a rank).

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode};
use std::time::Duration;

use hopbine_meet::variables::{RANK, RENDEZVOUS, SIZE, from_environment};
use hopbine_meet::{Bootstrap, BootstrapError, Exchange, Place, Stat, create_memory, open_memory};
use hopbine_testing::processes::{Process, run, wait, wait_until};
use hopbine_testing::ranks;

const LAUNCHED_RANK: &str = "OMPI_COMM_WORLD_RANK";

/// The argument of a process that makes memory.
const MEMORY: &str = "memory";

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|argument| argument == MEMORY) {
        make_memory_and_go_on_without_the_first_thread();
    }
    if [RANK.name, LAUNCHED_RANK].iter().any(|name| std::env::var_os(name).is_some()) {
        return rank();
    }
    without_a_launcher_the_variable_is_named();
    a_wrong_rank_is_refused();
    processes_meet();
    launched_processes_meet_again();
    memory_outlives_the_first_thread();
    println!("bootstrap_processes: ok");
    ExitCode::SUCCESS
}

fn meet(timeout: Duration) -> Result<Bootstrap, BootstrapError> {
    Place::find(&from_environment)?.meet(&from_environment, ".test", timeout)
}

/// One rank: every rank must receive every rank's process number.
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
            for message in all.iter() {
                println!("{}", String::from_utf8(message.to_vec()).expect("was text"));
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
        let children = ranks::start(size, &dir.path().join("meet"), |_| Command::new(&me));
        let want: String =
            children.iter().enumerate().map(|(r, c)| format!("{r} is {}\n", c.id())).collect();
        let ended = wait(children);
        ranks::assert_all_well("processes meet", &ended);
        assert!(ended.iter().all(|each| each.stdout == want), "{ended:?}");
    }
}

/// Under a launcher the files are temporary. Each rank is a script that runs several programs in sequence, and some
/// ranks start the next program before rank 0's last program has removed the files.
fn launched_processes_meet_again() {
    const ROUNDS: usize = 40;
    let dir = tempfile::tempdir().expect("a directory");
    let me = std::env::current_exe().expect("known");
    let children = (0..3).map(|rank: usize| {
        let mut script = Command::new("sh");
        script.args(["-c", &format!("for i in $(seq {ROUNDS}); do \"$0\" || exit; done")]);
        script.arg(&me).env("XDG_RUNTIME_DIR", dir.path());
        script.env(LAUNCHED_RANK, rank.to_string()).env("OMPI_COMM_WORLD_SIZE", "3");
        Process::start(&mut script)
    });
    let ended = wait(children.collect());
    ranks::assert_all_well("launched processes meet again", &ended);
    for each in &ended {
        assert_eq!(each.stdout.lines().count(), 3 * ROUNDS, "{ended:?}");
        assert_eq!(each.stdout, ended[0].stdout);
    }
    let left = std::fs::read_dir(dir.path()).expect("is there").flatten();
    let left: Vec<_> = left.flat_map(|user| std::fs::read_dir(user.path())).flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn without_a_launcher_the_variable_is_named() {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    let ended = run(command.env(RANK.name, "1"));
    assert!(ended.stderr.contains("HOPBINE_SIZE is not set"), "{}", ended.stderr);
}

fn a_wrong_rank_is_refused() {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    command.envs([(RANK.name, "7"), (SIZE.name, "2"), (RENDEZVOUS.name, "/nowhere/meet")]);
    let ended = run(&mut command);
    assert!(!ended.status.success());
    let text = ended.stderr;
    assert!(text.contains("HOPBINE_RANK=7") && text.contains("from 0 to 1"), "{text}");
}

/// Prints the memory's descriptor.
fn make_memory_and_go_on_without_the_first_thread() -> ! {
    let mut memory = create_memory("hopbine-test", 4096).expect("can be made");
    memory.write_all(b"here").expect("can be written");
    println!("{}", memory.as_raw_fd());
    std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
    // SAFETY: ends this thread; nobody uses what is on its stack.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the thread has ended");
}

fn memory_outlives_the_first_thread() {
    let process = Process::start(Command::new(std::env::current_exe().expect("known")).arg(MEMORY));
    wait_until("the end of the first thread", || {
        let stat = Stat::of(process.id()).expect("there is a /proc").expect("it lives");
        stat.state == b'Z'
    });
    let fd = process.stdout().trim().parse().expect("the descriptor");
    let mut memory = open_memory(process.id(), fd, 4096).expect("can be opened");
    let mut text = [0; 4];
    memory.read_exact(&mut text).expect("can be read");
    assert_eq!(&text, b"here");
}
