//! What is kept, replaced, evicted and refused. Addresses are made up: nothing here
//! touches the memory it names.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hopbine::memory::{
    CacheConfig, CacheError, CacheMode, EventSource, RegistrationCache, SpanError, page_bytes,
};

use super::device::{ByHand, Device, Full};

type Cache = RegistrationCache<Arc<Device>>;

fn cache_with(device: Device, config: CacheConfig, source: Arc<ByHand>) -> (Arc<Device>, Cache) {
    let device = Arc::new(device);
    let source: Arc<dyn EventSource> = source;
    let cache = Cache::new(Arc::clone(&device), config, Some(source));
    (device, cache)
}

fn cache() -> (Arc<Device>, Arc<ByHand>, Cache) {
    let source = ByHand::with_queue(64);
    let (device, cache) =
        cache_with(Device::default(), CacheConfig::default(), Arc::clone(&source));
    (device, source, cache)
}

fn limited(max_regions: u32, max_pages: Option<u64>) -> (Arc<Device>, Cache) {
    let config = CacheConfig {
        max_regions: NonZeroU32::new(max_regions).unwrap(),
        max_bytes: max_pages.map(|pages| pages * page_bytes() as u64),
        ..CacheConfig::default()
    };
    cache_with(Device::default(), config, ByHand::with_queue(64))
}

/// Address of a page far from the others.
fn page(n: usize) -> usize {
    (1 << 20) + n * page_bytes()
}

fn pages(n: usize) -> usize {
    n * page_bytes()
}

#[test]
fn a_second_lookup_is_a_hit_with_its_offset() {
    let (device, source, cache) = cache();
    let first = cache.get(page(0) + 100, 50).unwrap();
    assert_eq!((first.addr, first.len, first.offset()), (page(0), pages(1), 100));
    let second = cache.get(page(0) + 7, 1).unwrap();
    assert_eq!((second.id, second.offset()), (first.id, 7));
    drop((first, second));
    let third = cache.get(page(0), pages(1)).unwrap();
    assert_eq!((third.id, third.offset()), (0, 0));
    drop(third);
    assert_eq!(device.made(), 1);
    assert_eq!(source.watched(), [(page(0), pages(1))]);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.uncached), (2, 1, 0));
    assert_eq!(stats.registered_bytes, pages(1) as u64);
    drop(cache);
    assert_eq!(device.live(), 0);
}

#[test]
fn overlap_registers_only_what_is_named() {
    let (device, _, cache) = cache();
    let left = cache.get(page(0), pages(4)).unwrap().id;
    let right = cache.get(page(2), pages(4)).unwrap();
    assert_ne!(right.id, left);
    assert_eq!((right.addr, right.len), (page(2), pages(4)));
    // Both live on, and where both cover either may serve.
    assert_eq!(cache.get(page(0), pages(3)).unwrap().id, left);
    assert_eq!(cache.get(page(3), pages(3)).unwrap().id, right.id);
    assert_eq!(device.live(), 2);
}

#[test]
fn merge_replaces_what_the_new_region_contains() {
    let (device, _, cache) = cache();
    for n in [1, 3, 5] {
        drop(cache.get(page(n), pages(1)).unwrap());
    }
    let whole = cache.get(page(0), pages(8)).unwrap().id;
    assert_eq!(device.live(), 1);
    assert_eq!(cache.get(page(5), 1).unwrap().id, whole);
    assert_eq!(cache.stats().invalidations, 0);
}

#[test]
fn growth_leaves_no_trail() {
    let (device, _, cache) = cache();
    for n in 1..=40 {
        drop(cache.get(page(0), pages(n)).unwrap());
        assert_eq!(device.live(), 1);
    }
    for n in 1..=40 {
        drop(cache.get(page(0), pages(n)).unwrap());
    }
    assert_eq!(device.made(), 40);
}

#[test]
fn release_in_use_waits_for_the_last_lease() {
    let (device, _, cache) = cache();
    let small = cache.get(page(1), pages(1)).unwrap();
    let again = cache.get(page(1), pages(1)).unwrap();
    let large = cache.get(page(0), pages(4)).unwrap();
    assert_eq!(cache.get(page(1), pages(1)).unwrap().id, large.id);
    assert!(device.is_live(small.id));
    assert_eq!(cache.stats().waiting_regions, 1);
    let id = small.id;
    drop(small);
    assert!(device.is_live(id));
    drop(again);
    assert!(!device.is_live(id));
    assert_eq!(cache.stats().waiting_regions, 0);
    assert_eq!(cache.stats().registered_regions, 1);
}

#[test]
fn unmap_while_busy_keeps_the_lease_and_serves_nobody_else() {
    let (device, source, cache) = cache();
    let before = cache.get(page(0), pages(4)).unwrap();
    source.unmap(page(2), pages(1));
    assert!(device.is_live(before.id), "nothing is released where memory goes");
    let after = cache.get(page(0), pages(4)).unwrap();
    assert_ne!(after.id, before.id);
    assert!(device.is_live(before.id));
    let id = before.id;
    drop(before);
    assert!(!device.is_live(id));
    assert!(device.is_live(after.id));
    assert_eq!(cache.stats().invalidations, 1);
}

#[test]
fn unmap_ends_all_that_overlap_and_no_other() {
    let (device, source, cache) = cache();
    let ids: Vec<u64> = [(0, 4), (2, 4), (4, 4), (9, 1)]
        .map(|(at, len)| cache.get(page(at), pages(len)).unwrap().id)
        .to_vec();
    source.unmap(page(3), pages(1));
    assert_eq!(cache.get(page(9), 1).unwrap().id, ids[3]);
    assert_eq!(cache.get(page(4), pages(4)).unwrap().id, ids[2]);
    let live: Vec<bool> = ids.iter().map(|id| device.is_live(*id)).collect();
    assert_eq!(live, [false, false, true, true]);
}

#[test]
fn an_event_during_registration_makes_it_anew() {
    let (device, source, cache) = cache();
    let left = Arc::new(AtomicUsize::new(1));
    *device.on_register.lock().unwrap() = Some(Box::new(move || {
        // The hook holds no lock of the cache: posting is what a reader would do.
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            source.unmap(page(0), pages(1));
        }
        left.store(0, Ordering::Relaxed);
    }));
    let lease = cache.get(page(0), pages(1)).unwrap();
    assert_eq!(lease.id, 1, "the first registration was thrown away");
    assert_eq!((device.made(), device.live()), (2, 1));
    assert_eq!(cache.get(page(0), 1).unwrap().id, 1);
}

#[test]
fn events_elsewhere_do_not_disturb_a_registration() {
    let (device, source, cache) = cache();
    *device.on_register.lock().unwrap() = Some(Box::new(move || source.unmap(page(50), 1)));
    let first = cache.get(page(0), pages(1)).unwrap().id;
    assert_eq!(cache.get(page(0), pages(1)).unwrap().id, first);
    assert_eq!((device.made(), device.live()), (1, 1));
}

/// More events than the table remembers, yet fewer than the queue holds.
#[test]
fn forgotten_events_count_as_disturbance() {
    let source = ByHand::with_queue(128);
    let (device, cache) =
        cache_with(Device::default(), CacheConfig::default(), Arc::clone(&source));
    let first = AtomicUsize::new(1);
    *device.on_register.lock().unwrap() = Some(Box::new(move || {
        for _ in 0..65 * first.swap(0, Ordering::Relaxed) {
            source.unmap(page(50), 1);
        }
    }));
    assert_eq!(cache.get(page(0), pages(1)).unwrap().id, 1);
    assert_eq!(device.live(), 1);
}

#[test]
fn events_without_end_are_served_uncached() {
    let (device, source, cache) = cache();
    *device.on_register.lock().unwrap() = Some(Box::new(move || source.unmap(page(0), 1)));
    let lease = cache.get(page(0), pages(1)).unwrap();
    assert_eq!(device.live(), 1);
    drop(lease);
    assert_eq!(device.live(), 0);
    assert_eq!(cache.stats().uncached, 1);
}

#[test]
fn a_lookup_waits_for_an_event_that_is_announced() {
    let (_device, source, cache) = cache();
    let before = cache.get(page(0), pages(1)).unwrap().id;
    source.queue().begin();
    std::thread::scope(|scope| {
        let lookup = scope.spawn(|| cache.get(page(0), pages(1)).unwrap().id);
        // Whether or not the lookup has begun, it may not end before the range is in.
        std::thread::yield_now();
        source.unmap(page(0), pages(1));
        source.queue().end();
        assert_ne!(lookup.join().unwrap(), before);
    });
}

#[test]
fn a_full_queue_makes_everything_stale() {
    let source = ByHand::with_queue(2);
    let (device, cache) =
        cache_with(Device::default(), CacheConfig::default(), Arc::clone(&source));
    let kept: Vec<u64> = (0..4).map(|n| cache.get(page(2 * n), 1).unwrap().id).collect();
    for _ in 0..3 {
        source.unmap(page(100), pages(1));
    }
    assert_ne!(cache.get(page(0), 1).unwrap().id, kept[0]);
    assert!(kept.iter().all(|id| !device.is_live(*id)));
    let stats = cache.stats();
    assert_eq!((stats.overflows, stats.invalidations), (1, 4));
}

#[test]
fn limit_by_count_evicts_the_least_recently_used() {
    let (device, cache) = limited(3, None);
    let ids: Vec<u64> = (0..3).map(|n| cache.get(page(2 * n), 1).unwrap().id).collect();
    drop(cache.get(page(0), 1).unwrap());
    drop(cache.get(page(10), 1).unwrap());
    let live: Vec<bool> = ids.iter().map(|id| device.is_live(*id)).collect();
    assert_eq!(live, [true, false, true]);
    assert_eq!(cache.stats().evictions, 1);
    assert_eq!(cache.stats().registered_regions, 3);
}

#[test]
fn limit_by_size_evicts_until_it_fits() {
    let (device, cache) = limited(100, Some(8));
    for n in 0..4 {
        drop(cache.get(page(4 * n), pages(2)).unwrap());
    }
    assert_eq!(device.live(), 4);
    drop(cache.get(page(40), pages(5)).unwrap());
    assert_eq!(cache.stats().registered_bytes, pages(7) as u64);
    assert_eq!(cache.stats().evictions, 3);
    // More than the limit alone: served, not kept, and nothing is evicted for it.
    let large = cache.get(page(60), pages(9)).unwrap();
    assert_eq!(device.live(), 3);
    drop(large);
    assert_eq!(device.live(), 2);
    assert_eq!(cache.stats().uncached, 1);
}

#[test]
fn eviction_spares_what_is_in_use() {
    let (device, cache) = limited(2, None);
    let oldest = cache.get(page(0), 1).unwrap();
    let idle = cache.get(page(2), 1).unwrap().id;
    let third = cache.get(page(4), 1).unwrap();
    assert!(device.is_live(oldest.id) && !device.is_live(idle));
    let fourth = cache.get(page(6), 1).unwrap();
    assert!(device.is_live(oldest.id) && device.is_live(third.id));
    assert_eq!((device.live(), cache.stats().uncached), (3, 1));
    drop(fourth);
    assert_eq!(device.live(), 2);
}

#[test]
fn a_full_device_gets_room_from_idle_regions() {
    let device = Device::with_room(2);
    let (device, cache) = cache_with(device, CacheConfig::default(), ByHand::with_queue(4));
    drop(cache.get(page(0), 1).unwrap());
    let used = cache.get(page(2), 1).unwrap();
    let third = cache.get(page(4), 1).unwrap();
    assert_eq!(device.live(), 2);
    let error = cache.get(page(6), 1).unwrap_err();
    let CacheError::Register { addr, len, source } = error else {
        panic!("{error}");
    };
    assert_eq!((addr, len, source), (page(6), pages(1), Full));
    drop((used, third));
    assert!(cache.get(page(6), 1).is_ok());
}

#[test]
fn ranges_that_are_none_are_refused() {
    let (_, _, cache) = cache();
    let error = cache.get(page(0), 0).unwrap_err();
    assert!(matches!(error, CacheError::Span(SpanError::Empty { .. })));
    let error = cache.get_uncached(page(0), usize::MAX).unwrap_err();
    assert!(matches!(error, CacheError::Span(SpanError::TooLong { .. })));
}

#[test]
fn a_call_can_opt_out() {
    let (device, _, cache) = cache();
    let kept = cache.get(page(0), 1).unwrap();
    let once = cache.get_uncached(page(0) + 5, 1).unwrap();
    assert_ne!(once.id, kept.id);
    assert_eq!(once.offset(), 5);
    drop(once);
    assert_eq!(device.live(), 1);
}

#[test]
fn without_events_only_owned_memory_is_kept() {
    let device = Arc::new(Device::default());
    let cache = Cache::new(Arc::clone(&device), CacheConfig::default(), None);
    drop(cache.get(page(0), 1).unwrap());
    assert_eq!(device.live(), 0);
    let owned = cache.get_owned(page(8), 1).unwrap().id;
    assert_eq!(cache.get_owned(page(8), 1).unwrap().id, owned);
    // The same range as memory of the user: nobody answers for its kept registration.
    assert_ne!(cache.get(page(8), 1).unwrap().id, owned);
    assert_eq!(device.live(), 1);
    cache.invalidate(page(8), 1);
    assert_eq!(device.live(), 0);
    let stats = serde_json::to_value(cache.stats()).unwrap();
    assert_eq!(stats["mode"], "owned_only");
    assert_eq!(stats["uncached"], 2);
    assert_eq!(stats["invalidations"], 1);
}

#[test]
fn memory_that_cannot_be_watched_is_not_kept() {
    let (device, cache) = cache_with(Device::default(), CacheConfig::default(), ByHand::refusing());
    drop(cache.get(page(0), 1).unwrap());
    assert_eq!((device.live(), cache.stats().uncached), (0, 1));
    drop(cache.get_owned(page(0), 1).unwrap());
    assert_eq!(device.live(), 1);
}

#[test]
fn switched_off_keeps_nothing() {
    let config = CacheConfig { enabled: false, ..CacheConfig::default() };
    let (device, cache) = cache_with(Device::default(), config, ByHand::with_queue(4));
    drop(cache.get(page(0), 1).unwrap());
    drop(cache.get_owned(page(0), 1).unwrap());
    assert_eq!((device.made(), device.live()), (2, 0));
    assert_eq!(cache.mode(), CacheMode::Off);
}

#[test]
fn a_held_lease_outlives_every_other_owner_of_the_cache() {
    let (device, source, cache) = cache();
    let cache = Arc::new(cache);
    let held = cache.get(page(0) + 9, 1).unwrap().hold(&cache);
    let borrowed = cache.get(page(0) + 3, 1).unwrap().hold(&cache);
    assert_eq!((held.offset(), borrowed.offset()), (9, 3));
    assert_eq!(held.id, borrowed.id);
    source.unmap(page(0), 1);
    drop(cache);
    assert!(device.is_live(held.id));
    drop((held, borrowed));
    assert_eq!(device.live(), 0);
}

/// Registering and releasing outside the lock: both may look at the cache.
#[test]
fn the_registrar_is_called_without_the_lock() {
    let (device, source, cache) = cache();
    let cache = Arc::new(cache);
    let weak = Arc::downgrade(&cache);
    *device.on_register.lock().unwrap() = Some(Box::new(move || {
        let cache = weak.upgrade().unwrap();
        assert!(cache.stats().registered_regions <= 1);
    }));
    for _ in 0..3 {
        drop(cache.get(page(0), 1).unwrap());
        source.unmap(page(0), 1);
    }
    assert_eq!(device.made(), 3);
}

#[test]
fn sixty_four_threads() {
    const THREADS: usize = 64;
    const ROUNDS: usize = 600;
    let source = ByHand::with_queue(8);
    let config = CacheConfig {
        max_regions: NonZeroU32::new(12).unwrap(),
        max_bytes: Some(pages(60) as u64),
        ..CacheConfig::default()
    };
    let (device, cache) = cache_with(Device::default(), config, Arc::clone(&source));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (device, source, cache) = (&device, &source, &cache);
            scope.spawn(move || {
                let mut state = thread as u64 + 1;
                let mut random = |below: usize| {
                    // Xorshift: a fixed sequence for each thread.
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state % below as u64) as usize
                };
                let mut held = Vec::new();
                for _ in 0..ROUNDS {
                    let (at, len) = (page(random(24)) + random(99), 1 + random(pages(6)));
                    match random(20) {
                        0 => source.unmap(at, len),
                        1 => cache.invalidate(at, len),
                        2 => held.clear(),
                        _ => {
                            let lease = cache.get(at, len).unwrap();
                            assert!(lease.addr <= at && at + len <= lease.addr + lease.len);
                            assert_eq!(lease.addr + lease.offset() as usize, at);
                            assert!(device.is_live(lease.id));
                            if random(3) == 0 {
                                held.push(lease);
                            }
                        }
                    }
                    assert!(held.iter().all(|lease| device.is_live(lease.id)));
                }
            });
        }
    });
    let stats = cache.stats();
    assert_eq!(stats.waiting_regions, 0);
    assert_eq!(stats.registered_regions, device.live() as u64);
    assert!(stats.registered_regions <= 12 && stats.registered_bytes <= pages(60) as u64);
    assert!(stats.hits > 0 && stats.misses > 0 && stats.evictions > 0 && stats.uncached > 0);
    drop(cache);
    assert_eq!(device.live(), 0);
}
