//! Random failures: ranks that are killed, stopped, late, or in another call, at random moments of random calls,
//! also with full queues. Every other rank must end with a typed error. After the error nothing accesses the rank's
//! buffers, which lie between guard pages and are then protected.
//!
//! A few dozen runs here; thousands with `cargo test --test processes chaos -- --ignored`, which reads
//! `HOPBINE_TEST_SEEDS=from..to`.

use std::time::Duration;

use hopbine::reduce::Op;
use hopbine::{CallOptions, Communicator, Error, Hardware, init};
use hopbine_testing::processes::wait;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::four_at_a_time;
use crate::common::processes::{run_scenario, start};

const SEED: &str = "HOPBINE_TEST_SEED";
const RANKS: u32 = 4;
/// Calls of a run with a late rank; in other runs the ranks continue until they fail.
const CALLS: u32 = 60;
/// Longest vectors, in elements.
const MOST: usize = 70_000;
/// Requests that are active at the same time.
const BURST: usize = 300;

/// The entry point of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| (name == "chaos").then_some(chaos as fn()));
}

/// Elements between two guard pages, adjacent to one of them.
struct Guarded {
    map: *mut u8,
    pages: usize,
    data: *mut u64,
    len: usize,
}

const PAGE: usize = 64 * 1024;

impl Guarded {
    fn new(len: usize, at_end: bool) -> Self {
        let pages = (8 * len).div_ceil(PAGE).max(1);
        let (whole, protection) = ((pages + 2) * PAGE, libc::PROT_NONE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), whole, protection, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        let map = map.cast::<u8>();
        let offset = if at_end { PAGE * (pages + 1) - 8 * len } else { PAGE };
        // SAFETY: within the mapping.
        let data = unsafe { map.add(offset) }.cast();
        let guarded = Guarded { map, pages, data, len };
        guarded.protect(libc::PROT_READ | libc::PROT_WRITE);
        guarded
    }

    fn protect(&self, protection: libc::c_int) {
        // SAFETY: the pages between the guard pages.
        let code =
            unsafe { libc::mprotect(self.map.add(PAGE).cast(), self.pages * PAGE, protection) };
        assert_eq!(code, 0);
    }

    fn get(&mut self) -> &mut [u64] {
        // SAFETY: `len` elements to which only this value gives access; any bits are valid.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` created.
        unsafe { libc::munmap(self.map.cast(), (self.pages + 2) * PAGE) };
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Killed,
    Stopped,
    Late,
    OtherCall,
}

/// The parameters of a run, which all ranks know.
#[derive(Clone, Copy, Debug)]
struct Run {
    fate: Fate,
    victim: u32,
    /// The number of the call in which the failure happens.
    call: u32,
    /// Microseconds between the start of the call and the failure.
    after: u64,
}

impl Run {
    fn of(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        // Stopped ranks are rare, since they cost the others the whole timeout.
        let fate = match rng.random_range(0..16) {
            0 => Fate::Stopped,
            1..=3 => Fate::Late,
            4..=7 => Fate::OtherCall,
            _ => Fate::Killed,
        };
        let (victim, call) = (rng.random_range(0..RANKS), rng.random_range(0..CALLS / 2));
        Run { fate, victim, call, after: rng.random_range(0..3000) }
    }
}

fn signal(signal: libc::c_int) {
    // SAFETY: sends a signal to this process.
    unsafe { libc::kill(libc::getpid(), signal) };
}

fn chaos() {
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let run = Run::of(seed);
    let world = init().unwrap();
    let first = world.communicator();
    // In shared memory the second communicator has its own flat buffer.
    let second = match first.duplicate() {
        Ok(second) => second,
        Err(error) => {
            // Other ranks may be in their first call by now.
            println!("ERROR in call to duplicate: {error}");
            return std::thread::sleep(Duration::from_millis(150));
        }
    };
    let mut rng = SmallRng::seed_from_u64(!seed);
    let mut buffers = [MOST, MOST, BURST].map(|len| Guarded::new(len, rng.random()));
    let is_victim = first.rank() == run.victim;
    for call in 0.. {
        if call == CALLS && run.fate == Fate::Late {
            return;
        }
        // Gates and the flat buffer do not detect every difference in length.
        let by_plan = run.fate == Fate::OtherCall && call == run.call;
        let mut other = false;
        if is_victim && call == run.call {
            let after = Duration::from_micros(run.after);
            match run.fate {
                Fate::Late => std::thread::sleep(after * 100),
                Fate::OtherCall => other = true,
                fate => drop(std::thread::spawn(move || {
                    std::thread::sleep(after);
                    signal(if fate == Fate::Killed { libc::SIGKILL } else { libc::SIGSTOP });
                })),
            }
        }
        let comm = if rng.random() { &second } else { first };
        if let Err(error) = one(comm, &mut rng, &mut buffers, by_plan, other) {
            buffers.iter().for_each(|buffer| buffer.protect(libc::PROT_NONE));
            println!("ERROR in call {call}: {error}");
            let again = comm.with(CallOptions::new().hardware(Hardware::Never)).barrier();
            assert!(matches!(again, Err(Error::Poisoned(_))), "{again:?}");
            // A rank that starts later would find no peer, and fail or be killed.
            std::thread::sleep(Duration::from_millis(150));
            return;
        }
    }
}

/// Makes a random call, the same on all ranks unless this rank has to make an `other` one.
fn one(
    comm: &Communicator,
    rng: &mut SmallRng,
    [send, recv, many]: &mut [Guarded; 3],
    by_plan: bool,
    other: bool,
) -> Result<(), Error> {
    let lens = [1, 3, 40, 270, 1000, 9000, MOST / 4 - 1];
    let (what, len) = (rng.random_range(0..7), lens[rng.random_range(0..lens.len())]);
    let root = rng.random_range(0..RANKS);
    let never = rng.random::<bool>() || by_plan;
    let hardware = if never { Hardware::Never } else { Hardware::Auto };
    let comm = &comm.with(CallOptions::new().hardware(hardware));
    let (n, len) = (RANKS as usize, len + usize::from(other));
    let (send, recv) = (send.get(), recv.get());
    let sum = u64::from(RANKS * (RANKS - 1) / 2);
    match what {
        0 => {
            send[..len].fill(u64::from(comm.rank()));
            comm.allreduce(&send[..len], &mut recv[..len], Op::Sum)?;
            assert!(recv[..len].iter().all(|&value| value == sum));
        }
        1 => {
            recv[..len].fill(u64::from(comm.rank()));
            comm.bcast(&mut recv[..len], root)?;
            assert!(recv[..len].iter().all(|&value| value == u64::from(root)));
        }
        2 => comm.alltoall(&send[..n * len], &mut recv[..n * len])?,
        3 => comm.allgather(&send[..len], &mut recv[..n * len])?,
        4 => comm.reduce_scatter(&send[..n * len], &mut recv[..len], Op::Max)?,
        5 => comm.reduce(&send[..len], &mut recv[..len], Op::BitXor, root)?,
        _ => {
            // More requests than the queues hold.
            let many = &mut many.get()[..if other { BURST - 1 } else { BURST }];
            many.fill(1);
            comm.scope(|scope| {
                for one in many.chunks_mut(1) {
                    let _ = scope.allreduce_in_place(one, Op::Sum)?;
                }
                Ok(())
            })?;
            assert!(many.iter().all(|&value| value == u64::from(RANKS)));
            // A missing request is detected only at the next call.
            if other {
                comm.barrier()?;
            }
        }
    }
    Ok(())
}

/// Makes one run; panics with all that is known if it does not end as expected.
fn survive(seed: u64, backend: &str) {
    let run = Run::of(seed);
    let text = seed.to_string();
    let env = [
        (SEED, &text[..]),
        ("HOPBINE_BACKEND", backend),
        ("HOPBINE_TIMEOUT", if run.fate == Fate::Stopped { "3" } else { "40" }),
        ("HOPBINE_ON_TIMEOUT", "fail"),
    ];
    let (_dir, mut children) = start(RANKS as usize, "chaos", &env);
    let mut victim = children.remove(run.victim as usize);
    let others = wait(children);
    if run.fate == Fate::Stopped {
        victim.kill();
    }
    let victim = wait(vec![victim]).remove(0);
    let context = |text: &str| format!("seed {seed}, {backend}, {run:?}: {text}");
    for ended in &others {
        assert!(
            ended.status.success(),
            "{}",
            context(&format!("{}{}", ended.status, ended.text()))
        );
        let fails = run.fate != Fate::Late;
        assert_eq!(ended.stdout.contains("ERROR in call"), fails, "{}", context(&ended.text()));
    }
    let ends_well = matches!(run.fate, Fate::Late | Fate::OtherCall);
    assert_eq!(victim.status.success(), ends_well, "{}", context(&victim.text()));
}

#[test]
fn ranks_survive_random_failures_on_the_emulated_device() {
    four_at_a_time(0..8, |seed| survive(seed, "emu"));
}

#[test]
fn ranks_survive_random_failures_in_shared_memory() {
    four_at_a_time(100..108, |seed| survive(seed, "shm"));
}

#[test]
#[ignore = "an hour"]
fn ranks_survive_thousands_of_random_failures() {
    let seeds = std::env::var("HOPBINE_TEST_SEEDS").unwrap_or_else(|_| "1000..3000".to_owned());
    let (from, to) = seeds.split_once("..").expect("from..to");
    let seeds = from.parse().unwrap()..to.parse().unwrap();
    assert!(!seeds.is_empty(), "no seeds in {from}..{to}");
    for backend in ["emu", "shm"] {
        four_at_a_time(seeds.clone(), |seed| survive(seed, backend));
    }
}
