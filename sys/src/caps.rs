//! What a library and its TNIs can do, as plain values.

use core::ffi::c_int;
use core::fmt;

use utofu_sys::*;

use crate::{Api, UtofuError};

/// Number of a Tofu network interface (TNI) of the node.
pub type Tni = utofu_tni_id_t;

/// Physical coordinates x, y, z, a, b, c in the six-dimensional network.
pub type Coords = [u8; 6];

/// A version of the interface or of the interconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Programs of different major versions are not compatible.
    pub major: c_int,
    /// Grows with additions.
    pub minor: c_int,
}

impl Version {
    /// The version of the header that this crate was built from.
    pub const DECLARED: Version =
        Version { major: UTOFU_VERSION_MAJOR, minor: UTOFU_VERSION_MINOR };
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a TNI can do in one-sided communication. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnesidedCaps {
    /// `UTOFU_ONESIDED_CAP_FLAG_*` bits.
    pub flags: u64,
    /// `UTOFU_ONESIDED_CAP_ARMW_OP_*` bits.
    pub armw_ops: u64,
    /// Component ids are `0..num_cmp_ids`.
    pub num_cmp_ids: u32,
    /// Steering tags of a component id are `0..num_reserved_stags`.
    pub num_reserved_stags: u32,
    /// Cache line.
    pub cache_line_size: usize,
    /// Alignment asked of memory registered under a chosen steering tag.
    pub stag_address_alignment: usize,
    /// Longest single descriptor.
    pub max_toq_desc_size: usize,
    /// Longest put or get.
    pub max_putget_size: usize,
    /// Longest piggybacked put.
    pub max_piggyback_size: usize,
    /// Width of edata.
    pub max_edata_size: usize,
    /// Largest packet payload.
    pub max_mtu: usize,
    /// Largest gap between packets, in the gap parameter's unit.
    pub max_gap: usize,
}

/// What a TNI can do in barrier communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierCaps {
    /// `UTOFU_BARRIER_CAP_REDUCE_OP_*` bits.
    pub reduce_ops: u64,
    /// Most `u64` elements in one reduction.
    pub max_uint64_reduction: usize,
    /// Most `f64` elements in one reduction.
    pub max_double_reduction: usize,
}

/// The signature that both functions listing TNIs have.
type ListTnis = unsafe extern "C" fn(*mut *mut utofu_tni_id_t, *mut usize) -> c_int;

impl Api {
    /// The TNIs usable for one-sided communication.
    ///
    /// # Errors
    /// What the library returns, `OUT_OF_MEMORY` for instance.
    pub fn onesided_tnis(&self) -> Result<Vec<Tni>, UtofuError> {
        list_tnis(self, "utofu_get_onesided_tnis", self.utofu_get_onesided_tnis)
    }

    /// The TNIs usable for barrier communication.
    ///
    /// # Errors
    /// What the library returns, `OUT_OF_MEMORY` for instance.
    pub fn barrier_tnis(&self) -> Result<Vec<Tni>, UtofuError> {
        list_tnis(self, "utofu_get_barrier_tnis", self.utofu_get_barrier_tnis)
    }

    /// One-sided capabilities of a TNI.
    ///
    /// # Errors
    /// `INVALID_TNI_ID`.
    pub fn onesided_caps(&self, tni: Tni) -> Result<OnesidedCaps, UtofuError> {
        let mut p = core::ptr::null_mut();
        // SAFETY: p is a valid place for the result.
        let code = unsafe { (self.utofu_query_onesided_caps)(tni, &mut p) };
        self.check("utofu_query_onesided_caps", code)?;
        // SAFETY: on success p points to the library's record, which lives as long as the library.
        let c = unsafe { &*p };
        Ok(OnesidedCaps {
            flags: c.flags,
            armw_ops: c.armw_ops,
            num_cmp_ids: c.num_cmp_ids,
            num_reserved_stags: c.num_reserved_stags,
            cache_line_size: c.cache_line_size,
            stag_address_alignment: c.stag_address_alignment,
            max_toq_desc_size: c.max_toq_desc_size,
            max_putget_size: c.max_putget_size,
            max_piggyback_size: c.max_piggyback_size,
            max_edata_size: c.max_edata_size,
            max_mtu: c.max_mtu,
            max_gap: c.max_gap,
        })
    }

    /// Barrier capabilities of a TNI.
    ///
    /// # Errors
    /// `INVALID_TNI_ID`.
    pub fn barrier_caps(&self, tni: Tni) -> Result<BarrierCaps, UtofuError> {
        let mut p = core::ptr::null_mut();
        // SAFETY: p is a valid place for the result.
        let code = unsafe { (self.utofu_query_barrier_caps)(tni, &mut p) };
        self.check("utofu_query_barrier_caps", code)?;
        // SAFETY: on success p points to the library's record, which lives as long as the library.
        let c = unsafe { &*p };
        Ok(BarrierCaps {
            reduce_ops: c.reduce_ops,
            max_uint64_reduction: c.max_uint64_reduction,
            max_double_reduction: c.max_double_reduction,
        })
    }

    /// Version of the interface that the library implements.
    #[must_use]
    pub fn utofu_version(&self) -> Version {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid for the call.
        unsafe { (self.utofu_query_utofu_version)(&mut major, &mut minor) };
        Version { major, minor }
    }

    /// Version of the interconnect.
    #[must_use]
    pub fn tofu_version(&self) -> Version {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid for the call.
        unsafe { (self.utofu_query_tofu_version)(&mut major, &mut minor) };
        Version { major, minor }
    }

    /// Coordinates of the calling process's node.
    ///
    /// # Errors
    /// What the library returns where it does not know the node.
    pub fn my_coords(&self) -> Result<Coords, UtofuError> {
        let mut coords = [0; 6];
        // SAFETY: the array has the six elements that are written.
        let code = unsafe { (self.utofu_query_my_coords)(coords.as_mut_ptr()) };
        self.check("utofu_query_my_coords", code)?;
        Ok(coords)
    }
}

fn list_tnis(api: &Api, call: &'static str, list: ListTnis) -> Result<Vec<Tni>, UtofuError> {
    let (mut ids, mut n) = (core::ptr::null_mut(), 0);
    // SAFETY: both pointers are valid for the call.
    api.check(call, unsafe { list(&mut ids, &mut n) })?;
    if ids.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: on success ids points to n elements of the caller's own.
    let tnis = unsafe { core::slice::from_raw_parts(ids, n) }.to_vec();
    // SAFETY: the interface hands over memory from malloc, used no more from here on.
    unsafe { libc::free(ids.cast()) };
    Ok(tnis)
}
