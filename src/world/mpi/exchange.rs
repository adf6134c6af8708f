//! The exchange of ranks at start-up by MPI.
//!
//! A rank that cannot start says so in the next exchange, whatever the other ranks exchange there: all ranks learn
//! the reason, and none waits for it. All ranks then stop using the session's communicators at the same point, and
//! free them together, as MPI requires.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::endpoint::mpi::ffi;
use hopbine_meet::{BootstrapError, Exchange, Records};

use super::session::{Session, StartUpState};
use crate::endpoint::mpi::check;
use crate::error::WireError;

/// After this time a wait sleeps between its tests, so that ranks that come late get the cores.
const YIELD_TIME: Duration = Duration::from_millis(10);
const NAP: Duration = Duration::from_micros(200);

/// See the module documentation.
#[derive(Debug)]
pub(super) struct MpiExchange {
    pub(super) session: Arc<Session>,
    pub(super) timeout: Duration,
}

/// Lowest bit of the word that has the length of a record: the record is the reason why its rank cannot start.
const GAVE_UP_FLAG: u64 = 1;

impl MpiExchange {
    /// Waits for the request that `start` makes. False if it takes too long: MPI may then still use the memory that
    /// it was given.
    fn wait(
        &self,
        call: &'static str,
        start: impl FnOnce(&mut ffi::MPI_Request) -> c_int,
    ) -> Result<bool, WireError> {
        let began = Instant::now();
        self.session.wait(call, start, || {
            match began.elapsed() {
                waited if waited > self.timeout => return false,
                waited if waited > YIELD_TIME => std::thread::sleep(NAP),
                _ => std::thread::yield_now(),
            }
            true
        })
    }

    /// Sends the reason why this rank cannot start; returns when all ranks know that some rank cannot.
    pub(super) fn give_up(&self, reason: &str) {
        if self.session.state() == StartUpState::Running {
            // All ranks get the reason as an error, which is not needed here.
            let _ = self.gather_records(reason.as_bytes(), GAVE_UP_FLAG);
        }
    }

    /// Gathers `mine`, which has the same length on all ranks, in rank order.
    fn gather(&self, mine: Vec<u8>) -> Result<Vec<u8>, WireError> {
        // Some MPIs refuse to gather 0 bytes.
        if mine.is_empty() {
            return Ok(mine);
        }
        let mut all = vec![0u8; mine.len() * self.session.n_ranks as usize];
        let is_done = self.wait("MPI_Iallgather", |request| {
            // SAFETY: both buffers are valid until the request is done; after a timeout they are never freed.
            unsafe {
                ffi::PMPI_Iallgather(
                    mine.as_ptr().cast(),
                    mine.len() as c_int,
                    ffi::uint8_t(),
                    all.as_mut_ptr().cast(),
                    mine.len() as c_int,
                    ffi::uint8_t(),
                    self.session.comm.0,
                    request,
                )
            }
        })?;
        if !is_done {
            std::mem::forget((mine, all));
            return Err(self.timed_out("MPI_Iallgather"));
        }
        Ok(all)
    }

    /// Gathers `mine` of all ranks; fails on all ranks if one of them gave the reason why it cannot start.
    fn gather_records(&self, mine: &[u8], flag: u64) -> Result<Records, WireError> {
        let comm = self.session.comm.0;
        let n_ranks = self.session.n_ranks as usize;
        let own_len = (mine.len() as u64) << 1 | flag;
        let lens = self.gather(own_len.to_le_bytes().to_vec())?;
        let mut lens: Vec<u64> =
            lens.as_chunks::<8>().0.iter().map(|len| u64::from_le_bytes(*len)).collect();
        let gave_up = lens.iter().position(|len| len & GAVE_UP_FLAG != 0);
        lens.iter_mut().for_each(|len| *len >>= 1);
        let total: u64 = lens.iter().sum();
        if c_int::try_from(total).is_err() {
            let reason = format!("{total} bytes are more than MPI gathers");
            return Err(WireError::new("MPI_Iallgatherv", reason));
        }
        if gave_up.is_none() && lens.iter().all(|len| *len == lens[0]) {
            drop(lens);
            return Ok(Records::of_equal_length(self.gather(mine.to_vec())?, n_ranks));
        }
        let (mine, mut all) = (mine.to_vec(), vec![0u8; total as usize]);
        let counts: Vec<c_int> = lens.iter().map(|&len| len as c_int).collect();
        let mut end = 0;
        let starts = counts.iter().map(|count| {
            end += count;
            end - count
        });
        let starts: Vec<c_int> = starts.collect();
        let is_done = self.wait("MPI_Iallgatherv", |request| {
            // SAFETY: the buffers are valid until the request is done; after a timeout they are never freed.
            unsafe {
                ffi::PMPI_Iallgatherv(
                    mine.as_ptr().cast(),
                    mine.len() as c_int,
                    ffi::uint8_t(),
                    all.as_mut_ptr().cast(),
                    counts.as_ptr(),
                    starts.as_ptr(),
                    ffi::uint8_t(),
                    comm,
                    request,
                )
            }
        })?;
        if !is_done {
            std::mem::forget((mine, all, counts, starts));
            return Err(self.timed_out("MPI_Iallgatherv"));
        }
        let part = |(&start, &count): (&c_int, &c_int)| &all[start as usize..][..count as usize];
        let records: Records = starts.iter().zip(&counts).map(part).collect();
        let Some(rank) = gave_up else { return Ok(records) };
        self.session.set_state(StartUpState::GivenUp);
        let reason = format!("rank {rank}: {}", String::from_utf8_lossy(&records[rank]));
        Err(WireError::new("joining a world", reason))
    }

    /// Sends every rank an empty message, and waits for one from every rank. Returns the ranks from which none has
    /// come.
    fn call_roll(&self) -> Result<Vec<usize>, WireError> {
        let Session { library, roll_call_comm, rank, n_ranks, .. } = &*self.session;
        let (mut awaited, mut sent) = (Vec::new(), Vec::new());
        let none = ffi::request_null();
        let (no_one, nothing) = (std::ptr::null_mut(), std::ptr::null());
        for peer in (0..*n_ranks).filter(|peer| peer != rank) {
            let _inside = library.enter()?;
            let (mut recv, mut send, at) = (none, none, peer as c_int);
            // SAFETY: messages without bytes; the requests are completed or freed below.
            unsafe {
                let kind = ffi::uint8_t();
                let code = ffi::PMPI_Irecv(no_one, 0, kind, at, 0, roll_call_comm.0, &mut recv);
                check("MPI_Irecv", code)?;
                let code = ffi::PMPI_Isend(nothing, 0, kind, at, 0, roll_call_comm.0, &mut send);
                check("MPI_Isend", code)?;
            }
            awaited.push((peer as usize, recv));
            sent.push(send);
        }
        let began = Instant::now();
        while !awaited.is_empty() && began.elapsed() <= self.timeout {
            {
                let _inside = library.enter()?;
                let mut silent = Vec::new();
                for (peer, mut recv) in awaited {
                    let mut is_done = 0;
                    // SAFETY: a request that was started.
                    let code =
                        unsafe { ffi::PMPI_Test(&mut recv, &mut is_done, std::ptr::null_mut()) };
                    check("MPI_Test", code)?;
                    if is_done == 0 {
                        silent.push((peer, recv));
                    }
                }
                awaited = silent;
            }
            std::thread::sleep(NAP);
        }
        let _inside = library.enter()?;
        for request in awaited.iter_mut().map(|(_, recv)| recv) {
            // SAFETY: a receive that only this function knows; it ends now, or when its message comes.
            unsafe {
                check("MPI_Cancel", ffi::PMPI_Cancel(request))?;
                check("MPI_Request_free", ffi::PMPI_Request_free(request))?;
            }
        }
        for mut request in sent {
            // SAFETY: as above; MPI completes the send by itself.
            check("MPI_Request_free", unsafe { ffi::PMPI_Request_free(&mut request) })?;
        }
        Ok(awaited.into_iter().map(|(peer, _)| peer).collect())
    }

    fn timed_out(&self, call: &'static str) -> WireError {
        self.session.set_state(StartUpState::TimedOut);
        WireError::new(
            call,
            format!(
                "not all {} ranks took part within {:.1} s; MPI does not say which",
                self.session.n_ranks,
                self.timeout.as_secs_f64()
            ),
        )
    }
}

impl Exchange for MpiExchange {
    fn rank(&self) -> usize {
        self.session.rank as usize
    }

    fn size(&self) -> usize {
        self.session.n_ranks as usize
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError> {
        self.gather_records(mine, 0).map_err(|error| BootstrapError::Failed(Box::new(error)))
    }

    fn roll_call(&mut self) -> Result<Vec<usize>, BootstrapError> {
        self.call_roll().map_err(|error| BootstrapError::Failed(Box::new(error)))
    }
}
