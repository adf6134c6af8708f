//! Waits for operations, and tests of them.

use std::sync::Arc;
use std::time::Duration;

use crate::Rank;
use crate::error::Error;

use super::diagnosis::operation::OperationWatch;
use super::diagnosis::watchdog::WaitedFor;
use super::engine::Engine;
use super::pace::Pace;
use super::run::operation::Operation;

/// Longest pause of one test on a wire with its own clock, which stands still while a rank runs.
const TEST_PAUSE: Duration = Duration::from_micros(10);

impl Engine {
    /// Waits until `operation`, started under context and number `id`, is done. All waits for an operation and tests
    /// of it use the same `watch`.
    ///
    /// # Errors
    /// The operation's failure; [`Error::Timeout`] if nothing moved for the time-out.
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
                    // Also ports that only other operations use.
                    let ports = self.group.ports.iter().enumerate();
                    let driven =
                        ports.filter(|(index, port)| *index < n_ports || port.hints.is_active());
                    driven.fold(false, |moved, (_, port)| moved | port.try_drive())
                });
            }
        }
        watch.end(&self.group);
        operation.failure().map_or(Ok(()), |failure| {
            // Unless only this operation has failed.
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
        let caller = port.hints.note_caller();
        self.wait_driving(operation, id, watch, || port.hints.is_active() && port.try_drive());
        drop(caller);
        if port.hints.is_active() {
            // Other operations are under way on this port, and its worker may have parked.
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
        // Workers and other threads may have made progress too.
        let mut moved = || drive() | group.has_moved(&mut moves);
        let mut pace = Pace::new(group);
        while !operation.is_done() {
            let has_moved = moved();
            if operation.is_done() {
                break;
            }
            if !has_moved {
                group.call_hooks();
            }
            if !pace.round(group, has_moved) {
                continue;
            }
            if let Err(error) = watch.check(group, WaitedFor::Operation(id)) {
                // Progress during the search for the cause means that nothing has failed.
                moved();
                if !operation.is_done() && watch.is_still(group, WaitedFor::Operation(id)) {
                    group.fail(&error);
                }
            }
        }
    }

    /// Drives the ports, unless workers do, and advances calls (see [`ProgressHook`](super::ProgressHook)).
    pub fn progress_once(&self) {
        match self.has_workers() {
            false => _ = self.group.progress(),
            // Workers drive ports, but do not advance calls.
            true => _ = self.group.call_hooks(),
        }
    }

    /// Calls [`progress_once`](Engine::progress_once) up to `most` times, until the number of moves is not `seen`
    /// any more. Returns that number, which changes whenever something has moved.
    pub fn progress(&self, most: u32, seen: u64) -> u64 {
        let mut n_rounds = 0;
        loop {
            self.progress_once();
            n_rounds += 1;
            let number = self.group.n_moves();
            if number != seen || n_rounds >= most {
                return number;
            }
            match self.group.waits.time.of_wire() {
                None => std::hint::spin_loop(),
                Some(clock) => clock.pause(TEST_PAUSE),
            }
        }
    }

    /// As [`progress_once`](Engine::progress_once), if `operation` is not done.
    pub fn progress_unless_done(&self, operation: &Operation) {
        if !operation.is_done() {
            self.progress_once();
        }
    }

    /// Notes a test of something that has no operation and is not done: it waits for rank `awaited`, if that is
    /// known. All tests that find the same rank use the same `watch`.
    ///
    /// # Errors
    /// The failure that has been set meanwhile; as [`GatesWatch::idle`](super::gates_watch::GatesWatch::idle).
    pub fn note_test(
        &self,
        awaited: Option<Rank>,
        watch: &mut OperationWatch,
    ) -> Result<(), Error> {
        self.group.failure.reason().map_or(Ok(()), Err)?;
        watch.note_test(&self.group, awaited.map_or(WaitedFor::AllRanks, WaitedFor::Rank))
    }

    /// Ends a watch that is not needed any more.
    pub fn end_watch(&self, watch: &mut OperationWatch) {
        watch.end(&self.group);
    }

    /// The reason for which all operations fail, if there is one.
    pub fn failure(&self) -> Option<Error> {
        self.group.failure.reason()
    }

    /// Tests whether `operation`, started under context and number `id`, is done or has failed:
    /// [`wait`](Engine::wait) returns the failure. `watch` is the same as in `wait`.
    pub fn test(
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
            clock.pause(TEST_PAUSE);
        }
        if let Err(error) = watch.note_test(group, WaitedFor::Operation(id)) {
            group.progress();
            if !operation.is_done() && watch.is_still(group, WaitedFor::Operation(id)) {
                group.fail(&error);
            }
        }
        operation.is_done()
    }
}
