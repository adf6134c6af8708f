//! MPI requests: cancellation and completion.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::time::Instant;

use super::ffi;

use super::library::check;
use crate::endpoint::WireError;

/// Bytes that a completed receive has received.
pub(super) fn n_bytes(status: &ffi::MPI_Status) -> Result<usize, WireError> {
    let mut count = 0;
    // SAFETY: the status of a complete receive, and a number to write to.
    let code = unsafe { ffi::PMPI_Get_count(status, ffi::uint8_t(), &mut count) };
    check("MPI_Get_count", code)?;
    // Negative (MPI_UNDEFINED) only for datatypes of several bytes.
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Cancels a receive; false if a message has matched it already. Does not wait for other ranks.
pub(super) fn cancel_one(request: &mut ffi::MPI_Request) -> Result<bool, WireError> {
    let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
    let mut is_cancelled = 0;
    // SAFETY: the request is active before the wait and complete after it; then MPI has written the status.
    unsafe {
        check("MPI_Cancel", ffi::PMPI_Cancel(request))?;
        check("MPI_Wait", ffi::PMPI_Wait(request, status.as_mut_ptr()))?;
        let code = ffi::PMPI_Test_cancelled(status.as_ptr(), &mut is_cancelled);
        check("MPI_Test_cancelled", code)?;
    }
    Ok(is_cancelled != 0)
}

/// Cancels receives. Each becomes complete, also without a message; but one that a message has matched already only
/// when MPI has received the message.
pub(super) fn cancel(requests: &mut [ffi::MPI_Request]) {
    for request in requests {
        // SAFETY: `request_null` is a constant of MPI; any other request here is active.
        unsafe {
            if *request != ffi::request_null() {
                ffi::PMPI_Cancel(request);
            }
        }
    }
}

/// Waits for requests, at most until `end`; returns whether all are complete.
pub(super) fn finish(requests: &mut [ffi::MPI_Request], end: Instant) -> bool {
    loop {
        let mut are_done = 0;
        // SAFETY: each request is active or null.
        let code = unsafe {
            ffi::PMPI_Testall(requests.len() as c_int, requests.as_mut_ptr(), &mut are_done)
        };
        if code == 0 && are_done != 0 {
            return true;
        }
        if code != 0 || Instant::now() >= end {
            return false;
        }
        std::thread::yield_now();
    }
}
