//! The ports of a rank share its cache; explicit registration. The addresses are invented, as in `policy`.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hopbine::memory::{CacheConfig, CacheError};
use hopbine_torus::PortId;

use super::device::{ByHand, Device, Full, Shared};
use super::policy::{PORTS, cache, cache_with, page, pages};

/// One region, which each port registers when it first looks it up.
#[test]
fn ports_share_a_region() {
    let (source, cache) = cache();
    let ids: Vec<u64> = (0..PORTS).map(|p| cache.get_at(p, page(0), 9).unwrap().id).collect();
    assert_eq!(ids, [0, 1, 2]);
    for (port, id) in ids.iter().enumerate() {
        assert_eq!(cache.get_at(port, page(0) + 5, 3).unwrap().id, *id);
    }
    assert_eq!(source.watched(), [(page(0), pages(1))]);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.registered_regions), (3, 3, 1));
    assert_eq!(stats.registered_bytes, pages(1) as u64);
}

/// The rest of another port's region may be gone, and the caller promises only its own range.
#[test]
fn what_is_left_of_another_ports_region_is_registered() {
    let (_source, cache) = cache();
    drop(cache.get(page(0), pages(8)).unwrap());
    *cache.device.gone_from.lock().unwrap() = Some(page(4));
    let left = cache.get_at(1, page(3), 9).unwrap();
    assert_eq!((left.addr, left.len), (page(3), pages(1)));
    assert_eq!(cache.stats().uncached, 1);
    let gone = cache.get_at(1, page(3), pages(2)).unwrap_err();
    assert_eq!(gone, CacheError::Register { addr: page(3), len: pages(2), source: Full });
}

/// A port's ended registrations are released only by that port's calls, which may hold the port's lock.
#[test]
fn each_port_releases_its_own() {
    let (source, cache) = cache();
    let device = cache.device.clone();
    let ids: Vec<u64> = (0..PORTS).map(|p| cache.get_at(p, page(0), 1).unwrap().id).collect();
    let live = || ids.iter().map(|id| device.is_live(*id)).collect::<Vec<_>>();
    source.unmap(page(0), 1);
    drop(cache.get_at(1, page(9), 1).unwrap());
    assert_eq!(live(), [true, false, true]);
    cache.cache().invalidate_all(PortId(2));
    assert_eq!(live(), [true, false, false]);
    cache.cache().close(PortId(0));
    assert_eq!(live(), [false; 3]);
}

/// A port that closes releases only its own registrations.
#[test]
fn a_port_that_ends_leaves_the_others_theirs() {
    let (_source, cache) = cache();
    let ids: Vec<u64> = (0..PORTS).map(|p| cache.get_at(p, page(0), 1).unwrap().id).collect();
    cache.cache().close(PortId(1));
    let live: Vec<bool> = ids.iter().map(|id| cache.device.is_live(*id)).collect();
    assert_eq!(live, [true, false, true]);
    assert_eq!(cache.get_at(2, page(0), 1).unwrap().id, ids[2]);
}

/// A hook for an action of another port in the middle of an operation. It runs the action once.
fn once<A: Fn(&Shared) + Send + Sync>(
    cache: &Arc<Shared>,
    act: A,
) -> impl Fn() + Send + Sync + use<A> {
    let (cache, is_done) = (Arc::downgrade(cache), AtomicBool::new(false));
    move || {
        if !is_done.swap(true, Ordering::Relaxed) {
            act(&cache.upgrade().unwrap());
        }
    }
}

#[test]
fn a_lookup_does_not_wait_for_a_registration() {
    let (_source, cache) = cache();
    let kept = cache.get_at(1, page(9), 1).unwrap().id;
    let cache = Arc::new(cache);
    let looks = once(&cache, move |cache| {
        assert_eq!(cache.get_at(1, page(9), 1).unwrap().id, kept);
    });
    cache.device.on_register.set(looks);
    drop(cache.get_at(0, page(0), 1).unwrap());
    assert_eq!((cache.stats().hits, cache.stats().misses), (1, 2));
}

#[test]
fn ports_that_register_the_same_at_once_have_one_region() {
    let (source, cache) = cache();
    let cache = Arc::new(cache);
    let registers = |cache: &Shared| drop(cache.get_at(1, page(0), pages(2)).unwrap());
    cache.device.on_register.set(once(&cache, registers));
    let ids = [0, 1].map(|port| cache.get_at(port, page(0), pages(2)).unwrap().id);
    assert_eq!((ids, cache.device.made(), cache.stats().registered_regions), ([0, 1], 2, 1));
    source.unmap(page(1), 1);
    (0..2).for_each(|port| drop(cache.get_at(port, page(9), 1).unwrap()));
    assert_eq!(cache.device.live(), 2, "both have ended");
}

/// No region contains another region.
#[test]
fn a_region_that_another_port_makes_around_it_is_taken() {
    let (_source, cache) = cache();
    let cache = Arc::new(cache);
    let registers = |cache: &Shared| drop(cache.get_at(1, page(0), pages(5)).unwrap());
    cache.device.on_register.set(once(&cache, registers));
    let lease = cache.get_at(0, page(1), pages(2)).unwrap();
    assert_eq!((lease.addr, lease.len, lease.offset), (page(0), pages(5), pages(1) as u64));
    assert_eq!((cache.device.live(), cache.stats().registered_regions), (2, 1));
}

#[test]
fn an_event_that_another_port_hears_ends_a_registration_under_way() {
    let (source, cache) = cache();
    let cache = Arc::new(cache);
    let unmaps = move |cache: &Shared| {
        source.unmap(page(1), 1);
        drop(cache.get_at(1, page(9), 1).unwrap());
    };
    cache.device.on_register.set(once(&cache, unmaps));
    let lease = cache.get_at(0, page(0), pages(2)).unwrap();
    assert_eq!(lease.id, 2, "the first registration was thrown away");
    assert_eq!(cache.get_at(0, page(0), 1).unwrap().id, 2);
    assert_eq!(cache.device.live(), 2);
}

/// An eviction ends the watch of pages that no other region covers.
#[test]
fn what_is_kept_is_watched() {
    let source = ByHand::new(8);
    let max_regions = NonZeroU32::new(2).unwrap();
    let config = CacheConfig { max_regions, ..CacheConfig::default() };
    let cache = Arc::new(cache_with(Device::default(), config, &source));
    drop(cache.get_at(1, page(0), pages(2)).unwrap());
    let evicts = |cache: &Shared| {
        drop(cache.get_at(1, page(9), 1).unwrap());
        drop(cache.get_at(1, page(12), 1).unwrap());
    };
    source.on_watch.set(once(&cache, evicts));
    drop(cache.get_at(0, page(1), pages(2)).unwrap());
    let stats = cache.stats();
    assert_eq!((stats.registered_regions, stats.evictions > 0), (2, true));
    assert!(source.watched().contains(&(page(1), pages(2))), "{:?}", source.watched());
}

/// Several threads, each with its own port, just as the ports of a rank have separate locks.
#[test]
fn many_threads() {
    const THREADS: usize = 16;
    const ROUNDS: usize = 1500;
    let source = ByHand::new(8);
    // The limits are so low that even a single thread evicts and finds all regions in use: the threads may run one
    // after the other.
    let config = CacheConfig {
        max_regions: NonZeroU32::new(4).unwrap(),
        max_bytes: Some(pages(20) as u64),
        ..CacheConfig::default()
    };
    let cache = Shared::new(Device::default(), config, THREADS, Some(source.clone()));
    let device = &cache.device;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (source, cache) = (&source, &cache);
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
                        1 => cache.cache().invalidate_all(PortId(thread as u16)),
                        2 => held.clear(),
                        _ => {
                            let lease = cache.get_at(thread, at, len).unwrap();
                            assert!(lease.addr <= at && at + len <= lease.addr + lease.len);
                            assert_eq!(lease.addr + lease.offset as usize, at);
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
    (0..THREADS).for_each(|port| cache.cache().invalidate_all(PortId(port as u16)));
    let stats = cache.stats();
    assert_eq!((stats.registered_regions, device.live()), (0, 0));
    assert!(stats.hits > 0 && stats.misses > 0 && stats.evictions > 0 && stats.uncached > 0);
}

/// With events, without events, with a full cache, and with a source that refuses to watch.
#[test]
fn what_is_registered_explicitly_is_found_until_it_is_given_back() {
    let config = CacheConfig { max_regions: NonZeroU32::new(1).unwrap(), ..CacheConfig::default() };
    for source in [None, Some(ByHand::new(8)), Some(ByHand::refusing())] {
        let cache = Shared::new(Device::default(), config, PORTS, source.clone());
        let device = cache.device.clone();
        let kept = [0, 1].map(|port| cache.keep_at(port, page(0), pages(4)).unwrap());
        assert_eq!(device.made(), 2);
        for _ in 0..3 {
            for (port, kept) in kept.iter().enumerate() {
                let found = cache.get_at(port, page(1) + 8, pages(2)).unwrap();
                assert_eq!((found.id, found.offset), (kept.id, (pages(1) + 8) as u64));
            }
        }
        // A port that has not registered the memory does so once.
        let third = cache.get_at(2, page(0), 1).unwrap().id;
        assert_eq!(cache.get_at(2, page(3), 1).unwrap().id, third);
        assert_eq!((device.made(), cache.stats().hits), (3, 7));
        // Other registrations do not evict it.
        drop(cache.get(page(9), 1).unwrap());
        assert_eq!(cache.get(page(0), 1).unwrap().id, kept[0].id);
        drop(kept);
        // Each port releases its registration in its next call; lookups no longer find it.
        let again = cache.get(page(0), 1).unwrap().id;
        assert!(!device.is_live(third) || again != third);
        for port in 0..PORTS {
            drop(cache.get_at(port, page(20), 1).unwrap());
        }
        assert!(!device.is_live(0) && !device.is_live(1) && !device.is_live(third));
        if source.is_none() {
            assert_eq!(device.live(), 0);
        }
    }
}

#[test]
fn explicit_registrations_end_with_their_memory_or_by_a_larger_one() {
    let (source, cache) = cache();
    let kept = cache.keep_at(0, page(2), pages(2)).unwrap();
    let larger = cache.get(page(0), pages(8)).unwrap().id;
    assert_eq!(cache.get(page(2), 1).unwrap().id, larger);
    drop(kept);
    assert_eq!(cache.get(page(2), 1).unwrap().id, larger, "the larger one stays");
    let kept = cache.keep_at(0, page(4), pages(1)).unwrap();
    assert_eq!(kept.id, larger, "what is there serves");
    source.unmap(page(0), pages(8));
    assert_ne!(cache.get(page(4), 1).unwrap().id, larger);
    drop(kept);
    let device = cache.device.clone();
    assert!(!device.is_live(larger));
    // A full device refuses, and keeps its registrations.
    let full = Shared::new(Device::with_room(1), CacheConfig::default(), PORTS, None);
    let kept = full.keep_at(0, page(0), 1).unwrap();
    let refused = CacheError::Register { addr: page(5), len: pages(1), source: Full };
    assert_eq!(full.keep_at(0, page(5), 1).unwrap_err(), refused);
    assert_eq!(full.get(page(0), 1).unwrap().id, kept.id);
}

/// Explicit registrations are not trusted either for memory that the caller has received before the source settled.
#[test]
fn explicit_registrations_do_not_trust_what_is_not_settled() {
    let cache = cache_with(Device::default(), CacheConfig::default(), &ByHand::stuck());
    let first = cache.keep_at(0, page(0), pages(4)).unwrap();
    let second = cache.keep_at(0, page(1), pages(2)).unwrap();
    assert_ne!(first.id, second.id);
    let device = cache.device.clone();
    drop((first, second));
    assert_eq!((device.made(), device.live()), (2, 0));
}
