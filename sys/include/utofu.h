/*
 * utofu.h - declarations of the uTofu API 1.0, the user-level interface to the
 * Tofu interconnect.
 *
 * These are hopbine's own declarations of a public interface, so that programs
 * and bindings can be built where Fujitsu's development kit is not installed.
 * The interface is documented in Fujitsu's "Development Studio uTofu User's
 * Guide"; the binary interface here is meant to be the same, so an object
 * compiled against this file links with the vendor's libtofucom or with the
 * emulated device (libtofucom_emu).
 *
 * Conventions
 *   - Functions return 0 (UTOFU_SUCCESS) or a negative enum utofu_return_code,
 *     unless stated otherwise. "Errors" lists the codes a caller should expect.
 *   - Lengths, strides and offsets are in bytes.
 *   - `flags` is always an unsigned long of or-ed bits; 0 asks for nothing.
 *   - Nothing here blocks: a post queues work, a poll looks once.
 */
#ifndef UTOFU_H
#define UTOFU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version of this interface ---- */

/** Major version of the interface declared here. */
#define UTOFU_VERSION_MAJOR 1
/** Minor version of the interface declared here. */
#define UTOFU_VERSION_MINOR 0

/* ---- identifiers ---- */

/** Number of a Tofu network interface (TNI) of this node. */
typedef uint16_t utofu_tni_id_t;
/** Number of a control queue (CQ) within a TNI. */
typedef uint16_t utofu_cq_id_t;
/** Number of a barrier gate (BG) within a TNI. */
typedef uint16_t utofu_bg_id_t;
/** Component id: names a VCQ so that others can compute its VCQ id. */
typedef uint16_t utofu_cmp_id_t;
/** Handle of a virtual control queue (VCQ); has a meaning in its own process only. */
typedef uintptr_t utofu_vcq_hdl_t;
/** System-wide name of a VCQ; also carries the path of packets sent to it. */
typedef uint64_t utofu_vcq_id_t;
/** System-wide name of a virtual barrier gate. */
typedef uint64_t utofu_vbg_id_t;
/** Steering address of registered memory; adding k addresses k bytes further. */
typedef uint64_t utofu_stadd_t;
/** Path towards a target, relative to the target's own a, b, c coordinates. */
typedef uint8_t utofu_path_id_t;

/** In a gate setting: this side is not connected. */
#define UTOFU_VBG_ID_NULL ((utofu_vbg_id_t)-1)
/** As each of the three path coordinates: the default path. */
#define UTOFU_PATH_COORD_NULL ((uint8_t)-1)

/* ---- capability bits ---- */

/** One-sided capability: VCQs may be created in session mode. */
#define UTOFU_ONESIDED_CAP_FLAG_SESSION_MODE (1UL << 0)
/** One-sided capability: atomic read-modify-write is available. */
#define UTOFU_ONESIDED_CAP_FLAG_ARMW (1UL << 1)

/** ARMW capability: compare and swap. */
#define UTOFU_ONESIDED_CAP_ARMW_OP_CSWAP (1UL << 0)
/** ARMW capability: swap. */
#define UTOFU_ONESIDED_CAP_ARMW_OP_SWAP (1UL << 1)
/** ARMW capability: addition. */
#define UTOFU_ONESIDED_CAP_ARMW_OP_ADD (1UL << 2)
/** ARMW capability: bitwise exclusive or. */
#define UTOFU_ONESIDED_CAP_ARMW_OP_XOR (1UL << 3)
/** ARMW capability: bitwise and. */
#define UTOFU_ONESIDED_CAP_ARMW_OP_AND (1UL << 4)
/** ARMW capability: bitwise or. */
#define UTOFU_ONESIDED_CAP_ARMW_OP_OR (1UL << 5)

/** Barrier capability: synchronisation without data. */
#define UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER (1UL << 1)
/** Barrier capability: bitwise and. */
#define UTOFU_BARRIER_CAP_REDUCE_OP_BAND (1UL << 2)
/** Barrier capability: bitwise or. */
#define UTOFU_BARRIER_CAP_REDUCE_OP_BOR (1UL << 3)
/** Barrier capability: bitwise exclusive or. */
#define UTOFU_BARRIER_CAP_REDUCE_OP_BXOR (1UL << 4)
/** Barrier capability: unsigned maximum. */
#define UTOFU_BARRIER_CAP_REDUCE_OP_MAX (1UL << 5)
/** Barrier capability: maximum with its location. */
#define UTOFU_BARRIER_CAP_REDUCE_OP_MAXLOC (1UL << 6)
/** Barrier capability: integer sum. */
#define UTOFU_BARRIER_CAP_REDUCE_OP_SUM (1UL << 7)
/** Barrier capability: order-independent floating-point sum. */
#define UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM (1UL << 8)

/* ---- flags of creation and registration ---- */

/** The VCQ may be used by several threads at once. */
#define UTOFU_VCQ_FLAG_THREAD_SAFE (1UL << 0)
/** The VCQ gets a control queue of its own. */
#define UTOFU_VCQ_FLAG_EXCLUSIVE (1UL << 1)
/** The VCQ works in session mode: operations wait to be started by others. */
#define UTOFU_VCQ_FLAG_SESSION_MODE (1UL << 2)

/** The gates may be used by several threads at once. */
#define UTOFU_VBG_FLAG_THREAD_SAFE (1UL << 0)

/** Others may read the registered memory but not write it. */
#define UTOFU_REG_MEM_FLAG_READ_ONLY (1UL << 0)

/* ---- flags of one-sided operations ---- */

/** Keep the order of this operation relative to others of the same VCQ and target. */
#define UTOFU_ONESIDED_FLAG_STRONG_ORDER (1UL << 0)
/** Ask the target to answer each packet. */
#define UTOFU_ONESIDED_FLAG_PACKET_RESPONSE (1UL << 1)
/** Put a notice into the target's MRQ when the data are in place. */
#define UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE (1UL << 2)
/** Allow whole cache lines to be written for the last, incomplete one. */
#define UTOFU_ONESIDED_FLAG_PADDING (1UL << 3)
/** Deliver the data into the target's cache. */
#define UTOFU_ONESIDED_FLAG_CACHE_INJECTION (1UL << 5)
/** Session mode: do not start by itself. */
#define UTOFU_ONESIDED_FLAG_DELAY_START (1UL << 8)
/** Put an entry into the own TCQ when the descriptor has been executed. */
#define UTOFU_ONESIDED_FLAG_TCQ_NOTICE (1UL << 14)
/** Put a notice into the own MRQ when the operation is complete. */
#define UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE (1UL << 15)
/** Session mode: the session progress step n (0..15). */
#define UTOFU_ONESIDED_FLAG_SPS(n) ((unsigned long)(n) << 24)
/** Send along path `id` (a utofu_path_id_t) instead of the VCQ id's own. */
#define UTOFU_ONESIDED_FLAG_PATH(id) ((unsigned long)(id) << 28)

/* ---- enumerations ---- */

/** What a call returns. */
enum utofu_return_code {
    /** Done. */
    UTOFU_SUCCESS = 0,
    /** The polled queue has no entry. */
    UTOFU_ERR_NOT_FOUND = -1,
    /** The operation is still running. */
    UTOFU_ERR_NOT_COMPLETED = -2,
    /** The request was not processed. */
    UTOFU_ERR_NOT_PROCESSED = -3,
    /** The queue or gate has no room now: poll, then try again. */
    UTOFU_ERR_BUSY = -4,
    /** The named resource is already in use. */
    UTOFU_ERR_USED = -5,
    /** No resource of this kind is free. */
    UTOFU_ERR_FULL = -6,
    /** The resource exists but cannot be had here. */
    UTOFU_ERR_NOT_AVAILABLE = -7,
    /** The combination of arguments is not supported. */
    UTOFU_ERR_NOT_SUPPORTED = -8,

    /** TCQ: an error without a code of its own. */
    UTOFU_ERR_TCQ_OTHER = -128,
    /** TCQ: the descriptor is wrong. */
    UTOFU_ERR_TCQ_DESC = -129,
    /** TCQ: local memory could not be accessed. */
    UTOFU_ERR_TCQ_MEMORY = -130,
    /** TCQ: the local STADD is not registered. */
    UTOFU_ERR_TCQ_STADD = -131,
    /** TCQ: the length does not fit. */
    UTOFU_ERR_TCQ_LENGTH = -132,

    /** MRQ: an error without a code of its own. */
    UTOFU_ERR_MRQ_OTHER = -192,
    /** MRQ: the peer VCQ does not answer or does not exist. */
    UTOFU_ERR_MRQ_PEER = -193,
    /** MRQ: local memory could not be accessed. */
    UTOFU_ERR_MRQ_LCL_MEMORY = -194,
    /** MRQ: remote memory could not be accessed. */
    UTOFU_ERR_MRQ_RMT_MEMORY = -195,
    /** MRQ: the local STADD is not registered. */
    UTOFU_ERR_MRQ_LCL_STADD = -196,
    /** MRQ: the remote STADD is not registered. */
    UTOFU_ERR_MRQ_RMT_STADD = -197,
    /** MRQ: the access leaves the local registered range. */
    UTOFU_ERR_MRQ_LCL_LENGTH = -198,
    /** MRQ: the access leaves the remote registered range. */
    UTOFU_ERR_MRQ_RMT_LENGTH = -199,

    /** Barrier: an error without a code of its own. */
    UTOFU_ERR_BARRIER_OTHER = -256,
    /** Barrier: the participants started different operations. */
    UTOFU_ERR_BARRIER_MISMATCH = -257,

    /** An argument without a code of its own is wrong. */
    UTOFU_ERR_INVALID_ARG = -512,
    /** A pointer that must not be null is null. */
    UTOFU_ERR_INVALID_POINTER = -513,
    /** A flag is not allowed here. */
    UTOFU_ERR_INVALID_FLAGS = -514,
    /** Coordinates are out of range. */
    UTOFU_ERR_INVALID_COORDS = -515,
    /** Path coordinates are out of range. */
    UTOFU_ERR_INVALID_PATH = -516,
    /** There is no such TNI. */
    UTOFU_ERR_INVALID_TNI_ID = -517,
    /** There is no such CQ. */
    UTOFU_ERR_INVALID_CQ_ID = -518,
    /** There is no such barrier gate. */
    UTOFU_ERR_INVALID_BG_ID = -519,
    /** The component id is out of range. */
    UTOFU_ERR_INVALID_CMP_ID = -520,
    /** Not a live VCQ handle. */
    UTOFU_ERR_INVALID_VCQ_HDL = -521,
    /** Not a VCQ id. */
    UTOFU_ERR_INVALID_VCQ_ID = -522,
    /** Not an allocated barrier gate. */
    UTOFU_ERR_INVALID_VBG_ID = -523,
    /** The path id is out of range. */
    UTOFU_ERR_INVALID_PATH_ID = -524,
    /** The STADD is not registered. */
    UTOFU_ERR_INVALID_STADD = -525,
    /** The address cannot be registered. */
    UTOFU_ERR_INVALID_ADDRESS = -526,
    /** A length is out of range. */
    UTOFU_ERR_INVALID_SIZE = -527,
    /** The steering tag is out of range or in use. */
    UTOFU_ERR_INVALID_STAG = -528,
    /** edata does not fit its width. */
    UTOFU_ERR_INVALID_EDATA = -529,
    /** A count is out of range. */
    UTOFU_ERR_INVALID_NUMBER = -530,
    /** The operator is not allowed here. */
    UTOFU_ERR_INVALID_OP = -531,
    /** The descriptor is wrong. */
    UTOFU_ERR_INVALID_DESC = -532,
    /** The data cannot be reduced. */
    UTOFU_ERR_INVALID_DATA = -533,

    /** The system has no resource of the kind left. */
    UTOFU_ERR_OUT_OF_RESOURCE = -640,
    /** There is no memory left. */
    UTOFU_ERR_OUT_OF_MEMORY = -641,

    /** The library cannot go on. */
    UTOFU_ERR_FATAL = -768
};

/** Operators of the atomic read-modify-write. */
enum utofu_armw_op {
    /** Store the operand. */
    UTOFU_ARMW_OP_SWAP = 1,
    /** Add the operand; wraps within the 4 or 8 bytes. */
    UTOFU_ARMW_OP_ADD = 2,
    /** Bitwise exclusive or. */
    UTOFU_ARMW_OP_XOR = 3,
    /** Bitwise and. */
    UTOFU_ARMW_OP_AND = 4,
    /** Bitwise or. */
    UTOFU_ARMW_OP_OR = 5
};

/** Operators of the barrier gates. */
enum utofu_reduce_op {
    /** No data. */
    UTOFU_REDUCE_OP_BARRIER = 1,
    /** Bitwise and of uint64_t. */
    UTOFU_REDUCE_OP_BAND = 2,
    /** Bitwise or of uint64_t. */
    UTOFU_REDUCE_OP_BOR = 3,
    /** Bitwise exclusive or of uint64_t. */
    UTOFU_REDUCE_OP_BXOR = 4,
    /** Unsigned maximum of uint64_t. */
    UTOFU_REDUCE_OP_MAX = 5,
    /** Pairs (value, location): largest value, smallest location at ties. */
    UTOFU_REDUCE_OP_MAXLOC = 6,
    /** Sum of uint64_t modulo 2^64. */
    UTOFU_REDUCE_OP_SUM = 7,
    /** Sum of double that does not depend on the order of the addends. */
    UTOFU_REDUCE_OP_BFPSUM = 8
};

/** Kinds of MRQ notices. */
enum utofu_mrq_notice_type {
    /** A put of this VCQ is complete. */
    UTOFU_MRQ_TYPE_LCL_PUT = 0,
    /** Someone has put data here. */
    UTOFU_MRQ_TYPE_RMT_PUT = 1,
    /** A get of this VCQ is complete. */
    UTOFU_MRQ_TYPE_LCL_GET = 2,
    /** Someone has fetched data from here. */
    UTOFU_MRQ_TYPE_RMT_GET = 3,
    /** An atomic operation of this VCQ is complete. */
    UTOFU_MRQ_TYPE_LCL_ARMW = 4,
    /** Someone has done an atomic operation here. */
    UTOFU_MRQ_TYPE_RMT_ARMW = 5
};

/* ---- structures ---- */

/** What a TNI can do in one-sided communication. */
struct utofu_onesided_caps {
    /** UTOFU_ONESIDED_CAP_FLAG_* bits. */
    unsigned long int flags;
    /** UTOFU_ONESIDED_CAP_ARMW_OP_* bits. */
    unsigned long int armw_ops;
    /** Number of component ids; valid ids lie below it. */
    unsigned int num_cmp_ids;
    /** Steering tags per component id for utofu_reg_mem_with_stag. */
    unsigned int num_reserved_stags;
    /** Cache line size in bytes. */
    size_t cache_line_size;
    /** Alignment in bytes asked of addresses in utofu_reg_mem_with_stag. */
    size_t stag_address_alignment;
    /** Largest size in bytes of one TOQ descriptor. */
    size_t max_toq_desc_size;
    /** Largest length in bytes of one put or get. */
    size_t max_putget_size;
    /** Largest length in bytes of one piggybacked put. */
    size_t max_piggyback_size;
    /** Width in bytes of edata. */
    size_t max_edata_size;
    /** Largest packet payload in bytes. */
    size_t max_mtu;
    /** Largest gap between packets, in units of the gap argument. */
    size_t max_gap;
};

/** What a TNI can do in barrier communication. */
struct utofu_barrier_caps {
    /** Reserved; 0. */
    unsigned long int flags;
    /** UTOFU_BARRIER_CAP_REDUCE_OP_* bits. */
    unsigned long int reduce_ops;
    /** Most uint64_t elements in one reduction. */
    size_t max_uint64_reduction;
    /** Most double elements in one reduction. */
    size_t max_double_reduction;
};

/** How one barrier gate is connected. */
struct utofu_vbg_setting {
    /** The gate of this process that is described. */
    utofu_vbg_id_t vbg_id;
    /** Gate of this process it waits for, or UTOFU_VBG_ID_NULL. */
    utofu_vbg_id_t src_lcl_vbg_id;
    /** Gate of another process it waits for, or UTOFU_VBG_ID_NULL. */
    utofu_vbg_id_t src_rmt_vbg_id;
    /** Gate of this process it signals, or UTOFU_VBG_ID_NULL. */
    utofu_vbg_id_t dst_lcl_vbg_id;
    /** Gate of another process it signals, or UTOFU_VBG_ID_NULL. */
    utofu_vbg_id_t dst_rmt_vbg_id;
    /** Path to the remote destination, or three times UTOFU_PATH_COORD_NULL. */
    uint8_t dst_path_coords[3];
};

/** One entry of a message receive queue; 64 bytes. */
struct utofu_mrq_notice {
    /** An enum utofu_mrq_notice_type. */
    uint8_t notice_type;
    /** Padding. */
    uint8_t padding[7];
    /** The VCQ on the other side, without a path. */
    utofu_vcq_id_t vcq_id;
    /** The edata given to the post. */
    uint64_t edata;
    /** LCL_ARMW only: the value before the operation. */
    uint64_t rmt_value;
    /** LCL_GET only: local STADD behind the data. */
    utofu_stadd_t lcl_stadd;
    /** Remote STADD behind the data (ARMW: of the data); not in LCL_GET. */
    utofu_stadd_t rmt_stadd;
    /** Reserved. */
    uint64_t reserved[2];
};

/* ---- queries ---- */

/** Lists the TNIs usable for one-sided communication; the caller frees *tni_ids.
    Errors: INVALID_POINTER, OUT_OF_MEMORY. */
int utofu_get_onesided_tnis(utofu_tni_id_t **tni_ids, size_t *num_tnis);
/** Lists the TNIs usable for barrier communication; the caller frees *tni_ids.
    Errors: INVALID_POINTER, OUT_OF_MEMORY. */
int utofu_get_barrier_tnis(utofu_tni_id_t **tni_ids, size_t *num_tnis);
/** Points *tni_caps to the library's own record; not to be freed.
    Errors: INVALID_POINTER, INVALID_TNI_ID. */
int utofu_query_onesided_caps(utofu_tni_id_t tni_id, struct utofu_onesided_caps **tni_caps);
/** Points *tni_caps to the library's own record; not to be freed.
    Errors: INVALID_POINTER, INVALID_TNI_ID. */
int utofu_query_barrier_caps(utofu_tni_id_t tni_id, struct utofu_barrier_caps **tni_caps);
/** Version of the interconnect. */
void utofu_query_tofu_version(int *major_ver, int *minor_ver);
/** Version of the interface that the library implements. */
void utofu_query_utofu_version(int *major_ver, int *minor_ver);
/** Coordinates x, y, z, a, b, c of this process's node. Errors: INVALID_POINTER. */
int utofu_query_my_coords(uint8_t coords[6]);

/* ---- virtual control queues ---- */

/** Creates a VCQ on a TNI. Errors: INVALID_POINTER, INVALID_TNI_ID, FULL. */
int utofu_create_vcq(utofu_tni_id_t tni_id, unsigned long int flags, utofu_vcq_hdl_t *vcq_hdl);
/** Creates the VCQ that has this component id.
    Errors: INVALID_POINTER, INVALID_TNI_ID, INVALID_CMP_ID, NOT_SUPPORTED, USED. */
int utofu_create_vcq_with_cmp_id(utofu_tni_id_t tni_id, utofu_cmp_id_t cmp_id,
                                 unsigned long int flags, utofu_vcq_hdl_t *vcq_hdl);
/** Frees a VCQ. Errors: INVALID_VCQ_HDL. */
int utofu_free_vcq(utofu_vcq_hdl_t vcq_hdl);
/** The VCQ's id, without a path. Errors: INVALID_VCQ_HDL, INVALID_POINTER. */
int utofu_query_vcq_id(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t *vcq_id);
/** Computes the id of any VCQ; nothing needs to exist there.
    Errors: INVALID_POINTER, INVALID_TNI_ID, INVALID_CQ_ID, INVALID_CMP_ID, INVALID_COORDS. */
int utofu_construct_vcq_id(uint8_t coords[6], utofu_tni_id_t tni_id, utofu_cq_id_t cq_id,
                           utofu_cmp_id_t cmp_id, utofu_vcq_id_t *vcq_id);
/** Sets the path in a VCQ id: to the given coordinates a, b, c or, if NULL, to a
    default one. Errors: INVALID_POINTER, INVALID_VCQ_ID, INVALID_PATH. */
int utofu_set_vcq_id_path(utofu_vcq_id_t *vcq_id, uint8_t path_coords[3]);
/** Takes a VCQ id apart; ignores the path.
    Errors: INVALID_POINTER, INVALID_VCQ_ID. */
int utofu_query_vcq_info(utofu_vcq_id_t vcq_id, uint8_t coords[6], utofu_tni_id_t *tni_id,
                         utofu_cq_id_t *cq_id, uint16_t *extra_val);

/* ---- paths ---- */

/** Path id of path coordinates towards a VCQ; NULL: of the path set in the id.
    Errors: INVALID_POINTER, INVALID_VCQ_ID, INVALID_PATH. */
int utofu_get_path_id(utofu_vcq_id_t vcq_id, uint8_t path_coords[3], utofu_path_id_t *path_id);
/** Path coordinates of a path id towards a VCQ. Errors: INVALID_POINTER, INVALID_VCQ_ID. */
int utofu_get_path_coords(utofu_vcq_id_t vcq_id, utofu_path_id_t path_id, uint8_t path_coords[3]);

/* ---- memory registration ---- */

/** Registers memory with the VCQ's CQ. Ranges inside pages already registered share
    a STADD. Errors: INVALID_VCQ_HDL, INVALID_ADDRESS, INVALID_SIZE, FULL. */
int utofu_reg_mem(utofu_vcq_hdl_t vcq_hdl, void *addr, size_t size, unsigned long int flags,
                  utofu_stadd_t *stadd);
/** Registers memory under a steering tag of the caller's choice, so that others can
    compute its STADD. Errors: INVALID_VCQ_HDL, INVALID_ADDRESS, INVALID_SIZE,
    INVALID_STAG. */
int utofu_reg_mem_with_stag(utofu_vcq_hdl_t vcq_hdl, void *addr, size_t size, unsigned int stag,
                            unsigned long int flags, utofu_stadd_t *stadd);
/** STADD of memory registered under a steering tag by the VCQ's owner.
    Errors: INVALID_VCQ_ID, INVALID_STAG. */
int utofu_query_stadd(utofu_vcq_id_t vcq_id, unsigned int stag, utofu_stadd_t *stadd);
/** Takes back one registration. Errors: INVALID_VCQ_HDL, INVALID_STADD. */
int utofu_dereg_mem(utofu_vcq_hdl_t vcq_hdl, utofu_stadd_t stadd, unsigned long int flags);

/* ---- one-sided operations ---- */

/*
 * Common to all: `flags` are UTOFU_ONESIDED_FLAG_* bits; `edata` comes back in the
 * notices; `cbdata` comes back from utofu_poll_tcq. A post returns BUSY when the
 * transmit order queue has no room. Implementations that check arguments return
 * INVALID_VCQ_HDL, INVALID_VCQ_ID, INVALID_STADD, INVALID_SIZE, INVALID_EDATA,
 * INVALID_NUMBER, INVALID_OP, INVALID_FLAGS or INVALID_POINTER.
 */

/** Writes local memory to the target. */
int utofu_put(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
              utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
              void *cbdata);
/** Put with a chosen packet payload (mtu, bytes) and gap between packets. */
int utofu_put_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                  utofu_stadd_t rmt_stadd, size_t length, uint64_t edata,
                  unsigned long int flags, size_t mtu, size_t gap, void *cbdata);
/** Puts num_blocks blocks; block i lies at i * stride on both sides. */
int utofu_put_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                     utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                     uint64_t edata, unsigned long int flags, void *cbdata);
/** Strided put with a chosen mtu and gap. */
int utofu_put_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                         utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, size_t length,
                         size_t stride, size_t num_blocks, uint64_t edata,
                         unsigned long int flags, size_t mtu, size_t gap, void *cbdata);
/** Put of up to max_piggyback_size bytes that travel in the descriptor; `data` needs
    no registration and may be reused at once. */
int utofu_put_piggyback(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, void *lcl_data,
                        utofu_stadd_t rmt_stadd, size_t length, uint64_t edata,
                        unsigned long int flags, void *cbdata);
/** Put of the `length` (at most 8) low bytes of a value. */
int utofu_put_piggyback8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t lcl_data,
                         utofu_stadd_t rmt_stadd, size_t length, uint64_t edata,
                         unsigned long int flags, void *cbdata);
/** Reads the target's memory. */
int utofu_get(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
              utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
              void *cbdata);
/** Get with a chosen mtu and gap. */
int utofu_get_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                  utofu_stadd_t rmt_stadd, size_t length, uint64_t edata,
                  unsigned long int flags, size_t mtu, size_t gap, void *cbdata);
/** Gets num_blocks blocks; block i lies at i * stride on both sides. */
int utofu_get_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                     utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                     uint64_t edata, unsigned long int flags, void *cbdata);
/** Strided get with a chosen mtu and gap. */
int utofu_get_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                         utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, size_t length,
                         size_t stride, size_t num_blocks, uint64_t edata,
                         unsigned long int flags, size_t mtu, size_t gap, void *cbdata);
/** Atomic operation on 4 bytes of the target. */
int utofu_armw4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                uint32_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata,
                unsigned long int flags, void *cbdata);
/** Atomic operation on 8 bytes of the target. */
int utofu_armw8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                uint64_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata,
                unsigned long int flags, void *cbdata);
/** Atomic compare and swap on 4 bytes of the target. */
int utofu_cswap4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint32_t old_value,
                 uint32_t new_value, utofu_stadd_t rmt_stadd, uint64_t edata,
                 unsigned long int flags, void *cbdata);
/** Atomic compare and swap on 8 bytes of the target. */
int utofu_cswap8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t old_value,
                 uint64_t new_value, utofu_stadd_t rmt_stadd, uint64_t edata,
                 unsigned long int flags, void *cbdata);
/** Occupies a queue entry and does nothing else. */
int utofu_nop(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void *cbdata);

/* ---- prepared descriptors ---- */

/*
 * Each function writes the descriptor that the function without `prepare_` would post to `desc`, and its size in
 * bytes to *desc_size. Consecutive descriptors can be posted together, and posted repeatedly.
 */

/** Descriptor of utofu_put. */
int utofu_prepare_put(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                      utofu_stadd_t rmt_stadd, size_t length, uint64_t edata,
                      unsigned long int flags, void *desc, size_t *desc_size);
/** Descriptor of utofu_put_gap. */
int utofu_prepare_put_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                          utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, size_t length,
                          uint64_t edata, unsigned long int flags, size_t mtu, size_t gap,
                          void *desc, size_t *desc_size);
/** Descriptors of utofu_put_stride. */
int utofu_prepare_put_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                             utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, size_t length,
                             size_t stride, size_t num_blocks, uint64_t edata,
                             unsigned long int flags, void *desc, size_t *desc_size);
/** Descriptors of utofu_put_stride_gap. */
int utofu_prepare_put_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                                 utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, size_t length,
                                 size_t stride, size_t num_blocks, uint64_t edata,
                                 unsigned long int flags, size_t mtu, size_t gap, void *desc,
                                 size_t *desc_size);
/** Descriptor of utofu_put_piggyback; contains the data. */
int utofu_prepare_put_piggyback(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                                void *lcl_data, utofu_stadd_t rmt_stadd, size_t length,
                                uint64_t edata, unsigned long int flags, void *desc,
                                size_t *desc_size);
/** Descriptor of utofu_put_piggyback8; contains the data. */
int utofu_prepare_put_piggyback8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                                 uint64_t lcl_data, utofu_stadd_t rmt_stadd, size_t length,
                                 uint64_t edata, unsigned long int flags, void *desc,
                                 size_t *desc_size);
/** Descriptor of utofu_get. */
int utofu_prepare_get(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                      utofu_stadd_t rmt_stadd, size_t length, uint64_t edata,
                      unsigned long int flags, void *desc, size_t *desc_size);
/** Descriptor of utofu_get_gap. */
int utofu_prepare_get_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                          utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, size_t length,
                          uint64_t edata, unsigned long int flags, size_t mtu, size_t gap,
                          void *desc, size_t *desc_size);
/** Descriptors of utofu_get_stride. */
int utofu_prepare_get_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                             utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, size_t length,
                             size_t stride, size_t num_blocks, uint64_t edata,
                             unsigned long int flags, void *desc, size_t *desc_size);
/** Descriptors of utofu_get_stride_gap. */
int utofu_prepare_get_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                                 utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, size_t length,
                                 size_t stride, size_t num_blocks, uint64_t edata,
                                 unsigned long int flags, size_t mtu, size_t gap, void *desc,
                                 size_t *desc_size);
/** Descriptor of utofu_armw4. */
int utofu_prepare_armw4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                        enum utofu_armw_op armw_op, uint32_t op_value, utofu_stadd_t rmt_stadd,
                        uint64_t edata, unsigned long int flags, void *desc, size_t *desc_size);
/** Descriptor of utofu_armw8. */
int utofu_prepare_armw8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id,
                        enum utofu_armw_op armw_op, uint64_t op_value, utofu_stadd_t rmt_stadd,
                        uint64_t edata, unsigned long int flags, void *desc, size_t *desc_size);
/** Descriptor of utofu_cswap4. */
int utofu_prepare_cswap4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint32_t old_value,
                         uint32_t new_value, utofu_stadd_t rmt_stadd, uint64_t edata,
                         unsigned long int flags, void *desc, size_t *desc_size);
/** Descriptor of utofu_cswap8. */
int utofu_prepare_cswap8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t old_value,
                         uint64_t new_value, utofu_stadd_t rmt_stadd, uint64_t edata,
                         unsigned long int flags, void *desc, size_t *desc_size);
/** Descriptor of utofu_nop. */
int utofu_prepare_nop(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void *desc,
                      size_t *desc_size);
/** Posts desc_size bytes of prepared descriptors. Errors: BUSY, INVALID_DESC. */
int utofu_post_toq(utofu_vcq_hdl_t vcq_hdl, void *desc, size_t desc_size, void *cbdata);

/* ---- completion queues ---- */

/** Takes the oldest noticed completion from the TCQ. Must be called from time to time
    even if no notice was asked for: only polling gives queue entries back.
    Errors: NOT_FOUND (cbdata untouched), TCQ_* (cbdata is that of the failed post). */
int utofu_poll_tcq(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void **cbdata);
/** Takes the oldest notice from the MRQ. Errors: NOT_FOUND (notice untouched), MRQ_*. */
int utofu_poll_mrq(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags,
                   struct utofu_mrq_notice *notice);
/** Number of posted TOQ entries that polling has not passed yet. */
int utofu_query_num_unread_tcq(utofu_vcq_hdl_t vcq_hdl, size_t *count);
/** Number of local MRQ entries of own operations that polling has not passed yet. */
int utofu_query_num_unread_mrq(utofu_vcq_hdl_t vcq_hdl, size_t *count);

/* ---- barrier gates ---- */

/** Allocates one start/end gate (element 0) and num_vbgs - 1 relay gates.
    Errors: INVALID_POINTER, INVALID_TNI_ID, INVALID_NUMBER, FULL. */
int utofu_alloc_vbg(utofu_tni_id_t tni_id, size_t num_vbgs, unsigned long int flags,
                    utofu_vbg_id_t vbg_ids[]);
/** Frees what one utofu_alloc_vbg gave. Errors: INVALID_VBG_ID, INVALID_NUMBER. */
int utofu_free_vbg(utofu_vbg_id_t vbg_ids[], size_t num_vbgs);
/** Connects gates. Errors: INVALID_VBG_ID, INVALID_NUMBER, INVALID_PATH. */
int utofu_set_vbg(struct utofu_vbg_setting vbg_settings[], size_t num_vbg_settings);
/** Takes a gate id apart. Errors: INVALID_POINTER, INVALID_VBG_ID. */
int utofu_query_vbg_info(utofu_vbg_id_t vbg_id, uint8_t coords[6], utofu_tni_id_t *tni_id,
                         utofu_bg_id_t *bg_id, uint16_t *extra_val);
/** Starts a barrier on a start/end gate. Errors: BUSY, INVALID_VBG_ID. */
int utofu_barrier(utofu_vbg_id_t vbg_id, unsigned long int flags);
/** Starts a reduction of integers. Errors: BUSY, INVALID_VBG_ID, INVALID_OP,
    INVALID_NUMBER. */
int utofu_reduce_uint64(utofu_vbg_id_t vbg_id, enum utofu_reduce_op op, uint64_t data[],
                        size_t num_data, unsigned long int flags);
/** Starts a reduction of doubles. Errors: BUSY, INVALID_VBG_ID, INVALID_OP,
    INVALID_NUMBER. */
int utofu_reduce_double(utofu_vbg_id_t vbg_id, enum utofu_reduce_op op, double data[],
                        size_t num_data, unsigned long int flags);
/** Looks whether the barrier is over. Errors: NOT_COMPLETED, BUSY (nothing is in
    flight), BARRIER_*. */
int utofu_poll_barrier(utofu_vbg_id_t vbg_id, unsigned long int flags);
/** Looks whether the integer reduction is over; writes the result when it is.
    Errors: NOT_COMPLETED, BUSY (nothing is in flight), BARRIER_*. */
int utofu_poll_reduce_uint64(utofu_vbg_id_t vbg_id, unsigned long int flags, uint64_t data[]);
/** Looks whether the floating-point reduction is over; writes the result when it is.
    Errors: NOT_COMPLETED, BUSY (nothing is in flight), BARRIER_*. */
int utofu_poll_reduce_double(utofu_vbg_id_t vbg_id, unsigned long int flags, double data[]);

#ifdef __cplusplus
}
#endif

#endif /* UTOFU_H */
