//! The memory events of this process: one thread reads them from the kernel and announces them in a log that every
//! cache reads.
//!
//! # Why userfaultfd
//! The kernel misses no event. The alternative where userfaultfd is not available ([`hooks`]) changes code of the C
//! library, separately for each kind of processor, and misses direct system calls.
//!
//! # Order
//! The reader, woken by a report that it has not read yet, first marks the log busy ([`EventLog::begin`]), then
//! reads, which lets the unmapping thread continue, then posts, then ends. So once `munmap` has returned, a lookup
//! finds the log busy or the range posted. *Another* thread may be given the same addresses while `munmap` is still
//! waiting; [`EventSource::settled`] covers this case.
//!
//! # Cost and limits
//! A thread that takes watched memory away waits for the reader to wake. Memory of files (including initialised
//! static data) cannot be watched, nor, in write-protect mode, shared memory and hugetlbfs pages; registrations of
//! such memory are not kept. Missing mode can watch shared memory and hugetlbfs pages, but does not report the
//! truncation of a shared object by another process. The reader takes no lock, allocates nothing and frees nothing.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::events::{EventLog, EventSource};
use super::hooks;
use super::pages::Pages;
use super::span::Span;
use super::uffd::{Uffd, UffdMessage, UffdReport, WatchMode};

/// Ranges that the log keeps for caches to read.
const LATEST: usize = 4096;
/// Messages read at once.
const BATCH: usize = 16;
/// Page sizes to try after the base page, in bytes: all that AArch64 and x86-64 kernels offer for 4 KiB and 64 KiB
/// base pages.
const HUGE_PAGES: [usize; 6] = [64 << 10, 2 << 20, 32 << 20, 512 << 20, 1 << 30, 16 << 30];

/// Events of the whole process, shared by all caches.
#[derive(Debug)]
pub struct ProcessEvents {
    uffd: Uffd,
    page: usize,
    /// Set when the reader has given up: nothing more is watched.
    broken: AtomicBool,
    /// Every listener holds a reference.
    log: Arc<EventLog>,
    /// Held while the number of listeners grows, or must not grow. The reader never takes it.
    listeners: Mutex<()>,
}

impl ProcessEvents {
    /// The event source of this process; the first call probes the system.
    ///
    /// # Errors
    /// What was tried and why it failed; the same at every call.
    pub fn shared() -> Result<Arc<dyn EventSource>, String> {
        static SHARED: OnceLock<Result<Arc<dyn EventSource>, String>> = OnceLock::new();
        let by_kernel = |mode| Self::start(mode).map(|events| events as Arc<dyn EventSource>);
        let probe = || {
            let protect = match by_kernel(WatchMode::WriteProtect) {
                Err(reason) => reason,
                found => return found,
            };
            let missing = match by_kernel(WatchMode::Missing) {
                Err(reason) => reason,
                found => return found,
            };
            hooks::start().map_err(|hooks| {
                format!(
                    "the system does not report freed memory: userfaultfd (write-protect) {protect}; userfaultfd (missing) \
                     {missing}; the C library's functions cannot be changed: {hooks}"
                )
            })
        };
        SHARED.get_or_init(probe).clone()
    }

    /// Opens the descriptor, starts the reader, and tests it on a page. The reader lives as long as the process.
    fn start(mode: WatchMode) -> Result<Arc<Self>, String> {
        let uffd = Uffd::open(mode).map_err(|error| format!("cannot be opened: {error}"))?;
        let events = Arc::new(Self {
            uffd,
            page: super::page_bytes(),
            broken: AtomicBool::new(false),
            log: Arc::new(EventLog::new(LATEST)),
            listeners: Mutex::new(()),
        });
        let reader = Arc::clone(&events);
        // A handler on the reader's thread could unmap memory, and would then wait for the reader itself.
        let is_reported = hopbine_meet::without_signals(|| {
            thread::Builder::new()
                .name("hopbine-memory".to_owned())
                .spawn(move || reader.read_forever())
        })
        .and_then(|_| events.reports_an_unmapping());
        match is_reported {
            Ok(true) => Ok(events),
            Ok(false) => Err("did not report the unmapping of a watched page".to_owned()),
            Err(error) => Err(format!("cannot be read or tried: {error}")),
        }
    }

    /// Maps a page, watches it and unmaps it; returns whether that was reported.
    fn reports_an_unmapping(&self) -> io::Result<bool> {
        let before = self.log.position();
        let page = Pages::new(1).map_err(io::Error::other)?;
        self.uffd.watch(page.span())?;
        drop(page);
        Ok(self.log.has_news(before))
    }

    fn read_forever(&self) {
        let mut buffer = [UffdMessage::default(); BATCH];
        while self.uffd.wait().is_ok() {
            self.log.begin();
            let read = self.post_reports(&mut buffer);
            self.log.end();
            if read.is_err() {
                break;
            }
        }
        self.give_up();
    }

    /// Ends reporting after an error of the kernel: from now on nothing is watched, all regions end, and no thread
    /// waits for the reader.
    fn give_up(&self) {
        self.log.begin();
        // Release: pairs with the acquire in `watch`.
        self.broken.store(true, Ordering::Release);
        self.uffd.abandon();
        self.log.post(Span::EVERYTHING);
        self.log.end();
    }

    /// Reads until no report waits, and posts the ranges that have lost their pages.
    fn post_reports(&self, buffer: &mut [UffdMessage]) -> io::Result<()> {
        loop {
            let messages = self.uffd.read(buffer)?;
            if messages.is_empty() {
                return Ok(());
            }
            for message in messages {
                let span = match message.report() {
                    UffdReport::Removed(span) => span,
                    UffdReport::Fault(addr) => self.resolve_fault(addr),
                    UffdReport::Other => continue,
                };
                self.log.post(span);
            }
        }
    }

    /// Resolves a fault. A missing page cannot be part of a sound registration: its watch ends, the kernel serves the
    /// fault, and registrations of the page end too. The watch ends before the post, so that a registration which was
    /// watched in between sees the post.
    fn resolve_fault(&self, addr: usize) -> Span {
        let aligned = |size: usize| Span::raw(addr & !(size - 1), (addr & !(size - 1)) + size);
        let mut sizes = std::iter::once(self.page).chain(HUGE_PAGES);
        let ended = sizes.find(|size| self.uffd.unwatch(aligned(*size)).is_ok());
        let span = aligned(ended.unwrap_or(self.page));
        if ended.is_none() {
            // The mapping no longer exists: the waiting thread faults again and detects that.
            self.uffd.wake(span);
        }
        span
    }

    /// Watches the range; if that is refused, perhaps because the range cuts huge pages, watches the same range in
    /// whole huge pages, which only missing mode supports.
    fn watch_pages(&self, span: Span) -> io::Result<()> {
        let refused = match self.uffd.watch(span) {
            Err(refused) if self.uffd.mode() == WatchMode::Missing => refused,
            answer => return answer,
        };
        let widened = HUGE_PAGES
            .iter()
            .filter_map(|size| Span::of_pages(span.start(), span.len(), *size))
            .any(|wide| wide.start() > 0 && self.uffd.watch(wide).is_ok());
        widened.then_some(()).ok_or(refused)
    }

    fn lock_listeners(&self) -> MutexGuard<'_, ()> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSource for ProcessEvents {
    fn name(&self) -> &'static str {
        self.uffd.mode().name()
    }

    fn log(&self) -> Arc<EventLog> {
        let _guard = self.lock_listeners();
        Arc::clone(&self.log)
    }

    fn watch(&self, span: Span) -> io::Result<()> {
        self.watch_pages(span)?;
        // Acquire: pairs with the release in `give_up`. Checked after the watch: a reader that gives up later ends
        // this registration too.
        if self.broken.load(Ordering::Acquire) {
            return Err(io::Error::other("the reader of memory events has ended"));
        }
        Ok(())
    }

    /// Ends the watch only while there is one listener: regions of another listener may share the pages.
    fn unwatch(&self, span: Span) {
        // A thread that becomes a listener later also watches its ranges later.
        let _guard = self.lock_listeners();
        let n_listeners = Arc::strong_count(&self.log) - 1;
        if n_listeners == 1 {
            // The kernel refuses, for instance, if the mapping no longer exists.
            let _ = self.uffd.unwatch(span);
        }
    }

    fn settled(&self) -> bool {
        self.broken.load(Ordering::Relaxed) || self.uffd.settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::events::Position;
    use hopbine_testing::huge::HugePages;
    use hopbine_testing::skip;

    /// Events in the mode that this machine does not prefer.
    #[track_caller]
    fn missing() -> Option<Arc<ProcessEvents>> {
        match ProcessEvents::start(WatchMode::Missing) {
            Ok(events) => {
                settle(&events.log);
                Some(events)
            }
            Err(error) => {
                skip(format!("there are no events of missing pages: {error}"));
                None
            }
        }
    }

    /// Waits until everything that has happened so far is announced, such as the test at the start.
    fn settle(log: &EventLog) {
        while log.is_busy() {
            thread::yield_now();
        }
    }

    fn gone(log: &EventLog, position: &mut Position) -> Vec<Span> {
        settle(log);
        let mut gone = Vec::new();
        log.read(position, |event| gone.push(event));
        gone
    }

    /// A page that is first touched after it is watched ends the watch, and the touching thread continues.
    #[test]
    fn a_missing_page_is_let_go_and_announced() {
        let Some(events) = missing() else { return };
        let pages = Pages::new(4 * events.page as u64).unwrap();
        let (span, page) = (pages.span(), events.page);
        // SAFETY: within the pages, which only this test knows.
        let touch = |at: usize| unsafe { pages.ptr().add(at).write_volatile(1) };
        let mut position = events.log.position();
        let mut gone = || gone(&events.log, &mut position);
        touch(0);
        events.watch(span).unwrap();
        touch(1);
        assert_eq!(gone(), [], "a page that is there is not missed");
        touch(2 * page);
        let missed = span.start() + 2 * page;
        assert_eq!(gone(), [Span::raw(missed, missed + page)]);
        drop(pages);
        let first = Span::raw(span.start(), span.start() + page);
        let gone = gone();
        assert!(gone.iter().any(|span| span.covers(first)), "{gone:?}");
    }

    /// A watch on a range inside a huge page covers the whole huge page.
    #[test]
    fn huge_pages_are_watched_whole() {
        let Some(pages) = HugePages::map() else { return };
        let Some(events) = missing() else { return };
        // SAFETY: within the mapping, which only this test knows.
        let touch = |at: usize| unsafe { pages.ptr().add(at).write_volatile(1) };
        touch(0);
        let (addr, page) = (pages.ptr() as usize, events.page);
        let position = events.log.position();
        events.watch(Span::raw(addr + page, addr + 3 * page)).unwrap();
        touch(page);
        assert!(!events.log.has_news(position));
        drop(pages);
        assert!(events.log.has_news(position));
    }
}
