//! The uTofu endpoint alone, between two emulated ranks that one thread drives: messages of all lengths in any order,
//! and more messages than any queue holds.

use hopbine::WireError;
use hopbine::endpoint::utofu::{OnNode, Registrar, UtofuEndpoint, connect};
use hopbine::endpoint::{
    Access, Arrival, Endpoint, Event, MemoryRange, Owner, Posted, RecvPost, Registry, SendPost,
    Slot, Tag, Time, WireRegion,
};
use hopbine_meet::LocalExchange;
use hopbine_testing::ranks::ranks;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::ops::Range;
use std::time::{Duration, Instant};
use utofu::Api;
use utofu_emu::{Job, Model};

/// Two connected endpoints, for ranks 0 and 1.
pub(crate) fn pair() -> [UtofuEndpoint; 2] {
    pair_on(Model::default())
}

/// Like `pair`, over a wire with the latency of the model.
pub(crate) fn pair_on(wire: Model) -> [UtofuEndpoint; 2] {
    group(2, wire).try_into().unwrap_or_else(|_| panic!("two"))
}

/// Connected endpoints of `n_ranks` ranks.
pub(crate) fn group(n_ranks: u32, wire: Model) -> Vec<UtofuEndpoint> {
    let job = Job::with_model(Job::coords_for_shape(&[n_ranks]).unwrap(), wire).unwrap();
    let exchanges = LocalExchange::group(n_ranks as usize, Duration::from_secs(60));
    ranks(exchanges, |rank, mut exchange| {
        let _entered = job.enter(rank);
        let (registrars, time) = (vec![Registrar::default()], Time::default());
        let endpoints = connect(Api::emulated(), &mut exchange, OnNode::ALONE, registrars, &time);
        endpoints.unwrap().pop().unwrap()
    })
}

/// A registered buffer. `region` takes the next part of it for a message.
struct Memory {
    bytes: Vec<u8>,
    key: u64,
    used: usize,
}

impl Memory {
    fn new(endpoint: &mut UtofuEndpoint, len: usize, byte: u8) -> Self {
        let mut bytes = vec![byte; len];
        let range = MemoryRange { ptr: bytes.as_mut_ptr(), len, access: Access::Write };
        // SAFETY: the test keeps the buffer until the endpoints are dropped.
        let key = unsafe { endpoint.register(range, Owner::Library) }.unwrap();
        Memory { bytes, key, used: 0 }
    }

    fn region(&mut self, len: usize) -> WireRegion {
        let at = self.used;
        self.used += len;
        assert!(self.used <= self.bytes.len());
        // SAFETY: within the vector.
        let ptr = unsafe { self.bytes.as_mut_ptr().add(at) };
        WireRegion { ptr, len, key: self.key + at as u64 }
    }
}

fn slot(task: usize) -> Slot {
    Slot { run: 7, task: task as u32 }
}

fn tag(message: usize) -> Tag {
    Tag { context: 9, operation: 3, message: message as u32, call: 0 }
}

/// Posts the message with this index at both ends: first the receive, then the send.
///
/// # Safety
/// The regions must not be accessed until the events.
unsafe fn post_both(
    sender: &mut UtofuEndpoint,
    receiver: &mut UtofuEndpoint,
    index: usize,
    from: WireRegion,
    into: WireRegion,
) {
    let tag = tag(index);
    let recv = RecvPost { slot: slot(0), tag, region: into, arrival: Arrival::InRegion };
    let send = SendPost { slot: slot(1), tag, region: from };
    // SAFETY: the caller's guarantee.
    let posted =
        unsafe { [receiver.post_recv(0, recv).unwrap(), sender.post_send(1, send).unwrap()] };
    assert_eq!(posted, [Posted::Accepted; 2]);
}

/// Sends messages of the given lengths from rank 0 to rank 1. Posts receives in one order and sends in another.
/// Verifies that each message arrives once, at its place.
fn exchange(lens: &[usize], recv_order: &[usize], send_order: &[usize], poll_every: usize) {
    let [mut sender, mut receiver] = pair();
    let total = lens.iter().sum::<usize>().max(1);
    let mut source = Memory::new(&mut sender, total, 0);
    let mut target = Memory::new(&mut receiver, total, 0xee);
    let sources: Vec<_> = lens.iter().map(|&len| source.region(len)).collect();
    let targets: Vec<_> = lens.iter().map(|&len| target.region(len)).collect();
    for (at, byte) in source.bytes.iter_mut().enumerate() {
        *byte = (at * 31 % 251) as u8;
    }
    let (mut sent, mut received) = (vec![0; lens.len()], vec![0; lens.len()]);
    let mut events = Vec::new();
    let mut poll = |sender: &mut UtofuEndpoint, receiver: &mut UtofuEndpoint| {
        sender.poll(&mut events).unwrap();
        for event in events.drain(..) {
            let Event::Sent(slot) = event else { panic!("{event:?}") };
            sent[slot.task as usize] += 1;
        }
        receiver.poll(&mut events).unwrap();
        for event in events.drain(..) {
            let Event::Received(slot) = event else { panic!("{event:?}") };
            assert_eq!(slot.run, 7);
            received[slot.task as usize] += 1;
        }
        received.iter().all(|&times| times == 1) && sent.iter().all(|&times| times == 1)
    };
    for index in 0..lens.len() {
        let (recv, send) = (recv_order[index], send_order[index]);
        // SAFETY: the buffers outlive their use by the endpoints, and are not accessed before the end.
        unsafe {
            let posted = receiver
                .post_recv(
                    0,
                    RecvPost {
                        slot: slot(recv),
                        tag: tag(recv),
                        region: targets[recv],
                        arrival: Arrival::InRegion,
                    },
                )
                .unwrap();
            assert_eq!(posted, Posted::Accepted);
            let posted = sender
                .post_send(1, SendPost { slot: slot(send), tag: tag(send), region: sources[send] })
                .unwrap();
            assert_eq!(posted, Posted::Accepted);
        }
        if index % poll_every == poll_every - 1 {
            poll(&mut sender, &mut receiver);
        }
    }
    let mut rounds = 0;
    while !poll(&mut sender, &mut receiver) || !sender.is_flushed() || !receiver.is_flushed() {
        rounds += 1;
        assert!(rounds < 100_000, "stuck");
    }
    assert_eq!(source.bytes, target.bytes);
    sender.release(source.key).unwrap();
    receiver.release(target.key).unwrap();
    assert!(sender.release(source.key).is_err(), "released twice");
}

pub(crate) fn in_order(n: usize) -> Vec<usize> {
    (0..n).collect()
}

pub(crate) fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order = in_order(n);
    order.shuffle(&mut SmallRng::seed_from_u64(seed));
    order
}

#[test]
fn every_length_around_the_limits() {
    let lens: Vec<usize> = (0..70).chain(2030..2070).chain([4096, 100_000]).collect();
    exchange(&lens, &in_order(lens.len()), &in_order(lens.len()), 1);
    exchange(&lens, &shuffled(lens.len(), 1), &shuffled(lens.len(), 2), 3);
}

/// Two endpoints, each with a registered buffer of `len` bytes.
fn pair_with(len: usize) -> ([UtofuEndpoint; 2], [Memory; 2]) {
    let [mut sender, mut receiver] = pair();
    let memories = [Memory::new(&mut sender, len, 1), Memory::new(&mut receiver, len, 2)];
    ([sender, receiver], memories)
}

/// Posts a send to rank 1. Its buffer outlives the endpoint and is not accessed until its event.
fn send_to_1(sender: &mut UtofuEndpoint, at: usize, region: WireRegion) {
    // SAFETY: the callers' guarantee.
    let posted = unsafe { sender.post_send(1, SendPost { slot: slot(at), tag: tag(at), region }) };
    assert_eq!(posted.unwrap(), Posted::Accepted);
}

/// All receives are announced before the first send, so all puts are due at the same time.
#[test]
fn more_puts_than_the_transmit_queue_holds() {
    let (n, len) = (3000, 2100);
    let ([mut sender, mut receiver], [mut source, mut target]) = pair_with(n * len);
    let mut events = Vec::new();
    for index in 0..n {
        let region = target.region(len);
        // SAFETY: the buffer outlives the endpoint and is not accessed until the events.
        let posted = unsafe {
            receiver.post_recv(
                0,
                RecvPost { slot: slot(index), tag: tag(index), region, arrival: Arrival::InRegion },
            )
        };
        assert_eq!(posted.unwrap(), Posted::Accepted);
    }
    for _ in 0..n {
        receiver.poll(&mut events).unwrap();
        sender.poll(&mut events).unwrap();
    }
    assert!(events.is_empty() && receiver.is_flushed());
    (0..n).for_each(|at| send_to_1(&mut sender, at, source.region(len)));
    assert!(!sender.is_flushed(), "the queue has room for more than it should");
    let mut rounds = 0;
    while events.len() < 2 * n {
        sender.poll(&mut events).unwrap();
        receiver.poll(&mut events).unwrap();
        rounds += 1;
        assert!(rounds < 100_000, "stuck");
    }
    assert!(sender.is_flushed());
    assert_eq!(source.bytes, target.bytes);
}

#[test]
fn more_messages_than_a_channel_holds() {
    for len in [8, 500] {
        let lens = vec![len; 1000];
        exchange(&lens, &in_order(1000), &in_order(1000), usize::MAX);
        exchange(&lens, &shuffled(1000, 3), &in_order(1000), 7);
    }
}

/// A sender that has waited for long announces its messages only as far as it has credits. So it is flushed even if
/// the receiver no longer polls.
#[test]
fn what_is_said_of_waiting_messages_waits_for_nobody() {
    let (n, len) = (300, 4000);
    let ([mut sender, mut receiver], [mut source, mut target]) = pair_with(n * len);
    let mut events = Vec::new();
    (0..n).for_each(|at| send_to_1(&mut sender, at, source.region(len)));
    // After their first contact the receiver stops polling for a while.
    for _ in 0..4 {
        sender.poll(&mut events).unwrap();
        receiver.poll(&mut events).unwrap();
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        sender.poll(&mut events).unwrap();
    }
    assert!(events.is_empty() && sender.is_flushed());
    for task in 0..n {
        let region = target.region(len);
        loop {
            // SAFETY: as above.
            let posted = unsafe {
                receiver.post_recv(
                    0,
                    RecvPost {
                        slot: slot(task),
                        tag: tag(task),
                        region,
                        arrival: Arrival::InRegion,
                    },
                )
            };
            if posted.unwrap() == Posted::Accepted {
                break;
            }
            sender.poll(&mut events).unwrap();
            receiver.poll(&mut events).unwrap();
        }
    }
    while events.len() < 2 * n {
        sender.poll(&mut events).unwrap();
        receiver.poll(&mut events).unwrap();
    }
    assert!(target.bytes.iter().all(|&byte| byte == 1));
}

/// Messages in descriptors, eager messages, announcements and credits of one flush are posted by one call.
#[test]
fn what_is_posted_in_one_drive_goes_with_one_call() {
    let [mut sender, mut receiver] = pair();
    let mut source = Memory::new(&mut sender, 40_000, 1);
    let mut target = Memory::new(&mut receiver, 40_000, 2);
    let mut events = Vec::new();
    let mut before = [(0, 0); 2];
    // The first round includes the hellos.
    for round in 0..3 {
        (source.used, target.used) = (0, 0);
        for (index, len) in [8, 500, 16, 3000, 4000].into_iter().enumerate() {
            let index = 10 * round + index;
            let (from, into) = (source.region(len), target.region(len));
            // SAFETY: the buffers outlive the endpoints and are not accessed until the events.
            unsafe { post_both(&mut sender, &mut receiver, index, from, into) };
        }
        if round > 0 {
            // Three messages from the sender, two announcements from the receiver.
            assert!(!sender.is_flushed() && !receiver.is_flushed());
            sender.flush().unwrap();
            receiver.flush().unwrap();
            let after = [sender.posted(), receiver.posted()];
            assert_eq!(
                after,
                [(before[0].0 + 3, before[0].1 + 1), (before[1].0 + 2, before[1].1 + 1)]
            );
        }
        while events.len() < 10 || !sender.is_flushed() || !receiver.is_flushed() {
            sender.poll(&mut events).unwrap();
            receiver.poll(&mut events).unwrap();
        }
        events.clear();
        assert_eq!(source.bytes[..7524], target.bytes[..7524]);
        before = [sender.posted(), receiver.posted()];
    }
}

/// An announcement, for which a peer waits, does not queue behind data, which occupy a TNI for long.
#[test]
fn an_announcement_goes_before_the_data_that_are_sent_after_it() {
    const LEN: usize = 5000;
    let [mut a, mut b] = pair();
    let (mut of_a, mut of_b) = (Memory::new(&mut a, 4 * LEN, 1), Memory::new(&mut b, 4 * LEN, 2));
    let mut events = Vec::new();
    // The first round includes the hellos.
    for round in 0..2 {
        let regions = [of_a.region(LEN), of_b.region(LEN), of_a.region(LEN), of_b.region(LEN)];
        let [from_a, into_b, into_a, from_b] = regions;
        let (there, back) = (tag(2 * round), tag(2 * round + 1));
        // SAFETY: for this and the following posts: the buffers outlive the endpoints and are not accessed until the
        // events.
        let waits = unsafe {
            b.post_recv(
                0,
                RecvPost { slot: slot(0), tag: there, region: into_b, arrival: Arrival::InRegion },
            )
            .unwrap()
        };
        for _ in 0..10 {
            b.poll(&mut events).unwrap();
            a.poll(&mut events).unwrap();
        }
        let before = a.posted();
        // SAFETY: as above.
        let posted = unsafe {
            [
                a.post_recv(
                    1,
                    RecvPost {
                        slot: slot(1),
                        tag: back,
                        region: into_a,
                        arrival: Arrival::InRegion,
                    },
                )
                .unwrap(),
                a.post_send(1, SendPost { slot: slot(2), tag: there, region: from_a }).unwrap(),
            ]
        };
        if round > 0 {
            assert_eq!(a.posted(), (before.0 + 1, before.1 + 1));
        }
        // SAFETY: as above.
        let last = unsafe {
            b.post_send(0, SendPost { slot: slot(3), tag: back, region: from_b }).unwrap()
        };
        assert_eq!(
            (waits, posted, last),
            (Posted::Accepted, [Posted::Accepted; 2], Posted::Accepted)
        );
        while events.len() < 4 || !a.is_flushed() || !b.is_flushed() {
            a.poll(&mut events).unwrap();
            b.poll(&mut events).unwrap();
        }
        events.clear();
    }
    assert!(of_a.bytes[3 * LEN..].iter().all(|&byte| byte == 2));
    assert!(of_b.bytes[2 * LEN..3 * LEN].iter().all(|&byte| byte == 1));
}

/// 300 lengths, each from a randomly chosen range.
pub(crate) fn mixed_lengths(rng: &mut SmallRng, ranges: &[Range<usize>]) -> Vec<usize> {
    let of_any = |_| {
        let any = rng.random_range(0..ranges.len());
        rng.random_range(ranges[any].clone())
    };
    (0..300).map(of_any).collect()
}

#[test]
fn mixed_lengths_in_random_order() {
    for seed in 0..20 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let lens = mixed_lengths(&mut rng, &[0..21, 21..2049, 2049..5000, 8..9]);
        let (recv, send) = (shuffled(300, seed + 50), shuffled(300, seed + 90));
        exchange(&lens, &recv, &send, rng.random_range(1..40));
    }
}

#[test]
fn a_put_is_cut_where_it_is_too_long() {
    exchange(&[40_000_001, 16_777_216], &[0, 1], &[1, 0], 1);
}

#[test]
fn a_rank_may_send_to_itself() {
    let [mut endpoint, _other] = pair();
    let mut memory = Memory::new(&mut endpoint, 20_000, 5);
    for (index, len) in [0, 8, 1000, 9000].into_iter().enumerate() {
        let (source, target) = (memory.region(len), memory.region(len));
        if len > 0 {
            // SAFETY: within the buffer.
            unsafe { source.ptr.write_bytes(index as u8 + 10, len) };
        }
        // SAFETY: the buffer outlives the endpoint and is not accessed until the events.
        let posted = unsafe {
            [
                endpoint
                    .post_send(0, SendPost { slot: slot(0), tag: tag(index), region: source })
                    .unwrap(),
                endpoint
                    .post_recv(
                        0,
                        RecvPost {
                            slot: slot(1),
                            tag: tag(index),
                            region: target,
                            arrival: Arrival::InRegion,
                        },
                    )
                    .unwrap(),
            ]
        };
        assert_eq!(posted, [Posted::Accepted; 2]);
        let mut events = Vec::new();
        let mut rounds = 0;
        while events.len() < 2 {
            endpoint.poll(&mut events).unwrap();
            rounds += 1;
            assert!(rounds < 1000, "stuck");
        }
        assert!(
            events.contains(&Event::Sent(slot(0))) && events.contains(&Event::Received(slot(1)))
        );
        // SAFETY: the bytes are within the buffer, and nothing writes to them now.
        let got = unsafe { std::slice::from_raw_parts(target.ptr, len) };
        assert!(got.iter().all(|&byte| byte == index as u8 + 10));
        memory.used = 0;
    }
}

#[test]
fn unknown_keys_are_refused() {
    let [mut endpoint, _other] = pair();
    let error: WireError = endpoint.release(12345).unwrap_err();
    assert_eq!(error.call, "utofu_dereg_mem");
}

#[test]
fn a_fence_lasts_until_everything_has_arrived() {
    const WIRE: Duration = Duration::from_millis(20);
    let [mut sender, mut receiver] =
        pair_on(Model { put_ns: WIRE.as_nanos() as u64, ..Model::default() });
    // No rank has written anything yet.
    assert!(sender.fence().unwrap() && receiver.fence().unwrap());
    let mut source = Memory::new(&mut sender, 30_000, 7);
    let mut target = Memory::new(&mut receiver, 30_000, 0);
    let mut events = Vec::new();
    for (index, len) in [8, 1000, 9000].into_iter().enumerate() {
        let (from, into) = (source.region(len), target.region(len));
        // SAFETY: the buffers outlive the endpoints and are not accessed until the events.
        unsafe { post_both(&mut sender, &mut receiver, index, from, into) };
        while events.len() < 2 {
            sender.poll(&mut events).unwrap();
            receiver.poll(&mut events).unwrap();
        }
        events.clear();
        // By now each rank has written to the other: data, hellos, announcements. Messages before and after a fence
        // need nothing else.
        for endpoint in [&mut sender, &mut receiver] {
            let start = Instant::now();
            assert!(!endpoint.fence().unwrap(), "nothing can have come back yet");
            while !endpoint.fence().unwrap() {
                endpoint.poll(&mut events).unwrap();
            }
            assert!(start.elapsed() >= WIRE, "passed before the last put can have arrived");
            assert_eq!(events, []);
        }
    }
    assert_eq!(source.bytes[..10_008], target.bytes[..10_008]);
}
