//! Identifiers of VCQs and of registered memory, as ranks exchange them.

use core::fmt;
use core::hash::{Hash, Hasher};

use utofu_sys::*;

use crate::{Api, Coords, Tni, UtofuError};

/// The parts of a VCQ id that identify the VCQ: all except the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VcqInfo {
    /// The node.
    pub coords: Coords,
    /// The TNI.
    pub tni: Tni,
    /// The control queue.
    pub cq: u16,
    /// Index within the control queue; 8 + component id for VCQs with a component id.
    pub extra: u16,
}

/// System-wide identifier of a VCQ.
///
/// The number also carries the path of packets to the VCQ, so two different numbers may name the same VCQ. Therefore
/// only [`VcqInfo`] is compared and hashed.
#[derive(Clone, Copy)]
pub struct VcqId {
    raw: utofu_vcq_id_t,
    info: VcqInfo,
}

impl VcqId {
    /// Decodes a number that another rank has sent.
    ///
    /// # Errors
    /// `INVALID_VCQ_ID` if the number does not name a VCQ.
    pub fn from_raw(api: &Api, raw: utofu_vcq_id_t) -> Result<VcqId, UtofuError> {
        let mut info = VcqInfo { coords: [0; 6], tni: 0, cq: 0, extra: 0 };
        // SAFETY: all results have valid places; coords has its six elements.
        let code = unsafe {
            (api.utofu_query_vcq_info)(
                raw,
                info.coords.as_mut_ptr(),
                &mut info.tni,
                &mut info.cq,
                &mut info.extra,
            )
        };
        api.check("utofu_query_vcq_info", code)?;
        Ok(VcqId { raw, info })
    }

    /// Computes the id of a VCQ with a component id; the VCQ need not exist.
    ///
    /// # Errors
    /// `INVALID_TNI_ID`, `INVALID_CQ_ID`, `INVALID_CMP_ID`, `INVALID_COORDS`.
    pub fn construct(
        api: &Api,
        mut coords: Coords,
        tni: Tni,
        cq: u16,
        cmp_id: u16,
    ) -> Result<VcqId, UtofuError> {
        let raw = api.call_with_out("utofu_construct_vcq_id", |raw| {
            // SAFETY: coords has six elements and raw is a valid place.
            unsafe { (api.utofu_construct_vcq_id)(coords.as_mut_ptr(), tni, cq, cmp_id, raw) }
        })?;
        VcqId::from_raw(api, raw)
    }

    /// The id as a number, to send to other ranks or to post with.
    #[must_use]
    pub fn raw(&self) -> utofu_vcq_id_t {
        self.raw
    }

    /// Node, TNI, CQ and index within the CQ.
    #[must_use]
    pub fn info(&self) -> VcqInfo {
        self.info
    }

    /// The same VCQ along the library's default path.
    ///
    /// # Errors
    /// `INVALID_VCQ_ID`.
    pub fn with_default_path(&self, api: &Api) -> Result<VcqId, UtofuError> {
        self.set_path(api, core::ptr::null_mut())
    }

    /// The same VCQ along the path through coordinates a, b, c.
    ///
    /// # Errors
    /// `INVALID_PATH` if a coordinate is out of range (a < 2, b < 3, c < 2).
    pub fn with_path(&self, api: &Api, mut path: [u8; 3]) -> Result<VcqId, UtofuError> {
        self.set_path(api, path.as_mut_ptr())
    }

    fn set_path(&self, api: &Api, path: *mut u8) -> Result<VcqId, UtofuError> {
        let mut raw = self.raw;
        // SAFETY: raw is a valid place; path is null or has three elements.
        let code = unsafe { (api.utofu_set_vcq_id_path)(&mut raw, path) };
        api.check("utofu_set_vcq_id_path", code)?;
        Ok(VcqId { raw, info: self.info })
    }

    /// STADD of the memory that the VCQ's owner registered under a steering tag.
    ///
    /// # Errors
    /// `INVALID_STAG` if the tag is not below `num_reserved_stags`.
    pub fn stadd_of_stag(&self, api: &Api, stag: u32) -> Result<Stadd, UtofuError> {
        let stadd = api.call_with_out("utofu_query_stadd", |stadd| {
            // SAFETY: stadd is a valid place.
            unsafe { (api.utofu_query_stadd)(self.raw, stag, stadd) }
        });
        stadd.map(Stadd)
    }
}

impl PartialEq for VcqId {
    fn eq(&self, other: &VcqId) -> bool {
        self.info == other.info
    }
}

impl Eq for VcqId {}

impl Hash for VcqId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.info.hash(state);
    }
}

impl fmt::Debug for VcqId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VcqId({self})")
    }
}

impl fmt::Display for VcqId {
    /// For instance `3.4.5.1.2.1 tni 4 cq 7 place 13`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VcqInfo { coords: [x, y, z, a, b, c], tni, cq, extra } = self.info;
        write!(f, "{x}.{y}.{z}.{a}.{b}.{c} tni {tni} cq {cq} place {extra}")
    }
}

/// System-wide address of registered memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Stadd(pub utofu_stadd_t);

impl Stadd {
    /// The address `bytes` further on; wraps around modulo 2^64.
    #[must_use]
    pub const fn add(self, bytes: u64) -> Stadd {
        Stadd(self.0.wrapping_add(bytes))
    }

    /// The address `bytes` further back; wraps around modulo 2^64.
    #[must_use]
    pub const fn sub(self, bytes: u64) -> Stadd {
        Stadd(self.0.wrapping_sub(bytes))
    }

    /// Offset from `base` in bytes; None if this address lies before `base`.
    #[must_use]
    pub const fn offset_from(self, base: Stadd) -> Option<u64> {
        self.0.checked_sub(base.0)
    }
}

impl core::ops::Add<u64> for Stadd {
    type Output = Stadd;

    fn add(self, bytes: u64) -> Stadd {
        Stadd::add(self, bytes)
    }
}

impl fmt::Display for Stadd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The caller's value for an operation; the operation's completion returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cookie(pub usize);

#[cfg(test)]
mod tests {
    use super::*;

    fn id(raw: u64, extra: u16) -> VcqId {
        VcqId { raw, info: VcqInfo { coords: [1, 2, 3, 0, 1, 1], tni: 2, cq: 4, extra } }
    }

    #[test]
    fn the_path_does_not_count_in_comparisons() {
        use std::collections::HashSet;
        assert_eq!(id(0x10, 8), id(0x90, 8));
        assert_ne!(id(0x10, 8), id(0x10, 9));
        assert_eq!(HashSet::from([id(0x10, 8), id(0x90, 8), id(0x10, 9)]).len(), 2);
    }

    #[test]
    fn stadd_arithmetic_counts_bytes() {
        let base = Stadd(4096 << 40);
        assert_eq!((base + 5).offset_from(base), Some(5));
        assert_eq!(base.offset_from(base + 5), None);
        assert_eq!((base + 5).sub(5), base);
    }
}
