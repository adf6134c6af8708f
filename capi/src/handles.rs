//! Handles: numbers that C holds in place of pointers. Every handle is looked up in a table, which detects handles
//! that have been freed or never existed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use hopbine::Communicator;

use crate::failure::{Failure, HOPBINE_ERR_COMM, HOPBINE_ERR_STATE};

/// A communicator, freed by hopbine_comm_free().
#[expect(non_camel_case_types, reason = "named as C names types")]
pub type hopbine_comm_t = u64;

/// A request: a non-blocking collective in progress, or a persistent collective.
#[expect(non_camel_case_types, reason = "named as C names types")]
pub type hopbine_request_t = u64;

/// The communicators of this process.
pub(crate) static COMMS: Table<Communicator> = Table::new(Kind::Communicator);

/// The kind of object that a handle refers to.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Communicator = 1,
    /// A non-blocking collective in progress.
    Nonblocking,
    /// A persistent collective.
    Persistent,
    /// Registered memory.
    Registered,
}

/// Values by handle. A handle consists of a kind (4 bits), a generation (28 bits) and a slot (32 bits); 0 is the
/// null handle.
pub(crate) struct Table<T> {
    kind: Kind,
    n_removed: AtomicU64,
    slots: OnceLock<RwLock<Slots<T>>>,
}

struct Slots<T> {
    all: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    /// The value. In a free slot, perhaps the memory of an earlier value, to be reused.
    value: Option<Arc<T>>,
}

const GENERATION_BITS: u32 = 28;

impl<T> Table<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Table { kind, n_removed: AtomicU64::new(0), slots: OnceLock::new() }
    }

    fn slots(&self) -> &RwLock<Slots<T>> {
        self.slots.get_or_init(|| RwLock::new(Slots { all: Vec::new(), free: Vec::new() }))
    }

    /// Whether a valid handle is of this table's kind.
    #[inline]
    pub(crate) fn is_of(&self, handle: u64) -> bool {
        handle >> 60 == self.kind as u64
    }

    fn handle(&self, slot: u32, generation: u32) -> u64 {
        (self.kind as u64) << 60 | u64::from(generation) << 32 | u64::from(slot)
    }

    /// Stores a value; returns its handle.
    pub(crate) fn insert(&self, value: T) -> u64 {
        self.insert_with(|slot| *slot = Some(Arc::new(value)))
    }

    /// Allocates a handle; `put` stores its value in the slot.
    #[inline]
    pub(crate) fn insert_with(&self, put: impl FnOnce(&mut Option<Arc<T>>)) -> u64 {
        let slots = &mut *self.slots().write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.free.pop().unwrap_or_else(|| {
            slots.all.push(Slot { generation: 0, value: None });
            (slots.all.len() - 1) as u32
        });
        let entry = &mut slots.all[slot as usize];
        put(&mut entry.value);
        self.handle(slot, entry.generation)
    }

    /// The value of a handle; None if the handle is not valid.
    pub(crate) fn get(&self, handle: u64) -> Option<Arc<T>> {
        let slots = &*self.slots().read().unwrap_or_else(PoisonError::into_inner);
        let entry = slots.all.get(handle as u32 as usize)?;
        let value = entry.value.as_ref()?;
        (handle == self.handle(handle as u32, entry.generation)).then(|| value.clone())
    }

    /// Whether some value is as `is_wanted` says.
    fn has(&self, is_wanted: impl Fn(&T) -> bool) -> bool {
        let slots = &*self.slots().read().unwrap_or_else(PoisonError::into_inner);
        slots.all.iter().filter_map(|slot| slot.value.as_deref()).any(is_wanted)
    }

    /// Number of values that have been removed. While it stays the same, every handle keeps its meaning.
    #[inline]
    pub(crate) fn n_removed(&self) -> u64 {
        // Acquire: a thread that has learned that a handle was freed sees the new number.
        self.n_removed.load(Ordering::Acquire)
    }

    /// Removes the value of a handle and invalidates the handle.
    pub(crate) fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.remove_with(handle, Option::take)
    }

    /// Invalidates a handle if `take` returns something from its value.
    #[inline]
    pub(crate) fn remove_with<R>(
        &self,
        handle: u64,
        take: impl FnOnce(&mut Option<Arc<T>>) -> Option<R>,
    ) -> Option<R> {
        let slots = &mut *self.slots().write().unwrap_or_else(PoisonError::into_inner);
        let entry = slots.all.get_mut(handle as u32 as usize)?;
        if handle != self.handle(handle as u32, entry.generation) {
            return None;
        }
        let taken = take(&mut entry.value)?;
        // Relaxed: written only under the lock. Release: see `n_removed`.
        let n_removed = self.n_removed.load(Ordering::Relaxed);
        self.n_removed.store(n_removed + 1, Ordering::Release);
        entry.generation = (entry.generation + 1) % (1 << GENERATION_BITS);
        slots.free.push(handle as u32);
        Some(taken)
    }
}

/// The communicator of a handle, unless its world has ended.
pub(crate) fn find_comm(handle: hopbine_comm_t) -> Result<Arc<Communicator>, Failure> {
    COMMS.get(handle).filter(|comm| !comm.has_ended()).ok_or_else(|| no_comm(handle))
}

/// The error for a handle that is no communicator, or one of a world that has ended.
#[cold]
pub(crate) fn no_comm(handle: hopbine_comm_t) -> Failure {
    // The table holds the world's communicator for as long as hopbine is started.
    if COMMS.get(handle).is_some() || !COMMS.has(|comm| !comm.has_ended()) {
        let what = "hopbine has not been started, or has been finalized";
        return Failure::new(HOPBINE_ERR_STATE, what);
    }
    let what = if handle == 0 { "HOPBINE_COMM_NULL" } else { "none, or one that has been freed" };
    Failure::new(HOPBINE_ERR_COMM, format!("the communicator is {what}"))
}

#[cfg(test)]
mod tests {
    use super::{Kind, Table};

    #[test]
    fn a_handle_means_one_value_once() {
        let (table, other) = (Table::new(Kind::Communicator), Table::new(Kind::Nonblocking));
        let first = table.insert("first");
        other.insert("of another kind");
        assert!(other.get(first).is_none() && table.get(0).is_none() && table.has(|_| true));
        assert_eq!(table.remove(first).as_deref(), Some(&"first"));
        let second = table.insert("second");
        assert_ne!(first, second);
        assert!(table.get(first).is_none() && table.remove(first).is_none());
        assert_eq!(table.get(second).as_deref(), Some(&"second"));
        assert!(table.get(second + 1).is_none() && table.get(u64::MAX).is_none());
        assert!(table.remove(second).is_some() && !table.has(|_| true));
    }
}
