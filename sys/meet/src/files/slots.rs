//! A rank's access to the two files: records in their slots, and the data that rank 0 collects.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::access::{file_error, open_user_file, read_at, write_at};
use super::piece::RoundPiece;
use super::record::{Collected, FileRecord, HEADER, PAYLOAD, PROTOCOL, RECORD};
use crate::error::BootstrapError;

/// Kinds of a rank's records.
#[derive(Clone, Copy)]
pub(super) enum RecordSlot {
    Hello,
    Agreement,
    Data,
}

impl RecordSlot {
    /// The rank comes first, so that a record's offset does not depend on the number of ranks.
    fn offset(self, rank: usize) -> u64 {
        (rank as u64 * 3 + self as u64) * RECORD as u64
    }
}

/// The two files, for one rank.
#[derive(Debug)]
pub(super) struct Files {
    /// The file to which every rank writes.
    pub(super) path: PathBuf,
    pub(super) rank: usize,
    pub(super) size: usize,
    /// The file to which rank 0 writes.
    collected: PathBuf,
}

impl Files {
    /// Returns the files of rank `rank` of `size`: the file at `path`, and a second one with `.all` appended to its
    /// name.
    pub(super) fn new(path: &Path, rank: usize, size: usize) -> Self {
        let path = path.to_path_buf();
        let mut collected = path.clone().into_os_string();
        collected.push(".all");
        Files { path, rank, size, collected: collected.into() }
    }

    pub(super) fn open(&self, path: &Path) -> Result<File, BootstrapError> {
        open_user_file(path, OpenOptions::new().read(true)).map_err(|e| file_error(path, e))
    }

    /// Writes this rank's hello, and erases its agreement, whose slot comes next.
    pub(super) fn write_hello(&self, number: u64) -> Result<(), BootstrapError> {
        let size = self.size as u32;
        let hello = FileRecord { session: 0, round: number, size, total: 0, payload: Vec::new() };
        let bytes = [hello.encode(), [0; RECORD]].concat();
        let write = || write_at(&self.path, true, &bytes, RecordSlot::Hello.offset(self.rank));
        // Rank 0 may have removed the file just after it was opened.
        write().or_else(|error| if error.is_not_found() { write() } else { Err(error) })
    }

    /// Returns the session that a rank has agreed to.
    pub(super) fn agreed(&self, file: &File, rank: usize) -> Result<Option<u64>, BootstrapError> {
        Ok(self.read(file, (RecordSlot::Agreement, rank), HEADER)?.map(|record| record.session))
    }

    /// Writes one of this rank's records behind its hello. Does not create the file, which other ranks may have
    /// removed.
    pub(super) fn write(
        &self,
        slot: RecordSlot,
        session: u64,
        round: u64,
        piece: &[u8],
        total: u32,
    ) -> Result<(), BootstrapError> {
        let size = self.size as u32;
        let record = FileRecord { session, round, size, total, payload: piece.to_vec() };
        write_at(&self.path, false, &record.encode(), slot.offset(self.rank))
    }

    /// Removes both files. Failures are ignored: remaining files do no harm.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.collected);
    }

    /// Publishes collected data to all ranks.
    pub(super) fn publish(&self, collected: &Collected) -> Result<(), BootstrapError> {
        write_at(&self.collected, true, &collected.encode(), 0)
    }

    /// Returns what rank 0 has published last, if `is_wanted` returns true for its session and round.
    pub(super) fn poll_collected(
        &self,
        is_wanted: impl Fn(u64, u64) -> bool,
    ) -> Result<Option<Collected>, BootstrapError> {
        let failed = |e| file_error(&self.collected, e);
        let file = match open_user_file(&self.collected, OpenOptions::new().read(true)) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
        };
        let mut head = [0; HEADER];
        if !read_at(&file, &mut head, 0).map_err(failed)? {
            return Ok(None);
        }
        // No valid body is longer.
        let most = self.size * (PAYLOAD + RoundPiece::HEADER);
        let Some(head) = Collected::head(&head).filter(|h| h.len <= most) else { return Ok(None) };
        if !is_wanted(head.session, head.round) {
            return Ok(None);
        }
        let mut body = vec![0; head.len];
        let is_there = read_at(&file, &mut body, HEADER as u64).map_err(failed)?;
        Ok(if is_there { head.with(body) } else { None })
    }

    /// Reads a record, if there is one: its first `len` bytes, which are [`RECORD`], or [`HEADER`] without the
    /// payload.
    pub(super) fn read(
        &self,
        file: &File,
        (slot, rank): (RecordSlot, usize),
        len: usize,
    ) -> Result<Option<FileRecord>, BootstrapError> {
        let mut bytes = [0; RECORD];
        let is_there = read_at(file, &mut bytes[..len], slot.offset(rank));
        let is_there = is_there.map_err(|e| file_error(&self.path, e))?;
        Ok(if is_there { FileRecord::decode(&bytes) } else { None })
    }

    /// Returns the first of these ranks whose hello has another protocol number, that number, and this process's own.
    pub(super) fn other_protocol(&self, ranks: &[usize]) -> Option<(usize, u8, u8)> {
        let file = self.open(&self.path).ok()?;
        ranks.iter().find_map(|&rank| {
            let mut head = [0; HEADER];
            let is_there =
                read_at(&file, &mut head, RecordSlot::Hello.offset(rank)).unwrap_or(false);
            let other = FileRecord::other_protocol(&head).filter(|_| is_there);
            other.map(|other| (rank, other, PROTOCOL))
        })
    }
}
