//! Operations of one communicator whose numbers are far apart do not post at the same time.

use std::sync::Arc;

use crate::common::memory_wire::MemoryWire;
use crate::ending::{LONG, NOTHING, barrier_of_two};
use hopbine::endpoint::Tag;
use hopbine::engine::{Engine, Operation, OperationWatch, Program, StartOrder, UserKeys};

/// The largest operation number; the next operation has number 0.
const LAST: u32 = Tag::OPERATIONS - 1;

/// One of two ranks, with the barriers that it has started.
struct Rank {
    engine: Engine,
    program: Arc<Program>,
    started: Vec<((u64, u32), Arc<Operation>)>,
}

impl Rank {
    fn new(wire: &MemoryWire, rank: u32) -> Self {
        let (engine, program) = barrier_of_two(wire, rank, LONG);
        Rank { engine, program, started: Vec::new() }
    }

    fn start(&mut self, id: (u64, u32), order: StartOrder) {
        let operation = self.engine.prepare(self.program.clone(), None).unwrap();
        let keys = UserKeys::default();
        // SAFETY: the operation has no memory.
        unsafe { self.engine.start(&operation, NOTHING, &keys, id, order, false) }.unwrap();
        self.started.push((id, operation));
    }

    /// Waits for all started operations; meanwhile drives the engine of another rank.
    fn wait(&mut self, beside: &Rank) {
        for (id, operation) in self.started.drain(..) {
            let mut watch = OperationWatch::default();
            while !self.engine.test(&operation, id, &mut watch) {
                self.engine.progress_unless_done(&operation);
                beside.engine.progress(1, 0);
            }
            self.engine.wait(&operation, id, &mut watch).unwrap();
        }
    }
}

#[test]
fn far_operations_wait_for_earlier_ones() {
    for first in [0, 5, LAST, LAST - 40] {
        let after = |number: u32| (first + number) & LAST;
        let wire = MemoryWire::default();
        let [mut one, mut other] = [0, 1].map(|rank| Rank::new(&wire, rank));
        let far = Tag::WINDOW;
        let kept = [
            (0, first),
            (0, after(far - 1)),
            (0, after(far)),
            (1, after(far)),
            (0, after(far + 9)),
        ];
        kept.into_iter().for_each(|id| one.start(id, StartOrder::InOrder));
        let late = (0, after(far + 1));
        one.start(late, StartOrder::Late);
        (0..20).for_each(|_| _ = one.engine.progress(1, 0));
        let mut posted = wire.operations();
        posted.sort_unstable();
        let mut near = vec![(0, first), (0, after(far - 1)), (1, after(far)), late];
        near.sort_unstable();
        assert_eq!(posted, near, "from {first} on");
        // The other rank has at most one operation at a time, so it never holds any back.
        for id in [
            (0, first),
            (0, after(far - 1)),
            late,
            (0, after(far)),
            (1, after(far)),
            (0, after(far + 9)),
        ] {
            other.start(id, if id == late { StartOrder::Late } else { StartOrder::InOrder });
            other.wait(&one);
        }
        one.wait(&other);
        assert!(wire.is_empty());
    }
}
