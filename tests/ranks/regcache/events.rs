//! Memory that is really mapped and unmapped. Like a device that pins pages, the registrar reads a stamp from the
//! memory that it registers. A lease is stale if and only if its stamp differs from the stamp that the memory holds
//! now.

use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hopbine::memory::{CacheConfig, CacheMode, CacheStats, Keep, ProcessEvents, Span, page_bytes};
use hopbine::reduce::Op;
use hopbine::torus::Shape;
use hopbine::{EmulationConfig, emulate};
use hopbine_testing::huge::{self, HugePages};
use hopbine_testing::skip;
use hopbine_torus::PortId;

use super::policy;

/// Long enough for any machine, short enough to notice a hang.
const DEADLINE: Duration = Duration::from_secs(120);

/// A cache of stamps.
struct Cache(hopbine::memory::Cache<u64>);

impl Cache {
    fn get(&self, addr: usize, len: usize) -> u64 {
        // SAFETY: every test passes whole mapped pages that hold a stamp.
        let read =
            |addr: usize, _, _| Ok((unsafe { (addr as *const u64).read_volatile() }, addr as u64));
        let cache = &self.0;
        let keep = Keep::UntilEvent(cache.settle());
        let lease = cache.get::<Infallible>(keep, PortId(0), addr, len, read).unwrap();
        let stamp = *lease.handle();
        cache.release(PortId(0), lease);
        stamp
    }

    fn stats(&self) -> CacheStats {
        self.0.stats()
    }
}

/// A cache with the events of the process. Returns `None`, and reports the test as skipped, if the system has no
/// events.
#[track_caller]
fn cache() -> Option<Cache> {
    if let Err(error) = ProcessEvents::shared() {
        skip(format!("there are no events of memory: {error}"));
        return None;
    }
    let cache = hopbine::memory::Cache::with_process_events(CacheConfig::default(), 1);
    let CacheMode::Events { source } = cache.stats().mode else { panic!("there are events") };
    println!("events by {source}");
    Some(Cache(cache))
}

fn fresh_stamp() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Writes a new stamp into the first word of the memory at `addr`.
fn stamp(addr: usize) -> u64 {
    let stamp = fresh_stamp();
    // SAFETY: callers pass mapped, writable memory of their own.
    unsafe { (addr as *mut u64).write_volatile(stamp) };
    stamp
}

fn len() -> usize {
    16 * page_bytes()
}

fn map_at(addr: usize, flags: libc::c_int) -> usize {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the address is chosen by the kernel, owned by the test, or free (MAP_FIXED_NOREPLACE).
    let got = unsafe { libc::mmap(addr as _, len(), protection, flags, -1, 0) };
    assert_ne!(got, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    got as usize
}

fn map() -> usize {
    map_at(0, 0)
}

fn unmap(addr: usize) {
    // SAFETY: tests unmap what they mapped, once.
    assert_eq!(unsafe { libc::munmap(addr as _, len()) }, 0);
}

/// Replaces a mapping by new memory at the same address.
fn remap(addr: usize) {
    assert_eq!(map_at(addr, libc::MAP_FIXED), addr);
}

fn get(cache: &Cache, addr: usize) -> u64 {
    cache.get(addr, len())
}

/// Changes the content of an address, and verifies that a lookup returns the new content.
fn look_anew(cache: &Cache, addr: usize) {
    let now = stamp(addr);
    assert_eq!(get(cache, addr), now);
}

/// Other tests unmap watched memory meanwhile. On a busy machine a lookup may then find nothing (`Cache::settle`),
/// and the log may overflow, which ends all regions. Nothing else ends a region.
#[test]
fn untouched_memory_stays_registered() {
    let Some(cache) = cache() else { return };
    let addr = map();
    let (start, mut kept) = (Instant::now(), None);
    loop {
        let before = cache.stats();
        // The stamp that the registrar reads if this lookup is a miss.
        let now = stamp(addr);
        let got = get(&cache, addr);
        let after = cache.stats();
        if after.overflows > before.overflows {
            kept = None;
        }
        if after.hits > before.hits {
            assert_eq!(Some(got), kept);
            break;
        }
        assert_eq!(got, now);
        if after.misses > before.misses {
            assert_eq!(kept, None, "a region ended although its memory stayed");
            kept = Some(got);
        }
        assert!(start.elapsed() < DEADLINE, "no lookup finds anything");
    }
    unmap(addr);
}

#[test]
fn address_reuse_after_unmap_is_not_served_stale() {
    let Some(cache) = cache() else { return };
    let mut addr = map();
    for _ in 0..200 {
        look_anew(&cache, addr);
        unmap(addr);
        // Another thread may map memory at the old address; then any other address serves.
        let hint = addr;
        addr = map_at(hint, 0);
    }
    unmap(addr);
    assert!(cache.stats().invalidations > 0);
}

/// Write-protect mode gets no events of huge pages, so their registrations are not kept.
#[test]
fn huge_pages_are_not_served_stale() {
    let Some(cache) = cache() else { return };
    let mut is_watched = None;
    for _ in 0..20 {
        let Some(pages) = HugePages::map() else { return };
        let addr = pages.ptr().expose_provenance();
        look_anew(&cache, addr);
        // Ranges within a huge page, and across two.
        look_anew(&cache, addr + 3 * page_bytes());
        look_anew(&cache, addr + HugePages::BYTES / 2 - page_bytes());
        is_watched.get_or_insert_with(|| {
            let span = Span::of_pages(addr, len(), page_bytes()).unwrap();
            ProcessEvents::shared().unwrap().watch(span).is_ok()
        });
    }
    assert_eq!(is_watched, Some(cache.stats().misses > 0), "{:?}", cache.stats());
}

/// Vectors in huge pages at addresses that other vectors have in the next round.
#[test]
fn collectives_work_on_huge_pages() {
    const COUNT: usize = 200_000;
    if HugePages::map().is_none() {
        return;
    }
    let config = EmulationConfig::new("2".parse::<Shape>().unwrap());
    let all_work = emulate(&config, |comm| {
        for round in 0..4 {
            let huge = if comm.rank() == 0 { HugePages::map() } else { None };
            let mut own = vec![0u64; COUNT];
            // SAFETY: the pages are zeroed, belong to this rank alone, and are dropped at the end of the round.
            let vector = huge.as_ref().map_or(&mut own[..], |pages| unsafe {
                std::slice::from_raw_parts_mut(pages.ptr().cast::<u64>().add(77), COUNT)
            });
            vector.fill(round + u64::from(comm.rank()));
            comm.allreduce_in_place(vector, Op::Sum).unwrap();
            assert!(vector.iter().all(|&element| element == 2 * round + 1));
        }
    });
    all_work.unwrap();
}

#[test]
fn mapping_over_is_noticed() {
    let Some(cache) = cache() else { return };
    let addr = map();
    look_anew(&cache, addr);
    remap(addr);
    look_anew(&cache, addr);
    unmap(addr);
}

#[test]
fn moving_is_noticed() {
    let Some(cache) = cache() else { return };
    let (addr, target) = (map(), map());
    let moved = stamp(addr);
    let covered = stamp(target);
    assert_eq!((get(&cache, addr), get(&cache, target)), (moved, covered));
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: both ranges belong to the test.
    let got = unsafe { libc::mremap(addr as _, len(), len(), flags, target) };
    assert_eq!(got as usize, target);
    assert_eq!(get(&cache, target), moved);
    unmap(target);
}

#[test]
fn discarding_is_noticed() {
    let Some(cache) = cache() else { return };
    for advice in [libc::MADV_DONTNEED, libc::MADV_FREE] {
        let addr = map();
        look_anew(&cache, addr);
        // SAFETY: the range belongs to the test, and its content may be lost.
        assert_eq!(unsafe { libc::madvise(addr as _, len(), advice) }, 0);
        look_anew(&cache, addr);
        unmap(addr);
    }
}

/// The C library's internal unmapping and moving, which interposed symbols cannot intercept.
#[test]
fn free_and_realloc_are_noticed() {
    let Some(cache) = cache() else { return };
    let size = 64 << 20;
    // The stamp goes into the first whole page of the allocation.
    let whole = |start: *mut libc::c_void| (start as usize).next_multiple_of(page_bytes());
    for _ in 0..20 {
        // SAFETY: plain use of the allocator; the stamps lie within the allocations.
        unsafe {
            let first = libc::malloc(size);
            look_anew(&cache, whole(first));
            let second = libc::realloc(first, 2 * size);
            let now = stamp(whole(second));
            if second != first {
                assert_eq!(get(&cache, whole(second)), now);
            }
            libc::free(second);
        }
    }
    assert!(cache.stats().invalidations > 0);
}

#[test]
fn every_cache_is_told() {
    let (Some(one), Some(two)) = (cache(), cache()) else {
        return;
    };
    let addr = map();
    let before = stamp(addr);
    assert_eq!((get(&one, addr), get(&two, addr)), (before, before));
    remap(addr);
    let after = stamp(addr);
    assert_eq!((get(&one, addr), get(&two, addr)), (after, after));
    unmap(addr);
}

/// Events of memory that only earlier caches registered are harmless.
#[test]
fn caches_come_and_go() {
    let addr = map();
    for _ in 0..50 {
        let Some(cache) = cache() else { return };
        remap(addr);
        look_anew(&cache, addr);
    }
    unmap(addr);
}

#[test]
fn file_memory_is_not_kept() {
    let Some(cache) = cache() else { return };
    // Initialised static data belong to a mapping of the program's file.
    static DATA: [AtomicU64; 4096] = [const { AtomicU64::new(7) }; 4096];
    let addr = (DATA.as_ptr() as usize).next_multiple_of(page_bytes());
    let span = Span::of_pages(addr, page_bytes(), page_bytes()).unwrap();
    let events = ProcessEvents::shared().unwrap();
    if !events.name().contains("userfaultfd") {
        // Without userfaultfd the source gets events of file mappings, too.
        assert!(events.watch(span).is_ok());
        return;
    }
    assert!(events.watch(span).is_err());
    assert_eq!(cache.get(addr, page_bytes()), 7);
    assert_eq!((cache.stats().uncached, cache.stats().registered_regions), (1, 0));
}

/// Addresses pass from thread to thread, while the threads that unmapped them still sleep.
#[test]
fn addresses_that_change_hands_are_not_served_stale() {
    let Some(cache) = cache() else { return };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let addr = map();
                    look_anew(&cache, addr);
                    unmap(addr);
                }
            });
        }
    });
    assert!(cache.stats().invalidations > 0);
}

/// Runs a test of this file in a process of its own, where it does not affect other caches.
fn alone(test: &str) {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture"]).arg(format!("regcache::events::{test}"));
    let ended = hopbine_testing::processes::run(&mut command);
    assert!(ended.status.success() && ended.stdout.contains("1 passed"), "{}", ended.text());
}

/// Runs all tests of this file without the kernel's events; patched functions of the C library report the events.
#[test]
fn without_userfaultfd() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["regcache::events", "--skip", "without_userfaultfd", "--nocapture"]);
    // SAFETY: the filter allocates nothing.
    unsafe { command.pre_exec(hopbine_testing::forbidden::userfaultfd) };
    let ended = hopbine_testing::processes::run(&mut command);
    let text = ended.text();
    let mut skipped = text.lines().filter(|line| line.starts_with("SKIPPED"));
    assert!(ended.status.success() && skipped.all(|line| line.ends_with(huge::NONE)), "{text}");
    assert!(text.contains("functions of the C library"), "{text}");
}

#[test]
fn forks_and_evictions() {
    alone("a_fork_ends_what_is_kept");
    alone("registrations_held_through_a_fork_are_not_shared_afterwards");
    alone("a_persistent_collective_registers_anew_after_a_fork");
    alone("evicted_pages_are_not_watched_any_more");
}

/// Forks, and waits for the child, which only exits.
fn fork() {
    // SAFETY: the child only exits, by a function that is allowed between fork and exec.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { libc::_exit(0) };
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: waits once for this process's own child, with valid memory for the status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
}

/// After a fork the process that writes last keeps the registered pages, so a fork ends all registrations.
#[test]
#[ignore = "run by forks_and_evictions: a fork ends what all caches of a process keep"]
fn a_fork_ends_what_is_kept() {
    let Some(cache) = cache() else { return };
    let addr = map();
    look_anew(&cache, addr);
    fork();
    let after = stamp(addr);
    assert_eq!(get(&cache, addr), after, "the registration is made anew");
    unmap(addr);
}

/// Two persistent collectives hold registrations of one buffer, and the device shares them.
#[test]
#[ignore = "run by forks_and_evictions: a fork ends what all caches of a process keep"]
fn registrations_held_through_a_fork_are_not_shared_afterwards() {
    let (_source, cache) = policy::cache();
    let held = || cache.get_uncached(policy::page(0), policy::pages(2)).unwrap();
    let (first, second) = (held(), held());
    let before = second.id;
    assert_eq!(first.id, before);
    fork();
    drop(first);
    let after = held();
    assert_ne!(after.id, before, "the child has the registered pages");
    assert_ne!(cache.get(policy::page(1), 1).unwrap().id, before);
    drop(second);
    let again = held().id;
    assert!(again != before && !cache.device.is_live(before));
}

/// What a persistent collective registers for all its runs, it registers again after a fork.
#[test]
#[ignore = "run by forks_and_evictions: a fork ends what all caches of a process keep"]
fn a_persistent_collective_registers_anew_after_a_fork() {
    let shape: Shape = "2".parse().unwrap();
    let config = EmulationConfig::new(shape).with(|config| config.reg_cache = true);
    let all_work = emulate(&config, |comm| {
        let registrations = || comm.cache_stats().unwrap().registrations;
        let mut persistent = comm.allreduce_init(vec![0u64; 1 << 19], Op::Sum).unwrap();
        let mut run = || {
            persistent.buffer_mut().unwrap().fill(1);
            persistent.start().unwrap();
            persistent.wait().unwrap();
            assert!(persistent.buffer().unwrap().iter().all(|&sum| sum == 2));
        };
        run();
        let first = registrations();
        run();
        assert_eq!(registrations(), first);
        comm.barrier().unwrap();
        if comm.rank() == 0 {
            fork();
        }
        comm.barrier().unwrap();
        let before = registrations();
        run();
        assert!(registrations() > before, "{before} registrations");
    });
    all_work.unwrap();
}

/// Number of mappings of this process.
fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Isolated watched pages split mappings until they are evicted.
#[test]
#[ignore = "run by forks_and_evictions: while others listen, watches stay"]
fn evicted_pages_are_not_watched_any_more() {
    if let Err(error) = ProcessEvents::shared() {
        return skip(format!("there are no events of memory: {error}"));
    }
    let max_regions = std::num::NonZeroU32::new(16).unwrap();
    let config = CacheConfig { max_regions, ..CacheConfig::default() };
    let cache = hopbine::memory::Cache::with_process_events(config, 1);
    let cache = Cache(cache);
    let page = page_bytes();
    let len = 4000 * page;
    // SAFETY: a new private mapping at an address of the kernel's choice.
    let start = unsafe {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0)
    };
    assert_ne!(start, libc::MAP_FAILED);
    let before = mappings();
    for n in 0..2000 {
        let at = start as usize + 2 * n * page;
        let now = stamp(at);
        assert_eq!(cache.get(at, page), now);
    }
    let grown = mappings().saturating_sub(before);
    assert!(grown < 100, "{grown} mappings more for 16 regions");
    // SAFETY: mapped above and no longer used.
    assert_eq!(unsafe { libc::munmap(start, len) }, 0);
}
