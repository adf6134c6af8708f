//! Packets without notices: a receiver that polls one word of a packet finds the whole packet.

use std::time::{Duration, Instant};

use utofu_sys::*;

use super::common::*;
use super::{all_fine, job, known, playing};

/// A receiver that polls the first or the last word of a packet, without any notice, then finds the whole packet;
/// the same holds for each of several packets of one put.
#[test]
fn a_packet_is_there_at_once() {
    const TEST: &str = "packets::a_packet_is_there_at_once";
    const ROUNDS: u64 = 8_000;
    const MOST: usize = 1024;
    /// Offset of the polled word in a packet, length of the packet (both in bytes), and packets per put.
    const WATCH: &str = "HOPBINE_TEST_WATCH";
    if !playing(TEST) {
        // Data of a length that is not a multiple of a line are followed by a flag of two bytes.
        let usual = ["18 256 1", "1022 1024 1", "770 772 1", "254 256 200"];
        let first = ["18 1024 1", "18 256 200"];
        let last = ["254 256 1", "162 164 1"];
        let watched = |end| Some(("HOPBINE_EMU_WATCHED", end));
        for (watched, watches) in
            [(None, &usual[..]), (watched("first"), &first[..]), (watched("last"), &last[..])]
        {
            for watch in watches {
                let variables: Vec<_> = watched.into_iter().chain([(WATCH, *watch)]).collect();
                all_fine(&job(TEST, 2, &variables));
            }
        }
        return;
    }
    let watch = std::env::var(WATCH).unwrap();
    let numbers: Vec<usize> = watch.split(' ').map(|number| number.parse().unwrap()).collect();
    let [at, len, packets] = numbers[..] else { panic!("{watch}") };
    #[repr(align(256))]
    struct Lines([u64; 16384]);
    let mut lines = Box::new(Lines([0; 16384]));
    let p = lines.0.as_mut_ptr();
    let me = known(&mut lines.0);
    let other = 1 - me.rank;
    // The source is in the first half; the other rank puts into the second half.
    let there = p.wrapping_add(8192).cast::<u8>();
    if me.rank == 0 {
        me.put_when_there(other, 0, 0);
    }
    for round in 1..=ROUNDS {
        let wanted = [round as u16; MOST / 2];
        let start = Instant::now();
        let watch = |packet: *mut u8| {
            let mut looks = 0u64;
            // SAFETY: the packet is in the buffer; only the other rank's process writes it.
            while unsafe { packet.add(at).cast::<u16>().read_volatile() } != round as u16 {
                looks += 1;
                if looks.is_multiple_of(1000) {
                    assert!(start.elapsed() < Duration::from_secs(60), "the other rank is gone");
                    std::thread::yield_now();
                }
            }
            // SAFETY: the packet is in the buffer, as before.
            let got = unsafe { packet.cast::<[u16; MOST / 2]>().read_volatile() };
            assert_eq!(
                got[..len / 2],
                wanted[..len / 2],
                "round {round}, watched at {at} of {len}"
            );
            // A single packet is cleared, so that the next put has to fetch every part of it from this processor's
            // cache. Of several packets only the polled words are cleared; the rest stays in both caches.
            let cleared = if packets == 1 { 0..len } else { at..at + 2 };
            for i in cleared.step_by(2) {
                // SAFETY: the other rank puts again only after this rank has answered.
                unsafe { packet.add(i).cast::<u16>().write_volatile(0) };
            }
        };
        let watch_all = || (0..packets).for_each(|i| watch(there.wrapping_add(i * len)));
        if me.rank == 1 {
            watch_all();
        }
        // SAFETY: no operation reads the source now, since the last put from it has arrived.
        unsafe { std::slice::from_raw_parts_mut(p.cast(), packets * len / 2).fill(round as u16) };
        // For several packets only strong order guarantees it for each packet.
        let flags = if packets == 1 { 0 } else { UTOFU_ONESIDED_FLAG_STRONG_ORDER };
        let rc = me.ep.put(me.ids[other], me.stadd, me.stadd + 65536, packets * len, 0, flags);
        assert_eq!(rc, 0);
        assert_eq!(me.ep.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
        if me.rank == 0 {
            watch_all();
        }
    }
}

/// A process that reads aligned words while another rank puts them sees no word that mixes two puts.
#[test]
fn words_are_put_whole() {
    const TEST: &str = "packets::words_are_put_whole";
    if !playing(TEST) {
        return all_fine(&job(TEST, 2, &[]));
    }
    let mut buf = vec![0u64; 16384];
    let me = known(&mut buf);
    if me.rank == 1 {
        me.put_when_there(0, 0, 0);
        return put_words(&me.ep, me.ids[0], &mut buf, me.stadd + 65536);
    }
    // SAFETY: the second half of the buffer; only the other rank writes it.
    unsafe { read_words(&me.ep, buf.as_ptr().add(8192), (me.ids[1], me.stadd)) };
}
