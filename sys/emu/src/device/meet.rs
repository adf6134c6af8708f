//! How the ranks of a job, once they share memory, wait until all have come.

use crate::copy;
use crate::env::Meeting;
use crate::error::JobError;
use crate::job::Job;
use crate::sync::Ordering;
use crate::tracer::Leave;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// Other ranks read this word to find out whether they can read this process.
static PROBE: u64 = 0x686f_7062_696e_6521;

/// Waits until all ranks have mapped the arena and can reach each other. `memory` stays open until
/// then, for the ranks that come later. A file that was made for this job alone goes, also if some do not come.
pub(crate) fn meet(
    job: &Job,
    rank: usize,
    meeting: &Meeting,
    memory: File,
) -> Result<(), JobError> {
    let met = come_together(job, rank, meeting, memory);
    if matches!(met, Err(JobError::Timeout { .. })) && meeting.is_ours {
        // Whoever comes now waits in vain with it or without.
        let _ = std::fs::remove_file(&meeting.path);
    }
    met
}

fn come_together(job: &Job, rank: usize, meeting: &Meeting, memory: File) -> Result<(), JobError> {
    let path = &meeting.path;
    let mine = job.rank_record(rank);
    mine.probe.store(&raw const PROBE as u64, Ordering::Relaxed);
    // Release pairs with the Acquire below: the address is set.
    let claimed =
        mine.pid.compare_exchange(0, std::process::id(), Ordering::Release, Ordering::Relaxed);
    if let Err(other) = claimed {
        return Err(JobError::Rendezvous {
            path: path.clone(),
            what: format!("process {other} is rank {rank} already: every rank may come once"),
        });
    }
    let header = job.header();
    let start = Instant::now();
    let wait = |done: &dyn Fn() -> bool, missing: &dyn Fn() -> String| {
        let mut tries = 0u32;
        while !done() {
            if start.elapsed() > meeting.timeout {
                let waited = meeting.timeout;
                return Err(JobError::Timeout { rank, waited, missing: missing() });
            }
            tries += 1;
            if tries < 200 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        Ok(())
    };
    let all =
        |count: &std::sync::atomic::AtomicU32| count.load(Ordering::Acquire) as usize >= job.size();
    let last = header.attached.fetch_add(1, Ordering::AcqRel) as usize + 1 == job.size();
    if last && meeting.is_ours {
        // Every rank has the file open; its name is in a directory of this user's.
        let _ = std::fs::remove_file(path);
    }
    wait(&|| all(&header.attached), &|| {
        let absent =
            (0..job.size()).filter(|&r| job.rank_record(r).pid.load(Ordering::Relaxed) == 0);
        name(absent.collect())
    })?;
    drop(memory);
    let others = (0..job.size()).map(|rank| job.rank_record(rank).pid.load(Ordering::Acquire));
    let leave = Leave::for_processes(&others.collect::<Vec<_>>());
    header.reachable.fetch_add(1, Ordering::AcqRel);
    let lost = || "ranks that came, but did not go on".to_owned();
    wait(&|| all(&header.reachable), &lost)?;
    let peer = (rank + 1) % job.size();
    let record = job.rank_record(peer);
    let pid = record.pid.load(Ordering::Acquire);
    let word = copy::probe(pid, record.probe.load(Ordering::Relaxed));
    match word {
        Ok(word) if word == PROBE => {}
        Ok(_) => {
            return Err(JobError::Reach {
                rank,
                peer,
                source: io::Error::other("its memory holds something else"),
            });
        }
        Err(source) => return Err(JobError::Reach { rank, peer, source }),
    }
    // No rank goes on before all have probed: one that has ended could not be probed.
    header.reached.fetch_add(1, Ordering::AcqRel);
    wait(&|| all(&header.reached), &|| {
        "ranks that came, but could not reach their neighbour's memory".into()
    })?;
    // The environment's job lives as long as the process, and ranks reach each other all that time.
    std::mem::forget(leave);
    Ok(())
}

/// The numbers of ranks as a text of limited length.
fn name(ranks: Vec<usize>) -> String {
    let shown: Vec<String> = ranks.iter().take(16).map(ToString::to_string).collect();
    let more =
        if ranks.len() > 16 { format!(" and {} more", ranks.len() - 16) } else { String::new() };
    format!("rank {}{more}", shown.join(", "))
}
