//! The memory of channels: cut from slabs, each allocated and registered once.
//!
//! A CQ has a limited number of STags (6144 chosen by uTofu), and a mapping and a registration
//! for each peer would cost a system call each at first contact. So one of either serves
//! [`CHANNELS_PER_SLAB`] peers. Pages are taken from the host only when they are touched; a
//! device that pins registered memory takes those of a whole slab, which is why slabs are small.

use std::ptr::NonNull;

use utofu::abi::UTOFU_ERR_OUT_OF_MEMORY;
use utofu::handles::{Access, Registration, Vcq};
use utofu::{Stadd, UtofuError};

use crate::memory::Pages;

use super::wire::{BOUNCE_BYTES, CHANNEL_BYTES};

/// Peers that share a registration: as many as most ranks ever talk to through one port.
const CHANNELS_PER_SLAB: usize = 16;
/// From one channel to the next in a slab: whole cache lines, as both parts are.
const STRIDE: usize = CHANNEL_BYTES + BOUNCE_BYTES;

/// The memory of one peer: the channel that it writes to, and behind that the copies of what
/// goes to its channel there. Valid as long as the [`Channels`] that gave it out.
#[derive(Debug)]
pub(super) struct PeerMemory {
    ptr: NonNull<u8>,
    stadd: Stadd,
}

// SAFETY: an address of a slab, which is owned by the endpoint that owns this too.
unsafe impl Send for PeerMemory {}

impl PeerMemory {
    /// The first byte of the channel.
    pub(super) fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Where the channel starts, for the wire.
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

/// All channels of one endpoint. Nothing is given back before the endpoint's end.
#[derive(Debug, Default)]
pub(super) struct Channels {
    slabs: Vec<Slab>,
    /// Channels given out of the last slab.
    given: usize,
}

impl Channels {
    /// Memory for another peer.
    ///
    /// # Errors
    /// What the registration returns, `FULL` for instance.
    pub(super) fn add(&mut self, vcq: &mut Vcq) -> Result<PeerMemory, UtofuError> {
        if self.slabs.is_empty() || self.given == CHANNELS_PER_SLAB {
            let pages = Pages::new((CHANNELS_PER_SLAB * STRIDE) as u64);
            let pages = pages.map_err(|_| UtofuError::new("mmap", UTOFU_ERR_OUT_OF_MEMORY))?;
            // SAFETY: the pages live beside the registration and longer. Peers write to their
            // channels only, which are read through raw pointers, and only where a notice has
            // said that a write is complete.
            let registration =
                unsafe { vcq.register(pages.ptr(), pages.len(), Access::ReadWrite) }?;
            self.slabs.push(Slab { registration, pages });
            self.given = 0;
        }
        let slab = &self.slabs[self.slabs.len() - 1];
        let offset = self.given * STRIDE;
        self.given += 1;
        // SAFETY: the slab has room for CHANNELS_PER_SLAB strides, of which `given` were taken.
        let ptr = unsafe { slab.pages.ptr().add(offset) };
        let ptr = NonNull::new(ptr).expect("behind the start of a mapping");
        Ok(PeerMemory { ptr, stadd: slab.registration.at(offset) })
    }
}
