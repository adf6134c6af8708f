//! What the cache keeps, replaces, evicts and refuses. The addresses are invented: no test accesses their memory.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hopbine::memory::{
    CacheConfig, CacheError, CacheMode, EventSource, Keep, KeepRule, RegisterError, page_bytes,
};
use hopbine_torus::PortId;

use super::device::{ByHand, Device, Full, Shared};

pub const PORTS: usize = 3;

pub fn cache_with(device: Device, config: CacheConfig, source: &Arc<ByHand>) -> Shared {
    Shared::new(device, config, PORTS, Some(source.clone()))
}

pub fn cache() -> (Arc<ByHand>, Shared) {
    let source = ByHand::new(64);
    let cache = cache_with(Device::default(), CacheConfig::default(), &source);
    (source, cache)
}

/// Verifies that the cache registers memory only while it is in use, beside `others` kept registrations.
fn not_kept(cache: &Shared, addr: usize, len: usize, others: usize) {
    let lease = cache.get(addr, len).unwrap();
    assert_eq!(cache.device.live(), others + 1);
    drop(lease);
    assert_eq!(cache.device.live(), others);
    assert_eq!(cache.stats().uncached, 1);
}

fn limited(max_regions: u32, max_pages: Option<u64>) -> (Arc<ByHand>, Shared) {
    let config = CacheConfig {
        max_regions: NonZeroU32::new(max_regions).unwrap(),
        max_bytes: max_pages.map(|pages| pages * page_bytes() as u64),
        ..CacheConfig::default()
    };
    let source = ByHand::new(64);
    let cache = cache_with(Device::default(), config, &source);
    (source, cache)
}

/// Address of the invented page `n`.
pub fn page(n: usize) -> usize {
    (1 << 20) + n * page_bytes()
}

pub fn pages(n: usize) -> usize {
    n * page_bytes()
}

#[test]
fn a_second_lookup_is_a_hit_with_its_offset() {
    let (source, cache) = cache();
    let device = cache.device.clone();
    let first = cache.get(page(0) + 100, 50).unwrap();
    assert_eq!((first.addr, first.len, first.offset), (page(0), pages(1), 100));
    let second = cache.get(page(0) + 7, 1).unwrap();
    assert_eq!((second.id, second.offset), (first.id, 7));
    drop((first, second));
    let third = cache.get(page(0), pages(1)).unwrap();
    assert_eq!((third.id, third.offset), (0, 0));
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
    let (_source, cache) = cache();
    let device = cache.device.clone();
    let left = cache.get(page(0), pages(4)).unwrap().id;
    let right = cache.get(page(2), pages(4)).unwrap();
    assert_ne!(right.id, left);
    assert_eq!((right.addr, right.len), (page(2), pages(4)));
    // Both registrations stay; a range that both cover may get either.
    assert_eq!(cache.get(page(0), pages(3)).unwrap().id, left);
    assert_eq!(cache.get(page(3), pages(3)).unwrap().id, right.id);
    assert_eq!(device.live(), 2);
}

#[test]
fn merge_replaces_what_the_new_region_contains() {
    let (_source, cache) = cache();
    let device = cache.device.clone();
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
    let (_source, cache) = cache();
    let device = cache.device.clone();
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
    let (_source, cache) = cache();
    let device = cache.device.clone();
    let small = cache.get(page(1), pages(1)).unwrap();
    let again = cache.get(page(1), pages(1)).unwrap();
    let large = cache.get(page(0), pages(4)).unwrap();
    assert_eq!(cache.get(page(1), pages(1)).unwrap().id, large.id);
    assert!(device.is_live(small.id));
    let id = small.id;
    drop(small);
    assert!(device.is_live(id));
    drop(again);
    assert!(!device.is_live(id));
    assert_eq!(cache.stats().registered_regions, 1);
}

#[test]
fn unmap_while_busy_keeps_the_lease_and_serves_nobody_else() {
    let (source, cache) = cache();
    let device = cache.device.clone();
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
    let (source, cache) = cache();
    let device = cache.device.clone();
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
    let (source, cache) = cache();
    let device = cache.device.clone();
    let left = Arc::new(AtomicUsize::new(1));
    device.on_register.set(move || {
        // Posts the event as a reader of events would.
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            source.unmap(page(0), pages(1));
        }
        left.store(0, Ordering::Relaxed);
    });
    let lease = cache.get(page(0), pages(1)).unwrap();
    assert_eq!(lease.id, 1, "the first registration was thrown away");
    assert_eq!((device.made(), device.live()), (2, 1));
    assert_eq!(cache.get(page(0), 1).unwrap().id, 1);
}

#[test]
fn events_elsewhere_do_not_disturb_a_registration() {
    let (source, cache) = cache();
    let device = cache.device.clone();
    device.on_register.set(move || source.unmap(page(50), 1));
    let first = cache.get(page(0), pages(1)).unwrap().id;
    assert_eq!(cache.get(page(0), pages(1)).unwrap().id, first);
    assert_eq!((device.made(), device.live()), (1, 1));
}

#[test]
fn events_without_end_are_served_uncached() {
    let (source, cache) = cache();
    let device = cache.device.clone();
    device.on_register.set(move || source.unmap(page(0), 1));
    not_kept(&cache, page(0), pages(1), 0);
}

#[test]
fn too_many_events_make_everything_stale() {
    let source = ByHand::new(2);
    let cache = cache_with(Device::default(), CacheConfig::default(), &source);
    let device = cache.device.clone();
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
    let (_source, cache) = limited(3, None);
    let device = cache.device.clone();
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
    let (_source, cache) = limited(100, Some(8));
    let device = cache.device.clone();
    for n in 0..4 {
        drop(cache.get(page(4 * n), pages(2)).unwrap());
    }
    assert_eq!(device.live(), 4);
    drop(cache.get(page(40), pages(5)).unwrap());
    assert_eq!(cache.stats().registered_bytes, pages(7) as u64);
    assert_eq!(cache.stats().evictions, 3);
    // A region larger than the limit is registered but not kept, and evicts nothing.
    not_kept(&cache, page(60), pages(9), 2);
}

#[test]
fn eviction_spares_what_is_in_use() {
    let (_source, cache) = limited(2, None);
    let device = cache.device.clone();
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
    let cache = cache_with(device, CacheConfig::default(), &ByHand::new(4));
    let device = cache.device.clone();
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

/// The error of a device that may not write to the memory.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory is read-only")]
struct ReadOnly;

impl RegisterError for ReadOnly {
    fn lacks_room(&self) -> bool {
        false
    }
}

/// A read-only send buffer is refused in every call.
#[test]
fn a_refusal_for_another_reason_than_room_evicts_nothing() {
    let (_source, cache) = cache();
    let kept = cache.get(page(0), 1).unwrap().id;
    let keep = Keep::UntilEvent(cache.cache().settle());
    let refused = cache.cache().get(keep, PortId(0), page(2), 1, |_, _, _| Err(ReadOnly));
    let refusal = CacheError::Register { addr: page(2), len: pages(1), source: ReadOnly };
    assert_eq!(refused.unwrap_err(), refusal);
    assert_eq!(cache.get(page(0), 1).unwrap().id, kept);
    assert_eq!(cache.stats().evictions, 0);
}

#[test]
fn ranges_that_are_none_are_refused() {
    let (_source, cache) = cache();
    for (addr, len) in [(page(0), 0), (page(0), usize::MAX), (usize::MAX, 1)] {
        let error = CacheError::NoRange { addr, len };
        assert_eq!(cache.get(addr, len).unwrap_err(), error);
        assert_eq!(cache.get_uncached(addr, len).unwrap_err(), error);
    }
}

#[test]
fn a_call_can_opt_out() {
    let (_source, cache) = cache();
    let device = cache.device.clone();
    let kept = cache.get(page(0), 1).unwrap();
    let once = cache.get_uncached(page(0) + 5, 1).unwrap();
    assert_eq!((once.offset, cache.stats().hits, cache.stats().uncached), (5, 0, 1));
    assert_eq!(once.id, kept.id, "the pages are registered already");
    drop(kept);
    let other = cache.get_uncached(page(9), 1).unwrap();
    assert_eq!(device.live(), 2);
    drop((once, other));
    assert_eq!(device.live(), 1);
}

/// A lease of a part keeps the device's registration of the whole, whose other pages may be new ones by now.
#[test]
fn pages_taken_from_a_registration_in_use_are_registered_anew() {
    let (source, cache) = cache();
    let whole = cache.get(page(0), pages(10)).unwrap().id;
    let part = cache.keep_at(0, page(0), pages(2)).unwrap();
    let once = cache.get_uncached(page(3), pages(1)).unwrap();
    assert_eq!((part.id, once.id), (whole, whole));
    source.unmap(page(5), pages(5));
    let after = cache.get(page(6), pages(2)).unwrap();
    assert_ne!(after.id, whole);
    assert_eq!(cache.get(page(7), pages(1)).unwrap().id, after.id);
    assert_ne!(cache.get_uncached(page(5), pages(1)).unwrap().id, whole);
    drop(part);
    assert_ne!(cache.get_uncached(page(8), pages(1)).unwrap().id, whole);
    assert_eq!(cache.get_uncached(page(3), pages(1)).unwrap().id, whole, "these are mapped");
    drop(once);
    assert!(!cache.device.is_live(whole));
}

/// The source waits for the reader of events, and so does a lookup made meanwhile.
#[test]
fn settling_waits_for_an_event_that_is_announced() {
    let (source, cache) = cache();
    let before = cache.get(page(0), pages(1)).unwrap().id;
    source.log().begin();
    std::thread::scope(|scope| {
        let lookup = scope.spawn(|| cache.get(page(0), pages(1)).unwrap().id);
        // Whether or not the lookup has begun, it may not end before the range is posted.
        std::thread::yield_now();
        source.unmap(page(0), pages(1));
        source.log().end();
        assert_ne!(lookup.join().unwrap(), before);
    });
}

/// Endless events do not block a lookup: it then trusts no kept registration.
#[test]
fn settling_is_bounded() {
    let source = ByHand::stuck();
    let cache = cache_with(Device::default(), CacheConfig::default(), &source);
    for made in 1..=2 {
        drop(cache.get(page(0), 1).unwrap());
        assert_eq!((cache.device.made(), cache.device.live()), (made, 0));
    }
    assert_eq!(cache.stats().uncached, 2);
}

/// An interface may return the same registration for the same pages. So an untrusted registration is released before
/// a new one is made.
#[test]
fn what_may_be_stale_is_gone_before_memory_is_registered_anew() {
    let (source, cache) = cache();
    drop(cache.get(page(0), pages(2)).unwrap());
    let leased = cache.get(page(5), 1).unwrap();
    // The device owns the hook, so the hook must not own the device.
    let device = Arc::downgrade(&cache.device);
    cache.device.on_register.set(move || {
        let live = device.upgrade().map(|device| device.live());
        assert_eq!(live, Some(2), "what is leased, and the new one");
    });
    source.log().begin();
    drop(cache.get(page(1), 1).unwrap());
    source.log().end();
    // A leased registration may still be needed, and stays known.
    assert_eq!(cache.get(page(5), 1).unwrap().id, leased.id);
}

#[test]
fn without_events_nothing_is_kept() {
    let cache = Shared::new(Device::default(), CacheConfig::default(), PORTS, None);
    drop(cache.get(page(0), 1).unwrap());
    assert_eq!(cache.device.live(), 0);
    let stats = serde_json::to_value(cache.stats()).unwrap();
    assert!(stats["mode"]["no_events"]["reason"].is_string(), "{stats}");
    assert_eq!(stats["uncached"], 1);
}

#[test]
fn memory_that_cannot_be_watched_is_not_kept() {
    let cache = cache_with(Device::default(), CacheConfig::default(), &ByHand::refusing());
    drop(cache.get(page(0), 1).unwrap());
    assert_eq!((cache.device.live(), cache.stats().uncached), (0, 1));
}

#[test]
fn switched_off_keeps_nothing() {
    let config = CacheConfig { keep: KeepRule::Off, ..CacheConfig::default() };
    let cache = cache_with(Device::default(), config, &ByHand::new(4));
    drop(cache.get(page(0), 1).unwrap());
    drop(cache.get(page(0), 1).unwrap());
    assert_eq!((cache.device.made(), cache.device.live()), (2, 0));
    assert_eq!(cache.stats().mode, CacheMode::Off);
}

/// Each watch splits mappings, and a process may have at most 65,530 of them.
#[test]
fn eviction_takes_watches_back() {
    let (source, cache) = limited(2, None);
    drop(cache.get(page(0), pages(4)).unwrap());
    drop(cache.get(page(3), pages(4)).unwrap());
    // Evicted pages stay watched if a kept region covers them.
    drop(cache.get(page(20), pages(1)).unwrap());
    assert_eq!(cache.stats().evictions, 1);
    let mut watched = source.watched();
    watched.sort_unstable();
    watched.dedup();
    assert!(!watched.iter().any(|&(start, _)| start < page(3)), "{watched:x?}");
    let covers = |at: usize| watched.iter().any(|&(start, len)| (start..start + len).contains(&at));
    assert!((3..7).all(|n| covers(page(n))) && covers(page(20)), "{watched:x?}");
    for n in 0..500 {
        drop(cache.get(page(100 + 2 * n), 1).unwrap());
    }
    assert!(source.watched().len() <= 4, "{:x?}", source.watched());
}
