//! The memory of channels: parts of slabs, each of which is allocated and registered once.
//!
//! The steering tag of a slab follows from the slab's number, so peers can compute the STADD of a channel
//! ([`channel`](super::channel)). Each slab is as large as all earlier slabs together, up to a limit. So a device
//! that pins registered memory pins at most twice what is used.

use std::ptr::NonNull;

use utofu::abi::UTOFU_ERR_OUT_OF_MEMORY;
use utofu::handles::{Access, Registration, Vcq};
use utofu::{Api, Stadd, UtofuError, VcqId};

use crate::memory::Pages;

use super::channel::{ChannelLayout, ChannelWindow, MOST_PEERS};

/// Steering tag of mailboxes; the steering tags of slabs follow it.
pub(super) const MAILBOX_STAG: u32 = 0;
/// The first steering tag that no slab of channels has.
pub(super) const FREE_STAG: u32 = MAILBOX_STAG + 2 + ChannelLayout::of(MOST_PEERS - 1).at.0;

/// Part of a slab. Valid as long as the [`Channels`] that returned it.
#[derive(Debug)]
pub(super) struct SlabMemory {
    ptr: NonNull<u8>,
    stadd: Stadd,
}

// SAFETY: an address in a slab; the endpoint that owns the slab owns this value, too.
unsafe impl Send for SlabMemory {}

impl SlabMemory {
    /// The address of the first byte.
    pub(super) fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// The STADD of the first byte.
    pub(super) fn stadd(&self) -> Stadd {
        self.stadd
    }
}

/// A block of registered pages. The registration precedes the memory, so it is dropped first.
#[derive(Debug)]
struct ChannelSlab {
    registration: Registration,
    pages: Pages,
}

impl ChannelSlab {
    fn new(vcq: &mut Vcq, bytes: usize, stag: Option<u32>) -> Result<Self, UtofuError> {
        let pages = Pages::new(bytes as u64);
        let pages = pages.map_err(|_| UtofuError::new("mmap", UTOFU_ERR_OUT_OF_MEMORY))?;
        let (ptr, len) = (pages.ptr(), pages.len());
        // SAFETY: the pages outlive the registration beside them. Peers write only to their channels. This rank reads
        // channels through raw pointers, and only after a notice has reported that the write is complete.
        let registration = unsafe {
            match stag {
                Some(stag) => vcq.register_with_stag(ptr, len, stag, Access::ReadWrite),
                None => vcq.register(ptr, len, Access::ReadWrite),
            }
        }?;
        Ok(ChannelSlab { registration, pages })
    }

    fn memory(&self, offset: usize) -> SlabMemory {
        assert!(offset < self.pages.len());
        // SAFETY: within the pages.
        let ptr = unsafe { self.pages.ptr().add(offset) };
        let ptr = NonNull::new(ptr).expect("behind the start of a mapping");
        SlabMemory { ptr, stadd: self.registration.at(offset) }
    }
}

/// All channels of one endpoint, and its bounce buffers for eager messages to peers. Nothing is freed before the
/// endpoint's end.
#[derive(Debug, Default)]
pub(super) struct Channels {
    n_channels: u32,
    slabs: Vec<ChannelSlab>,
    bounce_slabs: Vec<ChannelSlab>,
    /// Bytes of the last slab of bounce buffers that are in use.
    bounce_used: usize,
}

impl Channels {
    /// Returns the channel of the next peer.
    ///
    /// # Errors
    /// The error of the registration, for instance `INVALID_STAG`.
    pub(super) fn add(&mut self, vcq: &mut Vcq) -> Result<SlabMemory, UtofuError> {
        let (slab, offset) = ChannelLayout::of(self.n_channels).at;
        if slab as usize == self.slabs.len() {
            let stag = Some(MAILBOX_STAG + 1 + slab);
            self.slabs.push(ChannelSlab::new(
                vcq,
                ChannelLayout::slab_bytes(self.n_channels),
                stag,
            )?);
        }
        self.n_channels += 1;
        Ok(self.slabs[slab as usize].memory(offset))
    }

    /// Returns bounce buffers for eager messages to a peer. `window`: the width of this rank's channel at that
    /// peer.
    ///
    /// # Errors
    /// The error of the registration, for instance `FULL`.
    pub(super) fn add_bounce(
        &mut self,
        vcq: &mut Vcq,
        window: ChannelWindow,
    ) -> Result<SlabMemory, UtofuError> {
        let bytes = window.bounce_bytes();
        let len = self.bounce_slabs.last().map_or(0, |slab| slab.pages.len());
        if self.bounce_used + bytes > len {
            // Twice the last slab, but at most the bounce buffers of 64 wide channels.
            let most = 64 * ChannelWindow::Wide.bounce_bytes();
            self.bounce_slabs.push(ChannelSlab::new(vcq, (2 * len).clamp(bytes, most), None)?);
            self.bounce_used = 0;
        }
        let memory = self.bounce_slabs[self.bounce_slabs.len() - 1].memory(self.bounce_used);
        self.bounce_used += bytes;
        Ok(memory)
    }

    #[cfg(feature = "internals")]
    /// Bytes of all slabs.
    pub(super) fn bytes(&self) -> usize {
        self.slabs.iter().chain(&self.bounce_slabs).map(|slab| slab.pages.len()).sum()
    }
}

/// The STADD of the channel with this number of the port with VCQ `owner`.
///
/// # Errors
/// The library's error for the slab's steering tag.
pub(super) fn channel_of(api: &Api, owner: VcqId, number: u32) -> Result<Stadd, UtofuError> {
    let (slab, offset) = ChannelLayout::of(number).at;
    Ok(owner.stadd_of_stag(api, MAILBOX_STAG + 1 + slab)? + offset as u64)
}
