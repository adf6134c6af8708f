//! The last messages of an endpoint that is abandoned: its own, which MPI cannot take back, and those of
//! its peers, which are received for nobody, so that their senders are done with them.

use std::mem::MaybeUninit;
use std::time::Instant;

use super::ffi;

use super::library::Comm;
use super::requests::{finish, n_bytes};

/// A message that is received for nobody, into this memory.
type Taken = (ffi::MPI_Request, Vec<u8>);

/// Waits for sends, at most until `end`, and takes the messages of peers meanwhile, from `first` on, when they
/// have had time to hear why, at least until `least`.
pub(super) fn drain(comm: Comm, sends: &mut [ffi::MPI_Request], [first, least, end]: [Instant; 3]) {
    let mut all = Vec::new();
    loop {
        let now = Instant::now();
        if now >= first {
            all.extend(take(comm));
        }
        all.retain_mut(|(request, _): &mut Taken| !finish(std::slice::from_mut(request), now));
        if finish(sends, now) && all.is_empty() && now >= least || now >= end {
            break;
        }
        std::thread::yield_now();
    }
    // MPI may still write to these.
    std::mem::forget(all);
}

/// Starts to receive a message that no receive has met, if there is one.
fn take(comm: Comm) -> Option<Taken> {
    let mut has_come = 0;
    let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
    let (mut message, mut request) = (ffi::message_null(), ffi::request_null());
    // SAFETY: places for what MPI says.
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
    // SAFETY: written, as a message has come.
    let len = n_bytes(unsafe { status.assume_init_ref() }).ok()?;
    let mut waste = Vec::<u8>::new();
    waste.try_reserve_exact(len).ok()?;
    // SAFETY: the memory has room for the message and stays until the request is done.
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
    // MPI may use the memory.
    std::mem::forget(waste);
    None
}
