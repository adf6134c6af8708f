//! Collectives called on ranks that are threads, compared with the reference.

use hopbine::reduce::Op;
use hopbine::torus::geometry::Shape;
use hopbine::torus::{Algorithm, Collective, registry};
use hopbine::{CallOptions, Communicator, Drive, EmulationConfig, Error, Wire, emulate};

use super::reference::{Case, expected, inputs};

/// A torus of ranks that are threads, driven by `drive`. Their wire is the emulated device, or shared memory if
/// [`BACKEND`](super::processes::BACKEND) is `shm`. `HOPBINE_UNEXPECTED_BYTES`, if set, bounds their unexpected
/// messages.
pub fn config(sizes: &[u32], drive: Drive) -> EmulationConfig {
    config_on(Shape::torus(sizes).unwrap(), drive)
}

/// Like [`config`], for any shape.
pub fn config_on(shape: Shape, drive: Drive) -> EmulationConfig {
    let wire = match super::processes::backend().as_str() {
        "shm" => Wire::Memory,
        _ => Wire::Network,
    };
    let mut config = EmulationConfig::new(shape).with(|config| {
        config.drive = drive;
        config.wire = wire;
    });
    if let Ok(bytes) = std::env::var("HOPBINE_UNEXPECTED_BYTES") {
        config.unexpected_bytes = bytes.parse().expect("a number of bytes");
    }
    config
}

/// Calls a collective on u64 sums, with the given input, and returns the rank's receive buffer.
pub fn call_on(comm: &Communicator, case: &Case, send: &[u64]) -> Result<Vec<u64>, Error> {
    let rank = comm.rank();
    let mut recv = vec![u64::MAX; case.recv_len(rank)];
    match case.collective {
        Collective::Allreduce => comm.allreduce(send, &mut recv, Op::Sum)?,
        Collective::ReduceScatter => comm.reduce_scatter(send, &mut recv, Op::Sum)?,
        Collective::Allgather => comm.allgather(send, &mut recv)?,
        Collective::Bcast => {
            if rank == case.root {
                recv.copy_from_slice(send);
            }
            comm.bcast(&mut recv, case.root)?;
        }
        Collective::Reduce => comm.reduce(send, &mut recv, Op::Sum, case.root)?,
        Collective::Gather => comm.gather(send, &mut recv, case.root)?,
        Collective::Scatter => comm.scatter(send, &mut recv, case.root)?,
        Collective::Alltoall => comm.alltoall(send, &mut recv)?,
        Collective::Scan => comm.scan(send, &mut recv, Op::Sum)?,
        Collective::Exscan => comm.exscan(send, &mut recv, Op::Sum)?,
        Collective::Barrier => comm.barrier()?,
    }
    Ok(recv)
}

/// Like `call_on`, but with input and output in one buffer if the collective has an in-place form.
pub fn call_in_place_on(comm: &Communicator, case: &Case, send: &[u64]) -> Result<Vec<u64>, Error> {
    let rank = comm.rank();
    let mut buffer = send.to_vec();
    match case.collective {
        Collective::Allreduce => comm.allreduce_in_place(&mut buffer, Op::Sum)?,
        Collective::ReduceScatter => {
            comm.reduce_scatter_in_place(&mut buffer, Op::Sum)?;
            buffer.truncate(case.count);
        }
        Collective::Allgather => {
            let mut all = vec![u64::MAX; case.recv_len(rank)];
            let at = rank as usize * case.count;
            all[at..at + case.count].copy_from_slice(&buffer);
            comm.allgather_in_place(&mut all)?;
            buffer = all;
        }
        Collective::Reduce => {
            comm.reduce_in_place(&mut buffer, Op::Sum, case.root)?;
            assert!(rank == case.root || buffer == send, "only the root's changes");
            buffer.truncate(case.recv_len(rank));
        }
        Collective::Alltoall => comm.alltoall_in_place(&mut buffer)?,
        Collective::Scan => comm.scan_in_place(&mut buffer, Op::Sum)?,
        Collective::Exscan => {
            comm.exscan_in_place(&mut buffer, Op::Sum)?;
            if rank == 0 {
                assert_eq!(buffer, send, "rank 0 keeps its input");
                buffer.fill(u64::MAX);
            }
        }
        _ => return call_on(comm, case, send),
    }
    Ok(buffer)
}

/// Calls a collective out of place and in place, and compares the rank's results with the reference.
pub fn check(comm: &Communicator, case: &Case, what: &str) {
    let want = expected(case, comm.rank(), u64::wrapping_add);
    check_on(comm, case, &inputs(case, comm.rank()), &want, what);
}

/// Like `check`, with the given input and what the rank must receive.
pub fn check_on(comm: &Communicator, case: &Case, send: &[u64], want: &[u64], what: &str) {
    let got = call_on(comm, case, send).unwrap_or_else(|error| panic!("{what} {case:?}: {error}"));
    assert!(got == want, "{what} {case:?}: rank {} is wrong", comm.rank());
    let got = call_in_place_on(comm, case, send)
        .unwrap_or_else(|error| panic!("{what} {case:?}: {error}"));
    assert!(got == want, "{what} {case:?} in place: rank {} is wrong", comm.rank());
}

/// Runs every algorithm that supports the shape with each of the lengths. Ports, root and segment size vary with the
/// index of the length.
pub fn every_algorithm(sizes: &[u32], drive: Drive, lengths: &[usize]) {
    every_algorithm_on(&Shape::torus(sizes).unwrap(), drive, lengths);
}

/// Like [`every_algorithm`], for any shape.
pub fn every_algorithm_on(shape: &Shape, drive: Drive, lengths: &[usize]) {
    on_every_algorithm(shape, drive, |comm, _, algorithm| {
        for index in 0..lengths.len() {
            one_call(comm, algorithm, lengths, index);
        }
    });
}

/// Like [`every_algorithm`], but runs each algorithm with only one of the lengths, in rotation.
pub fn every_algorithm_once(shape: &Shape, drive: Drive, lengths: &[usize]) {
    on_every_algorithm(shape, drive, |comm, number, algorithm| {
        one_call(comm, algorithm, lengths, number % lengths.len());
    });
}

fn on_every_algorithm(
    shape: &Shape,
    drive: Drive,
    run: impl Fn(&Communicator, usize, &Algorithm) + Sync,
) {
    // An alias makes the same plans as its algorithm.
    let all = registry::all().into_iter().filter(|one| one.alias_of.is_none()).enumerate();
    let algorithms: Vec<(usize, Algorithm)> =
        all.filter(|(_, algorithm)| algorithm.serves(shape).is_ok()).collect();
    // Ranks cache the programs that they have run, with their working memory, and this process holds all ranks. So
    // the number of algorithms per world decreases with the number of ranks.
    for algorithms in algorithms.chunks((256 / shape.n_ranks() as usize).max(1)) {
        emulate(&config_on(shape.clone(), drive), |comm| {
            algorithms.iter().for_each(|(number, algorithm)| run(comm, *number, algorithm));
        })
        .unwrap();
    }
}

/// Makes one call: `index` selects the length, the ports, the root and the segment size.
fn one_call(comm: &Communicator, algorithm: &Algorithm, lengths: &[usize], index: usize) {
    let (collective, n_ranks) = (algorithm.collective, comm.size());
    let root = if collective.is_rooted() { index as u32 % n_ranks } else { 0 };
    let case = Case { collective, n_ranks, count: lengths[index], root };
    let options = CallOptions::new()
        .algorithm(&algorithm.name)
        .ports(1 + index as u32 % comm.n_ports())
        .segment_bytes([1 << 20, 4096, 100][index % 3]);
    check(&comm.with(options), &case, &algorithm.name);
}

/// Makes an allreduce with default options and compares the result.
pub fn checked(comm: &Communicator, count: usize) {
    let case = Case { collective: Collective::Allreduce, n_ranks: comm.size(), count, root: 0 };
    check(comm, &case, "default");
}
