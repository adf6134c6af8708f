//! Calls without a plan that are started, once or repeatedly: see [`Requests`](crate::comm::state::small::Requests).

use std::sync::{Arc, Weak};

use super::run::Run;
use crate::Rank;
use crate::comm::call::Call;
use crate::comm::call::options::CallOptions;
use crate::comm::programs::key::Key;
use crate::comm::state::inner::Inner;
use crate::comm::state::small::{Look, Requests, Start};
use crate::engine::{OperationWatch, ProgressHook};
use crate::error::Error;
use crate::timeline::Procedure;

/// Number of unsuccessful tests after which a watchdog covers further ones.
const FEW_TESTS: u32 = 16;

/// A call that is started, perhaps repeatedly.
pub(crate) struct ShortRun {
    inner: Arc<Inner>,
    state: State,
    /// The call and its options, if it may be started again or a timeline is recorded.
    kept: Option<Box<Kept>>,
    /// Unsuccessful tests so far; the watch over those beyond the first few; the rank that they have waited for.
    n_tests: u32,
    watch: Option<Box<OperationWatch>>,
    awaited: Option<Rank>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not started, or its end has been seen.
    Idle,
    /// Under way, with this number.
    UnderWay(u64),
    /// Ended at its start; its owner has not seen that yet.
    Ended,
}

struct Kept {
    call: Call<'static>,
    options: Arc<CallOptions>,
    procedure: Procedure,
    /// If a timeline is recorded: the time of the last start in ticks, and the number of the next operation then.
    started: Option<(u64, u32)>,
}

// SAFETY: the addresses are used only as long as they are valid; the creator of the value has promised that for all
// threads.
unsafe impl Send for ShortRun {}

impl ShortRun {
    /// Starts a checked, normalized call that `inner`'s [`requests`](Inner::requests) start. `None` if it ended at
    /// once.
    ///
    /// # Safety
    /// As [`Requests::start`].
    ///
    /// # Errors
    /// As [`Requests::start`].
    #[inline]
    pub(super) unsafe fn start_once(
        inner: &Arc<Inner>,
        call: &Call,
        options: &Arc<CallOptions>,
    ) -> Result<Option<Self>, Error> {
        let call = call.without_blocks();
        if inner.of_world.engine.tracer().is_some() {
            let kept = Kept::new(call, options, Procedure::Nonblocking);
            let mut run = ShortRun::new(inner, Some(kept));
            run.start()?;
            return Ok(Some(run));
        }
        // SAFETY: the caller's promise.
        let active = unsafe { begin(inner, &call) }?;
        let under_way =
            |number| ShortRun { state: State::UnderWay(number), ..ShortRun::new(inner, None) };
        Ok(active.map(under_way))
    }

    /// Prepares such a call to be started repeatedly.
    ///
    /// # Safety
    /// As [`Requests::start`], whenever it is under way.
    pub(super) unsafe fn repeated(
        inner: &Arc<Inner>,
        call: &Call,
        options: &Arc<CallOptions>,
    ) -> Self {
        let kept = Kept::new(call.without_blocks(), options, Procedure::Persistent);
        ShortRun::new(inner, Some(kept))
    }

    fn new(inner: &Arc<Inner>, kept: Option<Box<Kept>>) -> Self {
        ShortRun {
            inner: inner.clone(),
            state: State::Idle,
            kept,
            n_tests: 0,
            watch: None,
            awaited: None,
        }
    }

    /// Watches over a test that has found the call waiting. Returns whether the call is over.
    #[cold]
    fn tested(&mut self, number: u64, awaited: Option<Rank>) -> Result<bool, Error> {
        let engine = &self.inner.of_world.engine;
        let watch = self.watch.get_or_insert_default();
        if awaited != self.awaited {
            // The call has received what it awaited before.
            engine.end_watch(watch);
            self.awaited = awaited;
        }
        match engine.note_test(awaited, watch) {
            Ok(()) => Ok(false),
            Err(error) => self.given_up(number, error).map(|()| true),
        }
    }

    #[cold]
    fn wait_long(&mut self, number: u64, mut awaited: Option<Rank>) -> Result<(), Error> {
        let inner = self.inner.clone();
        let mut watch = inner.of_world.engine.watch_gates();
        loop {
            if let Err(error) = watch.idle(awaited) {
                return self.given_up(number, error);
            }
            match self.look(number, true)? {
                Wait::Over => return Ok(()),
                Wait::For(rank) => awaited = rank,
            }
        }
    }

    /// Gives up waiting, because of `error`, unless the call has ended meanwhile.
    fn given_up(&mut self, number: u64, error: Error) -> Result<(), Error> {
        let inner = self.inner.clone();
        loop {
            match requests(&inner).look(number, false, inner.of_world.engine.has_failed()) {
                Look::Waits(_) if inner.of_world.engine.has_failed() => {
                    // A blocking call of another thread is about to fail, too.
                    std::thread::yield_now();
                }
                Look::Waits(_) => inner.of_world.engine.fail(&error),
                Look::Ended => return self.over(Ok(())),
                Look::Failed(error) => return self.over(Err(error)),
                Look::GivenUp => return self.over(Err(error)),
            }
        }
    }

    /// Looks whether the call is over, and notes its end.
    #[inline]
    fn look(&mut self, number: u64, patiently: bool) -> Result<Wait, Error> {
        let inner = &*self.inner;
        let engine = &inner.of_world.engine;
        match requests(inner).look(number, patiently, engine.has_failed()) {
            Look::Ended if self.kept.is_none() && self.watch.is_none() => {
                self.state = State::Idle;
                Ok(Wait::Over)
            }
            Look::Ended => self.over(Ok(Wait::Over)),
            Look::Waits(member) => Ok(Wait::For(member.map(|member| inner.world_rank(member)))),
            Look::Failed(error) => {
                // This rank has done its part, so no other rank waits for it.
                if !engine.allows_mismatch() {
                    engine.fail(&error);
                }
                self.over(Err(error))
            }
            Look::GivenUp => {
                let reason = engine.failure().unwrap_or(Error::Closed);
                self.over(Err(reason))
            }
        }
    }

    /// Notes that the call's end has been seen.
    #[cold]
    fn over<T>(&mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        (self.state, self.n_tests) = (State::Idle, 0);
        let inner = &*self.inner;
        if let Some(watch) = &mut self.watch {
            inner.of_world.engine.end_watch(watch);
        }
        if let Some(kept) = &mut self.kept
            && let Some((start, operation)) = kept.started.take()
        {
            let key = Key::new(&kept.call, &kept.options);
            let by = || Ok(inner.explained_small());
            inner.record_started(&key, kept.procedure, start, (inner.context(), operation), by);
        }
        outcome
    }
}

impl Run for ShortRun {
    fn start(&mut self) -> Result<(), Error> {
        if self.is_active() {
            return Err(Error::Active);
        }
        let inner = &self.inner;
        let Some(kept) = &mut self.kept else { unreachable!("what is started again is kept") };
        kept.started = inner.begun().map(|start| (start, inner.next_operation()));
        // SAFETY: the promise made to `repeated`, or to `start_once`.
        let number = unsafe { begin(inner, &kept.call) }?;
        self.state = number.map_or(State::Ended, State::UnderWay);
        Ok(())
    }

    fn is_active(&self) -> bool {
        self.state != State::Idle
    }

    #[inline]
    fn has_ended(&self) -> bool {
        match self.state {
            State::UnderWay(number) => requests(&self.inner).has_ended(number),
            State::Idle | State::Ended => true,
        }
    }

    fn test(&mut self, moves_on: bool) -> Result<bool, Error> {
        let number = match self.state {
            State::UnderWay(number) => number,
            State::Idle => return Ok(true),
            State::Ended => return self.over(Ok(true)),
        };
        if moves_on && !self.has_ended() {
            self.inner.of_world.engine.progress_once();
        }
        match self.look(number, false)? {
            Wait::Over => Ok(true),
            Wait::For(awaited) if self.n_tests >= FEW_TESTS => self.tested(number, awaited),
            Wait::For(_) => {
                self.n_tests += 1;
                Ok(false)
            }
        }
    }

    #[inline]
    fn wait(&mut self) -> Result<(), Error> {
        let number = match self.state {
            State::UnderWay(number) => number,
            State::Idle => return Ok(()),
            State::Ended => return self.over(Ok(())),
        };
        match self.look(number, true)? {
            Wait::Over => Ok(()),
            Wait::For(awaited) => self.wait_long(number, awaited),
        }
    }

    fn end(&mut self) {
        // A caller that ends the call without waiting does not need the outcome.
        let _ = self.wait();
    }

    fn has_failed(&self) -> bool {
        self.inner.of_world.engine.has_failed()
    }
}

impl Kept {
    fn new(call: Call<'static>, options: &Arc<CallOptions>, procedure: Procedure) -> Box<Self> {
        Box::new(Kept { call, options: options.clone(), procedure, started: None })
    }
}

enum Wait {
    Over,
    /// The call waits for this rank of the world, if known.
    For(Option<Rank>),
}

/// Starts a call; returns its number, unless it has ended.
///
/// # Safety
/// As [`Requests::start`].
#[inline]
unsafe fn begin(inner: &Arc<Inner>, call: &Call<'static>) -> Result<Option<u64>, Error> {
    let _in_place = inner.in_place();
    let mut waiter = inner.at_hardware();
    // SAFETY: the caller's promise.
    match unsafe { requests(inner).start(call, &mut waiter) }? {
        Start::Ended => Ok(None),
        Start::UnderWay { number, hooks } => {
            if hooks {
                let hooked: Weak<Inner> = Arc::downgrade(inner);
                inner.of_world.engine.add_hook(hooked as Weak<dyn ProgressHook>);
            }
            Ok(Some(number))
        }
    }
}

#[inline]
fn requests(inner: &Inner) -> &dyn Requests {
    let Some(requests) = inner.requests() else { unreachable!("it has started a call") };
    requests
}
