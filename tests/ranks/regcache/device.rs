//! A registrar that checks its callers, and an event source worked by hand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hopbine::memory::{EventQueue, EventSource, Registrar, Span, WatchError};

/// The device is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no free entry")
    }
}

impl std::error::Error for Full {}

/// One registration.
#[derive(Debug, PartialEq, Eq)]
pub struct Handle {
    pub id: u64,
    pub addr: usize,
    pub len: usize,
}

type Hook = Box<dyn Fn() + Send + Sync>;

/// Counts registrations, and fails the test when one is released twice.
#[derive(Default)]
pub struct Device {
    inner: Mutex<Inner>,
    /// Runs in the midst of each registration.
    pub on_register: Mutex<Option<Hook>>,
    /// Most registrations at a time.
    room: Option<usize>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    live: HashMap<u64, (usize, usize)>,
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
}

impl Registrar for Device {
    type Handle = Handle;
    type Error = Full;

    fn register(&self, addr: usize, len: usize) -> Result<Handle, Full> {
        let mut inner = self.inner.lock().unwrap();
        if self.room.is_some_and(|room| inner.live.len() >= room) {
            return Err(Full);
        }
        let id = inner.next;
        inner.next += 1;
        inner.live.insert(id, (addr, len));
        drop(inner);
        if let Some(hook) = &*self.on_register.lock().unwrap() {
            hook();
        }
        Ok(Handle { id, addr, len })
    }

    fn release(&self, handle: Handle) {
        let was = self.inner.lock().unwrap().live.remove(&handle.id);
        assert_eq!(was, Some((handle.addr, handle.len)), "released twice");
    }
}

/// Announces what the test tells it to.
pub struct ByHand {
    queue: Arc<EventQueue>,
    watched: Mutex<Vec<Span>>,
    refuse: bool,
}

impl ByHand {
    pub fn with_queue(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Arc::new(EventQueue::new(capacity)),
            watched: Mutex::default(),
            refuse: false,
        })
    }

    pub fn refusing() -> Arc<Self> {
        Arc::new(Self {
            queue: Arc::new(EventQueue::new(1)),
            watched: Mutex::default(),
            refuse: true,
        })
    }

    pub fn unmap(&self, addr: usize, len: usize) {
        self.queue.post(addr, len);
    }

    pub fn queue(&self) -> &Arc<EventQueue> {
        &self.queue
    }

    pub fn watched(&self) -> Vec<(usize, usize)> {
        let watched = self.watched.lock().unwrap();
        watched.iter().map(|span| (span.start(), span.len())).collect()
    }
}

impl EventSource for ByHand {
    fn name(&self) -> &'static str {
        "by hand"
    }

    fn subscribe(&self) -> Arc<EventQueue> {
        Arc::clone(&self.queue)
    }

    fn watch(&self, span: Span) -> Result<(), WatchError> {
        if self.refuse {
            return Err(WatchError {
                addr: span.start(),
                len: span.len(),
                reason: std::io::ErrorKind::Unsupported.into(),
            });
        }
        self.watched.lock().unwrap().push(span);
        Ok(())
    }

    fn settled(&self) -> bool {
        true
    }
}
