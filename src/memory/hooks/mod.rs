//! Memory events of this process if the kernel provides none: the C library's functions that take memory away are
//! overwritten with jumps to functions of this module, which announce the range and do the same.
//!
//! # Why code is changed, and not symbols
//! A `munmap` exported by this library would miss the C library's own calls: `free`, `realloc`, the trimming of heaps
//! and the end of threads use internal names, which lead to the same code. So the code is changed, as in UCX
//! (`src/ucm/bistro`) and MPI libraries that use it.
//!
//! # Events that are missed
//! System calls that do not go through the C library, those of the dynamic loader (`dlclose`), and the truncation of
//! a shared file by other processes. [`EventSource::settled`](super::EventSource::settled) checks whether the jumps are
//! intact, since another library may overwrite them. If they are not, all registrations end, and none is kept from then
//! on.
//!
//! # Restrictions on hooks
//! Hooks run inside `malloc` and in signal handlers: they write atomics and make the system call, and nothing else.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod functions;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod patch;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use functions::start;

/// Other processors: no code is changed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn start() -> Result<std::sync::Arc<dyn super::EventSource>, String> {
    Err("not on this kind of processor".to_owned())
}
