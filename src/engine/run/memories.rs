//! The memory of a run: its buffers, and received messages in the wire's memory (views).

use crate::endpoint::{View, WireRegion};
use crate::memory::stores;
use crate::reduce::Reducer;

use crate::engine::compile::program::{Buffer, Fold, Move, Region};

/// The memory behind one of a program's buffers.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// First byte.
    pub ptr: *mut u8,
    /// Number of bytes.
    pub len: u64,
    /// Registration of the first byte with the port's endpoint, if the wire needs one.
    pub key: u64,
}

impl Memory {
    /// No memory.
    pub const NONE: Memory = Memory { ptr: std::ptr::null_mut(), len: 0, key: 0 };
}

/// A message in the wire's memory, in place of a region of the receive.
struct Viewed {
    instead_of: Region,
    view: View,
    /// The only task that reads the message.
    reader: u32,
}

/// See the module documentation.
pub(crate) struct Memories {
    buffers: [Memory; Buffer::COUNT],
    views: Vec<Viewed>,
    /// The operands of the current fold; empty otherwise. Kept for its capacity.
    operands: Vec<&'static [u8]>,
}

impl Memories {
    /// No memory yet; reserves memory for folds of `operands` operands, and for `views` views.
    pub(crate) fn with_room(operands: usize, views: usize) -> Self {
        Memories {
            buffers: [Memory::NONE; Buffer::COUNT],
            views: Vec::with_capacity(views),
            operands: Vec::with_capacity(operands),
        }
    }

    pub(crate) fn set(&mut self, buffers: [Memory; Buffer::COUNT]) {
        self.buffers = buffers;
        self.views.clear();
    }

    fn ptr(&self, region: Region) -> *mut u8 {
        // `start` has checked that all regions of the program lie within their memory, so the offset stays inside,
        // and fits a usize. The add wraps because an empty region may belong to an absent buffer.
        self.buffers[region.buffer as usize].ptr.wrapping_add(region.offset as usize)
    }

    /// The address at which `region` can be read.
    fn source(&self, region: Region) -> *const u8 {
        let within = |viewed: &&Viewed| {
            let Region { buffer, offset, len } = viewed.instead_of;
            buffer == region.buffer && (offset..offset + len).contains(&region.offset)
        };
        match self.views.iter().find(within) {
            Some(Viewed { instead_of, view, .. }) => {
                view.ptr.wrapping_add((region.offset - instead_of.offset) as usize)
            }
            None => self.ptr(region).cast_const(),
        }
    }

    pub(crate) fn wire(&self, region: Region) -> WireRegion {
        WireRegion {
            ptr: self.ptr(region),
            len: region.len as usize,
            key: self.buffers[region.buffer as usize].key.wrapping_add(region.offset),
        }
    }

    /// Notes that a message has arrived in `view`, and not in `instead_of`; only task `reader` reads it.
    pub(crate) fn viewed(&mut self, instead_of: Region, view: View, reader: u32) {
        debug_assert!(view.len as u64 == instead_of.len);
        self.views.push(Viewed { instead_of, view, reader });
    }

    /// Whether task `reader` reads a view.
    pub(crate) fn has_view_for(&self, reader: u32) -> bool {
        self.views.iter().any(|viewed| viewed.reader == reader)
    }

    /// Drops the views of task `reader`, which has finished.
    pub(crate) fn read(&mut self, reader: u32) {
        self.views.retain(|viewed| viewed.reader != reader);
    }

    /// Copies messages that have not been read to their regions, before the next poll.
    pub(crate) fn settle(&mut self) {
        while let Some(Viewed { instead_of, view, .. }) = self.views.pop() {
            // SAFETY: the view is valid until the next poll. The region lies within memory that is valid by
            // `PortRun::start`'s contract; it belonged to the receive alone, and no task reads it before the reader.
            unsafe { view.ptr.copy_to_nonoverlapping(self.ptr(instead_of), view.len) };
        }
    }

    pub(crate) fn copy(&self, Move { from, into }: Move, past_caches: bool) {
        debug_assert!(from.len == into.len);
        // SAFETY: both regions lie within memory that is valid by `start`'s contract, or in a valid view. The task's
        // hazards keep writers from `from`, and other tasks from `into`. The regions do not overlap by `Move`'s
        // contract.
        unsafe {
            let (from, to, len) = (self.source(from), self.ptr(into), into.len as usize);
            stores::copy(from, to, len, past_caches);
        }
    }

    /// Combines `operands` into the fold's region.
    pub(crate) fn fold(&mut self, reducer: &Reducer, fold: &Fold, operands: &[Region]) {
        let len = fold.into.len as usize;
        // SAFETY: as in `copy`; `into` is none of the operands by `Fold`'s contract.
        let target = unsafe { std::slice::from_raw_parts_mut(self.ptr(fold.into), len) };
        for &operand in operands {
            debug_assert!(operand.len == fold.into.len);
            // SAFETY: as in `copy`. The slices stay in `self.operands` only until the end of this call, during which
            // the memory stays valid.
            let slice = unsafe { std::slice::from_raw_parts(self.source(operand), len) };
            self.operands.push(slice);
        }
        let mut own_at = fold.own_at;
        if let Some(at) = own_at
            && let Some(viewed) = self.views.iter().find(|viewed| viewed.instead_of == fold.into)
        {
            // A message in a view is not in the fold's region, and so an operand like the others.
            // SAFETY: the view is valid until the next poll.
            let slice = unsafe { std::slice::from_raw_parts(viewed.view.ptr, len) };
            self.operands.insert(at as usize, slice);
            own_at = None;
        }
        match (own_at, &self.operands[..]) {
            (Some(_), [other]) => reducer.reduce_into(target, other),
            (Some(own_at), others) => reducer.fold(target, others, own_at as usize),
            (None, [first, second, more @ ..]) => {
                reducer.reduce3(target, first, second);
                reducer.fold(target, more, 0);
            }
            (None, _) => unreachable!("a fold without an own value has at least two operands"),
        }
        self.operands.clear();
    }
}
