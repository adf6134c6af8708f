//! Memory events of a simulated rank: when its registration cache hears of memory that its program has unmapped.
//!
//! As with userfaultfd the log is busy from the unmapping on, and what has gone is posted later, at a time that
//! the seed chooses. A cache that needs to know waits for that, in the simulated time.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::net::{Listener, NetState, SimAction};
use super::params::MemoryParams;
use super::simulation::Simulated;
use super::trace::TraceStep;
use crate::Rank;
use crate::endpoint::Clock;
use crate::memory::{EventLog, EventSource, PATIENCE, Span, page_bytes};
use crate::sync::lock;

/// How long a cache pauses before it looks again.
const PAUSE: Duration = Duration::from_millis(1);

/// The source of one rank.
#[derive(Debug)]
pub(super) struct Events {
    rank: Simulated,
    log: Arc<EventLog>,
    params: MemoryParams,
    /// Its own: whether memory is known to a cache depends on what else is in its pages, for memory that the
    /// simulation has not mapped. Nothing but the cache depends on these numbers.
    rng: Mutex<Xoshiro256PlusPlus>,
}

impl Events {
    pub(super) fn new(rank: &Simulated, params: MemoryParams) -> Self {
        let log = Arc::new(EventLog::new(params.n_latest));
        if let Some(device) = &rank.net.lock().device {
            let listener = Listener { log: log.clone(), n_pending: AtomicUsize::new(0) };
            let _ = device.listeners[rank.rank as usize].set(listener);
        }
        let rng = Mutex::new(Xoshiro256PlusPlus::seed_from_u64(params.seed ^ u64::from(rank.rank)));
        Events { rank: rank.clone(), log, params, rng }
    }

    fn chance(&self, of_256: u8) -> bool {
        of_256 > 0 && lock(&self.rng).random::<u8>() < of_256
    }
}

impl EventSource for Events {
    fn name(&self) -> &'static str {
        "the simulation"
    }

    fn log(&self) -> Arc<EventLog> {
        self.log.clone()
    }

    /// Some memory cannot be watched, and some is announced although it stays.
    fn watch(&self, span: Span) -> io::Result<()> {
        if self.chance(self.params.refuses_watch) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if self.chance(self.params.announces_more) {
            self.log.post(span);
        }
        Ok(())
    }

    fn unwatch(&self, _: Span) {}

    fn settled(&self) -> bool {
        true
    }

    fn wait(&self, began: &mut Option<Instant>) -> bool {
        let clock = &self.rank.clock;
        let now = clock.now();
        if now - *began.get_or_insert(now) > PATIENCE {
            return false;
        }
        clock.pause(PAUSE);
        true
    }
}

impl NetState {
    /// A rank has unmapped memory: the device has other pages for it from now on, and a cache hears of it.
    pub(super) fn unmapped(&mut self, rank: Rank, memory: Range<usize>) {
        let Some(device) = self.device.clone() else { return };
        device.job.unmap(rank as usize, memory.clone());
        let Some(Listener { log, n_pending }) = device.listeners[rank as usize].get() else {
            return;
        };
        let late = device.params.memory.late_ns;
        // Relaxed, here and below: one thread.
        if n_pending.fetch_add(1, Ordering::Relaxed) == 0 {
            log.begin();
        }
        let late = if late == 0 { 0 } else { self.rng.random_range(0..late) };
        match late {
            0 => self.announce(rank, memory),
            _ => self.after(late, SimAction::Announce(rank, memory)),
        }
    }

    /// What a rank has unmapped is announced.
    pub(super) fn announce(&mut self, rank: Rank, memory: Range<usize>) {
        let Some(device) = self.device.clone() else { return };
        let Some(Listener { log, n_pending }) = device.listeners[rank as usize].get() else {
            return;
        };
        if let Some(span) = Span::of_pages(memory.start, memory.len(), page_bytes()) {
            log.post(span);
        }
        if n_pending.fetch_sub(1, Ordering::Relaxed) == 1 {
            log.end();
        }
        self.note(rank, TraceStep::Memory("is announced"));
        self.wake(rank);
    }
}
