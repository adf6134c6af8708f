//! Packets without notices: who watches a word of one, finds all of it.

use std::time::{Duration, Instant};

use utofu_sys::*;

use super::common::*;
use super::{all_fine, job, known, playing};

/// Who watches the first or the last word of a packet, without any notice, finds all of it.
#[test]
fn a_packet_is_there_at_once() {
    const TEST: &str = "packets::a_packet_is_there_at_once";
    const ROUNDS: u64 = 8_000;
    const MOST: usize = 1024;
    /// Where the watched word lies, and the length of the packet, in bytes.
    const WATCH: &str = "HOPBINE_TEST_WATCH";
    if !playing(TEST) {
        for (end, watch) in
            [("first", "18 256"), ("last", "254 256"), ("first", "18 1024"), ("last", "1022 1024")]
        {
            all_fine(&job(TEST, 2, &[("HOPBINE_EMU_WATCHED", end), (WATCH, watch)]));
        }
        return;
    }
    let watch = std::env::var(WATCH).unwrap();
    let (at, len) = watch.split_once(' ').unwrap();
    let (at, len): (usize, usize) = (at.parse().unwrap(), len.parse().unwrap());
    #[repr(align(256))]
    struct Lines([u64; 16384]);
    let mut lines = Box::new(Lines([0; 16384]));
    let p = lines.0.as_mut_ptr();
    let me = known(&mut lines.0);
    let other = 1 - me.rank;
    // Source in the first half; the other rank's puts go to the second half.
    let packet = p.wrapping_add(8192).cast::<u8>();
    if me.rank == 0 {
        me.put_when_there(other, 0, 0);
    }
    for round in 1..=ROUNDS {
        let wanted = [round as u16; MOST / 2];
        let start = Instant::now();
        let watch = || {
            let mut looks = 0u64;
            // SAFETY: the packet is in the buffer, and written by the other rank's process.
            while unsafe { packet.add(at).cast::<u16>().read_volatile() } != round as u16 {
                looks += 1;
                if looks.is_multiple_of(1000) {
                    assert!(start.elapsed() < Duration::from_secs(60), "the other rank is gone");
                    std::thread::yield_now();
                }
            }
            // SAFETY: as above.
            let got = unsafe { packet.cast::<[u16; MOST / 2]>().read_volatile() };
            assert_eq!(
                got[..len / 2],
                wanted[..len / 2],
                "round {round}, watched at {at} of {len}"
            );
            // The next put has to fetch every part of the packet from this processor's cache.
            // SAFETY: the other rank puts again only when it has been answered.
            unsafe { packet.cast::<[u16; MOST / 2]>().write_volatile([0; MOST / 2]) };
        };
        if me.rank == 1 {
            watch();
        }
        // SAFETY: nobody reads the source now: the last put from it has arrived.
        unsafe { p.cast::<[u16; MOST / 2]>().write(wanted) };
        let rc = me.ep.put(me.ids[other], me.stadd, me.stadd + 65536, len, 0, 0);
        assert_eq!(rc, 0);
        assert_eq!(me.ep.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
        if me.rank == 0 {
            watch();
        }
    }
}

/// A process that reads aligned words while another rank puts them meets no word of two puts.
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
    // SAFETY: the second half of the buffer, which only the other rank writes.
    unsafe { read_words(&me.ep, buf.as_ptr().add(8192), (me.ids[1], me.stadd)) };
}
