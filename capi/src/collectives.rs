//! The blocking, non-blocking and persistent functions of the collectives, as `include/hopbine.h` declares them,
//! generated from the table of their signatures.

use std::ffi::{c_int, c_void};

use hopbine::torus::collectives::Collective;

use crate::calls::Arguments;
use crate::handles::{hopbine_comm_t, hopbine_request_t};
use crate::{regular, vector};

/// The C type of an argument in the table.
macro_rules! argument {
    (sendbuf) => { *const c_void };
    (recvbuf) => { *mut c_void };
    (buffer) => { *mut c_void };
    (count) => { i64 };
    (datatype) => { c_int };
    (op) => { c_int };
    (root) => { c_int };
    ($list:ident) => { *const i64 };
}

/// A function that returns a request.
macro_rules! request_function {
    (
        $what:literal $blocking:ident: $name:ident $form:ident $make:ident
        $collective:ident($($argument:ident),*)
        $(#[doc = $promise:literal])*
    ) => {
        #[doc = concat!($what, " [`", stringify!($blocking), "`].")]
        ///
        /// # Safety
        $(#[doc = $promise])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($argument: argument!($argument),)*
            comm: hopbine_comm_t,
            request: *mut hopbine_request_t,
        ) -> c_int {
            let arguments = Arguments::new(Collective::$collective)$(.$argument($argument))*;
            // SAFETY: the caller's promise.
            unsafe { $form::$make(comm, &arguments, request) }
        }
    };
}

macro_rules! functions {
    ($(
        $collective:ident $form:ident
        rust $rust:tt
        c {
            $(#[doc = $doc:literal])*
            $blocking:ident, $nonblocking:ident, $persistent:ident($($argument:ident),*)
        }
        fortran $fortran:tt
    )*) => {$(
        $(#[doc = $doc])*
        ///
        /// # Safety
        /// Lists, if there are any, have one element for each rank. Each buffer is valid for the bytes that the
        /// collective accesses, and nothing else uses it during the call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $blocking(
            $($argument: argument!($argument),)*
            comm: hopbine_comm_t,
        ) -> c_int {
            let arguments = Arguments::new(Collective::$collective)$(.$argument($argument))*;
            // SAFETY: the caller's promise.
            unsafe { $form::perform(comm, &arguments) }
        }

        request_function! {
            "Starts" $blocking: $nonblocking $form start $collective($($argument),*)
            /// As for the blocking call, until the request is done; `request` is null or writable.
        }
        request_function! {
            "Prepares" $blocking: $persistent $form prepare $collective($($argument),*)
            /// As for the blocking call, whenever the request is active. The buffers are valid until the request is
            /// freed. `request` is null or writable.
        }
    )*};
}

hopbine::collectives!(functions);
