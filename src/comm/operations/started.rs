//! Calls that are started, once or repeatedly, and waited for or tested later.

use std::sync::{Arc, Mutex};

use super::run::Run;
use super::running::Prepared;
use super::short_run::ShortRun;
use super::stages::{RegistrationLifetime, Stages};
use crate::comm::call::Call;
use crate::comm::call::options::CallOptions;
use crate::comm::communicator::Communicator;
use crate::engine::{ProgressHook, UserMemory};
use crate::error::Error;
use crate::sync::lock;

impl Communicator {
    /// Starts a call, for which the caller will wait later.
    ///
    /// # Safety
    /// Until the operation is done: the send buffer is valid for reads of its elements and
    /// unchanged, the receive buffer is valid for reads and writes and used by nobody else.
    pub(crate) unsafe fn launch(&self, call: &Call) -> Result<Repeated, Error> {
        let call = &call.normalized(self.caller());
        if self.requests_for(call)?.is_some() {
            call.check(self.caller())?;
            // SAFETY: the caller's promise, and `check` as below.
            return unsafe { self.launch_short(call) };
        }
        let (prepared, memory) = self.prepare(call, &self.options)?;
        // SAFETY: the caller's promise; `check` (in `prepare`) has made sure that the buffers
        // have the lengths that the program needs and do not overlap.
        unsafe { self.launch_prepared(prepared, memory) }
    }

    /// Starts a checked, normalized call that is [started](Communicator::requests_for) without a plan.
    ///
    /// # Safety
    /// As [`launch`](Communicator::launch).
    #[inline]
    pub(crate) unsafe fn launch_short(&self, call: &Call) -> Result<Repeated, Error> {
        // SAFETY: the caller's promise.
        let run = unsafe { ShortRun::start_once(&self.inner, call, &self.options) }?;
        Ok(Repeated(run.map_or(By::Ended, By::Short)))
    }

    /// Starts a call by plan that has been checked.
    ///
    /// # Safety
    /// As [`launch`](Communicator::launch); and the memory has the lengths that the program needs
    /// and does not overlap.
    pub(crate) unsafe fn launch_prepared(
        &self,
        prepared: Prepared,
        memory: [UserMemory; 2],
    ) -> Result<Repeated, Error> {
        let registration = match self.options.register_anew {
            false => RegistrationLifetime::Cached,
            true => RegistrationLifetime::Once,
        };
        // SAFETY: the caller's promise.
        let mut running = Repeated::by_plan(unsafe { Stages::new(prepared, memory, registration) });
        running.start()?;
        Ok(running)
    }

    /// Prepares a call to be started repeatedly. Its memory stays registered until the end.
    ///
    /// # Safety
    /// As [`launch`](Communicator::launch), whenever it is under way; the memory must stay valid until the value has
    /// been dropped.
    pub(crate) unsafe fn repeat(&self, call: &Call) -> Result<Repeated, Error> {
        let call = &call.normalized(self.caller());
        if self.requests_for(call)?.is_some() {
            call.check(self.caller())?;
            self.inner.world.engine.check()?;
            // SAFETY: the caller's promise, and `check` as in `launch`.
            let run = unsafe { ShortRun::repeated(&self.inner, call, &self.options) };
            return Ok(Repeated(By::Short(run)));
        }
        let options = CallOptions { held: true, ..(*self.options).clone() };
        let (prepared, memory) = self.prepare(call, &Arc::new(options))?;
        // SAFETY: the caller's promise; `end` releases the keys while the buffers are still there.
        let mut stages = unsafe { Stages::new(prepared, memory, RegistrationLifetime::Held) };
        stages.register()?;
        Ok(Repeated::by_plan(stages))
    }
}

/// A persistent collective on buffers of its caller. Dropping it waits for it.
pub struct Repeated(By);

/// How a call is performed that is started, once or repeatedly.
enum By {
    /// Ended at its start; it cannot be started again.
    Ended,
    /// Without a plan.
    Short(ShortRun),
    /// By a plan of one stage, which ports advance.
    One(Stages),
    /// By a plan of several stages. Every wait or test of this rank starts the stages that are due ([`ProgressHook`]),
    /// since other ranks may wait for this call while this rank waits for another one.
    Several(Arc<Mutex<Stages>>),
}

impl Repeated {
    fn by_plan(stages: Stages) -> Self {
        if !stages.has_several_stages() {
            return Repeated(By::One(stages));
        }
        let inner = stages.inner().clone();
        let stages = Arc::new(Mutex::new(stages));
        let advance: Arc<dyn ProgressHook> = stages.clone();
        inner.world.engine.add_hook(Arc::downgrade(&advance));
        Repeated(By::Several(stages))
    }

    /// Calls `f` on it; returns `ended` if it ended at its start.
    #[inline]
    fn with<R>(&mut self, ended: R, f: impl FnOnce(&mut dyn Run) -> R) -> R {
        match &mut self.0 {
            By::Ended => ended,
            By::Short(run) => f(run),
            By::One(stages) => f(stages),
            By::Several(stages) => f(&mut *lock(stages)),
        }
    }

    #[inline]
    fn with_ref<R>(&self, ended: R, f: impl FnOnce(&dyn Run) -> R) -> R {
        match &self.0 {
            By::Ended => ended,
            By::Short(run) => f(run),
            By::One(stages) => f(stages),
            By::Several(stages) => f(&*lock(stages)),
        }
    }

    /// Starts the collective with the current contents of the input. If ranks have to exchange block sizes, they do
    /// so at the first start.
    ///
    /// # Errors
    /// [`Error::Active`] if it is under way; [`Error::Poisoned`] after a failure.
    pub fn start(&mut self) -> Result<(), Error> {
        self.with(Ok(()), |run| run.start())
    }

    /// Whether the collective was started and no call has reported its end yet.
    pub fn is_active(&self) -> bool {
        self.with_ref(false, |run| run.is_active())
    }

    /// As [`Run::has_ended`].
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.with_ref(true, |run| run.has_ended())
    }

    /// Whether the collective is done or was never started. Without workers, this call advances it.
    ///
    /// # Errors
    /// What went wrong with it.
    pub fn test(&mut self) -> Result<bool, Error> {
        self.with(Ok(true), |run| run.test(true))
    }

    /// As [`test`](Repeated::test), without progress on other operations: for callers that test many of them.
    ///
    /// # Errors
    /// What went wrong with it.
    #[inline]
    pub fn look(&mut self) -> Result<bool, Error> {
        self.with(Ok(true), |run| run.test(false))
    }

    /// Waits until the collective is done; returns at once if it was not started.
    ///
    /// # Errors
    /// What went wrong with it.
    #[inline]
    pub fn wait(&mut self) -> Result<(), Error> {
        self.with(Ok(()), |run| run.wait())
    }

    /// As [`Run::end`].
    #[inline]
    pub(crate) fn end(&mut self) -> bool {
        self.with(false, |run| run.end())
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        self.end();
    }
}
