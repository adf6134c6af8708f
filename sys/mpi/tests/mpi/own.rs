//! Programs that use MPI themselves.

use std::ffi::c_int;
use std::time::Duration;

use hopbine::mpi::ffi;
use hopbine::reduce::Op;
use hopbine::{CallOptions, Error, Hardware, World, init, init_mpi};

use crate::defaults;

fn world_comm() -> ffi::MPI_Comm {
    ffi::comm_world()
}

pub fn start(level: &str) -> c_int {
    let mut provided = 0;
    // SAFETY: called at the start of the program.
    unsafe {
        let wanted = match level {
            "funneled" => ffi::thread_funneled(),
            "serialized" => ffi::thread_serialized(),
            _ => ffi::thread_multiple(),
        };
        let (none, nothing) = (std::ptr::null_mut(), std::ptr::null_mut());
        assert_eq!(ffi::PMPI_Init_thread(none, nothing, wanted, &mut provided), 0);
        assert!(provided >= wanted, "{provided} for {wanted}");
        wanted
    }
}

fn split(colour: c_int, key: c_int) -> ffi::MPI_Comm {
    let mut part = world_comm();
    // SAFETY: all ranks call it.
    assert_eq!(unsafe { ffi::PMPI_Comm_split(world_comm(), colour, key, &mut part) }, 0);
    part
}

fn free(mut comm: ffi::MPI_Comm) {
    // SAFETY: all its ranks call it.
    assert_eq!(unsafe { ffi::PMPI_Comm_free(&mut comm) }, 0);
}

/// MPI messages of the program, with tags that hopbine uses as well.
fn own_traffic(rank: u32, n: u32) {
    let (to, from) = ((rank + 1) % n, (rank + n - 1) % n);
    for tag in [0, 1, 2] {
        let (mine, mut theirs) = ([rank * 3 + tag], [u32::MAX]);
        // SAFETY: one word for each direction.
        let code = unsafe {
            ffi::PMPI_Sendrecv(
                mine.as_ptr().cast(),
                1,
                ffi::uint32_t(),
                to as c_int,
                tag as c_int,
                theirs.as_mut_ptr().cast(),
                1,
                ffi::uint32_t(),
                from as c_int,
                tag as c_int,
                world_comm(),
                std::ptr::null_mut(),
            )
        };
        assert_eq!((code, theirs), (0, [from * 3 + tag]));
    }
}

/// A communicator that is no intracommunicator is refused.
fn no_worlds() {
    let (mut rank, mut n) = (0, 0);
    // SAFETY: a constant communicator, and valid addresses for the results.
    let none = unsafe {
        assert_eq!(ffi::PMPI_Comm_rank(world_comm(), &mut rank), 0);
        assert_eq!(ffi::PMPI_Comm_size(world_comm(), &mut n), 0);
        ffi::comm_null()
    };
    let mut refused = vec![none];
    if n > 1 {
        let mut inter = none;
        let half = split(rank % 2, rank);
        // SAFETY: all ranks call it; the first rank of the other half is 0 or 1.
        let code = unsafe {
            ffi::PMPI_Intercomm_create(half, 0, world_comm(), 1 - rank % 2, 7, &mut inter)
        };
        assert_eq!(code, 0);
        free(half);
        refused.push(inter);
    }
    for comm in refused {
        // SAFETY: all its ranks call it.
        let error = unsafe { init_mpi(comm) }.map(drop).unwrap_err().to_string();
        assert!(error.contains("must be an intracommunicator"), "{error}");
        if comm != none {
            free(comm);
        }
    }
}

/// Workers would call MPI beside the program, which this thread level does not allow. The environment asks for them.
pub fn no_workers(level: &str) {
    start(level);
    let mut rank = 0;
    // SAFETY: a constant communicator, and a valid address for the result.
    assert_eq!(unsafe { ffi::PMPI_Comm_rank(world_comm(), &mut rank) }, 0);
    // SAFETY: all ranks of the program call it.
    let refused = unsafe { init_mpi(world_comm()) }.map(drop).unwrap_err().to_string();
    assert!(refused.contains("workers need MPI_THREAD_MULTIPLE"), "{refused}");
    finalize(rank as u32, level);
}

/// hopbine beside the program's own use of MPI, at a thread level.
pub fn run(level: &str) {
    let wanted = start(level);
    no_worlds();
    // SAFETY: all ranks of the program call it.
    let world = unsafe { init_mpi(world_comm()) }.unwrap();
    let comm = world.communicator();
    let (rank, n) = (comm.rank(), comm.size());
    for _ in 0..3 {
        own_traffic(rank, n);
        defaults(comm, &[3, 5000]);
    }
    communicators(&world);
    let (funneled, multiple) = (ffi::thread_funneled(), ffi::thread_multiple());
    if wanted >= multiple {
        threads(&world);
    }
    if wanted == funneled {
        let refused = std::thread::scope(|threads| {
            // The calling thread waits meanwhile.
            let call = || comm.duplicate().map(drop).unwrap_err();
            threads.spawn(call).join().unwrap()
        });
        let text = refused.to_string();
        // Without MPI on the wire any thread may call; `duplicate` uses MPI.
        assert!(text.contains("only the thread that initialised MPI"), "{text}");
        drop(world);
    } else {
        world.finish().unwrap();
    }
    finalize(rank, level);
}

pub fn finalize(rank: u32, level: &str) {
    // SAFETY: called at the end of the program.
    assert_eq!(unsafe { ffi::PMPI_Finalize() }, 0);
    // MPI does not start again, and would abort: ranks meet without it, unless it is asked for.
    let again = init().and_then(|world| {
        world.communicator().barrier()?;
        assert_ne!(world.backend(), "mpi");
        world.finish()
    });
    match std::env::var("HOPBINE_BACKEND").as_deref() {
        Ok("mpi") => assert!(matches!(again, Err(Error::Backend { .. })), "{again:?}"),
        _ => again.unwrap(),
    }
    if rank == 0 {
        println!("{level}: done");
    }
}

/// Communicators of all kinds.
fn communicators(world: &World) {
    let comm = world.communicator();
    let (rank, n) = (comm.rank(), comm.size());
    let backwards = split(0, -(rank as c_int));
    let parts = split((rank % 2) as c_int, 0);
    let mut sums = vec![u64::from(rank); 200_000];
    // An operation under way advances while this rank waits for the first one of a communicator, which comes later.
    let reversed = comm.scope(|scope| {
        let mut sum = Some(scope.allreduce_in_place(&mut sums, Op::Sum)?);
        let is_first = rank + 1 == n;
        if let Some(sum) = sum.take_if(|_| is_first) {
            sum.wait()?;
        }
        // SAFETY: a communicator of this world's MPI; all its ranks call it.
        let reversed = unsafe { world.communicator_of(backwards) }?;
        sum.map_or(Ok(()), |sum| sum.wait().map(drop))?;
        Ok(reversed)
    });
    assert_eq!(sums, vec![u64::from(n * (n - 1) / 2); 200_000]);
    // SAFETY: as above.
    let (reversed, half) = (reversed.unwrap(), unsafe { world.communicator_of(parts) }.unwrap());
    assert_eq!((reversed.rank(), reversed.size()), (n - 1 - rank, n));
    assert_eq!((half.rank(), half.size()), (rank / 2, (n + 1 - rank % 2) / 2));
    defaults(&reversed, &[5, 2000]);
    defaults(&half, &[5, 2000]);
    // Only some of the ranks make another communicator.
    if rank % 2 == 0 {
        // SAFETY: a communicator of this world's MPI; all its ranks call it.
        let again = unsafe { world.communicator_of(parts) }.unwrap();
        let mut sum = [again.rank() + 1];
        again.allreduce_in_place(&mut sum, Op::Sum).unwrap();
        assert_eq!(sum[0], (1..=again.size()).sum());
    }
    comm.barrier().unwrap();
    free(backwards);
    free(parts);
    // hopbine's communicators no longer need MPI's.
    defaults(&half, &[7]);
}

/// Two communicators in one thread each, with MPI messages in a third thread.
fn threads(world: &World) {
    let comm = world.communicator();
    let (rank, n) = (comm.rank(), comm.size());
    let second = comm.duplicate().unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| (0..20).for_each(|_| own_traffic(rank, n)));
        threads.spawn(|| (0..2).for_each(|_| defaults(&second, &[1, 5000])));
        (0..2).for_each(|_| defaults(comm, &[2, 5000]));
    });
}

/// The missing rank is named, the others are not.
pub fn missing() {
    start("multiple");
    // SAFETY: all ranks of the program call it.
    let mut world = unsafe { init_mpi(world_comm()) }.unwrap();
    let (rank, n) = (world.communicator().rank(), world.communicator().size());
    const LATE: u32 = 1;
    const TAG: c_int = 5;
    let others = (0..n).filter(|&other| other != LATE);
    if rank == LATE {
        // Starts after all other ranks have given up waiting for it.
        for other in others {
            let (mut word, from) = (0u8, other as c_int);
            // SAFETY: room for one byte.
            let code = unsafe {
                let (at, kind) = ((&raw mut word).cast(), ffi::uint8_t());
                let ignored = std::ptr::null_mut();
                ffi::PMPI_Recv(at, 1, kind, from, TAG, world_comm(), ignored)
            };
            assert_eq!(code, 0);
        }
        assert_eq!(world.missing().unwrap(), []);
    } else {
        assert_eq!(world.missing().unwrap(), [LATE]);
        let word = 0u8;
        // SAFETY: one byte.
        let code = unsafe {
            let (at, kind) = ((&raw const word).cast(), ffi::uint8_t());
            ffi::PMPI_Send(at, 1, kind, LATE as c_int, TAG, world_comm())
        };
        assert_eq!(code, 0);
    }
    world.finish().unwrap();
    finalize(rank, "missing");
}

/// Ten thousand communicators, created and dropped, leak no memory.
pub fn many() {
    start("multiple");
    // SAFETY: all ranks of the program call it.
    let world = unsafe { init_mpi(world_comm()) }.unwrap();
    let comm = world.communicator();
    let parts = split((comm.rank() % 2) as c_int, 0);
    let make = |n: usize| {
        for at in 0..n {
            // SAFETY: all ranks of the communicator call it.
            let part: Result<_, Error> = unsafe { world.communicator_of(parts) };
            let part = part.unwrap();
            if at % 100 == 0 {
                part.barrier().unwrap();
            }
        }
    };
    make(1000);
    let before = resident();
    make(10_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes more");
    comm.barrier().unwrap();
    free(parts);
    let rank = comm.rank();
    world.finish().unwrap();
    finalize(rank, "many");
}

/// A rank that is late with many messages, of lengths that use different protocols, completes as soon as they are
/// sent, although their receiver is busy elsewhere.
pub fn ahead() {
    const N: usize = 400;
    start("multiple");
    // SAFETY: all ranks of the program call it.
    let world = unsafe { init_mpi(world_comm()) }.unwrap();
    let comm = world.communicator().with(CallOptions::new().algorithm("mixed-tree"));
    let rank = comm.rank();
    // More short messages than a port times to learn up to which length it copies messages.
    (0..40).for_each(|_| world.communicator().barrier().unwrap());
    if rank == 0 {
        std::thread::sleep(Duration::from_millis(300));
    }
    let count = |at: usize| [1000, 10_000, 30_000, 70_000, 100_000][at % 5];
    let init = |at: usize| comm.bcast_init(vec![rank; count(at)], 1).unwrap();
    let mut all: Vec<_> = (0..N).map(init).collect();
    all.iter_mut().for_each(|bcast| bcast.start().unwrap());
    for bcast in &mut all {
        bcast.wait().unwrap();
        assert!(bcast.buffer().unwrap().iter().all(|&value| value == 1));
    }
    // SAFETY: all ranks call it. MPI's barrier does not make hopbine's calls progress.
    assert_eq!(unsafe { ffi::PMPI_Barrier(world_comm()) }, 0);
    drop(all);
    drop(comm);
    world.finish().unwrap();
    finalize(rank, "ahead");
}

/// No rank receives the long messages of a rank, since the others make another call: the rank gives up, and MPI
/// still finalises.
pub fn unmet() {
    start("multiple");
    // SAFETY: all ranks of the program call it.
    let world = unsafe { init_mpi(world_comm()) }.unwrap();
    let whole = CallOptions::new().segment_bytes(1 << 40).algorithm("mixed-tree");
    let comm = world.communicator().with(whole);
    let rank = comm.rank();
    let error = if rank == 0 {
        // Ranks that give up receive its message, so the broadcast may complete before rank 0 learns of the
        // failure.
        comm.bcast(&mut vec![1u8; 4 << 20], 0).and_then(|()| comm.barrier())
    } else {
        world.communicator().allreduce_in_place(&mut [1u8; 10], Op::Sum)
    };
    error.expect_err("they differ");
    drop(comm);
    drop(world);
    finalize(rank, "unmet");
}

/// Ranks that make different calls get an error that says so, also if their messages never meet.
pub fn mismatch() {
    start("multiple");
    // SAFETY: all ranks of the program call it.
    let world = unsafe { init_mpi(world_comm()) }.unwrap();
    let comm = world.communicator().with(CallOptions::new().hardware(Hardware::Never));
    let rank = comm.rank();
    let mut vector = vec![1.0; if rank == 1 { 6000 } else { 100 }];
    let error = comm.allreduce_in_place(&mut vector, Op::Sum).expect_err("they differ").to_string();
    assert!(
        error.contains("another call") || error.contains("bytes") || error.contains("elsewhere"),
        "{error}"
    );
    drop(comm);
    drop(world);
    finalize(rank, "mismatch");
}

/// Rank 1 gives up a long message that MPI has begun to receive, since rank 0 computes. When rank 0 calls MPI again,
/// nothing more arrives in rank 1's memory.
pub fn overtaken() {
    start("multiple");
    // SAFETY: all ranks of the program call it.
    let world = unsafe { init_mpi(world_comm()) }.unwrap();
    let comm = world.communicator();
    let rank = comm.rank();
    let mut bytes = vec![7u8; 1_000_000];
    if rank == 0 {
        // Everything may be sent before this rank hears of the failure.
        let _ = comm.scope(|scope| {
            let sent = scope.bcast(&mut bytes, 0)?;
            std::thread::sleep(Duration::from_secs(6));
            sent.wait().map(drop)
        });
    } else {
        comm.bcast(&mut bytes, 0).expect_err("rank 0 computes");
        bytes.fill(0x55);
    }
    // Meanwhile MPI completes what it has begun.
    own_traffic(rank, comm.size());
    std::thread::sleep(Duration::from_millis(200));
    own_traffic(rank, comm.size());
    assert!(rank == 0 || bytes.iter().all(|&byte| byte == 0x55), "bytes arrived after the error");
    drop(world);
    finalize(rank, "overtaken");
}

/// Bytes of resident memory of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap() * 4096
}
