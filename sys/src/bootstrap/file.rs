//! The rendezvous through a file.
//!
//! # The protocol
//! Each rank has four records in the file, which only it writes:
//!
//! * *hello*: a number that it drew for this run;
//! * *agreement*: the hash of all hellos that it sees. Once all agreements are equal to one's own,
//!   everyone has seen one's own fresh number, so none of them is left over from an earlier run
//!   with the same file. The hash names the session from then on;
//! * two *data* records, used in turn. Having everyone's record of round k + 1 means that everyone
//!   has finished reading round k, so its record may be overwritten in round k + 2.
//!
//! Longer messages take several rounds. Files are reopened for every look, which is what makes
//! clients of NFS ask the server (close-to-open consistency, nfs(5)), and synchronised after every
//! write.

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::record::{PAYLOAD, RECORD, Record, hash};
use super::{BootstrapError, ENV_RANK, ENV_RENDEZVOUS, ENV_SIZE, Exchange, Phase};

/// Appended to `HOPBINE_RENDEZVOUS`: the file of that very name is the emulated device's own.
const SUFFIX: &str = ".ranks";

/// Which of a rank's records.
#[derive(Clone, Copy)]
enum Slot {
    Hello,
    Agreement,
    Data(u64),
}

impl Slot {
    /// Counted by rank first, so that a record's place does not depend on the number of ranks.
    fn offset(self, rank: usize) -> u64 {
        let slot = match self {
            Slot::Hello => 0,
            Slot::Agreement => 1,
            Slot::Data(round) => 2 + round % 2,
        };
        (rank as u64 * 4 + slot) * RECORD as u64
    }
}

/// The ranks of a job, met through a file.
#[derive(Debug)]
pub struct Bootstrap {
    path: PathBuf,
    rank: usize,
    size: usize,
    timeout: Duration,
    session: u64,
    round: u64,
    exchanges: u64,
}

impl Bootstrap {
    /// Meets the other ranks as `HOPBINE_RANK`, `HOPBINE_SIZE` and `HOPBINE_RENDEZVOUS` say.
    /// `timeout` bounds this and every later wait.
    ///
    /// # Errors
    /// [`BootstrapError`]; [`BootstrapError::Missing`] names the ranks that did not appear.
    pub fn from_env(timeout: Duration) -> Result<Bootstrap, BootstrapError> {
        let size = number(ENV_SIZE, 1..u32::MAX as usize)?;
        let rank = number(ENV_RANK, 0..size)?;
        let mut path = std::env::var_os(ENV_RENDEZVOUS)
            .filter(|p| !p.is_empty())
            .ok_or(BootstrapError::NotSet { variable: ENV_RENDEZVOUS })?;
        path.push(SUFFIX);
        Bootstrap::join(Path::new(&path), rank, size, timeout)
    }

    /// Meets the other ranks at the file `path`. It is made if it does not exist; what it holds from
    /// an earlier run does no harm. Two jobs must not use one file at a time.
    ///
    /// # Errors
    /// As [`Bootstrap::from_env`].
    ///
    /// # Panics
    /// If `rank` is not below `size`.
    pub fn join(
        path: &Path,
        rank: usize,
        size: usize,
        timeout: Duration,
    ) -> Result<Bootstrap, BootstrapError> {
        assert!(rank < size, "rank {rank} of {size}");
        let path = path.to_path_buf();
        let mut this = Bootstrap { path, rank, size, timeout, session: 0, round: 0, exchanges: 0 };
        this.session = this.agree()?;
        Ok(this)
    }

    /// Hello and agreement; returns the session.
    fn agree(&self) -> Result<u64, BootstrapError> {
        let mine = fresh_number();
        self.write(Slot::Hello, 0, mine, &[], 0)?;
        let mut wait = Wait::new(self.timeout);
        let mut written = None;
        loop {
            let file = self.open()?;
            let hellos = self.read_all(&file, Slot::Hello)?;
            let missing = absent(&hellos, |r| r.size as usize == self.size);
            if missing.is_empty() {
                // A hello names its writer by its place; the number sits where a round would.
                let view = hash(hellos.iter().flatten().flat_map(|r| r.round.to_le_bytes()));
                if written != Some(view) {
                    self.write(Slot::Agreement, view, 0, &[], 0)?;
                    written = Some(view);
                }
                let agreements = self.read_all(&file, Slot::Agreement)?;
                let missing = absent(&agreements, |r| r.session == view);
                if missing.is_empty() {
                    return Ok(view);
                }
                wait.pause()
                    .map_err(|waited| self.missing(missing, Phase::Arrival, waited, None))?;
            } else {
                let other_size =
                    hellos.iter().flatten().map(|r| r.size as usize).find(|&s| s != self.size);
                wait.pause()
                    .map_err(|waited| self.missing(missing, Phase::Arrival, waited, other_size))?;
            }
        }
    }

    /// One round: everyone's record, by rank.
    fn exchange_round(&mut self, piece: &[u8], total: u32) -> Result<Vec<Record>, BootstrapError> {
        self.round += 1;
        let (session, round) = (self.session, self.round);
        let slot = Slot::Data(round);
        self.write(slot, session, round, piece, total)?;
        let mut wait = Wait::new(self.timeout);
        let mut got: Vec<Option<Record>> = vec![None; self.size];
        loop {
            let file = self.open()?;
            for (rank, place) in got.iter_mut().enumerate() {
                if place.is_none() {
                    *place = self
                        .read(&file, slot, rank)?
                        .filter(|r| r.session == session && r.round == round);
                }
            }
            let missing = absent(&got, |_| true);
            if missing.is_empty() {
                return Ok(got.into_iter().flatten().collect());
            }
            let phase = Phase::Exchange(self.exchanges);
            wait.pause().map_err(|waited| self.missing(missing, phase, waited, None))?;
        }
    }

    fn missing(
        &self,
        missing: Vec<usize>,
        phase: Phase,
        waited: Duration,
        other_size: Option<usize>,
    ) -> BootstrapError {
        let (rank, size) = (self.rank, self.size);
        BootstrapError::Missing { rank, size, missing, phase, waited, other_size }
    }

    fn open(&self) -> Result<File, BootstrapError> {
        File::open(&self.path).map_err(|e| self.file_error(e))
    }

    fn file_error(&self, source: io::Error) -> BootstrapError {
        BootstrapError::File { path: self.path.clone(), source }
    }

    fn write(
        &self,
        slot: Slot,
        session: u64,
        round: u64,
        piece: &[u8],
        total: u32,
    ) -> Result<(), BootstrapError> {
        let size = self.size as u32;
        let record = Record { session, round, size, total, payload: piece.to_vec() };
        let write = || {
            // Other ranks' records are in the file already: it must not be cut.
            let file =
                OpenOptions::new().write(true).create(true).truncate(false).open(&self.path)?;
            file.write_all_at(&record.encode(), slot.offset(self.rank))?;
            file.sync_data()
        };
        write().map_err(|e| self.file_error(e))
    }

    fn read(&self, file: &File, slot: Slot, rank: usize) -> Result<Option<Record>, BootstrapError> {
        let mut bytes = [0; RECORD];
        match file.read_exact_at(&mut bytes, slot.offset(rank)) {
            Ok(()) => Ok(Record::decode(&bytes)),
            // The file has not grown to that place yet.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(self.file_error(e)),
        }
    }

    fn read_all(&self, file: &File, slot: Slot) -> Result<Vec<Option<Record>>, BootstrapError> {
        (0..self.size).map(|rank| self.read(file, slot, rank)).collect()
    }
}

impl Exchange for Bootstrap {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        self.exchanges += 1;
        let total = u32::try_from(mine.len()).map_err(|_| {
            self.file_error(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a message of {} bytes, but at most {} are possible", mine.len(), u32::MAX),
            ))
        })?;
        let mut all = vec![Vec::new(); self.size];
        let mut pieces = mine.chunks(PAYLOAD);
        loop {
            let records = self.exchange_round(pieces.next().unwrap_or(&[]), total)?;
            let mut complete = true;
            for (message, record) in all.iter_mut().zip(&records) {
                message.extend_from_slice(&record.payload);
                complete &= message.len() >= record.total as usize;
            }
            // Everyone sees the same records, so everyone stops after the same round.
            if complete {
                return Ok(all);
            }
        }
    }
}

/// The ranks whose record is not there or not good.
fn absent(records: &[Option<Record>], good: impl Fn(&Record) -> bool) -> Vec<usize> {
    (0..records.len()).filter(|&r| !records[r].as_ref().is_some_and(&good)).collect()
}

/// A number that no other run has: the standard library seeds its hashers from the system's entropy.
fn fresh_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn number(variable: &'static str, range: std::ops::Range<usize>) -> Result<usize, BootstrapError> {
    let value = std::env::var_os(variable).ok_or(BootstrapError::NotSet { variable })?;
    value.to_str().and_then(|s| s.parse().ok()).filter(|n| range.contains(n)).ok_or_else(|| {
        BootstrapError::BadValue {
            variable,
            value: value.to_string_lossy().into_owned(),
            wanted: format!("a whole number from {} to {}", range.start, range.end - 1),
        }
    })
}

/// Looks seldom when nothing happens: a file server has better things to do.
struct Wait {
    start: Instant,
    timeout: Duration,
    pause: Duration,
}

impl Wait {
    fn new(timeout: Duration) -> Wait {
        Wait { start: Instant::now(), timeout, pause: Duration::from_micros(50) }
    }

    /// Sleeps a little; after the time-out says how long it has been.
    fn pause(&mut self) -> Result<(), Duration> {
        const LONGEST: Duration = Duration::from_millis(5);
        let waited = self.start.elapsed();
        if waited >= self.timeout {
            return Err(waited);
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST);
        Ok(())
    }
}
