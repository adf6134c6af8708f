//! Ranks that make different calls get an error at once, whatever the difference is. They neither wait for messages
//! that never come nor receive messages of another call.

use std::time::Duration;

use crate::common::calls::config;
use crate::common::processes::{ranks, run_scenario};
use hopbine::Call;
use hopbine::reduce::{Dtype, Op};
use hopbine::torus::collectives::Collective;
use hopbine::torus::{RankMap, Shape, registry};
use hopbine::{
    Blame, Blocks, CallOptions, Communicator, Drive, Error, Fault, Hardware, emulate, init,
};

/// The rank that makes the different call.
const ODD: u32 = 2;

/// One call; its buffers are large enough for every call of these tests.
#[derive(Clone)]
struct Made {
    collective: Collective,
    count: u64,
    dtype: Dtype,
    op: Option<Op>,
    root: u32,
    options: CallOptions,
}

impl Made {
    fn sum(count: u64) -> Self {
        Made {
            collective: Collective::Allreduce,
            count,
            dtype: Dtype::F32,
            op: Some(Op::Sum),
            root: 0,
            options: CallOptions::new().hardware(Hardware::Never),
        }
    }

    fn bcast(root: u32) -> Self {
        Made { collective: Collective::Bcast, op: None, root, ..Made::sum(100) }
    }

    fn make(&self, comm: &Communicator) -> Result<(), Error> {
        let n = comm.size() as usize;
        let bytes = self.count as usize * self.dtype.size_bytes();
        let (send, mut recv) = (vec![0u8; n * bytes + 8], vec![0u8; n * bytes + 8]);
        let mut call = Call::new(self.collective, self.count, self.dtype);
        call.root = self.root;
        call.op = self.op;
        call.send = send.as_ptr();
        call.send_count = if self.collective == Collective::Bcast { 0 } else { self.count };
        call.recv = recv.as_mut_ptr();
        call.recv_count = self.count;
        // SAFETY: both buffers have room for everything that the call reads and writes.
        unsafe { comm.with(self.options.clone()).call(&call) }
    }
}

fn pairs(shape: &Shape) -> Vec<(&'static str, Made, Made)> {
    let sum = Made::sum;
    let by = |name: &str| Made { options: sum(0).options.algorithm(name), ..sum(5000) };
    let on = |ports| Made { options: by("circulant").options.ports(ports), ..sum(5000) };
    vec![
        ("count of few", sum(3), sum(4)),
        ("count, one inside descriptors and one with announced receives", sum(3), sum(30_000)),
        ("count of many", sum(30_000), sum(40_000)),
        ("type", sum(1000), Made { dtype: Dtype::I32, ..sum(1000) }),
        ("operator", sum(1000), Made { op: Some(Op::Max), ..sum(1000) }),
        ("algorithm", by("bucket"), by("circulant")),
        ("schedule", by(&written("bucket", shape)), by(&written("circulant", shape))),
        ("split", by("circulant-split:2,1"), by("circulant-split:1,2")),
        ("root", Made::bcast(0), Made::bcast(1)),
        ("ports", on(2), on(1)),
        (
            "segments",
            by("circulant"),
            Made { options: by("circulant").options.segment_bytes(64), ..by("circulant") },
        ),
        ("collective", sum(100), Made::bcast(3)),
    ]
}

/// The schedule of an allreduce algorithm on one port, as text.
fn written(name: &str, shape: &Shape) -> String {
    let algorithm = registry::find(Collective::Allreduce, name).unwrap();
    let (map, root) = (RankMap::RowMajor, hopbine::torus::Rank(0));
    let request = registry::Request { shape: shape.clone(), map, root, ports: Some(1) };
    algorithm.schedule(&request).unwrap().to_string()
}

/// The result of a rank if rank `ODD` makes another call.
fn outcome(comm: &Communicator, most: &Made, odd: &Made) -> Result<(), Error> {
    most.make(comm)?;
    if comm.rank() == ODD { odd.make(comm) } else { most.make(comm) }?;
    // Ranks that wait for no other rank may get this far.
    Made::sum(10).make(comm)
}

fn blame(error: &Error) -> Option<Blame> {
    match error {
        Error::Lost { blame, .. } => Some(*blame),
        Error::Poisoned(reason) => blame(reason),
        _ => None,
    }
}

fn check(what: &str, rank: u32, outcome: Result<(), Error>) {
    let error = outcome.expect_err(what);
    let Some(blame) = blame(&error) else { panic!("{what}, rank {rank}: {error}") };
    assert_eq!(blame.fault, Fault::Elsewhere, "{what}, rank {rank}: {error}");
    assert!([blame.rank, blame.by].contains(&ODD), "{what}, rank {rank}: {error}");
}

#[test]
fn whatever_differs_is_an_error_everywhere() {
    for drive in [Drive::Inline, Drive::Workers] {
        // No rank may wait that long.
        let config =
            config(&[2, 3], drive).with(|config| config.timeout = Duration::from_secs(600));
        for (what, most, odd) in pairs(&config.shape) {
            let outcomes = emulate(&config, |comm| outcome(comm, &most, &odd)).unwrap();
            for (rank, outcome) in outcomes.into_iter().enumerate() {
                check(what, rank as u32, outcome);
            }
        }
    }
}

/// The entry point of every rank that is a process; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| match name {
        "differs" => Some(differs as fn()),
        "disagrees" => Some(disagrees),
        _ => None,
    });
}

const PAIR: &str = "HOPBINE_TEST_PAIR";

fn differs() {
    let pair = std::env::var(PAIR).unwrap().parse::<usize>().unwrap();
    let world = init().unwrap();
    let comm = world.communicator();
    let (what, most, odd) = pairs(comm.shape()).swap_remove(pair);
    check(what, comm.rank(), outcome(comm, &most, &odd));
}

/// Processes have no common state, so each must send its call to the others.
#[test]
fn processes_tell_each_other() {
    let n_pairs = pairs(&Shape::torus(&[5]).unwrap()).len();
    for pair in 0..n_pairs {
        // In shared memory the default is one port, and one port has no split.
        let pair = pair.to_string();
        let env = [(PAIR, &*pair), ("HOPBINE_TIMEOUT", "600"), ("HOPBINE_PORTS", "2")];
        ranks(5, "differs", &env);
    }
}

/// Only the root of a scatter finds out that a rank expects another block than it sends.
fn disagrees() {
    let world = init().unwrap();
    let comm = world.communicator().with(CallOptions::new().algorithm("mixed"));
    let counts = [3; 5];
    let blocks = (comm.rank() == 1).then(|| Blocks::new(&counts));
    let mut into = vec![0u64; if comm.rank() == 4 { 2 } else { 3 }];
    let scattered = comm.scatterv(&[7; 15], blocks, &mut into, 1);
    // Ranks that wait for no other rank may get this far.
    let error = scattered.and_then(|()| comm.barrier()).unwrap_err();
    match (comm.rank(), &error) {
        (1, &Error::Disagree { rank, peer, .. }) => assert_eq!((rank, peer), (4, 1)),
        _ => {
            let found = Blame { rank: 1, fault: Fault::Disagrees, by: 4 };
            assert_eq!(blame(&error), Some(found), "{error}");
        }
    }
}

#[test]
fn both_ranks_that_disagree_are_told_to_all() {
    ranks(5, "disagrees", &[("HOPBINE_TIMEOUT", "600")]);
}
