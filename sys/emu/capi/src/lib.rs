//! The emulated device under its C symbol names: `libtofucom_emu.so` and `libtofucom_emu.a`.
//!
//! Link a C program with `-I sys/include -ltofucom_emu`. A program that is already linked to the
//! vendor's library runs unchanged if a symbolic link `libtofucom.so` to this library stands first
//! in `LD_LIBRARY_PATH`: the binary interface is the same. How many ranks there are and where they
//! sit is said by the `HOPBINE_*` variables (see `utofu_emu::env`), or by
//! `utofu_emu_enter_as_thread` (`sys/include/utofu_emu.h`).
//!
//! The symbols are defined here and not in `utofu-emu`, so that a Rust program that contains the
//! emulated device may load the vendor's library at the same time without a clash of names. This
//! room holds names only: what the functions do is in `utofu_emu::c`.

mod threads;

use core::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

use utofu_sys::*;

pub use threads::utofu_emu_enter_as_thread;

/// Defines each function as a C symbol that calls its namesake in `utofu_emu::c`.
macro_rules! export {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        $(
            #[doc = concat!("C symbol; see [`utofu_emu::c::", stringify!($name), "`].")]
            ///
            /// # Safety
            /// As the function of that name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller gives the same promises that the callee asks for.
                unsafe { utofu_emu::c::$name($($arg),*) }
            }
        )*

        /// Names of all exported functions of the two interfaces.
        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

export! {
    fn utofu_get_onesided_tnis(tni_ids: *mut *mut utofu_tni_id_t, num_tnis: *mut usize) -> c_int;
    fn utofu_get_barrier_tnis(tni_ids: *mut *mut utofu_tni_id_t, num_tnis: *mut usize) -> c_int;
    fn utofu_query_onesided_caps(tni_id: utofu_tni_id_t, tni_caps: *mut *mut utofu_onesided_caps) -> c_int;
    fn utofu_query_barrier_caps(tni_id: utofu_tni_id_t, tni_caps: *mut *mut utofu_barrier_caps) -> c_int;
    fn utofu_query_tofu_version(major_ver: *mut c_int, minor_ver: *mut c_int);
    fn utofu_query_utofu_version(major_ver: *mut c_int, minor_ver: *mut c_int);
    fn utofu_query_my_coords(coords: *mut u8) -> c_int;
    fn utofu_get_last_error(message: *const c_char);
    fn utofu_create_vcq(tni_id: utofu_tni_id_t, flags: c_ulong, vcq_hdl: *mut utofu_vcq_hdl_t) -> c_int;
    fn utofu_create_vcq_with_cmp_id(tni_id: utofu_tni_id_t, cmp_id: utofu_cmp_id_t, flags: c_ulong, vcq_hdl: *mut utofu_vcq_hdl_t) -> c_int;
    fn utofu_free_vcq(vcq_hdl: utofu_vcq_hdl_t) -> c_int;
    fn utofu_query_vcq_id(vcq_hdl: utofu_vcq_hdl_t, vcq_id: *mut utofu_vcq_id_t) -> c_int;
    fn utofu_construct_vcq_id(coords: *mut u8, tni_id: utofu_tni_id_t, cq_id: utofu_cq_id_t, cmp_id: utofu_cmp_id_t, vcq_id: *mut utofu_vcq_id_t) -> c_int;
    fn utofu_set_vcq_id_path(vcq_id: *mut utofu_vcq_id_t, path_coords: *mut u8) -> c_int;
    fn utofu_query_vcq_info(vcq_id: utofu_vcq_id_t, coords: *mut u8, tni_id: *mut utofu_tni_id_t, cq_id: *mut utofu_cq_id_t, extra_val: *mut u16) -> c_int;
    fn utofu_get_path_id(vcq_id: utofu_vcq_id_t, path_coords: *mut u8, path_id: *mut utofu_path_id_t) -> c_int;
    fn utofu_get_path_coords(vcq_id: utofu_vcq_id_t, path_id: utofu_path_id_t, path_coords: *mut u8) -> c_int;
    fn utofu_reg_mem(vcq_hdl: utofu_vcq_hdl_t, addr: *mut c_void, size: usize, flags: c_ulong, stadd: *mut utofu_stadd_t) -> c_int;
    fn utofu_reg_mem_with_stag(vcq_hdl: utofu_vcq_hdl_t, addr: *mut c_void, size: usize, stag: c_uint, flags: c_ulong, stadd: *mut utofu_stadd_t) -> c_int;
    fn utofu_query_stadd(vcq_id: utofu_vcq_id_t, stag: c_uint, stadd: *mut utofu_stadd_t) -> c_int;
    fn utofu_dereg_mem(vcq_hdl: utofu_vcq_hdl_t, stadd: utofu_stadd_t, flags: c_ulong) -> c_int;
    fn utofu_put(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_put_gap(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize, cbdata: *mut c_void) -> c_int;
    fn utofu_put_stride(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_put_stride_gap(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize, cbdata: *mut c_void) -> c_int;
    fn utofu_put_piggyback(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_data: *mut c_void, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_put_piggyback8(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_data: u64, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_get(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_get_gap(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize, cbdata: *mut c_void) -> c_int;
    fn utofu_get_stride(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_get_stride_gap(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize, cbdata: *mut c_void) -> c_int;
    fn utofu_armw4(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, armw_op: utofu_armw_op, op_value: u32, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_armw8(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, armw_op: utofu_armw_op, op_value: u64, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_cswap4(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, old_value: u32, new_value: u32, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_cswap8(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, old_value: u64, new_value: u64, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_nop(vcq_hdl: utofu_vcq_hdl_t, flags: c_ulong, cbdata: *mut c_void) -> c_int;
    fn utofu_prepare_put(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_put_gap(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_put_stride(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_put_stride_gap(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_put_piggyback(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_data: *mut c_void, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_put_piggyback8(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_data: u64, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_get(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_get_gap(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_get_stride(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_get_stride_gap(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_armw4(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, armw_op: utofu_armw_op, op_value: u32, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_armw8(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, armw_op: utofu_armw_op, op_value: u64, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_cswap4(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, old_value: u32, new_value: u32, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_cswap8(vcq_hdl: utofu_vcq_hdl_t, rmt_vcq_id: utofu_vcq_id_t, old_value: u64, new_value: u64, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_prepare_nop(vcq_hdl: utofu_vcq_hdl_t, flags: c_ulong, desc: *mut c_void, desc_size: *mut usize) -> c_int;
    fn utofu_post_toq(vcq_hdl: utofu_vcq_hdl_t, desc: *mut c_void, desc_size: usize, cbdata: *mut c_void) -> c_int;
    fn utofu_poll_tcq(vcq_hdl: utofu_vcq_hdl_t, flags: c_ulong, cbdata: *mut *mut c_void) -> c_int;
    fn utofu_poll_mrq(vcq_hdl: utofu_vcq_hdl_t, flags: c_ulong, notice: *mut utofu_mrq_notice) -> c_int;
    fn utofu_query_num_unread_tcq(vcq_hdl: utofu_vcq_hdl_t, count: *mut usize) -> c_int;
    fn utofu_query_num_unread_mrq(vcq_hdl: utofu_vcq_hdl_t, count: *mut usize) -> c_int;
    fn utofu_alloc_vbg(tni_id: utofu_tni_id_t, num_vbgs: usize, flags: c_ulong, vbg_ids: *mut utofu_vbg_id_t) -> c_int;
    fn utofu_free_vbg(vbg_ids: *mut utofu_vbg_id_t, num_vbgs: usize) -> c_int;
    fn utofu_set_vbg(vbg_settings: *mut utofu_vbg_setting, num_vbg_settings: usize) -> c_int;
    fn utofu_query_vbg_info(vbg_id: utofu_vbg_id_t, coords: *mut u8, tni_id: *mut utofu_tni_id_t, bg_id: *mut utofu_bg_id_t, extra_val: *mut u16) -> c_int;
    fn utofu_barrier(vbg_id: utofu_vbg_id_t, flags: c_ulong) -> c_int;
    fn utofu_reduce_uint64(vbg_id: utofu_vbg_id_t, op: utofu_reduce_op, data: *mut u64, num_data: usize, flags: c_ulong) -> c_int;
    fn utofu_reduce_double(vbg_id: utofu_vbg_id_t, op: utofu_reduce_op, data: *mut f64, num_data: usize, flags: c_ulong) -> c_int;
    fn utofu_poll_barrier(vbg_id: utofu_vbg_id_t, flags: c_ulong) -> c_int;
    fn utofu_poll_reduce_uint64(vbg_id: utofu_vbg_id_t, flags: c_ulong, data: *mut u64) -> c_int;
    fn utofu_poll_reduce_double(vbg_id: utofu_vbg_id_t, flags: c_ulong, data: *mut f64) -> c_int;
    fn jtofu_initialize(job_id: jtofu_job_id_t, rank: jtofu_rank_t, mapinfo: *const c_void) -> c_int;
    fn jtofu_finalize() -> c_int;
    fn jtofu_query_phys_coords(job_id: jtofu_job_id_t, rank: jtofu_rank_t, coords: *mut jtofu_phys_coords) -> c_int;
    fn jtofu_query_log_coords(job_id: jtofu_job_id_t, rank: jtofu_rank_t, coords: *mut jtofu_log_coords) -> c_int;
    fn jtofu_query_phys_size(size: *mut jtofu_phys_coords) -> c_int;
    fn jtofu_query_log_size(size: *mut jtofu_log_coords) -> c_int;
    fn jtofu_query_sys_size(size: *mut jtofu_phys_coords) -> c_int;
    fn jtofu_query_max_proc_per_node() -> c_int;
    fn jtofu_query_ranks_from_phys_coords(job_id: jtofu_job_id_t, coords: *mut jtofu_phys_coords, max_ranks: usize, ranks: *mut jtofu_rank_t, num_ranks: *mut usize) -> c_int;
    fn jtofu_query_ranks_from_log_coords(job_id: jtofu_job_id_t, coords: *mut jtofu_log_coords, max_ranks: usize, ranks: *mut jtofu_rank_t, num_ranks: *mut usize) -> c_int;
    fn jtofu_query_onesided_paths(coords: *mut jtofu_phys_coords, max_paths: usize, paths: *mut jtofu_path_coords, num_paths: *mut usize) -> c_int;
    fn jtofu_query_onesided_hops(coords: *mut jtofu_phys_coords, num_hops: *mut usize) -> c_int;
    fn jtofu_add_job(job_id: jtofu_job_id_t, mapinfo: *const c_void) -> c_int;
    fn jtofu_delete_job(job_id: jtofu_job_id_t) -> c_int;
    fn jtofu_query_sys_torus(torus: *mut jtofu_phys_coords) -> c_int;
    fn jtofu_query_ref_coords(coords: *mut jtofu_phys_coords) -> c_int;
    fn jtofu_query_barrier_paths(coords: *mut jtofu_phys_coords, max_paths: usize, paths: *mut jtofu_path_coords, num_paths: *mut usize) -> c_int;
    fn jtofu_query_barrier_hops(coords: *mut jtofu_phys_coords, num_hops: *mut usize) -> c_int;
    fn jtofu_query_jtofu_version(major_ver: *mut c_int, minor_ver: *mut c_int);
    fn jtofu_create_mapinfo_by_envvars(mapinfo: *mut *mut c_void, mapinfo_size: *mut usize, num_proc: *mut c_uint) -> c_int;
}

#[cfg(test)]
mod tests {
    /// Every prototype of the headers has its symbol here.
    #[test]
    fn everything_in_the_headers_is_exported() {
        let headers = concat!(
            include_str!("../../../include/utofu.h"),
            include_str!("../../../include/jtofu.h")
        );
        let mut declared: Vec<_> = headers
            .lines()
            .filter_map(|l| l.strip_prefix("int ").or_else(|| l.strip_prefix("void ")))
            .filter_map(|l| l.split_once('('))
            .map(|(name, _)| name)
            // Exported and not declared, as by Fujitsu's libraries: see utofu_emu.h.
            .chain(["utofu_get_last_error"])
            .collect();
        let mut exported = super::NAMES.to_vec();
        declared.sort_unstable();
        exported.sort_unstable();
        assert_eq!(declared, exported);
    }
}
