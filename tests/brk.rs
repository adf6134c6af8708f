//! The registration cache detects a shrinking heap. This is a separate program, because only here may a test move the
//! program break: no other thread allocates meanwhile.

use hopbine_torus::PortId;

use std::convert::Infallible;
use std::os::unix::process::CommandExt;

use hopbine::memory::{Cache, CacheConfig, Keep, ProcessEvents, page_bytes};

/// Runs the ignored test in a process of its own. No other test of that process allocates, and a forbidden system
/// call stays forbidden until the process ends.
fn alone(forbids: bool) {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "the_heap_shrinks", "--nocapture"]);
    if forbids {
        // SAFETY: the filter allocates nothing.
        unsafe { command.pre_exec(hopbine_testing::forbidden::userfaultfd) };
    }
    let ended = hopbine_testing::processes::run(&mut command);
    let text = ended.text();
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
    assert!(!forbids || !text.contains("SKIPPED"), "{text}");
}

/// The kernel reports the event (userfaultfd).
#[test]
fn a_shrinking_heap_is_noticed() {
    alone(false);
}

/// Patched functions of the C library report the event.
#[test]
fn a_shrinking_heap_is_noticed_without_userfaultfd() {
    alone(true);
}

#[test]
#[ignore = "run by a_shrinking_heap_is_noticed"]
fn the_heap_shrinks() {
    if let Err(error) = ProcessEvents::shared() {
        return hopbine_testing::skip(format!("there are no events of memory: {error}"));
    }
    let cache = Cache::with_process_events(CacheConfig::default(), 1);
    // SAFETY: the test passes a whole mapped page.
    let read =
        |addr: usize, _, _| Ok((unsafe { (addr as *const u64).read_volatile() }, addr as u64));
    let grow = 4 * page_bytes() as libc::intptr_t;
    for stamp in [1, 2] {
        // SAFETY: the break moves up; the test owns the new memory until the break moves down.
        let start = unsafe { libc::sbrk(grow) } as usize;
        let page = start.next_multiple_of(page_bytes());
        // SAFETY: the page is within the new memory.
        unsafe { (page as *mut u64).write_volatile(stamp) };
        let keep = Keep::UntilEvent(cache.settle());
        let lease = cache.get::<Infallible>(keep, PortId(0), page, page_bytes(), read).unwrap();
        assert_eq!(*lease.handle(), stamp);
        cache.release(PortId(0), lease);
        // SAFETY: an increment of 0 only returns the break.
        let end = unsafe { libc::sbrk(0) } as usize;
        assert_eq!(end, start + grow as usize, "somebody else moved the break");
        // SAFETY: frees exactly the memory allocated above; the assertion has verified that the break has not moved
        // since.
        unsafe { libc::sbrk(-grow) };
    }
    assert_eq!(cache.stats().invalidations, 1);
}
