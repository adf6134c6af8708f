//! Working memory of idle operations: one budget for all communicators of a rank. The least recently used operations
//! are dropped first, whichever communicator they belong to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::ready::{IDLE_BYTES_LIMIT, Ready};
use crate::engine::Engine;
use crate::sync::lock;

/// If the budget is exceeded, this part of it is freed in addition, since the search for operations to drop takes
/// time.
const EVICTION_MARGIN: u64 = 8;

/// Idle operations that a communicator keeps.
pub(crate) trait IdleOperations: Send + Sync {
    /// Removes the operations that `keep` rejects, and returns them.
    #[expect(clippy::vec_box, reason = "as they are kept")]
    fn retain(&self, keep: &mut dyn FnMut(&Ready) -> bool) -> Vec<Box<Ready>>;
}

/// The caches of all communicators of a rank.
#[derive(Default)]
pub(crate) struct IdleBudget {
    caches: Mutex<Vec<Weak<dyn IdleOperations>>>,
    /// Operations made so far: the clock of uses.
    clock: AtomicU64,
}

impl IdleBudget {
    /// Adds the cache of another communicator.
    pub(crate) fn add(&self, cache: &Arc<dyn IdleOperations>) {
        let caches = &mut *lock(&self.caches);
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(Arc::downgrade(cache));
    }

    /// The time of a use that happens now.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        // Relaxed: operations used at the same time may be dropped in any order.
        self.clock.load(Ordering::Relaxed)
    }

    /// Makes room for an operation of `bytes` bytes: drops the idle operations that exceed the budget with it.
    pub(crate) fn make_room(&self, engine: &Engine, bytes: u64) {
        self.clock.fetch_add(1, Ordering::Relaxed);
        if engine.operation_bytes().saturating_add(bytes) > IDLE_BYTES_LIMIT {
            self.evict(IDLE_BYTES_LIMIT.saturating_sub(bytes));
        }
    }

    /// Drops idle operations until they have at most `most_bytes` bytes.
    #[cold]
    fn evict(&self, most_bytes: u64) {
        let caches: Vec<Arc<dyn IdleOperations>> =
            lock(&self.caches).iter().filter_map(Weak::upgrade).collect();
        let mut idle = Vec::new();
        for cache in &caches {
            cache.retain(&mut |ready: &Ready| {
                idle.push((ready.last_used, ready.idle_bytes()));
                true
            });
        }
        let mut bytes: u64 = idle.iter().map(|(_, bytes)| bytes).sum();
        if bytes <= most_bytes {
            return;
        }
        idle.sort_unstable();
        let wanted = most_bytes - most_bytes / EVICTION_MARGIN;
        let mut going = idle.into_iter().take_while(|(_, of_one)| {
            let goes = bytes > wanted;
            bytes -= if goes { *of_one } else { 0 };
            goes
        });
        // Of the operations that were used at the same time as the last one to drop, only some need to be dropped.
        let Some((mut last, mut n_at_last)) = going.next().map(|(at, _)| (at, 1)) else { return };
        for (at, _) in going {
            n_at_last = if at == last { n_at_last + 1 } else { 1 };
            last = at;
        }
        for cache in &caches {
            let gone = cache.retain(&mut |ready: &Ready| {
                let goes = ready.last_used < last || (ready.last_used == last && n_at_last > 0);
                n_at_last -= u32::from(goes && ready.last_used == last);
                !goes
            });
            // Dropping them locks ports.
            drop(gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use hopbine_torus::Collective;
    use hopbine_torus::geometry::Shape;

    use super::*;
    use crate::comm::call::Call;
    use crate::comm::call::blocks::Blocks;
    use crate::comm::call::options::CallOptions;
    use crate::comm::communicator::Communicator;
    use crate::comm::programs::ready::PROGRAM_LIMIT;
    use crate::engine::Operation;
    use crate::reduce::{Datatype, Op};
    use crate::world::{EmulationConfig, emulate};

    const COUNT: u64 = 8 << 20;

    /// Makes an operation, or takes the idle one, and puts it back. No data are moved.
    fn touch(comm: &Communicator, count: u64) -> Weak<Operation> {
        let call = Call::regular_in_place(Collective::Allreduce, u8::DTYPE).op(Op::Sum);
        touch_call(comm, &Call { count, ..call }, 1 << 20)
    }

    fn touch_call(comm: &Communicator, call: &Call, segment_bytes: u64) -> Weak<Operation> {
        // One that has working memory of its own, whatever the decision tables would choose.
        let options = Arc::new(CallOptions::new().algorithm("mixed").segment_bytes(segment_bytes));
        let ready = comm.inner.ready(call, &options).unwrap();
        let operation = Arc::downgrade(&ready.operation);
        comm.inner.members.programs.put(ready);
        operation
    }

    #[test]
    fn communicators_of_a_rank_share_one_budget() {
        emulate(&EmulationConfig::new(Shape::torus(&[4]).unwrap()), |comm| {
            let part = || comm.split(Some(0), comm.rank().into()).unwrap().unwrap();
            let parts = [part(), part(), part()];
            let engine = &comm.inner.world.engine;
            let (first, often) = (touch(comm, COUNT), touch(comm, COUNT + 1));
            let each = engine.operation_bytes() / 2;
            assert!(each > COUNT / 4, "{each} bytes for each operation");
            let n_kept = IDLE_BYTES_LIMIT / each;
            for at in 0..2 * n_kept {
                let part = &parts[at as usize % parts.len()];
                let last = touch(part, COUNT + 2 + at);
                assert!(last.upgrade().is_some());
                assert!(often.ptr_eq(&touch(comm, COUNT + 1)), "what is used often has gone");
                let bytes = engine.operation_bytes();
                assert!(bytes <= IDLE_BYTES_LIMIT + each / 4 * n_kept, "{bytes} bytes after {at}");
            }
            assert!(engine.operation_bytes() > IDLE_BYTES_LIMIT / 2);
            assert!(first.upgrade().is_none(), "what was not used for longest has stayed");
            drop(parts);
            assert!(engine.operation_bytes() <= 3 * each);
        })
        .unwrap();
    }

    #[test]
    fn of_long_programs_for_lists_of_counts_few_are_kept() {
        emulate(&EmulationConfig::new(Shape::torus(&[2]).unwrap()), |comm| {
            // Some megabytes of tasks each.
            let touch_listed = |more| {
                let counts = [COUNT / 4, COUNT / 4 + more];
                let call = Call::vector(Collective::Allgather, u8::DTYPE);
                let call = call.recv_blocks(Blocks::new(&counts)).normalized(comm.caller());
                touch_call(comm, &call, 64)
            };
            let (regular, often, first) = (touch(comm, 1), touch_listed(0), touch_listed(1));
            for more in 2..14 {
                assert!(touch_listed(more).upgrade().is_some());
                assert!(often.ptr_eq(&touch_listed(0)), "what is used often has gone at {more}");
            }
            assert!(first.upgrade().is_none(), "what was not used for longest has stayed");
            assert!(regular.ptr_eq(&touch(comm, 1)), "a call without lists has gone");
        })
        .unwrap();
    }

    #[test]
    fn of_too_many_programs_those_not_used_for_longest_go() {
        emulate(&EmulationConfig::new(Shape::torus(&[2]).unwrap()), |comm| {
            let (often, first) = (touch(comm, 1), touch(comm, 2));
            for count in 3..2 * PROGRAM_LIMIT as u64 {
                assert!(touch(comm, count).upgrade().is_some());
                assert!(often.ptr_eq(&touch(comm, 1)), "what is used often has gone at {count}");
            }
            assert!(first.upgrade().is_none(), "what was not used for longest has stayed");
        })
        .unwrap();
    }
}
