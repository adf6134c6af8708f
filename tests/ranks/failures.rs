//! After a failure no thread accesses the user's memory. The test makes the memory inaccessible as soon as the call
//! has returned, while other threads of the rank, and other ranks, are still in their calls.
//!
//! Any later access ends this program by a signal. All buffers lie between pages that are never accessible.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hopbine::Call;
use hopbine::reduce::{Dtype, Op};
use hopbine::torus::collectives::Collective;
use hopbine::torus::geometry::Shape;
use hopbine::{
    CallOptions, Communicator, Drive, EmulationConfig, Error, Fault, Hardware, Latency, OnTimeout,
    emulate,
};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::common::four_at_a_time;
use hopbine_testing::cores::one_core;

const PAGE: usize = 4096;

/// Memory between two inaccessible pages. It ends where the second page starts.
struct Guarded {
    map: *mut u8,
    whole: usize,
    len: usize,
}

// SAFETY: the pointer is a plain address; the test determines which thread uses it when.
unsafe impl Send for Guarded {}

impl Guarded {
    fn new(len: usize) -> Self {
        let whole = len.next_multiple_of(PAGE) + 2 * PAGE;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses the address of the new mapping.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), whole, protection, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        let guarded = Guarded { map: map.cast(), whole, len };
        guarded.protect(0, PAGE);
        guarded.protect(whole - PAGE, PAGE);
        guarded
    }

    fn protect(&self, offset: usize, len: usize) {
        // SAFETY: the range is within the mapping.
        let code = unsafe { libc::mprotect(self.map.add(offset).cast(), len, libc::PROT_NONE) };
        assert_eq!(code, 0);
    }

    fn ptr(&self) -> *mut u8 {
        // SAFETY: the address is within the mapping.
        unsafe { self.map.add(self.whole - PAGE - self.len) }
    }

    fn fill(&mut self, value: u64) {
        // SAFETY: the mapping has these bytes, and no thread uses them between two calls.
        let words = unsafe { std::slice::from_raw_parts_mut(self.ptr().cast(), self.len / 8) };
        words.fill(value);
    }

    fn is_all(&self, value: u64) -> bool {
        // SAFETY: as above.
        let words = unsafe { std::slice::from_raw_parts(self.ptr().cast::<u64>(), self.len / 8) };
        words.iter().all(|&word| word == value)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.map.cast(), self.whole) };
    }
}

/// The fault of one rank, the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Panics,
    /// One of its calls has another number of elements.
    OtherCount,
    OtherCollective,
    Leaves,
    /// It comes after the other ranks' time-out.
    Late,
}

/// Numbers of elements, around the limits at which the way of sending changes.
const COUNTS: [usize; 8] = [1, 2, 3, 40, 250, 257, 900, 20_000];

struct Story {
    seed: u64,
    fate: Fate,
    victim: u32,
    /// The call, and the thread of the victim, in which the fault occurs.
    round: usize,
    thread: u64,
}

impl Story {
    /// Makes the calls of one thread of a rank until a call fails, and returns the error.
    fn run(&self, comm: &Communicator, thread: u64, gone: &Mutex<Vec<Guarded>>) -> Option<Error> {
        let rng = &mut SmallRng::seed_from_u64(self.seed ^ thread << 32);
        let comm = comm.with(CallOptions::new().hardware(Hardware::Never));
        let n = u64::from(comm.size());
        for round in 0.. {
            let mut count = *COUNTS.choose(rng).unwrap();
            let in_place = rng.random_bool(0.5);
            let mut collective = Collective::Allreduce;
            if comm.rank() == self.victim && round == self.round && thread == self.thread {
                match self.fate {
                    Fate::Panics => panic!("on purpose"),
                    Fate::OtherCount => count = if count == 900 { 901 } else { 900 },
                    Fate::OtherCollective => collective = Collective::Bcast,
                    Fate::Leaves => return None,
                    Fate::Late => std::thread::sleep(Duration::from_millis(400)),
                }
            }
            let (mut send, mut recv) = (Guarded::new(8 * count), Guarded::new(8 * count));
            send.fill(round as u64);
            recv.fill(if in_place { round as u64 } else { 0 });
            let mut call = Call::new(collective, count as u64, Dtype::U64);
            call.op = Some(Op::Sum);
            call.in_place = in_place;
            (call.recv, call.recv_count) = (recv.ptr(), count as u64);
            if !in_place && collective == Collective::Allreduce {
                (call.send, call.send_count) = (send.ptr(), count as u64);
            }
            // SAFETY: the buffers live until the call has returned.
            let outcome = unsafe { comm.call(&call) };
            if let Err(error) = outcome {
                for buffer in [send, recv] {
                    buffer.protect(0, buffer.whole);
                    gone.lock().unwrap().push(buffer);
                }
                return Some(error);
            }
            assert!(collective != Collective::Allreduce || recv.is_all(n * round as u64));
            if round % 7 == 6 {
                // Not always one that is met in the next call.
                std::thread::sleep(Duration::from_micros(rng.random_range(0..300)));
            }
        }
        None
    }

    fn happen(&self, drive: Drive, reg_cache: bool, latency: Latency) {
        let shape = Shape::torus([&[2][..], &[3], &[2, 2]][self.seed as usize % 3]).unwrap();
        let victim = self.victim % shape.n_ranks();
        let story = Story { victim, ..*self };
        // The time-out is long if no rank should have to wait for it, however busy the machine is. A thread that
        // panics ends its rank only after the rank's other thread has given up.
        let timeout = Duration::from_millis(match self.fate {
            Fate::Leaves | Fate::Late => 120,
            // All calls before the panic take less time.
            Fate::Panics => 500,
            Fate::OtherCount | Fate::OtherCollective => 20_000,
        });
        let config = EmulationConfig::new(shape).with(|config| {
            config.drive = drive;
            config.reg_cache = reg_cache;
            config.latency = latency;
            config.ports = Some(1 + self.seed as u32 % 2);
            config.timeout = timeout;
            config.on_timeout = OnTimeout::Fail;
        });
        let gone = Mutex::new(Vec::new());
        let failed = AtomicUsize::new(0);
        let outcome = emulate(&config, |comm| {
            let second = match comm.duplicate() {
                Ok(second) => second,
                // Other ranks may already be in their first calls.
                Err(error) => return [Some(error.clone()), Some(error)],
            };
            let (story, gone, failed) = (&story, &gone, &failed);
            let run = move |comm: &Communicator, thread| {
                let error = story.run(comm, thread, gone);
                failed.fetch_add(usize::from(error.is_some()), Ordering::Relaxed);
                error
            };
            std::thread::scope(|threads| {
                let other = threads.spawn(|| run(&second, 1));
                let error = run(comm, 0);
                let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                [error, other]
            })
        });
        match (outcome, self.fate) {
            (Err(Error::RankPanicked { rank, .. }), Fate::Panics) => assert_eq!(rank, victim),
            (Ok(errors), fate) if fate != Fate::Panics => {
                for (rank, errors) in errors.iter().enumerate() {
                    self.check(rank as u32, victim, errors);
                }
            }
            (other, fate) => panic!("seed {}, {fate:?}: {other:?}", self.seed),
        }
        assert!(failed.into_inner() > 0, "seed {}: nothing failed", self.seed);
    }

    /// Verifies that every thread has ended with an error, except a thread that has left.
    fn check(&self, rank: u32, victim: u32, errors: &[Option<Error>; 2]) {
        for (thread, error) in errors.iter().enumerate() {
            let left = rank == victim && thread as u64 == self.thread;
            assert!(error.is_some() || (left && self.fate == Fate::Leaves), "rank {rank}: none");
            let Some(Error::Lost { blame, .. }) = error else { continue };
            let expected = match self.fate {
                Fate::Panics => unreachable!(),
                Fate::OtherCount | Fate::OtherCollective => blame.fault == Fault::Elsewhere,
                // One thread of the victim waits for the other ranks, or they have missed it.
                Fate::Leaves | Fate::Late => blame.fault != Fault::Unreachable,
            };
            assert!(expected, "seed {}, {:?}, rank {rank}: {blame}", self.seed, self.fate);
        }
    }
}

/// Runs one story, which the seed and `drive` determine.
fn story(seed: u64, drive: Drive) {
    let fates = [Fate::OtherCount, Fate::Panics, Fate::OtherCollective, Fate::Leaves, Fate::Late];
    // The slow fates are less frequent.
    let fate = fates[if seed % 25 < 2 { 3 + seed as usize % 2 } else { seed as usize % 3 }];
    let rng = &mut SmallRng::seed_from_u64(seed + 1000);
    let (victim, round, thread) =
        (rng.random_range(0..4), rng.random_range(0..25), rng.random_range(0..2));
    let story = Story { seed, fate, victim, round, thread };
    let latency = match seed % 4 {
        0 => Latency { put_ns: 50_000, ..Latency::default() },
        _ => Latency::default(),
    };
    story.happen(drive, seed.is_multiple_of(5), latency);
}

#[test]
fn nobody_touches_memory_after_a_failure() {
    four_at_a_time(0..40, |seed| story(seed, Drive::Inline));
}

#[test]
fn nor_do_workers() {
    four_at_a_time(0..20, |seed| {
        story(seed, if seed % 2 == 0 { Drive::Workers } else { Drive::Worker });
    });
}

/// A waiting thread checks its time-out even if its core is busy and other operations progress all the time.
#[test]
fn nor_do_workers_on_a_busy_core() {
    let _core = one_core();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let outcome =
            std::panic::catch_unwind(|| (0..10).for_each(|seed| story(seed, Drive::Workers)));
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
#[ignore = "takes minutes"]
fn nor_after_thousands_of_failures() {
    four_at_a_time(0..4000, |seed| story(seed, Drive::Inline));
    four_at_a_time(0..1000, |seed| story(seed, Drive::Workers));
}

/// One thread of a rank gives up and frees its buffers. Meanwhile the rank's other thread searches for the cause, and
/// drives the port on which late messages for these buffers arrive. (An address sanitizer detects more here than the
/// test itself.)
#[test]
fn one_thread_frees_while_another_finds_out() {
    const WIRE: Duration = Duration::from_millis(100);
    let too_late = AtomicUsize::new(0);
    let lens = [1, 200, 250, 3000].into_iter().cycle().take(12);
    four_at_a_time(lens.enumerate(), |(round, len)| {
        let latency = Latency { put_ns: WIRE.as_nanos() as u64, ..Latency::default() };
        let drive = if round % 3 == 0 { Drive::Workers } else { Drive::Inline };
        let config = EmulationConfig::new(Shape::torus(&[2]).unwrap()).with(|config| {
            config.drive = drive;
            config.latency = latency;
            config.ports = Some(1);
            config.timeout = Duration::from_millis(150);
            config.on_timeout = OnTimeout::Fail;
        });
        let ended = emulate(&config, |comm| {
            let comm = comm.with(CallOptions::new().hardware(Hardware::Never));
            let allreduce = |comm: &Communicator, len| {
                let mut vector = vec![1u64; len].into_boxed_slice();
                comm.allreduce_in_place(&mut vector, Op::Sum).map(|()| vector[0])
            };
            // On a busy machine the ranks may time out here already.
            let Ok(second) = comm.duplicate() else { return 0 };
            // The message of one rank reaches the other rank just before, while, or after that rank gives up.
            if comm.rank() == 1 {
                std::thread::sleep(Duration::from_millis(50 * (round as u64 % 12)));
            }
            let halves = std::thread::scope(|threads| {
                let other = threads.spawn(|| {
                    std::thread::sleep(Duration::from_millis(10 * (round as u64 % 5)));
                    allreduce(&second, 100)
                });
                let mine = allreduce(&comm, len);
                // This allocation may reuse the freed memory, and writes to it.
                let again = vec![7u64; len].into_boxed_slice();
                let other = other.join().unwrap();
                assert!(again.iter().all(|&value| value == 7));
                [mine, other]
            });
            halves.iter().filter(|half| half.is_err()).count()
        });
        let found = match ended {
            Ok(halves) => halves.into_iter().sum::<usize>(),
            // On a busy machine the ranks may also time out at the end.
            Err(Error::Lost { .. }) => 0,
            Err(other) => panic!("round {round}: {other}"),
        };
        too_late.fetch_add(found, Ordering::Relaxed);
    });
    assert!(too_late.into_inner() > 0, "nobody was too late");
}

/// A sender computes while its peer gives up, and then finds the peer's clear to send. The peer's buffer is registered
/// for longer than the call that has failed. (Ranks that are threads share the failure, so the sender mostly knows of it
/// before it reads the clear to send; that nothing is registered any more tells that a put could not arrive.)
#[test]
fn no_put_arrives_late_in_memory_that_the_program_has_registered() {
    const LEN: usize = 1_000_000;
    let config = EmulationConfig::new(Shape::torus(&[2]).unwrap()).with(|config| {
        config.drive = Drive::Inline;
        config.reg_cache = true;
        config.ports = Some(1);
        config.timeout = Duration::from_millis(300);
        config.on_timeout = OnTimeout::Fail;
    });
    let stage = AtomicUsize::new(0);
    let reach = |number| stage.store(number, Ordering::Release);
    let wait_for = |number| {
        let began = Instant::now();
        while stage.load(Ordering::Acquire) < number {
            assert!(began.elapsed() < Duration::from_secs(60), "stage {number} is not reached");
            std::thread::yield_now();
        }
    };
    let ended = emulate(&config, |comm| {
        let comm = comm.with(CallOptions::new().hardware(Hardware::Never));
        let mut buffer = vec![7u8; LEN];
        if comm.rank() == 0 {
            let outcome = comm.scope(|scope| {
                let sent = scope.bcast(&mut buffer, 0)?;
                reach(1);
                wait_for(2);
                sent.wait().map(drop)
            });
            outcome.unwrap_err();
            return reach(3);
        }
        // SAFETY: the buffer lives longer than its registration.
        let registered = unsafe { comm.register(buffer.as_mut_ptr(), LEN as u64) }.unwrap();
        wait_for(1);
        comm.bcast(&mut buffer, 0).unwrap_err();
        let stats = comm.cache_stats().unwrap();
        buffer.fill(0x55);
        reach(2);
        wait_for(3);
        assert!(buffer.iter().all(|&byte| byte == 0x55), "a put arrived after the error");
        assert_eq!(stats.registrations, stats.deregistrations);
        drop(registered);
    });
    // The ranks may find the failure at the end, too.
    assert!(matches!(ended, Ok(_) | Err(Error::Lost { .. } | Error::Poisoned(_))), "{ended:?}");
}

/// Hundreds of operations at once, waited for in different orders: no queue overflows, and no rank waits for ever.
#[test]
fn more_operations_under_way_than_any_queue_has_room_for() {
    for (drive, n, len) in
        [(Drive::Inline, 1500, 700), (Drive::Workers, 700, 3), (Drive::Inline, 600, 300)]
    {
        let config = EmulationConfig::new(Shape::torus(&[3]).unwrap()).with(|config| {
            config.drive = drive;
            config.ports = Some(1);
        });
        emulate(&config, |comm| {
            let rank = u64::from(comm.rank());
            let comm = comm.with(CallOptions::new().hardware(Hardware::Never));
            let other = comm.duplicate().unwrap();
            let mut all: Vec<_> = (0..n)
                .map(|index| {
                    let comm = if index % 2 == 0 { &comm } else { &other };
                    comm.allreduce_init(vec![rank + index as u64; len], Op::Sum).unwrap()
                })
                .collect();
            all.iter_mut().for_each(|allreduce| allreduce.start().unwrap());
            // Rank 0 waits in reverse order, rank 1 for the second communicator first, rank 2 in the order of the
            // starts.
            let mut order: Vec<usize> = (0..n).collect();
            match rank {
                0 => order.reverse(),
                1 => order.sort_by_key(|index| index % 2 == 0),
                _ => {}
            }
            for index in order {
                all[index].wait().unwrap();
                assert_eq!(all[index].buffer().unwrap(), vec![3 + 3 * index as u64; len]);
            }
        })
        .unwrap();
    }
}
