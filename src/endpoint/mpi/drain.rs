//! The last messages of an abandoned endpoint: its sends, which MPI cannot cancel, and the messages of its peers,
//! which are received and dropped so that the peers' sends complete.

use std::mem::MaybeUninit;
use std::time::Instant;

use super::ffi;

use super::library::Comm;
use super::requests::{finish, n_bytes};

/// The receive of a message that is dropped, and its memory.
type DroppedRecv = (ffi::MPI_Request, Vec<u8>);

/// Waits for `sends`, at most until `end`. Meanwhile receives and drops the messages of peers: from `first` on, so
/// that they have had time to hear of the failure, and at least until `least`.
pub(super) fn drain(comm: Comm, sends: &mut [ffi::MPI_Request], [first, least, end]: [Instant; 3]) {
    let mut all = Vec::new();
    loop {
        let now = Instant::now();
        if now >= first {
            all.extend(take(comm));
        }
        all.retain_mut(|(request, _): &mut DroppedRecv| {
            !finish(std::slice::from_mut(request), now)
        });
        if finish(sends, now) && all.is_empty() && now >= least || now >= end {
            break;
        }
        std::thread::yield_now();
    }
    // MPI may still write to this memory.
    std::mem::forget(all);
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
