//! VCQ ids, gate ids, path ids and STADDs as numbers.
//!
//! Ids are computed, not handed out: everyone can construct the id of any place in the system.
//! Programs ought not to look inside, but some do, so the encodings are those of Fujitsu's library:
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
//! The bits between serve marks of the emulator's own, which are 0 in what a program builds.

use crate::limits::error::{Result, fail};
use crate::limits::{CQS, FIRST_EXTRA, TNIS, VCQS};
use utofu_sys::*;

/// Coordinates x, y, z, a, b, c of a node.
pub(crate) type Coords = [u8; 6];

/// Sizes of a, b and c.
pub(crate) const ABC: [u8; 3] = [2, 3, 2];

/// Component ids of a TNI.
pub(crate) const CMP_IDS: u16 = 8;

/// Where the coordinates are in both kinds of ids.
const COORDS_AT: u32 = 32;
const TNI_AT: u32 = 61;

/// Coordinates as one number below 2^28: how they stand in ids, from bit [`COORDS_AT`] on.
pub(crate) fn pack_coords(c: Coords) -> u32 {
    u32::from(c[0])
        | u32::from(c[1]) << 8
        | u32::from(c[2]) << 16
        | u32::from(c[3]) << 24
        | u32::from(c[4]) << 25
        | u32::from(c[5]) << 27
}

/// The part of an id that names the node; not below 2^28 if there is no such node.
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

/// Whether a, b, c are within their sizes; x, y, z may be anything.
pub(crate) fn coords_ok(c: Coords) -> bool {
    (0..3).all(|i| c[3 + i] < ABC[i])
}

const CMP_AT: u32 = 24;
const PATH_AT: u32 = 28;
const PATH_BITS: u64 = 15 << PATH_AT;
/// A default path was chosen.
const CHOSEN: u64 = 1 << 23;

/// A TNI's place in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TniPlace {
    pub(crate) coords: Coords,
    pub(crate) number: u8,
}

impl TniPlace {
    /// The bits that ids of what it has begin with.
    fn bits(self) -> u64 {
        u64::from(pack_coords(self.coords)) << COORDS_AT | u64::from(self.number) << TNI_AT
    }

    /// The place in an id, if there is such a one.
    #[inline]
    fn of(id: u64) -> Option<TniPlace> {
        let number = (id >> TNI_AT) as u8;
        let coords = unpack_coords(id).filter(|_| usize::from(number) < TNIS)?;
        Some(TniPlace { coords, number })
    }
}

/// A VCQ's place in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VcqPlace {
    pub(crate) tni: TniPlace,
    pub(crate) cq: u8,
    pub(crate) extra: u8,
}

impl VcqPlace {
    /// The id without a path.
    pub(crate) fn id(self) -> utofu_vcq_id_t {
        u64::from(self.cq) | u64::from(self.extra - FIRST_EXTRA) << CMP_AT | self.tni.bits()
    }

    /// The place in an id.
    #[inline]
    pub(crate) fn of(id: utofu_vcq_id_t) -> Result<VcqPlace> {
        let (cq, extra) = ((id & 15) as u8, FIRST_EXTRA + (id >> CMP_AT & 7) as u8);
        let place = TniPlace::of(id).map(|tni| VcqPlace { tni, cq, extra });
        match place {
            // No unknown bits are set.
            Some(place) if usize::from(cq) < CQS && place.id() == without_path(id) => Ok(place),
            _ => fail(UTOFU_ERR_INVALID_VCQ_ID, format!("{id:#x} is not the id of a VCQ")),
        }
    }

    /// Which of its CQ's VCQs it is.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.extra - FIRST_EXTRA) % VCQS
    }
}

/// The id without its path, which equals the id that the owner queries.
#[inline]
pub(crate) fn without_path(id: utofu_vcq_id_t) -> utofu_vcq_id_t {
    id & !(PATH_BITS | CHOSEN)
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

/// Bits of a gate's number.
const GATE_BITS: u64 = 63;
const SERIAL_AT: u32 = 8;

/// A gate's place in the system. `serial` tells the jobs of one process apart, because calls on
/// gates have nothing but the id; 0 is the job of the caller.
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
            // As for VCQs: no unknown bits are set.
            Some(place) if place.id() == id => Ok(place),
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
