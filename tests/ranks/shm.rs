//! The endpoint of ranks on one host alone, between ranks that one thread drives: messages of all lengths in any
//! order, more messages than any queue holds, read from the sender's memory or sent in pieces.

use std::time::Duration;

use hopbine::endpoint::shm::{ShmConfig, ShmEndpoint, connect};
use hopbine::endpoint::{
    Arrival, Endpoint, Event, Posted, RecvPost, SendPost, Slot, Status, Tag, WireRegion,
};
use hopbine::torus::choose::ShmLimits;
use hopbine_meet::LocalExchange;
use hopbine_testing::ranks::ranks;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::endpoint::{in_order, mixed_lengths, shuffled};

pub(crate) fn group(n_ranks: usize, may_read: bool) -> Vec<ShmEndpoint> {
    group_within(n_ranks, may_read, ShmLimits::default())
}

fn group_within(n_ranks: usize, may_read: bool, limits: ShmLimits) -> Vec<ShmEndpoint> {
    ranks(LocalExchange::group(n_ranks, Duration::from_secs(60)), |_, mut exchange| {
        let config = ShmConfig { n_ports: 1, node: 0, may_read, own_cores: true, limits };
        connect(&mut exchange, config).unwrap().endpoints.pop().unwrap()
    })
}

pub(crate) fn pair(may_read: bool) -> [ShmEndpoint; 2] {
    group(2, may_read).try_into().unwrap_or_else(|_| panic!("two"))
}

fn slot(task: usize) -> Slot {
    Slot { run: 7, task: task as u32 }
}

fn tag(message: usize) -> Tag {
    Tag { context: 1 << 33, operation: 3, message: message as u32, call: 0 }
}

fn regions(bytes: &mut [u8], lens: &[usize]) -> Vec<WireRegion> {
    let mut rest = bytes;
    let cut = |&len: &usize| {
        let (first, others) = std::mem::take(&mut rest).split_at_mut(len);
        rest = others;
        WireRegion { ptr: first.as_mut_ptr(), len, key: 0 }
    };
    lens.iter().map(cut).collect()
}

/// Counts the events by task, and copies views to their regions.
fn take(events: &mut Vec<Event>, targets: &[WireRegion], seen: &mut [u32]) {
    for event in events.drain(..) {
        let slot = match event {
            Event::Sent(slot) | Event::Received(slot) => slot,
            Event::Viewed(slot, view) => {
                let region = targets[slot.task as usize];
                assert_eq!(view.len, region.len);
                // SAFETY: the view is valid until the next poll, and the region belongs to the test.
                unsafe { std::ptr::copy_nonoverlapping(view.ptr, region.ptr, region.len) };
                slot
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(slot.run, 7);
        seen[slot.task as usize] += 1;
    }
}

/// Sends messages of the given lengths from rank 0 to rank 1. Posts receives in one order and sends in another.
/// Verifies that each message arrives once, at its place.
fn exchange(lens: &[usize], orders: [&[usize]; 2], poll_every: usize, may_read: bool) {
    let [mut sender, mut receiver] = pair(may_read);
    let total = lens.iter().sum::<usize>().max(1);
    let mut source: Vec<u8> = (0..total).map(|at| (at * 31 % 251) as u8).collect();
    let mut target = vec![0xee; total];
    let (sources, targets) = (regions(&mut source, lens), regions(&mut target, lens));
    let (mut sent, mut received) = (vec![0; lens.len()], vec![0; lens.len()]);
    let mut events = Vec::new();
    let [recv_order, send_order] = orders;
    let mut due = (recv_order.iter(), send_order.iter());
    let (mut recv, mut send) = (due.0.next(), due.1.next());
    let mut rounds = 0;
    while sent.iter().chain(&received).any(|&times| times != 1) {
        for _ in 0..poll_every {
            if let Some(&index) = recv {
                let arrivals = [Arrival::InRegion, Arrival::Anywhere, Arrival::PastCaches];
                let arrival = arrivals[index % 3];
                // SAFETY: the buffers outlive the endpoints and are not accessed until the events.
                let posted = unsafe {
                    receiver.post_recv(
                        0,
                        RecvPost {
                            slot: slot(index),
                            tag: tag(index),
                            region: targets[index],
                            arrival,
                        },
                    )
                };
                let posted = posted.unwrap();
                assert_ne!(posted, Posted::Later);
                received[index] += u32::from(posted == Posted::Done);
                recv = due.0.next();
            }
            if let Some(&index) = send {
                // SAFETY: as above.
                let posted = unsafe {
                    sender.post_send(
                        1,
                        SendPost { slot: slot(index), tag: tag(index), region: sources[index] },
                    )
                };
                let posted = posted.unwrap();
                sent[index] += u32::from(posted == Posted::Done);
                if posted != Posted::Later {
                    send = due.1.next();
                }
            }
        }
        sender.poll(&mut events).unwrap();
        take(&mut events, &[], &mut sent);
        receiver.poll(&mut events).unwrap();
        take(&mut events, &targets, &mut received);
        rounds += 1;
        assert!(rounds < 100_000, "stuck: {sent:?} {received:?}");
    }
    assert!(sender.is_flushed() && receiver.is_flushed());
    assert!(source == target);
}

#[test]
fn every_length_around_the_limits() {
    let limits = [2048, 64 * 1024, 512 * 1024, 1024 * 1024];
    let around = limits.into_iter().flat_map(|limit| [limit - 1, limit, limit + 1]);
    let lens: Vec<usize> = (0..70).chain(around).collect();
    let order = in_order(lens.len());
    for may_read in [true, false] {
        exchange(&lens, [&order, &order], 1, may_read);
        exchange(&lens, [&shuffled(lens.len(), 1), &shuffled(lens.len(), 2)], 3, may_read);
    }
}

/// A staged message is sent before its receiver looks; an announced one is not.
#[test]
fn the_longest_staged_message_is_that_of_the_limits() {
    let default = ShmLimits::default();
    let with = |staged: u64, staged_pair: u64| ShmLimits { staged, staged_pair, ..default };
    for (n_ranks, limits, longest) in [
        (2, default, 16 << 10),
        (3, default, 32 << 10),
        (2, with(2 << 10, 64 << 10), 64 << 10),
        (3, with(2 << 10, 64 << 10), 2 << 10),
        (3, with(48 << 10, 16 << 10), 48 << 10),
    ] {
        // Threads of one process read longer messages.
        let mut ports = group_within(n_ranks, true, limits);
        let mut bytes = vec![0u8; longest + 1];
        for (task, len) in [longest, longest + 1].into_iter().enumerate() {
            let region = WireRegion { ptr: bytes.as_mut_ptr(), len, key: 0 };
            let send = SendPost { slot: slot(task), tag: tag(task), region };
            // SAFETY: the bytes outlive the ports, which are dropped first, and nobody changes them.
            let posted = unsafe { ports[0].post_send(1, send) }.unwrap();
            let mut events = Vec::new();
            ports[0].poll(&mut events).unwrap();
            let is_sent = posted == Posted::Done || !events.is_empty();
            assert_eq!(is_sent, len == longest, "{n_ranks} ranks, {limits:?}, {len} B");
        }
        drop(ports);
    }
}

#[test]
fn more_messages_than_there_is_room_for() {
    for (len, n) in [(8, 2000), (500, 2000), (3000, 1000), (100_000, 100)] {
        for may_read in [true, false] {
            let lens = vec![len; n];
            exchange(&lens, [&in_order(n), &in_order(n)], 1000, may_read);
            exchange(&lens, [&shuffled(n, 3), &in_order(n)], 7, may_read);
        }
    }
}

#[test]
fn mixed_lengths_in_random_order() {
    for seed in 0..20 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let ranges = [0..40, 33..2049, 2049..70_000, 60_000..200_000, 8..9];
        let lens = mixed_lengths(&mut rng, &ranges);
        let orders = [&shuffled(300, seed + 50)[..], &shuffled(300, seed + 90)];
        exchange(&lens, orders, rng.random_range(1..40), seed % 2 == 0);
    }
}

/// A buffer that is sent to many ranks is staged once, and every receiver reads it.
#[test]
fn many_readers_of_one_message() {
    for len in [8, 1000, 5000, 100_000] {
        let mut ranks = group(5, true);
        let mut source = vec![42u8; len];
        let mut targets = vec![vec![0u8; len]; 5];
        let region = |bytes: &mut Vec<u8>| WireRegion { ptr: bytes.as_mut_ptr(), len, key: 0 };
        let from = region(&mut source);
        let mut n_done = 0;
        for to in 1..5 {
            // SAFETY: the buffers outlive the endpoints and are not accessed until the events.
            let sent = unsafe {
                ranks[0]
                    .post_send(to as u32, SendPost { slot: slot(to), tag: tag(0), region: from })
            };
            let sent = sent.unwrap();
            assert_ne!(sent, Posted::Later);
            n_done += usize::from(sent == Posted::Done);
            let into = region(&mut targets[to]);
            // SAFETY: as above.
            let posted = unsafe {
                ranks[to].post_recv(
                    0,
                    RecvPost {
                        slot: slot(to),
                        tag: tag(0),
                        region: into,
                        arrival: Arrival::InRegion,
                    },
                )
            };
            assert_eq!(posted.unwrap(), Posted::Accepted);
        }
        // Short sends complete when they are posted.
        assert_eq!(n_done, if len <= 2048 { 4 } else { 0 });
        let mut n_events = n_done;
        let mut events = Vec::new();
        for _ in 0..100 {
            for rank in &mut ranks {
                rank.poll(&mut events).unwrap();
                n_events += events.drain(..).count();
            }
        }
        assert_eq!(n_events, 8);
        assert!(targets[1..].iter().all(|target| *target == source));
    }
}

#[test]
fn a_rank_may_send_to_itself() {
    for len in [0, 8, 1000, 9000, 100_000] {
        let [mut endpoint, _other] = pair(true);
        let (mut source, mut target) = (vec![5u8; len], vec![0u8; len]);
        let region = |bytes: &mut Vec<u8>| WireRegion { ptr: bytes.as_mut_ptr(), len, key: 0 };
        let (from, into) = (region(&mut source), region(&mut target));
        // SAFETY: the buffers outlive the endpoint and are not accessed until the events.
        let [sent, posted] = unsafe {
            let sent = endpoint
                .post_send(0, SendPost { slot: slot(0), tag: tag(0), region: from })
                .unwrap();
            [
                sent,
                endpoint
                    .post_recv(
                        0,
                        RecvPost {
                            slot: slot(1),
                            tag: tag(0),
                            region: into,
                            arrival: Arrival::InRegion,
                        },
                    )
                    .unwrap(),
            ]
        };
        assert_eq!(posted, Posted::Accepted);
        let mut events = Vec::new();
        (0..5).for_each(|_| endpoint.poll(&mut events).unwrap());
        assert_eq!(events.len() + usize::from(sent == Posted::Done), 2);
        assert_eq!(source, target);
    }
}

#[test]
fn nothing_is_touched_after_giving_up() {
    let [mut lender, mut reader] = pair(true);
    let (mut source, mut target) = (vec![1u8; 200_000], vec![2u8; 200_000]);
    let from = WireRegion { ptr: source.as_mut_ptr(), len: source.len(), key: 0 };
    let into = WireRegion { ptr: target.as_mut_ptr(), len: target.len(), key: 0 };
    let mut events = Vec::new();
    // SAFETY: the buffers outlive the endpoints.
    unsafe {
        let _ = lender.post_send(1, SendPost { slot: slot(0), tag: tag(0), region: from }).unwrap();
        lender.abandon();
        drop(source);
        let _ = reader
            .post_recv(
                0,
                RecvPost { slot: slot(0), tag: tag(0), region: into, arrival: Arrival::InRegion },
            )
            .unwrap();
        let error = reader.poll(&mut events).unwrap_err();
        assert_eq!(error.peer, Some(0));
        assert!(
            lender.post_send(1, SendPost { slot: slot(0), tag: tag(1), region: into }).is_err()
        );
    }
    reader.abandon();
    reader.poll(&mut events).unwrap();
    assert_eq!(events, []);
    assert!(target.iter().all(|&byte| byte == 2));
}

#[test]
fn status_and_news_reach_others() {
    let mut ranks = group(3, true);
    let asked = |by: &mut ShmEndpoint, rank| {
        let observer = by.observer().unwrap();
        assert!(observer.request_status(rank).unwrap());
        observer.answer()
    };
    assert_eq!(asked(&mut ranks[0], 1), Some(Status::Busy));
    ranks[1].observer().unwrap().publish(Status::WaitsFor(2, 5));
    assert_eq!(asked(&mut ranks[0], 1), Some(Status::WaitsFor(2, 5)));
    assert_eq!(asked(&mut ranks[0], 7), Some(Status::Unknown));
    let blame = hopbine::Blame { rank: 2, fault: hopbine::Fault::Failed, by: 1 };
    ranks[1].observer().unwrap().send_news(blame);
    let mut events = Vec::new();
    for rank in [0, 2] {
        assert_eq!(ranks[rank].observer().unwrap().received_news(), Some(blame));
        ranks[rank].poll(&mut events).unwrap();
        ranks[rank].poll(&mut events).unwrap();
        assert_eq!(std::mem::take(&mut events), [Event::News(blame)]);
    }
    assert_eq!(ranks[1].observer().unwrap().received_news(), None);
}

/// Two ranks have requested long messages from rank 0 in pieces, and one of them does not poll for a while.
#[test]
fn a_rank_that_does_not_poll_keeps_no_message_from_another() {
    let mut ranks = group(3, false);
    let len = 1 << 20;
    let mut source = vec![7u8; len];
    let mut targets = vec![vec![0u8; len]; 3];
    let region = |bytes: &mut Vec<u8>| WireRegion { ptr: bytes.as_mut_ptr(), len, key: 0 };
    let from = region(&mut source);
    let mut events = Vec::new();
    for peer in 1..3 {
        let into = region(&mut targets[peer]);
        // SAFETY: the buffers outlive the endpoints and are not accessed until the events.
        unsafe {
            let sent = ranks[0]
                .post_send(peer as u32, SendPost { slot: slot(peer), tag: tag(0), region: from })
                .unwrap();
            assert_eq!(sent, Posted::Accepted);
            let posted = ranks[peer].post_recv(
                0,
                RecvPost {
                    slot: slot(peer),
                    tag: tag(0),
                    region: into,
                    arrival: Arrival::InRegion,
                },
            );
            assert_eq!(posted.unwrap(), Posted::Accepted);
        }
        ranks[peer].poll(&mut events).unwrap();
    }
    assert_eq!(events, []);
    let [sender, idle, reader] = &mut ranks[..] else { unreachable!() };
    let mut n_rounds = 0;
    while !events.contains(&Event::Received(slot(2))) {
        sender.poll(&mut events).unwrap();
        reader.poll(&mut events).unwrap();
        n_rounds += 1;
        assert!(n_rounds < 10_000, "{events:?}");
    }
    assert!(targets[2] == source);
    while !events.contains(&Event::Received(slot(1))) {
        sender.poll(&mut events).unwrap();
        idle.poll(&mut events).unwrap();
    }
    assert!(targets[1] == source);
}

/// Rank 0 has read more messages than it can acknowledge, because two ranks take nothing from their queues. When one
/// of them polls, it gets all its acknowledgements.
#[test]
fn answers_do_not_wait_for_a_rank_that_takes_none() {
    const EACH: usize = 30;
    let mut ranks = group(3, true);
    let (mut source, mut target) = (vec![7u8; 100_000], vec![0u8; 100_000]);
    let [from, into] = [&mut source, &mut target].map(|bytes| WireRegion {
        ptr: bytes.as_mut_ptr(),
        len: bytes.len(),
        key: 0,
    });
    // SAFETY: the buffers outlive the endpoints, and the test does not access them meanwhile.
    let send = |rank: &mut ShmEndpoint, to, message, region| unsafe {
        rank.post_send(to, SendPost { slot: slot(message), tag: tag(message), region }).unwrap()
    };
    let nothing = WireRegion { len: 0, ..from };
    let mut events = Vec::new();
    for peer in 1..3 {
        // After this loop the queue has room for answers only.
        while send(&mut ranks[0], peer, 0, nothing) == Posted::Done {}
        for at in 0..EACH {
            assert_eq!(send(&mut ranks[peer as usize], 0, at, from), Posted::Accepted);
            // SAFETY: as above.
            let posted = unsafe {
                ranks[0].post_recv(
                    peer,
                    RecvPost {
                        slot: slot(at),
                        tag: tag(at),
                        region: into,
                        arrival: Arrival::InRegion,
                    },
                )
            };
            assert_eq!(posted.unwrap(), Posted::Accepted);
        }
    }
    // Each poll reads one message.
    (0..2 * EACH).for_each(|_| ranks[0].poll(&mut events).unwrap());
    assert_eq!(std::mem::take(&mut events).len(), 2 * EACH);
    for peer in [2, 1] {
        for _ in 0..3 {
            ranks[peer].poll(&mut events).unwrap();
            ranks[0].poll(&mut Vec::new()).unwrap();
        }
        assert_eq!(std::mem::take(&mut events).len(), EACH, "rank {peer}");
    }
}
