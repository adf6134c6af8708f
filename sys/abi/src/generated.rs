// Made by bindgen from sys/include; do not edit: run sys/abi/regenerate.sh instead.

pub const UTOFU_VERSION_MAJOR: ::core::ffi::c_int = 1;
pub const UTOFU_VERSION_MINOR: ::core::ffi::c_int = 0;
pub const UTOFU_ONESIDED_CAP_FLAG_SESSION_MODE: ::core::ffi::c_ulong = 1;
pub const UTOFU_ONESIDED_CAP_FLAG_ARMW: ::core::ffi::c_ulong = 2;
pub const UTOFU_ONESIDED_CAP_ARMW_OP_CSWAP: ::core::ffi::c_ulong = 1;
pub const UTOFU_ONESIDED_CAP_ARMW_OP_SWAP: ::core::ffi::c_ulong = 2;
pub const UTOFU_ONESIDED_CAP_ARMW_OP_ADD: ::core::ffi::c_ulong = 4;
pub const UTOFU_ONESIDED_CAP_ARMW_OP_XOR: ::core::ffi::c_ulong = 8;
pub const UTOFU_ONESIDED_CAP_ARMW_OP_AND: ::core::ffi::c_ulong = 16;
pub const UTOFU_ONESIDED_CAP_ARMW_OP_OR: ::core::ffi::c_ulong = 32;
pub const UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER: ::core::ffi::c_ulong = 2;
pub const UTOFU_BARRIER_CAP_REDUCE_OP_BAND: ::core::ffi::c_ulong = 4;
pub const UTOFU_BARRIER_CAP_REDUCE_OP_BOR: ::core::ffi::c_ulong = 8;
pub const UTOFU_BARRIER_CAP_REDUCE_OP_BXOR: ::core::ffi::c_ulong = 16;
pub const UTOFU_BARRIER_CAP_REDUCE_OP_MAX: ::core::ffi::c_ulong = 32;
pub const UTOFU_BARRIER_CAP_REDUCE_OP_MAXLOC: ::core::ffi::c_ulong = 64;
pub const UTOFU_BARRIER_CAP_REDUCE_OP_SUM: ::core::ffi::c_ulong = 128;
pub const UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM: ::core::ffi::c_ulong = 256;
pub const UTOFU_VCQ_FLAG_THREAD_SAFE: ::core::ffi::c_ulong = 1;
pub const UTOFU_VCQ_FLAG_EXCLUSIVE: ::core::ffi::c_ulong = 2;
pub const UTOFU_VCQ_FLAG_SESSION_MODE: ::core::ffi::c_ulong = 4;
pub const UTOFU_VBG_FLAG_THREAD_SAFE: ::core::ffi::c_ulong = 1;
pub const UTOFU_REG_MEM_FLAG_READ_ONLY: ::core::ffi::c_ulong = 1;
pub const UTOFU_ONESIDED_FLAG_STRONG_ORDER: ::core::ffi::c_ulong = 1;
pub const UTOFU_ONESIDED_FLAG_PACKET_RESPONSE: ::core::ffi::c_ulong = 2;
pub const UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE: ::core::ffi::c_ulong = 4;
pub const UTOFU_ONESIDED_FLAG_PADDING: ::core::ffi::c_ulong = 8;
pub const UTOFU_ONESIDED_FLAG_CACHE_INJECTION: ::core::ffi::c_ulong = 32;
pub const UTOFU_ONESIDED_FLAG_DELAY_START: ::core::ffi::c_ulong = 256;
pub const UTOFU_ONESIDED_FLAG_TCQ_NOTICE: ::core::ffi::c_ulong = 16384;
pub const UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE: ::core::ffi::c_ulong = 32768;
pub const JTOFU_VERSION_MAJOR: ::core::ffi::c_int = 0;
pub const JTOFU_VERSION_MINOR: ::core::ffi::c_int = 0;
/// Number of a Tofu network interface (TNI) of this node.
pub type utofu_tni_id_t = u16;
/// Number of a control queue (CQ) within a TNI.
pub type utofu_cq_id_t = u16;
/// Number of a barrier gate (BG) within a TNI.
pub type utofu_bg_id_t = u16;
/// Component id: names a VCQ so that others can compute its VCQ id.
pub type utofu_cmp_id_t = u16;
/// Handle of a virtual control queue (VCQ); has a meaning in its own process only.
pub type utofu_vcq_hdl_t = usize;
/// System-wide name of a VCQ; also carries the path of packets sent to it.
pub type utofu_vcq_id_t = u64;
/// System-wide name of a virtual barrier gate.
pub type utofu_vbg_id_t = u64;
/// Steering address of registered memory; adding k addresses k bytes further.
pub type utofu_stadd_t = u64;
/// Path towards a target, relative to the target's own a, b, c coordinates.
pub type utofu_path_id_t = u8;
/// Done.
pub const UTOFU_SUCCESS: utofu_return_code = 0;
/// The polled queue has no entry.
pub const UTOFU_ERR_NOT_FOUND: utofu_return_code = -1;
/// The operation is still running.
pub const UTOFU_ERR_NOT_COMPLETED: utofu_return_code = -2;
/// The request was not processed.
pub const UTOFU_ERR_NOT_PROCESSED: utofu_return_code = -3;
/// The queue or gate has no room now: poll, then try again.
pub const UTOFU_ERR_BUSY: utofu_return_code = -4;
/// The named resource is already in use.
pub const UTOFU_ERR_USED: utofu_return_code = -5;
/// No resource of this kind is free.
pub const UTOFU_ERR_FULL: utofu_return_code = -6;
/// The resource exists but cannot be had here.
pub const UTOFU_ERR_NOT_AVAILABLE: utofu_return_code = -7;
/// The combination of arguments is not supported.
pub const UTOFU_ERR_NOT_SUPPORTED: utofu_return_code = -8;
/// TCQ: an error without a code of its own.
pub const UTOFU_ERR_TCQ_OTHER: utofu_return_code = -128;
/// TCQ: the descriptor is wrong.
pub const UTOFU_ERR_TCQ_DESC: utofu_return_code = -129;
/// TCQ: local memory could not be accessed.
pub const UTOFU_ERR_TCQ_MEMORY: utofu_return_code = -130;
/// TCQ: the local STADD is not registered.
pub const UTOFU_ERR_TCQ_STADD: utofu_return_code = -131;
/// TCQ: the length does not fit.
pub const UTOFU_ERR_TCQ_LENGTH: utofu_return_code = -132;
/// MRQ: an error without a code of its own.
pub const UTOFU_ERR_MRQ_OTHER: utofu_return_code = -192;
/// MRQ: the peer VCQ does not answer or does not exist.
pub const UTOFU_ERR_MRQ_PEER: utofu_return_code = -193;
/// MRQ: local memory could not be accessed.
pub const UTOFU_ERR_MRQ_LCL_MEMORY: utofu_return_code = -194;
/// MRQ: remote memory could not be accessed.
pub const UTOFU_ERR_MRQ_RMT_MEMORY: utofu_return_code = -195;
/// MRQ: the local STADD is not registered.
pub const UTOFU_ERR_MRQ_LCL_STADD: utofu_return_code = -196;
/// MRQ: the remote STADD is not registered.
pub const UTOFU_ERR_MRQ_RMT_STADD: utofu_return_code = -197;
/// MRQ: the access leaves the local registered range.
pub const UTOFU_ERR_MRQ_LCL_LENGTH: utofu_return_code = -198;
/// MRQ: the access leaves the remote registered range.
pub const UTOFU_ERR_MRQ_RMT_LENGTH: utofu_return_code = -199;
/// Barrier: an error without a code of its own.
pub const UTOFU_ERR_BARRIER_OTHER: utofu_return_code = -256;
/// Barrier: the participants started different operations.
pub const UTOFU_ERR_BARRIER_MISMATCH: utofu_return_code = -257;
/// An argument without a code of its own is wrong.
pub const UTOFU_ERR_INVALID_ARG: utofu_return_code = -512;
/// A pointer that must not be null is null.
pub const UTOFU_ERR_INVALID_POINTER: utofu_return_code = -513;
/// A flag is not allowed here.
pub const UTOFU_ERR_INVALID_FLAGS: utofu_return_code = -514;
/// Coordinates are out of range.
pub const UTOFU_ERR_INVALID_COORDS: utofu_return_code = -515;
/// Path coordinates are out of range.
pub const UTOFU_ERR_INVALID_PATH: utofu_return_code = -516;
/// There is no such TNI.
pub const UTOFU_ERR_INVALID_TNI_ID: utofu_return_code = -517;
/// There is no such CQ.
pub const UTOFU_ERR_INVALID_CQ_ID: utofu_return_code = -518;
/// There is no such barrier gate.
pub const UTOFU_ERR_INVALID_BG_ID: utofu_return_code = -519;
/// The component id is out of range.
pub const UTOFU_ERR_INVALID_CMP_ID: utofu_return_code = -520;
/// Not a live VCQ handle.
pub const UTOFU_ERR_INVALID_VCQ_HDL: utofu_return_code = -521;
/// Not a VCQ id.
pub const UTOFU_ERR_INVALID_VCQ_ID: utofu_return_code = -522;
/// Not an allocated barrier gate.
pub const UTOFU_ERR_INVALID_VBG_ID: utofu_return_code = -523;
/// The path id is out of range.
pub const UTOFU_ERR_INVALID_PATH_ID: utofu_return_code = -524;
/// The STADD is not registered.
pub const UTOFU_ERR_INVALID_STADD: utofu_return_code = -525;
/// The address cannot be registered.
pub const UTOFU_ERR_INVALID_ADDRESS: utofu_return_code = -526;
/// A length is out of range.
pub const UTOFU_ERR_INVALID_SIZE: utofu_return_code = -527;
/// The steering tag is out of range or in use.
pub const UTOFU_ERR_INVALID_STAG: utofu_return_code = -528;
/// edata does not fit its width.
pub const UTOFU_ERR_INVALID_EDATA: utofu_return_code = -529;
/// A count is out of range.
pub const UTOFU_ERR_INVALID_NUMBER: utofu_return_code = -530;
/// The operator is not allowed here.
pub const UTOFU_ERR_INVALID_OP: utofu_return_code = -531;
/// The descriptor is wrong.
pub const UTOFU_ERR_INVALID_DESC: utofu_return_code = -532;
/// The data cannot be reduced.
pub const UTOFU_ERR_INVALID_DATA: utofu_return_code = -533;
/// The system has no resource of the kind left.
pub const UTOFU_ERR_OUT_OF_RESOURCE: utofu_return_code = -640;
/// There is no memory left.
pub const UTOFU_ERR_OUT_OF_MEMORY: utofu_return_code = -641;
/// The library cannot go on.
pub const UTOFU_ERR_FATAL: utofu_return_code = -768;
/// What a call returns.
pub type utofu_return_code = ::core::ffi::c_int;
/// Store the operand.
pub const UTOFU_ARMW_OP_SWAP: utofu_armw_op = 1;
/// Add the operand; wraps within the 4 or 8 bytes.
pub const UTOFU_ARMW_OP_ADD: utofu_armw_op = 2;
/// Bitwise exclusive or.
pub const UTOFU_ARMW_OP_XOR: utofu_armw_op = 3;
/// Bitwise and.
pub const UTOFU_ARMW_OP_AND: utofu_armw_op = 4;
/// Bitwise or.
pub const UTOFU_ARMW_OP_OR: utofu_armw_op = 5;
/// Operators of the atomic read-modify-write.
pub type utofu_armw_op = ::core::ffi::c_uint;
/// No data.
pub const UTOFU_REDUCE_OP_BARRIER: utofu_reduce_op = 1;
/// Bitwise and of uint64_t.
pub const UTOFU_REDUCE_OP_BAND: utofu_reduce_op = 2;
/// Bitwise or of uint64_t.
pub const UTOFU_REDUCE_OP_BOR: utofu_reduce_op = 3;
/// Bitwise exclusive or of uint64_t.
pub const UTOFU_REDUCE_OP_BXOR: utofu_reduce_op = 4;
/// Unsigned maximum of uint64_t.
pub const UTOFU_REDUCE_OP_MAX: utofu_reduce_op = 5;
/// Pairs (value, location): largest value, smallest location at ties.
pub const UTOFU_REDUCE_OP_MAXLOC: utofu_reduce_op = 6;
/// Sum of uint64_t modulo 2^64.
pub const UTOFU_REDUCE_OP_SUM: utofu_reduce_op = 7;
/// Sum of double that does not depend on the order of the addends.
pub const UTOFU_REDUCE_OP_BFPSUM: utofu_reduce_op = 8;
/// Operators of the barrier gates.
pub type utofu_reduce_op = ::core::ffi::c_uint;
/// A put of this VCQ is complete.
pub const UTOFU_MRQ_TYPE_LCL_PUT: utofu_mrq_notice_type = 0;
/// Someone has put data here.
pub const UTOFU_MRQ_TYPE_RMT_PUT: utofu_mrq_notice_type = 1;
/// A get of this VCQ is complete.
pub const UTOFU_MRQ_TYPE_LCL_GET: utofu_mrq_notice_type = 2;
/// Someone has fetched data from here.
pub const UTOFU_MRQ_TYPE_RMT_GET: utofu_mrq_notice_type = 3;
/// An atomic operation of this VCQ is complete.
pub const UTOFU_MRQ_TYPE_LCL_ARMW: utofu_mrq_notice_type = 4;
/// Someone has done an atomic operation here.
pub const UTOFU_MRQ_TYPE_RMT_ARMW: utofu_mrq_notice_type = 5;
/// Kinds of MRQ notices.
pub type utofu_mrq_notice_type = ::core::ffi::c_uint;
/// What a TNI can do in one-sided communication.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct utofu_onesided_caps {
    /// UTOFU_ONESIDED_CAP_FLAG_* bits.
    pub flags: ::core::ffi::c_ulong,
    /// UTOFU_ONESIDED_CAP_ARMW_OP_* bits.
    pub armw_ops: ::core::ffi::c_ulong,
    /// Number of component ids; valid ids lie below it.
    pub num_cmp_ids: ::core::ffi::c_uint,
    /// Steering tags per component id for utofu_reg_mem_with_stag.
    pub num_reserved_stags: ::core::ffi::c_uint,
    /// Cache line size in bytes.
    pub cache_line_size: usize,
    /// Alignment in bytes asked of addresses in utofu_reg_mem_with_stag.
    pub stag_address_alignment: usize,
    /// Largest size in bytes of one TOQ descriptor.
    pub max_toq_desc_size: usize,
    /// Largest length in bytes of one put or get.
    pub max_putget_size: usize,
    /// Largest length in bytes of one piggybacked put.
    pub max_piggyback_size: usize,
    /// Width in bytes of edata.
    pub max_edata_size: usize,
    /// Largest packet payload in bytes.
    pub max_mtu: usize,
    /// Largest gap between packets, in units of the gap argument.
    pub max_gap: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of utofu_onesided_caps"][::core::mem::size_of::<utofu_onesided_caps>() - 88usize];
    ["Alignment of utofu_onesided_caps"][::core::mem::align_of::<utofu_onesided_caps>() - 8usize];
    ["Offset of field: utofu_onesided_caps::flags"]
        [::core::mem::offset_of!(utofu_onesided_caps, flags) - 0usize];
    ["Offset of field: utofu_onesided_caps::armw_ops"]
        [::core::mem::offset_of!(utofu_onesided_caps, armw_ops) - 8usize];
    ["Offset of field: utofu_onesided_caps::num_cmp_ids"]
        [::core::mem::offset_of!(utofu_onesided_caps, num_cmp_ids) - 16usize];
    ["Offset of field: utofu_onesided_caps::num_reserved_stags"]
        [::core::mem::offset_of!(utofu_onesided_caps, num_reserved_stags) - 20usize];
    ["Offset of field: utofu_onesided_caps::cache_line_size"]
        [::core::mem::offset_of!(utofu_onesided_caps, cache_line_size) - 24usize];
    ["Offset of field: utofu_onesided_caps::stag_address_alignment"]
        [::core::mem::offset_of!(utofu_onesided_caps, stag_address_alignment) - 32usize];
    ["Offset of field: utofu_onesided_caps::max_toq_desc_size"]
        [::core::mem::offset_of!(utofu_onesided_caps, max_toq_desc_size) - 40usize];
    ["Offset of field: utofu_onesided_caps::max_putget_size"]
        [::core::mem::offset_of!(utofu_onesided_caps, max_putget_size) - 48usize];
    ["Offset of field: utofu_onesided_caps::max_piggyback_size"]
        [::core::mem::offset_of!(utofu_onesided_caps, max_piggyback_size) - 56usize];
    ["Offset of field: utofu_onesided_caps::max_edata_size"]
        [::core::mem::offset_of!(utofu_onesided_caps, max_edata_size) - 64usize];
    ["Offset of field: utofu_onesided_caps::max_mtu"]
        [::core::mem::offset_of!(utofu_onesided_caps, max_mtu) - 72usize];
    ["Offset of field: utofu_onesided_caps::max_gap"]
        [::core::mem::offset_of!(utofu_onesided_caps, max_gap) - 80usize];
};
/// What a TNI can do in barrier communication.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct utofu_barrier_caps {
    /// Reserved; 0.
    pub flags: ::core::ffi::c_ulong,
    /// UTOFU_BARRIER_CAP_REDUCE_OP_* bits.
    pub reduce_ops: ::core::ffi::c_ulong,
    /// Most uint64_t elements in one reduction.
    pub max_uint64_reduction: usize,
    /// Most double elements in one reduction.
    pub max_double_reduction: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of utofu_barrier_caps"][::core::mem::size_of::<utofu_barrier_caps>() - 32usize];
    ["Alignment of utofu_barrier_caps"][::core::mem::align_of::<utofu_barrier_caps>() - 8usize];
    ["Offset of field: utofu_barrier_caps::flags"]
        [::core::mem::offset_of!(utofu_barrier_caps, flags) - 0usize];
    ["Offset of field: utofu_barrier_caps::reduce_ops"]
        [::core::mem::offset_of!(utofu_barrier_caps, reduce_ops) - 8usize];
    ["Offset of field: utofu_barrier_caps::max_uint64_reduction"]
        [::core::mem::offset_of!(utofu_barrier_caps, max_uint64_reduction) - 16usize];
    ["Offset of field: utofu_barrier_caps::max_double_reduction"]
        [::core::mem::offset_of!(utofu_barrier_caps, max_double_reduction) - 24usize];
};
/// How one barrier gate is connected.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct utofu_vbg_setting {
    /// The gate of this process that is described.
    pub vbg_id: utofu_vbg_id_t,
    /// Gate of this process it waits for, or UTOFU_VBG_ID_NULL.
    pub src_lcl_vbg_id: utofu_vbg_id_t,
    /// Gate of another process it waits for, or UTOFU_VBG_ID_NULL.
    pub src_rmt_vbg_id: utofu_vbg_id_t,
    /// Gate of this process it signals, or UTOFU_VBG_ID_NULL.
    pub dst_lcl_vbg_id: utofu_vbg_id_t,
    /// Gate of another process it signals, or UTOFU_VBG_ID_NULL.
    pub dst_rmt_vbg_id: utofu_vbg_id_t,
    /// Path to the remote destination, or three times UTOFU_PATH_COORD_NULL.
    pub dst_path_coords: [u8; 3usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of utofu_vbg_setting"][::core::mem::size_of::<utofu_vbg_setting>() - 48usize];
    ["Alignment of utofu_vbg_setting"][::core::mem::align_of::<utofu_vbg_setting>() - 8usize];
    ["Offset of field: utofu_vbg_setting::vbg_id"]
        [::core::mem::offset_of!(utofu_vbg_setting, vbg_id) - 0usize];
    ["Offset of field: utofu_vbg_setting::src_lcl_vbg_id"]
        [::core::mem::offset_of!(utofu_vbg_setting, src_lcl_vbg_id) - 8usize];
    ["Offset of field: utofu_vbg_setting::src_rmt_vbg_id"]
        [::core::mem::offset_of!(utofu_vbg_setting, src_rmt_vbg_id) - 16usize];
    ["Offset of field: utofu_vbg_setting::dst_lcl_vbg_id"]
        [::core::mem::offset_of!(utofu_vbg_setting, dst_lcl_vbg_id) - 24usize];
    ["Offset of field: utofu_vbg_setting::dst_rmt_vbg_id"]
        [::core::mem::offset_of!(utofu_vbg_setting, dst_rmt_vbg_id) - 32usize];
    ["Offset of field: utofu_vbg_setting::dst_path_coords"]
        [::core::mem::offset_of!(utofu_vbg_setting, dst_path_coords) - 40usize];
};
/// One entry of a message receive queue; 64 bytes.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct utofu_mrq_notice {
    /// An enum utofu_mrq_notice_type.
    pub notice_type: u8,
    /// Padding.
    pub padding: [u8; 7usize],
    /// The VCQ on the other side, without a path.
    pub vcq_id: utofu_vcq_id_t,
    /// The edata given to the post.
    pub edata: u64,
    /// LCL_ARMW only: the value before the operation.
    pub rmt_value: u64,
    /// LCL_GET only: local STADD behind the data.
    pub lcl_stadd: utofu_stadd_t,
    /// Remote STADD behind the data (ARMW: of the data); not in LCL_GET.
    pub rmt_stadd: utofu_stadd_t,
    /// Reserved.
    pub reserved: [u64; 2usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of utofu_mrq_notice"][::core::mem::size_of::<utofu_mrq_notice>() - 64usize];
    ["Alignment of utofu_mrq_notice"][::core::mem::align_of::<utofu_mrq_notice>() - 8usize];
    ["Offset of field: utofu_mrq_notice::notice_type"]
        [::core::mem::offset_of!(utofu_mrq_notice, notice_type) - 0usize];
    ["Offset of field: utofu_mrq_notice::padding"]
        [::core::mem::offset_of!(utofu_mrq_notice, padding) - 1usize];
    ["Offset of field: utofu_mrq_notice::vcq_id"]
        [::core::mem::offset_of!(utofu_mrq_notice, vcq_id) - 8usize];
    ["Offset of field: utofu_mrq_notice::edata"]
        [::core::mem::offset_of!(utofu_mrq_notice, edata) - 16usize];
    ["Offset of field: utofu_mrq_notice::rmt_value"]
        [::core::mem::offset_of!(utofu_mrq_notice, rmt_value) - 24usize];
    ["Offset of field: utofu_mrq_notice::lcl_stadd"]
        [::core::mem::offset_of!(utofu_mrq_notice, lcl_stadd) - 32usize];
    ["Offset of field: utofu_mrq_notice::rmt_stadd"]
        [::core::mem::offset_of!(utofu_mrq_notice, rmt_stadd) - 40usize];
    ["Offset of field: utofu_mrq_notice::reserved"]
        [::core::mem::offset_of!(utofu_mrq_notice, reserved) - 48usize];
};
/** Lists the TNIs usable for one-sided communication; the caller frees *tni_ids.
Errors: INVALID_POINTER, OUT_OF_MEMORY.*/
pub type utofu_get_onesided_tnis = unsafe extern "C" fn(
    tni_ids: *mut *mut utofu_tni_id_t,
    num_tnis: *mut usize,
) -> ::core::ffi::c_int;
/** Lists the TNIs usable for barrier communication; the caller frees *tni_ids.
Errors: INVALID_POINTER, OUT_OF_MEMORY.*/
pub type utofu_get_barrier_tnis = unsafe extern "C" fn(
    tni_ids: *mut *mut utofu_tni_id_t,
    num_tnis: *mut usize,
) -> ::core::ffi::c_int;
/** Points *tni_caps to the library's own record; not to be freed.
Errors: INVALID_POINTER, INVALID_TNI_ID.*/
pub type utofu_query_onesided_caps = unsafe extern "C" fn(
    tni_id: utofu_tni_id_t,
    tni_caps: *mut *mut utofu_onesided_caps,
) -> ::core::ffi::c_int;
/** Points *tni_caps to the library's own record; not to be freed.
Errors: INVALID_POINTER, INVALID_TNI_ID.*/
pub type utofu_query_barrier_caps = unsafe extern "C" fn(
    tni_id: utofu_tni_id_t,
    tni_caps: *mut *mut utofu_barrier_caps,
) -> ::core::ffi::c_int;
/// Version of the interconnect.
pub type utofu_query_tofu_version =
    unsafe extern "C" fn(major_ver: *mut ::core::ffi::c_int, minor_ver: *mut ::core::ffi::c_int);
/// Version of the interface that the library implements.
pub type utofu_query_utofu_version =
    unsafe extern "C" fn(major_ver: *mut ::core::ffi::c_int, minor_ver: *mut ::core::ffi::c_int);
/// Coordinates x, y, z, a, b, c of this process's node. Errors: INVALID_POINTER.
pub type utofu_query_my_coords = unsafe extern "C" fn(coords: *mut u8) -> ::core::ffi::c_int;
/// Creates a VCQ on a TNI. Errors: INVALID_POINTER, INVALID_TNI_ID, FULL.
pub type utofu_create_vcq = unsafe extern "C" fn(
    tni_id: utofu_tni_id_t,
    flags: ::core::ffi::c_ulong,
    vcq_hdl: *mut utofu_vcq_hdl_t,
) -> ::core::ffi::c_int;
/** Creates the VCQ that has this component id.
Errors: INVALID_POINTER, INVALID_TNI_ID, INVALID_CMP_ID, NOT_SUPPORTED, USED.*/
pub type utofu_create_vcq_with_cmp_id = unsafe extern "C" fn(
    tni_id: utofu_tni_id_t,
    cmp_id: utofu_cmp_id_t,
    flags: ::core::ffi::c_ulong,
    vcq_hdl: *mut utofu_vcq_hdl_t,
) -> ::core::ffi::c_int;
/// Frees a VCQ. Errors: INVALID_VCQ_HDL.
pub type utofu_free_vcq = unsafe extern "C" fn(vcq_hdl: utofu_vcq_hdl_t) -> ::core::ffi::c_int;
/// The VCQ's id, without a path. Errors: INVALID_VCQ_HDL, INVALID_POINTER.
pub type utofu_query_vcq_id = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    vcq_id: *mut utofu_vcq_id_t,
) -> ::core::ffi::c_int;
/** Computes the id of any VCQ; nothing needs to exist there.
Errors: INVALID_POINTER, INVALID_TNI_ID, INVALID_CQ_ID, INVALID_CMP_ID, INVALID_COORDS.*/
pub type utofu_construct_vcq_id = unsafe extern "C" fn(
    coords: *mut u8,
    tni_id: utofu_tni_id_t,
    cq_id: utofu_cq_id_t,
    cmp_id: utofu_cmp_id_t,
    vcq_id: *mut utofu_vcq_id_t,
) -> ::core::ffi::c_int;
/** Sets the path in a VCQ id: to the given coordinates a, b, c or, if NULL, to a
default one. Errors: INVALID_POINTER, INVALID_VCQ_ID, INVALID_PATH.*/
pub type utofu_set_vcq_id_path =
    unsafe extern "C" fn(vcq_id: *mut utofu_vcq_id_t, path_coords: *mut u8) -> ::core::ffi::c_int;
/** Takes a VCQ id apart; ignores the path.
Errors: INVALID_POINTER, INVALID_VCQ_ID.*/
pub type utofu_query_vcq_info = unsafe extern "C" fn(
    vcq_id: utofu_vcq_id_t,
    coords: *mut u8,
    tni_id: *mut utofu_tni_id_t,
    cq_id: *mut utofu_cq_id_t,
    extra_val: *mut u16,
) -> ::core::ffi::c_int;
/** Path id of path coordinates towards a VCQ; NULL: of the path set in the id.
Errors: INVALID_POINTER, INVALID_VCQ_ID, INVALID_PATH.*/
pub type utofu_get_path_id = unsafe extern "C" fn(
    vcq_id: utofu_vcq_id_t,
    path_coords: *mut u8,
    path_id: *mut utofu_path_id_t,
) -> ::core::ffi::c_int;
/// Path coordinates of a path id towards a VCQ. Errors: INVALID_POINTER, INVALID_VCQ_ID.
pub type utofu_get_path_coords = unsafe extern "C" fn(
    vcq_id: utofu_vcq_id_t,
    path_id: utofu_path_id_t,
    path_coords: *mut u8,
) -> ::core::ffi::c_int;
/** Registers memory with the VCQ's CQ. Ranges inside pages already registered share
a STADD. Errors: INVALID_VCQ_HDL, INVALID_ADDRESS, INVALID_SIZE, FULL.*/
pub type utofu_reg_mem = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    addr: *mut ::core::ffi::c_void,
    size: usize,
    flags: ::core::ffi::c_ulong,
    stadd: *mut utofu_stadd_t,
) -> ::core::ffi::c_int;
/** Registers memory under a steering tag of the caller's choice, so that others can
compute its STADD. Errors: INVALID_VCQ_HDL, INVALID_ADDRESS, INVALID_SIZE,
INVALID_STAG.*/
pub type utofu_reg_mem_with_stag = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    addr: *mut ::core::ffi::c_void,
    size: usize,
    stag: ::core::ffi::c_uint,
    flags: ::core::ffi::c_ulong,
    stadd: *mut utofu_stadd_t,
) -> ::core::ffi::c_int;
/** STADD of memory registered under a steering tag by the VCQ's owner.
Errors: INVALID_VCQ_ID, INVALID_STAG.*/
pub type utofu_query_stadd = unsafe extern "C" fn(
    vcq_id: utofu_vcq_id_t,
    stag: ::core::ffi::c_uint,
    stadd: *mut utofu_stadd_t,
) -> ::core::ffi::c_int;
/// Takes back one registration. Errors: INVALID_VCQ_HDL, INVALID_STADD.
pub type utofu_dereg_mem = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    stadd: utofu_stadd_t,
    flags: ::core::ffi::c_ulong,
) -> ::core::ffi::c_int;
/// Writes local memory to the target.
pub type utofu_put = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Put with a chosen packet payload (mtu, bytes) and gap between packets.
pub type utofu_put_gap = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    mtu: usize,
    gap: usize,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Puts num_blocks blocks; block i lies at i * stride on both sides.
pub type utofu_put_stride = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    stride: usize,
    num_blocks: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Strided put with a chosen mtu and gap.
pub type utofu_put_stride_gap = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    stride: usize,
    num_blocks: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    mtu: usize,
    gap: usize,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/** Put of up to max_piggyback_size bytes that travel in the descriptor; `data` needs
no registration and may be reused at once.*/
pub type utofu_put_piggyback = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_data: *mut ::core::ffi::c_void,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Put of the `length` (at most 8) low bytes of a value.
pub type utofu_put_piggyback8 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_data: u64,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Reads the target's memory.
pub type utofu_get = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Get with a chosen mtu and gap.
pub type utofu_get_gap = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    mtu: usize,
    gap: usize,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Gets num_blocks blocks; block i lies at i * stride on both sides.
pub type utofu_get_stride = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    stride: usize,
    num_blocks: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Strided get with a chosen mtu and gap.
pub type utofu_get_stride_gap = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    stride: usize,
    num_blocks: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    mtu: usize,
    gap: usize,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Atomic operation on 4 bytes of the target.
pub type utofu_armw4 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    armw_op: utofu_armw_op,
    op_value: u32,
    rmt_stadd: utofu_stadd_t,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Atomic operation on 8 bytes of the target.
pub type utofu_armw8 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    armw_op: utofu_armw_op,
    op_value: u64,
    rmt_stadd: utofu_stadd_t,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Atomic compare and swap on 4 bytes of the target.
pub type utofu_cswap4 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    old_value: u32,
    new_value: u32,
    rmt_stadd: utofu_stadd_t,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Atomic compare and swap on 8 bytes of the target.
pub type utofu_cswap8 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    old_value: u64,
    new_value: u64,
    rmt_stadd: utofu_stadd_t,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Occupies a queue entry and does nothing else.
pub type utofu_nop = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_put.
pub type utofu_prepare_put = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_put_gap.
pub type utofu_prepare_put_gap = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    mtu: usize,
    gap: usize,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptors of utofu_put_stride.
pub type utofu_prepare_put_stride = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    stride: usize,
    num_blocks: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptors of utofu_put_stride_gap.
pub type utofu_prepare_put_stride_gap = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    stride: usize,
    num_blocks: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    mtu: usize,
    gap: usize,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_put_piggyback; contains the data.
pub type utofu_prepare_put_piggyback = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_data: *mut ::core::ffi::c_void,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_put_piggyback8; contains the data.
pub type utofu_prepare_put_piggyback8 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_data: u64,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_get.
pub type utofu_prepare_get = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_get_gap.
pub type utofu_prepare_get_gap = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    mtu: usize,
    gap: usize,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptors of utofu_get_stride.
pub type utofu_prepare_get_stride = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    stride: usize,
    num_blocks: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptors of utofu_get_stride_gap.
pub type utofu_prepare_get_stride_gap = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    lcl_stadd: utofu_stadd_t,
    rmt_stadd: utofu_stadd_t,
    length: usize,
    stride: usize,
    num_blocks: usize,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    mtu: usize,
    gap: usize,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_armw4.
pub type utofu_prepare_armw4 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    armw_op: utofu_armw_op,
    op_value: u32,
    rmt_stadd: utofu_stadd_t,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_armw8.
pub type utofu_prepare_armw8 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    armw_op: utofu_armw_op,
    op_value: u64,
    rmt_stadd: utofu_stadd_t,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_cswap4.
pub type utofu_prepare_cswap4 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    old_value: u32,
    new_value: u32,
    rmt_stadd: utofu_stadd_t,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_cswap8.
pub type utofu_prepare_cswap8 = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    rmt_vcq_id: utofu_vcq_id_t,
    old_value: u64,
    new_value: u64,
    rmt_stadd: utofu_stadd_t,
    edata: u64,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Descriptor of utofu_nop.
pub type utofu_prepare_nop = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    flags: ::core::ffi::c_ulong,
    desc: *mut ::core::ffi::c_void,
    desc_size: *mut usize,
) -> ::core::ffi::c_int;
/// Posts desc_size bytes of prepared descriptors. Errors: BUSY, INVALID_DESC.
pub type utofu_post_toq = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    desc: *mut ::core::ffi::c_void,
    desc_size: usize,
    cbdata: *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/** Takes the oldest noticed completion from the TCQ. Must be called from time to time
even if no notice was asked for: only polling gives queue entries back.
Errors: NOT_FOUND (cbdata untouched), TCQ_* (cbdata is that of the failed post).*/
pub type utofu_poll_tcq = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    flags: ::core::ffi::c_ulong,
    cbdata: *mut *mut ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Takes the oldest notice from the MRQ. Errors: NOT_FOUND (notice untouched), MRQ_*.
pub type utofu_poll_mrq = unsafe extern "C" fn(
    vcq_hdl: utofu_vcq_hdl_t,
    flags: ::core::ffi::c_ulong,
    notice: *mut utofu_mrq_notice,
) -> ::core::ffi::c_int;
/// Number of posted TOQ entries that polling has not passed yet.
pub type utofu_query_num_unread_tcq =
    unsafe extern "C" fn(vcq_hdl: utofu_vcq_hdl_t, count: *mut usize) -> ::core::ffi::c_int;
/// Number of local MRQ entries of own operations that polling has not passed yet.
pub type utofu_query_num_unread_mrq =
    unsafe extern "C" fn(vcq_hdl: utofu_vcq_hdl_t, count: *mut usize) -> ::core::ffi::c_int;
/** Allocates one start/end gate (element 0) and num_vbgs - 1 relay gates.
Errors: INVALID_POINTER, INVALID_TNI_ID, INVALID_NUMBER, FULL.*/
pub type utofu_alloc_vbg = unsafe extern "C" fn(
    tni_id: utofu_tni_id_t,
    num_vbgs: usize,
    flags: ::core::ffi::c_ulong,
    vbg_ids: *mut utofu_vbg_id_t,
) -> ::core::ffi::c_int;
/// Frees what one utofu_alloc_vbg gave. Errors: INVALID_VBG_ID, INVALID_NUMBER.
pub type utofu_free_vbg =
    unsafe extern "C" fn(vbg_ids: *mut utofu_vbg_id_t, num_vbgs: usize) -> ::core::ffi::c_int;
/// Connects gates. Errors: INVALID_VBG_ID, INVALID_NUMBER, INVALID_PATH.
pub type utofu_set_vbg = unsafe extern "C" fn(
    vbg_settings: *mut utofu_vbg_setting,
    num_vbg_settings: usize,
) -> ::core::ffi::c_int;
/// Takes a gate id apart. Errors: INVALID_POINTER, INVALID_VBG_ID.
pub type utofu_query_vbg_info = unsafe extern "C" fn(
    vbg_id: utofu_vbg_id_t,
    coords: *mut u8,
    tni_id: *mut utofu_tni_id_t,
    bg_id: *mut utofu_bg_id_t,
    extra_val: *mut u16,
) -> ::core::ffi::c_int;
/// Starts a barrier on a start/end gate. Errors: BUSY, INVALID_VBG_ID.
pub type utofu_barrier =
    unsafe extern "C" fn(vbg_id: utofu_vbg_id_t, flags: ::core::ffi::c_ulong) -> ::core::ffi::c_int;
/** Starts a reduction of integers. Errors: BUSY, INVALID_VBG_ID, INVALID_OP,
INVALID_NUMBER.*/
pub type utofu_reduce_uint64 = unsafe extern "C" fn(
    vbg_id: utofu_vbg_id_t,
    op: utofu_reduce_op,
    data: *mut u64,
    num_data: usize,
    flags: ::core::ffi::c_ulong,
) -> ::core::ffi::c_int;
/** Starts a reduction of doubles. Errors: BUSY, INVALID_VBG_ID, INVALID_OP,
INVALID_NUMBER.*/
pub type utofu_reduce_double = unsafe extern "C" fn(
    vbg_id: utofu_vbg_id_t,
    op: utofu_reduce_op,
    data: *mut f64,
    num_data: usize,
    flags: ::core::ffi::c_ulong,
) -> ::core::ffi::c_int;
/** Looks whether the barrier is over. Errors: NOT_COMPLETED, BUSY (nothing is in
flight), BARRIER_*.*/
pub type utofu_poll_barrier =
    unsafe extern "C" fn(vbg_id: utofu_vbg_id_t, flags: ::core::ffi::c_ulong) -> ::core::ffi::c_int;
/** Looks whether the integer reduction is over; writes the result when it is.
Errors: NOT_COMPLETED, BUSY (nothing is in flight), BARRIER_*.*/
pub type utofu_poll_reduce_uint64 = unsafe extern "C" fn(
    vbg_id: utofu_vbg_id_t,
    flags: ::core::ffi::c_ulong,
    data: *mut u64,
) -> ::core::ffi::c_int;
/** Looks whether the floating-point reduction is over; writes the result when it is.
Errors: NOT_COMPLETED, BUSY (nothing is in flight), BARRIER_*.*/
pub type utofu_poll_reduce_double = unsafe extern "C" fn(
    vbg_id: utofu_vbg_id_t,
    flags: ::core::ffi::c_ulong,
    data: *mut f64,
) -> ::core::ffi::c_int;
/// Done.
pub const JTOFU_SUCCESS: jtofu_return_code = 0;
/// There is no job, or jtofu_initialize has not been called.
pub const JTOFU_ERR_NOT_INITIALIZED: jtofu_return_code = -1;
/// The library lacks this.
pub const JTOFU_ERR_NOT_IMPLEMENTED: jtofu_return_code = -2;
/// An argument is out of range.
pub const JTOFU_ERR_INVALID_ARG: jtofu_return_code = -3;
/// A pointer is NULL.
pub const JTOFU_ERR_INVALID_POINTER: jtofu_return_code = -4;
/// jtofu_finalize was called more often than jtofu_initialize.
pub const JTOFU_ERR_EXCESS_FINALIZE: jtofu_return_code = -5;
/// There is no memory left.
pub const JTOFU_ERR_OUT_OF_MEMORY: jtofu_return_code = -6;
/// The library cannot go on.
pub const JTOFU_ERR_INTERNAL: jtofu_return_code = -100;
/// What a call returns.
pub type jtofu_return_code = ::core::ffi::c_int;
/// Number of a job.
pub type jtofu_job_id_t = u32;
/// Rank within a job.
pub type jtofu_rank_t = u32;
/// Physical coordinates in the six-dimensional network.
#[repr(C)]
#[derive(Copy, Clone)]
pub union jtofu_phys_coords {
    pub s: jtofu_phys_coords__bindgen_ty_1,
    /// By index.
    pub a: [u8; 6usize],
}
/// By name.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct jtofu_phys_coords__bindgen_ty_1 {
    /// Along x.
    pub x: u8,
    /// Along y.
    pub y: u8,
    /// Along z.
    pub z: u8,
    /// Along a (size 2).
    pub a: u8,
    /// Along b (size 3).
    pub b: u8,
    /// Along c (size 2).
    pub c: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of jtofu_phys_coords__bindgen_ty_1"]
        [::core::mem::size_of::<jtofu_phys_coords__bindgen_ty_1>() - 6usize];
    ["Alignment of jtofu_phys_coords__bindgen_ty_1"]
        [::core::mem::align_of::<jtofu_phys_coords__bindgen_ty_1>() - 1usize];
    ["Offset of field: jtofu_phys_coords__bindgen_ty_1::x"]
        [::core::mem::offset_of!(jtofu_phys_coords__bindgen_ty_1, x) - 0usize];
    ["Offset of field: jtofu_phys_coords__bindgen_ty_1::y"]
        [::core::mem::offset_of!(jtofu_phys_coords__bindgen_ty_1, y) - 1usize];
    ["Offset of field: jtofu_phys_coords__bindgen_ty_1::z"]
        [::core::mem::offset_of!(jtofu_phys_coords__bindgen_ty_1, z) - 2usize];
    ["Offset of field: jtofu_phys_coords__bindgen_ty_1::a"]
        [::core::mem::offset_of!(jtofu_phys_coords__bindgen_ty_1, a) - 3usize];
    ["Offset of field: jtofu_phys_coords__bindgen_ty_1::b"]
        [::core::mem::offset_of!(jtofu_phys_coords__bindgen_ty_1, b) - 4usize];
    ["Offset of field: jtofu_phys_coords__bindgen_ty_1::c"]
        [::core::mem::offset_of!(jtofu_phys_coords__bindgen_ty_1, c) - 5usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of jtofu_phys_coords"][::core::mem::size_of::<jtofu_phys_coords>() - 6usize];
    ["Alignment of jtofu_phys_coords"][::core::mem::align_of::<jtofu_phys_coords>() - 1usize];
    ["Offset of field: jtofu_phys_coords::s"]
        [::core::mem::offset_of!(jtofu_phys_coords, s) - 0usize];
    ["Offset of field: jtofu_phys_coords::a"]
        [::core::mem::offset_of!(jtofu_phys_coords, a) - 0usize];
};
impl Default for jtofu_phys_coords {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
/// Logical coordinates in the job's shape.
#[repr(C)]
#[derive(Copy, Clone)]
pub union jtofu_log_coords {
    pub s: jtofu_log_coords__bindgen_ty_1,
    /// By index.
    pub a: [u32; 3usize],
}
/// By name.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct jtofu_log_coords__bindgen_ty_1 {
    /// Along the first axis.
    pub x: u32,
    /// Along the second axis.
    pub y: u32,
    /// Along the third axis.
    pub z: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of jtofu_log_coords__bindgen_ty_1"]
        [::core::mem::size_of::<jtofu_log_coords__bindgen_ty_1>() - 12usize];
    ["Alignment of jtofu_log_coords__bindgen_ty_1"]
        [::core::mem::align_of::<jtofu_log_coords__bindgen_ty_1>() - 4usize];
    ["Offset of field: jtofu_log_coords__bindgen_ty_1::x"]
        [::core::mem::offset_of!(jtofu_log_coords__bindgen_ty_1, x) - 0usize];
    ["Offset of field: jtofu_log_coords__bindgen_ty_1::y"]
        [::core::mem::offset_of!(jtofu_log_coords__bindgen_ty_1, y) - 4usize];
    ["Offset of field: jtofu_log_coords__bindgen_ty_1::z"]
        [::core::mem::offset_of!(jtofu_log_coords__bindgen_ty_1, z) - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of jtofu_log_coords"][::core::mem::size_of::<jtofu_log_coords>() - 12usize];
    ["Alignment of jtofu_log_coords"][::core::mem::align_of::<jtofu_log_coords>() - 4usize];
    ["Offset of field: jtofu_log_coords::s"][::core::mem::offset_of!(jtofu_log_coords, s) - 0usize];
    ["Offset of field: jtofu_log_coords::a"][::core::mem::offset_of!(jtofu_log_coords, a) - 0usize];
};
impl Default for jtofu_log_coords {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
/// Coordinates of a path inside a group of twelve nodes.
#[repr(C)]
#[derive(Copy, Clone)]
pub union jtofu_path_coords {
    pub s: jtofu_path_coords__bindgen_ty_1,
    /// By index.
    pub a: [u8; 3usize],
}
/// By name.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct jtofu_path_coords__bindgen_ty_1 {
    /// Along a.
    pub pa: u8,
    /// Along b.
    pub pb: u8,
    /// Along c.
    pub pc: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of jtofu_path_coords__bindgen_ty_1"]
        [::core::mem::size_of::<jtofu_path_coords__bindgen_ty_1>() - 3usize];
    ["Alignment of jtofu_path_coords__bindgen_ty_1"]
        [::core::mem::align_of::<jtofu_path_coords__bindgen_ty_1>() - 1usize];
    ["Offset of field: jtofu_path_coords__bindgen_ty_1::pa"]
        [::core::mem::offset_of!(jtofu_path_coords__bindgen_ty_1, pa) - 0usize];
    ["Offset of field: jtofu_path_coords__bindgen_ty_1::pb"]
        [::core::mem::offset_of!(jtofu_path_coords__bindgen_ty_1, pb) - 1usize];
    ["Offset of field: jtofu_path_coords__bindgen_ty_1::pc"]
        [::core::mem::offset_of!(jtofu_path_coords__bindgen_ty_1, pc) - 2usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of jtofu_path_coords"][::core::mem::size_of::<jtofu_path_coords>() - 3usize];
    ["Alignment of jtofu_path_coords"][::core::mem::align_of::<jtofu_path_coords>() - 1usize];
    ["Offset of field: jtofu_path_coords::s"]
        [::core::mem::offset_of!(jtofu_path_coords, s) - 0usize];
    ["Offset of field: jtofu_path_coords::a"]
        [::core::mem::offset_of!(jtofu_path_coords, a) - 0usize];
};
impl Default for jtofu_path_coords {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
/// Announces the calling process: its job, its rank and the job's map.
pub type jtofu_initialize = unsafe extern "C" fn(
    job_id: jtofu_job_id_t,
    rank: jtofu_rank_t,
    mapinfo: *const ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Ends the use of this interface.
pub type jtofu_finalize = unsafe extern "C" fn() -> ::core::ffi::c_int;
/// Physical coordinates of a rank.
pub type jtofu_query_phys_coords = unsafe extern "C" fn(
    job_id: jtofu_job_id_t,
    rank: jtofu_rank_t,
    coords: *mut jtofu_phys_coords,
) -> ::core::ffi::c_int;
/// Logical coordinates of a rank.
pub type jtofu_query_log_coords = unsafe extern "C" fn(
    job_id: jtofu_job_id_t,
    rank: jtofu_rank_t,
    coords: *mut jtofu_log_coords,
) -> ::core::ffi::c_int;
/// Extent of the job in physical coordinates.
pub type jtofu_query_phys_size =
    unsafe extern "C" fn(size: *mut jtofu_phys_coords) -> ::core::ffi::c_int;
/// Extent of the job in logical coordinates.
pub type jtofu_query_log_size =
    unsafe extern "C" fn(size: *mut jtofu_log_coords) -> ::core::ffi::c_int;
/// Extent of the whole system in physical coordinates.
pub type jtofu_query_sys_size =
    unsafe extern "C" fn(size: *mut jtofu_phys_coords) -> ::core::ffi::c_int;
/// Returns the largest number of ranks on one node.
pub type jtofu_query_max_proc_per_node = unsafe extern "C" fn() -> ::core::ffi::c_int;
/// Ranks at physical coordinates: at most max_ranks; how many in *num_ranks.
pub type jtofu_query_ranks_from_phys_coords = unsafe extern "C" fn(
    job_id: jtofu_job_id_t,
    coords: *mut jtofu_phys_coords,
    max_ranks: usize,
    ranks: *mut jtofu_rank_t,
    num_ranks: *mut usize,
) -> ::core::ffi::c_int;
/// Ranks at logical coordinates: at most max_ranks; how many in *num_ranks.
pub type jtofu_query_ranks_from_log_coords = unsafe extern "C" fn(
    job_id: jtofu_job_id_t,
    coords: *mut jtofu_log_coords,
    max_ranks: usize,
    ranks: *mut jtofu_rank_t,
    num_ranks: *mut usize,
) -> ::core::ffi::c_int;
/// Paths towards a node: at most max_paths; how many in *num_paths.
pub type jtofu_query_onesided_paths = unsafe extern "C" fn(
    coords: *mut jtofu_phys_coords,
    max_paths: usize,
    paths: *mut jtofu_path_coords,
    num_paths: *mut usize,
) -> ::core::ffi::c_int;
/// Number of hops to a node along the default path.
pub type jtofu_query_onesided_hops = unsafe extern "C" fn(
    coords: *mut jtofu_phys_coords,
    num_hops: *mut usize,
) -> ::core::ffi::c_int;
/// Announces another job with its map.
pub type jtofu_add_job = unsafe extern "C" fn(
    job_id: jtofu_job_id_t,
    mapinfo: *const ::core::ffi::c_void,
) -> ::core::ffi::c_int;
/// Forgets a job that was added.
pub type jtofu_delete_job = unsafe extern "C" fn(job_id: jtofu_job_id_t) -> ::core::ffi::c_int;
/// For each physical axis of the system, 1 if it is a ring and 0 if it is not.
pub type jtofu_query_sys_torus =
    unsafe extern "C" fn(torus: *mut jtofu_phys_coords) -> ::core::ffi::c_int;
/// Physical coordinates from which those of the job are counted.
pub type jtofu_query_ref_coords =
    unsafe extern "C" fn(coords: *mut jtofu_phys_coords) -> ::core::ffi::c_int;
/// Paths of barriers towards a node: at most max_paths; how many in *num_paths.
pub type jtofu_query_barrier_paths = unsafe extern "C" fn(
    coords: *mut jtofu_phys_coords,
    max_paths: usize,
    paths: *mut jtofu_path_coords,
    num_paths: *mut usize,
) -> ::core::ffi::c_int;
/// Number of hops of a barrier's packets to a node along the default path.
pub type jtofu_query_barrier_hops = unsafe extern "C" fn(
    coords: *mut jtofu_phys_coords,
    num_hops: *mut usize,
) -> ::core::ffi::c_int;
/// Version of the interface that the library implements.
pub type jtofu_query_jtofu_version =
    unsafe extern "C" fn(major_ver: *mut ::core::ffi::c_int, minor_ver: *mut ::core::ffi::c_int);
/// Makes the map of the job that the environment describes; the caller frees *mapinfo.
pub type jtofu_create_mapinfo_by_envvars = unsafe extern "C" fn(
    mapinfo: *mut *mut ::core::ffi::c_void,
    mapinfo_size: *mut usize,
    num_proc: *mut ::core::ffi::c_uint,
) -> ::core::ffi::c_int;
