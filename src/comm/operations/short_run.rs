//! Calls without a plan that are started, once or repeatedly: see [`Requests`].

use std::sync::{Arc, Weak};

use super::run::Run;
use crate::Rank;
use crate::comm::call::Call;
use crate::comm::call::options::CallOptions;
use crate::comm::programs::key::Key;
use crate::comm::state::inner::Inner;
use crate::comm::state::small::{CallStatus, Requests, StartStatus};
use crate::engine::{OperationWatch, ProgressHook};
use crate::error::Error;
use crate::timeline::Procedure;

/// Number of unsuccessful tests after which a watchdog covers further ones.
const UNWATCHED_TESTS: u32 = 16;

/// A call that is started, perhaps repeatedly.
pub(crate) struct ShortRun {
    inner: Arc<Inner>,
    state: State,
    /// The call and its options, if it may be started again or a timeline is recorded.
    kept: Option<Box<KeptCall>>,
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

struct KeptCall {
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
        if inner.world.engine.tracer().is_some() {
            let kept = KeptCall::new(call, options, Procedure::Nonblocking);
            let mut run = ShortRun::new(inner, Some(kept));
            run.start()?;
            return Ok(Some(run));
        }
        // SAFETY: the caller's promise.
        let active = unsafe { start_call(inner, &call) }?;
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
        let kept = KeptCall::new(call.without_blocks(), options, Procedure::Persistent);
        ShortRun::new(inner, Some(kept))
    }

    fn new(inner: &Arc<Inner>, kept: Option<Box<KeptCall>>) -> Self {
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
    fn watch_test(&mut self, number: u64, awaited: Option<Rank>) -> Result<bool, Error> {
        let engine = &self.inner.world.engine;
        let watch = self.watch.get_or_insert_default();
        if awaited != self.awaited {
            // The call has received what it awaited before.
            engine.end_watch(watch);
            self.awaited = awaited;
        }
        match engine.note_test(awaited, watch) {
            Ok(()) => Ok(false),
            Err(error) => self.give_up(number, error).map(|()| true),
        }
    }

    #[cold]
    fn wait_long(&mut self, number: u64, mut awaited: Option<Rank>) -> Result<(), Error> {
        let inner = self.inner.clone();
        let mut watch = inner.world.engine.watch_gates();
        loop {
            if let Err(error) = watch.idle(awaited) {
                return self.give_up(number, error);
            }
            match self.poll(number, true)? {
                Wait::Ended => return Ok(()),
                Wait::For(rank) => awaited = rank,
            }
        }
    }

    /// Gives up waiting, because of `error`, unless the call has ended meanwhile.
    fn give_up(&mut self, number: u64, error: Error) -> Result<(), Error> {
        let inner = self.inner.clone();
        loop {
            match requests(&inner).poll(number, false, inner.world.engine.has_failed()) {
                CallStatus::Waits(_) if inner.world.engine.has_failed() => {
                    // A blocking call of another thread is about to fail, too.
                    std::thread::yield_now();
                }
                CallStatus::Waits(_) => inner.world.engine.fail(&error),
                CallStatus::Ended => return self.note_end(Ok(())),
                CallStatus::Failed(error) => return self.note_end(Err(error)),
                CallStatus::GivenUp => return self.note_end(Err(error)),
            }
        }
    }

    /// Looks whether the call is over, and notes its end.
    #[inline]
    fn poll(&mut self, number: u64, spins: bool) -> Result<Wait, Error> {
        let inner = &*self.inner;
        let engine = &inner.world.engine;
        match requests(inner).poll(number, spins, engine.has_failed()) {
            CallStatus::Ended if self.kept.is_none() && self.watch.is_none() => {
                self.state = State::Idle;
                Ok(Wait::Ended)
            }
            CallStatus::Ended => self.note_end(Ok(Wait::Ended)),
            CallStatus::Waits(member) => {
                Ok(Wait::For(member.map(|member| inner.world_rank(member))))
            }
            CallStatus::Failed(error) => {
                // This rank has done its part, so no other rank waits for it.
                if !engine.allows_mismatch() {
                    engine.fail(&error);
                }
                self.note_end(Err(error))
            }
            CallStatus::GivenUp => {
                let reason = engine.failure().unwrap_or(Error::Closed);
                self.note_end(Err(reason))
            }
        }
    }

    /// Notes that the call's end has been seen.
    #[cold]
    fn note_end<T>(&mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        (self.state, self.n_tests) = (State::Idle, 0);
        let inner = &*self.inner;
        if let Some(watch) = &mut self.watch {
            inner.world.engine.end_watch(watch);
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
        kept.started = inner.start_ticks().map(|start| (start, inner.next_operation()));
        // SAFETY: the promise made to `repeated`, or to `start_once`.
        let number = unsafe { start_call(inner, &kept.call) }?;
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

    fn test(&mut self, advances_others: bool) -> Result<bool, Error> {
        let number = match self.state {
            State::UnderWay(number) => number,
            State::Idle => return Ok(true),
            State::Ended => return self.note_end(Ok(true)),
        };
        if advances_others && !self.has_ended() {
            self.inner.world.engine.progress_once();
        }
        match self.poll(number, false)? {
            Wait::Ended => Ok(true),
            Wait::For(awaited) if self.n_tests >= UNWATCHED_TESTS => {
                self.watch_test(number, awaited)
            }
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
            State::Ended => return self.note_end(Ok(())),
        };
        match self.poll(number, true)? {
            Wait::Ended => Ok(()),
            Wait::For(awaited) => self.wait_long(number, awaited),
        }
    }

    fn end(&mut self) -> bool {
        // A caller that ends the call without waiting does not need the outcome.
        let _ = self.wait();
        self.inner.world.engine.has_failed()
    }
}

impl KeptCall {
    fn new(call: Call<'static>, options: &Arc<CallOptions>, procedure: Procedure) -> Box<Self> {
        Box::new(KeptCall { call, options: options.clone(), procedure, started: None })
    }
}

enum Wait {
    Ended,
    /// The call waits for this rank of the world, if known.
    For(Option<Rank>),
}

/// Starts a call; returns its number, unless it has ended.
///
/// # Safety
/// As [`Requests::start`].
#[inline]
unsafe fn start_call(inner: &Arc<Inner>, call: &Call<'static>) -> Result<Option<u64>, Error> {
    let _open = inner.keep_open();
    let mut waiter = inner.hardware_waiter();
    // SAFETY: the caller's promise.
    match unsafe { requests(inner).start(call, &mut waiter) }? {
        StartStatus::Ended => Ok(None),
        StartStatus::UnderWay { number, needs_hook } => {
            if needs_hook {
                let hooked: Weak<Inner> = Arc::downgrade(inner);
                inner.world.engine.add_hook(hooked as Weak<dyn ProgressHook>);
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
