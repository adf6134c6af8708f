//! Non-blocking and persistent collectives on raw addresses, for the interfaces to other languages.

use crate::comm::call::Call;
use crate::comm::communicator::Communicator;
use crate::comm::operations::started::Repeated;
use crate::error::Error;

/// A non-blocking collective under way. Dropping it waits for it.
pub struct Started {
    running: Repeated,
    /// An error that a test has found and `wait` has not returned yet.
    failure: Option<Box<Error>>,
}

impl Call<'_> {
    /// Sets the addresses of the buffers, with the lengths that `comm` needs.
    #[must_use]
    #[inline]
    pub fn at(self, comm: &Communicator, send: *const u8, recv: *mut u8) -> Self {
        let caller = comm.caller();
        let (send_count, recv_count) = self.normalized(caller).needed(caller);
        Call { send, send_count, recv, recv_count, ..self }
    }
}

impl Communicator {
    /// Starts a call whose buffers are given as addresses, checked as by
    /// [`call`](Communicator::call).
    ///
    /// # Safety
    /// The promise of [`call`](Communicator::call), until the operation is done: that is until
    /// [`Started::wait`] has returned or the value has been dropped.
    ///
    /// # Errors
    /// As for the method of [`Scope`](crate::Scope) named after the collective.
    pub unsafe fn started(&self, call: &Call) -> Result<Started, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(call) }.map(Started::new)
    }

    /// Prepares a call whose buffers are given as addresses, to be started repeatedly.
    ///
    /// # Safety
    /// The promise of [`call`](Communicator::call), whenever the operation is under way; and the buffers must exist
    /// until the value has been dropped.
    ///
    /// # Errors
    /// As for the method of [`Persistent`](crate::Persistent) named after the collective.
    pub unsafe fn repeated(&self, call: &Call) -> Result<Repeated, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.repeat(call) }
    }
}

impl Started {
    pub(crate) fn new(running: Repeated) -> Self {
        Started { running, failure: None }
    }

    /// Makes some progress; true if the collective is done.
    pub fn test(&mut self) -> bool {
        let outcome = self.running.test();
        self.note(outcome)
    }

    /// Whether the collective is known to be done; makes no progress.
    pub fn has_ended(&self) -> bool {
        self.running.has_ended()
    }

    /// Whether the collective is known to have succeeded; does not wait.
    #[inline]
    pub fn is_done_well(&mut self) -> bool {
        self.has_ended() && self.look() && self.failure.is_none()
    }

    /// As [`test`](Started::test), without progress on other operations: for callers that test many of them.
    #[inline]
    pub fn look(&mut self) -> bool {
        let outcome = self.running.look();
        self.note(outcome)
    }

    fn note(&mut self, outcome: Result<bool, Error>) -> bool {
        outcome.unwrap_or_else(|error| {
            self.failure.get_or_insert_with(|| Box::new(error));
            true
        })
    }

    /// Waits until the collective is done.
    ///
    /// # Errors
    /// What went wrong with it.
    pub fn wait(mut self) -> Result<(), Error> {
        self.failure.take().map_or_else(|| self.running.wait(), |error| Err(*error))
    }
}
