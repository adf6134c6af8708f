//! Compares puts between two ranks with the fastest transfer that the host offers. Samples alternate, so that both
//! see the same disturbances. The ranks may be threads or processes; they need only [`Shared`] memory.

use crate::common::{EndPoint, RMT, TCQ};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use utofu_sys::*;

/// Bytes of the longest put that the interface supports.
const LONGEST: usize = (16 << 20) - 1;
/// Sizes of the bandwidth tests in bytes, and puts per sample.
const TRANSFERS: [(usize, usize); 3] = [(64 << 10, 64), (1 << 20, 8), (LONGEST, 2)];
/// Round trips in each sample of the latency test.
const TRIPS: u64 = 500;
/// Offsets in a rank's buffer: the source of puts is at 0, their target at `INBOX`, and a word for messages of 8
/// bytes at `WORD`.
const INBOX: u64 = 16 << 20;
const WORD: u64 = 32 << 20;
const BUFFER: usize = (32 << 20) + 4096;

/// A word with cache lines of its own (256 bytes on A64FX).
#[derive(Default)]
#[repr(C, align(256))]
struct Line(AtomicU64);

/// The addresses that a rank publishes to the other rank.
#[derive(Default)]
#[repr(C)]
struct StartupRecord {
    arrived: AtomicU64,
    id: AtomicU64,
    stadd: AtomicU64,
    buffer: AtomicU64,
    pid: AtomicU64,
}

/// Memory in which two ranks find each other; initially all zeros.
#[derive(Default)]
#[repr(C)]
pub struct Shared {
    records: [StartupRecord; 2],
    flags: [Line; 2],
}

/// The fastest way to move bytes to the other rank without the device.
#[derive(Clone, Copy, PartialEq)]
pub enum Reach {
    /// A copy within the address space.
    Copy,
    /// A system call: `process_vm_writev`.
    Kernel,
}

/// Medians in ns: of one put, and of the same transfer without the device.
pub struct Row {
    pub bytes: usize,
    pub put: f64,
    pub floor: f64,
}

/// Waits: spins at first, then yields, because the other rank may need this core.
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

/// Byte at offset `at` of the verification message of a size.
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
        // The buffer lives as long as the process, because the other rank may still write to it.
        let memory = vec![1u64; BUFFER / 8].leak();
        let buffer: *mut u8 = memory.as_mut_ptr().cast();
        let ep = EndPoint::open(memory);
        let mine = &shared.records[rank];
        mine.id.store(ep.id, Ordering::Relaxed);
        mine.stadd.store(ep.stadd, Ordering::Relaxed);
        mine.buffer.store(buffer as u64, Ordering::Relaxed);
        mine.pid.store(std::process::id().into(), Ordering::Relaxed);
        // Release: pairs with the Acquire below and publishes the record's fields.
        mine.arrived.store(1, Ordering::Release);
        let peer = &shared.records[1 - rank];
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

    /// Sends a value to the other rank.
    fn tell(&self, value: u64) {
        self.ep.piggyback8(self.peer_id, value, self.peer_stadd + WORD, value & 0xff, RMT);
    }

    /// Waits for the other rank's next notice and returns its value.
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

    /// Puts the first `bytes` bytes of the buffer to the other rank's inbox, and waits until the buffer may be
    /// changed.
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

    /// Copies the same bytes without the device.
    fn floor(&self, reach: Reach, bytes: usize) {
        let (from, to) = (self.buffer, (self.peer_buffer + INBOX) as *mut u8);
        match reach {
            Reach::Copy => {
                // SAFETY: both buffers have that length; the other rank does not access its inbox before it gets a
                // notice.
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
                    // SAFETY: the local bytes belong to this rank; the kernel checks the remote range.
                    let n =
                        unsafe { libc::process_vm_writev(self.peer_pid, &local, 1, &remote, 1, 0) };
                    assert!(n > 0, "process_vm_writev: {}", std::io::Error::last_os_error());
                    done += n as usize;
                }
            }
        }
    }

    /// Reads a byte of this rank's inbox.
    fn inbox(&self, at: usize) -> u8 {
        // SAFETY: the byte is within the buffer, and the writer has announced that it has finished.
        unsafe { self.buffer.add(INBOX as usize + at).read() }
    }

    /// Moves a pattern by a put and without the device; the receiver compares every byte.
    fn verify(&self, reach: Reach, bytes: usize) {
        for by_put in [true, false] {
            let salt = bytes + usize::from(by_put);
            if self.rank == 0 {
                for at in 0..bytes {
                    // SAFETY: the byte is within the part of this rank's buffer from which it sends.
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

    /// One-way time in ns of a put of 8 bytes.
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

    /// One-way time in ns of a flag in shared memory. Flags only grow, starting from `base`.
    fn flag_trips(&self, base: u64) -> f64 {
        let [mine, theirs] = [self.rank, 1 - self.rank].map(|rank| &self.shared.flags[rank].0);
        // Each rank's Release pairs with the other's Acquire, as for a flag that announces data.
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

    /// Time in ns of one of `count` puts, each started after the previous one has completed. The sender also waits
    /// until the other rank has seen all notices, but this wait is not measured: it is latency, and on a busy host it
    /// depends on the scheduler.
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

    /// The same as `stream`, without the device. The other rank waits in its next `hear`, as in `stream`.
    fn floor_stream(&self, reach: Reach, bytes: usize, count: usize) -> f64 {
        let start = Instant::now();
        (0..count).for_each(|_| self.floor(reach, bytes));
        start.elapsed().as_nanos() as f64 / count as f64
    }
}

/// Performs one of the two ranks on the calling thread or process. Only rank 0's medians of `samples` are meaningful.
/// The first row compares a put with the flag, the other rows with the copy that `reach` selects. If that copy is a
/// system call, the second row compares it for 8 bytes.
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
    // Neither rank ends before the other has finished with its memory.
    side.tell(5);
    assert_eq!(side.hear(), 5);
    side.ep.close();
    rows
}
