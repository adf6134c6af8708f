//! Memory events of this process where the kernel gives none: the C library's functions that take memory away
//! are overwritten with jumps to functions of this file, which announce the range and do the same.
//!
//! # Why not symbols
//! A `munmap` of ours would miss the C library's own calls: `free`, `realloc`, the trimming of heaps and the end of
//! threads call by internal names, which lead to the same code. So the code is changed, as UCX does
//! (`src/ucm/bistro`), and MPI libraries that use it.
//!
//! # What is missed
//! System calls that do not go through the C library, the dynamic loader's (`dlclose`), and other processes'
//! truncation of a shared file. [`EventSource::settled`] looks whether the jumps still stand: another library may
//! overwrite them. Then everything ends, and nothing is kept from there on.
//!
//! # What hooks may do
//! They run inside `malloc` and in signal handlers: they write atomics and make the system call, and nothing else.

mod functions;
mod patch;

pub(super) use functions::start;
