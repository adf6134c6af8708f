//! The layout that the LP64 C interface has, stated a second time by hand, so that neither a wrong
//! header nor a wrong regeneration passes unnoticed.

use core::mem::{align_of, offset_of, size_of};

use utofu_sys::*;

/// Offsets of the named members, in the order given.
macro_rules! offsets {
    ($t:ty: $($member:ident),+) => { [$(offset_of!($t, $member)),+] };
}

#[test]
fn identifiers_have_the_documented_widths() {
    assert_eq!(size_of::<utofu_tni_id_t>(), 2);
    assert_eq!(size_of::<utofu_cq_id_t>(), 2);
    assert_eq!(size_of::<utofu_bg_id_t>(), 2);
    assert_eq!(size_of::<utofu_cmp_id_t>(), 2);
    assert_eq!(size_of::<utofu_vcq_hdl_t>(), size_of::<*const u8>());
    assert_eq!(size_of::<utofu_vcq_id_t>(), 8);
    assert_eq!(size_of::<utofu_vbg_id_t>(), 8);
    assert_eq!(size_of::<utofu_stadd_t>(), 8);
    assert_eq!(size_of::<utofu_path_id_t>(), 1);
    assert_eq!(size_of::<utofu_return_code>(), 4);
}

#[test]
fn capabilities_are_laid_out_as_in_c() {
    assert_eq!((size_of::<utofu_onesided_caps>(), align_of::<utofu_onesided_caps>()), (88, 8));
    assert_eq!(
        offsets!(utofu_onesided_caps: flags, armw_ops, num_cmp_ids, num_reserved_stags,
                 cache_line_size, stag_address_alignment, max_toq_desc_size, max_putget_size,
                 max_piggyback_size, max_edata_size, max_mtu, max_gap),
        [0, 8, 16, 20, 24, 32, 40, 48, 56, 64, 72, 80]
    );
    assert_eq!((size_of::<utofu_barrier_caps>(), align_of::<utofu_barrier_caps>()), (32, 8));
    assert_eq!(
        offsets!(utofu_barrier_caps: flags, reduce_ops, max_uint64_reduction, max_double_reduction),
        [0, 8, 16, 24]
    );
}

#[test]
fn gate_setting_is_laid_out_as_in_c() {
    assert_eq!((size_of::<utofu_vbg_setting>(), align_of::<utofu_vbg_setting>()), (48, 8));
    assert_eq!(
        offsets!(utofu_vbg_setting: vbg_id, src_lcl_vbg_id, src_rmt_vbg_id, dst_lcl_vbg_id,
                 dst_rmt_vbg_id, dst_path_coords),
        [0, 8, 16, 24, 32, 40]
    );
}

#[test]
fn notice_has_64_bytes() {
    assert_eq!((size_of::<utofu_mrq_notice>(), align_of::<utofu_mrq_notice>()), (64, 8));
    assert_eq!(
        offsets!(utofu_mrq_notice: notice_type, vcq_id, edata, rmt_value, lcl_stadd, rmt_stadd),
        [0, 8, 16, 24, 32, 40]
    );
}

#[test]
fn jtofu_coordinates_are_packed_bytes_and_words() {
    assert_eq!((size_of::<jtofu_phys_coords>(), align_of::<jtofu_phys_coords>()), (6, 1));
    assert_eq!((size_of::<jtofu_log_coords>(), align_of::<jtofu_log_coords>()), (12, 4));
    assert_eq!((size_of::<jtofu_path_coords>(), align_of::<jtofu_path_coords>()), (3, 1));
}

#[test]
fn flags_and_codes_have_the_documented_values() {
    assert_eq!(UTOFU_ONESIDED_FLAG_TCQ_NOTICE, 1 << 14);
    assert_eq!(UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, 1 << 15);
    assert_eq!(UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, 1 << 2);
    assert_eq!(UTOFU_ONESIDED_FLAG_CACHE_INJECTION, 1 << 5);
    assert_eq!(UTOFU_ONESIDED_FLAG_PATH(0xb), 0xb000_0000);
    assert_eq!(UTOFU_ONESIDED_FLAG_SPS(5), 0x0500_0000);
    assert_eq!(UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM, 1 << 8);
    assert_eq!((UTOFU_ERR_NOT_FOUND, UTOFU_ERR_NOT_SUPPORTED), (-1, -8));
    assert_eq!((UTOFU_ERR_TCQ_OTHER, UTOFU_ERR_TCQ_LENGTH), (-128, -132));
    assert_eq!((UTOFU_ERR_MRQ_OTHER, UTOFU_ERR_MRQ_RMT_LENGTH), (-192, -199));
    assert_eq!((UTOFU_ERR_INVALID_ARG, UTOFU_ERR_INVALID_DATA), (-512, -533));
    assert_eq!((UTOFU_ERR_OUT_OF_MEMORY, UTOFU_ERR_FATAL), (-641, -768));
    assert_eq!(UTOFU_VBG_ID_NULL, u64::MAX);
}

macro_rules! names {
    (required { $($req:ident)* } optional { $($opt:ident)* }) => {
        [$(stringify!($req),)* $(stringify!($opt)),*]
    };
}

#[test]
fn every_prototype_of_the_headers_is_listed() {
    let headers =
        concat!(include_str!("../../include/utofu.h"), include_str!("../../include/jtofu.h"));
    let prototypes =
        headers.lines().filter_map(|l| l.strip_prefix("int ").or_else(|| l.strip_prefix("void ")));
    let mut declared: Vec<_> = prototypes
        .filter_map(|l| l.split_once('(').map(|(name, _)| name))
        // Exported and not declared, as by Fujitsu's libraries: see utofu_emu.h.
        .chain(["utofu_get_last_error"])
        .collect();
    let mut listed = functions!(names);
    declared.sort_unstable();
    listed.sort_unstable();
    assert_eq!(declared, listed);
}
