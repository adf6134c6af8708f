//! Messages whose length or call differs from that of their receives, on each wire of which one thread can drive both
//! ends. Both sides complete, and later messages arrive.

use std::time::{Duration, Instant};

use hopbine::WireError;
use hopbine::endpoint::{
    Access, Arrival, Endpoint, Event, MemoryRange, Owner, Posted, RecvPost, SendPost, Slot, Tag,
    WireRegion,
};
use utofu_emu::Model;

const TAG: Tag = Tag { context: 1 << 33, operation: 3, message: 0, call: 0 };
const SENT: Slot = Slot { run: 7, task: 1 };
const RECEIVED: Slot = Slot { run: 7, task: 2 };
/// Byte in a buffer that has received nothing.
const NOTHING: u8 = 0xee;

/// The operation that is posted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Send,
    Receive,
    /// The send, long before the receive.
    EarlySend,
    /// The receive, long before the send.
    EarlyReceive,
}

const ORDERS: [First; 4] = [First::Send, First::Receive, First::EarlySend, First::EarlyReceive];

struct Port {
    endpoint: Box<dyn Endpoint>,
    bytes: Box<[u8]>,
    key: u64,
    events: Vec<Event>,
}

impl Port {
    fn new(mut endpoint: Box<dyn Endpoint>, len: usize, byte: u8) -> Self {
        let mut bytes = vec![byte; len].into_boxed_slice();
        let range = MemoryRange { ptr: bytes.as_mut_ptr(), len, access: Access::Write };
        let key = endpoint.registry().map_or(0, |registry| {
            // SAFETY: the bytes stay at their address until the port is dropped.
            unsafe { registry.register(range, Owner::Library) }.unwrap()
        });
        Port { endpoint, bytes, key, events: Vec::new() }
    }

    fn region(&mut self, len: usize) -> WireRegion {
        WireRegion { ptr: self.bytes.as_mut_ptr(), len, key: self.key }
    }

    fn send(&mut self, tag: Tag, len: usize) -> Result<(), WireError> {
        let region = self.region(len);
        // SAFETY: the bytes live as long as the port, and are not accessed until the events.
        let posted = unsafe { self.endpoint.post_send(1, SendPost { slot: SENT, tag, region }) }?;
        self.events.extend((posted == Posted::Done).then_some(Event::Sent(SENT)));
        Ok(())
    }

    fn receive(&mut self, tag: Tag, len: usize, arrival: Arrival) -> Result<(), WireError> {
        let recv = RecvPost { slot: RECEIVED, tag, region: self.region(len), arrival };
        // SAFETY: as above.
        let posted = unsafe { self.endpoint.post_recv(0, recv) }?;
        self.events.extend((posted == Posted::Done).then_some(Event::Received(RECEIVED)));
        Ok(())
    }

    fn poll(&mut self) -> Result<(), WireError> {
        self.endpoint.poll(&mut self.events)
    }
}

/// A sender and a receiver.
struct Pair([Port; 2]);

impl Pair {
    fn new<E: Endpoint + 'static>(endpoints: [E; 2], len: usize) -> Self {
        let [sender, receiver] = endpoints.map(|endpoint| Box::new(endpoint) as Box<dyn Endpoint>);
        Pair([Port::new(sender, len, 1), Port::new(receiver, len, NOTHING)])
    }

    fn poll(&mut self) -> Result<(), WireError> {
        self.0.iter_mut().try_for_each(Port::poll)
    }

    /// Sends a message of `sent` bytes as call 0 and posts a receive of `len` bytes as call `call`. Returns the event
    /// of each side.
    fn exchange(
        &mut self,
        (sent, len): (usize, usize),
        tag: Tag,
        call: u16,
        (first, arrival): (First, Arrival),
    ) -> Result<[Event; 2], WireError> {
        let sends_first = matches!(first, First::Send | First::EarlySend);
        for posts in [sends_first, !sends_first] {
            let [sender, receiver] = &mut self.0;
            match posts {
                true => sender.send(tag, sent)?,
                false => receiver.receive(Tag { call, ..tag }, len, arrival)?,
            }
            let is_early = matches!(first, First::EarlySend | First::EarlyReceive);
            let start = Instant::now();
            // Longer than a sender waits before it announces a long message.
            while is_early && posts == sends_first && start.elapsed() < Duration::from_millis(40) {
                self.poll()?;
                std::thread::yield_now();
            }
        }
        let start = Instant::now();
        while self.0.iter().any(|port| port.events.is_empty() || !port.endpoint.is_flushed()) {
            self.poll()?;
            assert!(start.elapsed() < Duration::from_secs(60), "never done");
            std::thread::yield_now();
        }
        Ok([0, 1].map(|at| {
            let events = std::mem::take(&mut self.0[at].events);
            assert_eq!(events.len(), 1, "{events:?}");
            events[0]
        }))
    }
}

/// Tests every way in which a wire sends messages with every way in which it receives them.
fn all_differ(open: impl Fn(usize) -> Pair, lens: &[usize], orders: &[First]) {
    let longest = lens.iter().max().unwrap() + 8;
    let mut pair = open(longest);
    let mut operation = 0;
    for &sent in lens {
        let others = lens.iter().map(|&len| (if len == sent { len + 8 } else { len }, 0));
        for (len, call) in others.chain([(sent, 1)]) {
            for (&first, arrival) in orders
                .iter()
                .flat_map(|first| [(first, Arrival::InRegion), (first, Arrival::Anywhere)])
            {
                let mut next = || {
                    operation += 1;
                    Tag { operation, ..TAG }
                };
                let what = format!("{sent} bytes for {len}, call {call}, {first:?}");
                let order = (first, arrival);
                let events = pair.exchange((sent, len), next(), call, order).expect(&what);
                assert_eq!(events[1], Event::Differs(RECEIVED, 0), "{what}");
                let is_done = [Event::Sent(SENT), Event::Differs(SENT, 1)].contains(&events[0]);
                assert!(is_done, "{what}: {events:?}");
                assert!(pair.0[1].bytes.iter().all(|&byte| byte == NOTHING), "{what}");
                // The mismatch has left no state behind.
                let order = (First::Send, Arrival::InRegion);
                let events = pair.exchange((sent, sent), next(), 0, order).expect(&what);
                assert_eq!(events, [Event::Sent(SENT), Event::Received(RECEIVED)], "{what}");
                assert!(pair.0[1].bytes[..sent].iter().all(|&byte| byte == 1), "{what}");
                pair.0[1].bytes.fill(NOTHING);
            }
        }
    }
}

/// Tests calls whose signatures differ in the upper half. Their messages need not match; then the exchange fails, and
/// the error names a rank.
fn another_call(open: impl Fn(usize) -> Pair, lens: &[usize]) {
    for &len in lens {
        for first in ORDERS {
            let mut pair = open(len);
            let order = (first, Arrival::InRegion);
            let error = pair.exchange((len, len), TAG, 0x100, order).expect_err("they differ");
            // Either side may detect the mismatch.
            let by = 1 - error.peer.expect("a rank is named");
            let observer = pair.0[by as usize].endpoint.observer().unwrap();
            assert_eq!(observer.received_news().map(|blame| blame.rank), error.peer, "{error}");
        }
    }
}

const ON_A_HOST: [usize; 4] = [8, 1000, 20_000, 200_000];
const ON_UTOFU: [usize; 5] = [0, 8, 1000, 5000, 200_000];

fn on_a_host(len: usize) -> Pair {
    Pair::new(super::shm::pair(true), len)
}

fn on_utofu(len: usize) -> Pair {
    Pair::new(super::endpoint::pair(), len)
}

#[test]
fn both_sides_are_done_on_a_host() {
    all_differ(on_a_host, &ON_A_HOST, &ORDERS[..2]);
    another_call(on_a_host, &ON_A_HOST);
}

#[test]
fn both_sides_are_done_over_utofu() {
    all_differ(on_utofu, &ON_UTOFU, &ORDERS);
    another_call(on_utofu, &ON_UTOFU[1..]);
}

/// On a slow wire the two sides' reports of the mismatch cross.
#[test]
fn both_sides_are_done_over_utofu_where_it_takes_time() {
    let open = |len| {
        let model = Model { put_ns: 2000, jitter_ns: 200_000, ..Model::default() };
        Pair::new(super::endpoint::pair_on(model), len)
    };
    all_differ(open, &ON_UTOFU, &ORDERS[..2]);
}
