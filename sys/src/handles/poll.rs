//! Polling a VCQ's two queues: the TCQ (completions) and the MRQ (notices).

use core::sync::atomic::{Ordering, fence};

use utofu_sys::*;

use super::Vcq;
use crate::{Cookie, Stadd, UtofuError, VcqId};

/// A posted operation that failed before it was sent (from the TCQ).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an operation failed{}: {}", cookie.map_or(String::new(), |c| format!(" (cookie {:#x})", c.0)), error.reason())]
pub struct CompletionError {
    /// The library's error.
    pub error: UtofuError,
    /// The operation's cookie, if the library returned it.
    pub cookie: Option<Cookie>,
}

/// An entry of the MRQ that is not a valid notice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoticeError {
    /// An operation failed in the network or at the target.
    #[error(
        "an operation failed{}: {}",
        peer.map_or(String::new(), |p| format!(" (peer {p})")),
        error.reason()
    )]
    Failed {
        /// The library's error.
        error: UtofuError,
        /// The VCQ on the other side, if the library named it.
        peer: Option<VcqId>,
    },
    /// The notice has a type that uTofu 1.0 does not list.
    #[error("notice of unknown type {raw} (uTofu 1.0 has 0 to 5)")]
    UnknownKind {
        /// The type's number.
        raw: u8,
    },
}

/// One entry of the message receive queue (MRQ). `peer` is the VCQ id on the other side, as that VCQ queries it of
/// itself; [`VcqId::from_raw`] decodes it. `edata` is the byte that the initiator passed to the post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A put of this VCQ has reached its target's memory.
    LocalPut {
        /// The target.
        peer: utofu_vcq_id_t,
        /// The byte that the post carried.
        edata: u8,
        /// STADD just past the last byte written.
        remote_end: Stadd,
    },
    /// A put of another VCQ has arrived in this side's memory.
    RemotePut {
        /// The sender.
        peer: utofu_vcq_id_t,
        /// The byte that the post carried.
        edata: u8,
        /// STADD (of this side's memory) just past the last byte written.
        remote_end: Stadd,
    },
    /// The data of a get of this VCQ have arrived.
    LocalGet {
        /// The target.
        peer: utofu_vcq_id_t,
        /// The byte that the post carried.
        edata: u8,
    },
    /// Another VCQ has read data from this side's memory.
    RemoteGet {
        /// The reader.
        peer: utofu_vcq_id_t,
        /// The byte that the post carried.
        edata: u8,
        /// STADD (of this side's memory) just past the last byte read.
        remote_end: Stadd,
    },
    /// An atomic operation of this VCQ is complete.
    LocalArmw {
        /// The target.
        peer: utofu_vcq_id_t,
        /// The byte that the post carried.
        edata: u8,
        /// STADD of the word.
        remote: Stadd,
        /// Previous value of the word, zero-extended.
        old: u64,
    },
    /// Another VCQ has executed an atomic operation on this side's memory.
    RemoteArmw {
        /// The initiator.
        peer: utofu_vcq_id_t,
        /// The byte that the post carried.
        edata: u8,
        /// STADD (of this side's memory) of the word.
        remote: Stadd,
    },
}

impl Notice {
    /// VCQ id of the other side.
    #[must_use]
    pub fn peer(&self) -> utofu_vcq_id_t {
        self.peer_and_edata().0
    }

    /// The byte that the post carried.
    #[must_use]
    pub fn edata(&self) -> u8 {
        self.peer_and_edata().1
    }

    /// The fields common to notices of all kinds.
    fn peer_and_edata(&self) -> (utofu_vcq_id_t, u8) {
        match *self {
            Notice::LocalPut { peer, edata, .. }
            | Notice::RemotePut { peer, edata, .. }
            | Notice::LocalGet { peer, edata, .. }
            | Notice::RemoteGet { peer, edata, .. }
            | Notice::LocalArmw { peer, edata, .. }
            | Notice::RemoteArmw { peer, edata, .. } => (peer, edata),
        }
    }

    fn read(n: &utofu_mrq_notice) -> Result<Notice, NoticeError> {
        let kind = utofu_mrq_notice_type::from(n.notice_type);
        if kind > UTOFU_MRQ_TYPE_RMT_ARMW {
            return Err(NoticeError::UnknownKind { raw: n.notice_type });
        }
        let peer = n.vcq_id;
        // Posts take one byte, the width that the capabilities state, so the cast loses nothing.
        let edata = n.edata as u8;
        let remote = Stadd(n.rmt_stadd);
        Ok(match kind {
            UTOFU_MRQ_TYPE_LCL_PUT => Notice::LocalPut { peer, edata, remote_end: remote },
            UTOFU_MRQ_TYPE_RMT_PUT => Notice::RemotePut { peer, edata, remote_end: remote },
            UTOFU_MRQ_TYPE_LCL_GET => Notice::LocalGet { peer, edata },
            UTOFU_MRQ_TYPE_RMT_GET => Notice::RemoteGet { peer, edata, remote_end: remote },
            UTOFU_MRQ_TYPE_LCL_ARMW => Notice::LocalArmw { peer, edata, remote, old: n.rmt_value },
            _ => Notice::RemoteArmw { peer, edata, remote },
        })
    }
}

/// Its address marks a cookie that the library has not written; no caller's cookie has this address by accident.
static UNTOUCHED: u8 = 0;

/// Marks a VCQ id that the library has not written; no VCQ has this number.
const NO_PEER: u64 = u64::MAX;

impl Vcq {
    /// Takes the oldest completion; None if the queue is empty. Also frees the transmit queue entries of finished
    /// operations that requested no notice, so it must be called from time to time in any case.
    ///
    /// # Errors
    /// [`CompletionError`]: the operation with that cookie was not executed.
    pub fn poll_tcq(&mut self) -> Result<Option<Cookie>, CompletionError> {
        let untouched = (&raw const UNTOUCHED).cast_mut().cast::<core::ffi::c_void>();
        let mut cookie = untouched;
        // SAFETY: the handle is live and cookie is a valid place for the result.
        let code = unsafe { (self.core.api.utofu_poll_tcq)(self.core.hdl, 0, &mut cookie) };
        match code {
            UTOFU_SUCCESS => {
                // The caller may write to the operation's source from here on, not before.
                fence(Ordering::Acquire);
                Ok(Some(Cookie(cookie.addr())))
            }
            UTOFU_ERR_NOT_FOUND => Ok(None),
            code => Err(CompletionError {
                error: self.core.api.error("utofu_poll_tcq", code),
                cookie: (cookie != untouched).then(|| Cookie(cookie.addr())),
            }),
        }
    }

    /// Takes the oldest notice; None if the queue is empty.
    ///
    /// # Errors
    /// [`NoticeError`]: an operation failed, or the notice has an unknown type.
    pub fn poll_mrq(&mut self) -> Result<Option<Notice>, NoticeError> {
        let mut n = utofu_mrq_notice { vcq_id: NO_PEER, ..Default::default() };
        // SAFETY: the handle is live and n is a valid place for the result.
        let code = unsafe { (self.core.api.utofu_poll_mrq)(self.core.hdl, 0, &mut n) };
        match code {
            UTOFU_SUCCESS => {
                // Orders the caller's reads of the operation's data after the library's read of the queue entry.
                fence(Ordering::Acquire);
                Notice::read(&n).map(Some)
            }
            UTOFU_ERR_NOT_FOUND => Ok(None),
            code => Err(NoticeError::Failed {
                error: self.core.api.error("utofu_poll_mrq", code),
                peer: if n.vcq_id == NO_PEER {
                    None
                } else {
                    VcqId::from_raw(&self.core.api, n.vcq_id).ok()
                },
            }),
        }
    }
}
