//! A device that checks its callers, a cache of its registrations, and an event source that tests control.

use hopbine_torus::PortId;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use hopbine::memory::{
    Cache, CacheConfig, CacheError, CacheStats, EventLog, EventSource, Keep, Lease, RegisterError,
    Span, page_bytes,
};

/// Error of a full device.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no free entry")]
pub struct Full;

impl RegisterError for Full {
    fn lacks_room(&self) -> bool {
        true
    }
}

/// A registration; dropping it deregisters the memory.
#[derive(Debug)]
pub struct Handle {
    device: Arc<Device>,
    pub id: u64,
    addr: usize,
    len: usize,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut inner = self.device.inner.lock().unwrap();
        let entry = inner.live.get_mut(&self.id).expect("released twice");
        entry.n_handles -= 1;
        if entry.n_handles == 0 {
            inner.live.remove(&self.id);
        }
    }
}

/// A function that a test runs in the middle of an operation.
#[derive(Default)]
pub struct Hook(Mutex<Option<Arc<dyn Fn() + Send + Sync>>>);

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

impl Hook {
    pub fn set(&self, act: impl Fn() + Send + Sync + 'static) {
        *self.0.lock().unwrap() = Some(Arc::new(act));
    }

    fn run(&self) {
        let act = self.0.lock().unwrap().clone();
        if let Some(act) = act {
            act();
        }
    }
}

/// A device that counts registrations and fails the test if one is released twice. As in uTofu, a registration of
/// pages that are registered already at the port has the same id.
#[derive(Debug, Default)]
pub struct Device {
    inner: Mutex<Inner>,
    /// Runs during each registration.
    pub on_register: Hook,
    /// Largest number of registrations at a time; `None` for no limit.
    room: Option<usize>,
    /// Address from which on there is no memory any more; `None` for nowhere.
    pub gone_from: Mutex<Option<usize>>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    live: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    port: PortId,
    pages: Range<usize>,
    is_shared: bool,
    n_handles: usize,
}

impl Device {
    pub fn with_room(room: usize) -> Self {
        Self { room: Some(room), ..Self::default() }
    }

    pub fn live(&self) -> usize {
        self.inner.lock().unwrap().live.len()
    }

    pub fn is_live(&self, id: u64) -> bool {
        self.inner.lock().unwrap().live.contains_key(&id)
    }

    pub fn made(&self) -> u64 {
        self.inner.lock().unwrap().next
    }

    pub fn register(
        self: &Arc<Self>,
        port: PortId,
        addr: usize,
        len: usize,
        alone: bool,
    ) -> Result<(Handle, u64), Full> {
        let mut inner = self.inner.lock().unwrap();
        let is_gone = self.gone_from.lock().unwrap().is_some_and(|gone| addr + len > gone);
        let has_pages = |entry: &Entry| {
            let (start, end) = (entry.pages.start, entry.pages.end);
            entry.is_shared && entry.port == port && start <= addr && addr + len <= end
        };
        let shared = inner.live.iter_mut().find(|(_, entry)| !alone && has_pages(entry));
        if let Some((&id, entry)) = shared {
            entry.n_handles += 1;
            return Ok((Handle { device: self.clone(), id, addr, len }, id));
        }
        if is_gone || self.room.is_some_and(|room| inner.live.len() >= room) {
            return Err(Full);
        }
        let id = inner.next;
        inner.next += 1;
        let pages = addr..addr + len;
        inner.live.insert(id, Entry { port, pages, is_shared: !alone, n_handles: 1 });
        drop(inner);
        self.on_register.run();
        Ok((Handle { device: self.clone(), id, addr, len }, id))
    }
}

/// A cache of the device's registrations. Its leases are released when they are dropped.
#[derive(Debug)]
pub struct Shared {
    pub device: Arc<Device>,
    cache: Cache<Handle>,
}

/// A lease of a registration.
#[derive(Debug)]
pub struct Use<'c> {
    shared: &'c Shared,
    port: PortId,
    lease: Option<Lease<Handle>>,
    pub id: u64,
    /// Address of the registered memory; `len` is its length in bytes.
    pub addr: usize,
    pub len: usize,
    pub offset: u64,
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        let lease = self.lease.take().expect("given back only here");
        self.shared.cache.release(self.port, lease);
    }
}

impl Shared {
    pub fn new(
        device: Device,
        config: CacheConfig,
        n_ports: usize,
        source: Option<Arc<ByHand>>,
    ) -> Self {
        let source = source.map(|source| source as Arc<dyn EventSource>);
        let source = source.ok_or_else(|| "the test has none".to_owned());
        let cache = Cache::new(config, n_ports, source);
        Shared { device: Arc::new(device), cache }
    }

    pub fn get(&self, addr: usize, len: usize) -> Result<Use<'_>, CacheError<Full>> {
        self.get_at(0, addr, len)
    }

    pub fn get_at(
        &self,
        port: usize,
        addr: usize,
        len: usize,
    ) -> Result<Use<'_>, CacheError<Full>> {
        let settled = self.cache().settle();
        self.lease(Keep::UntilEvent(settled), port, addr, len)
    }

    pub fn get_uncached(&self, addr: usize, len: usize) -> Result<Use<'_>, CacheError<Full>> {
        self.lease(Keep::Once, 0, addr, len)
    }

    pub fn keep_at(
        &self,
        port: usize,
        addr: usize,
        len: usize,
    ) -> Result<Use<'_>, CacheError<Full>> {
        self.lease(Keep::Explicitly, port, addr, len)
    }

    fn lease(
        &self,
        keep: Keep,
        port: usize,
        addr: usize,
        len: usize,
    ) -> Result<Use<'_>, CacheError<Full>> {
        let port = PortId(port as u16);
        let register = |addr, len, alone| self.device.register(port, addr, len, alone);
        let lease = self.cache.get(keep, port, addr, len, register)?;
        let Handle { id, addr, len, .. } = *lease.handle();
        let offset = lease.offset();
        Ok(Use { shared: self, port, lease: Some(lease), id, addr, len, offset })
    }

    /// The cache itself.
    pub fn cache(&self) -> &Cache<Handle> {
        &self.cache
    }

    pub fn stats(&self) -> CacheStats {
        self.cache().stats()
    }
}

/// An event source that announces the events that a test posts.
#[derive(Debug)]
pub struct ByHand {
    log: Arc<EventLog>,
    watched: Mutex<Vec<Span>>,
    /// Runs after each watch.
    pub on_watch: Hook,
    refuse: bool,
    /// If true, the source never reports that all events have been announced.
    pub stuck: bool,
}

impl ByHand {
    /// A source whose log holds the latest `capacity` events.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self::of(capacity))
    }

    fn of(capacity: usize) -> Self {
        let log = Arc::new(EventLog::new(capacity));
        ByHand {
            log,
            watched: Mutex::default(),
            on_watch: Hook::default(),
            refuse: false,
            stuck: false,
        }
    }

    pub fn refusing() -> Arc<Self> {
        Arc::new(ByHand { refuse: true, ..Self::of(1) })
    }

    pub fn stuck() -> Arc<Self> {
        Arc::new(ByHand { stuck: true, ..Self::of(1) })
    }

    pub fn unmap(&self, addr: usize, len: usize) {
        // Only one thread at a time may write to the log.
        let _guard = self.watched.lock().unwrap();
        // The kernel announces whole pages, too.
        self.log.post(Span::of_pages(addr, len, page_bytes()).unwrap());
    }

    /// Watched ranges as start and length, in the order of watching.
    pub fn watched(&self) -> Vec<(usize, usize)> {
        let watched = self.watched.lock().unwrap();
        watched.iter().map(|span| (span.start(), span.len())).collect()
    }
}

impl EventSource for ByHand {
    fn name(&self) -> &'static str {
        "by hand"
    }

    fn log(&self) -> Arc<EventLog> {
        Arc::clone(&self.log)
    }

    fn watch(&self, span: Span) -> std::io::Result<()> {
        if self.refuse {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        self.watched.lock().unwrap().push(span);
        self.on_watch.run();
        Ok(())
    }

    /// Removes the range from all watches and keeps their remaining parts.
    fn unwatch(&self, span: Span) {
        let mut watched = self.watched.lock().unwrap();
        let whole = std::mem::take(&mut *watched);
        for old in whole {
            let [start, end] = [old.start(), old.end()];
            for (from, to) in [(start, end.min(span.start())), (start.max(span.end()), end)] {
                if from < to {
                    watched.push(Span::of_pages(from, to - from, page_bytes()).unwrap());
                }
            }
        }
    }

    fn settled(&self) -> bool {
        !self.stuck
    }
}
