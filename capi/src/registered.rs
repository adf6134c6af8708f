//! Memory that the program itself registers with the network.

use std::ffi::{c_int, c_void};

use hopbine::Registered;

use crate::failure::{Failure, HOPBINE_ERR_ARG, HOPBINE_ERR_BUFFER, entry, out};
use crate::handles::{self, Kind, Table, hopbine_comm_t};

/// A registration of memory, ended by hopbine_deregister().
#[expect(non_camel_case_types, reason = "named as C names types")]
pub type hopbine_registration_t = u64;

/// The registrations that this process has made.
static REGISTRATIONS: Table<Registered> = Table::new(Kind::Registered);

/// Registers `bytes` bytes at `buffer` with the network, so that later calls on this memory, on any communicator,
/// need no registration. Useful for buffers that are used often, if hopbine cannot detect that memory is unmapped
/// (`hopbine info` says whether it can). The call is local; it does nothing on wires without registration. The memory
/// must stay readable and writable until hopbine_deregister(). After a fork() of this process, deregister the memory
/// and register it again before the next call: the network may reach the child's pages by the older registration.
///
/// # Safety
/// The `bytes` bytes at `buffer` stay readable and writable until hopbine_deregister(), and no call uses them when it
/// is called; `registration` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_register(
    comm: hopbine_comm_t,
    buffer: *mut c_void,
    bytes: i64,
    registration: *mut hopbine_registration_t,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let registration = unsafe { out(registration, "registration") }?;
        let comm = handles::find_comm(comm)?;
        let len = u64::try_from(bytes).map_err(|_| {
            let what = format!("the number of bytes is {bytes}; it must not be negative");
            Failure::new(HOPBINE_ERR_ARG, what)
        })?;
        if len > 0 && buffer.is_null() {
            return Err(Failure::new(HOPBINE_ERR_BUFFER, "the buffer is null"));
        }
        // SAFETY: the caller's promise.
        let registered = unsafe { comm.register(buffer.cast(), len) }?;
        *registration = REGISTRATIONS.insert(registered);
        Ok(())
    })
}

/// Ends a registration and sets `*registration` to 0. No call in progress may use the memory.
///
/// # Safety
/// `registration` is null or points to a registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_deregister(registration: *mut hopbine_registration_t) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let registration = unsafe { out(registration, "registration") }?;
        if REGISTRATIONS.remove(*registration).is_none() {
            let what = "the handle is not a registration, or one that has ended";
            return Err(Failure::new(HOPBINE_ERR_ARG, what));
        }
        *registration = 0;
        Ok(())
    })
}
