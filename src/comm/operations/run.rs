//! What calls have in common that are started, and waited for or tested later.

use crate::error::Error;

/// A call that is started, once or again and again.
pub(crate) trait Run {
    /// Starts the call. What has been learnt before, with the memory held, need not be learnt
    /// again.
    ///
    /// # Errors
    /// As [`Engine::register`](crate::engine::Engine::register) and [`Engine::start`](crate::engine::Engine::start);
    /// [`Error::Active`].
    fn start(&mut self) -> Result<(), Error>;

    /// Whether its end has not been seen yet.
    fn is_active(&self) -> bool;

    /// Whether it is done, if that is known to be all of it.
    fn has_ended(&self) -> bool;

    /// True if the call is done, or was not started; moves things on a little, or only it.
    ///
    /// # Errors
    /// What went wrong with it.
    fn test(&mut self, moves_on: bool) -> Result<bool, Error>;

    /// Waits for the end; returns at once if it was not started.
    ///
    /// # Errors
    /// What went wrong with it.
    fn wait(&mut self) -> Result<(), Error>;

    /// Waits for the end and lets go of the buffers; nothing can be started any more.
    fn end(&mut self);

    /// Whether something has failed: a late message may then still be written to the buffers.
    fn has_failed(&self) -> bool;
}
