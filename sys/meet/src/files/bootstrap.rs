//! The rendezvous through two files: every rank writes to the first, rank 0 to the second.
//!
//! # The protocol
//! Each rank has three records in the first file, which only this rank writes:
//!
//! * *hello*: a number that the rank has drawn for this run;
//! * *agreement*: the session that the rank takes part in;
//! * *data*: the rank's part of the round in progress.
//!
//! Rank 0 collects these records and writes the result to the second file ([`Collected`]), which the other ranks
//! poll. So a poll costs one short read, and only rank 0 reads all records.
//!
//! Once all hellos are there, rank 0 writes the table of their numbers; the table's hash identifies the *session*. A
//! rank agrees to a table that contains its own fresh number; a table with a number left by an earlier run is
//! replaced as soon as the rank in question arrives. When all ranks have agreed, rank 0 publishes this, and rounds
//! begin. The result of a round may overwrite the last result, since a rank writes its part of a round only after it
//! has read the last result. A table may also overwrite the last result of an earlier run: a rank erases its
//! agreement when it writes its hello, and a hello beside an agreement of an earlier run does not count.
//!
//! Longer messages take several rounds. Files are reopened for every poll, which makes NFS clients ask the server
//! (close-to-open consistency, nfs(5)). They are closed after every write, and the result of the close is checked,
//! because clients send the data at that time.
//!
//! Rank 0 removes temporary files when all ranks have read the last result, before it meets the ranks again. Another
//! rank may already have written the hello of its next meeting, which then goes with the file. So a rank that waits
//! for rank 0 at temporary files writes its hello again if it is not there.
//!
//! The contents of the files are not trusted: the files must belong to the user, and bytes that are not a valid
//! record count as absent. So do records of another protocol, which an earlier run may have left; but a rank that
//! times out while it waits for their writers reports them.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::access::file_error;
use super::backoff::FileBackoff;
use super::piece::{AssembledMessage, RoundPiece};
use super::record::{Collected, FileRecord, HEADER, PAYLOAD, RECORD};
use super::slots::{Files, RecordSlot};
use crate::error::{BootstrapError, Phase};
use crate::exchange::Exchange;
use crate::fnv;
use crate::host::fresh_number;
use crate::records::Records;

/// Rounds of the start: the table of hellos, and the message that all ranks have agreed to it.
const TABLE: u64 = 0;
const AGREED: u64 = 1;

/// The rendezvous of a job's ranks through files.
#[derive(Debug)]
pub struct Bootstrap {
    pub(super) files: Files,
    timeout: Duration,
    pub(super) session: u64,
    round: u64,
    exchanges: u64,
    /// Whether the ranks remove the files at the end.
    pub(super) is_temporary: bool,
}

impl Bootstrap {
    /// Meets the other ranks at the file `path` and a second file with `.all` appended to that name. The files are
    /// created if they do not exist; contents from an earlier run do no harm. Two jobs must not use one file at the
    /// same time. `timeout` limits this and every later wait. Temporary files belong to this job alone: they are
    /// removed when all ranks have dropped their exchanges, or if the ranks do not meet.
    ///
    /// # Errors
    /// [`BootstrapError`]; [`BootstrapError::Missing`] names the ranks that did not appear.
    ///
    /// # Panics
    /// If `rank` is not below `size`.
    pub fn join(
        path: &Path,
        (rank, size): (usize, usize),
        timeout: Duration,
        is_temporary: bool,
    ) -> Result<Bootstrap, BootstrapError> {
        assert!(rank < size, "rank {rank} of {size}");
        let files = Files::new(path, rank, size);
        let mut this =
            Bootstrap { files, timeout, session: 0, round: AGREED, exchanges: 0, is_temporary };
        let mine = fresh_number();
        this.files.write_hello(mine)?;
        let met = if rank == 0 { this.gather_all(mine) } else { this.agree(mine) };
        match met {
            Ok(session) => this.session = session,
            Err(error) => {
                this.abort(&error);
                return Err(error);
            }
        }
        Ok(this)
    }

    /// Start of rank 0: collects hellos, then agreements; returns the session.
    fn gather_all(&self, mine: u64) -> Result<u64, BootstrapError> {
        let mut hellos: Vec<Option<FileRecord>> = vec![None; self.files.size];
        let mut has_agreed = vec![false; self.files.size];
        let mut tables = Vec::new();
        let mut backoff = FileBackoff::new(self.timeout);
        loop {
            let file = self.files.open(&self.files.path)?;
            // A rank agrees only to a table that contains its own number.
            for rank in (1..self.files.size).filter(|&rank| !has_agreed[rank]) {
                let hello = self.files.read(&file, (RecordSlot::Hello, rank), HEADER)?;
                // A rank with an agreement of an earlier run may not have read the last result of that run.
                let is_fresh = |agreed| tables.contains(&agreed);
                let agreed = self.files.agreed(&file, rank)?;
                hellos[rank] = hello.filter(|_| agreed.is_none_or(is_fresh));
            }
            let is_good = |r: &FileRecord| r.size as usize == self.files.size;
            let good = |h: &Option<FileRecord>| h.as_ref().is_some_and(is_good);
            let mut missing: Vec<usize> =
                (1..self.files.size).filter(|&r| !good(&hellos[r])).collect();
            if missing.is_empty() {
                // A hello's position identifies its writer; its number is in the field `round`.
                let numbers = hellos.iter().map(|h| h.as_ref().map_or(mine, |r| r.round));
                let table: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
                let view = fnv::of_bytes(table.iter().copied());
                if tables.last() != Some(&view) {
                    tables.push(view);
                    has_agreed.fill(false);
                    has_agreed[0] = true;
                    self.files.publish(&Collected { session: view, round: TABLE, body: table })?;
                }
                for (rank, agreed) in has_agreed.iter_mut().enumerate().filter(|(_, a)| !**a) {
                    *agreed = self.files.agreed(&file, rank)? == Some(view);
                }
                missing = (0..self.files.size).filter(|&rank| !has_agreed[rank]).collect();
                if missing.is_empty() {
                    let body = Vec::new();
                    self.files.publish(&Collected { session: view, round: AGREED, body })?;
                    return Ok(view);
                }
            }
            let sizes = hellos.iter().flatten().map(|r| r.size as usize);
            let other = sizes.rev().find(|&s| s != self.files.size);
            if let Err(waited) = backoff.pause() {
                self.check_rank_unique(&file, mine)?;
                return Err(self.missing(missing, Phase::Arrival, waited, other));
            }
        }
    }

    /// Start of the other ranks: agree to a table that contains their number; returns the session.
    fn agree(&self, mine: u64) -> Result<u64, BootstrapError> {
        let mut backoff = FileBackoff::new(self.timeout);
        let mut agreed = None;
        loop {
            if self.is_temporary && !self.has_hello()? {
                self.files.write_hello(mine)?;
            }
            match self.files.poll_collected(|session, round| {
                round == TABLE && agreed != Some(session)
                    || round == AGREED && agreed == Some(session)
            })? {
                Some(Collected { session, round: AGREED, .. }) => return Ok(session),
                Some(Collected { session, body, .. }) => {
                    let (numbers, _) = body.as_chunks::<8>();
                    let own = numbers.get(self.files.rank).map(|bytes| u64::from_le_bytes(*bytes));
                    if numbers.len() == self.files.size && own == Some(mine) {
                        self.files.write(RecordSlot::Agreement, session, 0, &[], 0)?;
                        agreed = Some(session);
                    }
                }
                None => {}
            }
            if let Err(waited) = backoff.pause() {
                let (missing, other_size) = self.missing_at_start(mine, agreed)?;
                return Err(self.missing(missing, Phase::Arrival, waited, other_size));
            }
        }
    }

    /// Returns whether the file holds a hello of this rank.
    fn has_hello(&self) -> Result<bool, BootstrapError> {
        match self.files.open(&self.files.path) {
            Ok(file) => {
                Ok(self.files.read(&file, (RecordSlot::Hello, self.files.rank), HEADER)?.is_some())
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the missing ranks as far as a rank other than 0 can tell: ranks without a hello, with another number
    /// of ranks, or with another agreement than this rank's. If there are none, rank 0 is missing.
    fn missing_at_start(
        &self,
        mine: u64,
        agreed: Option<u64>,
    ) -> Result<(Vec<usize>, Option<usize>), BootstrapError> {
        let file = match self.files.open(&self.files.path) {
            Ok(file) => file,
            // Rank 0 has given up, or ranks that timed out waiting for rank 0 have removed the file.
            Err(error) if error.is_not_found() => return Ok((vec![0], None)),
            Err(error) => return Err(error),
        };
        self.check_rank_unique(&file, mine)?;
        let mut other_size = None;
        let mut missing = Vec::new();
        for rank in 0..self.files.size {
            match self.files.read(&file, (RecordSlot::Hello, rank), HEADER)? {
                Some(hello) if hello.size as usize == self.files.size => {
                    if rank > 0 && self.files.agreed(&file, rank)? != agreed {
                        missing.push(rank);
                    }
                }
                hello => {
                    other_size = other_size.or(hello.map(|r| r.size as usize));
                    missing.push(rank);
                }
            }
        }
        if missing.is_empty() {
            missing.push(0);
        }
        Ok((missing, other_size))
    }

    /// Checks that this rank's hello is still the one that this process has written.
    fn check_rank_unique(&self, file: &File, mine: u64) -> Result<(), BootstrapError> {
        let Files { rank, size, .. } = self.files;
        match self.files.read(file, (RecordSlot::Hello, rank), HEADER)? {
            Some(hello) if hello.round != mine => Err(BootstrapError::Twice { rank, size }),
            _ => Ok(()),
        }
    }

    /// Performs one round; returns the pieces of all ranks, by rank.
    fn exchange_round(
        &mut self,
        piece: &[u8],
        total: u32,
    ) -> Result<Vec<RoundPiece>, BootstrapError> {
        self.round += 1;
        let (session, round) = (self.session, self.round);
        if self.files.rank == 0 {
            return self.collect(RoundPiece { total, bytes: piece.to_vec() });
        }
        self.files.write(RecordSlot::Data, session, round, piece, total)?;
        let mut backoff = FileBackoff::new(self.timeout);
        loop {
            let found = self.files.poll_collected(|s, r| (s, r) == (session, round))?;
            if let Some(pieces) = found.and_then(|c| RoundPiece::all_from(&c.body, self.files.size))
            {
                return Ok(pieces);
            }
            if let Err(waited) = backoff.pause() {
                let file = self.files.open(&self.files.path)?;
                let mut missing = Vec::new();
                for rank in 1..self.files.size {
                    let record = self.files.read(&file, (RecordSlot::Data, rank), RECORD)?;
                    if record.is_none_or(|r| (r.session, r.round) != (session, round)) {
                        missing.push(rank);
                    }
                }
                if missing.is_empty() {
                    missing.push(0);
                }
                return Err(self.missing(missing, Phase::Exchange(self.exchanges), waited, None));
            }
        }
    }

    /// Rank 0's part of a round: collects the other ranks' records and publishes them all.
    fn collect(&self, mine: RoundPiece) -> Result<Vec<RoundPiece>, BootstrapError> {
        let (session, round) = (self.session, self.round);
        let mut got: Vec<Option<RoundPiece>> = vec![None; self.files.size];
        got[0] = Some(mine);
        let mut backoff = FileBackoff::new(self.timeout);
        loop {
            let file = self.files.open(&self.files.path)?;
            for (rank, place) in got.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
                let record = self.files.read(&file, (RecordSlot::Data, rank), RECORD)?;
                let record = record.filter(|r| (r.session, r.round) == (session, round));
                *place = record.map(|r| RoundPiece { total: r.total, bytes: r.payload });
            }
            let missing: Vec<usize> =
                (0..self.files.size).filter(|&rank| got[rank].is_none()).collect();
            if missing.is_empty() {
                let pieces: Vec<RoundPiece> = got.into_iter().flatten().collect();
                let body = pieces.iter().flat_map(RoundPiece::encode).collect();
                self.files.publish(&Collected { session, round, body })?;
                return Ok(pieces);
            }
            let phase = Phase::Exchange(self.exchanges);
            backoff.pause().map_err(|waited| self.missing(missing, phase, waited, None))?;
        }
    }

    fn missing(
        &self,
        missing: Vec<usize>,
        phase: Phase,
        waited: Duration,
        other_size: Option<usize>,
    ) -> BootstrapError {
        let (rank, size) = (self.files.rank, self.files.size);
        let is_start = phase == Phase::Arrival;
        let other_protocol = is_start.then(|| self.files.other_protocol(&missing)).flatten();
        BootstrapError::Missing { rank, size, missing, phase, waited, other_size, other_protocol }
    }
}

impl Exchange for Bootstrap {
    fn rank(&self) -> usize {
        self.files.rank
    }

    fn size(&self) -> usize {
        self.files.size
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError> {
        self.exchanges += 1;
        let total = u32::try_from(mine.len()).map_err(|_| {
            let reason =
                format!("a message of {} bytes, but at most {} are possible", mine.len(), u32::MAX);
            file_error(&self.files.path, io::Error::new(io::ErrorKind::InvalidInput, reason))
        })?;
        let mut all = vec![AssembledMessage::default(); self.files.size];
        let mut pieces = mine.chunks(PAYLOAD);
        loop {
            let parts = self.exchange_round(pieces.next().unwrap_or(&[]), total)?;
            for (rank, (message, part)) in all.iter_mut().zip(&parts).enumerate() {
                message.add(part, PAYLOAD).map_err(|what| {
                    let what = format!("rank {rank} has written {what}");
                    let source = io::Error::new(io::ErrorKind::InvalidData, what);
                    file_error(&self.files.path, source)
                })?;
            }
            // All ranks see the same records, so all stop after the same round.
            if all.iter().all(AssembledMessage::is_complete) {
                return Ok(all.into_iter().map(|message| message.bytes).collect());
            }
        }
    }
}
