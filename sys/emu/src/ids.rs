//! VCQ ids, gate ids, path ids and STADDs as numbers.
//!
//! Ids are computed, not handed out: everyone can construct the id of any place in the system.
//! The encodings are this emulator's own; programs must not look inside.

use crate::error::{Code, Result, fail};
use crate::layout::{CQS, FIRST_EXTRA, PLACES, TNIS};
use utofu_abi::*;

/// Coordinates x, y, z, a, b, c of a node.
pub(crate) type Coords = [u8; 6];

/// Sizes of a, b and c.
pub(crate) const ABC: [u8; 3] = [2, 3, 2];

/// Component ids of a TNI.
pub(crate) const CMP_IDS: u16 = 8;

/// Coordinates as one number below 2^28.
pub(crate) fn pack_coords(c: Coords) -> u64 {
    u64::from(c[0])
        | u64::from(c[1]) << 8
        | u64::from(c[2]) << 16
        | u64::from(c[3]) << 24
        | u64::from(c[4]) << 25
        | u64::from(c[5]) << 27
}

fn unpack_coords(v: u64) -> Option<Coords> {
    let c = [
        v as u8,
        (v >> 8) as u8,
        (v >> 16) as u8,
        (v >> 24 & 1) as u8,
        (v >> 25 & 3) as u8,
        (v >> 27 & 1) as u8,
    ];
    (c[4] < ABC[1]).then_some(c)
}

/// Whether a, b, c are within their sizes; x, y, z may be anything.
pub(crate) fn coords_ok(c: Coords) -> bool {
    (0..3).all(|i| c[3 + i] < ABC[i])
}

const TNI_AT: u32 = 28;
const CQ_AT: u32 = 31;
const EXTRA_AT: u32 = 35;
const PATH_AT: u32 = 39;
const CHOSEN: u64 = 1 << 43;
/// Coordinates, TNI, CQ and extra value: what decides where a packet goes.
const PLACE_BITS: u64 = (1 << PATH_AT) - 1;

/// A VCQ's place in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VcqPlace {
    pub(crate) coords: Coords,
    pub(crate) tni: u8,
    pub(crate) cq: u8,
    pub(crate) extra: u8,
}

impl VcqPlace {
    /// The id without a path.
    pub(crate) fn id(self) -> utofu_vcq_id_t {
        pack_coords(self.coords)
            | u64::from(self.tni) << TNI_AT
            | u64::from(self.cq) << CQ_AT
            | u64::from(self.extra) << EXTRA_AT
    }

    /// The place in an id.
    #[inline]
    pub(crate) fn of(id: utofu_vcq_id_t) -> Result<VcqPlace> {
        let place = VcqPlace {
            coords: unpack_coords(id).ok_or(Code(UTOFU_ERR_INVALID_VCQ_ID))?,
            tni: (id >> TNI_AT & 7) as u8,
            cq: (id >> CQ_AT & 15) as u8,
            extra: (id >> EXTRA_AT & 15) as u8,
        };
        if usize::from(place.tni) < TNIS
            && usize::from(place.cq) < CQS
            && place.extra >= FIRST_EXTRA
            && id >> 44 == 0
        {
            Ok(place)
        } else {
            fail(UTOFU_ERR_INVALID_VCQ_ID, format!("{id:#x} is not the id of a VCQ"))
        }
    }

    /// Which of its CQ's VCQs it is.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.extra - FIRST_EXTRA) % PLACES
    }
}

/// The id without its path, which equals the id that the owner queries.
#[inline]
pub(crate) fn without_path(id: utofu_vcq_id_t) -> utofu_vcq_id_t {
    id & PLACE_BITS
}

/// The part of the id that names the node.
#[inline]
pub(crate) fn node_key(id: u64) -> u32 {
    (id & ((1 << TNI_AT) - 1)) as u32
}

/// Path coordinates -> path id relative to the target.
pub(crate) fn path_id(target: Coords, path: [u8; 3]) -> Result<utofu_path_id_t> {
    if (0..3).any(|i| path[i] >= ABC[i]) {
        return fail(
            UTOFU_ERR_INVALID_PATH,
            format!("path coordinates {path:?} are out of range (below 2, 3, 2)"),
        );
    }
    Ok((path[0] ^ target[3]) | (path[1] ^ target[4]) << 1 | (path[2] ^ target[5]) << 3)
}

/// The inverse of [`path_id`]; accepts any number.
pub(crate) fn path_coords(target: Coords, id: utofu_path_id_t) -> [u8; 3] {
    [(id & 1) ^ target[3], (id >> 1 & 3) ^ target[4], (id >> 3 & 1) ^ target[5]]
}

/// The path that an id carries.
pub(crate) fn path_in(id: utofu_vcq_id_t) -> utofu_path_id_t {
    (id >> PATH_AT & 15) as u8
}

/// The id with an explicit path.
pub(crate) fn with_path(id: utofu_vcq_id_t, path: utofu_path_id_t) -> utofu_vcq_id_t {
    without_path(id) | u64::from(path & 15) << PATH_AT
}

/// The id with a default path chosen: path id 0, and a mark that a choice was made.
pub(crate) fn with_default_path(id: utofu_vcq_id_t) -> utofu_vcq_id_t {
    without_path(id) | CHOSEN
}

/// Marks gate ids, so that they are never mistaken for VCQ ids.
const GATE_MARK: u64 = 1 << 62;
const GATE_AT: u32 = 31;
const SERIAL_AT: u32 = 40;

/// A gate's place in the system. `serial` tells the jobs of one process apart, because calls
/// on gates have nothing but the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GatePlace {
    pub(crate) coords: Coords,
    pub(crate) tni: u8,
    pub(crate) gate: u8,
    pub(crate) serial: u16,
}

impl GatePlace {
    pub(crate) fn id(self) -> utofu_vbg_id_t {
        GATE_MARK
            | pack_coords(self.coords)
            | u64::from(self.tni) << TNI_AT
            | u64::from(self.gate) << GATE_AT
            | u64::from(self.serial) << SERIAL_AT
    }

    pub(crate) fn of(id: utofu_vbg_id_t) -> Result<GatePlace> {
        let place = unpack_coords(id).map(|coords| GatePlace {
            coords,
            tni: (id >> TNI_AT & 7) as u8,
            gate: (id >> GATE_AT & 63) as u8,
            serial: (id >> SERIAL_AT) as u16,
        });
        match place {
            // What was taken apart must give the same id again: no unknown bits are set.
            Some(p) if usize::from(p.tni) < TNIS && p.id() == id => Ok(p),
            _ => fail(UTOFU_ERR_INVALID_VBG_ID, format!("{id:#x} is not the id of a gate")),
        }
    }
}

/// Where the STag begins in a STADD; below it is the offset.
pub(crate) const STAG_AT: u32 = 40;
/// Offsets are below this.
pub(crate) const OFFSET_MASK: u64 = (1 << STAG_AT) - 1;
/// STags below this belong to user STags.
pub(crate) const FIRST_DYNAMIC: u64 = 4096;
/// User STags of each VCQ.
pub(crate) const USER_STAGS: u32 = 256;

/// The STADD of a user STag of the VCQ with this extra value.
pub(crate) fn user_stadd(extra: u8, stag: u32) -> Result<utofu_stadd_t> {
    if stag >= USER_STAGS {
        return fail(UTOFU_ERR_INVALID_STAG, format!("STag {stag}: must be below {USER_STAGS}"));
    }
    Ok((u64::from(extra) * u64::from(USER_STAGS) + u64::from(stag)) << STAG_AT)
}

#[cfg(test)]
#[path = "ids_tests.rs"]
mod tests;
