//! What does a lookup of the registration cache cost?
//!
//! Questions: a hit without the lock (the engine's case), with the call that settles
//! the event source, with the lock, and with two threads at once on one region and
//! on two; then a miss, and what watching adds to `munmap`. The registrar does
//! nothing, so only the cache is measured; nothing here is a network number.

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use hopbine::memory::{
    CacheConfig, EventSource, ProcessEvents, Registrar, RegistrationCache, Span, page_bytes,
};

struct Nothing;

impl Registrar for Nothing {
    type Handle = u64;
    type Error = Infallible;

    fn register(&self, addr: usize, _len: usize) -> Result<u64, Infallible> {
        Ok(addr as u64)
    }

    fn release(&self, _handle: u64) {}
}

const REGION: usize = 1 << 16;

/// A cache that holds `regions` neighbours of a buffer.
fn filled(buffer: &[u8], regions: usize) -> RegistrationCache<Nothing> {
    let cache = RegistrationCache::with_process_events(Nothing, CacheConfig::default());
    eprintln!("mode: {:?}", cache.mode());
    for region in 0..regions {
        let lease = cache.get(buffer.as_ptr() as usize + region * REGION, REGION);
        assert_eq!(lease.unwrap().offset(), buffer.as_ptr() as u64 % page_bytes() as u64);
    }
    cache
}

/// Runs `body` while another thread runs `other` without pause.
fn beside(other: impl Fn() + Sync, body: impl FnOnce() -> Duration) -> Duration {
    let stop = AtomicBool::new(false);
    let running = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..64 {
                    other();
                }
                running.store(true, Ordering::Relaxed);
            }
        });
        while !running.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        let time = body();
        stop.store(true, Ordering::Relaxed);
        time
    })
}

fn timed(n: u64, mut body: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..n {
        body();
    }
    start.elapsed()
}

fn lookups(c: &mut Criterion) {
    const REGIONS: usize = 512;
    let buffer = vec![1_u8; (REGIONS + 1) * REGION];
    let cache = filled(&buffer, REGIONS);
    let base = buffer.as_ptr() as usize;
    let settled = cache.settle();
    let hit = |addr: usize| {
        let lease = cache.get_settled(settled, black_box(addr), 4096).unwrap();
        black_box(*lease + lease.offset());
    };
    let mut group = c.benchmark_group("regcache");
    group.bench_function("hit", |b| b.iter(|| hit(base)));
    group.bench_function("hit and settle", |b| {
        b.iter(|| {
            let lease = cache.get(black_box(base), 4096).unwrap();
            black_box(*lease + lease.offset());
        });
    });
    let mut at = 0;
    group.bench_function("hit of 512 regions in turn, mostly by the lock", |b| {
        b.iter(|| {
            at = (at + 1) % REGIONS;
            hit(base + at * REGION);
        });
    });
    group.bench_function("hit, two threads, one region", |b| {
        b.iter_custom(|n| beside(|| hit(base), || timed(n, || hit(base))));
    });
    group.bench_function("hit, two threads, two regions", |b| {
        b.iter_custom(|n| beside(|| hit(base + REGION), || timed(n, || hit(base))));
    });
    group.bench_function("uncached", |b| {
        b.iter(|| *cache.get_uncached(black_box(base), 4096).unwrap());
    });
    group.bench_function("miss after invalidation", |b| {
        b.iter(|| {
            cache.invalidate(base, 4096);
            hit(base);
        });
    });
    group.finish();
}

fn unmapping(c: &mut Criterion) {
    const LEN: usize = 1 << 16;
    let map = || {
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let addr = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
            libc::mmap(std::ptr::null_mut(), LEN, protection, flags, -1, 0)
        };
        assert_ne!(addr, libc::MAP_FAILED);
        addr as usize
    };
    // SAFETY: each address comes from `map` and is unmapped once.
    let unmap = |addr: usize| unsafe { libc::munmap(addr as _, LEN) };
    let mut group = c.benchmark_group("munmap 64 KiB");
    group.bench_function("plain", |b| {
        b.iter_batched(map, unmap, criterion::BatchSize::PerIteration);
    });
    if let Ok(events) = ProcessEvents::shared() {
        group.bench_function("watched", |b| {
            let watched = || {
                let addr = map();
                events.watch(Span::of_pages(addr, LEN, page_bytes()).unwrap()).unwrap();
                addr
            };
            b.iter_batched(watched, unmap, criterion::BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, lookups, unmapping);
criterion_main!(benches);
