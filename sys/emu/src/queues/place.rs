//! Choice of a new VCQ's place on its TNI.

use crate::job::sharing::CqRoles;
use crate::limits::error::{Result, fail};
use crate::limits::ids::CMP_IDS;
use crate::limits::{CQS, VCQS};
use std::ffi::c_ulong;
use utofu_sys::*;

/// Mark in `CqRecord::used`: one VCQ has the whole CQ.
pub(crate) const EXCLUSIVE: u32 = 1 << 31;
const ALL_VCQS: u32 = (1 << VCQS) - 1;

const NO_CQ: &str = "there are more ranks on the node than its TNIs have CQs";

/// Returns a place for a new VCQ: (CQ, index within it, marks to set). `used` are the current marks, `cqs` the rank's
/// CQs.
pub(crate) fn choose(
    used: &[u32; CQS],
    cqs: &CqRoles,
    cmp_id: Option<u16>,
    flags: c_ulong,
) -> Result<(usize, usize, u32)> {
    let session = flags & UTOFU_VCQ_FLAG_SESSION_MODE != 0;
    let exclusive = flags & UTOFU_VCQ_FLAG_EXCLUSIVE != 0;
    if let Some(cmp) = cmp_id {
        if cmp >= CMP_IDS {
            return fail(
                UTOFU_ERR_INVALID_CMP_ID,
                format!("component id {cmp}: must be below {CMP_IDS}"),
            );
        }
        if session || exclusive {
            return fail(
                UTOFU_ERR_NOT_SUPPORTED,
                "a VCQ with a component id can have neither SESSION_MODE nor EXCLUSIVE",
            );
        }
        let n = usize::from(cmp);
        return match cqs.first() {
            Some(cq) if used[cq] & (EXCLUSIVE | 1 << n) == 0 => Ok((cq, n, 1 << n)),
            Some(_) => fail(
                UTOFU_ERR_USED,
                format!("the place of component id {cmp} is taken on this node's TNI"),
            ),
            None => fail(UTOFU_ERR_FULL, NO_CQ),
        };
    }
    let found = if session {
        let mut kept = cqs.session();
        let free = if kept.is_empty() {
            cqs.ordinary().filter(|&cq| used[cq] == 0).last()
        } else {
            kept.find(|&cq| used[cq] == 0)
        };
        free.map(|cq| (cq, 0, 1 | EXCLUSIVE))
    } else if exclusive {
        let free = cqs.ordinary().find(|&cq| used[cq] == 0);
        free.map(|cq| (cq, 0, 1 | EXCLUSIVE))
    } else {
        cqs.ordinary().find_map(|cq| {
            let n = used[cq].trailing_ones() as usize;
            (used[cq] & EXCLUSIVE == 0 && used[cq] & ALL_VCQS != ALL_VCQS).then_some((
                cq,
                n,
                1 << n,
            ))
        })
    };
    match found {
        Some(place) => Ok(place),
        None if cqs.first().is_none() => fail(UTOFU_ERR_FULL, NO_CQ),
        None => {
            fail(UTOFU_ERR_FULL, "this rank's CQs of the TNI have no free place for such a VCQ")
        }
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
