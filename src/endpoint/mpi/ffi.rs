//! MPI's functions and constants, called through a table that the program's MPI side provides. So building this
//! module needs no MPI, and a table of any MPI can be provided. `sys/mpi/functions.c` makes the table; a handle is
//! one word, whether MPI's own handles are integers or addresses.
//!
//! What programs need of it is documented. The rest is for hopbine's own crates, which call MPI through it.

#![allow(non_snake_case, non_camel_case_types, reason = "MPI's names")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

macro_rules! handles {
    ($($(#[$hidden:meta])? $name:ident)*) => {$(
        $(#[$hidden])?
        #[doc = concat!("A handle of MPI's: `", stringify!($name), "`.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $name(usize);
    )*};
}

handles!(
    MPI_Comm
    #[doc(hidden)] MPI_Datatype
    #[doc(hidden)] MPI_Errhandler
    #[doc(hidden)] MPI_Group
    #[doc(hidden)] MPI_Message
    #[doc(hidden)] MPI_Op
    #[doc(hidden)] MPI_Request
);

/// An MPI status, with room for the status of any MPI.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MPI_Status([u64; 6]);

/// Declares the table, in the layout of `struct functions` in `sys/mpi/functions.c`, and a function for each entry.
macro_rules! table {
    (
        constants { $($constant:ident: $kind:ty,)* }
        functions { $($function:ident $name:ident($($argument:ident: $type:ty),*);)* }
    ) => {
        #[repr(C)]
        struct Functions {
            bytes: usize,
            $($constant: $kind,)*
            comm_at: unsafe extern "C" fn(*const c_void) -> MPI_Comm,
            source_of: unsafe extern "C" fn(*const MPI_Status) -> c_int,
            $($function: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        $(
            #[doc = concat!("`MPI_", stringify!($constant), "`, in capital letters.")]
            #[doc(hidden)]
            #[inline]
            pub fn $constant() -> $kind {
                functions().$constant
            }
        )*

        $(
            #[doc = concat!("`", stringify!($name), "`. Statuses that are null are ignored.")]
            ///
            /// # Safety
            /// As MPI requires for this function.
            #[doc(hidden)]
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "MPI's")]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { (functions().$function)($($argument),*) }
            }
        )*
    };
}

table! {
constants {
    comm_world: MPI_Comm,
    comm_null: MPI_Comm,
    group_null: MPI_Group,
    message_null: MPI_Message,
    request_null: MPI_Request,
    errors_return: MPI_Errhandler,
    uint8_t: MPI_Datatype,
    uint32_t: MPI_Datatype,
    uint64_t: MPI_Datatype,
    double: MPI_Datatype,
    max: MPI_Op,
    any_source: c_int,
    any_tag: c_int,
    undefined: c_int,
    tag_ub: c_int,
    thread_funneled: c_int,
    thread_serialized: c_int,
    thread_multiple: c_int,
}
functions {
    allreduce PMPI_Allreduce(send: *const c_void, recv: *mut c_void, n: c_int, kind: MPI_Datatype, op: MPI_Op, comm: MPI_Comm);
    barrier PMPI_Barrier(comm: MPI_Comm);
    cancel PMPI_Cancel(request: *mut MPI_Request);
    comm_free PMPI_Comm_free(comm: *mut MPI_Comm);
    comm_get_attr PMPI_Comm_get_attr(comm: MPI_Comm, key: c_int, value: *mut c_void, is_set: *mut c_int);
    comm_group PMPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group);
    comm_rank PMPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int);
    comm_set_errhandler PMPI_Comm_set_errhandler(comm: MPI_Comm, handler: MPI_Errhandler);
    comm_size PMPI_Comm_size(comm: MPI_Comm, size: *mut c_int);
    comm_split PMPI_Comm_split(comm: MPI_Comm, colour: c_int, key: c_int, made: *mut MPI_Comm);
    comm_test_inter PMPI_Comm_test_inter(comm: MPI_Comm, is_inter: *mut c_int);
    error_string PMPI_Error_string(code: c_int, text: *mut c_char, length: *mut c_int);
    finalize PMPI_Finalize();
    finalized PMPI_Finalized(is_so: *mut c_int);
    get_count PMPI_Get_count(status: *const MPI_Status, kind: MPI_Datatype, count: *mut c_int);
    get_library_version PMPI_Get_library_version(text: *mut c_char, length: *mut c_int);
    group_free PMPI_Group_free(group: *mut MPI_Group);
    group_translate_ranks PMPI_Group_translate_ranks(from: MPI_Group, n: c_int, ranks: *const c_int, to: MPI_Group, found: *mut c_int);
    ibarrier PMPI_Ibarrier(comm: MPI_Comm, request: *mut MPI_Request);
    ibcast PMPI_Ibcast(buffer: *mut c_void, n: c_int, kind: MPI_Datatype, root: c_int, comm: MPI_Comm, request: *mut MPI_Request);
    improbe PMPI_Improbe(from: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, message: *mut MPI_Message, status: *mut MPI_Status);
    imrecv PMPI_Imrecv(buffer: *mut c_void, n: c_int, kind: MPI_Datatype, message: *mut MPI_Message, request: *mut MPI_Request);
    init_thread PMPI_Init_thread(n: *mut c_int, arguments: *mut *mut *mut c_char, wanted: c_int, provided: *mut c_int);
    initialized PMPI_Initialized(is_so: *mut c_int);
    intercomm_create PMPI_Intercomm_create(mine: MPI_Comm, leader: c_int, peers: MPI_Comm, other: c_int, tag: c_int, made: *mut MPI_Comm);
    iprobe PMPI_Iprobe(from: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, status: *mut MPI_Status);
    irecv PMPI_Irecv(buffer: *mut c_void, n: c_int, kind: MPI_Datatype, from: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request);
    is_thread_main PMPI_Is_thread_main(is_so: *mut c_int);
    isend PMPI_Isend(buffer: *const c_void, n: c_int, kind: MPI_Datatype, to: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request);
    issend PMPI_Issend(buffer: *const c_void, n: c_int, kind: MPI_Datatype, to: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request);
    query_thread PMPI_Query_thread(level: *mut c_int);
    receive PMPI_Recv(buffer: *mut c_void, n: c_int, kind: MPI_Datatype, from: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status);
    request_free PMPI_Request_free(request: *mut MPI_Request);
    request_get_status PMPI_Request_get_status(request: MPI_Request, flag: *mut c_int, status: *mut MPI_Status);
    send PMPI_Send(buffer: *const c_void, n: c_int, kind: MPI_Datatype, to: c_int, tag: c_int, comm: MPI_Comm);
    sendrecv PMPI_Sendrecv(send: *const c_void, n: c_int, kind: MPI_Datatype, to: c_int, tag: c_int, recv: *mut c_void, m: c_int, into: MPI_Datatype, from: c_int, other: c_int, comm: MPI_Comm, status: *mut MPI_Status);
    test PMPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status);
    test_cancelled PMPI_Test_cancelled(status: *const MPI_Status, is_so: *mut c_int);
    testall PMPI_Testall(n: c_int, requests: *mut MPI_Request, flag: *mut c_int);
    testsome PMPI_Testsome(n: c_int, requests: *mut MPI_Request, n_done: *mut c_int, places: *mut c_int, statuses: *mut MPI_Status);
    wait PMPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status);
    waitall PMPI_Waitall(n: c_int, requests: *mut MPI_Request);
}
}

static FUNCTIONS: OnceLock<&'static Functions> = OnceLock::new();

/// Sets the table by which this module calls MPI, unless one is set already. Calls no function of the table.
///
/// # Safety
/// `functions` must be what `hopbine_mpi_functions()` of `sys/mpi/functions.c` returns.
///
/// # Panics
/// If the table is of another version of this crate.
pub unsafe fn provide(functions: *const c_void) {
    // SAFETY: the caller's promise; a table of any version begins with its length.
    let bytes = unsafe { *functions.cast::<usize>() };
    assert_eq!(bytes, size_of::<Functions>(), "MPI's functions are of another version of hopbine");
    // SAFETY: the caller's promise: the table is static.
    FUNCTIONS.get_or_init(|| unsafe { &*functions.cast() });
}

/// Whether a table is set.
pub fn is_provided() -> bool {
    FUNCTIONS.get().is_some()
}

#[inline]
fn functions() -> &'static Functions {
    FUNCTIONS.get().expect("MPI is called after it was provided")
}

/// Reads a communicator from memory, and converts it from MPI's own form of a handle.
///
/// # Safety
/// `comm` must be the address of an `MPI_Comm` of the provided MPI.
pub unsafe fn comm_at(comm: *const c_void) -> MPI_Comm {
    // SAFETY: the caller's promise.
    unsafe { (functions().comm_at)(comm) }
}

/// The source in a status: `MPI_SOURCE`.
///
/// # Safety
/// MPI must have written the status.
#[doc(hidden)]
#[inline]
pub unsafe fn source_of(status: *const MPI_Status) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { (functions().source_of)(status) }
}
