//! Puts between two ranks against what the host can do at best, sample by sample in turn, so
//! that both see the same disturbances. The ranks may be threads or processes: all they need is
//! [`Shared`] memory to meet in.

use crate::common::{EndPoint, RMT, TCQ};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use utofu_sys::*;

/// The longest put of the interface.
const LONGEST: usize = (16 << 20) - 1;
/// Sizes of the bandwidth tests, and puts in each sample.
const TRANSFERS: [(usize, usize); 3] = [(64 << 10, 64), (1 << 20, 8), (LONGEST, 2)];
/// There-and-backs in each sample of the latency test.
const TRIPS: u64 = 500;
/// The buffer: what is sent from, what is put into, and a word for messages of 8 bytes.
const INBOX: u64 = 16 << 20;
const WORD: u64 = 32 << 20;
const BUFFER: usize = (32 << 20) + 4096;

/// A word in cache lines of its own (256 bytes on A64FX).
#[derive(Default)]
#[repr(C, align(256))]
struct Line(AtomicU64);

/// What one rank tells the other.
#[derive(Default)]
#[repr(C)]
struct Card {
    arrived: AtomicU64,
    id: AtomicU64,
    stadd: AtomicU64,
    buffer: AtomicU64,
    pid: AtomicU64,
}

/// Where two ranks meet; all zeros at first.
#[derive(Default)]
#[repr(C)]
pub struct Shared {
    cards: [Card; 2],
    flags: [Line; 2],
}

/// How bytes get to the other rank at best.
#[derive(Clone, Copy, PartialEq)]
pub enum Reach {
    /// By a copy within the address space.
    Copy,
    /// By the kernel: `process_vm_writev`.
    Kernel,
}

/// Medians in ns: of one put, and of its floor.
pub struct Row {
    pub bytes: usize,
    pub put: f64,
    pub floor: f64,
}

/// Waits: spins at first, then gives way, for the other rank may need this core.
fn until(mut done: impl FnMut() -> bool) {
    let mut tries = 0;
    while !done() {
        tries += 1;
        if tries < 2000 { spin_loop() } else { std::thread::yield_now() }
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// The byte that is `at` bytes into the verified message of a size.
fn pattern(at: usize, bytes: usize) -> u8 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) as u8 ^ bytes as u8
}

struct Side<'a> {
    ep: EndPoint,
    shared: &'a Shared,
    rank: usize,
    /// Start of the buffer, accessed through this pointer only.
    buffer: *mut u8,
    peer_id: u64,
    peer_stadd: u64,
    peer_buffer: u64,
    peer_pid: i32,
}

impl<'a> Side<'a> {
    fn open(rank: usize, shared: &'a Shared) -> Self {
        // Lives as long as the process: the other rank may be late.
        let memory = vec![1u64; BUFFER / 8].leak();
        let buffer: *mut u8 = memory.as_mut_ptr().cast();
        let ep = EndPoint::open(memory);
        let mine = &shared.cards[rank];
        mine.id.store(ep.id, Ordering::Relaxed);
        mine.stadd.store(ep.stadd, Ordering::Relaxed);
        mine.buffer.store(buffer as u64, Ordering::Relaxed);
        mine.pid.store(std::process::id().into(), Ordering::Relaxed);
        // Release pairs with the Acquire below: the card is filled in.
        mine.arrived.store(1, Ordering::Release);
        let peer = &shared.cards[1 - rank];
        until(|| peer.arrived.load(Ordering::Acquire) == 1);
        let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Side {
            ep,
            shared,
            rank,
            buffer,
            peer_id: get(&peer.id),
            peer_stadd: get(&peer.stadd),
            peer_buffer: get(&peer.buffer),
            peer_pid: get(&peer.pid) as i32,
        }
    }

    /// Tells the other rank a value.
    fn tell(&self, value: u64) {
        self.ep.piggyback8(self.peer_id, value, self.peer_stadd + WORD, value & 0xff, RMT);
    }

    /// Waits for the other rank's next notice; what it carried.
    fn hear(&self) -> u64 {
        let mut heard = 0;
        until(|| {
            let (rc, notice) = self.ep.poll_mrq();
            heard = notice.edata;
            assert!(rc == UTOFU_SUCCESS || rc == UTOFU_ERR_NOT_FOUND, "poll_mrq: {rc}");
            rc == UTOFU_SUCCESS
        });
        heard
    }

    /// Puts the first bytes to the other's inbox, and waits until the buffer may be changed.
    fn put(&self, bytes: usize) {
        let to = self.peer_stadd + INBOX;
        assert_eq!(self.ep.put(self.peer_id, self.ep.stadd, to, bytes, 1, TCQ | RMT), 0);
        until(|| match self.ep.poll_tcq() {
            Ok(_) => true,
            Err(rc) => {
                assert_eq!(rc, UTOFU_ERR_NOT_FOUND, "poll_tcq");
                false
            }
        });
    }

    /// The same bytes without the device.
    fn floor(&self, reach: Reach, bytes: usize) {
        let (from, to) = (self.buffer, (self.peer_buffer + INBOX) as *mut u8);
        match reach {
            Reach::Copy => {
                // SAFETY: both buffers are that long; the other rank does not touch its inbox
                // before it is told.
                unsafe { to.copy_from_nonoverlapping(black_box(from), black_box(bytes)) };
            }
            Reach::Kernel => {
                let mut done = 0;
                while done < bytes {
                    let part = |start: *mut u8| libc::iovec {
                        iov_base: start.wrapping_add(done).cast(),
                        iov_len: bytes - done,
                    };
                    let (local, remote) = (part(from), part(to));
                    // SAFETY: the local bytes are this rank's; the kernel checks the others.
                    let n =
                        unsafe { libc::process_vm_writev(self.peer_pid, &local, 1, &remote, 1, 0) };
                    assert!(n > 0, "process_vm_writev: {}", std::io::Error::last_os_error());
                    done += n as usize;
                }
            }
        }
    }

    /// A byte of this rank's inbox.
    fn inbox(&self, at: usize) -> u8 {
        // SAFETY: within the buffer; its writer has said that it is done.
        unsafe { self.buffer.add(INBOX as usize + at).read() }
    }

    /// Moves a pattern by the put and by the floor; the receiver looks at every byte of it.
    fn verify(&self, reach: Reach, bytes: usize) {
        for by_put in [true, false] {
            let salt = bytes + usize::from(by_put);
            if self.rank == 0 {
                for at in 0..bytes {
                    // SAFETY: within this rank's half that is sent from.
                    unsafe { self.buffer.add(at).write(pattern(at, salt)) };
                }
                if by_put {
                    self.put(bytes);
                } else {
                    self.floor(reach, bytes);
                    self.tell(1);
                }
                assert_eq!(self.hear(), 2, "the pattern of {bytes} bytes did not arrive");
            } else {
                assert_eq!(self.hear(), 1);
                let good = (0..bytes).all(|at| self.inbox(at) == pattern(at, salt));
                self.tell(if good { 2 } else { 3 });
            }
        }
    }

    /// ns for one way of a put of 8 bytes.
    fn trips(&self) -> f64 {
        let start = Instant::now();
        for trip in 0..TRIPS {
            if self.rank == 0 {
                self.tell(trip);
            }
            assert_eq!(self.hear(), trip & 0xff);
            if self.rank == 1 {
                self.tell(trip);
            }
        }
        start.elapsed().as_nanos() as f64 / (2 * TRIPS) as f64
    }

    /// ns for one way of a flag in shared memory. Flags only ever grow, from `base`.
    fn flag_trips(&self, base: u64) -> f64 {
        let [mine, theirs] = [self.rank, 1 - self.rank].map(|rank| &self.shared.flags[rank].0);
        // Release and Acquire pair with each other's: as a flag that announces data would.
        let start = Instant::now();
        for trip in base + 1..=base + TRIPS {
            if self.rank == 0 {
                mine.store(trip, Ordering::Release);
            }
            until(|| theirs.load(Ordering::Acquire) == trip);
            if self.rank == 1 {
                mine.store(trip, Ordering::Release);
            }
        }
        start.elapsed().as_nanos() as f64 / (2 * TRIPS) as f64
    }

    /// ns for one of `count` puts, each begun when the one before is complete. That the other
    /// rank has seen all notices is awaited, but does not count: it is latency, and on a busy
    /// host the scheduler's.
    fn stream(&self, bytes: usize, count: usize) -> f64 {
        let start = Instant::now();
        if self.rank == 0 {
            (0..count).for_each(|_| self.put(bytes));
        } else {
            (0..count).for_each(|_| assert_eq!(self.hear(), 1));
            self.tell(4);
        }
        let spent = start.elapsed();
        if self.rank == 0 {
            assert_eq!(self.hear(), 4);
        }
        spent.as_nanos() as f64 / count as f64
    }

    /// The same without the device. The other rank is in its next `hear`, as in `stream`.
    fn floor_stream(&self, reach: Reach, bytes: usize, count: usize) -> f64 {
        let start = Instant::now();
        (0..count).for_each(|_| self.floor(reach, bytes));
        start.elapsed().as_nanos() as f64 / count as f64
    }
}

/// Plays one of the two ranks, as which the calling thread or process acts; the medians of
/// `samples` are rank 0's to know. The first row is against the flag, the others against what
/// `reach` says; where that is a call of the kernel, 8 bytes come against both.
pub fn play(rank: usize, shared: &Shared, reach: Reach, samples: usize) -> Vec<Row> {
    let side = Side::open(rank, shared);
    for (bytes, _) in [(8, 1)].into_iter().chain(TRANSFERS) {
        side.verify(reach, bytes);
    }
    let mut rows = Vec::new();
    let (mut put, mut flag, mut call) = (Vec::new(), Vec::new(), Vec::new());
    for sample in 0..samples as u64 {
        put.push(side.trips());
        flag.push(side.flag_trips(sample * TRIPS));
        if rank == 0 && reach == Reach::Kernel {
            call.push(side.floor_stream(reach, 8, TRIPS as usize));
        }
    }
    let put = median(put);
    rows.push(Row { bytes: 8, put, floor: median(flag) });
    if !call.is_empty() {
        rows.push(Row { bytes: 8, put, floor: median(call) });
    }
    for (bytes, count) in TRANSFERS {
        let pairs = (0..samples).map(|_| {
            let put = side.stream(bytes, count);
            (put, if rank == 0 { side.floor_stream(reach, bytes, count) } else { 0.0 })
        });
        let (put, floor): (Vec<_>, Vec<_>) = pairs.unzip();
        rows.push(Row { bytes, put: median(put), floor: median(floor) });
    }
    // Neither goes before the other is done with its memory.
    side.tell(5);
    assert_eq!(side.hear(), 5);
    side.ep.close();
    rows
}
