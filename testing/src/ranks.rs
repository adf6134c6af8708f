//! Runs the ranks of a job, as threads or processes, with a deadline.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use crate::processes::{DEADLINE, Ended, Process};

/// Runs `body` once for each of `seats`, with the rank's number and its seat, each in a thread of its own; returns
/// the results by rank.
///
/// Threads cannot be ended from outside. If ranks have not returned within [`DEADLINE`], the process aborts with a
/// message that names them.
///
/// # Panics
/// With the panic of the first rank that panicked.
pub fn ranks<S: Send, R: Send>(
    seats: impl IntoIterator<Item = S>,
    body: impl Fn(usize, S) -> R + Sync,
) -> Vec<R> {
    let seats: Vec<S> = seats.into_iter().collect();
    let returned: Vec<AtomicBool> = seats.iter().map(|_| AtomicBool::new(false)).collect();
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let (all_returned, end) = channel::<()>();
    thread::scope(|threads| {
        let (body, returned) = (&body, &returned);
        threads.spawn(move || {
            if end.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
                let hang =
                    (0..).zip(returned).filter(|(_, is_over)| !is_over.load(Ordering::Relaxed));
                let hang: Vec<usize> = hang.map(|(rank, _)| rank).collect();
                eprintln!("{test}: ranks {hang:?} have not returned within {DEADLINE:?}");
                std::process::abort();
            }
        });
        let threads: Vec<_> = seats
            .into_iter()
            .zip(returned)
            .enumerate()
            .map(|(rank, (seat, is_over))| {
                threads.spawn(move || {
                    let result = body(rank, seat);
                    is_over.store(true, Ordering::Relaxed);
                    result
                })
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        drop(all_returned);
        let results = results.into_iter();
        results.map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Starts `n` ranks that meet at the file `meeting`. `program` returns the command of each rank; `start` adds the
/// variables that define rank, size and rendezvous, unless `program` has set them.
pub fn start(n: usize, meeting: &Path, program: impl Fn(usize) -> Command) -> Vec<Process> {
    let ranks = (0..n).map(|rank| {
        let mut command = program(rank);
        let place = [
            ("HOPBINE_RANK", OsString::from(rank.to_string())),
            ("HOPBINE_SIZE", n.to_string().into()),
            ("HOPBINE_RENDEZVOUS", meeting.into()),
        ];
        for (name, value) in place {
            if command.get_envs().all(|(set, _)| set != name) {
                command.env(name, value);
            }
        }
        Process::start(&mut command)
    });
    ranks.collect()
}

/// Asserts that all ranks have ended successfully.
///
/// # Panics
/// If a rank has not. The message contains the output of all failed ranks: a rank often fails only because another
/// one has failed.
#[track_caller]
pub fn assert_all_well(what: &str, ended: &[Ended]) {
    let failed = ended.iter().enumerate().filter(|(_, each)| !each.status.success());
    let texts: Vec<String> = failed
        .map(|(rank, each)| format!("rank {rank}: {}\n{}", each.status, each.text()))
        .collect();
    assert!(texts.is_empty(), "{what}, {} ranks:\n{}", ended.len(), texts.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_its_seat() {
        assert_eq!(ranks([10, 20, 30], |rank, seat| rank + seat), [10, 21, 32]);
    }

    #[test]
    #[should_panic(expected = "rank 1")]
    fn the_panic_of_a_rank_is_the_tests() {
        ranks(0..3, |rank, _| assert!(rank != 1, "rank 1"));
    }
}
