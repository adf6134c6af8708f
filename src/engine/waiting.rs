//! How an operation is waited for, and tested.

use std::sync::Arc;
use std::time::Duration;

use crate::Rank;
use crate::error::Error;

use super::diagnosis::operation::OperationWatch;
use super::diagnosis::watchdog::WaitedFor;
use super::engine::Engine;
use super::pace::Pace;
use super::run::operation::Operation;

/// What a look at something under way takes at most on a wire's own clock, which stands still while a
/// rank runs.
const LOOK: Duration = Duration::from_micros(10);

impl Engine {
    /// Waits until `operation`, started with this context and number, is done. `watch` is the same
    /// in all waits for it and tests of it.
    ///
    /// # Errors
    /// What went wrong with it; [`Error::Timeout`] if nothing moved for too long.
    pub fn wait(
        &self,
        operation: &Arc<Operation>,
        id: (u64, u32),
        watch: &mut OperationWatch,
    ) -> Result<(), Error> {
        if !operation.is_done() {
            if self.has_workers() {
                self.wait_beside_workers(operation, id, watch);
            } else {
                let n_ports = operation.program().ports.len();
                self.wait_driving(operation, id, watch, || {
                    // All ports: other operations may use more of them than this one.
                    let ports = self.group.ports.iter().enumerate();
                    let driven =
                        ports.filter(|(index, port)| *index < n_ports || port.hints.is_active());
                    driven.fold(false, |moved, (_, port)| moved | port.try_drive())
                });
            }
        }
        watch.end(&self.group);
        operation.failure().map_or(Ok(()), |failure| {
            // Unless it has failed alone.
            if self.has_failed() {
                self.group.fail(&failure);
            }
            Err(failure)
        })
    }

    fn wait_beside_workers(
        &self,
        operation: &Arc<Operation>,
        id: (u64, u32),
        watch: &mut OperationWatch,
    ) {
        let port = &self.group.ports[0];
        let attending = port.hints.attend();
        self.wait_driving(operation, id, watch, || port.hints.is_active() && port.try_drive());
        drop(attending);
        if port.hints.is_active() {
            // Other operations are under way on it, and its worker may have parked.
            self.workers[0].wake();
        }
    }

    fn wait_driving(
        &self,
        operation: &Arc<Operation>,
        id: (u64, u32),
        watch: &mut OperationWatch,
        drive: impl Fn() -> bool,
    ) {
        let group = &self.group;
        let mut moves = group.n_moves();
        // Workers, or other threads, may have moved something as well.
        let mut moved = || drive() | group.has_moved(&mut moves);
        let mut pace = Pace::new(group);
        while !operation.is_done() {
            let has_moved = moved();
            if operation.is_done() {
                break;
            }
            if !has_moved {
                group.advance();
            }
            if !pace.round(group, has_moved) {
                continue;
            }
            if let Err(error) = watch.look(group, WaitedFor::Operation(id)) {
                // What has come while the cause was looked for is no failure.
                moved();
                if !operation.is_done() && watch.is_still(group, WaitedFor::Operation(id)) {
                    group.fail(&error);
                }
            }
        }
    }

    /// Moves on whatever is under way, unless workers do.
    pub fn move_others_on(&self) {
        match self.has_workers() {
            false => _ = self.group.progress(),
            // Workers drive ports only.
            true => _ = self.group.advance(),
        }
    }

    /// Moves on whatever is under way, unless workers do, up to `most` times as long as nothing has moved
    /// since the number was `seen`. Returns the number, which is another one whenever something has moved.
    pub fn progress(&self, most: u32, seen: u64) -> u64 {
        let mut n_rounds = 0;
        loop {
            self.move_others_on();
            n_rounds += 1;
            let number = self.group.n_moves();
            if number != seen || n_rounds >= most {
                return number;
            }
            match self.group.waits.time.of_wire() {
                None => std::hint::spin_loop(),
                Some(clock) => clock.pause(LOOK),
            }
        }
    }

    /// Moves things on a little, if nobody else does, as long as `operation` is not done.
    pub fn move_on(&self, operation: &Operation) {
        if !operation.is_done() && !self.has_workers() {
            self.group.advance();
            self.group.ports.iter().for_each(|port| _ = port.try_drive());
        }
    }

    /// Something that is tested and has no operation is not done yet, and waits for a rank, if it is known which.
    /// `watch` is the same in all tests of it that find the same rank.
    ///
    /// # Errors
    /// What has failed meanwhile; as [`GatesWatch::idle`](super::gates_watch::GatesWatch::idle).
    pub fn tested(&self, awaited: Option<Rank>, watch: &mut OperationWatch) -> Result<(), Error> {
        self.group.failure.reason().map_or(Ok(()), Err)?;
        watch.tested(&self.group, awaited.map_or(WaitedFor::Everybody, WaitedFor::Rank))
    }

    /// A watch is not needed any more.
    pub fn end_watch(&self, watch: &mut OperationWatch) {
        watch.end(&self.group);
    }

    /// Why everything fails, if it does.
    pub fn failure(&self) -> Option<Error> {
        self.group.failure.reason()
    }

    /// Returns whether `operation`, started with this context and number, is done, if only because it has
    /// failed: [`wait`](Engine::wait) tells. `watch` is as there.
    pub fn look(
        &self,
        operation: &Arc<Operation>,
        id: (u64, u32),
        watch: &mut OperationWatch,
    ) -> bool {
        let group = &self.group;
        if operation.is_done() {
            watch.end(group);
            return true;
        }
        if let Some(clock) = group.waits.time.of_wire() {
            clock.pause(LOOK);
        }
        if let Err(error) = watch.tested(group, WaitedFor::Operation(id)) {
            group.progress();
            if !operation.is_done() && watch.is_still(group, WaitedFor::Operation(id)) {
                group.fail(&error);
            }
        }
        operation.is_done()
    }
}
