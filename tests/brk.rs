//! A shrinking heap is noticed. A program of its own: only here may a test move the
//! program break, since nobody else allocates meanwhile.

use std::convert::Infallible;

use hopbine::memory::{CacheConfig, ProcessEvents, Registrar, RegistrationCache, page_bytes};

struct StampReader;

impl Registrar for StampReader {
    type Handle = u64;
    type Error = Infallible;

    fn register(&self, addr: usize, _len: usize) -> Result<u64, Infallible> {
        // SAFETY: the test passes a whole mapped page.
        Ok(unsafe { (addr as *const u64).read_volatile() })
    }

    fn release(&self, _stamp: u64) {}
}

#[test]
fn a_shrinking_heap_is_noticed() {
    if let Err(error) = ProcessEvents::shared() {
        eprintln!("skipped: {error}");
        return;
    }
    let cache = RegistrationCache::with_process_events(StampReader, CacheConfig::default());
    let grow = 4 * page_bytes() as libc::intptr_t;
    for stamp in [1, 2] {
        // SAFETY: the break moves up; the new memory is ours until it moves down.
        let start = unsafe { libc::sbrk(grow) } as usize;
        let page = start.next_multiple_of(page_bytes());
        // SAFETY: a whole page of the new memory.
        unsafe { (page as *mut u64).write_volatile(stamp) };
        assert_eq!(*cache.get(page, page_bytes()).unwrap(), stamp);
        // SAFETY: asks for the break only.
        let end = unsafe { libc::sbrk(0) } as usize;
        assert_eq!(end, start + grow as usize, "somebody else moved the break");
        // SAFETY: gives back exactly what was taken, as the line above made sure.
        unsafe { libc::sbrk(-grow) };
    }
    assert_eq!(cache.stats().invalidations, 1);
}
