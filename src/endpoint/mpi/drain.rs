//! The last messages of an abandoned endpoint: its sends, which MPI cannot cancel, its receives that messages have
//! matched already, and the messages of its peers, which are received and dropped so that the peers' sends complete.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use hopbine_meet::print_remark;

use super::ffi;
use super::library::Comm;
use super::long_message::Role;
use super::requests::{cancel, finish, n_bytes};
use crate::Rank;

/// Longest wait for the rest of a message that MPI is receiving into a region. After it this process ends: its program
/// may not get the region back. A rank that calls MPI again within this time completes the message, and if a rank has
/// died, MPI's launcher ends the job.
const LONGEST_REST: Duration = Duration::from_secs(600);
/// Pause between two checks of such a message.
const PAUSE: Duration = Duration::from_millis(1);

/// The receive of a message that is dropped, and its memory.
type DroppedRecv = (ffi::MPI_Request, Vec<u8>);

/// What an abandoned endpoint of `rank` has posted.
pub(super) struct PostedRequests {
    rank: Rank,
    sends: Vec<ffi::MPI_Request>,
    /// Receives into regions, with the ranks whose messages they are for.
    recvs: Vec<(Rank, ffi::MPI_Request)>,
    /// Other receives.
    dropped: Vec<ffi::MPI_Request>,
}

impl PostedRequests {
    pub(super) fn of(rank: Rank) -> Self {
        let (sends, recvs, dropped) = Default::default();
        PostedRequests { rank, sends, recvs, dropped }
    }

    /// Adds the request of a message, and cancels it if it is a receive.
    pub(super) fn add(&mut self, mut request: ffi::MPI_Request, role: Option<&Role>) {
        if let Some(Role::Send(_) | Role::HeaderlessSend(_)) = role {
            return self.sends.push(request);
        }
        cancel(std::slice::from_mut(&mut request));
        match role.and_then(Role::sender) {
            Some(from) => self.recvs.push((from, request)),
            None => self.dropped.push(request),
        }
    }

    /// Waits until MPI no longer writes to the regions of receives that messages have matched; for all others at most
    /// until `end`. Meanwhile receives and drops the messages of peers: from `first` on, so that they have had time to
    /// hear of the failure, and at least until `least`. Returns whether all receives are complete.
    pub(super) fn drain(mut self, comm: Comm, [first, least, end]: [Instant; 3]) -> bool {
        let (mut all, mut has_warned) = (Vec::new(), false);
        loop {
            let now = Instant::now();
            if now >= first {
                all.extend(take(comm));
            }
            all.retain_mut(|(request, _): &mut DroppedRecv| {
                !finish(std::slice::from_mut(request), now)
            });
            self.recvs.retain_mut(|(_, request)| {
                finish(std::slice::from_mut(request), now);
                // MPI sets a request to null when it is complete, also by an error.
                *request != ffi::request_null()
            });
            let are_sent = finish(&mut self.sends, now);
            match self.recvs.first() {
                None if are_sent && all.is_empty() && now >= least || now >= end => break,
                Some(&(from, _)) if now >= end => {
                    if now >= end + LONGEST_REST {
                        abort(self.rank, &format!("rank {from} does not call MPI any more"));
                    }
                    if !std::mem::replace(&mut has_warned, true) {
                        print_remark(format_args!(
                            "hopbine: rank {}: a call has failed, but returns only when rank {from} calls MPI: MPI \
                             is receiving a message of that rank into the call's memory",
                            self.rank
                        ));
                    }
                    std::thread::sleep(PAUSE);
                }
                _ => std::thread::yield_now(),
            }
        }
        // MPI may still write to this memory.
        std::mem::forget(all);
        finish(&mut self.dropped, end)
    }
}

/// Ends this process: MPI may write to memory of a call that has failed, as long as the process lives.
pub(super) fn abort(rank: Rank, reason: &str) -> ! {
    print_remark(format_args!(
        "hopbine: rank {rank} ends: MPI is receiving into the memory of a call that has failed, and {reason}"
    ));
    std::process::abort()
}

/// Starts to receive a message that matches no posted receive, if there is one.
fn take(comm: Comm) -> Option<DroppedRecv> {
    let mut has_come = 0;
    let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
    let (mut message, mut request) = (ffi::message_null(), ffi::request_null());
    // SAFETY: valid places for MPI's results.
    let code = unsafe {
        ffi::PMPI_Improbe(
            ffi::any_source(),
            ffi::any_tag(),
            comm.0,
            &mut has_come,
            &mut message,
            status.as_mut_ptr(),
        )
    };
    if code != 0 || has_come == 0 {
        return None;
    }
    // SAFETY: MPI has written the status, since there is a message.
    let len = n_bytes(unsafe { status.assume_init_ref() }).ok()?;
    let mut waste = Vec::<u8>::new();
    waste.try_reserve_exact(len).ok()?;
    // SAFETY: the memory has room for the message and stays valid until the request is complete.
    let code = unsafe {
        ffi::PMPI_Imrecv(
            waste.as_mut_ptr().cast(),
            len as i32,
            ffi::uint8_t(),
            &mut message,
            &mut request,
        )
    };
    if code == 0 {
        return Some((request, waste));
    }
    // MPI may still use the memory.
    std::mem::forget(waste);
    None
}
