//! Two ports over MPI's messages, without an engine: long messages use streams, and mismatches are reported.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hopbine::endpoint::mpi::{Comm, Library, MpiEndpoint};
use hopbine::endpoint::{
    Arrival, Endpoint, Event, Posted, RecvPost, SendPost, Slot, Tag, WireRegion,
};
use hopbine::mpi::ffi;

use super::own::{finalize, start};

const LONG: usize = 400_000;
/// More short messages than a port times to learn up to which length it copies messages.
const FIRST: u32 = 40;
const NOBODYS: u8 = 0xee;
const SLOT: Slot = Slot { run: 0, task: 0 };

/// MPI tags from here on may be those of streams; a few numbered messages in flight have lower ones.
const STREAMS: c_int = 1 << 23;

/// Long messages that were sent with a header so far.
static N_WITH_HEADER: AtomicU32 = AtomicU32::new(0);

/// Counts the calls and then calls MPI's function. Handles are passed as words, of which MPI uses the bytes that it
/// needs.
///
/// # Safety
/// As for MPI's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Issend(
    data: *const c_void,
    n: c_int,
    of: usize,
    to: c_int,
    mpi_tag: c_int,
    comm: usize,
    request: *mut c_void,
) -> c_int {
    type Issend = unsafe extern "C" fn(
        *const c_void,
        c_int,
        usize,
        c_int,
        c_int,
        usize,
        *mut c_void,
    ) -> c_int;
    static NEXT: OnceLock<Issend> = OnceLock::new();
    // SAFETY: MPI's function of this name has this type.
    let next = NEXT.get_or_init(|| unsafe {
        let found = libc::dlsym(libc::RTLD_NEXT, c"PMPI_Issend".as_ptr());
        assert!(!found.is_null());
        std::mem::transmute::<*mut c_void, Issend>(found)
    });
    N_WITH_HEADER.fetch_add(u32::from(mpi_tag < STREAMS), Ordering::Relaxed);
    // SAFETY: by this function's contract.
    unsafe { next(data, n, of, to, mpi_tag, comm, request) }
}

struct Port {
    endpoint: MpiEndpoint,
    comm: ffi::MPI_Comm,
    rank: u32,
    events: Vec<Event>,
}

/// A message from its sender's or its receiver's point of view.
#[derive(Clone, Copy)]
struct Side {
    tag: Tag,
    len: usize,
}

fn tag(operation: u32) -> Tag {
    Tag { context: 3, operation, message: 0, call: 0x0102 }
}

/// The first bytes of every message. They are made once, and compared as a whole: this package is not optimised, and
/// a loop over bytes takes longer than a message.
fn pattern(len: usize) -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    &PATTERN.get_or_init(|| (0..2 * LONG).map(|at| (at % 251) as u8).collect())[..len]
}

fn region(bytes: &mut [u8]) -> WireRegion {
    WireRegion { ptr: bytes.as_mut_ptr(), len: bytes.len(), key: 0 }
}

impl Port {
    fn new() -> Self {
        let mut comm = ffi::comm_null();
        // SAFETY: both ranks call it, between init and finalize; the communicator lives until the end.
        let (endpoint, comm) = unsafe {
            assert_eq!(ffi::PMPI_Comm_split(ffi::comm_world(), 0, 0, &mut comm), 0);
            assert_eq!(ffi::PMPI_Comm_set_errhandler(comm, ffi::errors_return()), 0);
            (MpiEndpoint::new(Arc::new(Library::get().unwrap()), Comm(comm)).unwrap(), comm)
        };
        let mut rank = 0;
        // SAFETY: a valid address for the result.
        unsafe { ffi::PMPI_Comm_rank(ffi::comm_world(), &mut rank) };
        Port { endpoint, comm, rank: rank as u32, events: Vec::new() }
    }

    /// Posts a send to the other rank, or a receive, as slot `task`; it completes at once if it can.
    fn post(&mut self, task: u32, is_sender: bool, tag: Tag, bytes: &mut [u8]) {
        let (slot, peer) = (Slot { task, ..SLOT }, 1 - self.rank);
        let posted = loop {
            // SAFETY: callers wait for the completion before they access the bytes again.
            let posted = unsafe {
                if is_sender {
                    self.endpoint.post_send(peer, SendPost { slot, tag, region: region(bytes) })
                } else {
                    let way = Arrival::InRegion;
                    self.endpoint.post_recv(
                        peer,
                        RecvPost { slot, tag, region: region(bytes), arrival: way },
                    )
                }
            };
            match posted.unwrap() {
                Posted::Later => self.endpoint.poll(&mut self.events).unwrap(),
                posted => break posted,
            }
        };
        self.endpoint.flush().unwrap();
        if posted == Posted::Done {
            self.events.push(if is_sender { Event::Sent(slot) } else { Event::Received(slot) });
        }
    }

    /// Returns the next `n` events.
    fn wait(&mut self, n: usize) -> Vec<Event> {
        let start = Instant::now();
        while self.events.len() < n {
            self.endpoint.poll(&mut self.events).unwrap();
            std::thread::yield_now();
            assert!(start.elapsed() < Duration::from_secs(60), "rank {} waits", self.rank);
        }
        assert_eq!(self.events.len(), n);
        std::mem::take(&mut self.events)
    }

    /// Rank 0 sends a message and rank 1 receives it. With `late` the message arrives before its receive is posted.
    /// Returns the received bytes, if the message arrived whole. The bytes after the receive buffer keep their
    /// values.
    fn exchange(&mut self, sent: Side, wanted: Side, late: bool) -> Option<Vec<u8>> {
        let is_sender = self.rank == 0;
        let Side { tag, len } = if is_sender { sent } else { wanted };
        let mut bytes = vec![NOBODYS; len + 64];
        if is_sender {
            bytes[..len].copy_from_slice(pattern(len));
        }
        if late != is_sender {
            self.sleep();
        }
        self.post(9, is_sender, tag, &mut bytes[..len]);
        let events = self.wait(1);
        assert!(bytes[len..].iter().all(|&byte| byte == NOBODYS));
        self.meet();
        match events[0] {
            Event::Received(_) => Some(bytes[..len].to_vec()),
            Event::Sent(_) if is_sender => None,
            Event::Differs(_, peer) if !is_sender && peer == 0 => None,
            event => panic!("rank {}: {event:?}", self.rank),
        }
    }

    /// Polls for 3 ms.
    fn sleep(&mut self) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(3) {
            self.endpoint.poll(&mut self.events).unwrap();
        }
    }

    /// Waits until both ranks have called it and all work for the other rank is done.
    fn meet(&mut self) {
        let mut request = ffi::request_null();
        let mut is_done = 0;
        // SAFETY: both ranks call it; the request is complete at the end.
        unsafe {
            assert_eq!(ffi::PMPI_Ibarrier(ffi::comm_world(), &mut request), 0);
            while is_done == 0 || !self.endpoint.is_flushed() {
                self.endpoint.poll(&mut self.events).unwrap();
                let status = std::ptr::null_mut();
                assert_eq!(ffi::PMPI_Test(&mut request, &mut is_done, status), 0);
                std::thread::yield_now();
            }
        }
        assert_eq!(self.events, []);
    }

    /// Both messages arrive whole, in whatever order they are posted.
    fn crossing(&mut self, tags: [Tag; 2]) {
        let is_sender = self.rank == 0;
        let mut bytes = tags.map(|tag| {
            let byte = if is_sender { (tag.operation + tag.message) as u8 } else { NOBODYS };
            vec![byte; LONG]
        });
        let order = if is_sender { [0, 1] } else { [1, 0] };
        for at in order {
            self.post(at as u32, is_sender, tags[at], &mut bytes[at]);
        }
        self.wait(2);
        for (tag, bytes) in tags.iter().zip(&bytes) {
            let byte = (tag.operation + tag.message) as u8;
            assert!(*bytes == [byte; LONG], "{tag:?}");
        }
        self.meet();
    }
}

pub fn run() {
    start("funneled");
    let mut port = Port::new();
    for operation in 0..FIRST {
        port.exchange(
            Side { tag: tag(operation), len: 8 },
            Side { tag: tag(operation), len: 8 },
            false,
        );
    }
    let mut operation = FIRST;
    let mut next = || {
        operation += 1;
        tag(operation)
    };
    // More messages than a stream's tags have numbers for operations.
    for at in 0..3 * Tag::WINDOW {
        let side = Side { tag: next(), len: LONG };
        let found = port.exchange(side, side, at % 2 == 0 && at < 20);
        let is_whole = |bytes: Vec<u8>| bytes == pattern(LONG);
        assert_eq!(found.map(is_whole), (port.rank == 1).then_some(true));
    }
    // In any order: messages of one operation, of two operations, of two communicators; messages that no stream
    // carries.
    let one = next();
    port.crossing([one, Tag { message: 1, ..one }]);
    port.crossing([next(), next()]);
    let (one, other) = (next(), Tag { context: 4, ..next() });
    port.crossing([one, other]);
    port.crossing([next(), Tag { message: 1 << 5, ..next() }]);
    port.crossing([next(), Tag { message: Tag::LATE, ..next() }]);
    // A mismatch is reported and disturbs no other message: a different length, or another call with the same or a
    // different length.
    let another = |tag: Tag| Tag { call: 0x0103, ..tag };
    for late in [false, true] {
        for (sent, wanted) in [
            (LONG, 2 * LONG),
            (2 * LONG, LONG),
            (8, LONG),
            (LONG, 8),
            (100_000, LONG),
            (LONG, 100_000),
        ] {
            let one = next();
            let (sent, wanted) = (Side { tag: one, len: sent }, Side { tag: one, len: wanted });
            assert_eq!(port.exchange(sent, wanted, late), None);
            let one = next();
            let (sent, wanted) = (Side { tag: one, ..sent }, Side { tag: another(one), ..wanted });
            assert_eq!(port.exchange(sent, wanted, late), None);
        }
        let one = next();
        let (sent, wanted) = (Side { tag: one, len: LONG }, Side { tag: another(one), len: LONG });
        assert_eq!(port.exchange(sent, wanted, late), None);
        port.crossing([next(), next()]);
    }
    communicators_of_a_life(&mut port, operation);
    nobody_takes(&mut port);
    port.endpoint.end();
    finalize(port.rank, "streams");
}

/// A sequence of more communicators than there are streams: all use streams. Meanwhile receives of an older
/// communicator stay posted. Another communicator gets its stream, with messages that would have the same MPI tags.
fn communicators_of_a_life(port: &mut Port, mut operation: u32) {
    const COMMUNICATORS: u32 = 40;
    const MESSAGES: u32 = 12;
    let is_sender = port.rank == 0;
    let mut next = |context| {
        operation += 1;
        Tag { context, ..tag(operation) }
    };
    for _ in 0..2 {
        let side = Side { tag: next(99), len: LONG };
        port.exchange(side, side, false);
    }
    let tags: Vec<Tag> = (0..Tag::WINDOW).map(|_| next(99)).collect();
    let byte_of = |tag: &Tag| tag.operation as u8;
    let mut parked: Vec<_> =
        tags.iter().map(|tag| vec![if is_sender { byte_of(tag) } else { NOBODYS }; LONG]).collect();
    if !is_sender {
        for (at, (tag, bytes)) in (100..).zip(tags.iter().zip(&mut parked)) {
            port.post(at, false, *tag, bytes);
        }
    }
    let before = N_WITH_HEADER.load(Ordering::Relaxed);
    for context in 0..COMMUNICATORS {
        for at in 0..MESSAGES {
            let side = Side { tag: next(u64::from(200 + context)), len: LONG };
            let late = at % 4 == 1 && context % 5 == 0;
            let found = port.exchange(side, side, late);
            let is_whole = |bytes: Vec<u8>| bytes == pattern(LONG);
            assert_eq!(found.map(is_whole), (!is_sender).then_some(true));
        }
    }
    let n_with_header = N_WITH_HEADER.load(Ordering::Relaxed) - before;
    assert!(n_with_header <= 3 * COMMUNICATORS, "{n_with_header} long messages with a header");
    assert!(
        parked.iter().zip(&tags).all(|(bytes, tag)| {
            *bytes == [if is_sender { byte_of(tag) } else { NOBODYS }; LONG]
        })
    );
    if is_sender {
        for (at, (tag, bytes)) in (100..).zip(tags.iter().zip(&mut parked)) {
            port.post(at, true, *tag, bytes);
        }
    }
    port.wait(tags.len());
    for (tag, bytes) in tags.iter().zip(&parked) {
        assert!(*bytes == [byte_of(tag); LONG], "{tag:?}");
    }
    port.meet();
}

/// Both ranks give up while a message is in flight: the receiver still receives it, so that MPI no longer reads the
/// sender's memory.
fn nobody_takes(port: &mut Port) {
    let barrier = || {
        // SAFETY: both ranks call it.
        assert_eq!(unsafe { ffi::PMPI_Barrier(ffi::comm_world()) }, 0);
    };
    let mut bytes = vec![1; LONG];
    if port.rank == 0 {
        port.post(0, true, Tag { context: 77, ..tag(1) }, &mut bytes);
    }
    barrier();
    port.endpoint.abandon();
    barrier();
    for _ in 0..1000 {
        let mut is_left = 0;
        // SAFETY: the communicator still exists; a valid address for the result.
        let code = unsafe {
            let (any, tag) = (ffi::any_source(), ffi::any_tag());
            ffi::PMPI_Iprobe(any, tag, port.comm, &mut is_left, std::ptr::null_mut())
        };
        assert_eq!((code, is_left), (0, 0), "rank {} has left a message", port.rank);
        std::thread::yield_now();
    }
}
