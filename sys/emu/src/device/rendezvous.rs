//! How the processes of a job find each other: a file says where to find the memory they share.
//!
//! The first rank to lock the rendezvous file makes the memory, without a name (`memfd_create`),
//! and writes down its own process and file descriptor; the others open that descriptor through
//! `/proc`. Nothing in the file is trusted: it must be the user's own, and so must the memory, which
//! can neither shrink nor grow and begins with the number that the file tells. What a job leaves in
//! the file when it ends, whichever way, does no harm to the next one with the same file.

use crate::arena::Arena;
use crate::env::Meeting;
use crate::error::JobError;
use crate::layout::{Header, Plan};
use crate::own::{SEALS, lengthen, number, open_file, open_memory};
use crate::sync::Ordering;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

/// First word of the rendezvous file, and its version.
const MAGIC: &str = "hopbine-emu-4";

/// Longest text that a rank of ours writes into the file.
const LONGEST: u64 = 512;

/// A mapped arena, and for the rank that made it what must stay open until all have come.
pub(crate) struct Opened {
    pub(crate) arena: Arena,
    memory: File,
}

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    host: String,
    ranks: usize,
    bytes: u64,
    /// Tells this memory from all others.
    token: u64,
    /// As `/proc` shows it.
    pid: u32,
    fd: u32,
}

impl Record {
    fn write(&self) -> String {
        let Record { host, ranks, bytes, token, pid, fd } = self;
        format!("{MAGIC}\n{host}\n{ranks} {bytes}\n{token:016x}\n{pid} {fd}\n")
    }

    /// None if the text is none of ours.
    fn read(text: &str) -> Option<Record> {
        let mut lines = text.lines();
        let mut line = || lines.next();
        if line()? != MAGIC {
            return None;
        }
        let host = line()?.to_owned();
        let (ranks, bytes) = line()?.split_once(' ')?;
        let token = u64::from_str_radix(line()?, 16).ok()?;
        let (pid, fd) = line()?.split_once(' ')?;
        let record = Record {
            host,
            ranks: ranks.parse().ok()?,
            bytes: bytes.parse().ok()?,
            token,
            // 0 and numbers beyond a pid_t's would mean something else to the system.
            pid: pid.parse().ok().filter(|pid| (1..=i32::MAX as u32).contains(pid))?,
            fd: fd.parse().ok()?,
        };
        line().is_none().then_some(record)
    }
}

#[cfg(any(test, feature = "fuzzing"))]
/// A rendezvous file in which others have written what they like: for hopbine's fuzz targets.
pub fn play(bytes: &[u8]) {
    if let Some(record) = std::str::from_utf8(bytes).ok().and_then(Record::read) {
        assert!((1..=i32::MAX as u32).contains(&record.pid));
        assert_eq!(Record::read(&record.write()), Some(record));
    }
}

/// The host as the kernel names it, renewed at every boot; empty if it cannot be had.
fn host() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_string()
}

/// Makes the memory that the ranks share, or opens what another rank has made.
pub(crate) fn open(meeting: &Meeting, size: usize, plan: Plan) -> Result<Opened, JobError> {
    let path = &meeting.path;
    let error = |what: String| JobError::Rendezvous { path: path.clone(), what };
    let mut file = open_file(path).map_err(error)?;
    lock(&file, meeting.timeout).map_err(|e| error(format!("cannot be locked: {e}")))?;
    let mut text = String::new();
    let read = (&file).take(LONGEST + 1).read_to_string(&mut text);
    let junk = || error("holds something else: every job needs a fresh or empty file".into());
    match read {
        Err(e) if e.kind() != io::ErrorKind::InvalidData => {
            return Err(error(format!("cannot be read: {e}")));
        }
        Err(_) => return Err(junk()),
        Ok(_) => {}
    }
    let found = match text.as_str() {
        "" => None,
        text => Some(Record::read(text).ok_or_else(junk)?),
    };
    // A file whose memory is gone is left over from an earlier job: it counts as empty.
    if let Some(record) = found
        && let Some(opened) = follow(&record, size, plan).map_err(error)?
    {
        return Ok(opened);
    }
    let (opened, record) = create(size, plan)?;
    file.rewind()
        .and_then(|()| file.set_len(0))
        .and_then(|()| file.write_all(record.write().as_bytes()))
        .map_err(|e| error(format!("cannot be written: {e}")))?;
    // Closing the file unlocks it.
    Ok(opened)
}

/// Opens the memory of a record; None if it is there no more.
fn follow(record: &Record, size: usize, plan: Plan) -> Result<Option<Opened>, String> {
    if record.host != host() {
        return Err(
            "was written on another host, or before this one was started anew: the emulator's \
             ranks share one host's memory, and every job needs a fresh file"
                .into(),
        );
    }
    // What is something else by now is not there any more.
    let Ok(memory) = open_memory(record.pid, record.fd) else { return Ok(None) };
    let length = memory.metadata().map_err(|e| format!("memory: {e}"))?.len();
    if length != record.bytes || length < size_of::<Header>() as u64 {
        return Ok(None);
    }
    // The lengths may still differ: only the header is sure to be there.
    let arena =
        Arena::shared(&memory, size_of::<Header>() as u64).map_err(|e| format!("memory: {e}"))?;
    let header: &Header = arena.at(crate::arena::Off::new(0));
    // Acquire pairs with the Release in create.
    if header.token.load(Ordering::Acquire) != record.token {
        return Ok(None);
    }
    let is_complete = header.attached.load(Ordering::Acquire) as usize >= record.ranks;
    if record.ranks != size || record.bytes != plan.len {
        return Err(format!(
            "belongs to a job of {} ranks, this is one of {size}: all ranks need the same \
             HOPBINE_SIZE, HOPBINE_TORUS and HOPBINE_RANKS_PER_NODE",
            record.ranks
        ));
    }
    if is_complete {
        return Err(
            "is in use by a job whose ranks have all come: every rank may come once, and every \
             job needs a file of its own"
                .into(),
        );
    }
    let arena = Arena::shared(&memory, plan.len).map_err(|e| format!("memory: {e}"))?;
    Ok(Some(Opened { arena, memory }))
}

/// New memory of zeros, which takes no room yet beyond its fixed part. It is in no file system, so
/// none can be too small for it; what the machine does not have is found out here.
fn create(size: usize, plan: Plan) -> Result<(Opened, Record), JobError> {
    let failed = |source| JobError::Map { bytes: plan.len, source };
    let name = c"hopbine-emu";
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a name that ends in zero.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if fd < 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    // SAFETY: a new descriptor that nobody else knows.
    let memory = unsafe { File::from_raw_fd(fd) };
    // SAFETY: calls on an open descriptor, which change this file only.
    let done = |code: libc::c_int| match code {
        0 => Ok(()),
        _ => Err(failed(io::Error::last_os_error())),
    };
    // SAFETY: as above.
    done(unsafe { libc::fchmod(fd, 0o600) })?;
    lengthen(&memory, plan.len).map_err(failed)?;
    // SAFETY: as above.
    done(unsafe { libc::fallocate(fd, 0, 0, plan.heap as libc::off_t) })?;
    // SAFETY: as above.
    done(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) })?;
    let arena = Arena::shared(&memory, plan.len).map_err(failed)?;
    // The standard library seeds its hashers from the system's entropy.
    let token = RandomState::new().build_hasher().finish() | 1;
    let header: &Header = arena.at(crate::arena::Off::new(0));
    // Release pairs with the Acquire in follow.
    header.token.store(token, Ordering::Release);
    let record =
        Record { host: host(), ranks: size, bytes: plan.len, token, pid: number(), fd: fd as u32 };
    Ok((Opened { arena, memory }, record))
}

/// Takes the lock of the file, which goes with the file descriptor.
fn lock(file: &File, timeout: Duration) -> io::Result<()> {
    let start = Instant::now();
    loop {
        // SAFETY: flock on an open descriptor.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(());
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::WouldBlock || start.elapsed() > timeout {
            return Err(e);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Opened {
    /// Takes the arena out; what stays must be kept open until all ranks have come.
    pub(crate) fn into_parts(self) -> (Arena, File) {
        (self.arena, self.memory)
    }
}

#[cfg(test)]
#[path = "rendezvous_tests.rs"]
mod tests;
