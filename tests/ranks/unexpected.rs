//! Unexpected messages, on bare ports and in collectives. They occupy a bounded amount of memory, and none of them
//! delays a message whose receive is posted.

use std::time::Duration;

use crate::common::ahead::{ahead_in_another, far_ahead};
use crate::common::calls::config;
use crate::common::mixed::{Mixed, latency};
use crate::{endpoint, shm};

use hopbine::endpoint::{
    Arrival, Endpoint, Event, Posted, RecvPost, SendPost, Slot, Tag, UnexpectedStats, WireRegion,
};
use hopbine::{Drive, EmulationConfig, Wire, emulate};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use utofu_emu::Model;

fn unexpected(port: &mut impl Endpoint) -> UnexpectedStats {
    port.matching().unwrap().unexpected()
}

/// Ports of some ranks and their events so far.
struct Ports<E> {
    ports: Vec<E>,
    /// By rank, whether it polls.
    polls: Vec<bool>,
    events: Vec<Event>,
    /// Tasks of completed sends and of completed receives, by rank.
    sent: Vec<Vec<u32>>,
    received: Vec<Vec<u32>>,
}

impl<E: Endpoint> Ports<E> {
    fn new(mut ports: Vec<E>, limit: usize) -> Self {
        ports.iter_mut().for_each(|port| port.matching().unwrap().limit_unexpected(limit));
        let none = vec![Vec::new(); ports.len()];
        let polls = vec![true; ports.len()];
        Ports { polls, events: Vec::new(), sent: none.clone(), received: none, ports }
    }

    fn poll(&mut self) {
        for (rank, port) in self.ports.iter_mut().enumerate().filter(|(rank, _)| self.polls[*rank])
        {
            port.poll(&mut self.events).unwrap();
            for event in self.events.drain(..) {
                match event {
                    Event::Sent(slot) => self.sent[rank].push(slot.task),
                    Event::Received(slot) => self.received[rank].push(slot.task),
                    other => panic!("{other:?}"),
                }
            }
            let bytes = unexpected(port);
            assert!(bytes.most_bytes <= bytes.bound_bytes, "{bytes:?}");
        }
    }

    /// Posts a send; returns whether the wire has accepted it.
    fn send(&mut self, (from, to): (usize, usize), task: u32, tag: Tag, data: &[u8]) -> bool {
        let region = WireRegion { ptr: data.as_ptr().cast_mut(), len: data.len(), key: 0 };
        // SAFETY: the tests keep the data unchanged until the ports are dropped.
        let posted = unsafe {
            self.ports[from]
                .post_send(to as u32, SendPost { slot: Slot { run: 0, task }, tag, region })
                .unwrap()
        };
        if posted == Posted::Done {
            self.sent[from].push(task);
        }
        posted != Posted::Later
    }

    fn post_recv(&mut self, (from, to): (usize, usize), task: u32, tag: Tag, data: &mut [u8]) {
        let region = WireRegion { ptr: data.as_mut_ptr(), len: data.len(), key: 0 };
        // SAFETY: as above.
        let posted = unsafe {
            let slot = Slot { run: 0, task };
            self.ports[to]
                .post_recv(from as u32, RecvPost { slot, tag, region, arrival: Arrival::InRegion })
                .unwrap()
        };
        assert_ne!(posted, Posted::Later);
        if posted == Posted::Done {
            self.received[to].push(task);
        }
    }

    /// Posts a receive and polls until its message has arrived.
    fn recv(&mut self, (from, to): (usize, usize), task: u32, tag: Tag, data: &mut [u8]) {
        self.post_recv((from, to), task, tag, data);
        for _ in 0..200_000 {
            if self.received[to].last() == Some(&task) {
                return;
            }
            self.poll();
        }
        panic!("{tag:?} of rank {from} is stuck: {:?}", unexpected(&mut self.ports[to]));
    }
}

/// One rank is 100,000 operations ahead of another, like the root of a broadcast. It sends no more than the receiver
/// has room for, and the rest as messages are received.
fn port_far_ahead<E: Endpoint>(ports: Vec<E>, len: usize) {
    const N: u32 = 100_000;
    const LIMIT: usize = 64 * 1024;
    let mut ports = Ports::new(ports, LIMIT);
    let tag = |operation| Tag { context: 1, operation, message: 0, call: 0 };
    let data: Vec<Vec<u8>> = (0..N).map(|index| index.to_le_bytes().repeat(len / 4)).collect();
    let mut posted = 0;
    // At most this many operations of a communicator are in progress at a time.
    let mut advance = |ports: &mut Ports<E>| {
        while posted < N && posted - (ports.sent[0].len() as u32) < Tag::WINDOW {
            if !ports.send((0, 1), posted, tag(posted), &data[posted as usize]) {
                break;
            }
            posted += 1;
        }
        ports.poll();
    };
    for _ in 0..20_000 {
        advance(&mut ports);
    }
    let ahead = ports.sent[0].len();
    assert!((8..N as usize / 2).contains(&ahead), "{ahead} sent");
    assert!(ports.ports[0].is_flushed(), "others would wait");
    for index in 0..N {
        let mut into = vec![0; data[index as usize].len()];
        ports.recv((0, 1), index, tag(index), &mut into);
        assert_eq!(into, data[index as usize]);
        advance(&mut ports);
    }
    for _ in 0..100 {
        ports.poll();
    }
    assert_eq!(ports.sent[0].len(), N as usize);
    let bytes = unexpected(&mut ports.ports[1]);
    assert!(
        bytes.kept_bytes == 0 && bytes.most_bytes >= LIMIT / 2 && bytes.most_bytes <= LIMIT,
        "{bytes:?}"
    );
}

#[test]
fn a_rank_may_be_far_ahead_over_utofu() {
    port_far_ahead(endpoint::group(2, Model::default()), 8);
}

#[test]
fn a_rank_may_be_far_ahead_in_memory() {
    for may_read in [true, false] {
        port_far_ahead(shm::group(2, may_read), 8);
    }
}

/// A rank requests a long message in pieces, and then no longer polls. The sender's other messages arrive, also those
/// to a rank that has early bytes without a receive, and its other operations end.
#[test]
fn a_long_message_to_a_rank_that_does_not_poll_delays_no_other_in_memory() {
    const LONG: usize = 4 << 20;
    let mut ports = Ports::new(shm::group(3, false), 1 << 20);
    let tag = |operation| Tag { context: 1, operation, message: 0, call: 0 };
    let data: Vec<u8> = (0..LONG).map(|at| (at / 251) as u8).collect();
    let mut into = vec![vec![0; LONG]; 4];
    // From now on messages to rank 1 have early bytes; those of the next one occupy slots.
    ports.send((0, 1), 0, tag(0), &data);
    ports.recv((0, 1), 0, tag(0), &mut into[0]);
    ports.send((0, 1), 1, tag(1), &data[..1 << 20]);
    ports.send((0, 2), 2, tag(2), &data);
    ports.poll();
    ports.post_recv((0, 2), 2, tag(2), &mut into[2]);
    ports.polls[2] = false;
    (0..100).for_each(|_| ports.poll());
    assert!(!ports.sent[0].contains(&2), "it fits into the slots");
    assert!(ports.ports[0].is_flushed(), "others would wait");
    ports.send((0, 1), 3, tag(3), &data);
    ports.recv((0, 1), 3, tag(3), &mut into[3]);
    ports.polls[2] = true;
    ports.recv((0, 1), 1, tag(1), &mut into[1][..1 << 20]);
    (0..1000).for_each(|_| ports.poll());
    assert_eq!(ports.received[2], [2]);
    for (into, len) in into.iter().zip([LONG, 1 << 20, LONG, LONG]) {
        assert!(into[..len] == data[..len]);
    }
}

/// Ranks send each other messages of many lengths and communicators, all at once. Each message is received
/// separately, in another order, and must not wait for messages sent before it.
fn in_any_order<E: Endpoint>(ports: Vec<E>, limit: usize, n_messages: u32, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let n_ranks = ports.len();
    let mut ports = Ports::new(ports, limit);
    let message = |index: u32, rng: &mut SmallRng| {
        let (from, to) = (rng.random_range(0..n_ranks), rng.random_range(0..n_ranks));
        let len = [0, 1, 8, 16, 17, 100, 2000, 2048][rng.random_range(0..8)];
        let data: Vec<u8> = (0..len).map(|_| rng.random()).collect();
        let (context, operation) = (u64::from(index % 7), index / 7);
        ((from, to), index, Tag { context, operation, message: index, call: 5 }, data)
    };
    let messages: Vec<_> = (0..n_messages).map(|index| message(index, &mut rng)).collect();
    let mut left = messages.clone();
    for (between, task, tag, data) in &messages {
        let mut rounds = 0;
        while !ports.send(*between, *task, *tag, data) {
            ports.poll();
            rounds += 1;
            assert!(rounds < 100_000, "no room for a message");
        }
        if rng.random_bool(0.2) {
            ports.poll();
        }
    }
    left.shuffle(&mut rng);
    while let Some((between, task, tag, data)) = left.pop() {
        let mut into = vec![0; data.len()];
        ports.recv(between, task, tag, &mut into);
        assert_eq!(into, data, "{tag:?}");
    }
    for _ in 0..1000 {
        ports.poll();
    }
    assert_eq!(ports.sent.iter().map(Vec::len).sum::<usize>(), n_messages as usize);
    for port in &mut ports.ports {
        assert!(unexpected(port).kept_bytes == 0 && port.is_flushed());
    }
}

const LIMITS: [usize; 4] = [0, 300, 10_000, 1 << 20];

#[test]
fn messages_are_received_in_any_order_over_utofu() {
    for (seed, limit) in (0..).zip(LIMITS) {
        for wire in
            [Model::default(), Model { put_ns: 2000, jitter_ns: 20_000, ..Model::default() }]
        {
            in_any_order(endpoint::group(2, wire), limit, 700, seed);
            in_any_order(endpoint::group(5, wire), limit, 2000, seed);
        }
    }
    // So many peers that most have narrow channels.
    in_any_order(endpoint::group(60, Model::default()), 300, 5000, 9);
}

#[test]
fn messages_are_received_in_any_order_in_memory() {
    for (seed, limit) in (0..).zip(LIMITS) {
        for may_read in [true, false] {
            in_any_order(shm::group(2, may_read), limit, 700, seed);
            in_any_order(shm::group(5, may_read), limit, 2000, seed);
        }
    }
}

/// A torus of ranks whose ports store at most `unexpected_bytes` of unexpected messages.
fn keeping(sizes: &[u32], drive: Drive, wire: Wire, unexpected_bytes: usize) -> EmulationConfig {
    config(sizes, drive).with(|config| {
        config.wire = wire;
        config.unexpected_bytes = unexpected_bytes;
    })
}

const WIRES: [Wire; 2] = [Wire::Network, Wire::Memory];

#[test]
fn a_root_may_be_a_hundred_thousand_calls_ahead() {
    for wire in WIRES {
        emulate(&keeping(&[4], Drive::Inline, wire, 16 * 1024), |comm| {
            far_ahead(comm, 100_000);
        })
        .unwrap();
    }
}

#[test]
fn a_root_may_be_ahead_in_another_communicator() {
    for wire in WIRES {
        for drive in [Drive::Inline, Drive::Workers] {
            for limit in [1, 4096] {
                let config = keeping(&[5], drive, wire, limit);
                emulate(&config, |comm| ahead_in_another(comm, 300)).unwrap();
            }
        }
    }
}

/// Calls of all kinds by ranks out of step, with almost no room for unexpected messages.
#[test]
fn collectives_need_no_room_for_early_messages() {
    let pause = Duration::from_micros(500);
    for (seed, limit) in (50..).zip([1, 1, 1, 300]) {
        for wire in WIRES {
            let sizes: &[u32] = [&[2_u32, 2][..], &[5], &[3, 3], &[2, 3]][seed as usize % 4];
            let config = keeping(sizes, Drive::Inline, wire, limit)
                .with(|config| config.latency = latency(seed));
            let mixed = Mixed { calls: 1000, seed, longest_pause: pause, first: 0 };
            emulate(&config, |comm| {
                mixed.run(comm);
                let bytes = comm.unexpected();
                assert!(bytes.most_bytes <= bytes.bound_bytes, "{bytes:?}");
            })
            .unwrap();
        }
    }
    let config = keeping(&[2, 3], Drive::Workers, Wire::Network, 1);
    let mixed = Mixed { calls: 500, seed: 60, longest_pause: pause, first: 0 };
    emulate(&config, |comm| mixed.run(comm)).unwrap();
}
