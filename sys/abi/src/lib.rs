//! Types and constants of the uTofu C interface, for its callers (`utofu`) and for the emulated device that
//! implements it (`utofu-emu`).
//!
//! The names are those of the C headers (`sys/include/utofu.h`, `jtofu.h`); the reference is Fujitsu's "Development
//! Studio uTofu User's Guide", uTofu 1.0. Enumerations are integer types with plain constants, since a library may
//! return a number that no header lists. Functions appear only as types under their own names, so this crate needs no
//! symbol of any library. [`functions`] lists the functions.
//!
//! This crate neither finds nor calls a library. It has no dependencies and needs no libclang, since the bindings are
//! checked in. `regenerate.sh` generates them again. The feature `bindgen` with `UTOFU_INCLUDE=<directory>` generates
//! them at build time from the system's `utofu.h`.
#![no_std]

mod bindings {
    // The C names are kept, and bindgen's layout checks index arrays with constants on purpose. The headers document
    // every item. Items that bindgen adds have no documentation, and its `Default` of a union is an unsafe block
    // without a comment (zero bytes are valid coordinates).
    #![allow(non_camel_case_types, missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]

    #[cfg(not(feature = "bindgen"))]
    include!("generated.rs");
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;

/// Null id in a gate setting: this side of the gate is not connected.
pub const UTOFU_VBG_ID_NULL: utofu_vbg_id_t = utofu_vbg_id_t::MAX;

/// Selects the default path if each of the three path coordinates has this value.
pub const UTOFU_PATH_COORD_NULL: u8 = u8::MAX;

/// Flag of a one-sided operation: session progress step `n` (0..15).
#[must_use]
#[allow(non_snake_case)] // the name of the C macro
pub const fn UTOFU_ONESIDED_FLAG_SPS(n: u8) -> core::ffi::c_ulong {
    (n as core::ffi::c_ulong) << 24
}

/// Flag of a one-sided operation: use path `id` instead of the path in the VCQ id.
#[must_use]
#[allow(non_snake_case)] // the name of the C macro
pub const fn UTOFU_ONESIDED_FLAG_PATH(id: utofu_path_id_t) -> core::ffi::c_ulong {
    (id as core::ffi::c_ulong) << 28
}

/// Copies text about the calling thread's last error to a buffer, for which 1 KiB is enough. Fujitsu's headers do not
/// declare this function. Programs declare it themselves, with a pointer to constant bytes that the function
/// nevertheless writes.
#[allow(non_camel_case_types)] // as for all names of the interface
pub type utofu_get_last_error = unsafe extern "C" fn(message: *const core::ffi::c_char);

/// Calls a macro with the names of all functions: `required { NAME... } optional { NAME... }`. Every table with one
/// entry per function uses it. A library may lack the optional functions.
#[macro_export]
macro_rules! functions {
    ($callback:ident) => {
        $callback! {
            required {
                utofu_get_onesided_tnis utofu_get_barrier_tnis
                utofu_query_onesided_caps utofu_query_barrier_caps
                utofu_query_tofu_version utofu_query_utofu_version utofu_query_my_coords
                utofu_create_vcq utofu_create_vcq_with_cmp_id utofu_free_vcq
                utofu_query_vcq_id utofu_construct_vcq_id utofu_set_vcq_id_path
                utofu_query_vcq_info utofu_get_path_id utofu_get_path_coords
                utofu_reg_mem utofu_reg_mem_with_stag utofu_query_stadd utofu_dereg_mem
                utofu_put utofu_put_gap utofu_put_stride utofu_put_stride_gap
                utofu_put_piggyback utofu_put_piggyback8
                utofu_get utofu_get_gap utofu_get_stride utofu_get_stride_gap
                utofu_armw4 utofu_armw8 utofu_cswap4 utofu_cswap8 utofu_nop
                utofu_prepare_put utofu_prepare_put_gap
                utofu_prepare_put_stride utofu_prepare_put_stride_gap
                utofu_prepare_put_piggyback utofu_prepare_put_piggyback8
                utofu_prepare_get utofu_prepare_get_gap
                utofu_prepare_get_stride utofu_prepare_get_stride_gap
                utofu_prepare_armw4 utofu_prepare_armw8
                utofu_prepare_cswap4 utofu_prepare_cswap8 utofu_prepare_nop
                utofu_post_toq utofu_poll_tcq utofu_poll_mrq
                utofu_query_num_unread_tcq utofu_query_num_unread_mrq
                utofu_alloc_vbg utofu_free_vbg utofu_set_vbg utofu_query_vbg_info
                utofu_barrier utofu_reduce_uint64 utofu_reduce_double
                utofu_poll_barrier utofu_poll_reduce_uint64 utofu_poll_reduce_double
            }
            optional {
                utofu_get_last_error
                jtofu_initialize jtofu_finalize jtofu_add_job jtofu_delete_job
                jtofu_query_phys_coords jtofu_query_log_coords
                jtofu_query_phys_size jtofu_query_log_size jtofu_query_sys_size
                jtofu_query_sys_torus jtofu_query_ref_coords jtofu_query_max_proc_per_node
                jtofu_query_ranks_from_phys_coords jtofu_query_ranks_from_log_coords
                jtofu_query_onesided_paths jtofu_query_onesided_hops
                jtofu_query_barrier_paths jtofu_query_barrier_hops
                jtofu_query_jtofu_version jtofu_create_mapinfo_by_envvars
            }
        }
    };
}
