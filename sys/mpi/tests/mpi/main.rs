//! Ranks under an MPI launcher: `mpirun -n 4 mpi TEST [ARGUMENT]`; see ci/mpi.sh. Without arguments a single
//! process runs the matrix.

#[path = "../../../../tests/common/ahead.rs"]
mod ahead;
#[allow(dead_code, reason = "for ranks that are threads")]
#[path = "../../../../tests/common/calls.rs"]
mod calls;
mod own;
#[path = "../../../../tests/common/reference.rs"]
mod reference;
mod streams;

use hopbine::torus::{Algorithm, Collective, registry};
use hopbine::{CallOptions, Communicator, init};

use calls::check;
use reference::Case;

/// The backend of worlds of threads; this program has no such world.
mod processes {
    #[allow(dead_code, reason = "asked for by what is not called")]
    pub fn backend() -> String {
        String::new()
    }
}

fn main() {
    hopbine_mpi::provide();
    // The environment chooses the wire.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["matrix"] => matrix(),
        ["own", level] => own::run(level),
        ["no-workers", level] => own::no_workers(level),
        ["many"] => own::many(),
        ["ahead"] => own::ahead(),
        ["missing"] => own::missing(),
        ["unmet"] => own::unmet(),
        ["overtaken"] => own::overtaken(),
        ["streams"] => streams::run(),
        ["root-ahead"] => root_ahead(),
        ["mismatch"] => own::mismatch(),
        ["long"] => long(),
        ["late"] => late(),
        ["going", seconds] => going(seconds.parse().unwrap(), None),
        ["going", seconds, last] => going(seconds.parse().unwrap(), Some(last.parse().unwrap())),
        // `cargo test` may pass options of its own.
        _ if arguments.iter().all(|argument| argument.starts_with('-')) => matrix(),
        _ => panic!("no test is called {arguments:?}"),
    }
}

/// All ranks wait for rank 1, which computes and meanwhile answers no rank.
fn late() {
    let world = init().unwrap();
    if world.communicator().rank() == 1 {
        std::thread::sleep(5 * std::time::Duration::from_secs(1));
    }
    world.communicator().barrier().unwrap();
    println!("rank {}: {} long waits", world.info().rank, world.info().long_waits);
    world.finish().unwrap();
}

/// The root is far ahead of the other ranks.
fn root_ahead() {
    let world = init().unwrap();
    ahead::far_ahead(world.communicator(), 20_000);
    ahead::ahead_in_another(world.communicator(), 300);
    world.finish().unwrap();
}

/// Every collective by every algorithm, with lengths that use different protocols.
fn matrix() {
    let world = init().unwrap();
    let comm = world.communicator();
    let algorithms: Vec<Algorithm> = registry::all()
        .into_iter()
        .filter(|algorithm| algorithm.serves(comm.shape()).is_ok())
        .collect();
    let lengths = [0, 1, 13, 5000];
    for (at, algorithm) in algorithms.iter().enumerate() {
        // Each algorithm runs with some of the lengths, in turn, since this test runs on many numbers of ranks.
        let indices = [at % lengths.len(), (at + 2) % lengths.len()];
        for &index in &indices[..if comm.size() > 4 { 1 } else { 2 }] {
            let count = lengths[index];
            let collective = algorithm.collective;
            let root = if collective.is_rooted() { index as u32 % comm.size() } else { 0 };
            let case = Case { collective, n_ranks: comm.size(), count, root };
            let options = CallOptions::new()
                .algorithm(&algorithm.name)
                .ports(1 + index as u32 % comm.n_ports())
                .segment_bytes([1 << 20, 4096, 100][index % 3]);
            check(&comm.with(options), &case, &algorithm.name);
        }
    }
    defaults(comm, &[0, 1, 100, 5000, 20_000]);
    let (rank, backend) = (comm.rank(), world.info().backend);
    if rank == 0 {
        println!("{} algorithms on {} ranks over {backend}", algorithms.len(), comm.size());
    }
    world.finish().unwrap();
}

/// Every collective with the default options.
pub fn defaults(comm: &Communicator, lengths: &[usize]) {
    for collective in Collective::ALL {
        for &count in lengths {
            let root = if collective.is_rooted() { comm.size() - 1 } else { 0 };
            check(comm, &Case { collective, n_ranks: comm.size(), count, root }, "default");
        }
    }
}

/// Messages that need several pieces because of MPI's counts, if there is enough memory.
fn long() {
    let world = init().unwrap();
    let comm = world.communicator();
    let mut bytes = vec![comm.rank() as u8; (1 << 30) + 4097];
    if comm.rank() == 0 {
        bytes[1 << 30..].fill(9);
    }
    let whole = CallOptions::new().segment_bytes(1 << 40).algorithm("mixed-tree");
    comm.with(whole).bcast(&mut bytes, 0).unwrap();
    // Not byte by byte, which takes ten seconds, as this package is not optimised.
    assert!(bytes[..1 << 30].chunks(1 << 16).all(|chunk| chunk == [0; 1 << 16]));
    assert!(bytes[1 << 30..].iter().all(|&byte| byte == 9));
    world.finish().unwrap();
}

/// Makes calls for `seconds` seconds, whose results must be right: for tests that disconnect hosts meanwhile. If
/// `last` is given, the last rank dies before that call. A rank that gets an error prints it.
fn going(seconds: f64, last: Option<u32>) {
    let world = init().unwrap();
    let comm = world.communicator();
    let (rank, n) = (comm.rank(), comm.size());
    let start = std::time::Instant::now();
    for call in 0.. {
        if call == 10 && rank == 0 {
            println!("going");
        }
        if last == Some(call) && rank == n - 1 {
            // SAFETY: no preconditions.
            unsafe { libc::raise(libc::SIGKILL) };
        }
        // All ranks stop after the same call.
        let is_over = start.elapsed().as_secs_f64() > seconds;
        let mut sum = vec![u64::from(rank + call); 1000];
        sum[999] = u64::from(is_over);
        if let Err(error) = comm.allreduce_in_place(&mut sum, hopbine::reduce::Op::Sum) {
            println!("rank {rank} after {call} calls: {error}");
            std::process::exit(0);
        }
        let right = u64::from((0..n).sum::<u32>() + n * call);
        assert!(sum[..999].iter().all(|&value| value == right), "call {call}");
        if sum[999] > 0 {
            break;
        }
    }
    if rank == 0 {
        println!("all calls are right");
    }
    world.finish().unwrap();
}
