//! A device that has no room for another registration.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hopbine::reduce::Op;
use hopbine::{Blocks, Registered};
use hopbine::{CallOptions, Communicator, EmulationConfig, Error, Hardware, OnTimeout, emulate};

/// More pages than the device can register.
const PAGES: usize = 7000;
const PAGE: usize = 4096;
/// Time-out. No rank waits this long, because a rank that cannot continue notifies the others.
const PATIENCE: Duration = Duration::from_secs(120);

/// Takes all free registrations of the device, until the value is dropped.
fn fill(comm: &Communicator, memory: &mut [u8]) -> Vec<Registered> {
    // SAFETY: in both tests the memory is borrowed for longer than the value lives.
    let register = |page: &mut [u8]| unsafe { comm.register(page.as_mut_ptr(), PAGE as u64) };
    let held: Vec<_> = memory.chunks_mut(PAGE).map_while(|page| register(page).ok()).collect();
    assert!(held.len() < PAGES, "there is no end of room");
    held
}

fn config(shape: &str) -> EmulationConfig {
    EmulationConfig::new(shape.parse().unwrap()).with(|config| {
        config.ports = Some(1);
        config.timeout = PATIENCE;
        config.on_timeout = OnTimeout::Fail;
    })
}

/// If a call cannot register its memory, no other rank has noticed the call, so it can be repeated.
#[test]
fn a_call_that_finds_no_room_can_be_made_again() {
    let results = emulate(&config("2"), |comm| {
        let comm = comm.with(CallOptions::new().hardware(Hardware::Never));
        // From here on the operation has its working memory.
        let mut first = vec![1.0; 100_000];
        comm.allreduce_in_place(&mut first, Op::Sum)?;
        let mut vector = vec![1.0; 100_000];
        if comm.rank() == 0 {
            let memory = &mut vec![0; PAGES * PAGE];
            let _held = fill(&comm, memory);
            let blocking = comm.allreduce_in_place(&mut vector, Op::Sum);
            assert!(matches!(blocking, Err(Error::Wire { .. })), "{blocking:?}");
            let started =
                comm.scope(|scope| scope.allreduce_in_place(&mut vector, Op::Sum).map(drop));
            assert!(matches!(started, Err(Error::Wire { .. })), "{started:?}");
        }
        comm.allreduce_in_place(&mut vector, Op::Sum)?;
        assert!(vector.iter().all(|&value| value == 2.0));
        Ok::<_, Error>(())
    });
    assert_eq!(results.unwrap(), [Ok(()), Ok(())]);
}

/// The other ranks have published their sizes and wait for data from a rank that cannot register its memory.
#[test]
fn a_rank_that_finds_no_room_in_the_midst_of_a_call_fails_all() {
    let n_failed = AtomicU32::new(0);
    let results = emulate(&config("4"), |comm| {
        let comm = comm.with(CallOptions::new().algorithm("bruck"));
        let blocks = Blocks::new(&[1000; 4]);
        let call = |send: &[f64]| {
            let mut recv = vec![0.0; 4000];
            comm.alltoallv(send, blocks, &mut recv, blocks)
        };
        let [first, second] = [vec![1.0; 4000], vec![2.0; 4000]];
        call(&first).unwrap();
        let memory = &mut vec![0; PAGES * PAGE];
        let _held = (comm.rank() == 0).then(|| fill(&comm, memory));
        let error = call(&second).unwrap_err();
        n_failed.fetch_add(1, Ordering::Relaxed);
        // This rank makes no call from which the others could learn more.
        let began = Instant::now();
        while n_failed.load(Ordering::Relaxed) < 4 && began.elapsed() < PATIENCE / 2 {
            std::thread::yield_now();
        }
        assert_eq!(n_failed.load(Ordering::Relaxed), 4, "{error}");
    });
    results.unwrap();
}
