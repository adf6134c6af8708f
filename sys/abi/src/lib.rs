//! Types and constants of the uTofu C interface, for both sides of it: the callers (`utofu`)
//! and the emulated device that implements it (`utofu-emu`).
//!
//! The names are those of the C headers (`sys/include/utofu.h`, `jtofu.h`); the reference is
//! Fujitsu's "Development Studio uTofu User's Guide", uTofu 1.0. Enumerations are integer types
//! with plain constants, since a library may return a number that no header lists. Functions
//! appear as types only (`utofu_put_fn`): this crate needs no symbol of any library.
//!
//! This room must not know how a library is found or what it does. It has no dependencies and
//! needs no libclang: the bindings are checked in. `regenerate.sh` makes them anew; the feature
//! `bindgen` with `UTOFU_INCLUDE=<directory>` makes them at build time from a system's own
//! `utofu.h`.
#![no_std]

mod bindings {
    // The C names are kept, and bindgen's layout checks index arrays with constants on purpose.
    // The headers document every item; what bindgen invents has no documentation, and its `Default`
    // of a union is an unsafe block without a comment (zero bytes are valid coordinates).
    #![allow(non_camel_case_types, missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]

    #[cfg(not(feature = "bindgen"))]
    include!("generated.rs");
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;

/// In a gate setting: this side is not connected.
pub const UTOFU_VBG_ID_NULL: utofu_vbg_id_t = utofu_vbg_id_t::MAX;

/// As each of the three path coordinates: the default path.
pub const UTOFU_PATH_COORD_NULL: u8 = u8::MAX;

/// Flag of a one-sided operation: the session progress step `n` (0..15).
#[must_use]
#[allow(non_snake_case)] // the name of the C macro
pub const fn UTOFU_ONESIDED_FLAG_SPS(n: u8) -> core::ffi::c_ulong {
    (n as core::ffi::c_ulong) << 24
}

/// Flag of a one-sided operation: send along path `id` instead of the one in the VCQ id.
#[must_use]
#[allow(non_snake_case)] // the name of the C macro
pub const fn UTOFU_ONESIDED_FLAG_PATH(id: utofu_path_id_t) -> core::ffi::c_ulong {
    (id as core::ffi::c_ulong) << 28
}

/// Copies text about the calling thread's last error; 1 KiB of room is enough. Fujitsu's headers do
/// not declare this function: programs do so, with a pointer to constant bytes that are written.
#[allow(non_camel_case_types)] // as all names of the interface
pub type utofu_get_last_error_fn = unsafe extern "C" fn(message: *const core::ffi::c_char);
