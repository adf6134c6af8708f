//! Ranks that are late or stopped while other ranks wait for them: no rank reports them as dead.

use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{VICTIM, small};
use crate::common::four_at_a_time;
use crate::common::processes::{all_well, run_scenario, start};
use hopbine::init;
use hopbine::reduce::Op;
use hopbine_testing::processes::{Process, wait_until};

/// The entry point of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| {
        Some(match name {
            "crowded" => crowded,
            "full" => full,
            "last" => last,
            "suspended" => suspended,
            _ => return None,
        })
    });
}

/// The file next to the rendezvous `file` whose existence lets a late rank continue.
fn leave_to_go(file: &Path) -> PathBuf {
    file.with_file_name("go")
}

/// Returns when the test has called [`let_go`].
pub fn come_late() {
    let go = leave_to_go(Path::new(&std::env::var_os("HOPBINE_RENDEZVOUS").unwrap()));
    // Opens no file, since a scenario forbids that.
    while !go.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn let_go(dir: &tempfile::TempDir) {
    std::fs::write(leave_to_go(&dir.path().join("rendezvous")), "").unwrap();
}

/// The end of the warning of a rank that waits too long. Before the warning the rank has searched thoroughly for
/// the rank at fault.
const WARNING: &str = "; waiting on";

fn wait_for_warning(ranks: &mut [Process]) {
    wait_until("a warning", || {
        ranks.iter_mut().any(|rank| rank.stderr().contains(WARNING) || rank.has_ended())
    });
}

/// A rank that cannot open any more files waits for a late rank.
fn crowded() {
    let world = init().unwrap();
    let comm = world.communicator();
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the calls write the limits to `limit`, and read them from there.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        let none = libc::rlimit { rlim_cur: 0, ..limit };
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &none), 0);
    }
    if comm.rank() == VICTIM {
        come_late();
    }
    small(comm).unwrap();
    // SAFETY: the call reads the limits from `limit`.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    world.finish().unwrap();
}

/// Runs `scenario` on `n` ranks. The victim is late until one of the ranks in `waiting` has warned of it; no other
/// rank warns.
fn late_rank_is_waited_for(n: usize, scenario: &str, waiting: Range<usize>) {
    four_at_a_time(["emu", "shm"], |backend| {
        let env = [("HOPBINE_BACKEND", backend), ("HOPBINE_TIMEOUT", "4")];
        let (dir, mut children) = start(n, scenario, &env);
        wait_for_warning(&mut children[waiting.clone()]);
        // By now the other ranks have waited as long.
        std::thread::sleep(Duration::from_millis(1500));
        let_go(&dir);
        let ended = all_well(scenario, children);
        let warn = ended.iter().flat_map(|ended| ended.stderr.matches(WARNING));
        assert_eq!(warn.count(), 1, "{backend}: {ended:?}");
    });
}

#[test]
fn a_late_rank_is_not_taken_for_dead_where_no_file_can_be_opened() {
    late_rank_is_waited_for(3, "crowded", 0..2);
}

/// Nothing can be written to standard error, where a wait for a late rank is told, and that there is no timeline.
fn full() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    // SAFETY: replaces standard error by another open file.
    assert_eq!(unsafe { libc::dup2(full.as_raw_fd(), libc::STDERR_FILENO) }, libc::STDERR_FILENO);
    let world = init().unwrap();
    let comm = world.communicator();
    // By the flat buffer, and by a plan.
    for n in [1, 100_000] {
        let mut vector = vec![1.0; n];
        comm.barrier().unwrap();
        if comm.rank() == 0 {
            std::thread::sleep(Duration::from_secs(5));
        }
        comm.allreduce_in_place(&mut vector, Op::Sum).unwrap();
        assert_eq!(vector, vec![2.0; n]);
    }
    assert!(comm.rank() == 0 || world.info().long_waits >= 2, "rank 1 has not waited");
    world.finish().unwrap();
}

#[test]
fn a_standard_error_that_cannot_be_written_does_no_harm() {
    let env =
        [("HOPBINE_BACKEND", "shm"), ("HOPBINE_TIMEOUT", "2"), ("HOPBINE_TRACE", "/nowhere/t")];
    let (_dir, children) = start(2, "full", &env);
    all_well("full", children);
}

/// The last calls before the end, in which some ranks only send: the root waits for a late rank after other ranks
/// have left.
fn last() {
    if std::env::var("HOPBINE_RANK").unwrap() != "0" {
        // The ranks other than 0 leave long before the late rank.
        // SAFETY: no other thread of this program uses the environment now.
        unsafe { std::env::set_var("HOPBINE_TIMEOUT", "60") };
    }
    let world = init().unwrap();
    let comm = world.communicator();
    comm.barrier().unwrap();
    if comm.rank() == VICTIM {
        come_late();
    }
    let (mut sum, mut all) = ([0u64], vec![0u64; comm.size() as usize]);
    comm.reduce(&[1], &mut sum, Op::Sum, 0).unwrap();
    comm.gather(&[u64::from(comm.rank())], &mut all, 0).unwrap();
    if comm.rank() == 0 {
        assert_eq!((sum, all), ([3], vec![0, 1, 2]));
    }
    world.finish().unwrap();
}

#[test]
fn a_late_rank_is_waited_for_by_those_who_stay() {
    late_rank_is_waited_for(3, "last", 0..1);
}

/// Rank 1 is stopped while it waits for rank 0.
fn suspended() {
    let world = init().unwrap();
    let comm = world.communicator();
    small(comm).unwrap();
    if comm.rank() == 0 {
        come_late();
    }
    for _ in 0..2 {
        small(comm).unwrap();
    }
    world.finish().unwrap();
}

#[test]
fn a_rank_that_is_stopped_while_it_waits_is_waited_for() {
    four_at_a_time(["emu", "shm"], |backend| {
        let env = [("HOPBINE_BACKEND", backend), ("HOPBINE_TIMEOUT", "4")];
        let (dir, mut children) = start(2, "suspended", &env);
        wait_for_warning(&mut children[1..]);
        children[1].signal(libc::SIGSTOP);
        wait_until("a stop", || children[1].is_stopped());
        let_go(&dir);
        wait_for_warning(&mut children[..1]);
        children[1].signal(libc::SIGCONT);
        for ended in all_well("suspended", children) {
            assert!(ended.stderr.contains(WARNING), "{backend}: {}", ended.text());
        }
    });
}
