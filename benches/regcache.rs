//! Question: the time of a lookup in the registration cache.
//!
//! Measured are a hit among many regions (the engine's case at each port), with and without the call that settles the
//! event source; a miss; and the time that watching adds to `munmap`. Registering does nothing here, so the benchmark
//! measures only the cache, not a network.

use std::convert::Infallible;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use hopbine::memory::{Cache, CacheConfig, Keep, ProcessEvents, Settled, Span, page_bytes};
use hopbine_torus::PortId;

const REGION: usize = 1 << 16;

/// Looks up 4 KiB and releases the lease.
fn look_up(cache: &Cache<u64>, settled: Settled, addr: usize) {
    let register = |addr: usize, _, _| Ok::<_, Infallible>((addr as u64, addr as u64));
    let lease =
        cache.get(Keep::UntilEvent(settled), PortId(0), black_box(addr), 4096, register).unwrap();
    black_box(*lease.handle() + lease.offset());
    cache.release(PortId(0), lease);
}

fn lookups(c: &mut Criterion) {
    const REGIONS: usize = 512;
    let buffer = vec![1_u8; (REGIONS + 1) * REGION];
    let base = buffer.as_ptr() as usize;
    let cache = Cache::with_process_events(CacheConfig::default(), 1);
    eprintln!("mode: {:?}", cache.stats().mode);
    let settled = cache.settle();
    for region in 0..REGIONS {
        look_up(&cache, settled, base + region * REGION);
    }
    let mut group = c.benchmark_group("regcache");
    group.bench_function("hit", |b| b.iter(|| look_up(&cache, settled, base)));
    group.bench_function("hit and settle", |b| {
        b.iter(|| {
            let settled = cache.settle();
            look_up(&cache, settled, base);
        });
    });
    let mut at = 0;
    group.bench_function("hit of 512 regions in turn", |b| {
        b.iter(|| {
            at = (at + 1) % REGIONS;
            look_up(&cache, settled, base + at * REGION);
        });
    });
    group.bench_function("uncached", |b| {
        b.iter(|| {
            let register = |addr: usize, _, _| Ok::<_, Infallible>((addr as u64, addr as u64));
            let lease = cache.get(Keep::Once, PortId(0), black_box(base), 4096, register).unwrap();
            cache.release(PortId(0), lease);
        });
    });
    group.bench_function("miss after all has ended, one region", |b| {
        b.iter(|| {
            cache.invalidate_all(PortId(0));
            look_up(&cache, settled, base);
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
