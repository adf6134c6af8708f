use super::*;
use crate::limits::error::Code;
use proptest::prelude::*;
use std::alloc::{Layout, alloc_zeroed};

const PAGE: u64 = 4096;

/// Reports that no living process holds the entry.
fn nobody(_: bool) -> EntryHolders {
    EntryHolders::None
}

fn table() -> Box<StagTable> {
    let layout = Layout::new::<StagTable>();
    // SAFETY: a StagTable is valid when zeroed (see its `Shared` impl), and too large for the stack; the layout is
    // a StagTable's and not empty, and boxes use the same allocator.
    unsafe {
        let zeroed = alloc_zeroed(layout);
        assert!(!zeroed.is_null());
        Box::from_raw(zeroed.cast())
    }
}

fn range(addr: u64, size: u64) -> Range {
    Range { addr, size, owner: 3, flags: 0, unmap_epoch: 0 }
}

proptest! {
    /// STADD + k leads to address + k, up to the end of the last page.
    #[test]
    fn stadds_are_byte_addresses(start in 1u64..1 << 40, size in 0u64..1 << 24, k in 0u64..1 << 25) {
        let t = table();
        let stadd = t.register(range(start, size), PAGE).unwrap();
        prop_assert_eq!(stadd & (PAGE - 1), start % PAGE);
        let got = t.lookup(stadd + k).unwrap();
        prop_assert_eq!(got.addr, start + k);
        let end = (start + size).next_multiple_of(PAGE);
        prop_assert_eq!(got.bytes_left, (end as i64) - (start + k) as i64);
        prop_assert_eq!(got.owner, 3);
    }

    /// For any sequence of registrations, the newest STADD of a range leads to the range, and a range within
    /// registered pages gets no new STag.
    #[test]
    fn registrations_share_pages(parts in prop::collection::vec((0u64..40_000, 1u64..20_000), 1..30)) {
        let t = table();
        let mut held: Vec<(u64, u64)> = Vec::new();
        for (offset, size) in parts {
            let addr = (1 << 20) + offset;
            let (first, end) = (addr / PAGE, (addr + size).div_ceil(PAGE));
            let covered = held.iter().any(|(a, e)| *a <= first && end <= *e);
            let before = t.high.load(Ordering::Relaxed);
            let stadd = t.register(range(addr, size), PAGE).unwrap();
            prop_assert_eq!(t.lookup(stadd).unwrap().addr, addr);
            prop_assert!(t.lookup(stadd).unwrap().bytes_left >= size as i64);
            let grew = t.high.load(Ordering::Relaxed) - before;
            prop_assert_eq!(grew, u32::from(!covered));
            held.push((first, end));
        }
    }
}

/// `deregister` waits for operations, however often it asks whether the processes with holds are alive.
#[test]
fn the_end_of_a_registration_waits_for_operations() {
    let t = table();
    let stadd = t.register(range(0x10_000, 8192), PAGE).unwrap();
    let (n_asked, is_over) = (AtomicU32::new(0), std::sync::atomic::AtomicBool::new(false));
    let process = AtomicU32::new(0);
    let held = t.entry(stadd + 100).unwrap().hold(Some(&process));
    std::thread::scope(|threads| {
        let ends = threads.spawn(|| {
            let mut find_holders = |checks| {
                n_asked.fetch_add(u32::from(checks), Ordering::Relaxed);
                if process.load(Ordering::SeqCst) > 0 {
                    EntryHolders::Running
                } else {
                    EntryHolders::None
                }
            };
            t.deregister(stadd, &mut find_holders).unwrap();
            is_over.load(Ordering::Relaxed)
        });
        while t.lookup(stadd).is_some() || n_asked.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
        drop(held);
        assert!(ends.join().unwrap(), "returned while the operation was going on");
    });
    assert_eq!(process.into_inner(), 0);
    // A hold on an entry that is no longer registered blocks no thread.
    drop(t.entry(stadd).unwrap().hold(None));
    assert!(t.entry(u64::MAX).is_none());
}

/// A process that has died during an operation never releases its hold.
#[test]
fn the_dead_are_not_waited_for() {
    let t = table();
    let stadd = t.register(range(0x10_000, 8192), PAGE).unwrap();
    let user = crate::limits::ids::user_stadd(8, 0).unwrap();
    t.register_user(range(0x20_000, 100), user).unwrap();
    for stadd in [stadd, user] {
        std::mem::forget(t.entry(stadd).unwrap().hold(None));
        t.deregister(stadd, &mut nobody).unwrap();
        assert_eq!(t.lookup(stadd), None);
    }
    // The dead process may have been writing to this memory: the entry cannot describe other memory, but the same
    // memory may be registered again.
    let again = t.register_user(range(0x30_000, 100), user);
    assert_eq!(again, Err(Code(UTOFU_ERR_INVALID_STAG)));
    assert_eq!(t.register(range(0x10_000, 8192), PAGE), Ok(stadd));
    // The same holds for the CQ's next VCQs.
    t.deregister_dynamic(&mut nobody);
    let other = t.register(range(0x30_000, 100), PAGE).unwrap();
    assert_ne!(other, stadd);
    assert_eq!(t.register(range(0x10_000, 8192), PAGE), Ok(stadd));
    assert_eq!(t.lookup(other).unwrap().addr, 0x30_000);
}

/// A stopped process may be in a copy. The wait for it is bounded, and starts anew whenever a holder runs.
#[test]
fn the_stopped_are_not_waited_for_without_limit() {
    let t = table();
    let stadd = t.register(range(0x10_000, 8192), PAGE).unwrap();
    std::mem::forget(t.entry(stadd).unwrap().hold(None));
    let (mut n_asked, mut last_run) = (0, Instant::now());
    let mut find_holders = |checks| {
        n_asked += u32::from(checks);
        if checks && n_asked % 5 == 0 && n_asked < 20 {
            last_run = Instant::now();
            return EntryHolders::Running;
        }
        EntryHolders::Stopped
    };
    t.deregister(stadd, &mut find_holders).unwrap();
    assert!(n_asked >= 16 && last_run.elapsed() > STOPPED_WAIT);
    assert_eq!(t.lookup(stadd), None);
}

#[test]
fn registrations_are_counted_and_remembered() {
    let t = table();
    let a = t.register(range(0x10_000, 8192), PAGE).unwrap();
    let b = t.register(range(0x10_010, 16), PAGE).unwrap();
    assert_eq!(b, a + 16);
    t.deregister(a + 100, &mut nobody).unwrap();
    assert!(t.lookup(a).is_some(), "one registration is left");
    t.deregister(b, &mut nobody).unwrap();
    assert_eq!(t.lookup(a), None);
    assert_eq!(t.deregister(a, &mut nobody), Err(Code(UTOFU_ERR_INVALID_STADD)));
    let part = t.register(range(0x10_000, 4096), PAGE).unwrap();
    assert_ne!(part, a, "pages that nobody has registered");
    assert_eq!(t.lookup(a), None);
    t.deregister(part, &mut nobody).unwrap();
    assert_eq!(t.register(range(0x10_000, 8192), PAGE), Ok(a), "the STag is remembered");
    assert!(t.lookup(a).is_some());
}

#[test]
fn read_only_and_other_owners_do_not_share() {
    let t = table();
    let a = t.register(range(0x10_000, 64), PAGE).unwrap();
    let read_only = Range { flags: 1, ..range(0x10_000, 64) };
    let b = t.register(read_only, PAGE).unwrap();
    let other = Range { owner: 4, ..range(0x10_000, 64) };
    let c = t.register(other, PAGE).unwrap();
    assert!(a != b && b != c && a != c);
    assert!(t.lookup(b).unwrap().read_only && !t.lookup(a).unwrap().read_only);
    assert_eq!(t.lookup(c).unwrap().owner, 4);
}

/// 6144 STags, every second number from 4096; then FULL; then STags without registrations are reused.
#[test]
fn stags_run_out_and_are_recycled() {
    let t = table();
    let page = |n: u64| range((n + 1) * 2 * PAGE, 64);
    for n in 0..6144 {
        let stadd = t.register(page(n), PAGE).unwrap();
        assert_eq!(stadd >> STAG_AT, 4096 + 2 * n);
    }
    assert_eq!(t.register(page(9999), PAGE), Err(Code(UTOFU_ERR_FULL)));
    let third = 4100 << STAG_AT;
    t.deregister(third, &mut nobody).unwrap();
    assert_eq!(t.register(page(9999), PAGE), Ok(third));
    assert_eq!(t.lookup(third).unwrap().addr, page(9999).addr);
    assert_eq!(t.lookup(4097 << STAG_AT), None, "odd STags do not exist");
    assert_eq!(t.lookup(u64::MAX), None);
}

#[test]
fn user_stags_are_exact_and_exclusive() {
    let t = table();
    let stadd = crate::limits::ids::user_stadd(9, 77).unwrap();
    t.register_user(range(0x10_001, 100), stadd).unwrap();
    let got = t.lookup(stadd + 99).unwrap();
    assert_eq!((got.addr, got.bytes_left), (0x10_064, 1));
    let again = t.register_user(range(0x20_000, 100), stadd);
    assert_eq!(again, Err(Code(UTOFU_ERR_INVALID_STAG)));
    t.deregister_user(8, &mut nobody);
    assert!(t.lookup(stadd).is_some(), "another VCQ's");
    t.deregister_user(9, &mut nobody);
    assert_eq!(t.lookup(stadd), None);
    t.register_user(range(0x20_000, 100), stadd).unwrap();
}

/// A reader never sees half of one registration and half of another.
#[test]
fn lookups_during_changes_are_consistent() {
    let t = table();
    let stadd = crate::limits::ids::user_stadd(8, 0).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            for i in 1..=50_000u64 {
                t.register_user(range(i << 20, i), stadd).unwrap();
                t.deregister(stadd, &mut nobody).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            if let Some(r) = t.lookup(stadd) {
                assert_eq!(r.addr >> 20, r.bytes_left as u64);
            }
        }
    });
}
