//! Ranks as processes: this program starts itself again as the ranks of a job.

#[path = "../common/mod.rs"]
mod common;
mod packets;

use common::*;
use hopbine_testing::processes::{Ended, Process, run, wait};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use utofu_emu::c;
use utofu_sys::*;

/// Environment variable that names the test of a started rank.
const PART: &str = "HOPBINE_TEST_PART";

/// Runs a test function of this program as one rank.
fn rank(test: &str, rank: usize, vars: &[(&str, &str)]) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(PART, test)
        .env("HOPBINE_RANK", rank.to_string());
    Process::start(command.envs(vars.iter().copied()))
}

/// Runs all ranks of a job until they end.
fn job(test: &str, size: usize, vars: &[(&str, &str)]) -> Vec<Ended> {
    let dir = tempfile::tempdir().unwrap();
    part_of_job(test, size, 0..size, &dir.path().join("rendezvous"), vars)
}

/// Runs some ranks of a job that meet at `path`, until they end.
fn part_of_job(
    test: &str,
    size: usize,
    ranks: impl IntoIterator<Item = usize>,
    path: &Path,
    vars: &[(&str, &str)],
) -> Vec<Ended> {
    let size = size.to_string();
    let mut all = vec![("HOPBINE_SIZE", &*size), ("HOPBINE_RENDEZVOUS", path.to_str().unwrap())];
    all.extend(vars);
    wait(ranks.into_iter().map(|r| rank(test, r, &all)).collect())
}

fn all_fine(ended: &[Ended]) {
    hopbine_testing::ranks::assert_all_well("the job", ended);
}

fn playing(test: &str) -> bool {
    std::env::var(PART).is_ok_and(|p| p == test)
}

/// An end point whose id every rank can compute: component id 0, STag 1.
struct Known {
    ep: EndPoint,
    ids: Vec<u64>,
    stadd: u64,
    rank: usize,
}

fn known(buf: &mut [u64]) -> Known {
    let rank: usize = std::env::var("HOPBINE_RANK").unwrap().parse().unwrap();
    let size: usize = std::env::var("HOPBINE_SIZE").unwrap().parse().unwrap();
    let (mut handle, mut id, mut stadd) = (0, 0, 0);
    let mut ids = vec![0; size];
    // SAFETY: valid addresses for the results; the buffer lives as long as the process.
    unsafe {
        let rc = c::utofu_create_vcq_with_cmp_id(1, 0, 0, &mut handle);
        assert_eq!(rc, 0, "{}", last_error());
        assert_eq!(c::utofu_query_vcq_id(handle, &mut id), 0);
        let (p, n) = (buf.as_mut_ptr().cast(), size_of_val(buf));
        assert_eq!(c::utofu_reg_mem_with_stag(handle, p, n, 1, 0, &mut stadd), 0);
        for (r, id) in ids.iter_mut().enumerate() {
            let mut at = jtofu_phys_coords { a: [0; 6] };
            assert_eq!(c::jtofu_query_phys_coords(0, r as u32, &mut at), 0);
            let rc = c::utofu_construct_vcq_id(at.a.as_mut_ptr(), 1, 0, 0, id);
            assert_eq!(rc, 0);
        }
    }
    assert_eq!(id, ids[rank]);
    Known { ep: EndPoint { handle, id, stadd }, ids, stadd, rank }
}

impl Known {
    /// Repeats the put until the target has created its VCQ and registered its memory.
    fn put_when_there(&self, to: usize, len: usize, edata: u64) {
        loop {
            let flags = LCL | RMT;
            assert_eq!(
                self.ep.put(self.ids[to], self.stadd, self.stadd + 65536, len, edata, flags),
                0
            );
            assert_eq!(self.ep.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
            loop {
                match self.ep.poll_mrq() {
                    (UTOFU_ERR_NOT_FOUND, _) => std::thread::yield_now(),
                    (UTOFU_ERR_MRQ_PEER | UTOFU_ERR_MRQ_RMT_STADD, _) => {
                        std::thread::sleep(Duration::from_millis(1));
                        break;
                    }
                    (rc, n) if n.notice_type == UTOFU_MRQ_TYPE_LCL_PUT as u8 => {
                        return assert_eq!(rc, 0, "{}", last_error());
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

/// A token with data goes round the ring; every rank checks and changes the data.
#[test]
fn a_token_goes_round() {
    const TEST: &str = "a_token_goes_round";
    if !playing(TEST) {
        return all_fine(&job(TEST, 4, &[("HOPBINE_TORUS", "2x2x1")]));
    }
    let mut buf = vec![0u64; 16384];
    let p = buf.as_mut_ptr();
    let me = known(&mut buf);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let shared: Vec<_> = maps.lines().filter(|line| line.contains(" rw-s ")).collect();
    assert!(!shared.is_empty(), "no memory is shared");
    assert!(shared.iter().all(|line| line.contains("/memfd:hopbine-emu")), "{shared:?}");
    let next = (me.rank + 1) % me.ids.len();
    for round in 0..5u64 {
        // SAFETY: the first half of the buffer is this rank's source; the previous rank puts into the second half,
        // which is read after the notice of that put.
        let (source, inbox) = unsafe {
            let source = std::slice::from_raw_parts_mut(p, 8192);
            (source, std::slice::from_raw_parts(p.add(8192), 8192))
        };
        if me.rank == 0 {
            source.iter_mut().enumerate().for_each(|(i, v)| *v = i as u64 + round);
            me.put_when_there(next, 65536, round);
        }
        let n = me.ep.wait_notice();
        assert_eq!((n.notice_type, n.edata), (UTOFU_MRQ_TYPE_RMT_PUT as u8, round));
        let added = if me.rank == 0 { 3 } else { me.rank as u64 - 1 };
        assert!((0..8192).all(|i| inbox[i] == i as u64 + round + added));
        if me.rank != 0 {
            source.iter_mut().zip(inbox).for_each(|(to, from)| *to = from + 1);
            me.put_when_there(next, 65536, round);
        }
    }
}

/// Atomic additions to another process's memory are all counted.
#[test]
fn atomics_between_processes() {
    const TEST: &str = "atomics_between_processes";
    const EACH: u64 = 500;
    if !playing(TEST) {
        return all_fine(&job(TEST, 3, &[]));
    }
    let mut buf = vec![0u64; 16384];
    let me = known(&mut buf);
    if me.rank != 0 {
        me.put_when_there(0, 0, 1);
    }
    for _ in 0..if me.rank == 0 { 0 } else { EACH } {
        // SAFETY: rank 0's buffer lives until it has seen the last notices.
        let rc = unsafe {
            let (op, null) = (UTOFU_ARMW_OP_ADD, std::ptr::null_mut());
            c::utofu_armw8(me.ep.handle, me.ids[0], op, 1, me.stadd + 8, 0, RMT, null)
        };
        assert_eq!(rc, 0);
        assert_eq!(me.ep.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
    }
    if me.rank == 0 {
        for _ in 0..2 * (EACH + 1) {
            me.ep.wait_notice();
        }
        assert_eq!(buf[1], 2 * EACH);
    }
}

/// A compare-and-swap that finds another value does not write to the target's memory: the memory may be read-only.
#[test]
fn a_swap_that_does_not_happen_writes_nothing() {
    const TEST: &str = "a_swap_that_does_not_happen_writes_nothing";
    if !playing(TEST) {
        return all_fine(&job(TEST, 2, &[]));
    }
    #[repr(align(65536))]
    struct Pages([u64; 16384]);
    let mut pages = Box::new(Pages([5; 16384]));
    let me = known(&mut pages.0);
    if me.rank == 1 {
        me.ep.wait_notice();
        let (old, new, null) = (4, 6, std::ptr::null_mut());
        // SAFETY: the target's memory outlives the operation.
        let rc = unsafe {
            let there = me.stadd + 65536;
            c::utofu_cswap8(me.ep.handle, me.ids[0], old, new, there, 0, LCL, null)
        };
        assert_eq!(rc, 0);
        assert_eq!(me.ep.wait_notice().rmt_value, 5);
        return me.ep.piggyback8(me.ids[0], 1, me.stadd, 0, RMT);
    }
    // SAFETY: the second half of the buffer is whole pages; no rank writes to it.
    let mut protect = |how| unsafe {
        let half = (&raw mut pages.0).cast::<u64>().add(8192).cast();
        assert_eq!(libc::mprotect(half, 65536, how), 0);
    };
    protect(libc::PROT_READ);
    me.put_when_there(1, 0, 0);
    me.ep.wait_notice();
    protect(libc::PROT_READ | libc::PROT_WRITE);
}

#[test]
fn a_missing_rank_is_named() {
    const TEST: &str = "a_missing_rank_is_named";
    if !playing(TEST) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rendezvous");
        return all_fine(&part_of_job(TEST, 3, [0, 2], &path, &[("HOPBINE_TIMEOUT", "1")]));
    }
    let mut at = [0u8; 6];
    // SAFETY: room for six bytes.
    let rc = unsafe { c::utofu_query_my_coords(at.as_mut_ptr()) };
    assert_eq!(rc, UTOFU_ERR_FATAL);
    let text = last_error();
    assert!(text.contains("rank(s) 1 of 3") && text.contains("HOPBINE_TIMEOUT"), "{text}");
}

/// Each rank reports that the ranks do not belong to one job.
#[test]
fn ranks_with_other_settings_are_refused() {
    const TEST: &str = "ranks_with_other_settings_are_refused";
    if !playing(TEST) {
        for [first, second] in [
            [("HOPBINE_TORUS", "1x2x1"), ("HOPBINE_TORUS", "2x1x1")],
            [("HOPBINE_RANKS_PER_NODE", "2"), ("HOPBINE_RANKS_PER_NODE", "3")],
            [("HOPBINE_EMU_CQS", "0,5"), ("HOPBINE_EMU_CQS", "0,6")],
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("rendezvous");
            let path = ("HOPBINE_RENDEZVOUS", path.to_str().unwrap());
            let all = [("HOPBINE_SIZE", "4"), path, ("HOPBINE_RANKS_PER_NODE", "2")];
            let with = |r, own| rank(TEST, r, &[all[0], all[1], all[2], own]);
            let ranks = (0..4).map(|r| with(r, if r == 1 { second } else { first }));
            all_fine(&wait(ranks.collect()));
        }
        return;
    }
    let mut at = [0u8; 6];
    // SAFETY: room for six bytes.
    assert_eq!(unsafe { c::utofu_query_my_coords(at.as_mut_ptr()) }, UTOFU_ERR_FATAL);
    assert!(last_error().contains("rank 1 has other settings"), "{}", last_error());
}

/// Ranks under an MPI launcher find each other by the launcher's variables, also if the launcher starts them
/// through a script, and leave no file behind.
#[test]
fn launchers_of_mpi_need_no_variables_of_ours() {
    const TEST: &str = "launchers_of_mpi_need_no_variables_of_ours";
    if playing(TEST) {
        let mut buf = vec![0u64; 16384];
        let ep = EndPoint::open(&mut buf);
        let mut at = [0u8; 6];
        // SAFETY: room for six bytes.
        assert_eq!(unsafe { c::utofu_query_my_coords(at.as_mut_ptr()) }, 0);
        let rank = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"]
            .iter()
            .find_map(|name| std::env::var(name).ok())
            .unwrap();
        assert_eq!(at[1].to_string(), rank, "a row along y");
        ep.close();
        return;
    }
    let launchers = [
        ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"],
        ["PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"],
        ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"],
    ];
    let runtime = tempfile::tempdir().unwrap();
    for (names, wrapped) in launchers.iter().zip([false, true, false]) {
        let ranks: Vec<_> = (0..3)
            .map(|r: u32| {
                let me = std::env::current_exe().unwrap();
                let mut command = Command::new(if wrapped { "sh".into() } else { me.clone() });
                if wrapped {
                    // With more than one command the shell stays the parent process.
                    command.args(["-c", "\"$@\"; exit $?", "sh"]).arg(&me);
                }
                command.args([TEST, "--exact", "--nocapture", "--test-threads=1"]).env(PART, TEST);
                for name in ["HOPBINE_RANK", "HOPBINE_SIZE", "HOPBINE_RENDEZVOUS"] {
                    command.env_remove(name);
                }
                command
                    .env(names[0], r.to_string())
                    .env(names[1], "3")
                    .env(names[2], "3")
                    .env("XDG_RUNTIME_DIR", runtime.path());
                Process::start(&mut command)
            })
            .collect();
        all_fine(&wait(ranks));
        let left: Vec<_> = std::fs::read_dir(runtime.path())
            .unwrap()
            .flat_map(|dir| std::fs::read_dir(dir.unwrap().path()).unwrap())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A job whose ranks do not all start leaves no file either.
#[test]
fn a_launched_job_that_does_not_meet_leaves_no_file() {
    const TEST: &str = "a_launched_job_that_does_not_meet_leaves_no_file";
    if playing(TEST) {
        let mut at = [0u8; 6];
        // SAFETY: room for six bytes.
        assert_eq!(unsafe { c::utofu_query_my_coords(at.as_mut_ptr()) }, UTOFU_ERR_FATAL);
        return assert!(last_error().contains("rank(s) 1 of 2"), "{}", last_error());
    }
    let runtime = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([TEST, "--exact", "--nocapture", "--test-threads=1"]).env(PART, TEST);
    command.envs([("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")]);
    command.env("HOPBINE_TIMEOUT", "0.2").env("XDG_RUNTIME_DIR", runtime.path());
    all_fine(&[run(&mut command)]);
    let made = std::fs::read_dir(runtime.path()).unwrap().next().expect("a directory").unwrap();
    assert_eq!(std::fs::read_dir(made.path()).unwrap().count(), 0);
}

/// More unread notices than a queue holds end the process that owns the queue, with a message that names the queue;
/// the sender continues.
#[test]
fn overflow_ends_the_owner_of_the_queue() {
    const TEST: &str = "overflow_ends_the_owner_of_the_queue";
    if !playing(TEST) {
        let outputs = job(TEST, 2, &[]);
        let text = &outputs[0].stderr;
        assert_eq!(outputs[0].status.signal(), Some(libc::SIGABRT), "{text}");
        let wanted = "MRQ overflow: rank 0, VCQ at TNI 1 CQ 0 extra value 8";
        assert!(text.contains(wanted), "{text}");
        return all_fine(&outputs[1..]);
    }
    let mut buf = vec![0u64; 16384];
    let me = known(&mut buf);
    if me.rank == 1 {
        me.put_when_there(0, 0, 1);
        for i in 0..140_000 {
            me.ep.piggyback8(me.ids[0], i, me.stadd, 0, RMT);
        }
        // Lets the other rank poll its queue.
        me.ep.piggyback8(me.ids[0], 1, me.stadd + 8, 0, 0);
        return;
    }
    // SAFETY: the word is in the buffer; only the other rank's process writes it.
    while unsafe { std::ptr::read_volatile(buf.as_ptr().add(1)) } == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    me.ep.poll_mrq();
    println!("140000 unread notices did no harm");
}
