//! Capabilities of a library and its TNIs, as plain values.

use core::ffi::c_int;
use core::fmt;

use utofu_sys::*;
pub use utofu_sys::{utofu_barrier_caps as BarrierCaps, utofu_onesided_caps as OnesidedCaps};

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
    /// Grows with additions that stay compatible.
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

/// Common signature of the two functions that list TNIs.
type ListTnis = unsafe extern "C" fn(*mut *mut utofu_tni_id_t, *mut usize) -> c_int;

impl Api {
    /// The TNIs usable for one-sided communication.
    ///
    /// # Errors
    /// The library's code, `OUT_OF_MEMORY` for instance.
    pub fn onesided_tnis(&self) -> Result<Vec<Tni>, UtofuError> {
        list_tnis(self, "utofu_get_onesided_tnis", self.utofu_get_onesided_tnis)
    }

    /// The TNIs usable for barrier communication.
    ///
    /// # Errors
    /// The library's code, `OUT_OF_MEMORY` for instance.
    pub fn barrier_tnis(&self) -> Result<Vec<Tni>, UtofuError> {
        list_tnis(self, "utofu_get_barrier_tnis", self.utofu_get_barrier_tnis)
    }

    /// One-sided capabilities of a TNI.
    ///
    /// # Errors
    /// `INVALID_TNI_ID`.
    pub fn onesided_caps(&self, tni: Tni) -> Result<OnesidedCaps, UtofuError> {
        let mut caps = core::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        let code = unsafe { (self.utofu_query_onesided_caps)(tni, &mut caps) };
        self.check("utofu_query_onesided_caps", code)?;
        // SAFETY: on success it points to the library's record, which lives as long as the library.
        Ok(unsafe { *caps })
    }

    /// Barrier capabilities of a TNI.
    ///
    /// # Errors
    /// `INVALID_TNI_ID`.
    pub fn barrier_caps(&self, tni: Tni) -> Result<BarrierCaps, UtofuError> {
        let mut caps = core::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        let code = unsafe { (self.utofu_query_barrier_caps)(tni, &mut caps) };
        self.check("utofu_query_barrier_caps", code)?;
        // SAFETY: on success it points to the library's record, which lives as long as the library.
        Ok(unsafe { *caps })
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
    /// The library's code if it does not know the node.
    pub fn my_coords(&self) -> Result<Coords, UtofuError> {
        self.call_with_out("utofu_query_my_coords", |coords: &mut Coords| {
            // SAFETY: the array has the six elements that are written.
            unsafe { (self.utofu_query_my_coords)(coords.as_mut_ptr()) }
        })
    }
}

fn list_tnis(api: &Api, call: &'static str, list: ListTnis) -> Result<Vec<Tni>, UtofuError> {
    let (mut ids, mut n) = (core::ptr::null_mut(), 0);
    // SAFETY: both pointers are valid for the call.
    api.check(call, unsafe { list(&mut ids, &mut n) })?;
    if ids.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: on success ids points to n elements, which belong to the caller.
    let tnis = unsafe { core::slice::from_raw_parts(ids, n) }.to_vec();
    // SAFETY: the list comes from malloc and belongs to the caller; nothing uses it from here on.
    unsafe { libc::free(ids.cast()) };
    Ok(tnis)
}
