//! The exchange of ranks at start-up by MPI.
//!
//! A rank that cannot start says so in the next exchange, whatever the other ranks exchange there: all ranks learn
//! the reason, and none waits for it. All ranks then stop using the session's communicators at the same point, and
//! free them together, as MPI requires.

use std::ffi::c_int;
use std::mem::ManuallyDrop;
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

/// Tags of the messages on the exchanges' communicator.
const ROLL_CALL_TAG: c_int = 0;
const GATHER_TAG: c_int = 1;

/// Gathers the blocks of all ranks, in rank order, by Bruck's algorithm: every rank exchanges messages with 2 log2(n)
/// others at most. (Open MPI's `MPI_Iallgather` sends from every rank to every other: n^2 messages, and connections.)
/// `mine` is the block of `rank`; that of a rank has the length of its number in `lens`. `swap` sends bytes to a rank
/// and receives others from another; their memory stays for ever if it fails.
fn gather_blocks<E>(
    rank: usize,
    mine: &[u8],
    lens: &[u64],
    mut swap: impl FnMut(usize, &[u8], usize, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let n = lens.len();
    // Where the blocks end that follow each other from this rank's own, and where that begins.
    let mut ends = vec![0; n + 1];
    for at in 0..n {
        ends[at + 1] = ends[at] + lens[(rank + at) % n] as usize;
    }
    let mut all = ManuallyDrop::new(vec![0u8; ends[n]]);
    all[..mine.len()].copy_from_slice(mine);
    let mut n_here = 1;
    while n_here < n && ends[n] > 0 {
        let n_moved = n_here.min(n - n_here);
        let (here, missing) = all.split_at_mut(ends[n_here]);
        let received = &mut missing[..ends[n_here + n_moved] - ends[n_here]];
        swap((rank + n - n_here) % n, &here[..ends[n_moved]], (rank + n_here) % n, received)?;
        n_here += n_moved;
    }
    all.rotate_left(ends[n - rank]);
    Ok(ManuallyDrop::into_inner(all))
}

impl MpiExchange {
    /// Waits for the request that `start` makes, until the timeout after `began`.
    fn wait(
        &self,
        began: Instant,
        call: &'static str,
        start: impl FnOnce(&mut ffi::MPI_Request) -> c_int,
    ) -> Result<(), WireError> {
        let is_done = self.session.wait(call, start, || {
            match began.elapsed() {
                waited if waited > self.timeout => return false,
                waited if waited > YIELD_TIME => std::thread::sleep(NAP),
                _ => std::thread::yield_now(),
            }
            true
        })?;
        if is_done { Ok(()) } else { Err(self.timed_out(call)) }
    }

    /// Sends the reason why this rank cannot start; returns when all ranks know that some rank cannot.
    pub(super) fn give_up(&self, reason: &str) {
        if self.session.state() == StartUpState::Running {
            // All ranks get the reason as an error, which is not needed here.
            let _ = self.gather_records(reason.as_bytes(), GAVE_UP_FLAG);
        }
    }

    /// Gathers `mine` of all ranks, in rank order; that of a rank has the length of its number in `lens`.
    fn gather(&self, mine: &[u8], lens: &[u64]) -> Result<Vec<u8>, WireError> {
        let Session { exchange_comm, rank, .. } = &*self.session;
        let (comm, kind, tag) = (exchange_comm.0, ffi::uint8_t(), GATHER_TAG);
        let began = Instant::now();
        gather_blocks(*rank as usize, mine, lens, |to, sent, from, received| {
            let (n_sent, n_received) = (sent.len() as c_int, received.len() as c_int);
            let mut send = ffi::request_null();
            self.wait(began, "MPI_Irecv", |recv| {
                let (at, from) = (received.as_mut_ptr().cast(), from as c_int);
                // SAFETY: `gather_blocks` frees its memory only when all requests are done.
                let code = unsafe { ffi::PMPI_Irecv(at, n_received, kind, from, tag, comm, recv) };
                if code != 0 {
                    return code;
                }
                let (at, to) = (sent.as_ptr().cast(), to as c_int);
                // SAFETY: as above.
                unsafe { ffi::PMPI_Isend(at, n_sent, kind, to, tag, comm, &mut send) }
            })?;
            self.wait(began, "MPI_Isend", |request| {
                *request = send;
                0
            })
        })
    }

    /// Gathers `mine` of all ranks; fails on all ranks if one of them gave the reason why it cannot start.
    fn gather_records(&self, mine: &[u8], flag: u64) -> Result<Records, WireError> {
        let n_ranks = self.session.n_ranks as usize;
        let own_len = (mine.len() as u64) << 1 | flag;
        let lens = self.gather(&own_len.to_le_bytes(), &vec![8; n_ranks])?;
        let mut lens: Vec<u64> =
            lens.as_chunks::<8>().0.iter().map(|len| u64::from_le_bytes(*len)).collect();
        let gave_up = lens.iter().position(|len| len & GAVE_UP_FLAG != 0);
        lens.iter_mut().for_each(|len| *len >>= 1);
        let total: u64 = lens.iter().sum();
        if c_int::try_from(total).is_err() {
            let reason = format!("{total} bytes are more than MPI gathers");
            return Err(WireError::new("MPI_Irecv", reason));
        }
        let all = self.gather(mine, &lens)?;
        if gave_up.is_none() && lens.iter().all(|len| *len == lens[0]) {
            return Ok(Records::of_equal_length(all, n_ranks));
        }
        let mut rest = &all[..];
        let records = lens.iter().map(|len| rest.split_off(..*len as usize).unwrap_or_default());
        let records: Records = records.collect();
        let Some(rank) = gave_up else { return Ok(records) };
        self.session.set_state(StartUpState::GivenUp);
        let reason = format!("rank {rank}: {}", String::from_utf8_lossy(&records[rank]));
        Err(WireError::new("joining a world", reason))
    }

    /// Sends every rank an empty message, and waits for one from every rank. Returns the ranks from which none has
    /// come.
    fn call_roll(&self) -> Result<Vec<usize>, WireError> {
        let Session { library, exchange_comm, rank, n_ranks, .. } = &*self.session;
        let (mut awaited, mut sent) = (Vec::new(), Vec::new());
        let none = ffi::request_null();
        let (no_one, nothing) = (std::ptr::null_mut(), std::ptr::null());
        let (comm, kind, tag) = (exchange_comm.0, ffi::uint8_t(), ROLL_CALL_TAG);
        for peer in (0..*n_ranks).filter(|peer| peer != rank) {
            let _inside = library.enter()?;
            let (mut recv, mut send, at) = (none, none, peer as c_int);
            // SAFETY: messages without bytes; the requests are completed or freed below.
            unsafe {
                let code = ffi::PMPI_Irecv(no_one, 0, kind, at, tag, comm, &mut recv);
                check("MPI_Irecv", code)?;
                let code = ffi::PMPI_Isend(nothing, 0, kind, at, tag, comm, &mut send);
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn all_blocks_come_in_rank_order_by_few_messages() {
        for n in [1, 2, 3, 4, 7, 8, 12, 33] {
            let block = |rank: usize| vec![rank as u8; rank * 5 % 4];
            let lens: Vec<u64> = (0..n).map(|rank| block(rank).len() as u64).collect();
            let wanted: Vec<u8> = (0..n).flat_map(block).collect();
            let (senders, inboxes): (Vec<_>, Vec<_>) = (0..n).map(|_| channel()).unzip();
            std::thread::scope(|threads| {
                for (rank, inbox) in inboxes.into_iter().enumerate() {
                    let (senders, lens, wanted) = (&senders, &lens, &wanted);
                    threads.spawn(move || {
                        let (mut n_messages, mut early) = (0, Vec::new());
                        let swap = |to: usize, sent: &[u8], from: usize, received: &mut [u8]| {
                            n_messages += 1;
                            senders[to].send((rank, sent.to_vec())).unwrap();
                            let at = loop {
                                if let Some(at) = early.iter().position(|(rank, _)| *rank == from) {
                                    break at;
                                }
                                early.push(inbox.recv().unwrap());
                            };
                            received.copy_from_slice(&early.remove(at).1);
                            Ok::<_, Infallible>(())
                        };
                        let Ok(all) = gather_blocks(rank, &block(rank), lens, swap);
                        assert_eq!((&all, n_messages), (wanted, n.next_power_of_two().ilog2()));
                    });
                }
            });
        }
    }
}
