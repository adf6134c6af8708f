//! VCQ ids, gate ids, path ids and STADDs as numbers.
//!
//! Ids are computed, not allocated: every program can construct the id of any place in the system. Programs should
//! not interpret ids, but some do, so the encodings are those of Fujitsu's library:
//!
//! | bits | of a VCQ id | of a gate id |
//! | --- | --- | --- |
//! | 0.. | CQ | gate (6 bits) |
//! | 24.. | component id | |
//! | 28..32 | path id | |
//! | 32, 40, 48 | x, y, z | x, y, z |
//! | 56, 57, 59 | a, b, c | a, b, c |
//! | 61.. | TNI | TNI |
//!
//! The remaining bits hold marks of the emulator, which are 0 in the ids that a program constructs.

use crate::limits::error::{Result, fail};
use crate::limits::{CQS, FIRST_EXTRA, TNIS, VCQS};
use utofu_sys::*;

/// Coordinates x, y, z, a, b, c of a node.
pub(crate) type Coords = [u8; 6];

/// Sizes of a, b and c.
pub(crate) const ABC: [u8; 3] = [2, 3, 2];

/// Component ids of a TNI.
pub(crate) const CMP_IDS: u16 = 8;

/// First bit of the coordinates in both kinds of ids.
const COORDS_AT: u32 = 32;
const TNI_AT: u32 = 61;

/// Returns coordinates as one number below 2^28, encoded as in ids from bit [`COORDS_AT`] on.
pub(crate) fn pack_coords(c: Coords) -> u32 {
    u32::from(c[0])
        | u32::from(c[1]) << 8
        | u32::from(c[2]) << 16
        | u32::from(c[3]) << 24
        | u32::from(c[4]) << 25
        | u32::from(c[5]) << 27
}

/// Returns the coordinates in an id, encoded as by [`pack_coords`]; 2^28 or more if c is out of range.
#[inline]
pub(crate) fn node_key(id: u64) -> u32 {
    (id >> COORDS_AT) as u32 & ((1 << (TNI_AT - COORDS_AT)) - 1)
}

fn unpack_coords(id: u64) -> Option<Coords> {
    let v = node_key(id);
    let c = [
        v as u8,
        (v >> 8) as u8,
        (v >> 16) as u8,
        (v >> 24 & 1) as u8,
        (v >> 25 & 3) as u8,
        (v >> 27) as u8,
    ];
    coords_ok(c).then_some(c)
}

/// Returns whether a, b, c are within their sizes; x, y, z may have any value.
pub(crate) fn coords_ok(c: Coords) -> bool {
    (0..3).all(|i| c[3 + i] < ABC[i])
}

const CMP_AT: u32 = 24;
const PATH_AT: u32 = 28;
const PATH_BITS: u64 = 15 << PATH_AT;
/// Mark in an id for which a default path was chosen.
const DEFAULT_PATH: u64 = 1 << 23;

/// Position of a TNI in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TniPlace {
    pub(crate) coords: Coords,
    pub(crate) number: u8,
}

impl TniPlace {
    /// Returns the highest bits of all ids of VCQs and gates of this TNI.
    fn bits(self) -> u64 {
        u64::from(pack_coords(self.coords)) << COORDS_AT | u64::from(self.number) << TNI_AT
    }

    /// Returns the position in an id; `None` if the system has no such TNI.
    #[inline]
    fn of(id: u64) -> Option<TniPlace> {
        let number = (id >> TNI_AT) as u8;
        let coords = unpack_coords(id).filter(|_| usize::from(number) < TNIS)?;
        Some(TniPlace { coords, number })
    }
}

/// Position of a VCQ in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VcqPlace {
    pub(crate) tni: TniPlace,
    pub(crate) cq: u8,
    pub(crate) extra: u8,
}

impl VcqPlace {
    /// Returns the id without a path.
    pub(crate) fn id(self) -> utofu_vcq_id_t {
        u64::from(self.cq) | u64::from(self.extra - FIRST_EXTRA) << CMP_AT | self.tni.bits()
    }

    /// Returns the position in an id, or INVALID_VCQ_ID.
    #[inline]
    pub(crate) fn of(id: utofu_vcq_id_t) -> Result<VcqPlace> {
        let (cq, extra) = ((id & 15) as u8, FIRST_EXTRA + (id >> CMP_AT & 7) as u8);
        let place = TniPlace::of(id).map(|tni| VcqPlace { tni, cq, extra });
        match place {
            // The comparison with the rebuilt id rejects ids with unknown bits.
            Some(place) if usize::from(cq) < CQS && place.id() == without_path(id) => Ok(place),
            _ => fail(UTOFU_ERR_INVALID_VCQ_ID, format!("{id:#x} is not the id of a VCQ")),
        }
    }

    /// Returns the index of the VCQ among those of its CQ.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.extra - FIRST_EXTRA) % VCQS
    }
}

/// Returns the id without its path, which equals the id that the owner queries.
#[inline]
pub(crate) fn without_path(id: utofu_vcq_id_t) -> utofu_vcq_id_t {
    id & !(PATH_BITS | DEFAULT_PATH)
}

/// Converts path coordinates to a path id, which is relative to the target.
pub(crate) fn path_id(target: Coords, path: [u8; 3]) -> Result<utofu_path_id_t> {
    if (0..3).any(|i| path[i] >= ABC[i]) {
        return fail(
            UTOFU_ERR_INVALID_PATH,
            format!("path coordinates {path:?} are out of range (below 2, 3, 2)"),
        );
    }
    Ok((path[0] ^ target[3]) | (path[1] ^ target[4]) << 1 | (path[2] ^ target[5]) << 3)
}

/// Inverse of [`path_id`]; accepts any number.
pub(crate) fn path_coords(target: Coords, id: utofu_path_id_t) -> [u8; 3] {
    [(id & 1) ^ target[3], (id >> 1 & 3) ^ target[4], (id >> 3 & 1) ^ target[5]]
}

/// Returns the path id in a VCQ id.
pub(crate) fn path_in(id: utofu_vcq_id_t) -> utofu_path_id_t {
    (id >> PATH_AT & 15) as u8
}

/// Returns the id with an explicit path.
pub(crate) fn with_path(id: utofu_vcq_id_t, path: utofu_path_id_t) -> utofu_vcq_id_t {
    without_path(id) | u64::from(path & 15) << PATH_AT
}

/// Returns the id with a default path: path id 0, and the mark of a default choice.
pub(crate) fn with_default_path(id: utofu_vcq_id_t) -> utofu_vcq_id_t {
    without_path(id) | DEFAULT_PATH
}

/// Bits of a gate's number.
const GATE_BITS: u64 = 63;
const SERIAL_AT: u32 = 8;

/// Position of a gate in the system. `serial` distinguishes the jobs of one process, because calls on gates have no
/// argument but the id; 0 is the job of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GatePlace {
    pub(crate) tni: TniPlace,
    pub(crate) gate: u8,
    pub(crate) serial: u16,
}

impl GatePlace {
    pub(crate) fn id(self) -> utofu_vbg_id_t {
        u64::from(self.gate) | u64::from(self.serial) << SERIAL_AT | self.tni.bits()
    }

    pub(crate) fn of(id: utofu_vbg_id_t) -> Result<GatePlace> {
        let (gate, serial) = ((id & GATE_BITS) as u8, (id >> SERIAL_AT) as u16);
        match TniPlace::of(id).map(|tni| GatePlace { tni, gate, serial }) {
            // As for VCQs, ids with unknown bits are rejected.
            Some(place) if place.id() == id => Ok(place),
            _ => fail(UTOFU_ERR_INVALID_VBG_ID, format!("{id:#x} is not the id of a gate")),
        }
    }
}

/// First bit of the STag in a STADD; the bits below are the offset.
pub(crate) const STAG_AT: u32 = 40;
/// Mask of an offset, and the largest offset.
pub(crate) const OFFSET_MASK: u64 = (1 << STAG_AT) - 1;
/// STags below this are user STags.
pub(crate) const FIRST_DYNAMIC: u64 = 4096;
/// User STags of each VCQ.
pub(crate) const USER_STAGS: u32 = 256;

/// Returns the STADD of a user STag of the VCQ with this extra value.
pub(crate) fn user_stadd(extra: u8, stag: u32) -> Result<utofu_stadd_t> {
    if stag >= USER_STAGS {
        return fail(UTOFU_ERR_INVALID_STAG, format!("STag {stag}: must be below {USER_STAGS}"));
    }
    Ok((u64::from(extra) * u64::from(USER_STAGS) + u64::from(stag)) << STAG_AT)
}

#[cfg(test)]
#[path = "ids_tests.rs"]
mod tests;
