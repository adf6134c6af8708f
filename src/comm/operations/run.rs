//! The interface of calls that are started, and waited for or tested later.

use crate::error::Error;

/// A call that is started, once or repeatedly.
pub(crate) trait Run {
    /// Starts the call. If its memory stays registered, ranks exchange block sizes only at the first start.
    ///
    /// # Errors
    /// As [`Engine::register`](crate::engine::Engine::register) and [`Engine::start`](crate::engine::Engine::start);
    /// [`Error::Active`].
    fn start(&mut self) -> Result<(), Error>;

    /// Whether the call was started and its end has not been seen yet.
    fn is_active(&self) -> bool;

    /// Whether the call is known to be done. False if another stage may follow.
    fn has_ended(&self) -> bool;

    /// True if the call is done or was not started. Makes some progress, on this call only unless `advances_others`.
    ///
    /// # Errors
    /// The failure of the call.
    fn test(&mut self, advances_others: bool) -> Result<bool, Error>;

    /// Waits for the end; returns at once if the call was not started.
    ///
    /// # Errors
    /// The failure of the call.
    fn wait(&mut self) -> Result<(), Error>;

    /// Waits for the end and releases the buffers; the call cannot be started afterwards. Returns whether something
    /// has failed: a late message may then still be written to the buffers.
    fn end(&mut self) -> bool;
}
