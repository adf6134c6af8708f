//! The memory of channels: cut from slabs, each allocated and registered once.
//!
//! Slabs are registered under steering tags that follow from their numbers, so that peers can
//! compute where a channel is ([`channel`](super::channel)); each is as large as all before it, up
//! to a limit. So a device that pins registered memory pins at most twice what is used.

use std::ptr::NonNull;

use utofu::abi::UTOFU_ERR_OUT_OF_MEMORY;
use utofu::handles::{Access, Registration, Vcq};
use utofu::{Api, Stadd, UtofuError, VcqId};

use crate::memory::Pages;

use super::channel::{Numbered, Window};

/// Steering tag of mailboxes; those of slabs follow.
pub(super) const MAILBOX_STAG: u32 = 0;

/// Memory in a slab. Valid as long as the [`Channels`] that gave it out.
#[derive(Debug)]
pub(super) struct SlabMemory {
    ptr: NonNull<u8>,
    stadd: Stadd,
}

// SAFETY: an address of a slab, which is owned by the endpoint that owns this too.
unsafe impl Send for SlabMemory {}

impl SlabMemory {
    /// The first byte.
    pub(super) fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Where it starts, for the wire.
    pub(super) fn stadd(&self) -> Stadd {
        self.stadd
    }
}

/// The registration comes before the memory, so that it is dropped first.
#[derive(Debug)]
struct Slab {
    registration: Registration,
    pages: Pages,
}

impl Slab {
    fn new(vcq: &mut Vcq, bytes: usize, stag: Option<u32>) -> Result<Self, UtofuError> {
        let pages = Pages::new(bytes as u64);
        let pages = pages.map_err(|_| UtofuError::new("mmap", UTOFU_ERR_OUT_OF_MEMORY))?;
        let (ptr, len) = (pages.ptr(), pages.len());
        // SAFETY: the pages live beside the registration and longer. Peers write to their
        // channels only, which are read through raw pointers, and only where a notice has
        // said that a write is complete.
        let registration = unsafe {
            match stag {
                Some(stag) => vcq.register_with_stag(ptr, len, stag, Access::ReadWrite),
                None => vcq.register(ptr, len, Access::ReadWrite),
            }
        }?;
        Ok(Slab { registration, pages })
    }

    fn memory(&self, offset: usize) -> SlabMemory {
        assert!(offset < self.pages.len());
        // SAFETY: within the pages.
        let ptr = unsafe { self.pages.ptr().add(offset) };
        let ptr = NonNull::new(ptr).expect("behind the start of a mapping");
        SlabMemory { ptr, stadd: self.registration.at(offset) }
    }
}

/// All channels of one endpoint, and the copies of what goes to its channels elsewhere. Nothing
/// is given back before the endpoint's end.
#[derive(Debug, Default)]
pub(super) struct Channels {
    n_channels: u32,
    slabs: Vec<Slab>,
    copies: Vec<Slab>,
    /// Bytes of the last slab of copies that are given out.
    copied: usize,
}

impl Channels {
    /// The channel of the next peer.
    ///
    /// # Errors
    /// What the registration returns, `INVALID_STAG` for instance.
    pub(super) fn add(&mut self, vcq: &mut Vcq) -> Result<SlabMemory, UtofuError> {
        let (slab, offset) = Numbered::of(self.n_channels).at;
        if slab as usize == self.slabs.len() {
            let stag = Some(MAILBOX_STAG + 1 + slab);
            self.slabs.push(Slab::new(vcq, Numbered::slab_bytes(self.n_channels), stag)?);
        }
        self.n_channels += 1;
        Ok(self.slabs[slab as usize].memory(offset))
    }

    /// Memory for the copies of eager messages to a peer whose channel for this rank is so wide.
    ///
    /// # Errors
    /// What the registration returns, `FULL` for instance.
    pub(super) fn add_copies(
        &mut self,
        vcq: &mut Vcq,
        window: Window,
    ) -> Result<SlabMemory, UtofuError> {
        let bytes = window.copies_bytes();
        let len = self.copies.last().map_or(0, |slab| slab.pages.len());
        if self.copied + bytes > len {
            // Twice the last, but no more than 64 wide ones.
            let most = 64 * Window::Wide.copies_bytes();
            self.copies.push(Slab::new(vcq, (2 * len).clamp(bytes, most), None)?);
            self.copied = 0;
        }
        let memory = self.copies[self.copies.len() - 1].memory(self.copied);
        self.copied += bytes;
        Ok(memory)
    }

    #[cfg(feature = "internals")]
    /// Bytes registered.
    pub(super) fn bytes(&self) -> usize {
        self.slabs.iter().chain(&self.copies).map(|slab| slab.pages.len()).sum()
    }
}

/// Where the channel with that number of another rank's port is.
///
/// # Errors
/// What the library says of its steering tag.
pub(super) fn channel_of(api: &Api, owner: VcqId, number: u32) -> Result<Stadd, UtofuError> {
    let (slab, offset) = Numbered::of(number).at;
    Ok(owner.stadd_of_stag(api, MAILBOX_STAG + 1 + slab)? + offset as u64)
}
