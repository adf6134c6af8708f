//! The functions that replace the C library's, and the ranges that they announce.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::patch::Patch;
use crate::memory::events::{EventLog, EventSource};
use crate::memory::forks;
use crate::memory::page_bytes;
use crate::memory::pages::Pages;
use crate::memory::span::Span;
use crate::symbols::file_of;

/// Ranges that the log keeps for caches to read.
const LATEST: usize = 4096;
/// Attempts to take `writer_lock`. Its holder performs three stores, so a short spin suffices.
const TRIES: usize = 10_000;

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// The events of the changed functions, shared by all caches.
#[derive(Debug)]
struct Hooks {
    log: Arc<EventLog>,
    /// The writer's lock: held by the thread that posts.
    writer_lock: AtomicBool,
    /// Ranges that could not be posted: a signal handler may have interrupted the holder of `writer_lock`.
    n_lost: AtomicUsize,
    /// The word with the program break, in the C library.
    current_break: *const AtomicUsize,
    page: usize,
    patches: OnceLock<Vec<Patch>>,
    /// The jumps have been overwritten: nothing more is watched.
    broken: AtomicBool,
}

// SAFETY: the address of a word of the C library, which exists as long as the process, and which is accessed as an
// atomic.
unsafe impl Send for Hooks {}
// SAFETY: as above.
unsafe impl Sync for Hooks {}

/// [`Hooks`] as the event source of a registration cache.
#[derive(Debug)]
struct Source(&'static Hooks);

/// The events of the C library's functions; the first call changes the functions.
///
/// # Errors
/// The reason why they cannot be changed.
pub(in crate::memory) fn start() -> Result<Arc<dyn EventSource>, String> {
    let hooks = match HOOKS.get() {
        Some(hooks) => hooks,
        None => {
            let hooks = Hooks::new()?;
            HOOKS.get_or_init(|| hooks)
        }
    };
    if hooks.patches.get().is_none() {
        let patches = hooks.patch()?;
        let _ = hooks.patches.set(patches);
    }
    match hooks.reports_an_unmapping() {
        true => Ok(Arc::new(Source(hooks))),
        false => Err("did not report the unmapping of a page".to_owned()),
    }
}

impl Hooks {
    fn new() -> Result<Self, String> {
        let current_break = library(c"__curbrk")?.cast_const().cast();
        Ok(Hooks {
            log: Arc::new(EventLog::new(LATEST)),
            writer_lock: AtomicBool::new(false),
            n_lost: AtomicUsize::new(0),
            current_break,
            page: page_bytes(),
            patches: OnceLock::new(),
            broken: AtomicBool::new(false),
        })
    }

    /// Changes all functions, or none.
    fn patch(&self) -> Result<Vec<Patch>, String> {
        stay_loaded()?;
        let hooks: [(&CStr, *const c_void); 6] = [
            (c"munmap", munmap as *const c_void),
            (c"mremap", mremap as *const c_void),
            (c"madvise", madvise as *const c_void),
            (c"mmap", mmap as *const c_void),
            (c"shmdt", shmdt as *const c_void),
            (c"brk", brk as *const c_void),
        ];
        let named = |name: &CStr, error: io::Error| format!("{}: {error}", name.to_string_lossy());
        let prepared: Result<Vec<_>, String> = hooks
            .iter()
            .map(|&(name, hook)| {
                // SAFETY: the C library's function of that name, and a hook that does the same.
                let patch = unsafe { Patch::prepare(library(name)?, hook) };
                patch.map_err(|error| named(name, error))
            })
            .collect();
        let mut patches: Vec<Patch> = Vec::new();
        for ((name, _), patch) in hooks.iter().zip(prepared?) {
            if let Err(error) = patch.install() {
                patches.iter().for_each(Patch::restore);
                return Err(named(name, error));
            }
            patches.push(patch);
        }
        Ok(patches)
    }

    /// Maps a page and unmaps it through the C library; returns whether that was announced.
    fn reports_an_unmapping(&self) -> bool {
        let before = self.log.position();
        let page = Pages::new(1).map_err(|_| ());
        drop(page);
        self.log.has_news(before)
    }

    /// Announces that a range loses its pages.
    fn announce(&self, addr: usize, len: usize) {
        match Span::of_pages(addr, len, self.page) {
            Some(span) if !forks::is_child() => self.post(span),
            // Not a valid range, which the system call will reject; or a child process, in which no cache listens.
            _ => {}
        }
    }

    fn post(&self, span: Span) {
        for _ in 0..TRIES {
            if self.try_post(span) {
                return;
            }
            std::hint::spin_loop();
        }
        // Release: pairs with the acquire in `settled`.
        self.n_lost.fetch_add(1, Ordering::Release);
    }

    fn try_post(&self, span: Span) -> bool {
        // Acquire, with the release below: the last writer's posts precede this one.
        let is_free = self.writer_lock.compare_exchange_weak(
            false,
            true,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if is_free.is_err() {
            return false;
        }
        self.log.post(span);
        self.writer_lock.store(false, Ordering::Release);
        true
    }

    fn post_everything(&self) {
        while !self.try_post(Span::EVERYTHING) {
            std::thread::yield_now();
        }
    }

    fn is_intact(&self) -> bool {
        self.patches.get().is_some_and(|patches| patches.iter().all(Patch::is_intact))
    }
}

impl EventSource for Source {
    fn name(&self) -> &'static str {
        "functions of the C library, changed"
    }

    fn log(&self) -> Arc<EventLog> {
        self.0.log.clone()
    }

    /// Succeeds for every range, since everything is announced, until the jumps are overwritten.
    fn watch(&self, _: Span) -> io::Result<()> {
        match self.0.broken.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(io::Error::other("another library has changed the C library's functions")),
        }
    }

    fn unwatch(&self, _: Span) {}

    /// Events are announced before their memory is taken away. This call detects that some were not.
    fn settled(&self) -> bool {
        let Source(hooks) = self;
        if !hooks.is_intact() && !hooks.broken.swap(true, Ordering::AcqRel) {
            hooks.post_everything();
        }
        // A load first: mostly the number is 0, and a write costs more.
        if hooks.n_lost.load(Ordering::Acquire) > 0 && hooks.n_lost.swap(0, Ordering::AcqRel) > 0 {
            hooks.post_everything();
        }
        true
    }
}

/// Address of a symbol of the C library.
fn library(name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: a constant name; nothing is loaded that is not loaded already.
    let found = unsafe {
        let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        match library.is_null() {
            true => std::ptr::null_mut(),
            false => libc::dlsym(library, name.as_ptr()),
        }
    };
    match found.is_null() {
        true => Err(format!("libc.so.6 is not loaded, or has no {}", name.to_string_lossy())),
        false => Ok(found),
    }
}

/// Prevents the unloading of this code: the C library is about to jump to it.
fn stay_loaded() -> Result<(), String> {
    let file = file_of(munmap as *const c_void).ok_or("the file of this library is not known")?;
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name that the loader gave. If the loader has no object of that name, the code is in the program
    // itself, which is never unloaded.
    unsafe { libc::dlopen(file.as_ptr(), flags) };
    Ok(())
}

/// Announces a range, for the functions below, which are not called before there are hooks.
fn announce(addr: usize, len: usize) {
    if let Some(hooks) = HOOKS.get() {
        hooks.announce(addr, len);
    }
}

unsafe extern "C" fn munmap(addr: usize, len: usize) -> c_int {
    announce(addr, len);
    // SAFETY: the call that the caller requested of the C library.
    unsafe { libc::syscall(libc::SYS_munmap, addr, len) as c_int }
}

unsafe extern "C" fn mremap(
    addr: usize,
    len: usize,
    new_len: usize,
    flags: c_int,
    new_addr: usize,
) -> c_long {
    announce(addr, len);
    if flags & libc::MREMAP_FIXED != 0 {
        announce(new_addr, new_len);
    }
    // SAFETY: as above. The C library's function has its last argument in the same place.
    unsafe { libc::syscall(libc::SYS_mremap, addr, len, new_len, flags as c_long, new_addr) }
}

unsafe extern "C" fn madvise(addr: usize, len: usize, advice: c_int) -> c_int {
    const DONTNEED_LOCKED: c_int = 24;
    if matches!(advice, libc::MADV_DONTNEED | libc::MADV_FREE | libc::MADV_REMOVE | DONTNEED_LOCKED)
    {
        announce(addr, len);
    }
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_madvise, addr, len, advice as c_long) as c_int }
}

unsafe extern "C" fn mmap(
    addr: usize,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> c_long {
    // With NOREPLACE, no existing mapping is replaced.
    const NOREPLACE: c_int = libc::MAP_FIXED_NOREPLACE & !libc::MAP_FIXED;
    if flags & libc::MAP_FIXED != 0 && flags & NOREPLACE == 0 {
        announce(addr, len);
    }
    let [protection, flags, file] = [protection, flags, file].map(c_long::from);
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_mmap, addr, len, protection, flags, file, offset) }
}

unsafe extern "C" fn shmdt(addr: usize) -> c_int {
    // Only the kernel knows the length.
    if let Some(hooks) = HOOKS.get().filter(|_| !forks::is_child()) {
        hooks.post(Span::EVERYTHING);
    }
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_shmdt, addr) as c_int }
}

unsafe extern "C" fn brk(addr: usize) -> c_int {
    let hooks = HOOKS.get();
    // SAFETY: the C library's word, which exists as long as the process.
    let current = hooks.map(|hooks| unsafe { &*hooks.current_break });
    if let Some(before) = current.map(|current| current.load(Ordering::Relaxed)) {
        announce(addr, before.saturating_sub(addr));
    }
    // SAFETY: as above. The system call returns the break, moved or not.
    let now = unsafe { libc::syscall(libc::SYS_brk, addr) } as usize;
    if let Some(current) = current {
        current.store(now, Ordering::Relaxed);
    }
    if now >= addr {
        return 0;
    }
    // SAFETY: this thread's error number.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    -1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether all of a span is announced during `act`.
    fn is_announced(source: &dyn EventSource, span: Span, act: &dyn Fn()) -> bool {
        let mut position = source.log().position();
        act();
        let mut all = false;
        source.log().read(&mut position, |gone| all |= gone.covers(span));
        all
    }

    /// Every function announces the memory that it takes, even if called by the C library, and keeps its effect.
    #[test]
    fn changed_functions_tell_and_do_the_same() {
        let source = start().unwrap();
        let page = page_bytes();
        let is_announced = |span: Span, act: &dyn Fn()| is_announced(&*source, span, act);
        let map = || {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new mapping.
            unsafe { libc::mmap(std::ptr::null_mut(), 4 * page, protection, flags, -1, 0) }
        };
        let span = |start: *mut c_void| Span::of_pages(start.addr(), 4 * page, page).unwrap();
        let at = map();
        // SAFETY: memory of the test's own.
        assert!(is_announced(span(at), &|| unsafe {
            at.cast::<u8>().write(7);
            assert_eq!(libc::madvise(at, 4 * page, libc::MADV_DONTNEED), 0);
            assert_eq!(at.cast::<u8>().read(), 0);
        }));
        // SAFETY: memory of the test's own.
        assert!(!is_announced(span(at), &|| unsafe {
            assert_eq!(libc::madvise(at, 4 * page, libc::MADV_WILLNEED), 0);
        }));
        // SAFETY: memory of the test's own.
        assert!(is_announced(span(at), &|| unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            assert_eq!(libc::mmap(at, 4 * page, libc::PROT_READ, flags, -1, 0), at);
        }));
        let target = map();
        // SAFETY: memory of the test's own.
        assert!(is_announced(span(target), &|| unsafe {
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            assert_eq!(libc::mremap(at, 4 * page, 4 * page, flags, target), target);
        }));
        // SAFETY: memory of the test's own.
        assert!(is_announced(span(target), &|| unsafe {
            assert_eq!(libc::munmap(target, 4 * page), 0);
        }));
        // Errors are the same as before.
        // SAFETY: no address of a page, which is refused.
        assert_eq!(unsafe { libc::munmap(std::ptr::without_provenance_mut(1), page) }, -1);
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
        assert!(source.settled());
    }

    #[test]
    fn what_the_allocator_gives_back_is_told() {
        let source = start().unwrap();
        let page = page_bytes();
        // SAFETY: plain use of the allocator.
        let large = unsafe { libc::malloc(64 << 20) };
        let whole = Span::of_pages(large.addr().next_multiple_of(page), page, page).unwrap();
        // SAFETY: memory of the test's own.
        assert!(is_announced(&*source, whole, &|| unsafe { libc::free(large) }));
        assert!(source.settled() && source.watch(whole).is_ok());
    }

    /// Ranges that could not be posted, and functions that another library has changed later, end all registrations.
    #[test]
    fn lost_ranges_end_everything() {
        static OWN: OnceLock<Hooks> = OnceLock::new();
        let hooks = OWN.get_or_init(|| Hooks::new().unwrap());
        let mut position = hooks.log.position();
        hooks.writer_lock.store(true, Ordering::Relaxed);
        hooks.announce(0x10000, 1);
        assert!(!hooks.log.has_news(position));
        hooks.writer_lock.store(false, Ordering::Relaxed);
        assert_eq!(hooks.n_lost.load(Ordering::Relaxed), 1);
        let source = Source(hooks);
        // These hooks have no patches, which also count as overwritten.
        assert!(source.settled());
        let mut gone = Vec::new();
        source.0.log.read(&mut position, |span| gone.push(span));
        assert_eq!(gone, [Span::EVERYTHING, Span::EVERYTHING]);
        let page = Span::of_pages(0x10000, 1, source.0.page).unwrap();
        assert!(source.watch(page).is_err());
        assert!(source.settled() && !source.0.log.has_news(position));
    }
}
