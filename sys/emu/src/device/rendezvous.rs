//! How the processes of a job find each other: a file names the memory that they share.
//!
//! The first rank to lock the rendezvous file creates the shared memory (in `/dev/shm`, else in
//! the directory for temporary files) and writes its name down; the others follow. When all have
//! mapped it the name is removed, so that nothing is left behind however the job ends.

use crate::arena::Arena;
use crate::copy;
use crate::error::JobError;
use crate::job::Job;
use crate::sync::Ordering;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// First word of the rendezvous file, and its version.
const MAGIC: &str = "hopbine-emu-2";

/// What other ranks read to see whether they can.
static PROBE: u64 = 0x686f_7062_696e_6521;

/// A mapped arena, and the name of the file under it.
pub(super) struct Opened {
    pub(super) arena: Arena,
    pub(super) memory: PathBuf,
}

/// The host as the kernel names it, renewed at every boot; empty if it cannot be had.
fn host() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_string()
}

/// Creates or opens the memory that the rendezvous file names.
pub(super) fn open(
    path: &Path,
    size: usize,
    len: u64,
    timeout: Duration,
) -> Result<Opened, JobError> {
    let error = |what: String| JobError::Rendezvous { path: path.to_path_buf(), what };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|e| error(format!("cannot be opened: {e}")))?;
    lock(&file, timeout).map_err(|e| error(format!("cannot be locked: {e}")))?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|e| error(format!("cannot be read: {e}")))?;
    let words: Vec<&str> = text.lines().collect();
    let memory = match words[..] {
        [] => {
            let memory = create(len).map_err(|e| error(format!("no shared memory: {e}")))?;
            file.rewind()
                .and_then(|()| {
                    writeln!(file, "{MAGIC}\n{}\n{size}\n{len}\n{}", host(), memory.display())
                })
                .map_err(|e| error(format!("cannot be written: {e}")))?;
            memory
        }
        [MAGIC, there, ranks, bytes, memory] => {
            if there != host() {
                return Err(error(
                    "was written on another host: the emulator's ranks share one host's memory"
                        .into(),
                ));
            }
            if ranks != size.to_string() || bytes != len.to_string() {
                return Err(error(format!(
                    "belongs to a job of {ranks} ranks, this is one of {size}: all ranks need the same HOPBINE_SIZE, HOPBINE_TORUS and HOPBINE_RANKS_PER_NODE"
                )));
            }
            PathBuf::from(memory)
        }
        _ => {
            return Err(error(
                "holds something else: every job needs a fresh or empty file".into(),
            ));
        }
    };
    // Closing the file unlocks it.
    let shared = OpenOptions::new().read(true).write(true).open(&memory).map_err(|e| {
        error(format!(
            "names {}, which is gone ({e}): every job needs a fresh file",
            memory.display()
        ))
    })?;
    let arena =
        Arena::shared(&shared, len).map_err(|source| JobError::Map { bytes: len, source })?;
    Ok(Opened { arena, memory })
}

/// Takes the lock of the file, which goes with the file descriptor.
fn lock(file: &File, timeout: Duration) -> std::io::Result<()> {
    let start = Instant::now();
    loop {
        // SAFETY: flock on an open descriptor.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(());
        }
        let e = std::io::Error::last_os_error();
        if e.kind() != std::io::ErrorKind::WouldBlock || start.elapsed() > timeout {
            return Err(e);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A new file of zeros that takes no room yet.
fn create(len: u64) -> std::io::Result<PathBuf> {
    let mut last = None;
    for dir in [PathBuf::from("/dev/shm"), std::env::temp_dir()] {
        let name = dir.join(format!("hopbine-{}-{}", std::process::id(), crate::model::now()));
        let made = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&name)
            .and_then(|file| file.set_len(len));
        match made {
            Ok(()) => return Ok(name),
            Err(e) => last = Some(e),
        }
        // What was created before the length could not be set is of no use.
        let _ = std::fs::remove_file(&name);
    }
    Err(last.unwrap_or_else(|| std::io::Error::other("nowhere to create it")))
}

/// Waits until all ranks have mapped the arena and can reach each other.
pub(super) fn meet(
    job: &Job,
    rank: usize,
    path: &Path,
    memory: PathBuf,
    timeout: Duration,
) -> Result<(), JobError> {
    // Where the kernel restricts tracing to descendants, allow the other ranks as well. It fails
    // where there is no such restriction, which is as well.
    // SAFETY: sets a property of this process only.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::MAX, 0, 0, 0) };
    let mine = job.rank_record(rank);
    mine.probe.store(&raw const PROBE as u64, Ordering::Relaxed);
    // Release pairs with the Acquire below: the probe address is set.
    let claimed =
        mine.pid.compare_exchange(0, std::process::id(), Ordering::Release, Ordering::Relaxed);
    if let Err(other) = claimed {
        return Err(JobError::Rendezvous {
            path: path.to_path_buf(),
            what: format!("process {other} is rank {rank} already: every rank may come once"),
        });
    }
    let header = job.header();
    let attached = header.attached.fetch_add(1, Ordering::AcqRel) as usize + 1;
    if attached == job.size() {
        // All have it open; a failure leaves a sparse file behind, which harms nobody.
        let _ = std::fs::remove_file(&memory);
    }
    let start = Instant::now();
    let wait = |done: &dyn Fn() -> bool, missing: &dyn Fn() -> String| {
        let mut tries = 0u32;
        while !done() {
            if start.elapsed() > timeout {
                let _ = std::fs::remove_file(&memory);
                return Err(JobError::Timeout { rank, waited: timeout, missing: missing() });
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
    wait(&|| header.attached.load(Ordering::Acquire) as usize >= job.size(), &|| {
        let absent =
            (0..job.size()).filter(|&r| job.rank_record(r).pid.load(Ordering::Relaxed) == 0);
        name(absent.collect())
    })?;
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
                source: std::io::Error::other("its memory holds something else"),
            });
        }
        Err(source) => return Err(JobError::Reach { rank, peer, source }),
    }
    // A rank that may go on must still be there when its neighbour probes it.
    header.reached.fetch_add(1, Ordering::AcqRel);
    wait(&|| header.reached.load(Ordering::Acquire) as usize >= job.size(), &|| {
        "ranks that came, but could not reach their neighbour's memory".into()
    })
}

/// Ranks as a list that stays short.
fn name(ranks: Vec<usize>) -> String {
    let shown: Vec<String> = ranks.iter().take(16).map(ToString::to_string).collect();
    let more =
        if ranks.len() > 16 { format!(" and {} more", ranks.len() - 16) } else { String::new() };
    format!("rank {}{more}", shown.join(", "))
}
