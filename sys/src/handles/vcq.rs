//! A virtual control queue (VCQ): creation, identity, release.

use core::cell::Cell;
use core::marker::PhantomData;
use std::sync::Arc;

use utofu_sys::*;

use super::VcqFlags;
use crate::{Api, OnesidedCaps, Tni, UtofuError, VcqId};

/// Largest number of puts in one batch.
pub const MAX_BATCH: usize = 32;

/// The queue itself, shared by the [`Vcq`] and its registrations; freed when the last of them is dropped.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) api: Api,
    pub(super) hdl: utofu_vcq_hdl_t,
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: the handle was created by this API and nothing else frees it. A failure cannot be reported from
        // here, and no remedy exists.
        let _ = unsafe { (self.api.utofu_free_vcq)(self.hdl) };
    }
}

/// A virtual control queue (VCQ): posts one-sided operations and reports their outcome.
///
/// A VCQ may move to another thread but must not be used by two threads at once: every method that accesses the
/// queues takes `&mut self`. Dropping it frees the VCQ after its last [`super::Registration`].
///
/// # Contract of posting
/// Every post returns [`super::PostError::Busy`] when the transmit queue has no room. Only [`Vcq::poll_tcq`] frees
/// room, also for operations that requested no notice.
///
/// A post is `unsafe`. Until the operation's last notice, the local bytes must lie in a live registration of this
/// VCQ's CQ and the remote bytes in a live registration of the target's CQ. During this time nobody may write bytes
/// that the operation reads, nor access bytes that it writes, and no Rust reference may promise otherwise.
#[derive(Debug)]
pub struct Vcq {
    pub(super) core: Arc<Core>,
    id: VcqId,
    tni: Tni,
    pub(super) caps: OnesidedCaps,
    /// Buffer for the descriptors of batched puts, in words of 8 bytes.
    pub(super) descriptors: Box<[u64]>,
    not_sync: PhantomData<Cell<()>>,
}

impl Vcq {
    /// Creates a VCQ in the lowest free place of a TNI.
    ///
    /// # Errors
    /// `INVALID_TNI_ID`, `FULL`.
    pub fn create(api: Api, tni: Tni, flags: VcqFlags) -> Result<Vcq, UtofuError> {
        let hdl = api.call_with_out("utofu_create_vcq", |hdl| {
            // SAFETY: hdl is a valid place for the result.
            unsafe { (api.utofu_create_vcq)(tni, flags.0, hdl) }
        })?;
        Vcq::from_handle(Core { api, hdl }, tni)
    }

    /// Creates the VCQ with this component id; other ranks can compute its [`VcqId`].
    ///
    /// # Errors
    /// `INVALID_TNI_ID`, `INVALID_CMP_ID`, `NOT_SUPPORTED` (with `EXCLUSIVE`), `USED` (also if a VCQ without a
    /// component id occupies the place).
    pub fn create_with_cmp_id(
        api: Api,
        tni: Tni,
        cmp_id: u16,
        flags: VcqFlags,
    ) -> Result<Vcq, UtofuError> {
        let hdl = api.call_with_out("utofu_create_vcq_with_cmp_id", |hdl| {
            // SAFETY: hdl is a valid place for the result.
            unsafe { (api.utofu_create_vcq_with_cmp_id)(tni, cmp_id, flags.0, hdl) }
        })?;
        Vcq::from_handle(Core { api, hdl }, tni)
    }

    fn from_handle(core: Core, tni: Tni) -> Result<Vcq, UtofuError> {
        let api = core.api;
        let raw = api.call_with_out("utofu_query_vcq_id", |raw| {
            // SAFETY: the handle is live and raw is a valid place for the result.
            unsafe { (api.utofu_query_vcq_id)(core.hdl, raw) }
        })?;
        let caps = api.onesided_caps(tni)?;
        let words = MAX_BATCH * caps.max_toq_desc_size.div_ceil(8);
        Ok(Vcq {
            descriptors: vec![0; words].into(),
            id: VcqId::from_raw(&api, raw)?,
            tni,
            caps,
            core: Arc::new(core),
            not_sync: PhantomData,
        })
    }

    /// The library behind this VCQ.
    #[must_use]
    pub fn api(&self) -> Api {
        self.core.api
    }

    /// The id by which other ranks address this VCQ; carries no path.
    #[must_use]
    pub fn id(&self) -> VcqId {
        self.id
    }

    /// The TNI of this VCQ.
    #[must_use]
    pub fn tni(&self) -> Tni {
        self.tni
    }

    /// The TNI's capabilities.
    #[must_use]
    pub fn caps(&self) -> &OnesidedCaps {
        &self.caps
    }

    /// Number of posted entries that [`Vcq::poll_tcq`] has not processed yet.
    ///
    /// # Errors
    /// The library's code.
    pub fn unread_tcq(&mut self) -> Result<usize, UtofuError> {
        let Core { api, hdl } = &*self.core;
        // SAFETY: the handle is live and n is a valid place for the result.
        api.call_with_out("utofu_query_num_unread_tcq", |n| unsafe {
            (api.utofu_query_num_unread_tcq)(*hdl, n)
        })
    }
}
