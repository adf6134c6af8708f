//! The collectives in their three forms, from the table of their signatures: what
//! `include/hopbine.h` declares.

use std::ffi::{c_int, c_void};

use hopbine::torus::collectives::Collective;

use crate::calls::Arguments;
use crate::handles::{hopbine_comm_t, hopbine_request_t};
use crate::{regular, vector};

/// The C type of an argument of the table.
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

/// A function that gives a request.
macro_rules! giving {
    (
        $what:literal $blocking:ident: $name:ident $form:ident $give:ident
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
            unsafe { $form::$give(comm, &arguments, request) }
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
        /// The lists, if there are any, have a place for each rank. Each buffer holds what the collective
        /// needs of it, and nobody else uses it meanwhile.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $blocking(
            $($argument: argument!($argument),)*
            comm: hopbine_comm_t,
        ) -> c_int {
            let arguments = Arguments::new(Collective::$collective)$(.$argument($argument))*;
            // SAFETY: the caller's promise.
            unsafe { $form::perform(comm, &arguments) }
        }

        giving! {
            "Starts" $blocking: $nonblocking $form start $collective($($argument),*)
            /// As the blocking call, until the request is done; `request` is null or an address to write to.
        }
        giving! {
            "Prepares" $blocking: $persistent $form prepare $collective($($argument),*)
            /// As the blocking call, whenever the request is under way; the buffers are there until it is
            /// freed; `request` is null or an address to write to.
        }
    )*};
}

hopbine::collectives!(functions);
